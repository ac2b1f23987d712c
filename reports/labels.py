"""Where the labels of a panel go: beside their designs, off each other, and off what they must not hide."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Box", "beside", "apart", "text_width"]

_SIDES = ((1, 0), (1, -1), (1, 1), (-1, 0), (-1, -1), (-1, 1), (0, -1), (0, 1))
_HIDES, _CROSSES, _TOUCHES, _LEAVES = 50.0, 4.0, 1.0, 1000.0


class Box(NamedTuple):
    """A rectangle; every length here is in points from the lower left of the page."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: Box) -> bool:
        """Whether the two share any area."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.bottom < other.top
            and other.bottom < self.top
        )


def text_width(text: str, size: float) -> float:
    """About how wide a text is; a wide script counts double."""
    return size * sum(1.0 if ord(letter) > 0x2E80 else 0.6 for letter in text)


def beside(
    spots: Sequence[tuple[float, float]],
    widths: Sequence[float],
    *,
    height: float,
    area: Box,
    faint: NDArray[np.float64],
    lines: Sequence[Box],
) -> list[Box]:
    """A box for the label of each spot, in order.

    Args:
        spots: the labelled designs, which no label may hide.
        widths: of the labels.
        height: of every label.
        area: the panel, which no label may leave.
        faint: other designs, shape (n, 2), better not hidden.
        lines: thin boxes around lines, better not crossed.
    """
    markers = [Box(x - 5, y - 5, x + 5, y + 5) for x, y in spots]
    placed: list[Box] = []
    for (x, y), width in zip(spots, widths, strict=True):
        best, least = None, float("inf")
        for rank, (reach, across, up) in enumerate((r, *side) for r in (8.0, 15.0, 26.0) for side in _SIDES):
            left = x + reach if across > 0 else x - reach - width if across < 0 else x - width / 2
            low = y - height / 2 + up * (reach + height / 2 if across == 0 else max(reach, height * 0.8))
            box = Box(left, low, left + width, low + height)
            inside = (faint > (box.left, box.bottom)) & (faint < (box.right, box.top))
            cost = 0.3 * rank + _TOUCHES * float(inside.all(axis=1).sum())
            cost += _HIDES * sum(box.meets(other) for other in (*markers, *placed))
            cost += _CROSSES * sum(box.meets(line) for line in lines)
            if (
                box.left < area.left
                or box.right > area.right
                or box.bottom < area.bottom
                or box.top > area.top
            ):
                cost += _LEAVES
            if cost < least:
                best, least = box, cost
        assert best is not None
        placed.append(best)
    return placed


def apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Places as near ``wanted`` as a simple sweep gets, in its order, no two closer than ``gap``."""
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    places = list(wanted)
    for before, at in pairwise(order):
        places[at] = max(places[at], places[before] + gap)
    return places
