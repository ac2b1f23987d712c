"""Tables of given figures, by rows or keyed by dimensions."""

from __future__ import annotations

import math
from collections import abc

from dse.errors import Diagnostic, nearest
from dse.expressions import Cell, Column, Kind, Table, Type, Value
from dse.expressions.types import BOOL, STRING, TEXTS
from dse.problem.building import Building
from dse.problem.leaves import dimension_unit, own_values
from dse.problem.parts import Interval, shown
from dse.space.nodes import Mapping, Node, Path, Scalar, Sequence, number_text, show_path
from dse.space.schema import KeyedTableDecl, RowTableDecl
from dse.units import Unit, from_base, parse_unit

__all__ = ["build_tables"]

_KINDS = {"text": STRING, "flag": BOOL, "texts": TEXTS}


def _column(kind: str) -> tuple[Type, Unit | None]:
    if kind in _KINDS:
        return _KINDS[kind], None
    unit = parse_unit(kind)
    return Type.of_unit(unit), unit


def _cell(
    building: Building, path: Path, cell: object, type_: Type, unit: Unit | None, *, text: str | None = None
) -> Cell:
    if cell is None:
        return None
    if type_.kind is Kind.TEXTS:
        return tuple(str(item) for item in cell) if isinstance(cell, (list, tuple)) else None
    if type_.kind is Kind.NUMBER:
        value = building.plain(path, cell, unit, text)
        return value if isinstance(value, float) else None
    return bool(cell) if type_.kind is Kind.BOOL else str(cell)


def build_tables(building: Building) -> None:
    """The tables, added to the graph. A keyed table's axes are its keys' values, so it may be given sparsely."""
    for name, declared in building.declaration.model.tables.items():
        if isinstance(declared, RowTableDecl):
            table = _row_table(building, name, declared)
            _place_own_rows(building, name, declared)
        else:
            table = _keyed_table(building, name, declared)
        building.names.graph.tables[name] = table


def _row_table(building: Building, name: str, declared: RowTableDecl) -> Table:
    columns = {}
    rows = list(declared.rows.items())
    texts = _row_texts(building, name, declared)
    for at, (column, kind) in enumerate(declared.columns.items()):
        type_, unit = _column(kind)
        cells = tuple(
            _cell(building, ("tables", name, "rows", row, at), cells[at], type_, unit, text=texts[row][at])
            for row, cells in rows
        )
        columns[column] = Column(type_, cells, unit)
    return Table(name, ("row",), (tuple(row for row, _ in rows),), columns)


def _place_own_rows(building: Building, name: str, declared: RowTableDecl) -> None:
    """Notes where the rows stand that a file adds to those of the space that it extends."""
    declaration = building.declaration
    if declaration.model.extends is not None:
        for row in declared.rows:
            place = declaration.locate_key(("tables", name, "rows", row))
            if place.file == str(declaration.path):
                building.locations[f"tables.{name}.rows.{row}"] = place


def _row_texts(building: Building, name: str, declared: RowTableDecl) -> dict[str, list[str | None]]:
    """The source texts of the cells, row by row; looked up once, since there may be a million."""
    rows = building.declaration.node(("tables", name, "rows"))
    texts: dict[str, list[str | None]] = {}
    for row in declared.rows:
        node = rows.entries.get(row) if isinstance(rows, Mapping) else None
        if isinstance(node, Sequence):
            cells: list[Node | None] = list(node.items)
        else:
            cells = [node.entries.get(c) for c in declared.columns] if isinstance(node, Mapping) else []
        own = [number_text(cell) if isinstance(cell, Scalar) else None for cell in cells]
        texts[row] = own + [None] * (len(declared.columns) - len(own))
    return texts


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
    if hint.startswith("; did you mean") and key not in building.declaration.model.inputs:
        path: Path = ("tables", table, "keys", at)
        message = f"{key!r} is no dimension, so its keys are any texts{hint}"
        building.warnings.append(str(Diagnostic(building.declaration.locate(path), show_path(path), message)))


def _axis_values(building: Building, key: str) -> tuple[abc.Sequence[Value], dict[str, int]] | None:
    """The values of the dimension (or the rows of the table) called ``key``, and the number of each text."""
    model = building.declaration.model
    if key in model.inputs and model.inputs[key].table is not None:
        key = str(model.inputs[key].table)
    if key in model.dimensions:
        declared = model.dimensions[key]
        if declared.table is not None:
            key = declared.table
        else:
            values = own_values(building, key, declared, dimension_unit(declared))
            if values is None or isinstance(values, Interval):
                return (), {}
            unit = dimension_unit(declared)
            found = {shown(value, unit): at for at, value in enumerate(values)}
            if unit is not None:
                found |= {shown(from_base(float(value), unit)): at for at, value in enumerate(values)}
            return values, found
    rows = getattr(model.tables.get(key), "rows", None)
    if isinstance(model.tables.get(key), RowTableDecl) and rows is not None:
        return tuple(rows), {row: at for at, row in enumerate(rows)}
    return None
