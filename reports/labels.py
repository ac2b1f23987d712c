"""Where the labels of a panel go: beside their designs, off each other, and off what they must not hide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .axes import Axis
from .figure import FrontFigure, Line, Panel
from .style import short

__all__ = ["Box", "above", "apart", "beside", "names", "split_bound", "strokes", "text_width", "tick"]

_LABELLED = 4  # a front with more designs than this is not labelled point by point

Floats = NDArray[np.float64]

_SIDES = ((1, 0), (1, -1), (1, 1), (-1, 0), (-1, -1), (-1, 1), (0, -1), (0, 1))
_COVERED = 5.0  # points: designs closer than this cover each other
_CLOSE = 4.0  # points
_HIDES, _CROSSES, _TOUCHES = 1e6, 4.0, 1.0


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
    faint: Floats,
    lines: Sequence[Box],
) -> list[Box | None]:
    """A box for the label of each spot, in order; None where all would hide a spot or another label, or leave the panel.

    Args:
        spots: the labelled designs, which no label may hide.
        widths: of the labels.
        height: of every label.
        area: the panel, which no label may leave.
        faint: other designs, shape (n, 2), better not hidden.
        lines: thin boxes around lines, better not crossed.
    """
    markers = [Box(x - 5, y - 5, x + 5, y + 5) for x, y in spots]
    placed: list[Box | None] = []
    for at, ((x, y), width) in enumerate(zip(spots, widths, strict=True)):
        best, least = None, _HIDES
        taken = [markers[at], *(box for box in placed if box is not None)]
        # A label beside another's marker would be read as that one's.
        taken += [
            Box(m.left - _CLOSE, m.bottom - _CLOSE, m.right + _CLOSE, m.top + _CLOSE)
            for other, m in enumerate(markers)
            if other != at
        ]
        for rank, (reach, across, up) in enumerate((r, *side) for r in (8.0, 13.0, 18.0) for side in _SIDES):
            left = x + reach if across > 0 else x - reach - width if across < 0 else x - width / 2
            low = y - height / 2 + up * (reach + height / 2 if across == 0 else max(reach, height * 0.8))
            box = Box(left, low, left + width, low + height)
            inside = (faint > (box.left, box.bottom)) & (faint < (box.right, box.top))
            cost = 0.3 * rank + _TOUCHES * float(inside.all(axis=1).sum())
            cost += _HIDES * sum(box.meets(other) for other in taken)
            cost += _CROSSES * sum(box.meets(line) for line in lines)
            if (
                box.left < area.left
                or box.right > area.right
                or box.bottom < area.bottom
                or box.top > area.top
            ):
                cost += _HIDES
            if cost < least:
                best, least = box, cost
        placed.append(best)
    return placed


def apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Places as near ``wanted`` as a simple sweep gets, in its order, no two closer than ``gap``."""
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    places = list(wanted)
    for before, at in pairwise(order):
        places[at] = max(places[at], places[before] + gap)
    return places


def above(middles: Sequence[float], widths: Sequence[float]) -> list[int]:
    """In which row above a panel each text stands, so that none covers another; the lowest is 0."""
    rows = [0] * len(middles)
    ends: list[float] = []  # where the last text of each row ends
    for at in sorted(range(len(middles)), key=lambda at: middles[at]):
        half = widths[at] / 2
        row = next((n for n, end in enumerate(ends) if end < middles[at] - half), len(ends))
        ends[row : row + 1] = [middles[at] + half]
        rows[at] = row
    return rows


def strokes(corners: Sequence[Sequence[float]], reach: float) -> list[Box]:
    """Boxes that reach this far around the pieces of a staircase."""
    return [
        Box(min(x0, x1) - reach, min(y0, y1) - reach, max(x0, x1) + reach, max(y0, y1) + reach)
        for (x0, y0), (x1, y1) in pairwise(corners)
    ]


def names(
    figure: FrontFigure, panel: Panel, place: Callable[[Floats, Floats], Floats]
) -> dict[tuple[float, float], tuple[str, int, str]]:
    """What is written beside near misses and the designs of a short front: text, team and kind, by spot.

    ``place`` turns values on the axes, (n,) each, into spots (n, 2). Of designs that cover each other the first has the text.
    """
    found: dict[tuple[float, float], tuple[str, int, str]] = {}
    for series in panel.series:
        if series.kind not in ("miss", "front") or len(series.x) > _LABELLED:
            continue
        team = figure.teams[series.team]
        near = f"{short(team.name, 20)}: {team.near}"
        for x, y, (left, low) in zip(series.x, series.y, place(series.x, series.y).tolist(), strict=True):
            text = near if series.kind == "miss" else f"{_value(x, panel.x)}, {_value(y, panel.y)}"
            if not any(abs(left - x0) < _COVERED and abs(low - y0) < _COVERED for x0, y0 in found):
                found[left, low] = (text, series.team, series.kind)
    return found


def _value(value: float, axis: Axis) -> str:
    return f"{tick(float(f'{value:.4g}'))} {axis.unit}".strip()


def tick(value: float) -> str:
    """A number on an axis, without an exponent where it is short."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.6g}".replace("-", "\u2212")
    mantissa, _, exponent = f"{value:.6e}".partition("e")
    digits = mantissa.rstrip("0").rstrip(".")
    return f"{digits}e{int(exponent)}".replace("-", "\u2212")


def split_bound(line: Line) -> tuple[str, ...]:
    """``latency`` and its bound, which take less of the margin one above the other; a short text stays whole."""
    name, _, bound = line.text.partition(" ")
    return (short(name, 16), short(bound, 20)) if len(line.text) > 10 else (line.text,)
