"""Tracing a Python cost function: it receives symbols, computes with them, and leaves a graph behind.

The function is called once. A parameter is named after what it wants to read: a dimension, input, let or
table. Arithmetic and comparisons on symbols build nodes; ``if`` on a symbol cannot, and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeAlias

from dse.errors import ExpressionError
from dse.expressions.graph import Graph
from dse.expressions.parser import Scope
from dse.expressions.types import Type
from dse.units import Quantity

__all__ = [
    "Operand", "Symbol", "TableSymbol", "ceil", "contains", "exp", "floor", "log", "log2", "maximum", "minimum",
    "sqrt", "symbol", "where",
]  # fmt: skip


class Symbol:
    """A value that is not known yet: a node of the graph. ``symbol.column`` reads a table dimension's cell."""

    __slots__ = ("_name", "_node", "_scope")
    __hash__ = None  # type: ignore[assignment]  # == builds a node, so symbols cannot be keys

    def __init__(self, scope: Scope, node: int, name: str = "") -> None:
        self._scope = scope
        self._node = node
        self._name = name

    def __getattr__(self, column: str) -> Symbol:
        if column.startswith("__"):
            raise AttributeError(column)
        if not self._name:
            raise ExpressionError(
                f"only a table dimension has columns; cannot read .{column} of a computed value"
            )
        return Symbol(self._scope, self._scope.column(self._name, column))

    @property
    def node(self) -> int:
        """The node that the symbol stands for."""
        return self._node

    @property
    def scope(self) -> Scope:
        """The names that it was traced among."""
        return self._scope

    def _apply(self, op: str, *others: Operand, swap: bool = False) -> Symbol:
        graph = self._scope.graph
        args = [self._node, *(_node_of(graph, other) for other in others)]
        return Symbol(self._scope, graph.apply(op, *(reversed(args) if swap else args)))

    def __add__(self, other: Operand) -> Symbol:
        return self._apply("add", other)

    def __radd__(self, other: Operand) -> Symbol:
        return self._apply("add", other, swap=True)

    def __sub__(self, other: Operand) -> Symbol:
        return self._apply("sub", other)

    def __rsub__(self, other: Operand) -> Symbol:
        return self._apply("sub", other, swap=True)

    def __mul__(self, other: Operand) -> Symbol:
        return self._apply("mul", other)

    def __rmul__(self, other: Operand) -> Symbol:
        return self._apply("mul", other, swap=True)

    def __truediv__(self, other: Operand) -> Symbol:
        return self._apply("div", other)

    def __rtruediv__(self, other: Operand) -> Symbol:
        return self._apply("div", other, swap=True)

    def __floordiv__(self, other: Operand) -> Symbol:
        return self._apply("floordiv", other)

    def __rfloordiv__(self, other: Operand) -> Symbol:
        return self._apply("floordiv", other, swap=True)

    def __mod__(self, other: Operand) -> Symbol:
        return self._apply("mod", other)

    def __rmod__(self, other: Operand) -> Symbol:
        return self._apply("mod", other, swap=True)

    def __pow__(self, other: Operand) -> Symbol:
        return self._apply("pow", other)

    def __rpow__(self, other: Operand) -> Symbol:
        return self._apply("pow", other, swap=True)

    def __neg__(self) -> Symbol:
        return self._apply("neg")

    def __pos__(self) -> Symbol:
        return self

    def __abs__(self) -> Symbol:
        return self._apply("abs")

    def __ceil__(self) -> Symbol:
        return self._apply("ceil")

    def __floor__(self) -> Symbol:
        return self._apply("floor")

    def __lt__(self, other: Operand) -> Symbol:
        return self._apply("lt", other)

    def __le__(self, other: Operand) -> Symbol:
        return self._apply("le", other)

    def __gt__(self, other: Operand) -> Symbol:
        return self._apply("gt", other)

    def __ge__(self, other: Operand) -> Symbol:
        return self._apply("ge", other)

    def __eq__(self, other: Operand) -> Symbol:  # type: ignore[override]
        return self._apply("eq", other)

    def __ne__(self, other: Operand) -> Symbol:  # type: ignore[override]
        return self._apply("ne", other)

    def __and__(self, other: Operand) -> Symbol:
        return self._apply("and", other)

    def __rand__(self, other: Operand) -> Symbol:
        return self._apply("and", other, swap=True)

    def __or__(self, other: Operand) -> Symbol:
        return self._apply("or", other)

    def __ror__(self, other: Operand) -> Symbol:
        return self._apply("or", other, swap=True)

    def __invert__(self) -> Symbol:
        return self._apply("not")

    def __bool__(self) -> NoReturn:
        raise ExpressionError(
            "a cost function is traced once, so its values are not known: `if`, `and`, `or`, `not`, `min` and `max` "
            "cannot decide on them; use dse.where(condition, a, b), `&`, `|`, `~`, dse.minimum and dse.maximum"
        )

    def __float__(self) -> NoReturn:
        raise ExpressionError(
            "a cost function is traced once, so its values are not known: float(), int() and the math module cannot "
            "take them; use dse.ceil, dse.floor, dse.sqrt, dse.exp, dse.log and dse.log2"
        )

    __int__ = __index__ = __float__

    def __iter__(self) -> NoReturn:
        raise ExpressionError("a cost function is traced once: a value of it cannot be iterated over")


