"""Cells of tables of measurements."""

from __future__ import annotations

import math

__all__ = ["plain_number"]


def plain_number(text: str) -> str:
    """A cell, its number in one spelling (``8`` and ``8.0`` agree)."""
    try:
        number = float(text)
    except ValueError:
        return text
    return text if math.isnan(number) else f"{number:.12g}"
