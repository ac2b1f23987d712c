"""Where output goes: data to standard output and nothing beside it; notes to standard error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import click

from dse.study.files import csv_text

__all__ = ["as_csv", "as_json", "as_lines", "in_form", "json_text", "note"]


def as_lines(text: Iterable[str]) -> None:
    """Lines for people, to standard output."""
    click.echo("\n".join(text))


def note(text: str) -> None:
    """A remark, to standard error; where that cannot be written, it goes unsaid."""
    with suppress(OSError):
        click.echo(text, err=True)


def as_json(data: Any) -> None:
    """``data`` as JSON to standard output; see :func:`json_text`."""
    click.echo(json_text(data), nl=False)


def in_form(
    form: str,
    *,
    lines: Callable[[], Iterable[str]],
    rows: Callable[[], Sequence[Mapping[str, Any]]],
    data: Callable[[], Any],
) -> None:
    """What ``--format`` asks for: lines for people, rows of the same columns as CSV, or data as JSON."""
    match form:
        case "json":
            as_json(data())
        case "csv":
            table = rows()
            as_csv(list(table[0]), table)
        case _:
            as_lines(lines())


def json_text(data: Any) -> str:
    """``data`` as JSON; infinities and NaN must have been made texts."""
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """A CSV table to standard output, in the form of the files that a search leaves."""
    click.echo(csv_text(columns, rows), nl=False)
