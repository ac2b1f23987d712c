"""Merge a space file over the one it extends: maps by key, lists and scalars replace, ``null`` deletes."""

from __future__ import annotations

from dse.errors import Diagnostic, nearest
from dse.space.nodes import Mapping, Node, Path, Scalar, Sequence, show_path
from dse.space.tables import columns_of

__all__ = ["long_form", "merge", "overlay_rows", "row_mapping"]

_FORMS = ("table", "choices", "range")
_RANGE_KEYS = ("step", "scale", "count")


def merge(base: Mapping, over: Mapping) -> tuple[Mapping, list[Diagnostic]]:
    """``base`` with ``over`` laid on it, and deletions of what is not there.

    A shorthand counts as the mapping it stands for, a list of cells as a mapping by column. A table's new
    ``file`` replaces its rows, a dimension's new ``table``, ``choices`` or ``range`` replaces the old form.
    """
    found: list[Diagnostic] = []
    return _merge(base, over, (), found), found


def overlay_rows(table: Mapping, rows: Mapping, over: Mapping) -> Mapping:
    """The rows of a table's file with the rows written beside it laid on them."""
    columns = columns_of(table)
    entries, keys = dict(rows.entries), dict(rows.keys)
    for name, row in over.entries.items():
        below = entries.get(name)
        if below is not None and _is_null(row):
            del entries[name], keys[name]
            continue
        if isinstance(below, Sequence) and isinstance(row, Mapping):
            below = row_mapping(below, columns)
        if isinstance(below, Mapping) and isinstance(row, Mapping):
            entries[name] = _merge(below, row, ("tables", "", "rows", name), [])
        else:
            entries[name] = row
        keys.setdefault(name, over.keys[name])
    return Mapping(over.location, entries, keys)


def row_mapping(row: Sequence, columns: dict[str, str]) -> Mapping:
    """A row that is a list of cells as a mapping by column."""
    entries = dict(zip(columns, row.items, strict=False))
    return Mapping(row.location, entries, {name: node.location for name, node in entries.items()})


def long_form(node: Node, path: Path) -> Node:
    """The mapping that the shorthand of an input or a dimension stands for; any other node unchanged."""
    key = {"inputs": "default", "dimensions": "choices"}.get(str(path[0])) if len(path) == 2 else None
    short = Scalar if key == "default" else Sequence
    if key is None or not isinstance(node, short) or (isinstance(node, Scalar) and node.value is None):
        return node
    return Mapping(node.location, {key: node}, {key: node.location})


def _merge(base: Mapping, over: Mapping, path: Path, found: list[Diagnostic]) -> Mapping:
    entries, keys = dict(base.entries), dict(base.keys)
    for old in _replaced(over, path):
        entries.pop(old, None)
    columns = columns_of(base) if len(path) == 2 and path[0] == "tables" else {}
    for name, value in over.entries.items():
        here = (*path, name)
        below = entries.get(name)
        if _is_null(value):
            if name not in entries and _holds_rows(path):
                entries[name], keys[name] = value, over.keys[name]  # may delete a row of the table's file
                continue
            if name not in base.entries and not _holds_cells(path):
                hint = nearest(name, base.entries)
                message = f"found null, which deletes, but there is no {name!r} to delete{hint}"
                found.append(Diagnostic(over.keys[name], show_path(here), message))
            entries.pop(name, None)
            continue
        entries[name], keys[name] = value, over.keys[name]
        if below is None:
            continue
        before, after = long_form(below, here), long_form(value, here)
        if columns and name == "rows":
            before = _by_column(before, after, columns)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            entries[name] = _merge(before, after, here, found)
    return Mapping(over.location, entries, {name: keys[name] for name in entries})


def _by_column(rows: Node, over: Node, columns: dict[str, str]) -> Node:
    """The old rows, as mappings where the new file gives some of a row's cells by column."""
    if not isinstance(rows, Mapping) or not isinstance(over, Mapping):
        return rows
    entries = {
        name: row_mapping(row, columns)
        if isinstance(row, Sequence) and isinstance(over.entries.get(name), Mapping)
        else row
        for name, row in rows.entries.items()
    }
    return Mapping(rows.location, entries, rows.keys)


def _is_null(node: Node | None) -> bool:
    return isinstance(node, Scalar) and node.value is None


def _holds_rows(path: Path) -> bool:
    return len(path) == 3 and path[0] == "tables" and path[2] == "rows"


def _holds_cells(path: Path) -> bool:
    return len(path) >= 4 and path[0] == "tables" and path[2] == "rows"


def _replaced(over: Mapping, path: Path) -> tuple[str, ...]:
    """Keys of the old mapping that the new one makes meaningless."""
    if len(path) != 2:
        return ()
    given = [key for key, node in over.entries.items() if not _is_null(node)]
    if path[0] == "tables" and "file" in given:
        return ("rows", "file")
    if path[0] == "dimensions" and any(form in given for form in _FORMS):
        return (*_FORMS, *_RANGE_KEYS)
    return ()
