"""The figure of a page, drawn by plotly: one element with everything in it, the same bytes every time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .axes import Axis, view
from .figure import FrontFigure, Line, Panel, Series
from .hover import body, markup, neighbours
from .lettering import bound_text, labels, margin, shifts
from .style import BACKGROUND, FAINT, GRID, INK, LINES, SHADE, short

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["element", "drawn"]

ID = "plot"
"""The id of the element that plotly draws into."""

# Plotly's names of Matplotlib's markers.
_SYMBOLS = {
    "o": "circle", ".": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "v": "triangle-down",
    "P": "cross", "X": "x", "p": "pentagon",
}  # fmt: skip
# From back to front.
_DEPTHS = {"bound": 0, "infeasible": 1, "stairs": 2, "feasible": 3, "miss": 4, "front": 5}
_MEANINGS = {"front": "", "feasible": "feasible", "miss": "nearest miss", "infeasible": "infeasible"}
_GREY = "#8a8a8a"
_HALO = ", ".join(["0 0 3px white"] * 4)
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
_ROW = 21  # pixels: a row of the legend
_WIDE = 1040  # pixels: the page at its widest, by which labels are placed

_CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "showSendToCloud": False,  # a button that uploads the figure, there by default
    "plotlyServerURL": "",
    "responsive": True,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
    "toImageButtonOptions": {"format": "png", "filename": "front", "scale": 2},
}


def element(figure: FrontFigure) -> str:
    """The figure and plotly's own code as one element, which asks nothing of the network."""
    from plotly.io import to_html

    beyond = any(panel.beyond for panel in figure.panels)
    return str(
        to_html(
            drawn(figure),
            config=_CONFIG | {"doubleClick": "reset+autosize" if beyond else "reset"},
            include_plotlyjs=True,
            include_mathjax=False,
            full_html=False,
            validate=False,  # the graph objects were, when they were made
            div_id=ID,
        )
    )


def drawn(figure: FrontFigure) -> Figure:
    """The figure as graph objects."""
    from plotly import graph_objects as go
    from plotly.subplots import make_subplots

    rows, columns = figure.grid
    place = _Frame(figure, rows, columns)
    canvas = make_subplots(rows, columns, horizontal_spacing=place.gap_x, vertical_spacing=place.gap_y)
    canvas.update_layout(
        template=go.layout.Template(),
        height=place.height,
        margin={"l": place.left, "r": place.right, "t": place.top, "b": place.bottom, "pad": 0},
        font={"family": _FONT, "size": 12, "color": INK},
        paper_bgcolor="white",
        plot_bgcolor="white",
        hovermode="closest",
        hoverdistance=12,
        dragmode="zoom",
        hoverlabel={"bgcolor": "white", "align": "left", "font": {"size": 12, "color": INK, "family": _FONT}},
        modebar={"orientation": "h", "bgcolor": "rgba(255,255,255,0.8)", "color": _GREY, "activecolor": INK},
        legend=_legend(0.0, place) | {"groupclick": "togglegroup", "itemdoubleclick": "toggleothers"},
        legend2=_legend(place.keys * _ROW, place) | {"itemclick": False, "itemdoubleclick": False},
    )
    canvas.add_traces([_key(figure, team) for team in range(len(figure.teams))])
    canvas.add_traces([*_kinds(figure)])
    bodies = [body(figure, card) for card in range(len(figure.cards))]
    for at, panel in enumerate(figure.panels):
        row, column = divmod(at, columns)
        _panel(canvas, figure, panel, place, bodies, row=row + 1, column=column + 1)
    return canvas


