"""A map over limits in words: a picture of letters with its legend, then the exact borders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.cli.designs import active_values, assignments
from dse.cli.summary import heading
from dse.cli.text import aligned, count, paragraph, plural, wrapped
from dse.expressions import Value
from dse.problem import shown
from dse.study.limitmap import LimitMap, TeamLimits
from dse.study.limits import Axis
from dse.study.result import number
from dse.units import from_base

__all__ = ["border_columns", "border_rows", "map_data", "map_lines", "map_rows"]

_MOST_CORNERS = 12
_TICKS = 4
_DIGITS = 12


def map_lines(found: LimitMap) -> list[str]:
    """The whole map for people."""
    problem = found.problem
    lines = [
        *heading(problem),
        *paragraph(f"for which {_and([a.name for a in found.axes])} each team has a feasible design"),
    ]
    groups = found.groups()
    letters = _letters(list(groups), [team.team for team in found.teams])
    lines += ["", *_picture(found, letters), ""]
    total = sum(int(cells.sum()) for cells in groups.values())
    rows = [
        [letters[group], found.group_text(group), f"{count(int(cells.sum()))} of {plural(total, 'cell')}"]
        for group, cells in groups.items()
    ]
    lines += aligned(rows, header=False, indent=2, right={2})
    if found.note:
        lines += ["", *paragraph(f"note: {found.note}")]
    here = found.succeeding(found.given)
    if here is not None:
        at = ", ".join(f"{a.name} = {a.text(v, 6)}" for a, v in zip(found.axes, found.given, strict=True))
        lines += ["", *paragraph(f"with {at}: {found.group_text(here)}")]
    for team in found.teams if found.bordered else ():
        lines += ["", *_borders(found, team)]
    return lines


def _and(names: Sequence[str]) -> str:
    return " and ".join(names)


def _letters(groups: Sequence[tuple[str, ...]], names: Sequence[str]) -> dict[tuple[str, ...], str]:
    """A letter for each group: ``.`` for nobody, ``+`` for all, ``#`` for a single team, else of its first team."""
    letters: dict[tuple[str, ...], str] = {}
    free = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    for group in groups:
        first = group[0][:1].lower() if group else ""
        wishes = (
            ["."]
            if not group
            else ["+"]
            if len(group) == len(names) > 1
            else ["#"]
            if len(group) == 1
            else []
        )
        letter = next(
            (wish for wish in [*wishes, first, *free] if wish and wish not in letters.values()), "?"
        )
        letters[group] = letter
    return letters


def _picture(found: LimitMap, letters: Mapping[tuple[str, ...], str]) -> list[str]:
    """The cells as letters, the first limit across and the second up."""
    shape = found.teams[0].succeeds.shape
    cells: NDArray[np.str_] = np.full(shape, "?")
    for group, own in found.groups().items():
        cells[own] = letters[group]
    across = found.axes[0]
    if len(found.axes) == 1:
        return ["  " + "".join(cells), *_scale(across, 2)]
    up = found.axes[1]
    labels = ["" for _ in up.values]
    for at in _ticks(len(up.values)):
        labels[at] = up.text(up.values[at])
    size = max(map(len, labels))
    lines = [f"{up.name}"]
    lines += [f"{labels[at]:>{size}}  {''.join(cells[:, at])}" for at in reversed(range(len(up.values)))]
    return [*lines, *_scale(across, size + 2)]


def _ticks(length: int) -> list[int]:
    """Which of the values are named: the ends and some between."""
    return sorted({round(at * (length - 1) / _TICKS) for at in range(_TICKS + 1)})


def _scale(axis: Axis, indent: int) -> list[str]:
    """What the first column stands for, and the last."""
    first, last = axis.text(axis.values[0]), axis.text(axis.values[-1])
    room = max(len(axis.values) - len(first) - len(last), 2)
    how = "equal ratios apart" if axis.log else "equally far apart"
    return [" " * indent + first + " " * room + last, " " * indent + f"{axis.name}, {how}"]


