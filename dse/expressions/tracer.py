"""Tracing a Python cost function: it receives symbols, computes with them, and leaves a graph behind.

The function is called once. A parameter is named after what it wants to read: a dimension, input, let or
table. Arithmetic and comparisons on symbols build nodes; ``if`` on a symbol cannot, and says so.

The functions here also take plain numbers and NumPy arrays, so that one formula serves a traced cost model
and a table of measurements alike.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, overload

from dse.errors import ExpressionError, nearest
from dse.expressions.graph import Graph
from dse.expressions.parser import INTEGER_LIMIT, Scope
from dse.expressions.types import Type
from dse.units import Quantity, parse_quantity, parse_unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Plain: TypeAlias = float | NDArray[Any]

__all__ = [
    "Operand", "Symbol", "TableSymbol", "ceil", "contains", "exp", "floor", "log", "log2", "maximum", "minimum",
    "node_of", "quantity", "sqrt", "where",
]  # fmt: skip


class Symbol:
    """A value that is not known yet: a node of the graph. ``symbol.column`` reads a table dimension's cell."""

    __slots__ = ("_name", "_node", "_scope")

    def __init__(self, scope: Scope | _Constants, node: int, name: str = "") -> None:
        self._scope = scope
        self._node = node
        self._name = name

    def __getattr__(self, column: str) -> Symbol:
        if column.startswith("__"):
            raise AttributeError(column)
        if not self._name or isinstance(self._scope, _Constants):
            raise ExpressionError(
                f"only a table dimension has columns; cannot read .{column} of a computed value"
            )
        return Symbol(self._scope, self._scope.column(self._name, column))

    def _apply(self, op: str, *others: Operand, swap: bool = False) -> Symbol:
        args = (self, *others)
        result: Symbol = _function(op, *(reversed(args) if swap else args))
        return result

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

    def __rmul__(self, other: Operand) -> Symbol:  # type: ignore[misc]  # bool * str is a str elsewhere
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

    def __hash__(self) -> int:
        raise ExpressionError(
            "a cost function is traced once: its values are not known, so they cannot look up a dict or be in a set; "
            "use a table of the space, or dse.where"
        )

    def __iter__(self) -> NoReturn:
        raise ExpressionError("a cost function is traced once: a value of it cannot be iterated over")


class Row:
    """A row of a table that a computed text names: ``row.column`` is the cell."""

    __slots__ = ("_key", "_name", "_scope")

    def __init__(self, scope: Scope, name: str, key: int) -> None:
        self._scope, self._name, self._key = scope, name, key

    def __getattr__(self, column: str) -> Symbol:
        if column.startswith("__"):
            raise AttributeError(column)
        table = self._scope.graph.tables[self._name]
        if column not in table.columns:
            raise ExpressionError(
                f"table {table.name!r} has no column {column!r}{nearest(column, table.columns)}"
            )
        return Symbol(self._scope, self._scope.graph.cell(table.name, column, (self._key,)))


class TableSymbol:
    """A table: ``table[key, ...]`` is a cell of one that has keys, ``table[text].column`` one of a table of rows."""

    __slots__ = ("_name", "_scope")

    def __init__(self, scope: Scope, name: str) -> None:
        self._scope = scope
        self._name = name

    def __getitem__(self, keys: Operand | tuple[Operand, ...]) -> Any:
        rows = self._scope.graph.tables.get(self._name)
        if rows is not None and not rows.keyed and isinstance(keys, Symbol | str):
            return Row(self._scope, self._name, node_of(keys, self._scope))
        table = self._scope.table(self._name)
        given = keys if isinstance(keys, tuple) else (keys,)
        if len(given) != len(table.axes):
            raise ExpressionError(f"table {table.name!r} has {len(table.axes)} keys, but got {len(given)}")
        keys_of = [node_of(key, self._scope) for key in given]
        return Symbol(self._scope, self._scope.graph.cell(table.name, "", keys_of))


Operand: TypeAlias = Symbol | float | bool | str


class _Constants:
    """The scope of quantities that were written in Python and have not met a design yet."""

    def __init__(self) -> None:
        self.graph = Graph()


