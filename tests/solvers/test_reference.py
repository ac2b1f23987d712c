"""Reference problems whose fronts are known: every exact search finds them, and all give the same bytes."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from dse.problem.library import load
from dse.problem.neutral import to_space
from dse.study.study import search

NEUTRAL = Path(__file__).parents[1] / "neutral"


@pytest.mark.parametrize("name", ["camera_480", "training_1e5", "training_1e7"])
def test_every_exact_search_finds_the_front_that_is_stated(name: str) -> None:
    data = json.loads((NEUTRAL / f"{name}.json").read_text(encoding="utf-8"))
    found = load(to_space(data))
    assert found.size == data["points"]
    jits = ["off", "on"] if find_spec("llvmlite") else ["off"]
    results = [search(found, solver="pareto", ties=True)]
    results += [search(found, solver="exhaustive", ties=True, options={"jit": jit}) for jit in jits]
    for result in results:
        assert len(result.front) == data["expected"]["front"]
        assert sum(point.ties for point in result.front) == data["expected"]["designs"]
        assert all(len(point.tied) == point.ties for point in result.front)
        assert result.accounting.total == found.size
        assert result.accounting.unvisited == 0
    assert len({json.dumps(result.to_dict()["front"]) for result in results}) == 1
    canonical = {result.to_json(run=False) for result in results[1:]}
    assert len(canonical) == 1
    assert results[0].accounting.evaluated < results[1].accounting.evaluated
