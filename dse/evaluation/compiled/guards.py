"""Which vectors the front found so far discards, decided by one comparison in the innermost loop.

The front is laid out over a grid of the values of all objectives but one. A vector's place on the grid is looked up
where those objectives are known; the grid says below which cost the last objective must be for the vector to matter.
Where a front has more values than the grid has lines, guards move to the next line above: less is discarded, never more.
With more objectives than the grid has room for, it has one place, and discards nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.compiled.helpers import BUCKETS
from dse.evaluation.lines import drawn, fits, most_lines

__all__ = ["Grid", "Lines", "last_objective"]

CELLS = 2**16
"""Most places of a grid."""

_USUAL = 512  # lines of an axis that need not be values of the front


def last_objective(levels: Sequence[int]) -> int:
    """The objective that is compared last: the one known innermost."""
    return max(range(len(levels)), key=lambda at: levels[at])


class Lines(NamedTuple):
    """The lines of an axis: NaN, then ascending values.

    ``buckets`` say how many lines are at most the lower edge of each part into which the axis is cut, from the key
    ``first`` on, each ``1 << shift`` keys wide; keys are integers in the order of the numbers.
    """

    values: NDArray[np.float64]
    buckets: NDArray[np.int32]
    first: int
    shift: int

    @classmethod
    def at(cls, values: NDArray[np.float64]) -> Lines:
        """Lines at ascending values."""
        keys = _keys(values)
        if not len(keys):
            return cls(np.array([np.nan]), np.zeros(BUCKETS + 2, dtype=np.int32), 0, 63)
        first, last = int(keys[0]), int(keys[-1])
        shift = max(0, ((last - first) // BUCKETS).bit_length())
        if last - first < 2**62:
            edges = np.minimum(first + (np.arange(BUCKETS) << shift), last)
        else:  # in Python's integers, which have no end
            edges = np.array([min(first + (part << shift), last) for part in range(BUCKETS)], dtype=np.int64)
        counts = np.searchsorted(keys, edges, side="right")
        buckets = np.concatenate([[0], counts, [len(keys)]]).astype(np.int32)
        return cls(np.concatenate([[np.nan], values]), buckets, first, shift)


def _keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Integers in the order of numbers that are not NaN."""
    bits = (values + 0.0).view(np.int64)
    keys: NDArray[np.int64] = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return keys


class Grid(NamedTuple):
    """A front over a grid of the objectives other than ``last``.

    ``lines`` per axis. Per place, in C order: ``limits``, which the last objective of a
    vector between lines must be below; ``exact``, the same for a vector exactly on its lines; ``costs`` (NaN: none), the
    last objective of the front's vector there.
    """

    lines: list[Lines]
    limits: NDArray[np.float64]
    exact: NDArray[np.float64]
    costs: NDArray[np.float64]

    @classmethod
    def of(
        cls, front: NDArray[np.float64], last: int, usual: NDArray[np.float64], cells: int = CELLS
    ) -> Grid:
        """The grid of a front of distinct vectors (n, k), all finite, none dominated.

        Args:
            usual: finite vectors (m, k) that occur, so that there are lines where vectors will be.
        """
        others = [at for at in range(front.shape[1]) if at != last]
        lines = _lines([front[:, at] for at in others], [usual[:, at] for at in others], cells)
        if not fits(len(others), cells):
            front = front[:0]  # on no line, it discards nothing
        shape = tuple(len(own.values) for own in lines) or (1,)
        places = tuple(
            np.searchsorted(own.values[1:], front[:, at]) + 1 for own, at in zip(lines, others, strict=True)
        ) or (np.zeros(len(front), dtype=np.intp),)
        on_lines = np.ones(len(front), dtype=np.bool_)
        for own, at, place in zip(lines, others, places, strict=False):
            on_lines &= own.values[place] == front[:, at]
        own_cost = front[:, last]
        costs, limits, between = np.full(shape, np.nan), np.full(shape, np.inf), np.full(shape, np.inf)
        costs[tuple(p[on_lines] for p in places)] = own_cost[on_lines]
        np.minimum.at(limits, places, own_cost)
        np.minimum.at(between, tuple(p[~on_lines] for p in places), own_cost[~on_lines])
        for axis in range(len(lines)):
            np.minimum.accumulate(limits, axis=axis, out=limits)
        # On its lines, a vector is discarded by what lies strictly before it, and by a lower cost in the same place.
        exact = np.fmin(between, np.nextafter(costs, np.inf))
        for axis in range(len(lines)):
            into, of = [slice(None)] * len(shape), [slice(None)] * len(shape)
            into[axis], of[axis] = slice(1, None), slice(None, -1)
            exact[tuple(into)] = np.minimum(exact[tuple(into)], limits[tuple(of)])
        return cls(lines, limits, exact, costs)

    def vector(self, place: int, last: int) -> list[float]:
        """The front's vector at a place."""
        places = np.unravel_index(place, self.costs.shape)
        found = [float(own.values[int(at)]) for own, at in zip(self.lines, places, strict=False)]
        found.insert(last, float(self.costs.reshape(-1)[place]))
        return found


def _lines(columns: list[NDArray[np.float64]], usual: list[NDArray[np.float64]], cells: int) -> list[Lines]:
    """The lines of each axis: all values of those that have few, evenly drawn ones of the others."""
    if not fits(len(columns), cells):
        return [Lines.at(np.empty(0)) for _ in columns]
    values = [np.unique(column) for column in columns]
    more = [np.unique(column) for column in usual]
    order = sorted(range(len(values)), key=lambda at: len(values[at]) + len(more[at]))
    for done, at in enumerate(order):
        room = most_lines(len(order) - done, cells)
        own = drawn(values[at], room)
        values[at] = np.union1d(own, drawn(more[at], min(room, _USUAL) - len(own)))
        cells //= len(values[at]) + 1
    return [Lines.at(own) for own in values]
