"""Inputs and dimensions: with the tables, what every expression is finally made of."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath

from dse.errors import InputError, nearest
from dse.expressions import Kind, Table, Type, Value
from dse.expressions.types import BARE, BOOL, STRING
from dse.problem.building import Building
from dse.problem.limits import Limits
from dse.problem.parts import Dimension, Input, Interval, shown
from dse.problem.rows import RowReader, rows_for
from dse.space.nodes import Path
from dse.space.ranges import LIST_LIMIT, Continuous
from dse.space.schema import DimensionDecl, InputDecl, RowTableDecl
from dse.units import Unit, UnitError, parse_quantity, parse_unit, to_base

__all__ = ["build_dimensions", "build_inputs", "dimension_unit", "own_values", "read_defaults"]

_LIKE_QUANTITY = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:(?P<space>\s+)\S+|[^\W\d_]+)\s*")


# -- inputs ----------------------------------------------------------------------------------------


def build_inputs(building: Building) -> dict[str, Input]:
    """The inputs; a text that is a quantity is a number with that unit."""
    inputs: dict[str, Input] = {}
    for name, declared in building.declaration.model.inputs.items():
        path: Path = ("inputs", name, "default")
        if declared.table is not None:
            found = _row_input(building, name, declared, declared.table)
            inputs |= {name: found} if found else {}
            continue
        read = _input_value(building, path, declared.default)
        if read is None:
            continue
        value, unit, type_ = read
        choices = tuple(_choice(choice) for choice in declared.choices or ())
        if choices and value not in choices:
            building.report(
                path,
                f"found {shown(value, unit)}, expected one of the choices{nearest(str(value), map(str, choices))}",
            )
        limits = _limits(building, name, declared, value, unit)
        node = building.names.graph.input(name, type_)
        if type_.kind is Kind.STRING and choices:
            building.names.graph.declare_texts(node, [str(choice) for choice in choices])
        building.names.nodes[name] = node
        inputs[name] = Input(
            name, value, type_, node, unit, choices, declared.about, limits=limits, grow=declared.grow
        )
    return inputs


_BOUNDS = ("at_least", "at_most", "above", "below")


def _limits(
    building: Building, name: str, declared: InputDecl, value: Value, unit: Unit | None
) -> Limits | None:
    """What an input's numbers must be, and whether its default is; None where nothing is asked."""
    path: Path = ("inputs", name)
    given = {key: found for key in _BOUNDS if (found := getattr(declared, key)) is not None}
    asked = [*given, *(["whole"] if declared.whole else []), *(["grow"] if declared.grow is not None else [])]
    if asked and not isinstance(value, float):
        written = building.source((*path, "default"), declared.default)
        building.report_key(
            (*path, asked[0]), f"found {asked[0]!r} beside {written}, expected it beside a number"
        )
        return None
    if declared.whole and unit is not None:
        building.report_key(
            (*path, "whole"), "found 'whole' beside a quantity, expected it beside a plain number"
        )
    if declared.whole and declared.grow is not None and declared.grow % 1:
        building.report(
            (*path, "grow"), f"found {declared.grow}, expected a whole number, as the input is one"
        )
    if not given and not declared.whole:
        return None
    bounds = {key: _bound(building, (*path, key), bound, unit) for key, bound in given.items()}
    limits = Limits(**bounds, whole=declared.whole and unit is None)
    if not limits.allow(value):  # type: ignore[arg-type]  # a number, as was asked above
        building.report((*path, "default"), f"found {shown(value, unit)}, expected {limits.text(unit)}")
    return limits


