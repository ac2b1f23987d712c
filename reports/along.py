"""A design along one dimension as files: a panel for each metric, its limit, and where what bounds it changes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dse.evaluation import State
from dse.problem import shown
from dse.study.along import Along, Point, Ridge
from dse.units import format_value, from_base

from .axes import scale_of
from .canvas import sheet
from .framing import FORMATS, write_drawing
from .labels import above, text_width, tick
from .source import clean
from .style import FAINT, GRID, INK, LINES, mark, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as DrawnAxis
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "render"]

_WIDTH, _PANEL = 8.4, 2.3
_LOG = 8.0
"""Positive values whose ends differ by this factor or more are drawn on a logarithmic scale."""
_MOST_TICKS, _MOST_LETTERS = 14, 70

Floats = NDArray[np.float64]


def render(found: Along, stem: Path, formats: Sequence[str] | None = None) -> list[Path]:
    """Draw a design along a dimension.

    Args:
        found: the designs.
        stem: the files' path without suffix. A suffix that is a format asks for that format alone, unless
            ``formats`` says otherwise.
        formats: some of ``png``, ``svg``, ``html``, ``pdf``; by default the first three.

    Returns:
        The files written. The same designs give the same bytes.

    Raises:
        InputError: a format is unknown, or a file cannot be written.
    """
    return write_drawing(lambda dpi: _drawn(found, dpi), _title(found), stem, formats)


def _title(found: Along) -> str:
    return clean(f"{found.problem.title or found.problem.name}: along {found.dimension.name}")


def _notes(found: Along) -> list[str]:
    """The design, what was set, the ridges in words, and the points that are not there."""
    problem, name = found.problem, found.dimension.name
    rest = {key: shown(value, problem.dimension(key).unit) for key, value in found.rest.items()}
    notes = [" ".join(f"{key}={text}" for key, text in rest.items())] if rest else []
    if problem.overrides:
        notes.append("with " + ", ".join(f"{key} = {value}" for key, value in problem.overrides))
    notes += [ridge_text(found, ridge) for ridge in found.ridges]
    missing: dict[str, list[Point]] = {}
    for point in found.points:
        if point.state in (State.ILLEGAL, State.FAILED):
            missing.setdefault(point.rule or point.reason, []).append(point)
    for points in missing.values():
        values = _few([_value(found, point) for point in points])
        notes.append(f"not drawn: {name} {values}: {points[0].reason}")
    if any(point.broken for point in found.points):
        broken = list(dict.fromkeys(name for point in found.points for name in point.broken))
        notes.append(f"hollow: breaks {', '.join(broken)}")
    if found.left_out:
        notes.append(f"{found.left_out:,} values in between are left out")
    return [clean(note) for note in notes]


def _few(values: Sequence[str]) -> str:
    return ", ".join(values) if len(values) <= 4 else f"{values[0]} and {len(values) - 1} more"


def _value(found: Along, point: Point) -> str:
    return shown(point.value, found.dimension.unit)


def ridge_text(found: Along, ridge: Ridge) -> str:
    """``ridge of step at batch 300: transfer up to 256, compute from 512``."""
    unit = found.dimension.unit
    at = (
        ""
        if ridge.at is None
        else f" at about {found.dimension.name} {format_value(ridge.at, unit, digits=3)}"
    )
    low, high = shown(ridge.low, unit), shown(ridge.high, unit)
    return f"ridge of {ridge.metric}{at}: {ridge.before} up to {low}, {ridge.after} from {high}"


def _drawn(found: Along, dpi: int) -> Figure:
    title = textwrap.wrap(_title(found), int(_WIDTH * 9), max_lines=2, placeholder=" \u2026")
    notes = [
        line
        for note in _notes(found)
        for line in textwrap.wrap(note, int(_WIDTH * 15), max_lines=3, placeholder=" \u2026")
    ]
    places = _places(found)
    ridges = [_ridge_place(found, ridge, places) for ridge in found.ridges]
    rows = above(
        [_share(found, at, places) * _WIDTH * 62 for at in ridges],
        [text_width(_sides(r), 8.0) for r in found.ridges],
    )
    body = _PANEL * len(found.metrics) + 0.3 + 0.16 * (max(rows, default=-1) + 1)
    canvas = sheet(title, notes, width=_WIDTH, body=body, dpi=dpi, head=0.05)
    areas: list[Axes] = canvas.subplots(len(found.metrics), 1, sharex=True, squeeze=False)[:, 0].tolist()
    for at, (name, area) in enumerate(zip(found.metrics, areas, strict=True)):
        _panel(found, name, area, places, f"panel{at}")
    for ridge, across, row in zip(found.ridges, ridges, rows, strict=True):
        _ridge(ridge, areas, across, row)
    _across(found, areas[-1], places)
    return canvas


def _numeric(found: Along) -> bool:
    return all(isinstance(point.value, float) for point in found.points)


def _places(found: Along) -> Floats:
    """Where the points stand across: their numbers in the printed unit; of texts, legal ones one after the other."""
    if _numeric(found):
        return np.array([from_base(float(point.value), found.dimension.unit) for point in found.points])
    legal = np.array([bool(point.metrics) for point in found.points])
    return np.where(legal, np.cumsum(legal) - 1.0, np.nan)


def _panel(found: Along, name: str, area: Axes, places: Floats, gid: str) -> None:
    """One metric: filled where a design is feasible, hollow where it is not, a gap where there is none."""
    metric = found.problem.metrics[name]
    values = np.array([_number(found, point, name) for point in found.points])
    feasible = np.array([point.state is State.FEASIBLE for point in found.points])
    objective = next((o for o in found.problem.objectives if o.name == name), None)
    better = {"minimize": ", lower is better", "maximize": ", higher is better"}
    colour = mark(list(found.metrics).index(name)).colour
    area.set_facecolor("white")
    area.grid(color=GRID, linewidth=0.6, zorder=0)
    if _numeric(found):
        area.plot(places, values, color=colour, linewidth=1.3, zorder=3, gid=f"{gid}-line")
    size = 5.5 if len(places) <= 40 else 2.5
    filled, hollow = np.where(feasible, values, np.nan), np.where(feasible, np.nan, values)
    area.plot(places, filled, "o", color=colour, markersize=size, zorder=4, gid=f"{gid}-feasible")
    area.plot(
        places, hollow, "o", color=colour, markerfacecolor="white", markersize=size, zorder=4, gid=f"{gid}-infeasible"
    )  # fmt: skip
    bounds = [
        from_base(bound, metric.unit) for constraint, bound in found.limits if constraint.metric == name
    ]
    finite = np.append(values[np.isfinite(values)], bounds)
    if finite.size and finite.min() > 0.0 and (scale_of(finite) or finite.max() / finite.min() >= _LOG):
        area.set_yscale("log")
        _log_ticks(area.yaxis)
    unit = "" if metric.unit.text == "1" else f" [{metric.unit.text}]"
    area.set_ylabel(clean(short(f"{name}{unit}", 34)), color=INK, fontsize=9)
    told = (metric.about + (better[objective.direction] if objective is not None else "")).removeprefix(", ")
    lines = textwrap.wrap(clean(told[:1].upper() + told[1:]), 116, max_lines=3, placeholder=" \u2026")
    area.set_title("\n".join(lines), loc="left", fontsize=8.5, color=INK)
    area.tick_params(colors=INK, labelsize=8)
    for side in ("top", "right"):
        area.spines[side].set_visible(False)
    for at, (constraint, bound) in enumerate(c for c in found.limits if c[0].metric == name):
        value = from_base(bound, metric.unit)
        area.axhline(
            value,
            color=INK,
            linewidth=1.0,
            linestyle=LINES[at % len(LINES)],
            zorder=2,
            gid=f"{gid}-limit{at}",
        )
        given = found.problem.graph[constraint.bound.rhs].op == "const"
        text = constraint.text + ("" if given else f" ({format_value(bound, metric.unit, digits=4)})")
        drawn = values[np.isfinite(values)]
        right = drawn.size > 0 and abs(drawn[-1] - value) > abs(drawn[0] - value)
        area.annotate(
            clean(short(text, 60)), (float(right), value), xycoords=("axes fraction", "data"), fontsize=7.5, color=INK,
            xytext=(-2 if right else 2, 3), ha="right" if right else "left", textcoords="offset points", zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
        )  # fmt: skip


def _number(found: Along, point: Point, name: str) -> float:
    value = point.metrics.get(name)
    return from_base(value, found.problem.metrics[name].unit) if isinstance(value, float) else np.nan


def _ridge_place(found: Along, ridge: Ridge, places: Floats) -> float:
    """Where a ridge stands across."""
    if ridge.at is not None:
        return from_base(ridge.at, found.dimension.unit)
    values = [point.value for point in found.points]
    return float(places[values.index(ridge.low)] + places[values.index(ridge.high)]) / 2


def _share(found: Along, at: float, places: Floats) -> float:
    """How far across a place is, 0 to 1."""
    ends = np.array([np.nanmin(places), np.nanmax(places), at])
    low, high, middle = np.log(ends) if _logarithmic(found, places) else ends
    return float((middle - low) / (high - low)) if high > low else 0.5


def _sides(ridge: Ridge) -> str:
    return clean(f"{short(ridge.before, 24)} | {short(ridge.after, 24)}")


def _ridge(ridge: Ridge, areas: Sequence[Axes], at: float, row: int) -> None:
    """A line through all panels where what bounds a metric changes, named above the first, in rows that stay apart."""
    lines = 1 + areas[0].get_title(loc="left").count("\n")
    for area in areas:
        area.axvline(at, color=FAINT, linewidth=1.1, linestyle=LINES[1], zorder=2)
    areas[0].annotate(
        _sides(ridge), (at, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 7 + 11 * (lines + row)),
        textcoords="offset points", ha="center", fontsize=8, color=INK,
    )  # fmt: skip


def _logarithmic(found: Along, places: Floats) -> bool:
    return _numeric(found) and bool(places.min() > 0.0) and bool(places.max() / places.min() >= _LOG)


def _across(found: Along, area: Axes, places: Floats) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    unit = found.dimension.unit
    area.set_xlabel(clean(short(found.dimension.name + (f" [{unit.text}]" if unit else ""), 60)), color=INK)
    log = _logarithmic(found, places)
    if log:
        area.set_xscale("log")
    named = {
        float(place): _value(found, point).removesuffix(f" {unit.text if unit else ''}")
        for place, point in zip(places, found.points, strict=True)
        if place == place
    }
    if len(named) <= _MOST_TICKS or not _numeric(found):
        area.xaxis.set_major_locator(FixedLocator(list(named)))
        area.xaxis.set_minor_locator(NullLocator())
        area.xaxis.set_minor_formatter(NullFormatter())
        area.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: clean(short(named.get(float(value), ""), 24)))
        )
        if not _numeric(found) and sum(map(len, named.values())) > _MOST_LETTERS:
            area.tick_params(axis="x", rotation=30 if len(named) <= _MOST_TICKS else 90)
    elif log:
        _log_ticks(area.xaxis)


def _log_ticks(drawn: DrawnAxis) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    drawn.set_major_locator(LogLocator(10.0, subs=(1.0, 2.0, 5.0), numticks=12))
    drawn.set_minor_formatter(NullFormatter())
    drawn.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
