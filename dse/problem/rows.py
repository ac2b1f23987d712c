"""Rows of tables that inputs name, and rows that a space's own function reads from a file which an input names."""

from __future__ import annotations

import difflib
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path

from dse.errors import DseError, InputError, nearest
from dse.expressions import Cell, Column, Graph, Kind, Table
from dse.problem.code import import_function
from dse.problem.parts import Input
from dse.units import UnitError, parse_quantity, to_base

__all__ = ["RowReader", "rows_for"]

_SHOWN = 12  # rows that a message lists


@dataclass(frozen=True, slots=True)
class RowReader:
    """A table's ``import``: the function that reads a row from a path, and how many rows the file itself declares.

    The function is named like a cost function, relative to ``folder``. It takes a :class:`pathlib.Path` and returns a
    mapping from columns to cells as a space file has them: numbers in the column's unit, quantities as text, texts,
    truth values, lists of texts, or None where there is none. Columns that it leaves out are missing cells.
    """

    function: str
    folder: str
    rows: int


def rows_for(
    graph: Graph,
    inputs: Mapping[str, Input],
    readers: Mapping[str, RowReader],
    changed: Iterable[str],
    *,
    code: bool = True,
    base: Path = Path(),
) -> Graph:
    """The graph whose tables have the rows that inputs name, those read from files behind the declared ones.

    Args:
        changed: the inputs whose rows are looked up, and read anew where they are paths. Rows that no input names any
            more are dropped.
        code: whether the reading functions may be imported.
        base: the folder that relative paths start from.

    Raises:
        InputError: there is no such row, or it cannot be read.
    """
    read: dict[tuple[str, str], tuple[Cell, ...]] = {}
    for name in changed:
        known = inputs[name]
        assert known.table is not None
        table, reader, text = graph.tables[known.table], readers.get(known.table), str(known.value)
        declared = table.axes[0] if reader is None else table.axes[0][: reader.rows]
        if text in declared:
            continue
        if reader is None or not _like_path(text):
            if reader is not None and (base / text).is_dir():
                raise InputError(
                    f"input {name!r} names a row of {table.name} or a file, but {text!r} is a folder; give the path of its "
                    "config.json"
                )
            raise InputError(_no_row(name, text, table.name, [str(row) for row in declared], reader))
        if not code:
            raise InputError(f"{text!r} is read by {reader.function}, and no code may be run here")
        read[table.name, text] = _read(reader, table, text, base)
    tables = [_with_rows(graph.tables[name], reader, inputs, read) for name, reader in readers.items()]
    if all(table is graph.tables[table.name] for table in tables):
        return graph
    other = graph.with_tables(tables)
    for known in inputs.values():
        if known.table is not None:
            other.declare_texts(known.node, map(str, other.tables[known.table].axes[0]))
    return other


def _with_rows(
    table: Table,
    reader: RowReader,
    inputs: Mapping[str, Input],
    read: Mapping[tuple[str, str], tuple[Cell, ...]],
) -> Table:
    """A table with the declared rows, and those that inputs name, in the order of the inputs."""
    named = [str(known.value) for known in inputs.values() if known.table == table.name]
    declared = table.axes[0][: reader.rows]
    extra = [text for text in dict.fromkeys(named) if text not in declared]
    places = table.positions[0]
    rows: dict[str, tuple[Cell, ...]] = {}
    for text in extra:
        if (table.name, text) in read:
            rows[text] = read[table.name, text]
        elif text in places:
            rows[text] = tuple(column.cells[places[text]] for column in table.columns.values())
    axis = (*declared, *rows)
    columns = {
        name: replace(column, cells=(*column.cells[: reader.rows], *(cells[at] for cells in rows.values())))
        for at, (name, column) in enumerate(table.columns.items())
    }
    same = axis == table.axes[0] and columns == table.columns
    return table if same else Table(table.name, table.keys, (axis,), columns)


def _like_path(text: str) -> bool:
    return "/" in text or text.endswith(".json")


def _no_row(name: str, text: str, table: str, rows: list[str], reader: RowReader | None) -> str:
    """What is wrong with the name of a row: the nearest spelling, and the rows that there are."""
    hint = nearest(text, rows)
    close = hint if hint.startswith("; did you mean") else ""
    listed = rows
    if len(rows) > _SHOWN:
        folded = text.casefold()
        ranked = sorted(
            rows, key=lambda row: -difflib.SequenceMatcher(None, folded, row.casefold()).ratio()
        )  # the nearest of them, in the order of the table
        listed = [row for row in rows if row in set(ranked[:_SHOWN])]
    more = f" and {len(rows) - len(listed)} more" if len(rows) > len(listed) else ""
    path = "; or give the path of a file" if reader is not None else ""
    sign = "" if close else ";"
    return f"input {name!r} names a row of {table}, but got {text!r}{close}{sign} known: {', '.join(listed)}{more}{path}"


