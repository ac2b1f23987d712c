"""Designs and their metrics in words and as tables that fit the width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dse.cli.designing import active
from dse.cli.text import GAP, aligned, count, paragraph, width, widths
from dse.expressions import Value
from dse.problem import Problem, shown
from dse.study.result import FrontPoint, Result, number
from dse.units import from_base

__all__ = [
    "MOST_ROWS",
    "active_values",
    "ambitions",
    "assignments",
    "best",
    "best_row",
    "best_values",
    "point_lines",
    "tie_lines",
]

_MOST_TIES = 8

MOST_ROWS = 50
"""Rows of a table for people; the other formats have all."""


def ambitions(problem: Problem) -> str:
    """``maximize accuracy, minimize latency``."""
    return ", ".join(f"{o.direction} {o.name}" for o in problem.objectives)


def assignments(problem: Problem, values: Mapping[str, Value]) -> str:
    """``detector=Det-L distill=false``, of some or all dimensions."""
    units = {d.name: d.unit for d in problem.dimensions}
    texts = ((name, shown(value, units[name])) for name, value in values.items())
    return " ".join(f"{name}='{text}'" if " " in text else f"{name}={text}" for name, text in texts)


def active_values(problem: Problem, design: Mapping[str, Value]) -> dict[str, Value]:
    """The values of the dimensions that are active in a design."""
    return {d.name: design[d.name] for d in problem.dimensions if active(problem, d, dict(design))}


def best(result: Result) -> dict[str, float | None]:
    """The best value of each objective on the front, in base units; None where there is no front."""
    values = {
        o.name: [point.objectives[o.name] * o.sign for point in result.front]
        for o in result.problem.objectives
    }
    return {o.name: min(values[o.name]) * o.sign if result.front else None for o in result.problem.objectives}


def best_values(result: Result) -> dict[str, Any]:
    """:func:`best` as JSON values."""
    return {name: None if value is None else number(value) for name, value in best(result).items()}


def best_row(result: Result) -> dict[str, float | None]:
    """:func:`best` as cells of a row, in the objectives' units: ``best latency [ms]``."""
    row = {}
    for objective, value in zip(result.problem.objectives, best(result).values(), strict=True):
        unit = "" if objective.unit.text == "1" else f" [{objective.unit.text}]"
        row[f"best {objective.name}{unit}"] = None if value is None else from_base(value, objective.unit)
    return row


def _metrics_shown(problem: Problem, room: int, texts: Mapping[str, list[str]]) -> list[str]:
    """The metrics that fit into ``room`` columns: objectives first, then bounded ones, then the rest."""
    first = [o.name for o in problem.objectives]
    bounded = [c.metric for c in problem.constraints if c.metric]
    chosen = []
    for name in dict.fromkeys([*first, *bounded, *problem.metrics]):
        room -= max(map(len, texts[name])) + GAP
        if room < 0 and name not in first:
            break
        chosen.append(name)
    return [
        *dict.fromkeys(first),
        *(name for name in problem.metrics if name in chosen and name not in first),
    ]


def point_lines(
    result: Result, points: Sequence[FrontPoint], *, indent: int = 2, ties: bool = True
) -> list[str]:
    """Some designs of a result as a table: what differs between them in columns, what they share in a line above it.

    When the columns do not fit, the designs follow the table of metrics, one paragraph each. Tied designs are counted
    if ``ties``, and listed where they are known.
    """
    problem = result.problem
    points, left_out = points[:MOST_ROWS], len(points) - MOST_ROWS
    if len(points) == 1:
        return _single(result, points[0], indent, ties=ties)
    varying = [d for d in problem.dimensions if len({repr(p.design[d.name]) for p in points}) > 1]
    names = {d.name for d in varying}
    shared = {name: value for name, value in points[0].design.items() if name not in names}
    lines = paragraph(f"all: {assignments(problem, shared)}", indent=indent, hanging=5) if shared else []
    tied = ties and any(p.ties > 1 for p in points)
    texts = {
        name: [name, *(result.metric_text(name, p.metrics.get(name)) for p in points)]
        for name in problem.metrics
    }
    numbers = [["#", *map(str, range(1, len(points) + 1))]]
    designs = [[d.name, *(shown(p.design[d.name], d.unit) for p in points)] for d in varying]
    tail = [["ties", *(count(p.ties) for p in points)]] if tied else []
    room = (
        width()
        - indent
        - sum(size + GAP for size in widths(list(zip(*numbers, *designs, *tail, strict=True))))
    )
    needed = sum(max(map(len, texts[o.name])) + GAP for o in problem.objectives)
    beside = needed <= room
    if not beside:
        room = width() - indent - sum(size + GAP for size in widths(list(zip(*numbers, *tail, strict=True))))
    metrics = [texts[name] for name in _metrics_shown(problem, room, texts)]
    columns = [*numbers, *(designs if beside else []), *metrics, *tail]
    first_number = 1 + (len(designs) if beside else 0)
    right = {0, *range(first_number, len(columns))}
    lines += aligned([list(row) for row in zip(*columns, strict=True)], right=right, indent=indent)
    if not beside:
        for at, point in enumerate(points, start=1):
            own = {d.name: point.design[d.name] for d in varying}
            lines += paragraph(f"{at}: {assignments(problem, own)}", indent=indent, hanging=3)
    if tied:
        lines += _tie_lines(result, points, indent)
    if left_out > 0:
        lines.append(f"{' ' * indent}... and {left_out:,} more; --format csv has all")
    return lines


def _tie_lines(result: Result, points: Sequence[FrontPoint], indent: int) -> list[str]:
    """What ties are; and those that are known, each by what tells it from the design shown."""
    if not any(point.tied for point in points):
        how = "; dse search --ties lists them all" if result.promise == "exact" else ""
        return paragraph(
            f"ties: how many designs have the same objectives; the one with the lowest index is shown{how}",
            indent=indent,
        )
    lines: list[str] = []
    for at, point in enumerate(points, start=1):
        others = [index for index in point.tied if index != point.index]
        who = f"{at} ties with" if len(points) > 1 else "tied:"
        for index in others[:_MOST_TIES]:
            design = result.problem.design_at(result.problem.digits_of(index))
            own = {name: value for name, value in design.items() if value != point.design[name]}
            lines += paragraph(
                f"{who} design {index}: {assignments(result.problem, own)}", indent=indent, hanging=4
            )
        if len(others) > _MOST_TIES:
            rest = count(len(others) - _MOST_TIES)
            lines += paragraph(f"{who} {rest} more; --format json has all", indent=indent)
    return lines


def _single(result: Result, point: FrontPoint, indent: int, *, ties: bool) -> list[str]:
    problem = result.problem
    lines = paragraph(assignments(problem, active_values(problem, point.design)), indent=indent)
    parts = {part for metric in problem.metrics.values() for part in metric.parts}
    metrics = ", ".join(
        f"{name} {result.metric_text(name, point.metrics.get(name))}"
        for name in problem.metrics
        if name not in parts
    )
    lines += paragraph(metrics, indent=indent)
    return [*lines, *(tie_lines(result, point, indent) if ties else [])]


def tie_lines(result: Result, point: FrontPoint, indent: int) -> list[str]:
    """How many designs have the objectives of the only design shown, and which, where they are known."""
    if point.ties <= 1:
        return []
    how = "" if point.tied or result.promise != "exact" else "; dse search --ties lists them all"
    lines = paragraph(
        f"{count(point.ties)} designs tie; this is the one with the lowest index{how}", indent=indent
    )
    return [*lines, *(_tie_lines(result, [point], indent) if point.tied else [])]