class TableSymbol:
    """A table keyed by dimensions, read as ``table[key, ...]``."""

    __slots__ = ("_name", "_scope")

    def __init__(self, scope: Scope, name: str) -> None:
        self._scope = scope
        self._name = name

    def __getitem__(self, keys: Operand | tuple[Operand, ...]) -> Symbol:
        table = self._scope.table(self._name)
        given = keys if isinstance(keys, tuple) else (keys,)
        if len(given) != len(table.axes):
            raise ExpressionError(f"table {table.name!r} has {len(table.axes)} keys, but got {len(given)}")
        graph = self._scope.graph
        return Symbol(self._scope, graph.cell(table.name, "", [_node_of(graph, key) for key in given]))


Operand: TypeAlias = Symbol | Quantity | float | bool | str


def _node_of(graph: Graph, value: Operand) -> int:
    if isinstance(value, Symbol):
        return value.node
    if isinstance(value, bool):
        return graph.boolean(value)
    if isinstance(value, str):
        return graph.string(value)
    if isinstance(value, Quantity):
        return graph.number(value.value, Type.of_unit(value.unit))
    if isinstance(value, (int, float)):
        if value != value:
            raise ExpressionError("NaN is not a number that a cost model can use")
        return graph.number(float(value))
    raise ExpressionError(
        f"cannot compute with {type(value).__name__}: expected a number, quantity, text or symbol"
    )


def symbol(value: Operand, scope: Scope) -> Symbol:
    """``value`` as a symbol of ``scope``'s graph."""
    return value if isinstance(value, Symbol) else Symbol(scope, _node_of(scope.graph, value))


def _function(op: str, *args: Operand) -> Symbol:
    scope = next((arg.scope for arg in args if isinstance(arg, Symbol)), None)
    if scope is None:
        raise ExpressionError(
            f"{op} needs at least one value of the traced design; use Python's own for plain numbers"
        )
    graph = scope.graph
    return Symbol(scope, graph.apply(op, *(_node_of(graph, arg) for arg in args)))


def where(condition: Operand, a: Operand, b: Operand) -> Symbol:
    """``a`` where ``condition`` holds, else ``b``; the arm not taken cannot fail a design."""
    return _function("where", condition, a, b)


def minimum(a: Operand, b: Operand, *more: Operand) -> Symbol:
    """The smallest value; NaN wins, and on equality the first argument."""
    return _fold("min", a, b, more)


def maximum(a: Operand, b: Operand, *more: Operand) -> Symbol:
    """The largest value; NaN wins, and on equality the first argument."""
    return _fold("max", a, b, more)


def _fold(op: str, a: Operand, b: Operand, more: tuple[Operand, ...]) -> Symbol:
    result = _function(op, a, b)
    for other in more:
        result = _function(op, result, other)
    return result


def contains(texts: Symbol, text: Operand) -> Symbol:
    """Whether ``text`` is in a cell that holds a list of texts."""
    return _function("contains", texts, text)


def _unary(op: str, doc: str) -> Callable[[Operand], Symbol]:
    def function(value: Operand) -> Symbol:
        return _function(op, value)

    function.__name__ = function.__qualname__ = op
    function.__doc__ = doc
    return function


ceil = _unary("ceil", "The smallest whole number not below the value, which has no unit.")
floor = _unary("floor", "The largest whole number not above the value, which has no unit.")
sqrt = _unary("sqrt", "The square root; the unit's powers must be even.")
exp = _unary("exp", "e to the power of the value, which has no unit.")
log = _unary("log", "The natural logarithm of the value, which has no unit.")
log2 = _unary("log2", "The logarithm to base 2 of the value, which has no unit.")
