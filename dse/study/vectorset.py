"""A set of vectors that says quickly which of many others are in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["VectorSet"]

_BUCKETS = 2**16


class VectorSet:
    """Vectors as columns (k, f), without NaN and -0.0."""

    def __init__(self, columns: NDArray[np.float64]) -> None:
        hashes = _hashed(columns)
        order = np.argsort(hashes, kind="stable")
        self._columns = columns[:, order]
        self._hashes = hashes[order]
        self._buckets = np.zeros(_BUCKETS, dtype=np.bool_)
        self._buckets[_bucket(hashes)] = True

    def contains(self, columns: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of the vectors (k, n) are in the set; a mask (n,)."""
        found = np.zeros(columns.shape[1], dtype=np.bool_)
        if not self._hashes.size:
            return found
        hashes = _hashed(columns)
        left = np.flatnonzero(self._buckets[_bucket(hashes)])
        at = np.searchsorted(self._hashes, hashes[left])
        while left.size:  # of vectors with the same hash, one after another
            inside = at < self._hashes.size
            inside[inside] = self._hashes[at[inside]] == hashes[left[inside]]
            left, at = left[inside], at[inside]
            same = (self._columns[:, at] == columns[:, left]).all(axis=0)
            found[left[same]] = True
            left, at = left[~same], at[~same] + 1
        return found


def _bucket(hashes: NDArray[np.uint64]) -> NDArray[np.intp]:
    return (hashes & np.uint64(_BUCKETS - 1)).astype(np.intp)


def _hashed(columns: NDArray[np.float64]) -> NDArray[np.uint64]:
    """A hash of each vector; equal vectors have equal hashes."""
    hashes = np.zeros(columns.shape[1], dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            bits = np.ascontiguousarray(column).view(np.uint64)
            hashes = (hashes ^ bits) * np.uint64(0x9E3779B97F4A7C15)
            hashes ^= hashes >> np.uint64(29)
    return hashes
