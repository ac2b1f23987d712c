"""Pareto searches of small spaces and of spaces made by hand, and what must hold of their fronts."""

from __future__ import annotations

from typing import Any

from dse.problem import Problem
from dse.problem.library import load
from dse.solvers.pareto import Pareto
from dse.study.diagnosis import exact_result
from dse.study.exact import run_exact
from dse.study.result import Result
from tests.brute import Everything
from tests.bruteforce import assert_accounted

__all__ = ["Data", "assert_feasible_front", "assert_true", "costs", "flat", "flat_data", "solve"]

Data = dict[str, Any]


def solve(found: Problem, team: str | None = None, **options: Any) -> Result:
    own = found.team(team)
    return exact_result(found, own, "pareto", run_exact(found, own, Pareto(), **options))


def costs(result: Result) -> list[tuple[float, ...]]:
    """The vectors of the front, minimized."""
    signs = [objective.sign for objective in result.problem.objectives]
    names = [objective.name for objective in result.problem.objectives]
    return [
        tuple(point.objectives[n] * s + 0.0 for n, s in zip(names, signs, strict=True))
        for point in result.front
    ]


def flat(
    dimensions: Data, metrics: dict[str, str], objectives: dict[str, str] | None = None, **more: Any
) -> Problem:
    return load(flat_data(dimensions, metrics, objectives, **more))


def flat_data(
    dimensions: Data, metrics: dict[str, str], objectives: dict[str, str] | None = None, **more: Any
) -> Data:
    """A space of given dimensions and metrics, all without units."""
    declared = {name: {"choices": d} if isinstance(d, list) else d for name, d in dimensions.items()}
    data: Data = {"dse": 1, "name": "made", "dimensions": declared}
    data["metrics"] = {name: {"expr": text, "unit": "1"} for name, text in metrics.items()}
    data["objectives"] = objectives or dict.fromkeys(metrics, "minimize")
    empty: Data = {key: {} for key in ("inputs", "tables", "lets", "rules", "teams", "constraints")}
    return {**empty, **data, **more}


def assert_true(data: Data, result: Result, team: str | None = None) -> None:
    """The front, with its tied designs if they are listed, is that of the brute force."""
    right = Everything(data, team).front
    assert_accounted(result)
    assert costs(result) == [own for own, _ in right]
    assert [(p.index, p.ties) for p in result.front] == [(tied[0], len(tied)) for _, tied in right]
    assert all(p.tied in ((), tied) for p, (_, tied) in zip(result.front, right, strict=True))


def assert_feasible_front(result: Result, right: Everything) -> None:
    """Every point is feasible with the objectives that it says, and none dominates another."""
    front = costs(result)
    for point, own in zip(result.front, front, strict=True):
        assert point.index is not None
        assert right.feasible[point.index]
        assert tuple(right.costs[point.index].tolist()) == own
    for a in front:
        assert not any(a != b and all(x <= y for x, y in zip(a, b, strict=True)) for b in front)
