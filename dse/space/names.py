"""Names that expressions use: which are allowed, and that no two kinds declare the same one."""

from __future__ import annotations

import keyword
import unicodedata

from dse.errors import Diagnostic
from dse.expressions.parser import FUNCTIONS
from dse.space.nodes import Mapping, find
from dse.units import is_unit

__all__ = ["check_names", "name_problem"]

_KINDS = {
    "dimensions": "a dimension",
    "inputs": "an input",
    "lets": "a let",
    "tables": "a table",
    "metrics": "a metric",
}
_WORDS = frozenset(word for known in keyword.kwlist for word in (known, known.lower()))
_TEAM_WORDS = frozenset({"about"})  # 'where', the other key of a team, is a function


def name_problem(name: str) -> str | None:
    """What keeps a name out of expressions, as a message; None when nothing does."""
    if not name:
        return None  # an empty key was reported by the reader
    if not name.isidentifier() or unicodedata.normalize("NFKC", name) != name:
        return f"found the name {name!r}, expected letters, digits and underscores, not starting with a digit"
    if name in _WORDS:
        return f"found the name {name!r}, expected one that is no keyword of expressions"
    if name in FUNCTIONS:
        return f"found the name {name!r}, expected one that is no function of expressions"
    return None


def check_names(root: Mapping) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Errors and warnings about the names of dimensions, inputs, lets, tables and metrics."""
    errors: list[Diagnostic] = []
    warnings: list[Diagnostic] = []
    first: dict[str, tuple[str, Diagnostic]] = {}
    for section, kind in _KINDS.items():
        entries = root.entries.get(section)
        if not isinstance(entries, Mapping):
            continue
        for name, where in entries.keys.items():
            key = f"{section}.{name}"
            problem = name_problem(name)
            if problem is None and section == "dimensions" and name in _TEAM_WORDS:
                problem = f"found the name {name!r}, expected another; teams use it as a key of their own"
            if problem:
                errors.append(Diagnostic(where, key, problem))
            elif name in first:
                other, there = first[name]
                message = (
                    f"found {kind} named {name!r}, expected a new name; it is {other} at {there.location}"
                )
                errors.append(Diagnostic(where, key, message))
            elif is_unit(name):
                warnings.append(
                    Diagnostic(where, key, f"the name {name!r} hides the unit {name!r} in expressions")
                )
            first.setdefault(name, (kind, Diagnostic(where, key, "")))
    return errors + _check_columns(root), warnings


def _check_columns(root: Mapping) -> list[Diagnostic]:
    errors = []
    tables = root.entries.get("tables")
    for table in tables.entries if isinstance(tables, Mapping) else ():
        columns = find(root, ("tables", table, "columns"))
        for name, where in columns.keys.items() if isinstance(columns, Mapping) else ():
            problem = name_problem(name)
            if problem:
                errors.append(Diagnostic(where, f"tables.{table}.columns.{name}", problem))
    return errors
