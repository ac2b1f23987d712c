"""Drawings with Matplotlib: the same bytes every time, without a display and without global state."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

from .source import clean
from .style import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DPI", "saved", "settings", "settle", "sheet"]

_SETTINGS: Any = {  # Matplotlib types its keys one by one
    "font.size": 9.0,
    "text.parse_math": False,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
    "path.simplify": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "dse",
    "pdf.fonttype": 42,
    "hatch.linewidth": 0.6,
}
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_SCRIPTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic",
    "WenQuanYi Micro Hei", "Noto Sans Devanagari", "Noto Sans Thai", "Segoe UI", "Arial Unicode MS",
)  # fmt: skip
DPI = 160
"""Dots of an inch in PNG."""


@contextmanager
def settings(*, fallbacks: bool) -> Iterator[None]:
    """Matplotlib as we want it, whatever the user's own settings; ``fallbacks`` adds fonts for other scripts.

    Text in an SVG stays text, for which the viewer finds a font, and its bytes must not depend on those here.
    """
    # The first use on a machine lists its fonts, and says so when that is slow; it is not our user's concern.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)

    import matplotlib as mpl
    from matplotlib.font_manager import fontManager

    # The Agg and SVG canvases are made directly: pyplot, which keeps figures and picks a window system, is not used.
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        known = set(fontManager.get_font_names()) if fallbacks else set()
        mpl.rcParams["font.family"] = ["DejaVu Sans", *(name for name in _SCRIPTS if name in known)]
        # A name in a script that the font lacks is drawn as boxes in PNG and PDF; SVG and HTML keep the text.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def saved(canvas: Figure, form: str, title: str) -> bytes:
    """A Matplotlib figure as the bytes of a file, within :func:`settings`; ``title`` is for who cannot see an SVG."""
    stream = io.BytesIO()
    canvas.savefig(stream, format=form, dpi="figure", metadata=_METADATA[form])
    data = stream.getvalue()
    if form == "svg":
        # Fonts of the same widths, for machines that lack the first.
        data = data.replace(b"'DejaVu Sans'", b"'DejaVu Sans', Verdana, sans-serif")
        data = data.replace(b"<svg ", f'<svg role="img" aria-label="{escape(clean(title))}" '.encode(), 1)
    return data


def sheet(
    title: Sequence[str], notes: Sequence[str], *, width: float, body: float, dpi: int, head: float = 0.0
) -> Figure:
    """An empty figure with the lines of a title above and those of notes below.

    Args:
        title: in bold.
        notes: small.
        width: in inches.
        body: inches of height for what is drawn, which is laid out within.
        dpi: dots of an inch.
        head: further inches that stay free below the title.
    """
    from matplotlib.figure import Figure

    above, below = 0.15 + 0.2 * len(title) + head, 0.1 + 0.15 * len(notes)
    height = above + body + below
    canvas = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    engine = canvas.get_layout_engine()
    assert engine is not None
    engine.set(w_pad=0.1, h_pad=0.06, rect=(0.0, below / height, 1.0, body / height))  # type: ignore[call-arg]
    left = 0.1 / width
    heading: dict[str, Any] = {"fontsize": 12, "fontweight": "bold", "color": INK}
    canvas.text(left, 1 - 0.1 / height, "\n".join(title), ha="left", va="top", **heading)
    canvas.text(left, 0.08 / height, "\n".join(notes), ha="left", va="bottom", fontsize=7.5, color=FAINT)
    return canvas


def settle(canvas: Figure) -> None:
    """Lay the drawings of a figure out, and leave them there.

    The solver of the layout is right to the last bit but one, which would show in an SVG: places are rounded.
    """
    canvas.draw_without_rendering()
    canvas.set_layout_engine("none")
    for area in canvas.axes:
        left, bottom, width, height = (round(float(place), 6) for place in area.get_position().bounds)
        area.set_position((left, bottom, width, height))
