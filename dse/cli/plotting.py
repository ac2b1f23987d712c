"""Plots, drawn by whatever reports are installed under their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dse.errors import InputError
from dse.study.registry import reports

__all__ = ["render", "render_front"]


def render_front(shown: Any, stem: Path, *, x: str | None = None, y: str | None = None) -> list[Path]:
    """Draws a comparison or a result, with ``x`` across and ``y`` up; see :func:`render`."""
    return render("front", shown, stem, x=x, y=y)


def render(report: str, shown: Any, stem: Path, **options: Any) -> list[Path]:
    """Draws something with the report of this name; returns the files written.

    An ending of letters asks for that format; a path without one gets an ending for each usual format.

    Raises:
        InputError: no report of this name is installed, the format or an option is unknown, or a file cannot be
            written.
    """
    known = reports()
    if report not in known:
        raise InputError(f"no report named {report!r} is installed")
    ending = stem.suffix[1:]
    formats = (ending.lower(),) if ending.isalpha() else None
    return list(known[report](shown, stem.with_suffix("") if formats else stem, formats, **options))
