"""Writing graph nodes as text again, for explanations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache

from dse.expressions.graph import Graph, Node
from dse.expressions.types import Flavor
from dse.units import Dims, Unit, UnitError, dims_text, format_value, parse_quantity, parse_unit

__all__ = ["Writing", "format_typed", "readable_unit", "render"]

_INFIX = {
    "or": ("or", 1), "and": ("and", 2), "lt": ("<", 4), "le": ("<=", 4), "eq": ("==", 4), "ne": ("!=", 4),
    "add": ("+", 5), "sub": ("-", 5), "mul": ("*", 6), "div": ("/", 6), "pow": ("**", 8),
}  # fmt: skip


def render(
    graph: Graph, root: int, names: Mapping[int, str] | None = None, *, longest: int | None = None
) -> str:
    """The text of ``root``; see :class:`Writing`."""
    return Writing(graph, names, longest=longest).text(root)


class Writing:
    """Writes nodes of a graph as text, each part of them once.

    A node in ``names`` (other than the one asked for) is written as its name. A part whose text has more than ``longest``
    characters is written as ``...``: a cost function shares its parts, and written out each time they are used, they may
    grow to any length.
    """

    def __init__(
        self, graph: Graph, names: Mapping[int, str] | None = None, *, longest: int | None = None
    ) -> None:
        self._graph, self._names, self._longest = graph, names or {}, longest
        self._done: dict[int, tuple[str, int]] = {}

    def text(self, root: int) -> str:
        """The text of one node."""
        self._write_below(root)
        return _write(self._graph, self._graph[root], self._done)[0]

    def _write_below(self, root: int) -> None:
        """Writes every part of a node that is not yet written."""
        graph, done = self._graph, self._done
        open_ = [*graph[root].args]
        while open_:
            number = open_[-1]
            if number in done:
                open_.pop()
                continue
            if name := self._names.get(number):
                done[number] = (name, 9)
                continue
            missing = [part for part in graph[number].args if part not in done]
            if missing:
                open_ += missing
                continue
            written = _write(graph, graph[number], done)
            long = self._longest is not None and len(written[0]) > self._longest
            done[number] = ("...", 9) if long else written


def _write(graph: Graph, node: Node, done: Mapping[int, tuple[str, int]]) -> tuple[str, int]:
    """The text of one node and how tightly it binds."""
    if node.op == "const":
        return _constant(node)
    if node.op in ("input", "dimension", "measured"):
        return str(node.data), 9
    if node.op in ("position", "alias"):
        return done[node.args[0]]
    if node.op == "cell":
        table, column = node.data
        keys = ", ".join(done[a][0] for a in node.args)
        return (f"{keys}.{column}" if column else f"{table}[{keys}]"), 9
    if node.op in _INFIX:
        sign, level = _INFIX[node.op]
        left, right = (done[a] for a in node.args)
        if sign in ("<", "<=") and graph[node.args[0]].op == "const":
            left, right, sign = right, left, sign.replace("<", ">")  # a > b is kept as b < a
        least = (9, 7) if node.op == "pow" else (5, 5) if level == 4 else (level, level + 1)
        return f"{_within(left, least[0])} {sign} {_within(right, least[1])}", level
    if node.op == "neg":
        return f"-{_within(done[node.args[0]], 7)}", 7
    if node.op == "not":
        return f"not {_within(done[node.args[0]], 3)}", 3
    if node.op == "where":
        condition, yes, no = (done[a] for a in node.args)
        return f"{_within(yes, 1)} if {_within(condition, 1)} else {no[0]}", 0
    if node.op == "contains":
        texts, text = (done[a] for a in node.args)
        return f"{_within(text, 5)} in {_within(texts, 5)}", 4
    return f"{node.op}({', '.join(done[a][0] for a in node.args)})", 9


def _within(part: tuple[str, int], level: int) -> str:
    return part[0] if part[1] >= level else f"({part[0]})"


def _constant(node: Node) -> tuple[str, int]:
    """A constant in as many digits as it takes to read it back, and how tightly it binds."""
    if not isinstance(node.data, float):
        return (repr(node.data) if isinstance(node.data, str) else str(node.data).lower()), 9
    unit, name = readable_unit(node.data, node.type.dims), ""
    if node.type.flavor is Flavor.PERCENT:
        unit, name = parse_unit("percent"), " percent"
    for digits in (6, 15, 17):
        text = format_value(node.data, unit, digits)
        text = text.removesuffix(" %") + name
        with suppress(UnitError):  # fewer digits may round past the largest number
            if parse_quantity(text).value == node.data:
                break
    return text, 7 if text.startswith("-") else 9


def format_typed(value: object, node: Node) -> str:
    """A value of ``node`` for people: with its unit, truth values and texts as they are written in YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        unit = (
            parse_unit("percent")
            if node.type.flavor is Flavor.PERCENT
            else readable_unit(value, node.type.dims)
        )
        return format_value(value, unit)
    if isinstance(value, tuple):
        return "[" + ", ".join(value) + "]"
    return str(value)


def readable_unit(value: float, dims: Dims) -> Unit:
    """A unit of ``dims`` in which ``value`` (base units) reads well: milliseconds, gigabytes, teraflop per second."""
    best, *prefixed = _units_of(dims)
    if not dims or not value or not math.isfinite(value):
        return best
    for unit in prefixed:
        size, best_size = abs(value) / float(unit.scale), abs(value) / float(best.scale)
        if (size >= 1 and (best_size < 1 or size < best_size)) or (
            size < 1 and best_size < 1 and size > best_size
        ):
            best = unit
    return best


@lru_cache(maxsize=1024)
def _units_of(dims: Dims) -> tuple[Unit, ...]:
    """The unit of ``dims`` without a prefix, and those with one that are units of the same."""
    text = dims_text(dims)
    found = [parse_unit(text)]
    for prefix in "pnumkMGTPE" if dims else "":
        with suppress(UnitError):
            unit = parse_unit(prefix + text)
            if unit.dims == dims:
                found.append(unit)
    return tuple(found)
