"""One panel drawn with Matplotlib: its axes, designs, fronts, bounds and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .figure import FrontFigure, Line, Panel, Series
from .labels import Box, above, apart, beside, names, split_bound, strokes, text_width, tick
from .style import BACKGROUND, FAINT, GRID, INK, LINES, SHADE, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as DrawnAxis

    from .axes import Axis

__all__ = ["annotate", "plot"]


def plot(figure: FrontFigure, panel: Panel, area: Axes, name: str) -> None:
    """Everything but the labels, whose places are known only after the layout. ``name`` begins every id."""
    area.set_facecolor("white")
    for side in ("top", "right"):
        area.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        area.spines[side].set_color(FAINT)
    area.grid(color=GRID, linewidth=0.6, zorder=0)
    area.tick_params(colors=INK, labelsize=8)
    _scale(area, area.xaxis, panel.x)
    _scale(area, area.yaxis, panel.y)
    area.set_xlim(panel.x.low, panel.x.high)
    area.set_ylim(panel.y.low, panel.y.high)
    area.set_xlabel(short(panel.x.label, 60), color=INK)
    area.set_ylabel(short(panel.y.label, 50), color=INK)
    for at, line in enumerate(panel.lines):
        _constraint(area, panel, line, f"{name}-line{at}")
    sizes = dict.fromkeys(range(len(figure.teams)), 0)
    for series in panel.series:
        sizes[series.team] += len(series.x)
    # Small teams on top of large ones that hold the same designs, and all on top of the whole space.
    order = sorted(sizes, key=lambda team: (not _behind(figure, team), -sizes[team], team))
    for at, series in enumerate(panel.series):
        _series(figure, area, series, order.index(series.team), f"{name}-series{at}")
    for team, x, y in panel.stairs:
        colour = figure.teams[team].mark.colour
        area.plot(
            x,
            y,
            color=colour,
            linewidth=1.4,
            zorder=3.9 if _behind(figure, team) else 4,
            gid=f"{name}-stairs{team}",
            solid_joinstyle="miter",
        )


def _behind(figure: FrontFigure, team: int) -> bool:
    return figure.teams[team].mark == BACKGROUND


def _scale(area: Axes, drawn: DrawnAxis, axis: Axis) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    if axis.log:
        (area.set_xscale if drawn is area.xaxis else area.set_yscale)("log")
        decades = np.log10(axis.high) - np.log10(axis.low)
        drawn.set_major_locator(
            LogLocator(10.0, subs=(1.0,) if decades > 3 else (1.0, 2.0, 5.0), numticks=12)
        )
        drawn.set_minor_formatter(NullFormatter())
    else:
        drawn.set_major_locator(MaxNLocator(6, integer=axis.whole, steps=[1, 2, 2.5, 5, 10]))
    drawn.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))


def _constraint(area: Axes, panel: Panel, line: Line, gid: str) -> None:
    """A bound, with the side where it is broken shaded."""
    across = line.axis == "x"
    axis = panel.x if across else panel.y
    style = LINES[line.style % len(LINES)]
    (area.axvline if across else area.axhline)(
        line.at, color=INK, linewidth=1.1, linestyle=style, zorder=2.5, gid=gid
    )
    if line.allowed != "on":
        broken = (line.at, axis.high) if line.allowed == "below" else (axis.low, line.at)
        (area.axvspan if across else area.axhspan)(*broken, facecolor=SHADE, edgecolor="none", zorder=0.5)
    # The text is set now, so that the layout leaves room for it; `annotate` moves it off its neighbours.
    if across:
        place: dict[str, Any] = {
            "xy": (line.at, 1.0),
            "xycoords": ("data", "axes fraction"),
            "xytext": (0, 3),
        }
        area.annotate(short(line.text, 40), ha="center", va="bottom", gid=f"{gid}-text", **place, **_BOUND)
    else:
        place = {"xy": (1.0, line.at), "xycoords": ("axes fraction", "data"), "xytext": (4, 0)}
        area.annotate(
            "\n".join(split_bound(line)), ha="left", va="center", gid=f"{gid}-text", **place, **_BOUND
        )


_BOUND: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7.5, "color": INK}


def _look(figure: FrontFigure, series: Series) -> dict[str, Any]:
    """Infeasible designs hollow and dimmed, feasible ones filled, the front large, a near miss thickly outlined.

    Many markers are smaller ones.
    """
    mark = figure.teams[series.team].mark
    look: dict[str, Any] = {"marker": mark.marker, "linestyle": "none", "color": mark.colour}
    many = len(series.x)
    match series.kind:
        case "infeasible":
            size = 4.2 if many <= 600 else 3.2
            return look | {
                "markerfacecolor": "none",
                "markersize": size,
                "markeredgewidth": 0.7,
                "alpha": 0.5,
            }
        case "feasible":
            size = 5.5 if many <= 300 else 4.0
            return look | {"markersize": size, "markeredgecolor": "white", "markeredgewidth": 0.5}
        case "miss":
            return look | {"markerfacecolor": "white", "markersize": 8.5, "markeredgewidth": 1.8}
        case "front":
            size, edge = (9.0, 0.9) if many <= 40 else (6.5, 0.7) if many <= 120 else (5.0, 0.5)
            return look | {"markersize": size, "markeredgecolor": INK, "markeredgewidth": edge}


def _series(figure: FrontFigure, area: Axes, series: Series, rank: int, gid: str) -> None:
    depth = {"infeasible": 3.0, "feasible": 4.5, "miss": 5.0, "front": 5.5}[series.kind] + 0.01 * rank
    area.plot(series.x, series.y, zorder=depth, gid=gid, clip_on=False, **_look(figure, series))


def annotate(figure: FrontFigure, panel: Panel, area: Axes, name: str) -> None:
    """Name the near misses, and the designs of a short front by their values; keep the bounds' texts apart."""
    scale = 72.0 / area.get_figure(root=True).dpi  # type: ignore[union-attr]

    def page(x: Any, y: Any) -> Any:
        return area.transData.transform(np.column_stack((x, y))) * scale

    frame = Box(*(float(v) * scale for v in area.get_window_extent().extents))
    named = names(figure, panel, page)
    faint = np.concatenate([page(s.x, s.y) for s in panel.series] or [np.empty((0, 2))])
    lines = [box for _, x, y in panel.stairs for box in strokes(page(x, y), 1)]
    corners = (panel.x.low, panel.y.low)
    for line in panel.lines:
        left, low = page(*(([line.at], [corners[1]]) if line.axis == "x" else ([corners[0]], [line.at])))[0]
        across = line.axis == "x"
        lines.append(
            Box(left, frame.bottom, left + 1, frame.top)
            if across
            else Box(frame.left, low, frame.right, low + 1)
        )
    widths = [text_width(text, 8.0) for text, *_ in named.values()]
    boxes = beside(list(named), widths, height=11.0, area=frame, faint=faint, lines=lines)
    for number, (box, (spot, (text, team, _))) in enumerate(zip(boxes, named.items(), strict=True)):
        if box is None:
            continue
        right = box.right <= spot[0]
        at = ((box.right if right else box.left) / scale, (box.bottom + 5.5) / scale)
        area.annotate(
            text, at, xycoords="figure pixels", ha="right" if right else "left", va="center", annotation_clip=False,
            fontsize=8, color=INK, zorder=8, gid=f"{name}-team{team}-label{number}",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
        )  # fmt: skip
    _separate(panel, area, page, name)


def _separate(panel: Panel, area: Axes, page: Any, name: str) -> None:
    """Move the texts of bounds that stand close together: up beside the panel, or into rows above it."""
    texts: dict[str | None, Any] = {text.get_gid(): text for text in area.texts}
    found = [(line, texts[f"{name}-line{at}-text"]) for at, line in enumerate(panel.lines)]
    beside_panel = [(line, text) for line, text in found if line.axis == "y"]
    heights = [float(page([panel.x.low], [line.at])[0][1]) for line, _ in beside_panel]
    for (_, text), wanted, got in zip(beside_panel, heights, apart(heights, 19.0), strict=True):
        text.xyann = (4, got - wanted)
    over = [(float(page([line.at], [panel.y.low])[0][0]), text) for line, text in found if line.axis == "x"]
    rows = above([middle for middle, _ in over], [text_width(text.get_text(), 7.5) for _, text in over])
    for (_, text), row in zip(over, rows, strict=True):
        text.xyann = (0, 3 + 10 * row)
