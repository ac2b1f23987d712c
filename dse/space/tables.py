"""Tables: read CSV files into the rows of a table, and check every cell against its column."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dse.errors import Diagnostic, Location, nearest
from dse.space.document import read_text
from dse.space.nodes import Mapping, Node, Scalar, Sequence, find
from dse.space.scalars import read_plain

__all__ = ["CSV_LIMIT", "ROW_LIMIT", "columns_of", "keys_of", "read_csv_table"]

CSV_LIMIT = 64 * 1024 * 1024
"""Bytes of one CSV file."""

ROW_LIMIT = 1_000_000
"""Rows of one CSV file."""


def columns_of(table: Node | None) -> dict[str, str]:
    """The columns of a row table with their units as written; empty for anything else."""
    columns = find(table, ("columns",)) if table else None
    if not isinstance(columns, Mapping):
        return {}
    return {name: node.text for name, node in columns.entries.items() if isinstance(node, Scalar)}


def keys_of(table: Node | None) -> tuple[str, ...]:
    """The names that key a table; empty for a row table or anything else."""
    keys = find(table, ("keys",)) if table else None
    if not isinstance(keys, Sequence):
        return ()
    return tuple(item.text for item in keys.items if isinstance(item, Scalar))


def read_csv_table(path: Path, table: Mapping) -> tuple[Mapping, list[Diagnostic]]:
    """The rows of a table's CSV file, as the nodes that inline rows would give, and what is wrong with them.

    A row table has a column of row names first, then its declared columns in any order. A keyed table has one
    column for each key and then ``value``; where the table names the column of its cells itself, the file may have
    others, which are left alone, and rows without a cell. Texts of a ``texts`` column are separated by ``;``. An empty cell
    is missing.

    Raises:
        SpaceError: the file cannot be read at all.
    """
    text = read_text(path, CSV_LIMIT, "split the table")
    reading = _Reading(str(path))
    records = reading.records(text)
    start = next(records, None)
    if start is None:
        reading.report(1, "found an empty file, expected a line of column names")
        return Mapping(Location(str(path), 1, 1), {}, {}), reading.found
    keys = keys_of(table)
    if keys:
        kind = find(table, ("unit",))
        named = find(table, ("value",))
        value = named.text if isinstance(named, Scalar) else None
        rows = reading.keyed(
            start[1], records, keys, kind.text if isinstance(kind, Scalar) else "1", value=value
        )
    else:
        rows = reading.rows(start[1], records, columns_of(table))
    if not rows.entries and not reading.found:
        reading.report(1, "found no rows, expected at least one below the column names")
    return rows, reading.found


@dataclass(slots=True)
class _Reading:
    file: str
    found: list[Diagnostic] = field(default_factory=list)

    def report(self, line: int, message: str) -> None:
        self.found.append(Diagnostic(Location(self.file, line), "", message))

    def records(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """The line number and stripped cells of every record that is not blank."""
        reader = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
        count = line = 0
        while True:
            line = reader.line_num + 1
            try:
                record = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                self.report(line, f"found broken CSV ({error}), expected comma-separated cells")
                return
            cells = [cell.strip() for cell in record]
            if not any(cells):
                continue
            count += 1
            if count > ROW_LIMIT + 1:
                self.report(
                    line, f"found more than {ROW_LIMIT:,} rows, expected at most that; split the table"
                )
                return
            yield line, cells

    def rows(
        self, header: list[str], records: Iterable[tuple[int, list[str]]], columns: dict[str, str]
    ) -> Mapping:
        """The rows of a row table, cells in the order of ``columns``."""
        if not self._check_header(header, header[:1], columns):
            return self._mapping()
        positions = [header.index(name) for name in columns]
        kinds = list(columns.values())
        rows = self._mapping()
        for line, cells in self._complete(records, header):
            where, name = Location(self.file, line), cells[0]
            if not name:
                self.report(line, "found an empty row name, expected a name")
            elif name in rows.entries:
                self.report(line, f"found the row {name!r} again, expected it once")
            else:
                items = [
                    self._cell(where, cells[at], kind) for at, kind in zip(positions, kinds, strict=True)
                ]
                rows.entries[name] = Sequence(where, tuple(items))
                rows.keys[name] = where
        return rows

    def keyed(
        self,
        header: list[str],
        records: Iterable[tuple[int, list[str]]],
        keys: tuple[str, ...],
        kind: str,
        *,
        value: str | None = None,
    ) -> Mapping:
        """The nested rows of a keyed table; ``value`` is the column of its cells in a file that has others too."""
        wanted = dict.fromkeys((*keys, value or "value"), "")
        if not self._check_header(header, [], wanted, others=value is not None):
            return self._mapping()
        positions = [header.index(name) for name in keys]
        at_value = header.index(value or "value")
        rows = self._mapping()
        for line, cells in self._complete(records, header):
            where = Location(self.file, line)
            path = [cells[at] for at in positions]
            if value is not None and not cells[at_value]:
                continue
            below = rows
            for step in path[:-1]:
                inner = below.entries.setdefault(step, Mapping(where, {}, {}))
                below.keys.setdefault(step, where)
                assert isinstance(inner, Mapping)
                below = inner
            if not all(path):
                self.report(line, "found an empty key, expected a name")
            elif path[-1] in below.entries:
                self.report(line, f"found the cell {', '.join(path)} again, expected it once")
            else:
                below.entries[path[-1]] = self._cell(where, cells[at_value], kind)
                below.keys[path[-1]] = where
        return rows

    def _mapping(self) -> Mapping:
        return Mapping(Location(self.file, 1), {}, {})

    def _check_header(
        self, header: list[str], first: list[str], columns: dict[str, str], *, others: bool = False
    ) -> bool:
        names = header[len(first) :]
        before = len(self.found)
        for name in dict.fromkeys(names):
            if name not in columns and not others:
                self.report(1, f"found the column {name!r}, expected a declared one{nearest(name, columns)}")
            if names.count(name) > 1:
                self.report(1, f"found the column {name!r} {names.count(name)} times, expected it once")
        missing = [name for name in columns if name not in names]
        if missing:
            shown = ", ".join(map(repr, missing[:8]))
            hint = nearest(missing[0], [name for name in names if name not in columns]) if others else ""
            hint = hint if hint.startswith("; did you mean") else ""
            self.report(1, f"found no column {shown}, expected {', '.join(first + list(columns))}{hint}")
        return len(self.found) == before

    def _complete(
        self, records: Iterable[tuple[int, list[str]]], header: list[str]
    ) -> Iterator[tuple[int, list[str]]]:
        for line, cells in records:
            if len(cells) == len(header):
                yield line, cells
            else:
                self.report(
                    line,
                    f"found a row of {len(cells)}, expected {len(header)} cells ({', '.join(header[:8])})",
                )

    def _cell(self, where: Location, text: str, kind: str) -> Node:
        if kind == "texts" and text:
            parts = [part.strip() for part in text.split(";")]
            return Sequence(where, tuple(Scalar(where, part, part) for part in parts if part))
        if kind == "text" and text:
            return Scalar(where, text, text)
        try:
            return Scalar(where, read_plain(text), text)
        except ValueError as error:
            self.report(where.line, f"found {error}")
            return Scalar(where, None, text)
