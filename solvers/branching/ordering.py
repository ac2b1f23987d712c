"""The order in which axes are fixed: a bad one costs a hundredfold.

Chosen greedily, axis by axis, on a sample of the boxes that are left; where the search promises to be long, improved by
moving axes about while the estimated number of boxes falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bounds import Boxes

from .expanding import OPEN, Expanded, Tree
from .guard import Guard

__all__ = ["improved_order", "sampled_order"]

_SAMPLE = 256

_IDLE = 0.9
"""From this share of boxes on whose bound an axis does not tighten, it is fixed last."""


_TIGHTER = 0.005
"""A bound that rises by less than this share counts as unchanged."""


_EFFORT = 1_000_000
"""Operations on frames at most that moves may cost, depth by depth."""

_BETTER = 0.97
"""A move must lower the estimate by more than its sample makes it vary."""


_TRIED = 32
"""Axes up to which all that wait are tried at each depth."""


def sampled_order(
    boxes: Boxes, guard: Guard, rng: np.random.Generator, poll: Callable[[], None]
) -> list[int]:
    """The live axes; at each depth the one whose children are discarded most, for its size.

    What is minimized is log(open children / boxes) / log(children per box): the depth at which nothing would be left.
    An axis that no rule depends on and one of whose children mostly has its parent's bound, because one value is best
    whatever the others are, comes last: branching on it early tightens nothing and multiplies what is nearly as good.
    Where there are very many axes, only those that were best before are tried again, and several are taken at once.
    """
    grid = boxes.grid
    live = set(boxes.live)
    waiting = {d: [axis for axis in axes if axis in live] for d, axes in enumerate(grid.own)}
    order: list[int] = []
    scores: dict[int, tuple[bool, float, int]] = {}
    rows = np.zeros((0, 1), dtype=np.uint8)
    most = _TRIED if len(live) <= 2 * _TRIED else _TRIED // 3
    while candidates := [axes[0] for axes in waiting.values() if axes]:
        if rows.shape[1] == 0:  # everything is discarded already: the rest matters little
            return order + [axis for axes in waiting.values() for axis in axes]
        tree = Tree(boxes, order)
        lows = tree.lows(rows)
        candidates.sort(key=lambda axis: scores.get(axis, (False, -math.inf, axis)))
        fresh = sum(axis not in scores for axis in candidates)
        for axis in candidates[: max(most, fresh)]:
            poll()
            scores[axis] = _try(tree, rows, lows, axis, guard)
        for axis in sorted(candidates, key=scores.__getitem__)[: max(1, len(candidates) // most)]:
            rows = Tree(boxes, order).expand(rows, guard, child=axis).rows
            order.append(axis)
            waiting[grid.axes[axis].dimension].pop(0)
            if rows.shape[1] > _SAMPLE:
                rows = rows[:, np.sort(rng.choice(rows.shape[1], _SAMPLE, replace=False))]
    return order


def _try(
    tree: Tree, rows: NDArray[np.uint8], lows: NDArray[np.float64], axis: int, guard: Guard
) -> tuple[bool, float, int]:
    """Whether an axis had better come late, and how little is left after fixing it: the smaller the better."""
    found = tree.expand(rows, guard, child=axis)
    size = tree.grid.axes[axis].size
    share = found.rows.shape[1] / rows.shape[1]
    score = math.log(share) / math.log(max(size, 2)) if share else -math.inf
    late = axis not in tree.boxes.ruled and _unchanged(found, lows) >= _IDLE
    return late, score, axis


def _unchanged(found: Expanded, lows: NDArray[np.float64]) -> float:
    """The share of the boxes that stay open one of whose children has the same bound."""
    assert found.lows is not None
    parents = np.flatnonzero(found.codes.reshape(-1) == OPEN) // found.codes.shape[1]
    if not parents.size:
        return 0.0
    own = lows[:, parents]
    with np.errstate(over="ignore", invalid="ignore"):  # of infinite bounds, and huge ones
        near = (found.lows <= own + _TIGHTER * np.abs(own)) | (found.lows == own)
    same = parents[near.all(axis=0)]
    return len(np.unique(same)) / len(np.unique(parents))


# -- improving ------------------------------------------------------------------------------------------------


class _Dive(NamedTuple):
    """A sample of the open boxes at some depth, how many each stands for, and the boxes looked at on the way."""

    rows: NDArray[np.uint8]
    weight: float
    boxes: float


def improved_order(
    boxes: Boxes,
    order: list[int],
    guard: Guard,
    rng: np.random.Generator,
    *,
    moves: int,
    poll: Callable[[], None],
) -> tuple[list[int], float]:
    """An order estimated to need fewer boxes, and that estimate.

    Axes are moved at random, ``moves`` times; a move is kept when a dive through a sample of the boxes estimates fewer of
    them. Estimates are worth little while the guard is far from the front.
    """
    dives = _dive(boxes, order, guard, [_Dive(np.zeros((0, 1), dtype=np.uint8), 1.0, 0.0)])
    grid = boxes.grid
    moves = min(moves, _EFFORT // (len(order) * boxes.program.size)) if len(order) > 2 else 0
    for _ in range(moves):
        poll()
        here, there = rng.choice(len(order), 2, replace=False).tolist()
        moved = list(order)
        axis = moved.pop(here)
        moved.insert(there, axis)
        own = [a for a in moved if grid.axes[a].dimension == grid.axes[axis].dimension]
        if own != sorted(own):
            continue
        found = _dive(boxes, moved, guard, dives[: min(here, there) + 1])
        if found[-1].boxes < _BETTER * dives[-1].boxes:
            order, dives = moved, found
    return order, dives[-1].boxes


def _dive(boxes: Boxes, order: list[int], guard: Guard, known: list[_Dive]) -> list[_Dive]:
    """The samples at each depth; ``known`` are the first of them."""
    tree, dives = Tree(boxes, order), list(known)
    for depth in range(len(known) - 1, len(order)):
        rows, weight, looked = dives[-1]
        found = tree.expand(rows, guard) if rows.shape[1] else None
        if found is None or not found.rows.shape[1]:
            looked += 0.0 if found is None else weight * found.codes.size
            return [*dives, *[_Dive(rows[:, :0], weight, looked)] * (len(order) - depth)]
        looked += weight * found.codes.size
        left = found.rows.shape[1]
        rows = found.rows
        if left > 2 * _SAMPLE:
            # Evenly spaced, since boxes that are alike stand together; the same choice at each depth, whatever the order.
            chosen = ((np.arange(2 * _SAMPLE) + 0.5) * (left / (2 * _SAMPLE))).astype(np.intp)
            rows, weight = rows[:, chosen], weight * left / (2 * _SAMPLE)
        dives.append(_Dive(rows, weight, looked))
    return dives
