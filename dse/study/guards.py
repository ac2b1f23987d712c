"""A few vectors of the front that beat most designs: a test so cheap that few designs meet the archive itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["guards_of", "unbeaten"]

_MOST = 12  # guards
_FRONT = 256  # vectors of the front that are tried
_SAMPLE = 512  # designs that they are tried on
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
