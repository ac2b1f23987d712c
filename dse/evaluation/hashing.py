"""A hash that spreads numbers evenly: the same everywhere, whatever NumPy's generators do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["uniform"]


def uniform(numbers: NDArray[np.integer[Any]], seed: int) -> NDArray[np.float64]:
    """A seeded hash of each number, uniform in [0, 1): SplitMix64 (Steele et al. 2014), its top 53 bits."""
    with np.errstate(over="ignore"):
        x = numbers.astype(np.uint64) + np.uint64(seed % 2**64) * np.uint64(0x9E3779B97F4A7C15)
        x += np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    hashed: NDArray[np.float64] = (x >> np.uint64(11)).astype(np.float64) / 2.0**53
    return hashed
