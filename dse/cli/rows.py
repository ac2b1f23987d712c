"""The rows of the table that an input or a dimension takes its values from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dse.problem import Problem

__all__ = ["row_lines", "table_rows"]


def table_rows(problem: Problem, name: str) -> list[dict[str, Any]]:
    """The rows of the table behind an input or a dimension: name and cells, numbers in the columns' units.

    Raises:
        InputError: there is no such input or dimension, or it has no table.
    """
    from dse.errors import InputError, nearest
    from dse.problem.parts import plain_value

    owners = {one.name: one.table for one in problem.inputs.values() if one.table}
    owners |= {one.name: one.table for one in problem.dimensions if one.table}
    table = owners.get(name)
    if table is None:
        raise InputError(f"{name!r} has no table of rows{nearest(name, owners)}")
    found = problem.graph.tables[table]
    left = next((set(one.values) for one in problem.dimensions if one.name == name), None)
    rows = []
    for at, row in enumerate(found.axes[0]):
        if left is not None and row not in left:
            continue
        cells: dict[str, Any] = {}
        for column, values in found.columns.items():
            cell = values.cells[at]
            if cell is None or isinstance(cell, tuple):
                cells[column] = None if cell is None else list(cell)
            else:
                cells[column] = plain_value(cell, values.unit)
        rows.append({name: row, **cells})
    return rows


def row_lines(problem: Problem, name: str) -> list[str]:
    """The names of the rows, with their title, or what the last column of text says."""
    from dse.cli.text import aligned

    rows = table_rows(problem, name)
    texts = (
        [column for column, cell in rows[0].items() if column != name and isinstance(cell, str)]
        if rows
        else []
    )
    first = texts[-1] if "title" not in texts and texts else "title"
    return aligned([[str(row[name]), str(row.get(first) or "")[:90]] for row in rows], header=False)
