"""Apply ``--set name=value`` to a space's tree: an input, a table cell, or anything on a dotted path."""

from __future__ import annotations

from dataclasses import replace

from dse.errors import Diagnostic, Location, SpaceError, nearest
from dse.space.document import parse
from dse.space.merging import long_form
from dse.space.nodes import Mapping, Node, Path, Scalar, Sequence, describe, find
from dse.space.scalars import read_plain
from dse.space.schema import KeyedTableDecl, RowTableDecl, SpaceDecl, keys_of_model
from dse.space.tables import columns_of, keys_of
from dse.units import UnitError, parse_quantity

__all__ = ["apply_override"]

_OPEN_SECTIONS = frozenset({"constraints", "objectives"})  # an override may add one
_TABLE_KEYS = frozenset({*keys_of_model(RowTableDecl), *keys_of_model(KeyedTableDecl)})
_KINDS = ("dimensions", "lets", "tables", "metrics", "rules", "constraints", "teams")


class _Unknown(Exception):
    """Nothing has the name; the message says what was found and expected."""


def apply_override(root: Mapping, name: str, text: str) -> Mapping:
    """The tree with one value replaced.

    ``name`` is an input, or a dotted path such as ``constraints.latency``, ``tables.rates.npu.fp16`` or
    ``tables.formats.int8.loss`` (a cell by row and column; the step ``rows`` may be left out). Names that
    contain dots are recognised. ``text`` is typed like a plain YAML scalar; in brackets, like a YAML list or
    mapping. ``null`` deletes.

    Raises:
        SpaceError: nothing has the name, or an input is given another kind of value or unit.
    """
    where = Location(f"--set {name}={text}")
    try:
        value = _read_value(where, text.strip())
        path = _resolve(root, name.strip())
        if path[0] == "inputs" and path[2:] in {(), ("default",)}:
            path = (*path[:2], "default")
            _check_kind(find(root, path), value)
        if len(path) == 3 and path[0] == "tables" and path[2] == "file":
            root = _without_rows(root, path)
        changed = _with_value(root, path, (), value)
    except _Unknown as error:
        raise SpaceError([Diagnostic(where, "", str(error))]) from None
    assert isinstance(changed, Mapping)
    return changed


def _read_value(where: Location, text: str) -> Node:
    if text[:1] in {"[", "{"}:
        node, found = parse(text, where.file)
        if found:
            raise SpaceError(found)
        return node
    try:
        return Scalar(where, read_plain(text), text)
    except ValueError as error:
        raise _Unknown(f"found {error}") from None


# ---------------------------------------------------------------------------------------- what a name means


def _resolve(root: Mapping, name: str) -> Path:
    inputs = root.entries.get("inputs")
    known = list(inputs.entries) if isinstance(inputs, Mapping) else []
    if name in known:
        return ("inputs", name)
    section, dot, rest = name.partition(".")
    if not dot and section in SpaceDecl.model_fields and section not in {"dse", "name", "extends", "inputs"}:
        return (section,)
    if not dot:
        for kind in _KINDS:
            if find(root, (kind, name)):
                raise _Unknown(
                    f"found {name!r}, expected an input; to change {kind}.{name}, write its whole path"
                )
        dimensions = find(root, ("dimensions",))
        also = list(dimensions.entries) if isinstance(dimensions, Mapping) else []
        raise _Unknown(f"found {name!r}, expected an input or a dimension{nearest(name, [*known, *also])}")
    if section not in SpaceDecl.model_fields or section in {"dse", "extends"}:
        sections = [field for field in SpaceDecl.model_fields if field not in {"dse", "extends"}]
        raise _Unknown(f"found {section!r}, expected a section of a space file{nearest(section, sections)}")
    entries = root.entries.get(section)
    if not isinstance(entries, Mapping):
        entries = Mapping(root.location, {}, {})
    entry, rest = _longest(entries, rest)
    if entry is None:
        if section not in _OPEN_SECTIONS:
            expected = f"a name under {section!r}{nearest(rest.partition('.')[0], entries.entries)}"
            raise _Unknown(f"found {rest!r}, expected {expected}")
        return (section, rest)
    node = entries.entries[entry]
    if section == "tables" and isinstance(node, Mapping):
        return (section, entry, *_resolve_cell(node, rest))
    node = long_form(node, (section, entry))
    if section == "dimensions" and rest.partition(".")[0].isdecimal() and find(node, ("choices",)):
        rest = f"choices.{rest}"  # a position in a list that may be written without 'choices'
    return (section, entry, *_resolve_steps(node, rest))


def _longest(mapping: Mapping, rest: str) -> tuple[str | None, str]:
    """The longest key that ``rest`` starts with, and what follows it; None when there is none."""
    for key in sorted(mapping.entries, key=len, reverse=True):
        if rest == key or rest.startswith(key + "."):
            return key, rest[len(key) + 1 :]
    return None, rest