class _Frame:
    """Where things are, in pixels of a page at its widest."""

    def __init__(self, figure: FrontFigure, rows: int, columns: int) -> None:
        self.columns = 1 if len(figure.teams) <= 6 else 2
        self.keys = -(-len(figure.teams) // self.columns)
        bounds = [line for panel in figure.panels for line in panel.lines]
        beside = max((margin(line) for line in bounds if line.axis == "y"), default=0)
        self.above = 12 + 15 * max(
            (sum(line.axis == "x" for line in panel.lines) for panel in figure.panels), default=0
        )
        self.left, self.right, self.bottom = 72, max(16, beside), 58
        self.top = _ROW * (self.keys + 1) + 14 + self.above
        self.tall = 470 if len(figure.panels) == 1 else 300
        inner = _WIDE - self.left - self.right
        between_x, between_y = (
            (72 + max(14, beside) if columns > 1 else 0),
            (58 + self.above if rows > 1 else 0),
        )
        self.gap_x = between_x / inner
        total = rows * self.tall + (rows - 1) * between_y
        self.gap_y = between_y / total
        self.wide = (inner - (columns - 1) * between_x) / columns
        self.height = total + self.top + self.bottom


def _legend(down: float, place: _Frame) -> dict[str, Any]:
    return {
        "orientation": "h" if down or place.columns > 1 else "v",
        "x": 0.0, "xref": "paper", "xanchor": "left",
        "y": 1.0 - (4 + down) / place.height, "yref": "container", "yanchor": "top",
        "bgcolor": "rgba(0,0,0,0)", "font": {"size": 12, "color": INK}, "tracegroupgap": 0, "itemsizing": "trace",
    } | ({"entrywidthmode": "fraction", "entrywidth": 0.48} if place.columns > 1 and not down else {})  # fmt: skip


def _key(figure: FrontFigure, team: int) -> dict[str, Any]:
    """A trace without points, for the team's place in the legend."""
    mark, who = figure.teams[team].mark, figure.teams[team]
    size = 5 if mark.marker == "." else 10
    return {
        "type": "scatter", "mode": "markers", "x": [None], "y": [None], "legendgroup": f"team{team}",
        "name": markup(f"{short(who.name, 24)}: {short(who.summary, 60)}"), "hoverinfo": "skip",
        "marker": {"symbol": _SYMBOLS[mark.marker], "color": mark.colour, "size": size},
    }  # fmt: skip


def _kinds(figure: FrontFigure) -> Iterator[dict[str, Any]]:
    """Grey samples of what filled and hollow markers mean."""
    there = {series.kind for panel in figure.panels for series in (*panel.series, *panel.beyond)}
    for kind, meaning in _MEANINGS.items():
        if kind in there:
            yield {
                "type": "scatter", "mode": "markers", "x": [None], "y": [None], "legend": "legend2",
                "name": meaning or figure.front, "hoverinfo": "skip",
                "marker": _look(kind, "circle", "#bdbdbd" if kind == "front" else _GREY, 0),
            }  # fmt: skip


def _look(kind: str, symbol: str, colour: str, many: int) -> dict[str, Any]:
    """As in the drawn files: infeasible designs hollow and dimmed, feasible ones filled, the front large."""
    match kind:
        case "infeasible":
            size = 6.5 if many <= 600 else 5
            return {
                "symbol": f"{symbol}-open",
                "color": colour,
                "size": size,
                "opacity": 0.5,
                "line": {"width": 1},
            }
        case "feasible":
            size, edge = (8.5, 0.7) if many <= 300 else (6, 0.7) if many <= 1000 else (5, 0.4)
            return {
                "symbol": symbol,
                "color": colour,
                "size": size,
                "line": {"color": "white", "width": edge},
            }
        case "miss":
            return {"symbol": symbol, "color": "white", "size": 12, "line": {"color": colour, "width": 2.4}}
        case _:
            size, edge = (13, 1.3) if many <= 40 else (9, 1.0) if many <= 120 else (7, 0.7)
            return {"symbol": symbol, "color": colour, "size": size, "line": {"color": INK, "width": edge}}


def _panel(
    canvas: Figure,
    figure: FrontFigure,
    panel: Panel,
    place: _Frame,
    bodies: list[str],
    *,
    row: int,
    column: int,
) -> None:
    """One panel with its axes, constraints, designs and fronts; ``bodies`` are the texts of all cards."""
    x_ends, y_ends = _ends(panel, "x"), _ends(panel, "y")
    wide = place.wide > 500
    across, up = (60, 8) if wide else (36, 3 if panel.x.log else 5), (50 if wide else 36, 8)
    canvas.update_xaxes(_axis(panel.x, x_ends, *across), row=row, col=column)
    canvas.update_yaxes(_axis(panel.y, y_ends, *up), row=row, col=column)
    sub = canvas.get_subplot(row, column)
    ids = {
        "x": str(sub.xaxis.plotly_name).replace("axis", ""),
        "y": str(sub.yaxis.plotly_name).replace("axis", ""),
    }
    for line in panel.lines:
        if line.allowed != "on":
            canvas.add_shape(**_broken(line, ids, x_ends if line.axis == "x" else y_ends))
    for line, shift in zip(panel.lines, shifts(panel, place.wide, place.tall), strict=True):
        canvas.add_annotation(**bound_text(line, panel, ids, shift))
    sizes: dict[int, int] = defaultdict(int)
    for series in panel.series:
        sizes[series.team] += len(series.x)
    for team, who in enumerate(figure.teams):
        if who.mark == BACKGROUND:
            sizes[team] = sum(sizes.values())
    texts = labels(figure, panel, place.wide, place.tall)
    spots = _spots(panel)
    axes = {"type": "scatter", "xaxis": ids["x"], "yaxis": ids["y"], "showlegend": False}
    traces: list[tuple[tuple[int, int, int], dict[str, Any]]] = []
    traces += [((_DEPTHS["bound"], 0, 0), axes | _bound(line, x_ends, y_ends)) for line in panel.lines]
    for series in _joined(panel):
        mark = figure.teams[series.team].mark
        marker = _look(series.kind, _SYMBOLS[mark.marker], mark.colour, len(series.x))
        if mark.marker == ".":
            marker["size"] *= 0.6
        trace = axes | {
            "mode": "markers", "x": series.x.tolist(), "y": series.y.tolist(), "marker": marker,
            "name": markup(figure.teams[series.team].name), "legendgroup": f"team{series.team}",
            "hoverinfo": "text", "hovertext": [bodies[card] + neighbours(figure, card, spots[x, y]) for x, y, card in _points(series)],
            "hoverlabel": {"bordercolor": mark.colour},
        }  # fmt: skip
        named = texts.get((series.team, series.kind))
        if named:
            trace |= {
                "mode": "markers+text", "text": [text for text, _ in named], "textposition": [side for _, side in named],
                "textfont": {"size": 11, "color": INK, "shadow": _HALO},
            }  # fmt: skip
        traces.append(((_DEPTHS[series.kind], -sizes[series.team], series.team), trace))
    for team, x, y in panel.stairs:
        trace = axes | {
            "mode": "lines", "x": _stretched(x, panel.x, x_ends), "y": _stretched(y, panel.y, y_ends),
            "line": {"color": figure.teams[team].mark.colour, "width": 1.8},
            "hoverinfo": "skip", "legendgroup": f"team{team}",
        }  # fmt: skip
        traces.append(((_DEPTHS["stairs"], -sizes[team], team), trace))
    canvas.add_traces([trace for _, trace in sorted(traces, key=lambda pair: pair[0])])


def _points(series: Series) -> Iterator[tuple[float, float, int]]:
    return zip(series.x.tolist(), series.y.tolist(), series.cards, strict=True)


def _spots(panel: Panel) -> dict[tuple[float, float], list[int]]:
    """The cards on each spot, each once."""
    found: dict[tuple[float, float], dict[int, None]] = defaultdict(dict)
    for series in (*panel.series, *panel.beyond):
        for x, y, card in _points(series):
            found[x, y][card] = None
    return {spot: list(cards) for spot, cards in found.items()}


def _joined(panel: Panel) -> list[Series]:
    """The series, with the designs beyond the axes, which appear when the reader zooms out."""
    found: dict[tuple[int, str], Series] = {}
    for series in (*panel.series, *panel.beyond):
        before = found.get((series.team, series.kind))
        if before is not None:
            x, y = np.append(before.x, series.x), np.append(before.y, series.y)
            series = replace(series, x=x, y=y, cards=(*before.cards, *series.cards))  # noqa: PLW2901
        found[series.team, series.kind] = series
    return list(found.values())


def _ends(panel: Panel, which: Literal["x", "y"]) -> tuple[float, float]:
    """How far an axis reaches when all designs are shown; no less than at first."""
    axis = panel.x if which == "x" else panel.y
    values = np.concatenate([s.x if which == "x" else s.y for s in panel.beyond] or [np.empty(0)])
    outside = values[~axis.holds(values)]
    if not outside.size:
        return axis.low, axis.high
    low, high = view(np.append(outside, (axis.low, axis.high)), np.empty(0), axis.log)
    return (low if outside.min() < axis.low else axis.low), (high if outside.max() > axis.high else axis.high)


def _axis(axis: Axis, ends: tuple[float, float], letters: int, ticks: int) -> dict[str, Any]:
    def along(values: tuple[float, float]) -> list[float]:
        return np.log10(values).tolist() if axis.log else list(values)

    low, high = along(ends)
    return {
        "type": "log" if axis.log else "linear", "range": along((axis.low, axis.high)),
        "minallowed": low, "maxallowed": high,
        "title": {"text": markup(short(axis.label, letters)), "standoff": 8, "font": {"size": 13}},
        "gridcolor": GRID, "zeroline": False, "showline": True, "linecolor": FAINT, "ticks": "outside", "ticklen": 4,
        "tickcolor": FAINT, "exponentformat": "power", "minexponent": 5, "separatethousands": True, "nticks": ticks,
    } | ({"tickformat": ",.6~g"} if axis.log else {})  # fmt: skip


def _stretched(corners: Any, axis: Axis, ends: tuple[float, float]) -> list[float]:
    """A staircase's corners, where those on the edge of the panel are on the edge of everything."""
    far = {axis.low: ends[0], axis.high: ends[1]}
    return [far.get(value, value) for value in corners.tolist()]


def _bound(line: Line, x_ends: tuple[float, float], y_ends: tuple[float, float]) -> dict[str, Any]:
    """The line of a constraint, from one end of everything to the other."""
    dash = ",".join(f"{length * 1.4:g}px" for length in LINES[line.style % len(LINES)][1])
    at = [line.at, line.at]
    x, y = (at, list(y_ends)) if line.axis == "x" else (list(x_ends), at)
    return {
        "mode": "lines",
        "x": x,
        "y": y,
        "line": {"color": INK, "width": 1.3, "dash": dash},
        "hoverinfo": "skip",
    }


def _broken(line: Line, ids: dict[str, str], ends: tuple[float, float]) -> dict[str, Any]:
    """The side of a constraint where it does not hold."""
    low, high = (line.at, ends[1]) if line.allowed == "below" else (ends[0], line.at)
    along, across = ("x", "y") if line.axis == "x" else ("y", "x")
    return {
        "type": "rect", "layer": "below", "fillcolor": SHADE, "line": {"width": 0},
        f"{along}ref": ids[along], f"{along}0": low, f"{along}1": high,
        f"{across}ref": f"{ids[across]} domain", f"{across}0": 0, f"{across}1": 1,
    }  # fmt: skip
