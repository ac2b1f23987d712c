"""Where output goes: data to standard output and nothing beside it; notes to standard error."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

__all__ = ["as_csv", "as_json", "csv_text", "lines", "note"]


def lines(text: Iterable[str]) -> None:
    """Lines for people, to standard output."""
    click.echo("\n".join(text))


def note(text: str) -> None:
    """A remark, to standard error."""
    click.echo(text, err=True)


def as_json(data: Any) -> None:
    """``data`` as JSON; infinities and NaN must have been made texts."""
    click.echo(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False))


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """A CSV table to standard output; see :func:`csv_text`."""
    click.echo(csv_text(columns, rows), nl=False)


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A CSV table: truth values as in YAML, missing values empty, numbers with all their digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(column)) for column in columns])
    return text.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2.0**53 else repr(value)
    return "" if value is None else str(value)
