"""Check the cells of tables against the kind of their column."""

from __future__ import annotations

from collections.abc import Iterator

from dse.errors import Diagnostic, nearest
from dse.space.nodes import Mapping, Node, Path, Scalar, Sequence, describe, find, show_path
from dse.space.tables import columns_of, keys_of
from dse.units import Unit, UnitError, parse_quantity, parse_unit

__all__ = ["check_tables"]


def check_tables(root: Mapping) -> Iterator[Diagnostic]:
    """What is wrong with the rows and cells of every table. What the schema reports is passed over."""
    tables = root.entries.get("tables")
    if not isinstance(tables, Mapping):
        return
    for name, table in tables.entries.items():
        if not isinstance(table, Mapping):
            continue
        path: Path = ("tables", name, "rows")
        rows = table.entries.get("rows")
        if rows is None or (isinstance(rows, Mapping) and not rows.entries):
            if "file" not in table.entries:
                where = rows.location if rows else tables.keys[name]
                yield Diagnostic(
                    where, show_path(path), "found no rows, expected at least one (rows or file)"
                )
        elif not isinstance(rows, Mapping):
            yield _diagnostic(rows, path, "a mapping of rows")
        elif "keys" in table.entries:
            yield from _check_keys(table, name)
            unit = find(table, ("unit",))
            kind = _Kind(unit.text) if isinstance(unit, Scalar) else None
            if keys_of(table):
                yield from _check_keyed(rows, path, keys_of(table), kind)
        else:
            yield from _check_rows(rows, path, columns_of(table))


class _Kind:
    """What a column accepts. ``expected`` describes it for messages."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.unit: Unit | None = None
        self.expected = {"text": "a text (in quotes if it looks like a number)", "flag": "true or false"}.get(
            text, ""
        )
        if text == "texts":
            self.expected = "a list of texts"
        elif not self.expected:
            try:
                self.unit = parse_unit(text)
            except UnitError:
                self.expected = ""  # the schema reports the unit; accept any cell
            else:
                self.expected = "a number" if text == "1" else f"a number or a quantity in {text}"

    def problem(self, node: Node) -> str | None:
        """What was expected instead of a cell, or None when it fits."""
        if isinstance(node, Scalar) and node.value is None:
            return None
        if self.unit is not None:
            return self._number_problem(node, self.unit)
        if self.text == "texts":
            items = node.items if isinstance(node, Sequence) else (node,)
            fits = isinstance(node, Sequence) and all(_is(item, str) for item in items)
        elif self.text in {"text", "flag"}:
            fits = _is(node, str if self.text == "text" else bool)
        else:
            fits = isinstance(node, Scalar)
        return None if fits else self.expected

    def _number_problem(self, node: Node, unit: Unit) -> str | None:
        if not isinstance(node, Scalar) or isinstance(node.value, bool):
            return self.expected
        if not isinstance(node.value, str):
            return None
        try:
            quantity = parse_quantity(node.value)
        except UnitError as error:
            return f"{self.expected}; {error}"
        if quantity.unit is None:
            return f"{self.expected}, without quotes"
        return None if quantity.unit.dims == unit.dims else self.expected


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


def _is(node: Node, kind: type) -> bool:
    return isinstance(node, Scalar) and isinstance(node.value, kind)


def _diagnostic(node: Node, path: Path, expected: str) -> Diagnostic:
    return Diagnostic(node.location, show_path(path), f"found {describe(node)}, expected {expected}")


def _check_keys(table: Mapping, name: str) -> Iterator[Diagnostic]:
    keys = keys_of(table)
    for index, key in enumerate(keys):
        if key in keys[:index]:
            where = find(table, ("keys", index))
            if where:
                yield _diagnostic(where, ("tables", name, "keys", index), "every key once")


def _check_rows(rows: Mapping, path: Path, columns: dict[str, str]) -> Iterator[Diagnostic]:
    if not columns:
        return  # the schema reports what is wrong with the columns
    kinds = {name: _Kind(text) for name, text in columns.items()}
    for name, row in rows.entries.items():
        if isinstance(row, Sequence):
            if len(row.items) != len(columns):
                names = ", ".join(columns)
                message = f"found a row of {len(row.items)}, expected {_cells(len(columns))} ({names})"
                yield Diagnostic(row.location, show_path((*path, name)), message)
                continue
            cells = dict(zip(columns, row.items, strict=True))
        elif isinstance(row, Mapping):
            cells = row.entries
        else:
            yield _diagnostic(row, (*path, name), f"a list of {_cells(len(columns))} or a mapping")
            continue
        for column, cell in cells.items():
            if column not in kinds:
                assert isinstance(row, Mapping)
                message = f"found the column {column!r}, expected a declared one{nearest(column, columns)}"
                yield Diagnostic(row.keys[column], show_path((*path, name, column)), message)
                continue
            problem = kinds[column].problem(cell)
            if problem:
                yield _diagnostic(cell, (*path, name, column), problem)


def _check_keyed(node: Node, path: Path, keys: tuple[str, ...], kind: _Kind | None) -> Iterator[Diagnostic]:
    """Check one level of nested rows; ``keys`` are those still to come."""
    if not keys:
        problem = "a cell, not another level (keys names every level)" if isinstance(node, Mapping) else None
        problem = problem or (kind.problem(node) if kind else None)
        if problem:
            yield _diagnostic(node, path, problem)
    elif not isinstance(node, Mapping):
        yield _diagnostic(node, path, f"a mapping whose keys are values of {keys[0]!r}")
    else:
        for name, below in node.entries.items():
            yield from _check_keyed(below, (*path, name), keys[1:], kind)
