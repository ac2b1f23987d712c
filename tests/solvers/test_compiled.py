"""Compiled exhaustive search against the NumPy one: everything that a tally holds, on random problems and by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from dse.errors import InputError
from dse.problem import Problem, Team
from dse.problem.library import load
from dse.solvers import compiled
from dse.solvers.exhaustive import Exhaustive
from dse.study.diagnosis import exact_result
from dse.study.exact import ExactRun, run_exact
from dse.study.result import Result
from tests.randomspaces import problem, spaces

pytest.importorskip("llvmlite")

NUMPY, COMPILED = {"jit": "off"}, {"jit": "on"}


def run(found: Problem, team: Team, options: dict[str, Any], **more: Any) -> ExactRun:
    return run_exact(found, team, Exhaustive(), options=options, **more)


def everything(found: Problem, team: Team, run: ExactRun) -> dict[str, Any]:
    """All that a run leaves, in a form that can be compared."""
    result: Result = exact_result(found, team, "exhaustive", run, seed=3)
    kept = result.kept
    assert kept is not None
    return {
        "result": result.to_json(run=False),
        "tied": [point.tied for point in result.front],
        "kept": [kept.digits.tolist(), repr(kept.objectives.tolist()), kept.feasible.tolist(), kept.complete],
        "present": [seen.tolist() for seen in run.tally.present] if run.tally.feasible else [],
        "counts": [
            getattr(run.tally, name) for name in ("outside", "illegal", "evaluated", "failed", "feasible")
        ],
        "funnel": [run.tally.alone, run.tally.in_order],
        "relaxed": sorted(run.tally.relaxed.items()),
    }


def teams(found: Problem) -> Iterator[Team]:
    yield found.everything
    yield from found.teams.values()


def assert_same(found: Problem, team: Team, **options: Any) -> bool:
    """Whether the problem could be compiled; that it then gives what NumPy gives."""
    expected = everything(found, team, run(found, team, NUMPY, keep=9, seed=3, **options))
    try:
        made = run(found, team, COMPILED, keep=9, seed=3, **options)
    except InputError:
        return False
    assert everything(found, team, made) == expected
    return True


@pytest.fixture(autouse=True)
def odd_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers that fill again and again, and pieces of one turn."""
    rooms = random.Random(7)
    whole = compiled.explore

    def explore(*args: Any) -> None:
        whole(*args, room=rooms.choice([1, 2, 7, 64, 8192]), seconds=rooms.choice([0.0, 0.03]))

    monkeypatch.setattr(compiled, "explore", explore)


@settings(max_examples=300)
@given(spaces(designs=60))
def test_drawn_problems(data: dict[str, Any]) -> None:
    found = load(data)
    chosen = list(teams(found))[-1]
    assert_same(found, chosen, top=3, ties=len(found.rules) == 1)


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_three_hundred_random_problems(first: int) -> None:
    done = 0
    for seed in range(first, first + 50):
        found = problem(seed, 60)
        several = list(teams(found))
        done += assert_same(found, several[0], top=seed % 3, ties=seed % 2 == 0)
        if len(several) > 1:
            done += assert_same(found, several[1 + seed % (len(several) - 1)], workers=1 + seed % 2)
    assert done > 60
