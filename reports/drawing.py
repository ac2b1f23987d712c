"""A figure drawn with Matplotlib: the same bytes every time, without a display and without global state."""

from __future__ import annotations

import io
import logging
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .figure import FrontFigure
from .panels import annotate, plot
from .style import FAINT, INK, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "saved", "settings"]

_SETTINGS: Any = {  # Matplotlib types its keys one by one
    "font.size": 9.0,
    "text.parse_math": False,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
    "path.simplify": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "dse",
    "pdf.fonttype": 42,
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
_DPI = 160


def draw(figure: FrontFigure, form: str) -> bytes:
    """The figure as ``png``, ``svg`` or ``pdf``."""
    with settings(fallbacks=form != "svg"):
        return saved(_drawn(figure, _DPI if form == "png" else 72), form)


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


def saved(canvas: Figure, form: str) -> bytes:
    """A Matplotlib figure as the bytes of a file, within :func:`settings`."""
    stream = io.BytesIO()
    canvas.savefig(stream, format=form, dpi="figure", metadata=_METADATA[form])
    data = stream.getvalue()
    if form == "svg":
        # Fonts of the same widths, for machines that lack the first.
        data = data.replace(b"'DejaVu Sans'", b"'DejaVu Sans', Verdana, sans-serif")
    return data


def _drawn(figure: FrontFigure, dpi: int) -> Figure:
    from matplotlib.figure import Figure

    count = len(figure.panels)
    rows, columns = figure.grid
    width = 8.4 if count == 1 else 4.6 * columns
    title = textwrap.wrap(figure.title, int(width * 9), max_lines=2, placeholder=" \u2026")
    notes = textwrap.wrap(". ".join(figure.notes) + ".", int(width * 15))
    keys = -(-len(figure.teams) // (1 if len(figure.teams) <= 6 else 2))
    head = 0.12 + 0.2 * len(title) + 0.08 + 0.185 * max(keys, 1 if count > 1 else 2)
    foot = 0.1 + 0.15 * len(notes)
    height = head + foot + (4.4 if count == 1 else 3.6 * rows)
    canvas = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    engine = canvas.get_layout_engine()
    assert engine is not None
    engine.set(w_pad=0.1, h_pad=0.06, rect=(0.0, foot / height, 1.0, 1.0 - (foot + head) / height))  # type: ignore[call-arg]
    areas = [canvas.add_subplot(rows, columns, at + 1) for at in range(count)]
    for at, (panel, area) in enumerate(zip(figure.panels, areas, strict=True)):
        plot(figure, panel, area, f"panel{at}")
    left = 0.1 / width
    heading: dict[str, Any] = {"fontsize": 12, "fontweight": "bold", "color": INK}
    canvas.text(left, 1 - 0.1 / height, "\n".join(title), ha="left", va="top", **heading)
    canvas.text(left, 0.08 / height, "\n".join(notes), ha="left", va="bottom", fontsize=7.5, color=FAINT)
    _legend(figure, canvas, 1 - (0.16 + 0.2 * len(title)) / height)
    canvas.draw_without_rendering()  # lays the panels out: labels are placed by where designs came to stand
    canvas.set_layout_engine("none")  # and there they stay
    for at, (panel, area) in enumerate(zip(figure.panels, areas, strict=True)):
        annotate(figure, panel, area, f"panel{at}")
    return canvas


def _legend(figure: FrontFigure, canvas: Figure, top: float) -> None:
    """The teams with how they fared, and beside them what filled and hollow markers mean."""
    from matplotlib.lines import Line2D

    teams = [
        Line2D([], [], linestyle="none", marker=t.mark.marker, color=t.mark.colour, markersize=7)
        for t in figure.teams
    ]
    # A leading space, because Matplotlib leaves out names that begin with an underscore.
    names = [f" {short(team.name, 24)}: {short(team.summary, 60)}" for team in figure.teams]
    drawn = {series.kind for panel in figure.panels for series in panel.series}
    look: dict[str, Any]
    kinds, meanings = [], []
    for kind, (meaning, look) in _SAMPLES.items():
        if kind in drawn:
            kinds.append(Line2D([], [], linestyle="none", marker="o", color="#8a8a8a", **look))
            meanings.append(f" {figure.front if kind == 'front' else meaning}")
    width = canvas.get_figwidth()
    common: dict[str, Any] = {
        "frameon": False, "fontsize": 8, "labelcolor": INK, "handletextpad": 0.1, "borderaxespad": 0.0,
        "borderpad": 0.0, "labelspacing": 0.45,
    }  # fmt: skip
    canvas.legend(
        teams,
        names,
        loc="upper left",
        bbox_to_anchor=(0.1 / width, top),
        ncols=1 if len(teams) <= 6 else 2,
        **common,
    )
    if kinds:
        canvas.legend(
            kinds, meanings, loc="upper right", bbox_to_anchor=(1 - 0.15 / width, top),
            ncols=2 if len(figure.panels) == 1 else 4, columnspacing=1.2, **common,
        )  # fmt: skip


_SAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "front": (
        "Pareto front",
        {"markersize": 8, "markeredgecolor": INK, "markeredgewidth": 0.9, "markerfacecolor": "#bdbdbd"},
    ),
    "feasible": ("feasible", {"markersize": 5.5}),
    "miss": ("nearest miss", {"markersize": 7.5, "markerfacecolor": "white", "markeredgewidth": 1.7}),
    "infeasible": ("infeasible", {"markersize": 4.2, "markerfacecolor": "none", "markeredgewidth": 0.8}),
}
