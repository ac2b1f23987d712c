"""Which designs the cost model cannot tell from the best: those whose objective is within its error of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dse.errors import InputError
from dse.evaluation import State, judge, member
from dse.problem import Bound, Constraint, Objective, Problem, Team
from dse.space.fields import read_share
from dse.study.diagnosis import traits_of
from dse.study.result import FrontPoint, Near, Result
from dse.study.solver import ExactSearch, ExactSolver
from dse.study.solver import State as Standing
from dse.study.tally import Tally
from dse.units import parse_unit

__all__ = ["MOST", "asked_within", "near_best", "wrong_near"]

MOST = 1_000_000
"""Designs up to which they are counted; of more it is only said that there are more."""

_LISTED, _SHOWN = 10, 5
"""Designs that are listed where this was asked for, and where the space's own error asks for it."""


def asked_within(problem: Problem, asked: str | float | None, top: int) -> tuple[float, int]:
    """The share by which designs may be worse than the best to be counted, and how many of them are listed.

    Args:
        asked: a share such as ``"6 percent"`` or 0.06; None is the declared error of the only objective, if there is one.
        top: how many of the best designs were asked for; 0: no number was.

    Raises:
        InputError: it is no share, or the problem has several objectives.
    """
    if asked is None:
        share = problem.errors.get(problem.objectives[0].name, 0.0) if len(problem.objectives) == 1 else 0.0
        return share, (top or _SHOWN) if share else 0
    found = read_share(asked)
    if found is None:
        raise InputError(f"within must be a share below 1, such as '6 percent' or 0.06, but got {asked!r}")
    if found and len(problem.objectives) > 1:
        names = ", ".join(objective.name for objective in problem.objectives)
        raise InputError(
            f"within must have one best design to go by, but {problem.name} has the objectives {names}"
        )
    return found, (top or _LISTED) if found else 0


def near_best(
    problem: Problem,
    team: Team,
    solver: ExactSolver,
    result: Result,
    share: float,
    *,
    kept: int,
    listed: int,
    seed: int = 0,
    workers: int = 1,
    options: Mapping[str, Any] | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[float], None] | None = None,
) -> Near | None:
    """How many designs are within ``share`` of the best of a complete search of one objective, and some of them.

    The best designs that ``result`` has kept are looked at first. Where all of them are that near, ``solver`` searches
    the space again for what is, without regard to which is better.

    Args:
        kept: how many of the best designs ``result`` has, if there are so many.
        listed: how many near ones to name.
    """
    if (
        not result.front
        or result.status != "complete"
        or result.promise != "exact"
        or len(problem.objectives) > 1
    ):
        return None
    objective = problem.objectives[0]
    best = result.front[0].objectives[objective.name]
    bound = _bound(objective, best, share)
    near = [p for p in result.best if objective.sign * p.objectives[objective.name] <= objective.sign * bound]
    chosen = tuple(p.index for p in _chosen(result.front[0], near, listed) if p.index is not None)
    if len(near) < max(
        len(result.best), kept
    ):  # the best that is not among them is too far, or there is none
        digits = np.array([problem.digits_of(p.index) for p in near if p.index is not None], dtype=np.intp)
        present = [
            np.isin(np.arange(size), column) for size, column in zip(problem.sizes, digits.T, strict=True)
        ]
        return Near(share, bound, len(near), "exact", traits_of(problem, present), chosen)
    tally, finished = _search(
        _around(problem, best, bound),
        team,
        solver,
        seed=seed,
        workers=workers,
        options=options or {},
        stop=stop,
        progress=progress,
    )
    if tally.feasible > MOST:
        return Near(share, bound, MOST, "more", (), chosen)
    if not finished:
        return Near(share, bound, max(tally.feasible, len(near)), "least", (), chosen)
    return Near(share, bound, tally.feasible, "exact", traits_of(problem, tally.present), chosen)