def _bound(building: Building, path: Path, bound: float | str, unit: Unit | None) -> float | None:
    """A bound in base units; None for what is none, which is reported."""
    expected = "a number" if unit is None else f"a quantity in {unit.text}"
    try:
        quantity = parse_quantity(str(bound))
    except UnitError as error:
        building.report(path, f"found {bound!r}, expected {expected}; {error}")
        return None
    dims, percent = Type.of_unit(quantity.unit).dims, quantity.unit is not None and quantity.unit.percent
    if (quantity.unit is None) != (unit is None) or (
        unit is not None and (dims != Type.of_unit(unit).dims or percent != unit.percent)
    ):
        building.report(path, f"found {bound!r}, expected {expected}, like the default")
        return None
    return quantity.value


def _row_input(building: Building, name: str, declared: InputDecl, table_name: str) -> Input | None:
    """An input that names a row of a table; whether there is such a row is asked once there is a graph."""
    path: Path = ("inputs", name)
    table = _row_table(building, (*path, "table"), table_name)
    if table is None:
        return None
    if declared.choices is not None:
        building.report((*path, "choices"), "found choices beside a table, whose rows are the choices")
    _limits(building, name, declared, declared.default if isinstance(declared.default, str) else "", None)
    text = declared.default if isinstance(declared.default, str) else None
    if text is None:
        written = building.source((*path, "default"), declared.default)
        building.report(
            (*path, "default"), f'found {written}, expected the name of a row; quote it: "{written}"'
        )
        return None
    node = building.names.graph.input(name, STRING)
    building.names.graph.declare_texts(node, [*map(str, table.axes[0]), text])
    building.names.nodes[name] = node
    building.names.tables_of[name] = table_name
    return Input(name, text, STRING, node, about=declared.about, table=table_name)


def _row_table(building: Building, path: Path, name: str) -> Table | None:
    """The table of rows called ``name``; None where there is none, which is reported."""
    table = building.names.graph.tables.get(name)
    if table is not None and not table.keyed:
        return table
    tables = [n for n, t in building.declaration.model.tables.items() if isinstance(t, RowTableDecl)]
    what = "a table keyed by dimensions" if table else "no table of that name"
    building.report(path, f"found {name!r}, {what}; expected a table of rows{nearest(name, tables)}")
    return None


def _input_value(
    building: Building, path: Path, default: float | bool | str
) -> tuple[Value, Unit | None, Type] | None:
    if isinstance(default, bool):
        return default, None, BOOL
    if not isinstance(default, str):
        number = building.plain(path, default, None)
        return None if number is None else (number, None, BARE)
    text = default
    try:
        quantity = parse_quantity(text)
    except UnitError as error:
        like = _LIKE_QUANTITY.fullmatch(text)
        if like and (like["space"] or "did you mean" in str(error)):
            building.report(path, str(error))
            return None
        return text, None, STRING
    if quantity.unit is None:
        return text, None, STRING  # a number in quotes is a text
    return quantity.value, quantity.unit, Type.of_unit(quantity.unit)


def _choice(value: object) -> Value:
    if isinstance(value, str):
        try:
            quantity = parse_quantity(value)
        except UnitError:
            return value
        return quantity.value if quantity.unit is not None else value
    return value if isinstance(value, bool) else float(value)  # type: ignore[arg-type]


def read_defaults(
    building: Building, inputs: Mapping[str, Input], folder: str, *, code: bool
) -> dict[str, RowReader]:
    """The readers of tables. Checks that every default is a row; one that is a path in the file's folder is read."""
    tables = building.names.graph.tables
    readers = {
        name: RowReader(declared.reader, folder, len(tables[name].axes[0]))
        for name, declared in building.declaration.model.tables.items()
        if isinstance(declared, RowTableDecl) and declared.reader is not None
    }
    for name, known in inputs.items():
        if known.table is not None:
            try:
                graph = rows_for(
                    building.names.graph, inputs, readers, [name], code=code, base=FilePath(folder)
                )
            except InputError as error:
                building.report(("inputs", name, "default"), str(error))
            else:
                tables[known.table] = graph.tables[known.table]
    return readers


# -- dimensions ------------------------------------------------------------------------------------


