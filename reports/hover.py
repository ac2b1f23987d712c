"""What plotly shows when the pointer rests on a design: the whole design and every metric, as its kind of text."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence

from .figure import FrontFigure

__all__ = ["body", "markup", "neighbours"]

_WIDE = 64  # letters in a line
_LONG = 20  # a design with more dimensions and metrics than this is written as two paragraphs
_NAMED = 8  # how many designs on the same spot are named


def markup(text: str) -> str:
    """A text that plotly prints unchanged, although it reads some tags and entities of HTML."""
    return html.escape(text, quote=False)


def body(figure: FrontFigure, card: int) -> str:
    """The text of a card: its verdict, who has it, every dimension and every metric."""
    shown = figure.cards[card]
    design = _pairs(figure.dimensions, shown.design)
    metrics = _pairs(figure.metrics, shown.metrics)
    if len(design) + len(metrics) > _LONG:
        design, metrics = ["; ".join(design)], ["; ".join(metrics)]
    title = f"design {shown.index}, {shown.verdict}" if shown.index else shown.verdict
    teams = [f"teams: {shown.teams}"] if shown.teams else []
    return f"<b>{_lines([title])}</b><br>{_lines([*teams, *design, *metrics])}"


def neighbours(figure: FrontFigure, card: int, spot: Sequence[int]) -> str:
    """A line on the other designs that are drawn on the same spot, whose cards are ``spot``; empty without any."""
    if len(spot) < 2:
        return ""
    near = [figure.cards[at].index for at in spot[: _NAMED + 1] if at != card][:_NAMED]
    named = ", ".join([*filter(None, near), *(["\u2026"] if len(spot) - 1 > len(near) else [])])
    return f"<br><i>{_lines([f'{len(spot) - 1:,} more on this spot: {named}'.rstrip(': ')])}</i>"


def _pairs(names: Sequence[str], values: Sequence[str]) -> list[str]:
    """``latency: 8 ms``; a short one is never broken."""
    pairs = [f"{name}: {value}" for name, value in zip(names, values, strict=True)]
    return [pair.replace(" ", "\u00a0") if len(pair) < _WIDE // 2 else pair for pair in pairs]


def _lines(texts: Sequence[str]) -> str:
    """The texts, broken into lines that fit beside the pointer."""
    wrapped: list[str] = []
    for text in texts:
        fits = len(text) <= _WIDE and "\n" not in text
        wrapped += [text] if fits else textwrap.wrap(text, _WIDE, subsequent_indent="\u2003")
    return "<br>".join(markup(line) for line in wrapped)
