"""Tables of measurements: a CSV file with named columns, read with the place of everything that is wrong."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dse.errors import Diagnostic, Location, SpaceError, nearest

__all__ = ["Measurements", "Record", "read_measurements"]

SIZE_LIMIT = 256 * 1024 * 1024
"""Bytes of one file."""

REPORTED = 20
"""Findings that are told of one file; more are counted."""

FEW = 3
"""Missing columns that are told one by one."""


@dataclass(frozen=True, slots=True)
class Record:
    """One row: the line it starts on, its cells by column, and the numbers among them (NaN where empty)."""

    line: int
    cells: dict[str, str]
    numbers: dict[str, float]


@dataclass(frozen=True, slots=True)
class Measurements:
    """A table as read: its file, columns in order, and rows in order."""

    file: str
    columns: tuple[str, ...]
    records: tuple[Record, ...]


def read_measurements(
    path: Path,
    *,
    required: Collection[str],
    numbers: Collection[str],
    texts: Collection[str] = (),
    least: int = 1,
    smallest: str = "",
) -> Measurements:
    """The rows of a CSV file; a byte-order mark, quoted cells and blank lines are as usual.

    Args:
        path: the file, UTF-8.
        required: columns that must be there; further ones are kept.
        numbers: columns that hold a number or nothing.
        texts: words that such a column may hold instead of a number.
        least: the rows that there must be.
        smallest: what is said besides where columns are missing, such as what the smallest table looks like.

    Raises:
        SpaceError: the file cannot be read as such a table; every finding has its line and column.
    """
    reading = _Reading(str(path), numbers, texts)
    header, rows = reading.header(_text(path), required, smallest)
    records = [record for line, cells in rows if (record := reading.record(line, cells, header))]
    if len(records) < least and not reading.found:
        last = rows[-1][0] if rows else 1
        reading.report(last, 1, "", f"found {_count(len(records))}, expected at least {_count(least)}")
    if reading.found:
        raise SpaceError(_shortened(reading.found, reading.file))
    return Measurements(reading.file, tuple(header), tuple(records))


@dataclass(slots=True)
class _Reading:
    file: str
    numbers: Collection[str]
    texts: Collection[str]
    found: list[Diagnostic] = field(default_factory=list)

    def report(self, line: int, column: int, key: str, message: str) -> None:
        self.found.append(Diagnostic(Location(self.file, line, column), key, message))

    def header(
        self, text: str, required: Collection[str], smallest: str
    ) -> tuple[list[str], list[tuple[int, list[str]]]]:
        """The names of the columns and the rows below them; raises when they are not the expected ones."""
        try:
            rows = list(_rows(text))
        except csv.Error as error:
            raise SpaceError([Diagnostic(Location(self.file), "", f"found broken CSV: {error}")]) from error
        if not rows:
            raise SpaceError(
                [Diagnostic(Location(self.file, 1, 1), "", "found an empty file, expected column names")]
            )
        names = [cell.strip() for cell in rows[0][1]]
        self._missing([name for name in dict.fromkeys(required) if name not in names], names, smallest)
        for at, name in enumerate(names):
            if name and name in names[:at]:
                self.report(1, at + 1, name, "found the column again, expected it once")
        if self.found:
            raise SpaceError(_shortened(self.found, self.file))
        return names, rows[1:]

    def _missing(self, missing: list[str], names: list[str], smallest: str) -> None:
        """Says which columns are missing: each alone while they are few, and what a table needs."""
        further = f"\n{smallest}" if smallest else ""
        if len(missing) > FEW:
            named = ", ".join(missing)
            self.report(1, 1, "", f"found the columns {', '.join(names)}; expected also {named}{further}")
            return
        for at, name in enumerate(missing):
            last = further if at + 1 == len(missing) else ""
            self.report(1, 1, name, f"found no column {name!r}{_near(name, names)}{last}")

    def record(self, line: int, cells: list[str], header: list[str]) -> Record | None:
        """One row, or None when it has not the header's length."""
        if len(cells) != len(header):
            self.report(line, 1, "", f"found {len(cells)} cells, expected {len(header)}")
            return None
        named = dict(zip(header, (cell.strip() for cell in cells), strict=True))
        record = Record(line, named, {})
        for at, name in enumerate(header):
            if name in self.numbers:
                try:
                    record.numbers[name] = _number(named[name], self.texts)
                except ValueError:
                    self.report(line, at + 1, name, f"found {named[name]!r}, expected a number")
        return record


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            raw = stream.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise SpaceError(
            [Diagnostic(Location(str(path)), "", f"cannot be read: {error.strerror}")]
        ) from error
    if len(raw) > SIZE_LIMIT:
        raise SpaceError([Diagnostic(Location(str(path)), "", f"found more than {SIZE_LIMIT >> 20} MiB")])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SpaceError(
            [Diagnostic(Location(str(path), line), "", "found text that is not UTF-8")]
        ) from error


def _rows(text: str) -> Iterable[tuple[int, list[str]]]:
    """The starting line and the cells of every record that is not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield line, cells
        line = reader.line_num + 1


def _number(text: str, texts: Collection[str]) -> float:
    if not text or text in texts:
        return math.nan
    if "_" in text:  # Python reads 1_000, a spreadsheet does not
        raise ValueError(text)
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _near(name: str, header: list[str]) -> str:
    hint = nearest(name, header)
    return hint.replace("did you mean", "is it").replace("; known:", "; the columns are") if hint else ""


def _count(rows: int) -> str:
    return "no rows" if not rows else "one row" if rows == 1 else f"{rows} rows"


def _shortened(found: list[Diagnostic], file: str) -> list[Diagnostic]:
    if len(found) <= REPORTED:
        return found
    return [
        *found[:REPORTED],
        Diagnostic(Location(file), "", f"and {len(found) - REPORTED:,} more like these"),
    ]
