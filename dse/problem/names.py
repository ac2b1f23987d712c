"""The names that expressions of a space may use, and what each resolves to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dse.errors import ExpressionError, nearest
from dse.expressions import Graph, Table

__all__ = ["Broken", "Names", "View"]


class Broken(ExpressionError):
    """A name could not be built; its own error is reported where it is declared."""


@dataclass
class Names:
    """Everything declared. ``nodes`` holds what is built so far; ``broken`` what could not be.

    ``open`` says that there may be more metrics: those of a Python cost function that was not traced.
    """

    graph: Graph
    kinds: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    tables_of: dict[str, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    open: bool = False

    def view(self, allowed: Iterable[str], why: str) -> View:
        """The names of the ``allowed`` kinds; ``why`` is said of any other."""
        return View(self, frozenset(allowed), why)


@dataclass(frozen=True)
class View:
    """The part of the names that one expression may use; a :class:`dse.expressions.Scope`."""

    names: Names
    allowed: frozenset[str]
    why: str
    hidden: frozenset[str] = frozenset()

    @property
    def graph(self) -> Graph:
        """The graph that nodes are added to."""
        return self.names.graph

    def declares(self, name: str) -> bool:
        """Whether ``name`` is declared, which hides a unit of the same spelling."""
        return name in self.names.kinds

    def without(self, hidden: Iterable[str], why: str) -> View:
        """The same view without some names."""
        return View(self.names, self.allowed, why, self.hidden | frozenset(hidden))

    def value(self, name: str) -> int:
        """The node of a dimension, input, let or metric."""
        kind = self._kind(name)
        if kind == "table":
            raise ExpressionError(self._read_as(name))
        return self._node(name)

    def column(self, name: str, column: str) -> int:
        """The node of ``name.column``, the cell of a table dimension's row."""
        kind = self._kind(name)
        if kind == "table":
            raise ExpressionError(self._read_as(name))
        node = self._node(name)
        table_name = self.names.tables_of.get(name)
        if kind not in ("dimension", "input") or table_name is None:
            raise ExpressionError(
                f"{kind} {name!r} has no columns; only a dimension or an input with a table has"
            )
        table = self.graph.tables[table_name]
        if column not in table.columns:
            raise ExpressionError(
                f"table {table_name!r} has no column {column!r}{nearest(column, table.columns)}"
            )
        return self.graph.cell(table_name, column, (node,))

    def table(self, name: str) -> Table:
        """The keyed table called ``name``."""
        kind = self._kind(name)
        if kind != "table":
            raise ExpressionError(f"{kind} {name!r} is not a table keyed by dimensions")
        if name in self.names.broken:
            raise Broken("")
        table = self.graph.tables[name]
        if not table.keyed:
            raise ExpressionError(self._read_as(name))
        return table

    def _kind(self, name: str) -> str:
        kind = self.names.kinds.get(name)
        if kind is None and self.names.open and "metric" in self.allowed:
            raise Broken("")
        if kind is None:
            for dimension, node in self.names.nodes.items():
                if name in (self.graph.texts(node) or ()):
                    raise ExpressionError(f"{name!r} is a value of {dimension}; a text stands in quotes")
            raise ExpressionError(f"unknown name {name!r}{nearest(name, self._usable())}")
        if kind not in self.allowed or name in self.hidden:
            raise ExpressionError(f"{kind} {name!r} cannot be used here: {self.why}")
        return kind

    def _usable(self) -> list[str]:
        return [
            name
            for name, kind in self.names.kinds.items()
            if kind in self.allowed and name not in self.hidden
        ]

    def _node(self, name: str) -> int:
        node = self.names.nodes.get(name)
        if node is None:
            raise Broken("")
        return node

    def _read_as(self, name: str) -> str:
        if name in self.names.broken:
            raise Broken("")
        table = self.graph.tables[name]
        if table.keyed:
            return f"table {name!r} is read as {name}[{', '.join(table.keys)}]"
        owners = [dimension for dimension, owner in self.names.tables_of.items() if owner == name]
        column = next(iter(table.columns))
        read = f"{owners[0]}.{column}" if owners else "the column of a dimension with `table: " + name + "`"
        kind = self.names.kinds[owners[0]] if owners else "dimension"
        return f"table {name!r} is read through its {kind}, as {read}"
