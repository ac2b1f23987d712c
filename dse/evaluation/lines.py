"""Lines across a table over several axes, so that the table stays small however many axes there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["drawn", "fits", "lines_of", "most_lines"]

Values = NDArray[np.float64]


def fits(axes: int, cells: int) -> bool:
    """Whether a table of at most ``cells`` has room for a line, which makes two parts, on each of so many axes."""
    return 1 << axes <= cells


def most_lines(axes: int, cells: int) -> int:
    """How many lines one of ``axes`` may have that share ``cells``; at least one."""
    return max(1, int(cells ** (1.0 / axes)) - 1)


def drawn(values: Values, most: int) -> Values:
    """At most so many of some ascending values, evenly, the last among them."""
    if len(values) <= most:
        return values
    return values[np.linspace(len(values) - 1, 0, max(most, 0)).round().astype(np.intp)[::-1]]


def lines_of(columns: Sequence[Values], cells: int) -> list[Values]:
    """Lines at the distinct values of each column, or at some and the last: one more part than lines on each axis.

    The parts multiply to at most ``cells``, which must have room for a line on each axis.
    """
    lines = [np.unique(column) for column in columns]
    order = sorted(range(len(lines)), key=lambda at: len(lines[at]))
    for done, at in enumerate(order):
        lines[at] = drawn(lines[at], most_lines(len(order) - done, cells))
        cells //= len(lines[at]) + 1
    return lines
