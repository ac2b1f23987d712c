"""Inputs, tables and dimensions: what every expression is finally made of."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence

from dse.errors import Diagnostic, nearest
from dse.expressions import Cell, Column, Kind, Table, Type, Value
from dse.expressions.types import BARE, BOOL, STRING, TEXTS
from dse.problem.building import Building
from dse.problem.parts import Dimension, Input, Interval, shown
from dse.space.choices import LARGEST_INTEGER
from dse.space.nodes import Path, show_path
from dse.space.ranges import LIST_LIMIT, Continuous
from dse.space.schema import DimensionDecl, KeyedTableDecl, RowTableDecl
from dse.units import Unit, UnitError, from_base, parse_quantity, parse_unit, to_base

__all__ = ["build_dimensions", "build_inputs", "build_tables", "plain_value"]

_LIKE_QUANTITY = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:(?P<space>\s+)\S+|[^\W\d_]+)\s*")


def plain_value(building: Building, path: Path, value: object, unit: Unit | None) -> Value | None:
    """A plain YAML value in base units; text with a unit is a quantity. None when it does not fit (reported)."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        building.report(path, f"found {value}, expected an integer of at most 2^53")
        return None
    try:
        if isinstance(value, (int, float)):
            return to_base(_decimal(building, path, value), unit) if unit else float(value)
        quantity = parse_quantity(str(value))
        if quantity.unit is not None and (unit is None or quantity.unit.dims == unit.dims):
            return quantity.value
    except UnitError as error:
        if unit is not None:
            building.report(path, str(error))
            return None
    except OverflowError:
        building.report(path, f"found {value}, expected a number that fits a double")
        return None
    return str(value)


def _decimal(building: Building, path: Path, value: float) -> str:
    """The number as it was written, for exact conversion."""
    try:
        return building.declaration.text(path)
    except KeyError:
        return repr(value)


# -- inputs ----------------------------------------------------------------------------------------


def build_inputs(building: Building) -> dict[str, Input]:
    """The inputs; a text that is a quantity is a number with that unit."""
    inputs: dict[str, Input] = {}
    for name, declared in building.declaration.model.inputs.items():
        path: Path = ("inputs", name, "default")
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
        node = building.names.graph.input(name, type_)
        if type_.kind is Kind.STRING and choices:
            building.names.graph.declare_texts(node, [str(choice) for choice in choices])
        building.names.nodes[name] = node
        inputs[name] = Input(name, value, type_, node, unit, choices, declared.about)
    return inputs


def _input_value(
    building: Building, path: Path, default: float | bool | str
) -> tuple[Value, Unit | None, Type] | None:
    if isinstance(default, bool):
        return default, None, BOOL
    if not isinstance(default, str):
        number = plain_value(building, path, default, None)
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


# -- tables ----------------------------------------------------------------------------------------

_KINDS = {"text": STRING, "flag": BOOL, "texts": TEXTS}


def _column(kind: str) -> tuple[Type, Unit | None]:
    if kind in _KINDS:
        return _KINDS[kind], None
    unit = parse_unit(kind)
    return Type.of_unit(unit), unit


def _cell(building: Building, path: Path, cell: object, type_: Type, unit: Unit | None) -> Cell:
    if cell is None:
        return None
    if type_.kind is Kind.TEXTS:
        return tuple(str(item) for item in cell) if isinstance(cell, (list, tuple)) else None
    if type_.kind is Kind.NUMBER:
        value = plain_value(building, path, cell, unit)
        return value if isinstance(value, float) else None
    return bool(cell) if type_.kind is Kind.BOOL else str(cell)


def build_tables(building: Building) -> None:
    """The tables, added to the graph. A keyed table's axes are its keys' values, so it may be given sparsely."""
    for name, declared in building.declaration.model.tables.items():
        if isinstance(declared, RowTableDecl):
            table = _row_table(building, name, declared)
        else:
            table = _keyed_table(building, name, declared)
        building.names.graph.tables[name] = table


def _row_table(building: Building, name: str, declared: RowTableDecl) -> Table:
    columns = {}
    rows = list(declared.rows.items())
    for at, (column, kind) in enumerate(declared.columns.items()):
        type_, unit = _column(kind)
        cells = tuple(
            _cell(building, ("tables", name, "rows", row, at), cells[at], type_, unit) for row, cells in rows
        )
        columns[column] = Column(type_, cells, unit)
    return Table(name, ("row",), (tuple(row for row, _ in rows),), columns)


