"""A problem as plain data, and that data as lines for people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dse.cli.text import GAP, count, paragraph, plural
from dse.expressions import render
from dse.problem import Box, Dimension, Interval, Problem, Team, shown
from dse.problem.template import Template
from dse.units import format_value

__all__ = ["describe", "description_lines"]

_MANY = 200
"""Values of one dimension beyond which only the first and last are listed."""

_FACTORS = 12
"""Dimensions beyond which equal sizes are gathered."""


def describe(problem: Problem, legal: Mapping[str, int]) -> dict[str, Any]:
    """The parts of a problem as JSON values. ``legal`` are exact counts of legal designs per team, if counted."""
    names = {node: name for name, node in problem.lets.items() if problem.graph[node].op not in _LEAVES}
    return {
        "name": problem.name,
        "title": problem.title,
        "about": problem.about,
        "designs": None if problem.continuous else problem.size,
        "legal": dict(legal),
        "inputs": [
            _part(
                name,
                shown(i.value, i.unit),
                i.about,
                unit=i.unit and i.unit.text,
                choices=[shown(c, i.unit) for c in i.choices],
                table=i.table,
                limits=i.limits and i.limits.text(i.unit),
            )
            for name, i in problem.inputs.items()
        ],
        "dimensions": [_dimension(problem, d) for d in problem.dimensions],
        "rules": [{**_part(r.name, r.text), "because": _template(problem, r.because)} for r in problem.rules],
        "lets": [
            _part(name, render(problem.graph, node, _others(names, name)))
            for name, node in problem.lets.items()
        ],
        "metrics": [
            _part(
                m.name,
                "measured" if m.measured else m.text,
                m.about,
                unit=m.unit.text,
                parts=list(m.parts),
                record=m.record and f"{'at most' if m.record.above else 'at least'} {m.record.text}",
                error=problem.errors.get(m.name),
            )
            for m in problem.metrics.values()
        ],
        "objectives": [_part(o.name, o.direction) for o in problem.objectives],
        "constraints": [
            {**_part(c.name, c.text, first=c.first), "because": _template(problem, c.because)}
            for c in problem.constraints
        ],
        "teams": [_part(name, _team(problem, team), team.about) for name, team in problem.teams.items()],
    }


_LEAVES = frozenset({"const", "dimension", "input", "measured"})


def _others(names: Mapping[int, str], own: str) -> dict[int, str]:
    return {node: name for node, name in names.items() if name != own}


def _part(name: str, value: object, about: str = "", **more: object) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        **{key: item for key, item in more.items() if item},
        **({"about": about} if about else {}),
    }


def _dimension(problem: Problem, dimension: Dimension) -> dict[str, Any]:
    unit = dimension.unit and dimension.unit.text
    part = _part(dimension.name, _values(dimension), dimension.about, unit=unit, table=dimension.table)
    part["count"] = None if dimension.interval else len(dimension.values)
    if dimension.when is not None:
        part["when"] = render(problem.graph, dimension.when)
        part["otherwise"] = dimension.label(dimension.otherwise)
    return part


def _values(dimension: Dimension) -> list[str] | str:
    if isinstance(dimension.interval, Interval):
        low, high = (
            format_value(end, dimension.unit, 12) for end in (dimension.interval.low, dimension.interval.high)
        )
        return f"any from {low} to {high}" + (" (log)" if dimension.interval.log else "")
    number = len(dimension.values)
    if number <= _MANY:
        return [dimension.label(at) for at in range(number)]
    return [*(dimension.label(at) for at in range(3)), "...", dimension.label(number - 1)]


def _template(problem: Problem, template: Template) -> str:
    """The sentence as it was written, with its ``{name}`` places."""
    return template.fill(lambda node: "{" + render(problem.graph, node) + "}")


def _team(problem: Problem, team: Team) -> str:
    if len(team.boxes) > 1:
        return " | ".join(f"({_box(problem, box)})" for box in team.boxes)
    return _box(problem, team.boxes[0]) if team.boxes else "nothing"


def _box(problem: Problem, box: Box) -> str:
    parts = []
    for dimension, allowed in zip(problem.dimensions, box.allowed, strict=True):
        if allowed is None:
            continue
        labels = [dimension.label(at) for at in allowed[:8]] + (["..."] if len(allowed) > 8 else [])
        parts.append(
            f"{dimension.name} = {labels[0]}"
            if len(labels) == 1
            else f"{dimension.name} in [{', '.join(labels)}]"
        )
    parts += [conjunct.text for conjunct in box.where]
    return ", ".join(parts) or "everything"


# -- for people --------------------------------------------------------------------------------------


def description_lines(description: Mapping[str, Any]) -> list[str]:
    """The description in sections, wrapped."""
    title = description["title"]
    lines = paragraph(f"{description['name']}: {title}" if title else str(description["name"]))
    lines += paragraph(description["about"], indent=2, hanging=0) if description["about"] else []
    lines += _size_lines(description)
    for section, note in (
        ("inputs", _input_note),
        ("dimensions", _dimension_note),
        ("rules", _because_note),
        ("lets", _no_note),
        ("metrics", _unit_note),
        ("objectives", _no_note),
        ("constraints", _because_note),
        ("teams", _no_note),
    ):
        parts: Sequence[Mapping[str, Any]] = description[section]
        if parts:
            lines += ["", section, *_section_lines(parts, note)]
    if description["legal"]:
        lines += ["", "legal designs, counted exactly"]
        size = max(map(len, description["legal"]))
        lines += [f"  {team:{size}}  {count(number)}" for team, number in description["legal"].items()]
    return lines


def _size_lines(description: Mapping[str, Any]) -> list[str]:
    if description["designs"] is None:
        return paragraph("a continuous space: its designs cannot be counted")
    sizes = [part["count"] for part in description["dimensions"]]
    assert math.prod(sizes) == description["designs"]
    return paragraph(f"{plural(description['designs'], 'design')} = {_product(sizes)}")


def _product(sizes: Sequence[int]) -> str:
    """``4 x 5 x 2``; of many dimensions, equal sizes are gathered: ``2^200``."""
    if len(sizes) <= _FACTORS:
        return " x ".join(f"{size:,}" for size in sizes)
    powers = Counter(sizes)
    return " x ".join(f"{size:,}^{times}" if times > 1 else f"{size:,}" for size, times in powers.items())


def _section_lines(parts: Sequence[Mapping[str, Any]], note: Any) -> list[str]:
    size = min(24, max(len(str(part["name"])) for part in parts))
    lines = []
    for part in parts:
        value = part["value"]
        text = ", ".join(value) if isinstance(value, list) else str(value)
        body = paragraph(f"{part['name']:{size}}  {text}{note(part)}", indent=2, hanging=size + GAP)
        lines += body
        for remark in (part.get("because"), part.get("about")):
            if remark:
                lines += paragraph(str(remark), indent=2 + size + GAP, hanging=0)
    return lines


def _no_note(part: Mapping[str, Any]) -> str:
    return ""


def _because_note(part: Mapping[str, Any]) -> str:
    return "  comes first" if "first" in part else ""


def _unit_note(part: Mapping[str, Any]) -> str:
    known = f"  predicted within {part['error'] * 100:.6g} %" if "error" in part else ""
    known += f"  measured {part['record']}" if "record" in part else ""
    return f"  [{part['unit']}]{known}"


def _input_note(part: Mapping[str, Any]) -> str:
    if part.get("table"):
        return f"  (a row of {part['table']})"
    if part.get("choices"):
        return f"  (one of {', '.join(part['choices'])})"
    return f"  ({part['limits']})" if part.get("limits") else ""


def _dimension_note(part: Mapping[str, Any]) -> str:
    number = "" if part["count"] is None or part["count"] <= 3 else f"  ({part['count']:,})"
    return number + (f"  when {part['when']}, otherwise {part['otherwise']}" if "when" in part else "")
