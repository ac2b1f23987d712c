"""Dominance of many lower bounds by the front found so far."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.lines import lines_of
from dse.study.vectorset import VectorSet

__all__ = ["Guard"]

_OBJECTIVES = 12
"""Objectives up to which there is a table; it halves each of the others at least."""

_FEW = 64
"""Vectors compared one by one where there are more."""

_CELLS = 2**20
"""Cells of the table over all objectives but one."""


class Guard:
    """Says which lower-bound vectors a front rules out: some vector of it is at most as large everywhere, and not equal.

    A table over all objectives but one holds the least of that one among the vectors up to each cell, so that a question
    costs a few binary searches. Objectives of many values are cut coarsely, which leaves some dominated bounds
    standing but never drops another. With very many objectives a few vectors are compared one by one instead.

    Args:
        front: non-dominated vectors, shape (f, k), minimized.
        epsilon: also rule out what is at most better by this factor: f <= y + epsilon * abs(y).
    """

    def __init__(self, front: NDArray[np.float64], epsilon: float = 0.0) -> None:
        self.front = front
        self.epsilon = epsilon
        self.k = front.shape[1]
        if not len(front):
            return
        self._set = VectorSet(np.ascontiguousarray(front.T))
        self._few = self.k > _OBJECTIVES
        if not self._few:
            self._tabulate(front)

    def _tabulate(self, front: NDArray[np.float64]) -> None:
        """Make the table."""
        # The objective of most values is the one held in the cells, exactly.
        self._last = max(range(self.k), key=lambda i: len(np.unique(front[:, i])))
        self._axes = [i for i in range(self.k) if i != self._last]
        self._edges = lines_of([front[:, i] for i in self._axes], _CELLS)
        shape = tuple(len(edges) + 1 for edges in self._edges)
        table = np.full(shape, np.inf)
        # A vector counts from the first edge that is at least as large as it.
        cells = tuple(
            np.searchsorted(edges, front[:, i], side="left") + 1
            for i, edges in zip(self._axes, self._edges, strict=True)
        )
        inside = np.ones(len(front), dtype=np.bool_)
        for cell, size in zip(cells, shape, strict=True):
            inside &= cell < size
        if self._axes:
            np.minimum.at(table, tuple(cell[inside] for cell in cells), front[inside, self._last])
            for axis in range(len(shape)):
                np.minimum.accumulate(table, axis=axis, out=table)
        else:
            table = np.asarray(front[:, self._last].min()).reshape(())
        self._strides = [math.prod(shape[at + 1 :]) for at in range(len(shape))]
        self._flat = np.ascontiguousarray(table).reshape(-1)

    def dominates(self, lows: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of the lower bounds (k, n) are ruled out."""
        n = lows.shape[1]
        if not len(self.front) or not n:
            return np.zeros(n, dtype=np.bool_)
        shifted = lows
        if self.epsilon:
            with np.errstate(over="ignore", invalid="ignore"):  # of -inf, which stays what it is
                reach = lows + self.epsilon * np.abs(lows) * (1.0 - 1e-9)
            shifted = np.where(np.isinf(lows), lows, reach)
        beaten = self._among_few(shifted) if self._few else self._by_table(shifted)
        if self.epsilon:
            return beaten
        # What equals a vector of the front ties with it.
        doubtful = np.flatnonzero(beaten)
        beaten[doubtful[self._set.contains(lows[:, doubtful])]] = False
        return beaten

    @property
    def least(self) -> NDArray[np.float64]:
        """Lower bounds (f, k) of what each vector of the front rules out."""
        if not self.epsilon:
            return self.front
        least = self.front / np.where(self.front > 0.0, 1.0 + self.epsilon, 1.0 - self.epsilon)
        found: NDArray[np.float64] = least - (np.abs(least) * 2.0**-48 + 1e-300)
        return found

    def _by_table(self, lows: NDArray[np.float64]) -> NDArray[np.bool_]:
        place = np.zeros(lows.shape[1], dtype=np.intp)
        for i, edges, stride in zip(self._axes, self._edges, self._strides, strict=True):
            place += np.searchsorted(edges, lows[i], side="right") * stride
        beaten: NDArray[np.bool_] = self._flat.take(place) <= lows[self._last]
        return beaten

    def _among_few(self, lows: NDArray[np.float64]) -> NDArray[np.bool_]:
        beaten = np.zeros(lows.shape[1], dtype=np.bool_)
        for vector in self.front[:: -(-len(self.front) // _FEW)]:
            beaten |= (vector[:, None] <= lows).all(axis=0)
        return beaten

    def holds(self, values: NDArray[np.float64]) -> bool:
        """Whether all of these vectors (n, k) are on the front itself."""
        return not len(values) or (len(self.front) > 0 and bool(self._set.contains(values.T).all()))