def _keyed_table(building: Building, name: str, declared: KeyedTableDecl) -> Table:
    """A table over the values of its key dimensions; keys that are no dimension's take the rows' own texts."""
    type_, unit = _column(declared.unit)
    given = list(declared.cells())
    axes: list[tuple[Value, ...]] = []
    labels: list[dict[str, int]] = []
    for at, key in enumerate(declared.keys):
        known = _axis_values(building, key)
        if known is None:
            _warn_of_misspelt_key(building, name, at, key)
            own = tuple(dict.fromkeys(keys[at] for keys, _ in given))
            axes.append(own)
            labels.append({text: n for n, text in enumerate(own)})
        else:
            axes.append(tuple(known[0]))
            labels.append(known[1])
    cells: dict[int, Cell] = {}
    unknown: set[Path] = set()
    for keys, cell in given:
        path: Path = ("tables", name, "rows", *keys)
        flat = 0
        for at, (text, axis) in enumerate(zip(keys, labels, strict=True)):
            if text not in axis:
                place = path[: 4 + at]
                message = f"{declared.keys[at]} has no value {text!r}{nearest(text, axis)}"
                if place not in unknown:  # one message for all cells below it
                    building.report_key(place, message)
                unknown.add(place)
                break
            flat = flat * len(axes[at]) + axis[text]
        else:
            cells[flat] = _cell(building, path, cell, type_, unit)
    size = math.prod(map(len, axes))
    if size > 10_000_000:
        building.report_key(
            ("tables", name), f"the table has {size:,} cells over its keys, expected at most 10,000,000"
        )
        size = 0
        axes = [() for _ in axes]
    flat_cells = tuple(cells.get(n) for n in range(size))
    return Table(name, declared.keys, tuple(axes), {"": Column(type_, flat_cells, unit)})


def _warn_of_misspelt_key(building: Building, table: str, at: int, key: str) -> None:
    """A key that names no dimension may be any text, unless that is a slip of the pen."""
    hint = nearest(key, building.declaration.model.dimensions)
    if hint.startswith("; did you mean"):
        path: Path = ("tables", table, "keys", at)
        message = f"{key!r} is no dimension, so its keys are any texts{hint}"
        building.warnings.append(str(Diagnostic(building.declaration.locate(path), show_path(path), message)))


def _axis_values(building: Building, key: str) -> tuple[Sequence[Value], dict[str, int]] | None:
    """The values of the dimension (or the rows of the table) called ``key``, and the number of each text."""
    model = building.declaration.model
    if key in model.dimensions:
        declared = model.dimensions[key]
        if declared.table is not None:
            key = declared.table
        else:
            values = _own_values(building, key, declared, _unit(declared))
            if values is None or isinstance(values, Interval):
                return (), {}
            unit = _unit(declared)
            found = {shown(value, unit): at for at, value in enumerate(values)}
            if unit is not None:
                found |= {shown(from_base(float(value), unit)): at for at, value in enumerate(values)}
            return values, found
    rows = getattr(model.tables.get(key), "rows", None)
    if isinstance(model.tables.get(key), RowTableDecl) and rows is not None:
        return tuple(rows), {row: at for at, row in enumerate(rows)}
    return None


# -- dimensions ------------------------------------------------------------------------------------


def build_dimensions(building: Building) -> tuple[Dimension, ...]:
    """The dimensions, without their conditions."""
    dimensions = []
    for name, declared in building.declaration.model.dimensions.items():
        unit = _unit(declared)
        values: Sequence[Value] | Interval | None
        if declared.table is not None:
            table = building.names.graph.tables.get(declared.table)
            if table is None or table.keyed:
                tables = [
                    n for n, t in building.declaration.model.tables.items() if isinstance(t, RowTableDecl)
                ]
                what = "a table keyed by dimensions" if table else "no table of that name"
                message = f"found {declared.table!r}, {what}; expected a table of rows{nearest(declared.table, tables)}"
                building.report(("dimensions", name, "table"), message)
                continue
            values = table.axes[0]
            building.names.tables_of[name] = declared.table
        else:
            values = _own_values(building, name, declared, unit)
            if values is None:
                continue
        node = _node(building, name, values, unit)
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


def _unit(declared: DimensionDecl) -> Unit | None:
    unit = parse_unit(declared.unit) if declared.unit is not None else None
    return None if unit is not None and unit.text == "1" else unit


def _own_values(
    building: Building, name: str, declared: DimensionDecl, unit: Unit | None
) -> Sequence[Value] | Interval | None:
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
        choice
        if isinstance(choice, str) and unit is None
        else plain_value(building, (*path, at), choice, unit)
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
        wanted = plain_value(building, path, declared.otherwise, dimension.unit)
    for at, value in enumerate(dimension.values):
        if value == wanted and isinstance(value, bool) == isinstance(wanted, bool):
            return at
    labels = [dimension.label(at) for at in range(min(len(dimension.values), 1000))]
    building.report(
        path,
        f"found {declared.otherwise}, expected one of the choices{nearest(str(declared.otherwise), labels)}",
    )
    return 0
