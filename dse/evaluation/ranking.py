"""Finding legal designs by their rank: the how-manieth a design is when all legal ones are listed in some order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.blocks import Blocks
from dse.evaluation.hashing import uniform
from dse.evaluation.hull import Hull
from dse.evaluation.plan import deciding_plan
from dse.problem import Problem, Team

__all__ = ["drawn_ranks", "ranked"]


def ranked(
    problem: Problem, team: Team, ranks: NDArray[np.int64], first: Sequence[int] = ()
) -> NDArray[np.int64]:
    """The positions of the legal designs with these ascending ranks, in the same order.

    Designs are listed row by row, rows being combinations of the dimensions that conditions depend on, so a rank is found
    without listing them all.

    Args:
        first: dimensions that are to be slowest in the list, in this order.
    """
    hull = Hull(problem, team)
    plan = deciding_plan(problem, team, hull, first)
    strides = _strides(hull.sizes)
    rows = Blocks(problem, team, dimensions=plan.rows)
    inner = Hull(problem, team, plan.inner)
    found = [np.empty(0, dtype=np.int64)]
    before = 0
    for number in range(len(rows)):
        if not len(ranks):
            break
        legal = rows.judge(number).positions
        own = int(np.searchsorted(ranks, before + len(legal) * inner.total))
        if own:
            row, within = np.divmod(ranks[:own] - before, inner.total)
            position = np.zeros(own, dtype=np.int64)
            for d, place in zip(plan.rows, rows.places(legal[row]), strict=True):
                position += place * strides[d]
            for d, place in zip(plan.inner, inner.places(within), strict=True):
                position += place * strides[d]
            found.append(position)
        before += len(legal) * inner.total
        ranks = ranks[own:]
    return np.concatenate(found)


def _strides(sizes: Sequence[int]) -> list[int]:
    strides = [1] * len(sizes)
    for d in range(len(sizes) - 2, -1, -1):
        strides[d] = strides[d + 1] * sizes[d + 1]
    return strides


def drawn_ranks(total: int, count: int, seed: int) -> NDArray[np.int64]:
    """``count`` of the numbers below ``total``, ascending, each set of them as likely as any other."""
    if count >= total:
        return np.arange(total, dtype=np.int64)
    if count > total // 2:
        left = np.ones(total, dtype=np.bool_)
        left[drawn_ranks(total, total - count, seed)] = False
        return np.flatnonzero(left).astype(np.int64, copy=False)
    found = np.empty(0, dtype=np.int64)
    tried = 0
    while len(found) < count:
        more = np.arange(tried, tried + (count - len(found)) * 5 // 4 + 16, dtype=np.int64)
        tried += len(more)
        found = np.concatenate([found, (uniform(more, seed) * total).astype(np.int64)])
        _, earliest = np.unique(found, return_index=True)
        found = found[np.sort(earliest)]
    return np.sort(found[:count])
