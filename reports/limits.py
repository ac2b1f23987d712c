"""A map over limits as files: which teams succeed where, with the exact borders of each."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dse.problem import Constraint, shown
from dse.study.limitmap import LimitMap
from dse.study.limits import Axis
from dse.units import from_base

from .canvas import sheet
from .framing import FORMATS, write_drawing
from .labels import tick
from .source import clean
from .style import FAINT, INK, mark, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path as MatplotlibPath

__all__ = ["FORMATS", "render"]

_NOBODY, _EVERYBODY = "#f4f4f4", "#b5b5b5"
_HATCHES = ("//", "..", "\\\\", "xx", "||", "oo", "--", "++", "**")
"""Patterns of the regions that somebody succeeds in, for who cannot tell their colours apart."""

_WIDTH, _HEIGHT, _FLAT = 8.4, 4.4, 2.0

Floats = NDArray[np.float64]


def render(found: LimitMap, stem: Path, formats: Sequence[str] | None = None) -> list[Path]:
    """Draw a map over limits.

    Args:
        found: the map.
        stem: the files' path without suffix. A suffix that is a format asks for that format alone, unless
            ``formats`` says otherwise.
        formats: some of ``png``, ``svg``, ``html``, ``pdf``; by default the first three.

    Returns:
        The files written. The same map gives the same bytes.

    Raises:
        InputError: a format is unknown, or a file cannot be written.
    """
    return write_drawing(lambda dpi: _drawn(found, dpi), _title(found), stem, formats, _borders(found))


def _borders(found: LimitMap) -> str:
    """The corners as a table in HTML; empty where there are none."""
    heads = ["team", *(axis.label for axis in found.axes), *found.problem.names]
    rows = [
        [
            team.team,
            *(axis.text(value, 6) for axis, value in zip(found.axes, corner.limits, strict=True)),
            *(
                dimension.label(found.problem.digit(dimension.name, corner.design[dimension.name]))
                for dimension in found.problem.dimensions
            ),
        ]
        for team in found.teams
        for corner in team.corners
    ]
    table = "".join(
        "<tr>" + "".join(f"<td>{escape(clean(cell))}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    head = "".join(f"<th>{escape(clean(cell))}</th>" for cell in heads)
    return (
        f"<h2>The borders</h2>\n<p>A team succeeds with any of its limits here, or looser ones; with the design beside.</p>\n"
        f"<table>\n<tr>{head}</tr>\n{table}</table>\n"
        if rows
        else ""
    )


def _title(found: LimitMap) -> str:
    names = " and ".join(axis.name for axis in found.axes)
    return f"{found.problem.title or found.problem.name}: for which {names} each team succeeds"


def _notes(found: LimitMap) -> str:
    fixed = [_required(found, c) for c in found.problem.constraints if not _mapped(found, c.name)]
    parts = [
        ("exact: the borders are those of the teams' fronts" if found.bordered else "exact at each point")
        if found.method == "front" and found.proven
        else found.note
    ]
    if fixed:
        parts.append(f"also required: {', '.join(fixed)}")
    set_ = [f"{name} = {value}" for name, value in found.problem.overrides]
    if set_:
        parts.append(f"with {', '.join(set_)}")
    return clean(". ".join(filter(None, parts)) + ".")


def _required(found: LimitMap, constraint: Constraint) -> str:
    """``accuracy >= min_accuracy (90 %)``: a constraint with the values of the inputs that bound it."""
    inputs = found.problem.inputs
    names = found.problem.graph.leaves(constraint.bound.rhs, "input")
    values = [shown(inputs[name].value, inputs[name].unit) for name in names]
    return f"{constraint.text} ({', '.join(values)})" if values else constraint.text


def _mapped(found: LimitMap, name: str) -> bool:
    return any(bound.constraint.name == name for limit in found.limits for bound in limit.bounds)


def _drawn(found: LimitMap, dpi: int) -> Figure:
    from matplotlib.patches import Patch

    title = textwrap.wrap(clean(_title(found)), int(_WIDTH * 7.2), max_lines=2, placeholder=" \u2026")
    notes = textwrap.wrap(_notes(found), int(_WIDTH * 15))
    body = _HEIGHT if len(found.axes) > 1 else _FLAT
    canvas = sheet(title, notes, width=_WIDTH, body=body, dpi=dpi)
    area = canvas.add_subplot()
    groups = _regions(found, area)
    handles = [Patch(linewidth=0.5, **look) for look in groups.values()]
    canvas.legend(
        handles, [f" {short(clean(found.group_text(g)), 44)}" for g in groups], loc="outside right upper", frameon=False,
        fontsize=8.5, labelcolor=INK, title="who succeeds", title_fontsize=8.5, alignment="left",
    )  # fmt: skip
    return canvas


def _colour(found: LimitMap, group: Sequence[str]) -> str:
    """Strong for a single team, pale for several by the first of them, grey for all and nearly white for none."""
    if not group:
        return _NOBODY
    if len(group) == len(found.teams) > 1:
        return _EVERYBODY
    colour = mark([team.team for team in found.teams].index(group[0])).colour
    if len(group) == 1:
        return colour
    paler = [round(255 - 0.45 * (255 - int(colour[at : at + 2], 16))) for at in (1, 3, 5)]
    return "#" + "".join(f"{part:02x}" for part in paler)


def _looks(found: LimitMap, groups: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], dict[str, Any]]:
    """How the region of each group is filled: by a colour, and by a pattern where a team succeeds."""
    hatches = itertools.cycle(_HATCHES)
    return {
        group: {
            "facecolor": _colour(found, group),
            "edgecolor": FAINT if not group or len(group) > 1 else "#ffffff",
            "hatch": next(hatches) if group else None,
        }
        for group in groups
    }


def _regions(found: LimitMap, area: Axes) -> dict[tuple[str, ...], dict[str, Any]]:
    """Fills the regions, and returns the looks of the groups that have one; draws the limits that the problem has."""
    from matplotlib.patches import PathPatch

    edges = [_edges(found, at) for at in range(len(found.axes))]
    middles = [
        np.sqrt(e[1:] * e[:-1]) if a.log else (e[1:] + e[:-1]) / 2
        for a, e in zip(found.axes, edges, strict=True)
    ]
    met = found.within(middles) if found.bordered else [team.succeeds for team in found.teams]
    met = [cells if cells.ndim > 1 else cells[:, None] for cells in met]
    numbers = np.asarray(sum(cells.astype(np.int64) << at for at, cells in enumerate(met)))
    names = [team.team for team in found.teams]
    kinds = {
        n: tuple(name for at, name in enumerate(names) if n >> at & 1) for n in map(int, np.unique(numbers))
    }
    order = sorted(kinds, key=lambda n: (len(kinds[n]), [names.index(name) for name in kinds[n]]))
    looks = _looks(found, [kinds[number] for number in order])
    x = _printed(found.axes[0], edges[0])
    y = _printed(found.axes[1], edges[1]) if len(edges) > 1 else np.array([0.0, 1.0])
    for number in order:
        name, look = f"region{order.index(number)}", looks[kinds[number]]
        area.add_patch(PathPatch(_cells(x, y, numbers == number), gid=name, linewidth=0, **look))
    _scales(found, area, x, y)
    given = [_printed(a, np.array([v]))[0] for a, v in zip(found.axes, found.given, strict=True)]
    inside = [
        low <= value <= high
        for value, (low, high) in zip(given, [(x[0], x[-1]), (y[0], y[-1])], strict=False)
    ]
    if all(inside):
        where = (given[0], given[1] if len(given) > 1 else 0.5)
        area.plot(
            *where,
            "o",
            color="white",
            markeredgecolor=INK,
            markersize=8,
            zorder=5,
            gid="given",
            clip_on=False,
        )
        text = ", ".join(a.text(v, 6) for a, v in zip(found.axes, found.given, strict=True))
        area.annotate(
            f"as set: {text}", where, xytext=(8, 8), textcoords="offset points", fontsize=8, color=INK, gid="given-text",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0},
        )  # fmt: skip
    return looks


def _cells(x: Floats, y: Floats, mine: NDArray[np.bool_]) -> MatplotlibPath:
    """The rectangles of some cells, those beside each other in one."""
    from matplotlib.path import Path as Outline

    found = []
    for at, column in enumerate(mine):
        changes = np.flatnonzero(np.diff(np.concatenate(([0], column.astype(np.int8), [0]))))
        for low, high in zip(changes[::2], changes[1::2], strict=True):
            left, right, bottom, top = x[at], x[at + 1], y[low], y[high]
            found.append([(left, bottom), (right, bottom), (right, top), (left, top), (left, bottom)])
    return Outline.make_compound_path(*(Outline(corners, closed=True) for corners in found))


def _edges(found: LimitMap, at: int) -> Floats:
    """Where regions may change along an axis, in base units: at corners, or between cells that were searched."""
    axis = found.axes[at]
    values = np.array(axis.values)
    if found.bordered:
        low, high = values[0], values[-1]
        inside = [c.limits[at] for team in found.teams for c in team.corners if low < c.limits[at] < high]
        return np.unique(np.array([low, *inside, high]))
    if axis.log:
        values = np.log(values)
    between = (values[1:] + values[:-1]) / 2
    ends = np.concatenate(
        ([values[0] - (between[0] - values[0])], between, [values[-1] + (values[-1] - between[-1])])
    )
    return np.asarray(np.exp(ends) if axis.log else ends)


def _printed(axis: Axis, values: Floats) -> Floats:
    return np.array([from_base(float(value), axis.unit) for value in values])


def _scales(found: LimitMap, area: Axes, x: Floats, y: Floats) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    for drawn, axis, ends in zip((area.xaxis, area.yaxis), (*found.axes, None)[:2], (x, y), strict=True):
        if axis is None:
            drawn.set_visible(False)
            area.set_ylim(0.0, 1.0)
            continue
        if axis.log:
            (area.set_xscale if drawn is area.xaxis else area.set_yscale)("log")
            drawn.set_major_locator(LogLocator(10.0, subs=(1.0, 2.0, 5.0), numticks=12))
            drawn.set_minor_formatter(NullFormatter())
        else:
            drawn.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        drawn.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
        (area.set_xlim if drawn is area.xaxis else area.set_ylim)(float(ends[0]), float(ends[-1]))
    area.set_xlabel(short(found.axes[0].label, 60), color=INK)
    if len(found.axes) > 1:
        area.set_ylabel(short(found.axes[1].label, 50), color=INK)
    area.tick_params(colors=INK, labelsize=8)
    for side in area.spines.values():
        side.set_color(FAINT)
