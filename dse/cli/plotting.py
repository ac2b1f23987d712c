"""The plot of the front, drawn by whatever report is installed under the name ``front``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dse.errors import InputError
from dse.study.registry import reports

__all__ = ["render_front"]


def render_front(shown: Any, stem: Path) -> list[Path]:
    """Draws a comparison or results to ``stem`` with an ending for each format; returns the files written.

    Raises:
        InputError: no report of this name is installed.
    """
    known = reports()
    if "front" not in known:
        raise InputError("no report named 'front' is installed")
    return list(known["front"](shown, stem))
