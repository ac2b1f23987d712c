"""A few vectors of the front that beat most designs: a test so cheap that few designs meet the archive itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["guards_of"]

_MOST = 12  # guards
_FRONT = 512  # vectors of the front that are tried
_SAMPLE = 1024  # designs that they are tried on
_WORTH = 0.01  # share of the sample that a guard must beat


def guards_of(front: NDArray[np.float64], sample: NDArray[np.float64]) -> NDArray[np.float64]:
    """The vectors of ``front`` (n, k) that together beat most of ``sample`` (m, k), best first.

    What a guard is at most as large as in every objective, it dominates: its first objective is moved up by one step of
    the floating-point numbers, so that its equals are not beaten.
    """
    raised = front[:: -(-len(front) // _FRONT)].copy()
    raised[:, 0] = np.nextafter(raised[:, 0], np.inf)
    sample = sample[:: -(-len(sample) // _SAMPLE)]
    beats = np.ones((len(raised), len(sample)), dtype=np.bool_)
    for objective in range(front.shape[1]):
        beats &= raised[:, objective, None] <= sample[None, :, objective]
    chosen: list[int] = []
    least = max(1.0, _WORTH * len(sample))
    while len(chosen) < _MOST and beats.shape[1]:
        counts = beats.sum(axis=1)
        best = int(np.argmax(counts))
        if counts[best] < least:
            break
        chosen.append(best)
        beats = beats[:, ~beats[best]]
    return raised[chosen]
