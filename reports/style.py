"""Colours, markers and lines that stay apart in print and for the colour-blind."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BACKGROUND", "FAINT", "GRID", "INK", "LINES", "SHADE", "Mark", "mark", "short"]

INK, FAINT = "#222222", "#6b6b6b"
GRID, SHADE = "#e4e4e4", "#f2f2f2"

# Okabe and Ito's palette without yellow, which vanishes on white; neighbours differ in lightness too.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")

LINES: tuple[tuple[float, tuple[float, ...]], ...] = (
    (0, (6, 2)),
    (0, (1.5, 1.5)),
    (0, (6, 2, 1.5, 2)),
    (0, (10, 3)),
    (0, (4, 1.5, 1, 1.5, 1, 1.5)),
)
"""Dash patterns, one per constraint."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How one team is drawn: a colour and a marker in Matplotlib's notation."""

    colour: str
    marker: str


BACKGROUND = Mark("#767676", ".")
"""The whole space behind the teams, when none of them is the whole space."""


def mark(number: int) -> Mark:
    """The mark of team ``number``: the first seven differ in colour and in marker, the first 56 in one of them."""
    return Mark(_COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)])


def short(text: str, most: int) -> str:
    """The text, or its beginning and an ellipsis when it has more than ``most`` characters."""
    return text if len(text) <= most else text[: most - 1] + "\u2026"
