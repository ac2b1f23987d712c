"""Tests by what the front is so far that are cheaper than the front itself, so that few designs meet it.

All are sound: what a test beats, a vector of the front dominates, and is no equal of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.lines import fits, lines_of

__all__ = ["Steps", "guards_of", "unbeaten"]

_MOST = 12  # guards
_FRONT = 256  # vectors of the front that are tried
_SAMPLE = 512  # designs that they are tried on
_CELLS = 2**14  # of the table of steps
_WORTH = 0.01  # share of the sample that a guard must beat


def guards_of(front: NDArray[np.float64], sample: NDArray[np.float64]) -> NDArray[np.float64]:
    """The vectors of ``front`` (n, k) that together beat most of ``sample`` (m, k), best first.

    What a guard is at most as large as in every objective, it dominates: its first objective is moved up by one step of
    the floating-point numbers, so that its equals are not beaten.
    """
    raised = front[:: max(1, -(-len(front) // _FRONT))].copy()
    raised[:, 0] = np.nextafter(raised[:, 0], np.inf)
    sample = sample[:: max(1, -(-len(sample) // _SAMPLE))]
    beats = raised[:, :1] <= sample[:, 0]
    for objective in range(1, front.shape[1]):
        beats &= raised[:, objective, None] <= sample[:, objective]
    weights = beats.astype(np.float32)
    left = np.ones(len(sample), dtype=np.float32)  # 0 for what a chosen guard beats
    chosen: list[int] = []
    least = max(1.0, _WORTH * len(sample))
    while len(chosen) < _MOST:
        counts = weights @ left
        best = int(counts.argmax())
        if counts[best] < least:
            break
        chosen.append(best)
        left[beats[best]] = 0.0
    return raised[chosen]


def unbeaten(values: NDArray[np.float64], guards: NDArray[np.float64]) -> NDArray[np.intp]:
    """The numbers of the vectors (n, k) that no guard beats."""
    columns = values.T.copy()
    left = np.ones(len(values), dtype=np.bool_)
    for guard in guards.tolist():
        beaten = columns[0] >= guard[0]
        for column, bound in zip(columns[1:], guard[1:], strict=True):
            beaten &= column >= bound
        left &= ~beaten
    return np.flatnonzero(left)


class Steps:
    """The front (n, k) as steps: over a table of all objectives but one, how low that one is at most.

    A vector of the front counts from the next lines of the table on, and a design from the lines before it. With so many
    objectives that a line on each is too much, no step beats anything.
    """

    def __init__(self, front: NDArray[np.float64]) -> None:
        columns = front.T
        distinct = [np.unique(column) for column in columns]
        self.deep = max(range(len(columns)), key=lambda at: len(distinct[at]))
        self.axes = [at for at in range(len(columns)) if at != self.deep]
        self.lines: list[NDArray[np.float64]] = []
        if not fits(len(self.axes), _CELLS):
            self.axes, self.table = [], np.full((), np.inf)
            return
        self.lines = lines_of([distinct[at] for at in self.axes], _CELLS)
        places = [
            np.searchsorted(lines, columns[at]) + 1 for lines, at in zip(self.lines, self.axes, strict=True)
        ]
        table = np.full([len(lines) + 1 for lines in self.lines], np.inf)
        if self.axes:
            np.minimum.at(table, tuple(places), columns[self.deep])
        else:
            table = columns[0].min(initial=np.inf, keepdims=True)[0, ...]
        for axis in range(table.ndim):
            np.minimum.accumulate(table, axis=axis, out=table)
        self.table = table

    def unbeaten(self, values: NDArray[np.float64]) -> NDArray[np.intp]:
        """The numbers of the vectors (n, k) that no step beats."""
        places = tuple(
            np.searchsorted(lines, values[:, at], side="right")
            for lines, at in zip(self.lines, self.axes, strict=True)
        )
        return np.flatnonzero(self.table[places] >= values[:, self.deep])
