"""A map over limits as files: which teams succeed where, with the exact borders of each."""

from __future__ import annotations

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

from .drawing import saved, settings
from .labels import tick
from .source import clean
from .style import FAINT, INK, mark, short
from .writing import wanted_formats, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "framed", "render"]

FORMATS = ("png", "svg", "html", "pdf")
_NOBODY, _EVERYBODY = "#f4f4f4", "#b5b5b5"
_DPI = 160
_WIDTH, _HEIGHT = 8.4, 5.0

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
    stem, wanted = wanted_formats(stem, formats, FORMATS)
    written = []
    for form in wanted:
        data = _page(found).encode() if form == "html" else _draw(found, form)
        written.append(write(stem.with_name(f"{stem.name}.{form}"), data))
    return written


def _draw(found: LimitMap, form: str) -> bytes:
    with settings(fallbacks=form != "svg"):
        return saved(_drawn(found, _DPI if form == "png" else 72), form)


def _page(found: LimitMap) -> str:
    """The picture in a page of its own, with the corners as a table."""
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
    borders = (
        f"<h2>The borders</h2>\n<p>A team succeeds with any of its limits here, or looser ones; with the design beside.</p>\n"
        f"<table>\n<tr>{head}</tr>\n{table}</table>\n"
        if rows
        else ""
    )
    return framed(_title(found), _draw(found, "svg"), borders)


def framed(title: str, svg: bytes, below: str = "") -> str:
    """A page that needs nothing else: a drawing under its title, and HTML below."""
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
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    title = textwrap.wrap(clean(_title(found)), int(_WIDTH * 7.2), max_lines=2, placeholder=" \u2026")
    notes = textwrap.wrap(_notes(found), int(_WIDTH * 15))
    height = _HEIGHT if len(found.axes) > 1 else 2.6
    canvas = Figure(figsize=(_WIDTH, height), dpi=dpi, layout="constrained")
    foot, head = (0.1 + 0.15 * len(notes)) / height, (0.15 + 0.2 * len(title)) / height
    engine = canvas.get_layout_engine()
    assert engine is not None
    engine.set(w_pad=0.1, h_pad=0.06, rect=(0.0, foot, 1.0, 1.0 - foot - head))  # type: ignore[call-arg]
    area = canvas.add_subplot()
    groups = _regions(found, area)
    handles = [Patch(facecolor=_colour(found, g), edgecolor=FAINT, linewidth=0.5) for g in groups]
    canvas.legend(
        handles, [f" {short(_name(found, g), 44)}" for g in groups], loc="outside right upper", frameon=False,
        fontsize=8.5, labelcolor=INK, title="who succeeds", title_fontsize=8.5, alignment="left",
    )  # fmt: skip
    left = 0.1 / _WIDTH
    heading: dict[str, Any] = {"fontsize": 12, "fontweight": "bold", "color": INK}
    canvas.text(left, 1 - 0.1 / height, "\n".join(title), ha="left", va="top", **heading)
    canvas.text(left, 0.08 / height, "\n".join(notes), ha="left", va="bottom", fontsize=7.5, color=FAINT)
    return canvas


def _name(found: LimitMap, group: Sequence[str]) -> str:
    if not group:
        return "no team"
    if len(group) == len(found.teams) > 1:
        return "every team"
    return clean(f"only {group[0]}" if len(group) == 1 < len(found.teams) else " and ".join(group))


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


def _regions(found: LimitMap, area: Axes) -> list[tuple[str, ...]]:
    """Fills the regions, and returns the groups of teams that have one; draws the limits that the problem has."""
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
    shown = np.searchsorted(np.array(sorted(order)), numbers)
    from matplotlib.colors import ListedColormap

    colours = ListedColormap([_colour(found, kinds[n]) for n in sorted(order)])
    x = _printed(found.axes[0], edges[0])
    y = _printed(found.axes[1], edges[1]) if len(edges) > 1 else np.array([0.0, 1.0])
    area.pcolormesh(
        x, y, shown.T, cmap=colours, vmin=-0.5, vmax=len(order) - 0.5, shading="flat", rasterized=False, gid="regions",
        linewidth=0,
    )  # fmt: skip
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
    return [kinds[n] for n in order]


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