def _borders(found: LimitMap, team: TeamLimits) -> list[str]:
    """The corners of a team's border with the designs that are in them."""
    if not team.corners:
        return paragraph(f"{team.team} succeeds for no values of these limits")
    shown_corners = team.corners[:_MOST_CORNERS]
    designs = [active_values(found.problem, corner.design) for corner in shown_corners]
    shared = {
        name: value
        for name, value in designs[0].items()
        if len(designs) > 1 and all(name in other and other[name] == value for other in designs)
    }
    lines = paragraph(f"{team.team} succeeds with any of these limits, or looser ones")
    lines += paragraph(f"all: {assignments(found.problem, shared)}", indent=2, hanging=5) if shared else []
    signs = ["<=" if limit.side == ">=" else ">=" for limit in found.limits]
    rows = [[*(f"{axis.name} {sign}" for axis, sign in zip(found.axes, signs, strict=True)), "design"]]
    for corner, design in zip(shown_corners, designs, strict=True):
        own = {name: value for name, value in design.items() if name not in shared}
        values = [axis.text(value, 6) for axis, value in zip(found.axes, corner.limits, strict=True)]
        rows.append([*values, assignments(found.problem, own)])
    lines += wrapped(rows, indent=2, header=True, right=set(range(len(signs))))
    more = len(team.corners) - _MOST_CORNERS
    return [*lines, f"  and {count(more)} more; --format json lists all"] if more > 0 else lines


# -- data ------------------------------------------------------------------------------------------


def _plain(value: float, axis: Axis) -> float | int:
    """A limit in its unit, to 12 digits: the last ones of a sum such as 5.500000000000001 are its rounding."""
    rounded = float(f"{from_base(value, axis.unit):.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) <= 2**53 else rounded


def map_rows(found: LimitMap) -> list[dict[str, Any]]:
    """One flat row for each cell: the limits in their units, for each team whether it succeeds, and the group."""
    groups = found.groups()
    rows = []
    for at in np.ndindex(*found.teams[0].succeeds.shape):
        limits = {a.label: _plain(a.values[n], a) for a, n in zip(found.axes, at, strict=True)}
        group = next(group for group, cells in groups.items() if cells[at])
        met = {team.team: bool(team.succeeds[at]) for team in found.teams}
        rows.append({**limits, **met, "group": found.group_text(group)})
    return rows


def border_columns(found: LimitMap) -> list[str]:
    """The columns of :func:`border_rows`."""
    return ["team", *(axis.label for axis in found.axes), "index", *found.problem.names]


def border_rows(found: LimitMap) -> list[dict[str, Any]]:
    """One flat row for each corner of a team's border, with its design."""
    return [
        {
            "team": team.team,
            **{a.label: _plain(v, a) for a, v in zip(found.axes, corner.limits, strict=True)},
            "index": corner.index,
            **{d.name: d.plain(corner.design[d.name]) for d in found.problem.dimensions},
        }
        for team in found.teams
        for corner in team.corners
    ]


def map_data(found: LimitMap) -> dict[str, Any]:
    """The map as JSON values; limits in base units."""
    problem = found.problem

    def plain(value: Value) -> Any:
        return number(value) if isinstance(value, float) else value

    return {
        "problem": {"name": problem.name, "digest": problem.digest},
        "method": found.method,
        "proven": found.proven,
        "note": found.note,
        "axes": [
            {
                "name": axis.name,
                "unit": None if axis.unit is None else axis.unit.text,
                "given": shown(axis.input.value, axis.unit),
                "constraints": [bound.constraint.text for bound in limit.bounds],
                "values": list(axis.values),
            }
            for axis, limit in zip(found.axes, found.limits, strict=True)
        ],
        "groups": [
            {"teams": list(group), "text": found.group_text(group), "cells": int(cells.sum())}
            for group, cells in found.groups().items()
        ],
        "teams": [
            {
                "team": team.team,
                "succeeds": team.succeeds.tolist(),
                "corners": [
                    {
                        "limits": {a.name: v for a, v in zip(found.axes, corner.limits, strict=True)},
                        "index": corner.index,
                        "design": {name: plain(value) for name, value in corner.design.items()},
                    }
                    for corner in team.corners
                ],
            }
            for team in found.teams
        ],
    }
