"""The plot of the front, drawn by whatever report is installed under the name ``front``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dse.errors import InputError
from dse.study.registry import reports

__all__ = ["render_front"]


def render_front(shown: Any, stem: Path, *, x: str | None = None, y: str | None = None) -> list[Path]:
    """Draws a comparison or a result, with ``x`` across and ``y`` up; returns the files written.

    An ending of letters asks for that format; a path without one gets an ending for each usual format.

    Raises:
        InputError: no report of this name is installed, the format or an axis is unknown, or a file cannot be
            written.
    """
    known = reports()
    if "front" not in known:
        raise InputError("no report named 'front' is installed")
    ending = stem.suffix[1:]
    formats = (ending.lower(),) if ending.isalpha() else None
    return list(known["front"](shown, stem.with_suffix("") if formats else stem, formats, x=x, y=y))