def build_dimensions(building: Building) -> tuple[Dimension, ...]:
    """The dimensions, without their conditions."""
    dimensions = []
    for name, declared in building.declaration.model.dimensions.items():
        unit = dimension_unit(declared)
        values: Sequence[Value] | Interval | None
        rows: Sequence[Value] | None = None
        if declared.table is not None:
            table = _row_table(building, ("dimensions", name, "table"), declared.table)
            if table is None:
                continue
            rows = table.axes[0]
            values = rows if declared.choices is None else tuple(map(str, declared.choices))
            building.names.tables_of[name] = declared.table
        else:
            values = own_values(building, name, declared, unit)
            if values is None:
                continue
        node = _node(building, name, values if rows is None else rows, unit)
        otherwise = 0
        interval = values if isinstance(values, Interval) else None
        choices: Sequence[Value] = () if isinstance(values, Interval) else values
        dimension = Dimension(
            name,
            choices,
            building.names.graph[node].type,
            node,
            unit,
            declared.table,
            None,
            0,
            interval,
            declared.about,
        )
        if declared.otherwise is not None:
            otherwise = _otherwise(building, dimension, declared)
            dimension = Dimension(
                name,
                choices,
                dimension.type,
                node,
                unit,
                declared.table,
                None,
                otherwise,
                interval,
                declared.about,
            )
        building.names.nodes[name] = node
        dimensions.append(dimension)
    return tuple(dimensions)


def dimension_unit(declared: DimensionDecl) -> Unit | None:
    """The unit of a dimension's numbers; None for plain numbers."""
    unit = parse_unit(declared.unit) if declared.unit is not None else None
    return None if unit is not None and unit.text == "1" else unit


def own_values(
    building: Building, name: str, declared: DimensionDecl, unit: Unit | None
) -> Sequence[Value] | Interval | None:
    """The values that a dimension lists or its interval; None where there are none (reported, or of a table)."""
    ranged = building.declaration.ranges.get(name)
    if isinstance(ranged, Continuous):
        low, high = (to_base(repr(end), unit) for end in (ranged.lo, ranged.hi))
        return Interval(low, high, ranged.log)
    if ranged is not None and len(ranged) > LIST_LIMIT:
        count = f"found {len(ranged):,} values, expected at most {LIST_LIMIT:,}"
        building.report(("dimensions", name, "range"), f"{count}; give it a step or scale: pow2")
        return None
    if ranged is not None:
        return array("d", (to_base(repr(v), unit) for v in ranged) if unit else map(float, ranged))
    if declared.choices is None:
        return None
    path: Path = ("dimensions", name, "choices")
    values = [
        choice if isinstance(choice, str) and unit is None else building.plain((*path, at), choice, unit)
        for at, choice in enumerate(declared.choices)
    ]
    return None if any(value is None for value in values) else tuple(v for v in values if v is not None)


def _node(building: Building, name: str, values: Sequence[Value] | Interval, unit: Unit | None) -> int:
    graph = building.names.graph
    first = 0.0 if isinstance(values, Interval) else values[0]
    if isinstance(first, str):
        assert not isinstance(values, Interval)
        return graph.dimension(name, STRING, [str(value) for value in values])
    if isinstance(first, bool):
        return graph.dimension(name, BOOL)
    return graph.dimension(name, Type.of_unit(unit))


def _otherwise(building: Building, dimension: Dimension, declared: DimensionDecl) -> int:
    path: Path = ("dimensions", dimension.name, "otherwise")
    wanted: object = declared.otherwise
    if dimension.type.kind is Kind.NUMBER:
        wanted = building.plain(path, declared.otherwise, dimension.unit)
    for at, value in enumerate(dimension.values):
        if value == wanted and isinstance(value, bool) == isinstance(wanted, bool):
            return at
    labels = [dimension.label(at) for at in range(min(len(dimension.values), 1000))]
    building.report(
        path,
        f"found {declared.otherwise}, expected one of the choices{nearest(str(declared.otherwise), labels)}",
    )
    return 0
