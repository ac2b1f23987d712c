"""Numbers of designs: 64-bit integers, and where those are too few, texts of bytes that sort in the same order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Numbering", "Positions", "as_integer", "hashable", "packed", "unpacked"]

Positions: TypeAlias = NDArray[Any]
"""Positions (n,): int64, or byte strings of one length."""

NARROW = 2**62
"""Designs up to which positions are 64-bit integers."""

_WORD = 2**56
"""Designs that one word of 8 bytes numbers."""


class Numbering:
    """Numbers the combinations of places along dimensions of the given sizes, the first dimension slowest.

    Wide positions are words of 8 bytes, the most significant first, each the mixed-radix number of some dimensions that
    follow each other. Byte strings compare like the numbers do.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = list(sizes)
        self.wide = math.prod(self.sizes) > NARROW
        self.words: list[tuple[int, int]] = []
        first, product = 0, 1
        for at, size in enumerate(self.sizes):
            if product * size > _WORD and at > first:
                self.words.append((first, at))
                first, product = at, 1
            product *= size
        self.words.append((first, len(self.sizes)))

    def positions(self, places: Sequence[NDArray[np.int64]]) -> Positions:
        """The positions (n,) of designs given by their places, one array (n,) per dimension."""
        if not self.wide:
            return self._number(places, 0, len(self.sizes))
        words = [self._number(places, *word) for word in self.words]
        rows = np.ascontiguousarray(np.column_stack(words), dtype=">u8")
        return rows.view(f"S{rows.itemsize * rows.shape[1]}").reshape(-1)

    def _number(self, places: Sequence[NDArray[np.int64]], first: int, last: int) -> NDArray[np.int64]:
        found = np.zeros(len(places[0]) if places else 1, dtype=np.int64)
        for at in range(first, last):
            found = found * self.sizes[at] + places[at]
        return found

    def places(self, positions: Positions) -> list[NDArray[np.intp]]:
        """The places, per dimension, of the designs at ``positions`` (n,)."""
        if not self.wide:
            return self._places(positions, 0, len(self.sizes))
        if not len(positions):  # of any type
            return [np.zeros(0, dtype=np.intp)] * len(self.sizes)
        width = 8 * len(self.words)
        rows = np.ascontiguousarray(positions.astype(f"S{width}")).view(">u8").reshape(len(positions), -1)
        found: list[NDArray[np.intp]] = []
        for at, word in enumerate(self.words):
            found += self._places(rows[:, at].astype(np.int64), *word)
        return found

    def _places(self, numbers: NDArray[np.int64], first: int, last: int) -> list[NDArray[np.intp]]:
        found: list[NDArray[np.intp]] = []
        rest = numbers
        for at in range(last - 1, first - 1, -1):
            size = self.sizes[at]
            if size == 1:
                found.append(np.zeros(rest.shape, dtype=np.intp))
            elif at == first:
                found.append(rest.astype(np.intp, copy=False))
            else:
                following = rest // size
                found.append((rest - following * size).astype(np.intp, copy=False))
                rest = following
        return found[::-1]


def hashable(positions: Positions) -> NDArray[np.uint64]:
    """A 64-bit number for each position: itself, or a mix of its words."""
    if positions.dtype.kind != "S":
        return positions.astype(np.uint64)
    width = -(-positions.dtype.itemsize // 8) * 8
    rows = np.ascontiguousarray(positions.astype(f"S{width}")).view(">u8").reshape(len(positions), -1)
    mixed = np.zeros(len(positions), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for word in rows.astype(np.uint64).T:
            mixed = (mixed ^ word) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
    return mixed


def as_integer(position: Any) -> int | bytes:
    """A position as a plain value that compares like it."""
    return position if isinstance(position, bytes) else int(position)


def packed(position: int | bytes) -> int | str:
    """A position as a JSON value."""
    return position if isinstance(position, int) else position.hex()


def unpacked(value: int | str) -> int | bytes:
    """What :func:`packed` gave."""
    return value if isinstance(value, int) else bytes.fromhex(value)