@overload
def quantity(value: str) -> Symbol: ...
@overload
def quantity(value: Symbol, unit: str) -> Symbol: ...
@overload
def quantity(value: Plain, unit: str) -> Plain: ...
def quantity(value: str | Symbol | Plain, unit: str | None = None) -> Symbol | Plain:
    """A number with a unit: ``quantity("3.35 TB/s")``, or ``quantity(work, "flop")`` for a computed one.

    Returns:
        a symbol; of a plain number or array with ``unit``, its value in base units.

    Raises:
        UnitError: no number, or an unknown unit.
    """
    if unit is None:
        read = parse_quantity(str(value))
    else:
        found = parse_unit(unit)
        read = Quantity(float(found.scale), found)
        if not isinstance(value, Symbol):
            return value * read.value  # type: ignore[operator]  # a text has no unit of its own
    scope = _Constants()
    one = Symbol(scope, scope.graph.number(read.value, Type.of_unit(read.unit)))
    return value * one if isinstance(value, Symbol) else one


def _parts(value: Symbol) -> tuple[Scope | _Constants, int]:
    """A symbol's scope and node; they are private because a column may be called either."""
    return value._scope, value._node  # noqa: SLF001


def node_of(value: object, scope: Scope | _Constants) -> int:
    """The node of ``value`` in the graph of ``scope``.

    Raises:
        ExpressionError: no value that a cost model can use, or one of another trace.
    """
    graph = scope.graph
    if isinstance(value, Symbol):
        own, node = _parts(value)
        return node if own.graph is graph else _carried_over(own, node, graph)
    if isinstance(value, bool):
        return graph.boolean(value)
    if isinstance(value, str):
        return graph.string(value)
    if isinstance(value, Real):
        number = float(value)
        if number != number:
            raise ExpressionError("NaN is not a number that a cost model can use")
        if isinstance(value, Integral) and abs(int(value)) > INTEGER_LIMIT:
            raise ExpressionError(f"the integer {value} is past 2^53 and would lose digits; write a float")
        return graph.number(number)
    raise ExpressionError(
        f"cannot compute with {type(value).__name__}: expected a number, quantity, text or symbol"
    )


def _carried_over(own: Scope | _Constants, root: int, graph: Graph) -> int:
    """A node made of constants alone, built again in another graph."""
    if not isinstance(own, _Constants):
        raise ExpressionError("a value of another trace cannot be used; a cost function uses its parameters")
    built: dict[int, int] = {}
    for number in own.graph.needed((root,)):
        node = own.graph[number]
        if node.op != "const":
            built[number] = graph.apply(node.op, *(built[arg] for arg in node.args))
        elif isinstance(node.data, float):
            built[number] = graph.number(node.data, node.type)
        else:
            built[number] = (
                graph.boolean(node.data) if isinstance(node.data, bool) else graph.string(node.data)
            )
    return built[root]


def _function(op: str, *args: Any) -> Any:
    symbols = [arg for arg in args if isinstance(arg, Symbol)]
    if not symbols:
        return _plain(op, *args)
    scopes = [_parts(one)[0] for one in symbols]
    scope = next((found for found in scopes if not isinstance(found, _Constants)), scopes[0])
    return Symbol(scope, scope.graph.apply(op, *(node_of(arg, scope) for arg in args)))


def _plain(op: str, *args: Any) -> Any:
    """The operation on plain numbers and arrays, as NumPy does it."""
    import numpy as np  # late: a graph is built without it

    if op == "contains":
        return args[1] in args[0]
    names = {"min": "minimum", "max": "maximum"}
    result = getattr(np, names.get(op, op))(*args)
    return result if isinstance(result, np.ndarray) and result.ndim else result.item()


def where(condition: Any, a: Any, b: Any) -> Any:
    """``a`` where ``condition`` holds, else ``b``; the arm not taken cannot fail a design."""
    return _function("where", condition, a, b)


def minimum(a: Any, b: Any, *more: Any) -> Any:
    """The smallest value; NaN wins, and on equality the first argument."""
    return _fold("min", a, b, more)


def maximum(a: Any, b: Any, *more: Any) -> Any:
    """The largest value; NaN wins, and on equality the first argument."""
    return _fold("max", a, b, more)


def _fold(op: str, a: Any, b: Any, more: tuple[Any, ...]) -> Any:
    result = _function(op, a, b)
    for other in more:
        result = _function(op, result, other)
    return result


def contains(texts: Any, text: Operand) -> Any:
    """Whether ``text`` is in a cell that holds a list of texts."""
    return _function("contains", texts, text)


def _unary(op: str, doc: str) -> Callable[[Any], Any]:
    def function(value: Any) -> Any:
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
