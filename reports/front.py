"""The Pareto front as files: PNG, SVG and PDF for documents, and one HTML file to explore offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .drawing import draw
from .figure import front_figure
from .page import page
from .source import Source, material
from .writing import wanted_formats, write

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
    stem, wanted = wanted_formats(stem, formats, FORMATS)
    figure = front_figure(source, x, y)
    written = []
    for form in wanted:
        data = page(material(source), figure).encode() if form == "html" else draw(figure, form)
        written.append(write(stem.with_name(f"{stem.name}.{form}"), data))
    return written
