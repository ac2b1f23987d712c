"""What is told of how a model agrees with measurements: tables that a command prints, or gives as data.

A space offers this through the entry point group ``dse.validation``: a module with ``validate(request)`` and
``calibrate(request)``, each returning a :class:`Report`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

__all__ = ["Calibration", "Cell", "Report", "Table", "Validation", "report_data"]

Cell: TypeAlias = str | int | float | None
"""A number that is a float is a fraction or a ratio, by its column's kind; None is undefined."""


@dataclass(frozen=True, slots=True)
class Validation:
    """What ``dse validate`` asks for: files, the columns to group by, and whether predictions are wanted."""

    data: Path | None = None
    memory: Path | None = None
    by: tuple[str, ...] = ("source",)
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Calibration:
    """What ``dse calibrate`` asks for. ``leave_out``: also fit without each source and predict it."""

    data: Path
    out: Path
    gemm: Path | None = None
    comm: Path | None = None
    leave_out: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns. Each column has a name and a kind: ``text``, ``count``, ``percent``, ``hundredths`` (percent
    whose sign stands in the title), ``number``, or ``value``, which is text that ends where numbers do.

    Texts that may be long stand in the last column. Of a long table, people are shown the rows up to ``shown``.
    """

    name: str
    title: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    shown: int = 1000


@dataclass(frozen=True, slots=True)
class Report:
    """What was found. ``predictions`` is a whole CSV table, columns and rows, or None; ``files`` by path. ``warnings``
    are told before all else.
    """

    title: str
    tables: tuple[Table, ...]
    scores: Mapping[str, Cell] = field(default_factory=dict)
    predictions: tuple[Sequence[str], Sequence[Mapping[str, Any]]] | None = None
    files: Mapping[Path, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def report_data(report: Report) -> dict[str, Any]:
    """The report as JSON knows it; numbers that are not finite are null."""
    return {
        "title": report.title,
        "warnings": list(report.warnings),
        "scores": {name: _known(cell) for name, cell in report.scores.items()},
        "tables": {
            table.name: [
                {name: _known(cell) for (name, _), cell in zip(table.columns, row, strict=True)}
                for row in table.rows
            ]
            for table in report.tables
        },
    }


def _known(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
