"""The evaluated designs that a result of an exact search holds: found, and evaluated again, when they are asked for."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dse.evaluation import Judge
from dse.evaluation.hull import Hull
from dse.evaluation.ranking import drawn_ranks, ranked
from dse.problem import Problem, Team
from dse.study.result import Kept
from dse.study.tally import Tally

__all__ = ["kept_of"]

_BATCH = 65_536  # designs evaluated at once


def kept_of(problem: Problem, team: Team, tally: Tally, *, complete: bool) -> Kept:
    """The designs that a tally says to keep; ``complete`` says whether it accounts for every design."""
    limit = int(tally.options["keep"])
    if tally.swept is None:
        known = np.sort(tally.kept.positions)
        find = partial(_listed, problem, team, known, tally.evaluated)
    else:
        first = () if complete else tally.swept.order
        find = partial(_ranked, problem, team, tally.evaluated, limit=limit, seed=tally.seed, first=first)
    return Kept.later(find, tally.evaluated, tally.evaluated <= limit)


def _ranked(
    problem: Problem, team: Team, evaluated: int, *, limit: int, seed: int, first: tuple[int, ...]
) -> Kept:
    """All legal designs, or a sample; of a search that was stopped, those that come first in its order."""
    ranks = drawn_ranks(evaluated, min(limit, evaluated), seed)
    return _listed(problem, team, np.sort(ranked(problem, team, ranks, first)), evaluated)


def _listed(problem: Problem, team: Team, positions: NDArray[np.int64], evaluated: int) -> Kept:
    hull = Hull(problem, team)
    n, k, c = len(positions), len(problem.objectives), len(problem.constraints)
    digits = np.zeros((n, len(problem.names)), dtype=np.intp)
    objectives, violations = np.empty((n, k)), np.empty((n, c))
    feasible, failed = np.empty(n, dtype=np.bool_), np.empty(n, dtype=np.bool_)
    signs = np.array([o.sign for o in problem.objectives])
    judge = Judge(problem)
    for start in range(0, n, _BATCH):
        own = slice(start, min(start + _BATCH, n))
        arrays = hull.digit_arrays(positions[own])
        outcomes = judge.evaluate(arrays, own.stop - own.start)
        for at, name in enumerate(hull.names):
            digits[own, at] = arrays[name]
        objectives[own] = outcomes.objectives * signs + 0.0
        violations[own] = outcomes.violations
        feasible[own], failed[own] = outcomes.feasible, outcomes.failed
    return Kept(digits, objectives, violations, feasible, failed, evaluated, n == evaluated)
