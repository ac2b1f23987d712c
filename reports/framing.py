"""A drawing as files: pictures, and a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from .canvas import DPI, saved, settings, settle
from .source import clean
from .style import INK
from .writing import wanted_formats, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "write_drawing"]

FORMATS = ("png", "svg", "html", "pdf")


def write_drawing(
    drawn: Callable[[int], Figure], title: str, stem: Path, formats: Sequence[str] | None, below: str = ""
) -> list[Path]:
    """Write a drawing.

    Args:
        drawn: makes it with so many dots of an inch.
        title: of the page, and of the picture for who cannot see it.
        stem: the files' path without suffix. A suffix that is a format asks for that format alone, unless
            ``formats`` says otherwise.
        formats: some of :data:`FORMATS`; by default the first three.
        below: HTML under the drawing in the page.

    Returns:
        The files written. The same drawing gives the same bytes.

    Raises:
        InputError: a format is unknown, or a file cannot be written.
    """

    def draw(form: str) -> bytes:
        with settings(fallbacks=form != "svg"):
            canvas = drawn(DPI if form == "png" else 72)
            settle(canvas)
            return saved(canvas, form, title)

    stem, wanted = wanted_formats(stem, formats, FORMATS)
    written = []
    for form in wanted:
        data = _page(title, draw("svg"), below).encode() if form == "html" else draw(form)
        written.append(write(stem.with_name(f"{stem.name}.{form}"), data))
    return written


def _page(title: str, svg: bytes, below: str) -> str:
    _, start, drawing = svg.decode().partition("<svg")
    told = escape(clean(title))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{told}</title>\n'
        f"<style>{_CSS}</style>\n</head>\n<body>\n{start}{drawing}\n{below}</body>\n</html>\n"
    )


_CSS = (
    f"body{{font:14px/1.5 system-ui,sans-serif;color:{INK};max-width:60rem;margin:2rem auto;padding:0 1rem}}"
    "svg{width:100%;height:auto}table{border-collapse:collapse;font-size:12px}"
    "th,td{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #e4e4e4}"
)
