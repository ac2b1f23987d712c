"""Rows of the catalogue by name: ``hardware``, ``model``, ``cluster`` and ``weight_format``.

The tables are CSV files, so that a space reads the same rows as a Python program. Peaks are dense; a rate
is 0 where a chip has no unit for the format, and missing (None) where no figure is public. Memory is what a
program can see. Links and NICs are per chip and direction. ``checked`` says how well a row was verified:
``read`` at its source, ``part-read``, or ``recall``. In a cluster, 0 takes the hardware's node and NIC or the
calibrated latency; ``rack`` is the group of chips inside which the fabric has full bisection.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dse.errors import InputError, nearest
from dse.units import parse_quantity, parse_unit

from .columns import COLUMNS
from .huggingface import read_config

__all__ = ["Row", "cluster", "hardware", "model", "names", "weight_format"]


class Row:
    """One row: ``name``, and every column as an attribute, a float in base units, a text, or None if missing."""

    __slots__ = ("_cells", "_kind", "_name")

    def __init__(self, kind: str, name: str, cells: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_cells", MappingProxyType(dict(cells)))

    @property
    def name(self) -> str:
        """The row's name."""
        name: str = object.__getattribute__(self, "_name")
        return name

    def __getattr__(self, column: str) -> Any:
        if column.startswith("__"):
            raise AttributeError(column)
        if column not in self._cells:
            raise AttributeError(
                f"{self._kind} {self.name!r} has no {column!r}{nearest(column, self._cells)}"
            )
        return self._cells[column]

    def __setattr__(self, column: str, value: object) -> None:
        raise AttributeError(f"rows of the catalogue do not change; use replace({column}=...)")

    def __delattr__(self, column: str) -> None:
        raise AttributeError("rows of the catalogue do not change")

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self._cells.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and (self._kind, self.name, dict(self)) == (
            other._kind,
            other.name,
            dict(other),
        )

    def __hash__(self) -> int:
        return hash((self._kind, self.name, tuple(self)))

    def __reduce__(self) -> tuple[type[Row], tuple[str, str, dict[str, Any]]]:
        return Row, (self._kind, self.name, dict(self))

    def __repr__(self) -> str:
        return f"<{self._kind} {self.name}>"

    def replace(self, **cells: Any) -> Row:
        """The row with other values in some columns.

        Raises:
            InputError: there is no such column.
        """
        for column in cells:
            if column not in self._cells:
                raise InputError(f"{self._kind} has no column {column!r}{nearest(column, self._cells)}")
        return Row(self._kind, self.name, {**dict(self), **cells})


def names(table: str) -> tuple[str, ...]:
    """The names of the rows of ``hardware``, ``models``, ``clusters`` or ``formats``, in the order of the file.

    Raises:
        InputError: there is no such table.
    """
    if table not in COLUMNS:
        raise InputError(f"unknown table {table!r}{nearest(table, COLUMNS)}")
    return tuple(_table(table))


def hardware(name: str) -> Row:
    """A chip by name.

    Raises:
        InputError: it is not in the catalogue; the message names the nearest and every known one.
    """
    return _find("hardware", "hardware", name)


def cluster(name: str) -> Row:
    """A cluster's topology by name; ``standard`` takes the hardware's own node and NIC.

    Raises:
        InputError: it is not in the catalogue; the message names the nearest and every known one.
    """
    return _find("clusters", "cluster", name)


def weight_format(name: str) -> Row:
    """A storage format of weights by name; :mod:`.formats` explains its columns.

    Raises:
        InputError: it is not in the catalogue; the message names the nearest and every known one.
    """
    return _find("formats", "format", name)


def model(name: str | Path) -> Row:
    """A model by name, or from a Hugging Face ``config.json`` given by its path.

    Raises:
        InputError: it is neither in the catalogue nor a file, or the file describes an architecture that
            is not known.
    """
    if isinstance(name, Path) or _is_path(name):
        path = Path(name)
        cells = {
            column: value if column == "source" else float(value)
            for column, value in read_config(path).items()
        }
        return Row("model", path.parent.name or path.stem, cells)
    return _find("models", "model", name)


def _is_path(name: str) -> bool:
    return name.endswith(".json") or "/" in name or "\\" in name


def _find(table: str, kind: str, name: str) -> Row:
    rows = _table(table)
    if name in rows:
        return rows[name]
    hint = nearest(name, rows)
    hint = f"{hint} Known: " if "did you mean" in hint else "; known: "
    path = ", or the path of a Hugging Face config.json" if kind == "model" else ""
    raise InputError(f"unknown {kind} {name!r}{hint}{', '.join(rows)}{path}")


@cache
def _table(table: str) -> Mapping[str, Row]:
    """The rows of one file by name."""
    columns = COLUMNS[table]
    kind = table.removesuffix("s")
    text = (Path(__file__).parent / f"{table}.csv").read_text(encoding="utf-8")
    first, *records = csv.reader(io.StringIO(text, newline=""))
    return {
        cells[0]: Row(
            kind,
            cells[0],
            {column: _cell(cell, columns[column]) for column, cell in zip(first[1:], cells[1:], strict=True)},
        )
        for cells in records
    }


def _cell(text: str, unit: str) -> float | str | None:
    if unit == "text":
        return text
    if not text:
        return None
    read = parse_quantity(text)
    assert read.unit is None or read.unit.dims == parse_unit(unit).dims, text
    return read.value
