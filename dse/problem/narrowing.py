"""``--set dimension=value,value``: a dimension of which only some values are left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dse.errors import Diagnostic, Location, SpaceError
from dse.expressions import Value
from dse.problem.building import Building
from dse.problem.parts import Dimension, Interval
from dse.problem.values import beside, read_value
from dse.space import nodes
from dse.space.document import parse
from dse.units import format_value

__all__ = ["narrowed"]


def narrowed(
    building: Building, dimensions: Sequence[Dimension], asked: Sequence[tuple[str, str]]
) -> tuple[Dimension, ...]:
    """The dimensions with only the values that were asked for, in the order that they have; without their conditions.

    Args:
        asked: names of dimensions and texts: one value, several with commas between them, or a list in brackets.
            Quantities are read as such. The dimensions as they were are kept in ``building.wide``.
    """
    known = {dimension.name: dimension for dimension in dimensions}
    for name, text in asked:
        if name not in known:
            continue  # the dimension itself is wrong, which was reported
        where = Location(f"--set {name}={text}")
        values, missing = _values(known[name], _texts(building, where, known[name], text))
        for wanted in missing:
            hint = _ends(known[name]) or beside(known[name], wanted)
            building.errors.append(Diagnostic(where, "", f"dimension {name!r} has no value {wanted!r}{hint}"))
        if values and not missing:
            building.wide.setdefault(name, known[name])
            at = known[name].otherwise
            kept = known[name].values[at] if known[name].interval is None else None
            otherwise = values.index(kept) if kept in values else 0
            known[name] = replace(known[name], values=values, otherwise=otherwise, interval=None)
    return tuple(known.values())


def _texts(building: Building, where: Location, dimension: Dimension, text: str) -> list[str]:
    """The values that a text lists; a label that has a comma itself is one value."""
    if text[:1] != "[":
        whole = _place(dimension, text) is not None
        return [text] if whole else [part.strip() for part in text.split(",")]
    try:
        node, found = parse(text, where.file)
    except SpaceError as error:
        building.errors += error.diagnostics
        return []
    building.errors += found
    if found or not isinstance(node, nodes.Sequence):
        return []
    scalars = [item for item in node.items if isinstance(item, nodes.Scalar) and item.value is not None]
    if not scalars or len(scalars) < len(node.items):
        message = f"found {nodes.describe(node)}, expected values of {dimension.name}"
        building.errors.append(Diagnostic(where, "", message))
        return []
    return [nodes.number_text(item) for item in scalars]


def _values(dimension: Dimension, texts: Sequence[str]) -> tuple[tuple[Value, ...], list[str]]:
    """The values meant by the texts, in the dimension's order, and the texts that mean none."""
    found: dict[int | float, Value] = {}
    missing = []
    for text in texts:
        place = _place(dimension, text)
        if place is None:
            missing.append(text)
        else:
            found[place] = place if dimension.interval is not None else dimension.values[int(place)]
    return tuple(found[place] for place in sorted(found)), missing


def _place(dimension: Dimension, text: str) -> int | float | None:
    """Where a value stands among those of its dimension; of a continuous one, the value itself. None: nowhere."""
    wanted = read_value(text, dimension.type, dimension.unit)
    if dimension.interval is not None:
        inside = isinstance(wanted, float) and dimension.interval.low <= wanted <= dimension.interval.high
        return float(wanted) if inside else None
    return next((at for at, value in enumerate(dimension.values) if value == wanted), None)


def _ends(dimension: Dimension) -> str:
    """What a continuous dimension may be."""
    if not isinstance(dimension.interval, Interval):
        return ""
    low, high = (
        format_value(end, dimension.unit, 12) for end in (dimension.interval.low, dimension.interval.high)
    )
    return f", only any from {low} to {high}"
