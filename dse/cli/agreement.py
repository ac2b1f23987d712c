"""How a model agrees with measurements, for people: the tables of a report, and the plugin that makes it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from dse.cli import emit
from dse.cli.text import aligned, paragraph, wrapped

if TYPE_CHECKING:
    from dse.study.agreement import Cell, Report, Table

__all__ = ["find_validation", "report_lines", "tell", "write"]


def find_validation(space: str) -> ModuleType:
    """The module by which a space compares itself with measurements; of a file or a run, that of what it extends.

    Raises:
        InputError: the space has none, or it cannot be loaded.
    """
    from dse.errors import InputError, nearest
    from dse.problem.plugins import entry_points

    points = entry_points("dse.validation")
    if space not in points and Path(space).exists():
        space = _extended(space, points)
    if space not in points:
        raise InputError(f"space {space!r} has no measurements to compare with{nearest(space, points)}")
    try:
        return import_module(points[space].value)
    except ImportError as error:
        raise InputError(f"validation of {space!r} cannot be loaded: {error}") from error


def _extended(space: str, known: Collection[str]) -> str:
    """The space with measurements that a file extends, or that of a run; the file itself where there is none."""
    from dse.cli.loading import is_run, load_space
    from dse.study.claim import read_manifest

    source = space
    settings: Sequence[tuple[str, str]] = ()
    if is_run(space):
        manifest = read_manifest(Path(space))
        source, settings = manifest.source, manifest.overrides
    if source in known:
        return source
    if not source:
        return space
    problem = load_space(source, settings, code=None)
    name = next((name for name in problem.extends if name in known), None)
    if name is None:
        return space
    emit.note(f"note: this is about {name}, which {source} extends; its changes do not count here")
    return name


def tell(report: Report, form: str) -> None:
    """Prints the report as lines or JSON."""
    from dse.study.agreement import report_data

    if form == "json":
        emit.as_json(report_data(report))
    else:
        emit.as_lines(report_lines(report))


def report_lines(report: Report) -> list[str]:
    """The report for people."""
    lines = paragraph(report.title)
    for warning in report.warnings:
        lines += ["", *paragraph(f"warning: {warning}")]
    for table in report.tables:
        lines += ["", *paragraph(table.title), *_table_lines(table)]
    return lines


def write(path: Path, text: str) -> None:
    """Writes a file that was asked for, and says so.

    Raises:
        StudyError: it cannot be written.
    """
    from dse.study.files import write_atomic

    write_atomic(path, text)
    emit.note(f"wrote {path}")


def _table_lines(table: Table) -> list[str]:
    kinds = [kind for _, kind in table.columns]
    names = [name.replace("_", " ") for name, _ in table.columns]
    shown = table.rows[: table.shown]
    rows = [names, *([_shown(cell, kind) for cell, kind in zip(row, kinds, strict=True)] for row in shown)]
    right = {at for at, kind in enumerate(kinds) if kind != "text"}
    lines = (
        wrapped(rows, right=right, indent=2, header=True)
        if kinds[-1] == "text"
        else aligned(rows, right=right)
    )
    if not shown:
        lines = []
    elif len(table.rows) > table.shown:
        lines.append(f"  and {len(table.rows) - table.shown} more; --json has all")
    for note in table.notes:
        lines += paragraph(note, indent=2, hanging=0)
    return lines


def _shown(cell: Cell, kind: str) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return "-"
    if isinstance(cell, str):
        return cell
    if kind == "count":
        return f"{int(cell):,}"
    if kind in {"percent", "hundredths"}:
        return f"{100.0 * cell:.1f}{' %' if kind == 'percent' else ''}"
    return f"{cell:.4g}" if abs(cell) < 1e-2 or abs(cell) >= 1e4 else f"{cell:.3f}".rstrip("0").rstrip(".")
