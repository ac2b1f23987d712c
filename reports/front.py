"""The Pareto front as files: PNG, SVG and PDF for documents, and one HTML file to explore offline."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dse.errors import InputError, nearest

from .drawing import draw
from .figure import front_figure
from .page import page
from .source import Source, material

__all__ = ["FORMATS", "render"]

FORMATS = ("png", "svg", "html", "pdf")


def render(
    source: Source,
    stem: Path,
    formats: Sequence[str] | None = None,
    *,
    x: str | None = None,
    y: str | None = None,
) -> list[Path]:
    """Draw the front of a comparison, a result or a study.

    Args:
        source: what to draw.
        stem: the files' path without suffix. A suffix that is a format asks for that format alone, unless
            ``formats`` says otherwise.
        formats: some of ``png``, ``svg``, ``html``, ``pdf``; by default the first three.
        x: what the horizontal axis shows; see :func:`dse.reports.figure.front_figure`.
        y: what the vertical axis shows.

    Returns:
        The files written, in the order of ``formats``. The same source gives the same bytes.

    Raises:
        InputError: a format or an axis is unknown, or a file cannot be written.
    """
    stem = Path(stem)
    suffix = stem.suffix.lower().lstrip(".")
    if suffix in FORMATS:
        stem = stem.with_suffix("")
    wanted = formats if formats is not None else (suffix,) if suffix in FORMATS else FORMATS[:3]
    for form in wanted:
        if form not in FORMATS:
            raise InputError(
                f"a plot must be {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, but got {form!r}{nearest(form, FORMATS)}"
            )
    figure = front_figure(source, x, y)
    written = []
    for form in dict.fromkeys(wanted):
        data = page(material(source), figure).encode() if form == "html" else draw(figure, form)
        written.append(_write(stem.with_name(f"{stem.name}.{form}"), data))
    return written


def _write(path: Path, data: bytes) -> Path:
    """Write a file whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.write_bytes(data)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    return path