# -- reading a row -----------------------------------------------------------------------------------


def _read(reader: RowReader, table: Table, text: str, base: Path) -> tuple[Cell, ...]:
    """The cells of the row in the file at ``text``, in the order of the table's columns."""
    path = base / Path(text).expanduser()
    if not _exists(path) and _IDENTIFIER.fullmatch(text):
        rows = table.axes[0][: reader.rows]
        close = nearest(text.partition("/")[2], map(str, rows))
        hint = close if close.startswith("; did you mean") else ""
        raise InputError(
            f"{text}: found no file; of a Hugging Face id, download its config.json and give the path of that{hint}"
        )
    _check_file(path, text, f"which {reader.function} would read as a row of {table.name}")
    function = import_function(reader.function, reader.folder)
    try:
        with redirect_stdout(sys.stderr):  # what the user's code prints is no part of a command's output
            returned: object = function(path)
    except DseError as error:
        told = str(error)
        if told.startswith(f"{path}:"):
            told = told.removeprefix(f"{path}:")
            raise InputError(f"{text}:{told}") from error
        raise InputError(f"{text}: {told}") from error
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise InputError(
            f"{text} cannot be read: {reader.function} raised {type(error).__name__}: {error}"
        ) from error
    if not isinstance(returned, Mapping):
        raise InputError(
            f"{reader.function} returned {type(returned).__name__} for {text}, expected a mapping of columns"
        )
    for column in returned:
        if column not in table.columns:
            hint = nearest(str(column), table.columns)
            raise InputError(
                f"{reader.function} returned the column {column!r}, no column of {table.name}{hint}"
            )
    try:
        return tuple(_cell(name, column, returned.get(name)) for name, column in table.columns.items())
    except InputError as error:
        raise InputError(f"{text}: {reader.function} returned {error}") from None


_IDENTIFIER = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]*[\w-](?<!\.json)")
"""``owner/name``, as models are called on the Hugging Face hub."""


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return True  # what it is is told later


def _check_file(path: Path, text: str, wanted: str) -> None:
    """Makes sure that a path, which was given as ``text``, is a regular file.

    Raises:
        InputError: it is not; says what it is.
    """
    try:
        if not path.exists():
            raise InputError(f"{text}: found no file, {wanted}")
        if path.is_dir():
            inside = f"; give the path of its config.json: {text.rstrip('/')}/config.json"
            hint = inside if (path / "config.json").is_file() else "; give the path of a config.json"
            raise InputError(f"{text}: found a folder, expected a file, {wanted}{hint}")
        if path.samefile(os.devnull):
            raise InputError(f"{text}: found an empty file, expected one {wanted}")
        if not path.is_file():
            raise InputError(f"{text}: found a device or a pipe, expected a regular file, {wanted}")
    except (
        OSError,
        ValueError,
    ):  # a null character or a name too long, or a folder that may not be looked into
        raise InputError(f"{text!r}: found no file that can be looked at, {wanted}") from None


def _cell(name: str, column: Column, value: object) -> Cell:
    """A cell from what the function returned."""
    if value is None:
        return None
    kind = column.type.kind
    if kind is Kind.STRING and isinstance(value, str):
        return value
    if kind is Kind.BOOL and isinstance(value, bool):
        return value
    if kind is Kind.TEXTS and isinstance(value, (list, tuple)):
        return tuple(map(str, value))
    number = _number(column, value) if kind is Kind.NUMBER else None
    if number is None:
        unit = f" in {column.unit.text}" if column.unit is not None and column.unit.text != "1" else ""
        raise InputError(f"{value!r} for the column {name!r}, expected {kind.value}{unit}")
    return number


def _number(column: Column, value: object) -> float | None:
    """A number in base units; None for what is none, or has another unit."""
    try:
        if isinstance(value, str):
            quantity = parse_quantity(value)
            fits = quantity.unit is not None and quantity.unit.dims == column.type.dims
            return quantity.value if fits else None
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            return None
        return to_base(repr(float(value)), column.unit) if column.unit is not None else float(value)
    except (UnitError, OverflowError):
        return None