def _resolve_steps(node: Node, rest: str) -> Path:
    """The steps of a dotted path below a node. The last key may be new; the schema judges it."""
    if not rest:
        return ()
    if isinstance(node, Mapping):
        key, after = _longest(node, rest)
        if key is not None:
            return (key, *_resolve_steps(node.entries[key], after))
        if "." not in rest:
            return (rest,)
        step = rest.partition(".")[0]
        raise _Unknown(f"found {step!r}, expected a key{nearest(step, node.entries)}")
    step, _, after = rest.partition(".")
    if isinstance(node, Sequence) and step.isdecimal() and int(step) < len(node.items):
        return (int(step), *_resolve_steps(node.items[int(step)], after))
    size = (
        f"a position from 0 to {len(node.items) - 1}" if isinstance(node, Sequence) else "the end of the path"
    )
    raise _Unknown(f"found {step!r}, expected {size}")


def _resolve_cell(table: Mapping, rest: str) -> Path:
    rows = table.entries.get("rows")
    if not isinstance(rows, Mapping):
        return _resolve_steps(table, rest)
    first, _, after = rest.partition(".")
    if first in _TABLE_KEYS and (first != "rows" and _longest(rows, rest)[0] is None):
        return _resolve_steps(table, rest)
    if first == "rows":
        rest = after
    if not rest:
        return ("rows",)
    keys = keys_of(table)
    return ("rows", *(_keyed_steps(rows, rest, keys) if keys else _row_steps(rows, rest, columns_of(table))))


def _row_steps(rows: Mapping, rest: str, columns: dict[str, str]) -> Path:
    row, column = _longest(rows, rest)
    if row is None:
        step = rest.rpartition(".")[0] or rest
        raise _Unknown(f"found {step!r}, expected a row{nearest(step, rows.entries)}")
    if column and column not in columns:
        raise _Unknown(f"found {column!r}, expected a column{nearest(column, columns)}")
    node = rows.entries[row]
    if not column:
        return (row,)
    index = list(columns).index(column)
    if isinstance(node, Sequence) and index >= len(node.items):
        raise _Unknown(f"found {column!r}, expected a cell; the row {row!r} has only {len(node.items)}")
    return (row, index if isinstance(node, Sequence) else column)


def _keyed_steps(rows: Mapping, rest: str, keys: tuple[str, ...]) -> Path:
    """One step for each key; cells that are not there yet may be given."""
    node: Node = rows
    steps: list[str] = []
    while rest and len(steps) < len(keys):
        key, after = _longest(node, rest) if isinstance(node, Mapping) else (None, rest)
        if key is None:
            new = [rest] if len(steps) + 1 == len(keys) else rest.split(".")
            steps, rest = [*steps, *new], ""
            break
        assert isinstance(node, Mapping)
        node, rest = node.entries[key], after
        steps.append(key)
    if rest or len(steps) != len(keys):
        raise _Unknown(
            f"found {'.'.join([*steps, rest]).strip('.')!r}, expected one step for each of {', '.join(keys)}"
        )
    return tuple(steps)


# -------------------------------------------------------------------------------------------- the new tree


def _with_value(node: Node | None, path: Path, done: Path, value: Node) -> Node:
    """``node`` with ``value`` at ``path``, sharing everything else; ``done`` is the path to ``node``."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    node = long_form(node, done) if node is not None else None
    if isinstance(node, Sequence):
        items = list(node.items)
        items[int(step)] = _with_value(items[int(step)], rest, (*done, step), value)
        return replace(node, items=tuple(items))
    base = node if isinstance(node, Mapping) else Mapping(value.location, {}, {})
    entries, keys, step = dict(base.entries), dict(base.keys), str(step)
    deletes = not rest and isinstance(value, Scalar) and value.value is None and done[2:3] != ("rows",)
    if not deletes:
        entries[step] = _with_value(entries.get(step), rest, (*done, step), value)
        keys.setdefault(step, value.location)
    elif step in entries:
        del entries[step], keys[step]
    else:
        raise _Unknown(f"found null, which deletes, but there is no {step!r} to delete")
    return replace(base, entries=entries, keys=keys)


def _without_rows(root: Mapping, path: Path) -> Mapping:
    """The tree without the rows of a table whose file is replaced."""
    if find(root, (*path[:2], "rows")) is None:
        return root
    gone = _with_value(root, (*path[:2], "rows"), (), Scalar(root.location, None, "null"))
    assert isinstance(gone, Mapping)
    return gone


def _check_kind(old: Node | None, new: Node) -> None:
    """An input keeps its kind: a number, a truth value, a text or a quantity of the same unit."""
    if not isinstance(old, Scalar) or not isinstance(new, Scalar) or old.value is None:
        return
    before, after = _kind(old), _kind(new)
    if before != after:
        unit = isinstance(old.value, str) and before != "a text"
        expected = f"a quantity like {old.value!r}" if unit else before
        raise _Unknown(f"found {describe(new)}, expected {expected} (the default is {describe(old)})")


def _kind(node: Scalar) -> object:
    value = node.value
    if isinstance(value, str):
        try:
            unit = parse_quantity(value).unit
        except UnitError:
            return "a text"
        return (unit.dims, unit.percent) if unit else "a text"
    return "true or false" if isinstance(value, bool) else "a number"
