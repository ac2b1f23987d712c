"""Roofs of a chip before any plan: what batch a matmul needs, and how fast a token can be at best (Williams 2009).

Ridge points come from :func:`dse.spaces.catalog.budget.ridge_point`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dse.errors import InputError, nearest
from dse.expressions.tracer import minimum

from .budget import FORMATS
from .catalog import Row, weight_format
from .formats import weight_bytes

__all__ = [
    "Floor",
    "compute_bound_batch",
    "critical_batch",
    "decode_floor",
    "growth",
    "matmul_intensity",
    "share_of_peak",
]


def matmul_intensity(
    batch: Any, inner: Any, outer: Any, *, weight: Any = 2, activation: Any = 2, result: Any = 2
) -> Any:
    """Operations per byte of (batch, inner) x (inner, outer), each matrix moved once: 2 b k n / (b k, k n and b n bytes).

    For square weights of width d in bf16 this is b d / (d + 2 b).

    Args:
        batch: rows, the tokens that are computed together.
        inner: the width that is summed over.
        outer: the width of the result.
        weight: bytes of a weight.
        activation: bytes of an input value.
        result: bytes of an output value.
    """
    moved = activation * batch * inner + weight * inner * outer + result * batch * outer
    return 2 * batch * inner * outer / moved


def share_of_peak(intensity: Any, ridge: Any) -> Any:
    """The share of its peak rate that a chip can reach at this many operations per byte: I / ridge, at most 1."""
    return minimum(intensity / ridge, 1)


def critical_batch(ridge: Any, weight: Any = 2) -> Any:
    """Tokens from which a matmul with far larger weights is compute-bound: ridge x (bytes of a weight) / 2.

    Scaling book, chapters 1 and 7: only the weights' traffic counts.
    """
    return ridge * weight / 2


def compute_bound_batch(
    ridge: float, inner: int, outer: int, *, weight: float = 2, activation: float = 2, result: float = 2
) -> int:
    """The smallest batch at which :func:`matmul_intensity` reaches the ridge.

    Raises:
        InputError: the matrices are so narrow that no batch does.
    """
    gained = 2 * inner * outer - ridge * (activation * inner + result * outer)
    if gained <= 0:
        most = 2 * inner * outer / (activation * inner + result * outer)
        raise InputError(
            f"a matmul {inner} x {outer} must be able to reach {ridge:.4g} operations per byte,"
            f" but has {most:.4g} at most, at any batch"
        )
    return math.ceil(ridge * weight * inner * outer / gained)


@dataclass(frozen=True, slots=True)
class Floor:
    """The least time of one token of one sequence: seconds to read every weight, and seconds of arithmetic."""

    reading: float
    arithmetic: float

    @property
    def seconds(self) -> float:
        """The longer of both, which can overlap."""
        return max(self.reading, self.arithmetic)

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second of one sequence, at most."""
        return 1 / self.seconds


def decode_floor(
    parameters: float, chip: Row, stored: str = "bf16", compute: str | None = None, *, bandwidth: float = 0
) -> Floor:
    """The floor of decoding one token: all weights are read once, with 2 operations each; no cache, no launches.

    Args:
        parameters: weights that a token uses.
        chip: a row of the hardware table.
        stored: a format of the table of formats.
        compute: the rate that is used, one of :data:`dse.spaces.catalog.budget.FORMATS`; by default the format's own.
        bandwidth: bytes per second, in place of the catalogue's.

    Raises:
        InputError: a format is unknown, or the chip has no rate for it.
    """
    row = weight_format(stored)
    rate_of = compute or str(row.compute)
    if rate_of not in FORMATS:
        raise InputError(f"unknown number format {rate_of!r}{nearest(rate_of, FORMATS)}")
    rate = getattr(chip, rate_of)
    if not rate:
        able = ", ".join(name for name in FORMATS if getattr(chip, name))
        raise InputError(f"{chip.name} has no {rate_of} rate; it has {able}")
    return Floor(weight_bytes(row, parameters) / (bandwidth or chip.bandwidth), 2 * parameters / rate)


def growth(before: Row, after: Row, column: str, other: str | None = None) -> float:
    """How many times as much the later chip has: its ``other`` column, by default the same one, over ``column``.

    Raises:
        InputError: one of the chips has no figure there.
    """
    ends = []
    for chip, name in ((before, column), (after, other or column)):
        value = dict(chip).get(name)
        if not isinstance(value, float) or not value:
            raise InputError(f"{chip.name} has no {name} to compare")
        ends.append(value)
    return ends[1] / ends[0]
