"""The expression graph: hash-consed nodes in topological order, each with its type and dimensions.

A node is an operation over earlier nodes, so the list of nodes is a valid order of evaluation and equal
sub-expressions are one node. The graph knows nothing of how nodes are evaluated; every evaluator reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dse.errors import ExpressionError, nearest
from dse.expressions.table import Table
from dse.expressions.types import BARE, BOOL, STRING, TEXTS, ZERO, Flavor, Kind, Type, meet, product, quotient

__all__ = ["CHAIN_LIMIT", "Graph", "Node"]

CHAIN_LIMIT = 8
"""Integer powers up to this size are a fixed chain of products, so that every evaluator agrees to the bit."""


@dataclass(frozen=True, slots=True)
class Node:
    """One operation.

    ``op`` is a leaf (``const``, ``input``, ``dimension``, ``measured``) or an operation on ``args``;
    ``data`` is a leaf's value or name, or (table, column) of a ``cell`` and (table, axis) of a ``position``;
    ``support`` holds the dimensions that the value depends on.
    """

    op: str
    args: tuple[int, ...]
    data: Any
    type: Type
    support: frozenset[str]


class Graph:
    """An append-only set of nodes. Node numbers are stable, and arguments come before their users."""

    def __init__(self, tables: Iterable[Table] = ()) -> None:
        self.nodes: list[Node] = []
        self.tables: dict[str, Table] = {table.name: table for table in tables}
        self._known: dict[tuple[Any, ...], int] = {}
        self._domains: dict[int, frozenset[str] | None] = {}

    def __getitem__(self, node: int) -> Node:
        return self.nodes[node]

    def _intern(self, op: str, args: Sequence[int], data: Any, type_: Type, support: frozenset[str]) -> int:
        # True == 1 == 1.0 and 0.0 == -0.0 in Python, so the key spells a constant's kind and sign out.
        key = (op, tuple(args), type(data), repr(data) if op == "const" else data, type_)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self.nodes)
            self.nodes.append(Node(op, tuple(args), data, type_, support))
        return known

    def _operation(self, op: str, args: Sequence[int], type_: Type, data: Any = None) -> int:
        supports = [self.nodes[a].support for a in args]
        support = supports[0] if len(set(supports)) == 1 else frozenset().union(*supports)
        return self._intern(op, args, data, type_, support)

    # -- leaves -----------------------------------------------------------------------------------

    def number(self, value: float, type_: Type = BARE) -> int:
        """A constant in base units. The literal 0 takes any unit."""
        value = float(value)
        return self._intern(
            "const", (), value, ZERO if value == 0.0 and type_ == BARE else type_, frozenset()
        )

    def boolean(self, value: bool) -> int:
        """The constant true or false."""
        return self._intern("const", (), bool(value), BOOL, frozenset())

    def string(self, value: str) -> int:
        """A constant text."""
        return self._intern("const", (), value, STRING, frozenset())

    def input(self, name: str, type_: Type) -> int:
        """A parameter of the problem; its value is given at evaluation."""
        return self._intern("input", (), name, type_, frozenset())

    def dimension(self, name: str, type_: Type, texts: Iterable[str] | None = None) -> int:
        """The value of a dimension; ``texts`` are all the texts it can be."""
        node = self._intern("dimension", (), name, type_, frozenset((name,)))
        if texts is not None:
            self._domains[node] = frozenset(texts)
        return node

    def measured(self, name: str, type_: Type, support: frozenset[str]) -> int:
        """The value of a metric that a program measures, one design at a time."""
        return self._intern("measured", (), name, type_, support)

    def cell(self, table: str, column: str, keys: Sequence[int]) -> int:
        """The cell of ``table`` at ``keys``, one per axis; ``column`` is ``""`` for a keyed table."""
        found = self.tables[table]
        positions = []
        for axis, key in enumerate(keys):
            values = found.axes[axis]
            kind = _kind_of(values[0]) if values else Kind.STRING
            if self.nodes[key].type.kind is not kind:
                expected = f"{kind.value}, like {_shown(values[0])}" if values else kind.value
                raise ExpressionError(
                    f"key {axis + 1} of table {table!r} is {self.nodes[key].type}, but its keys are {expected}"
                )
            positions.append(self._operation("position", (key,), BARE, (table, axis)))
        return self._operation("cell", positions, found.columns[column].type, (table, column))

    # -- operations -------------------------------------------------------------------------------

    def alias(self, node: int, name: str) -> int:
        """A node of its own with the value of ``node``, so that equal expressions keep their names apart."""
        found = self.nodes[node]
        return self._operation("alias", (node,), found.type, name)

    def apply(self, op: str, *args: int) -> int:
        """The node of ``op`` on ``args``, type-checked.

        ``op`` is one of neg add sub mul div floordiv mod pow floor ceil abs sqrt exp log log2 min max
        lt le gt ge eq ne and or not where contains.

        Raises:
            ExpressionError: the arguments' kinds or units do not fit.
        """
        build = getattr(self, f"_build_{op}", None)
        if build is not None:
            node: int = build(*args)
            return node
        types = [self.nodes[a].type for a in args]
        if op in _SAME:
            self._numbers(op, args)
            return self._operation(op, args, _joined(types, _SAME[op]))
        if op in _PURE:
            self._numbers(op, args)
            self._dimensionless(op, types[0])
            return self._operation(op, args, BARE if types[0].flavor is not Flavor.PERCENT else types[0])
        if op in _LOGIC:
            for type_ in types:
                if type_.kind is not Kind.BOOL:
                    raise ExpressionError(f"'{op}' needs true or false, but got {type_}")
            return self._operation(op, args, BOOL)
        raise ExpressionError(f"unknown operation {op!r}")

    def _numbers(self, op: str, args: Sequence[int]) -> None:
        for arg in args:
            if self.nodes[arg].type.kind is not Kind.NUMBER:
                raise ExpressionError(f"{_WORDS.get(op, op)} needs numbers, but got {self.nodes[arg].type}")

    @staticmethod
    def _dimensionless(op: str, type_: Type) -> None:
        if type_.dims:
            raise ExpressionError(
                f"{op}() needs a number without a unit, but got {type_}; divide by a unit first"
            )

    def _build_mul(self, a: int, b: int) -> int:
        self._numbers("mul", (a, b))
        return self._operation("mul", (a, b), product(self.nodes[a].type, self.nodes[b].type))

    def _build_div(self, a: int, b: int) -> int:
        self._numbers("div", (a, b))
        return self._operation("div", (a, b), quotient(self.nodes[a].type, self.nodes[b].type))

    def _build_floordiv(self, a: int, b: int) -> int:
        """``a // b`` is floor(a / b) everywhere; a and b have the same unit."""
        self._numbers("floordiv", (a, b))
        meet(self.nodes[a].type, self.nodes[b].type, "divide with //")
        return self._operation("floor", (self._build_div(a, b),), BARE)

    def _build_mod(self, a: int, b: int) -> int:
        """``a % b`` is a - b*floor(a / b) everywhere; a and b have the same unit."""
        self._numbers("mod", (a, b))
        joined = meet(self.nodes[a].type, self.nodes[b].type, "take % of")
        whole = self._operation("mul", (b, self._build_floordiv(a, b)), joined)
        return self._operation("sub", (a, whole), joined)

    def _build_pow(self, a: int, b: int) -> int:
        """``a ** b``: a chain of products for small constant integers, sqrt for 0.5, else the power function."""
        self._numbers("pow", (a, b))
        exponent = self.nodes[b]
        if exponent.type.dims or exponent.type.flavor is Flavor.PERCENT:
            raise ExpressionError(f"an exponent is a number without a unit, but got {exponent.type}")
        if exponent.op == "const" and exponent.data == 0.5:
            return self._build_sqrt(a)
        if (
            exponent.op == "const"
            and abs(exponent.data) <= CHAIN_LIMIT
            and exponent.data == int(exponent.data)
        ):
            count = int(exponent.data)
            if count == 0:
                return self.number(1.0)
            chain = a
            for _ in range(abs(count) - 1):
                chain = self._build_mul(chain, a)
            return chain if count > 0 else self._build_div(self.number(1.0), chain)
        if self.nodes[a].type.dims:
            raise ExpressionError(
                f"a base with a unit needs a constant whole exponent of at most {CHAIN_LIMIT}, "
                f"but got {self.nodes[a].type}"
            )
        return self._operation("pow", (a, b), BARE)

    def _build_sqrt(self, a: int) -> int:
        self._numbers("sqrt", (a,))
        type_ = self.nodes[a].type
        if any(power % 2 for _, power in type_.dims):
            raise ExpressionError(f"the square root of {type_} has no unit")
        dims = tuple((base, power // 2) for base, power in type_.dims)
        return self._operation("sqrt", (a,), Type(Kind.NUMBER, dims, Flavor.RATIO if dims else Flavor.BARE))

    def _build_lt(self, a: int, b: int) -> int:
        return self._ordered("lt", a, b, "<")

    def _build_le(self, a: int, b: int) -> int:
        return self._ordered("le", a, b, "<=")

    def _build_gt(self, a: int, b: int) -> int:
        return self._ordered("lt", a, b, ">", swap=True)

    def _build_ge(self, a: int, b: int) -> int:
        return self._ordered("le", a, b, ">=", swap=True)

    def _ordered(self, op: str, a: int, b: int, sign: str, *, swap: bool = False) -> int:
        """``a sign b``, checked as written; ``a > b`` is kept as ``b < a``."""
        self._numbers(sign, (a, b))
        meet(self.nodes[a].type, self.nodes[b].type, "compare")
        return self._operation(op, (b, a) if swap else (a, b), BOOL)

    def _build_eq(self, a: int, b: int, op: str = "eq") -> int:
        joined = meet(self.nodes[a].type, self.nodes[b].type, "compare")
        if joined.kind is Kind.TEXTS:
            raise ExpressionError("lists of texts cannot be compared; use `text in list`")
        if joined.kind is Kind.STRING:
            self._check_spelling(a, b)
            self._check_spelling(b, a)
        return self._operation(op, (a, b), BOOL)

    def _build_ne(self, a: int, b: int) -> int:
        return self._build_eq(a, b, "ne")

    def _build_where(self, condition: int, a: int, b: int) -> int:
        if self.nodes[condition].type.kind is not Kind.BOOL:
            raise ExpressionError(f"a condition must be true or false, but got {self.nodes[condition].type}")
        joined = meet(self.nodes[a].type, self.nodes[b].type, "choose between")
        if joined.kind is Kind.TEXTS:
            raise ExpressionError("cannot choose between lists of texts")
        return self._operation("where", (condition, a, b), joined)

    def _build_contains(self, texts: int, text: int) -> int:
        """Whether ``text`` is in the cell ``texts``."""
        if self.nodes[texts].type != TEXTS or self.nodes[text].type != STRING:
            raise ExpressionError(f"cannot look for {self.nodes[text].type} in {self.nodes[texts].type}")
        self._check_spelling(text, texts)
        return self._operation("contains", (texts, text), BOOL)

    # -- texts ------------------------------------------------------------------------------------

    def texts(self, node: int) -> frozenset[str] | None:
        """All texts that a node can be; None when any text is possible."""
        if node not in self._domains:
            self._domains[node] = self._texts(self.nodes[node])
        return self._domains[node]

    def _texts(self, node: Node) -> frozenset[str] | None:
        if node.op == "const":
            return frozenset((node.data,))
        if node.op == "cell":
            cells = self.tables[node.data[0]].columns[node.data[1]].cells
            found: set[str] = set()
            for cell in cells:
                found.update((cell,) if isinstance(cell, str) else cell if isinstance(cell, tuple) else ())
            return frozenset(found)
        if node.op == "alias":
            return self.texts(node.args[0])
        if node.op == "where":
            a, b = self.texts(node.args[1]), self.texts(node.args[2])
            return None if a is None or b is None else a | b
        return None

    def declare_texts(self, node: int, texts: Iterable[str]) -> None:
        """Say which texts a leaf can be, so that misspelt comparisons are found at load."""
        self._domains[node] = frozenset(texts)

    def _check_spelling(self, literal: int, other: int) -> None:
        node, known = self.nodes[literal], self.texts(other)
        if node.op == "const" and known is not None and node.data not in known:
            raise ExpressionError(
                f"{node.data!r} is none of the possible values{nearest(node.data, sorted(known))}"
            )

    def with_tables(self, tables: Iterable[Table]) -> Graph:
        """The same nodes over other tables, which have the same columns; nodes added to it are its own."""
        other = Graph((self.tables | {table.name: table for table in tables}).values())
        other.nodes, other._known = list(self.nodes), dict(self._known)
        leaves = {
            n: texts for n, texts in self._domains.items() if self.nodes[n].op in ("dimension", "input")
        }
        other._domains.update(leaves)
        return other

    # -- questions --------------------------------------------------------------------------------

    def needed(self, roots: Iterable[int]) -> list[int]:
        """The nodes that ``roots`` depend on, themselves included, in order of evaluation."""
        seen: set[int] = set()
        stack = list(roots)
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack.extend(self.nodes[node].args)
        return sorted(seen)

    def leaves(self, root: int, op: str) -> list[Any]:
        """The data of every leaf of kind ``op`` under ``root``, in order."""
        return [self.nodes[n].data for n in self.needed((root,)) if self.nodes[n].op == op]


_SAME = {
    "neg": "negate",
    "add": "add",
    "sub": "subtract",
    "min": "take min of",
    "max": "take max of",
    "abs": "take abs of",
}
_PURE = frozenset({"floor", "ceil", "exp", "log", "log2"})
_LOGIC = frozenset({"and", "or", "not"})
_WORDS = {
    "neg": "-", "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**",
}  # fmt: skip


def _kind_of(value: object) -> Kind:
    if isinstance(value, bool):
        return Kind.BOOL
    return Kind.STRING if isinstance(value, str) else Kind.NUMBER


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def _joined(types: Sequence[Type], verb: str) -> Type:
    joined = types[0]
    for other in types[1:]:
        joined = meet(joined, other, verb)
    return joined if joined.flavor is not Flavor.ZERO or len(types) > 1 else ZERO
