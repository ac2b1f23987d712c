"""The figure of a front drawn with Matplotlib."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from .canvas import DPI, saved, settings, settle, sheet
from .figure import FrontFigure
from .panels import annotate, plot
from .style import INK, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]


def draw(figure: FrontFigure, form: str) -> bytes:
    """The figure as ``png``, ``svg`` or ``pdf``."""
    with settings(fallbacks=form != "svg"):
        return saved(_drawn(figure, DPI if form == "png" else 72), form, figure.title)


def _drawn(figure: FrontFigure, dpi: int) -> Figure:
    count = len(figure.panels)
    rows, columns = figure.grid
    width = 8.4 if count == 1 else 4.6 * columns
    title = textwrap.wrap(figure.title, int(width * 9), max_lines=2, placeholder=" \u2026")
    notes = textwrap.wrap(". ".join(figure.notes) + ".", int(width * 15))
    keys = -(-len(figure.teams) // (1 if len(figure.teams) <= 6 else 2))
    legend = 0.05 + 0.185 * max(keys, 1 if count > 1 else 2)
    body = 4.4 if count == 1 else 3.6 * rows
    canvas = sheet(title, notes, width=width, body=body, dpi=dpi, head=legend)
    areas = [canvas.add_subplot(rows, columns, at + 1) for at in range(count)]
    for at, (panel, area) in enumerate(zip(figure.panels, areas, strict=True)):
        plot(figure, panel, area, f"panel{at}")
    _legend(figure, canvas, 1 - (0.16 + 0.2 * len(title)) / canvas.get_figheight())
    settle(canvas)  # labels are placed by where designs came to stand
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
