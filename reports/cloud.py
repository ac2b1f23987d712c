"""The evaluated designs of one result as points between two axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dse.problem import Problem
from dse.study.result import FrontPoint, Kept, Miss, Result

from .axes import drawable
from .quantities import Quantity, constant

__all__ = ["Cloud", "cloud", "Owners", "owners", "spots", "total"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_NEAR = 0.1  # the share of infeasible designs that count as near misses
_FEWEST_NEAR = 30


@dataclass(frozen=True, slots=True)
class Cloud:
    """Points in the axes' units. ``x``, ``y``, ``feasible``, ``failed``, ``near`` are per kept design, shape (n,).

    ``near`` marks the infeasible designs that miss by least. ``front`` and ``miss`` are the result's front and,
    where that is empty, its nearest miss, with their places in ``front_x``, ``front_y`` and ``miss_at``.
    """

    x: Floats
    y: Floats
    feasible: Mask
    failed: Mask
    near: Mask
    front: tuple[FrontPoint, ...]
    front_x: Floats
    front_y: Floats
    miss: Miss | None
    miss_at: tuple[float, float]

    @property
    def finite(self) -> Mask:
        """Which designs have a place at all."""
        return drawable(self.x) & drawable(self.y) & ~self.failed

    def core(self, values: Floats, among: Mask | None = None) -> Floats:
        """Of the values on one axis, those that should be seen: of feasible designs and near misses ``among`` some."""
        wanted = self.finite & (self.feasible | self.near)
        return values[wanted if among is None else wanted & among]

    @property
    def marked(self) -> tuple[Floats, Floats]:
        """What must be seen on the axes: the front and the nearest miss."""
        return np.append(self.front_x, self.miss_at[0]), np.append(self.front_y, self.miss_at[1])


def cloud(problem: Problem, result: Result, one: Quantity, other: Quantity) -> Cloud:
    """The points of ``result`` with ``one`` across and ``other`` up."""
    kept = result.kept
    miss = None if result.front else result.nearest_miss
    front_x, front_y = (
        np.array([_place(problem, q, point, kept) for point in result.front], dtype=np.float64)
        for q in (one, other)
    )
    at = (
        (_place(problem, one, miss, kept), _place(problem, other, miss, kept))
        if miss
        else (math.nan, math.nan)
    )
    if kept is None:
        none, no = np.empty(0), np.empty(0, dtype=np.bool_)
        return Cloud(none, none, no, no, no, result.front, front_x, front_y, miss, at)
    x, y = one.of_kept(problem, kept), other.of_kept(problem, kept)
    near = _near(problem, kept)
    return Cloud(x, y, kept.feasible, kept.failed, near, result.front, front_x, front_y, miss, at)


def _place(problem: Problem, shown: Quantity, point: FrontPoint | Miss, kept: Kept | None) -> float:
    """Where a design stands on an axis; without an index, where one with its objectives stands among the kept."""
    value = shown.of_point(problem, point)
    if shown.kind != "index" or not math.isnan(value) or kept is None:
        return value
    objectives = [point.metrics.get(objective.name) for objective in problem.objectives]
    if isinstance(point, FrontPoint):
        objectives = [point.objectives[objective.name] for objective in problem.objectives]
    rows = np.flatnonzero((kept.objectives == np.array(objectives, dtype=np.float64)).all(axis=1))
    return float(rows[0]) if rows.size else math.nan


def _near(problem: Problem, kept: Kept) -> Mask:
    """The infeasible designs with the smallest violations, each measured against its bound."""
    nearness = np.zeros(len(kept.feasible))
    for at, constraint in enumerate(problem.constraints):
        violation = kept.violations[:, at]
        bound = constant(problem, constraint.bound.rhs)
        finite = violation[np.isfinite(violation)]
        scale = abs(bound) if bound else float(finite.max(initial=0.0))
        nearness += violation / (scale or 1.0)
    candidates = (
        ~kept.feasible & ~kept.failed & np.isfinite(nearness) & np.isfinite(kept.objectives).all(axis=1)
    )
    count = max(_FEWEST_NEAR, math.ceil(_NEAR * candidates.sum()))
    if candidates.sum() <= count:
        return np.asarray(candidates)
    limit = np.partition(nearness[candidates], count - 1)[count - 1]
    return np.asarray(candidates & (nearness <= limit))


@dataclass(frozen=True, slots=True)
class Owners:
    """Which results kept which designs. ``ids`` (n,) number the designs of each result, the same in all.

    ``mine`` (n,) marks, per result, the designs that are drawn and counted there: each once, for the smallest
    team that has it. ``held`` (designs, results) is who has what; empty when samples leave that open.
    """

    ids: tuple[NDArray[np.intp], ...]
    mine: tuple[Mask, ...]
    held: Mask

    def of(self, result: int, rows: NDArray[np.intp]) -> list[tuple[int, ...]]:
        """The results that have these designs of ``result``; empty where that is not known."""
        if not self.held.size:
            return [()] * len(rows)
        return [tuple(np.flatnonzero(who).tolist()) for who in self.held[self.ids[result][rows]]]


def owners(problem: Problem, results: Sequence[Result]) -> Owners:
    """Who has which of the kept designs."""
    sizes = [len(r.kept.feasible) if r.kept else 0 for r in results]
    cuts = np.cumsum(sizes)[:-1]
    if problem.continuous:
        ids = np.split(np.arange(sum(sizes)), cuts)
        return Owners(
            tuple(ids), tuple(np.ones(size, dtype=np.bool_) for size in sizes), np.empty((0, 0), np.bool_)
        )
    digits = np.concatenate(
        [r.kept.digits for r in results if r.kept] or [np.empty((0, len(problem.names)), np.intp)]
    )
    if problem.size < 2**63:
        keys = np.zeros(len(digits), dtype=np.int64)
        for at, size in enumerate(problem.sizes):
            keys = keys * size + digits[:, at]
        distinct, inverse = np.unique(keys, return_inverse=True)
    else:
        distinct, inverse = np.unique(digits, axis=0, return_inverse=True)
    ids = np.split(inverse.reshape(-1), cuts)
    held = np.zeros((len(distinct), len(results)), dtype=np.bool_)
    for at, mine in enumerate(ids):
        held[mine, at] = True
    smallest = sorted(range(len(results)), key=lambda at: (sizes[at], at))
    owner = np.array(smallest)[np.argmax(held[:, smallest], axis=1)]
    known = all(r.kept is not None and r.kept.complete for r in results)
    masks = tuple(owner[mine] == at for at, mine in enumerate(ids))
    return Owners(tuple(ids), masks, held if known else np.empty((0, 0), np.bool_))


def spots(x: Floats, y: Floats, limit: int) -> NDArray[np.intp]:
    """Which of the points, placed in the unit square, to draw: all, or the first in each cell of a grid.

    The grid is the finest that leaves at most ``limit`` points, so a lone point far from the others is always
    drawn.
    """
    if x.size <= limit:
        return np.arange(x.size)
    across = 512
    while True:
        cells = np.floor(x * across).astype(np.int64) * (across + 1) + np.floor(y * across).astype(np.int64)
        chosen = np.unique(cells, return_index=True)[1]
        if chosen.size <= limit or across <= 8:
            return np.sort(chosen)
        across = across * 4 // 5


def total(masks: Iterable[Mask]) -> int:
    """How many are true, over all masks."""
    return sum(int(mask.sum()) for mask in masks)
