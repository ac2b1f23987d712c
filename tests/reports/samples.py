"""Small problems and their results, built without files or solvers, so that reports are tested by themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dse.evaluation import Judge, Verdict, broken_rule, evaluate_nodes, judge, member
from dse.evaluation.verdict import State
from dse.problem import Problem
from dse.problem.library import load
from dse.study.accounting import Accounting, Funnel, FunnelLine
from dse.study.compare import Comparison, TeamReport, Unlock
from dse.study.front import Archive
from dse.study.result import FrontPoint, Kept, Miss, Result, Trait


@lru_cache
def camera() -> Problem:
    """The shipped camera space, with its three teams."""
    return load("camera")


def build(
    dimensions: Mapping[str, Any],
    metrics: Mapping[str, tuple[str, str] | dict[str, Any]],
    objectives: Mapping[str, str],
    constraints: Mapping[str, Any] | None = None,
    **more: Any,
) -> Problem:
    """A problem from plain data; ``metrics`` are name -> (expression, unit), or as in a file."""
    data = {
        "dse": 1,
        "name": "sample",
        "dimensions": dict(dimensions),
        "metrics": {
            name: metric if isinstance(metric, dict) else {"expr": metric[0], "unit": metric[1]}
            for name, metric in metrics.items()
        },
        "objectives": dict(objectives),
        "constraints": dict(constraints or {}),
    }
    return load(data | more)


def knobs(n: int = 6, m: int = 6) -> dict[str, Any]:
    """Two numeric dimensions ``a`` and ``b``, from 1."""
    return {"a": {"range": [1, n]}, "b": {"range": [1, m]}}


def solve(problem: Problem, team: str | None = None, *, keep: int | None = None) -> Result:
    """The result of judging every design, one by one."""
    chosen = problem.team(team)
    legal: list[tuple[int, Verdict]] = []
    outside = illegal = 0
    for index in range(problem.size):
        design = problem.design_at(problem.digits_of(index))
        if not member(problem, chosen, design):
            outside += 1
            continue
        if broken_rule(problem, design) is not None:
            illegal += 1
        else:
            legal.append((index, judge(problem, design)))
    digits = np.array([problem.digits_of(i) for i, _ in legal], dtype=np.intp).reshape(-1, len(problem.names))
    judged = Judge(problem).evaluate({n: digits[:, at] for at, n in enumerate(problem.names)}, len(legal))
    signs = np.array([o.sign for o in problem.objectives])
    kept = Kept(
        digits,
        judged.objectives * signs + 0.0,
        judged.violations,
        judged.feasible,
        judged.failed,
        len(legal),
        True,
    )
    front = []
    if judged.feasible.any():
        archive = Archive(len(problem.objectives))
        archive.add(judged.objectives[judged.feasible], np.array([i for i, _ in legal])[judged.feasible])
        front = [_point(problem, int(i), int(n)) for i, n in zip(*archive.to_arrays()[1:], strict=True)]
    misses = [
        (v.nearness, i, v) for i, v in legal if v.state is State.INFEASIBLE and math.isfinite(v.nearness)
    ]
    miss = None
    if misses:
        _, index, verdict = min(misses, key=lambda m: m[:2])
        broken = {c.name: v for c, v in zip(problem.constraints, verdict.violations, strict=True) if v > 0}
        point = _point(problem, index, 1)
        miss = Miss(index, point.design, broken, point.metrics, verdict.nearness)
    lines = _funnel(problem, [v for _, v in legal])
    failed = int(judged.failed.sum())
    traits = []
    if front:
        for at, dimension in enumerate(problem.dimensions):
            values = sorted(set(digits[judged.feasible, at].tolist()))
            if len(values) < len(dimension.values):
                traits.append(
                    Trait(dimension.name, tuple(dimension.label(v) for v in values), len(dimension.values))
                )
    result = Result(
        problem,
        chosen.name,
        "exhaustive",
        "exact",
        "complete",
        Accounting(problem.size, outside, illegal, len(legal)),
        Funnel(len(legal), failed, lines, int(judged.feasible.sum())),
        tuple(front),
        miss,
        traits=tuple(traits),
        kept=kept,
    )
    return result if keep is None else replace(result, kept=sampled(kept, keep))


def sampled(kept: Kept, count: int) -> Kept:
    rows = slice(None, count)
    return Kept(
        kept.digits[rows],
        kept.objectives[rows],
        kept.violations[rows],
        kept.feasible[rows],
        kept.failed[rows],
        kept.seen,
        False,
    )


def _point(problem: Problem, index: int, ties: int) -> FrontPoint:
    design = problem.design_at(problem.digits_of(index))
    values = evaluate_nodes(problem, design, [m.node for m in problem.metrics.values()])
    metrics: dict[str, float | bool | str | None] = {}
    for name, metric in problem.metrics.items():
        value = values[metric.node]
        metrics[name] = value if isinstance(value, (float, str)) else None
    objectives = {o.name: value for o in problem.objectives if isinstance(value := metrics[o.name], float)}
    return FrontPoint(index, design, objectives, metrics, ties)


def _funnel(problem: Problem, verdicts: Sequence[Verdict]) -> tuple[FunnelLine, ...]:
    lines, left = [], [v for v in verdicts if v.state is not State.FAILED]
    judged = left
    for at, constraint in enumerate(problem.constraints):
        alone = sum(v.violations[at] > 0 for v in judged)
        stay = [v for v in left if not v.violations[at] > 0]
        lines.append(FunnelLine(constraint.name, alone, len(left) - len(stay)))
        left = stay
    return tuple(lines)


def compared(problem: Problem, *teams: str) -> Comparison:
    """Teams side by side, with what is known to unlock them in the camera exercise."""
    unlocks = {
        "ml": (Unlock(("engine", "hardware"), 8),),
        "systems": (Unlock(("distill",), 1), Unlock(("format",), 1)),
    }
    departures = {
        "ml": ("engine is not naive", "hardware is not cpu"),
        "systems": ("pruning is not none or distill is true or format.retrain",),
    }
    rows = tuple(
        TeamReport(team, solve(problem, team), unlocks.get(team, ()), departures.get(team, ()))
        for team in teams
    )
    return Comparison(problem, rows, solve(problem))
