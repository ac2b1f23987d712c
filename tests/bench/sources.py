"""Where problems come from: neutral JSON, generated spaces, shipped ones, and files of this folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.generator import Shape, generated

if TYPE_CHECKING:
    from dse import Problem

SMALL = str(Path(__file__).with_name("small.yaml"))


def neutral(source: str) -> dict[str, Any]:
    """The content of a neutral JSON file."""
    data: dict[str, Any] = json.loads(Path(source).read_text(encoding="utf-8"))
    return data


def problem_of(source: str, objectives: Sequence[str] = ()) -> Problem:
    """The problem of a source: a neutral JSON file, ``generated:...`` (see :class:`Shape`), or what ``dse.load`` takes.

    Args:
        source: where it comes from.
        objectives: those that are kept; all of them when empty.
    """
    import dse
    from dse.problem.neutral import to_space

    if source.startswith("generated:"):
        problem = generated(Shape.read(source))
    elif source.endswith(".json"):
        problem = dse.load(to_space(neutral(source)))
    else:
        problem = dse.load(source)
    if not objectives:
        return problem
    kept = tuple(o for o in problem.objectives if o.name in objectives)
    assert len(kept) == len(objectives), f"{source} has no objectives {objectives}"
    return replace(problem, objectives=kept)