def _bound(objective: Objective, best: float, share: float) -> float:
    """The worst value that is within a share of the best."""
    return best + objective.sign * share * abs(best) + 0.0


def wrong_near(result: Result, team: Team) -> list[str]:
    """What does not hold of the designs that a result says are near its best; how many there are is not counted again."""
    near, problem = result.near, result.problem
    if near is None:
        return []
    (objective,) = problem.objectives
    best = result.front[0]
    wrong = []
    if near.bound != _bound(objective, best.objectives[objective.name], near.share):
        wrong.append("result.json: the bound of what is near the best does not follow from it")
    if near.count < 1 + len(near.listed) or len(set(near.listed) - {best.index}) < len(near.listed):
        wrong.append(
            f"result.json: {len(near.listed)} designs are listed near the best, of {near.count} in all"
        )
    for index in near.listed:
        if not 0 <= index < problem.size:
            wrong.append(f"design {index} is not in the space")
            continue
        design = problem.design_at(problem.digits_of(index))
        verdict = judge(problem, design)
        here = verdict.state is State.FEASIBLE and member(problem, team, design)
        if not here or objective.sign * verdict.objectives[0] > objective.sign * near.bound:
            wrong.append(f"design {index} is not near the best")
    return wrong


def _chosen(best: FrontPoint, near: Sequence[FrontPoint], listed: int) -> list[FrontPoint]:
    """Of designs in order of their objective, some besides the best, as different from it as can be: first each that
    changes a dimension that none before it changes; then the first that changes other dimensions together; then those left.
    """
    others = [point for point in near if point.index != best.index]
    changes = {
        point.index: frozenset(n for n, value in point.design.items() if value != best.design[n])
        for point in others
    }
    changed: set[str] = set()
    sets: set[frozenset[str]] = set()
    taken: list[int | None] = []
    for point in others:
        if changes[point.index] - changed:
            changed |= changes[point.index]
            sets.add(changes[point.index])
            taken.append(point.index)
    for point in others:
        if changes[point.index] not in sets:
            sets.add(changes[point.index])
            taken.append(point.index)
    different = set(taken)
    taken += [point.index for point in others if point.index not in different]
    chosen = set(taken[:listed])
    return [point for point in others if point.index in chosen]


def _around(problem: Problem, best: float, bound: float) -> Problem:
    """The problem whose feasible designs are those from ``best`` to ``bound``, none of them better than another.

    What is better than the best has no finite value, and fails in the problem itself.
    """
    (objective,) = problem.objectives
    graph = problem.graph.with_tables(())
    ends = [graph.number(end, graph[objective.node].type) for end in (best, bound)]
    signs = (">=", "<=") if objective.direction == "minimize" else ("<=", ">=")
    near = tuple(
        Constraint("near the best", Bound(objective.node, sign, end), objective.unit, "near the best")
        for sign, end in zip(reversed(signs), reversed(ends), strict=True)
    )
    alike = Objective("alike", graph.number(0.0), "minimize", parse_unit("1"))
    return replace(problem, graph=graph, objectives=(alike,), constraints=(*problem.constraints, *near))


class _Enough(Exception):
    """More were found than are counted, or the search is to stop."""


def _search(
    around: Problem,
    team: Team,
    solver: ExactSolver,
    *,
    seed: int,
    workers: int,
    options: Mapping[str, Any],
    stop: Callable[[], bool] | None,
    progress: Callable[[float], None] | None,
) -> tuple[Tally, bool]:
    """The tally of all that is feasible, and whether it is of all."""

    def on_tick(state: Standing, done: float) -> None:
        if progress is not None:
            progress(done)
        if search.tally.feasible > MOST or (done < 1.0 and stop is not None and stop()):
            raise _Enough

    search = ExactSearch(around, team, Tally(around, seed=seed), None, workers, on_tick, None, options)
    try:
        type(solver)().explore(search)
    except _Enough:
        return search.tally, False
    return search.tally, True
