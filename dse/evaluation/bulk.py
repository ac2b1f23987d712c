"""The bulk evaluator: many designs at once, in NumPy, each node only over the dimensions it depends on.

Designs are given as arrays of value numbers, one per dimension, that broadcast against each other. With one
axis per dimension that is a block of the space; with arrays of equal length it is a list of designs. NumPy's
broadcasting does the rest: a node that depends on two dimensions is computed over those two axes alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError
from dse.expressions import Kind, Node
from dse.problem import Problem

__all__ = ["MISSING", "NAN_READ", "VALUES", "Array", "Bulk", "BulkEvaluator", "Digits"]

Array: TypeAlias = NDArray[Any]
Digits: TypeAlias = Mapping[str, NDArray[np.intp]]

NAN_READ, MISSING = 1, 2
"""Why a value is undefined: a truth value read NaN, or a table cell is missing. 0 is defined."""


class Bulk(NamedTuple):
    """The values of a node and, where some are undefined, why (uint8 that broadcasts to them; None: all defined).

    Numbers are float64, truth values bool, texts codes of :attr:`BulkEvaluator.codes`; a missing number is NaN.
    """

    values: Array
    undefined: Array | None = None


class BulkEvaluator:
    """Evaluates nodes of one problem. Holds the tables as arrays, so make one and use it often.

    ``axes`` are the values of the dimensions that are read, by value number.
    """

    def __init__(self, problem: Problem, roots: Iterable[int]) -> None:
        self.problem = problem
        self.graph = problem.graph
        self.order = self.graph.needed(roots)
        self.codes: dict[str, int] = {}
        self._cells: dict[int, tuple[Array, Array | None]] = {}
        self._sets: list[tuple[str, ...]] = []
        self._pairs: Array | None = None
        read = {self.graph[n].data for n in self.order if self.graph[n].op == "dimension"}
        self.axes = {
            d.name: self._axis(d.values) for d in problem.dimensions if d.name in read and d.interval is None
        }
        for number in self.order:
            node = self.graph[number]
            if node.op == "const" and isinstance(node.data, str):
                self._code(node.data)
            elif node.op == "cell":
                self._cells[number] = self._table_cells(node)
            elif node.op == "measured":
                raise InputError(
                    f"metric {node.data!r} is measured one design at a time and cannot be evaluated in bulk"
                )
        self._positions = {
            n: self._axis_positions(self.graph[n]) for n in self.order if self.graph[n].op == "position"
        }

    def evaluate(
        self, digits: Digits, nodes: Iterable[int] | None = None, known: dict[int, Bulk] | None = None
    ) -> dict[int, Bulk]:
        """The values of ``nodes`` (default all) for the designs ``digits``.

        Args:
            digits: value numbers per dimension, arrays that broadcast against each other.
            nodes: in order of evaluation; what they need must be among them or in ``known``.
            known: values to start from; updated in place and returned.
        """
        values = {} if known is None else known
        with np.errstate(all="ignore"):
            for number in self.order if nodes is None else nodes:
                values[number] = self.compute(number, digits, values)
        return values

    def compute(self, number: int, digits: Digits, values: Mapping[int, Bulk]) -> Bulk:
        """The value of one node from those of its arguments. NumPy's warnings are the caller's to silence."""
        node = self.graph[number]
        if node.op == "dimension":
            return Bulk(self.axes[node.data][digits[node.data]])
        if node.op == "position":
            return self._position(number, node, digits, values)
        if node.op == "cell":
            return self._cell(number, node, values)
        if node.op == "contains":
            return self._contains(node, values)
        if node.op in ("const", "input"):
            value = node.data if node.op == "const" else self.problem.inputs[node.data].value
            return Bulk(np.asarray(self._code(value) if isinstance(value, str) else value))
        return _OPERATIONS[node.op](node, [values[a] for a in node.args])

    # -- leaves -----------------------------------------------------------------------------------

    def _code(self, text: str) -> int:
        return self.codes.setdefault(text, len(self.codes))

    def _axis(self, values: Any) -> Array:
        if isinstance(values, array):
            return np.frombuffer(values, dtype=np.float64)
        if len(values) and isinstance(values[0], str):
            return np.array([self._code(value) for value in values], dtype=np.int64)
        return np.array(values, dtype=np.bool_ if len(values) and isinstance(values[0], bool) else np.float64)

    def _table_cells(self, node: Node) -> tuple[Array, Array | None]:
        """The cells of a column as an array over the table's axes, and which are missing."""
        table = self.graph.tables[node.data[0]]
        column = table.columns[node.data[1]]
        blank = {Kind.NUMBER: float("nan"), Kind.BOOL: False}.get(column.type.kind, -1)
        cells: list[Any] = [blank if cell is None else cell for cell in column.cells]
        if column.type.kind is Kind.STRING:
            cells = [self._code(cell) if isinstance(cell, str) else cell for cell in cells]
        elif column.type.kind is Kind.TEXTS:
            for at, cell in enumerate(cells):
                if isinstance(cell, tuple):
                    for text in cell:
                        self._code(text)
                    self._sets.append(cell)
                    cells[at] = len(self._sets) - 1
        dtype = {Kind.NUMBER: np.float64, Kind.BOOL: np.bool_}.get(column.type.kind, np.int64)
        missing = np.array([cell is None for cell in column.cells], dtype=np.bool_).reshape(table.shape)
        codes = np.where(missing, np.uint8(MISSING), np.uint8(0)) if missing.any() else None
        return np.array(cells, dtype=dtype).reshape(table.shape), codes

    def _axis_positions(self, node: Node) -> Array | None:
        """Value number -> position on the table's axis (-1 absent), when the key is a dimension itself."""
        key = self.graph[node.args[0]]
        if key.op != "dimension":
            return None
        lookup = self.graph.tables[node.data[0]].positions[node.data[1]]
        return np.array(
            [lookup.get(value, -1) for value in self.problem.dimension(key.data).values], dtype=np.intp
        )

    def _position(self, number: int, node: Node, digits: Digits, values: Mapping[int, Bulk]) -> Bulk:
        table, axis = node.data
        by_digit = self._positions[number]
        key = self.graph[node.args[0]]
        if by_digit is not None:
            positions = by_digit[digits[key.data]]
            undefined = None
        else:
            found, undefined = values[node.args[0]]
            positions = _search(self._axis(self.graph.tables[table].axes[axis]), found)
        absent = positions < 0
        if absent.any():
            undefined = _joined(undefined, np.where(absent, np.uint8(MISSING), np.uint8(0)))
        return Bulk(positions, undefined)

    def _cell(self, number: int, node: Node, values: Mapping[int, Bulk]) -> Bulk:
        cells, missing = self._cells[number]
        keys = tuple(values[a].values for a in node.args)
        found = cells[keys]
        undefined = None
        for arg in node.args:
            undefined = _joined(undefined, values[arg].undefined)
        if missing is not None:
            undefined = _joined(undefined, missing[keys])
        if undefined is not None and cells.dtype == np.float64:
            found = np.where(undefined != 0, np.nan, found)
        return Bulk(found, undefined)

    def _contains(self, node: Node, values: Mapping[int, Bulk]) -> Bulk:
        """Membership of texts in lists."""
        (sets, a), (texts, b) = (values[arg] for arg in node.args)
        return Bulk(self.pairs_of(sets, texts), _joined(a, b))

    def pairs_of(self, sets: Array, texts: Array) -> Array:
        """Whether each (list, text) pair is one that occurs, by searching the sorted pairs."""
        if self._pairs is None:
            pairs = {at << 32 | self.codes[name] for at, names in enumerate(self._sets) for name in names}
            self._pairs = np.array(sorted(pairs), dtype=np.int64)
        wanted = (sets.astype(np.int64) << 32) | np.maximum(texts, 0)
        if not len(self._pairs):
            return np.zeros(wanted.shape, dtype=np.bool_)
        at = np.minimum(np.searchsorted(self._pairs, wanted), len(self._pairs) - 1)
        found: Array = (self._pairs[at] == wanted) & (texts >= 0)
        return found


def _search(axis: Array, keys: Array) -> Array:
    """The position of each key on ``axis``, -1 where it is absent."""
    order = np.argsort(axis, kind="stable")
    at = np.searchsorted(axis[order], keys)
    candidates = order[np.minimum(at, len(axis) - 1)]
    return np.where(axis[candidates] == keys, candidates, -1)


# -- operations: (node, arguments) -> value ------------------------------------------------------------


def _joined(a: Array | None, b: Array | None) -> Array | None:
    """The reason of an operation on two values: the first argument's wins."""
    if a is None or b is None:
        return b if a is None else a
    return np.where(a != 0, a, b)


def _joined_all(args: list[Bulk]) -> Array | None:
    undefined = None
    for arg in args:
        undefined = _joined(undefined, arg.undefined)
    return undefined


def _strict(function: Callable[..., Array]) -> Callable[[Node, list[Bulk]], Bulk]:
    def operation(node: Node, args: list[Bulk]) -> Bulk:
        return Bulk(function(*(arg.values for arg in args)), _joined_all(args))

    return operation


def _comparison(function: Callable[..., Array]) -> Callable[[Node, list[Bulk]], Bulk]:
    def operation(node: Node, args: list[Bulk]) -> Bulk:
        undefined = None
        for arg in args:
            own = arg.undefined
            if arg.values.dtype == np.float64:
                nan = np.isnan(arg.values)
                if nan.any():
                    own = _joined(own, np.where(nan, np.uint8(NAN_READ), np.uint8(0)))
            undefined = _joined(undefined, own)
        return Bulk(function(*(arg.values for arg in args)), undefined)

    return operation


def _contiguous(function: np.ufunc) -> Callable[..., Array]:
    """Transcendental functions run on contiguous arrays of equal shape, whose loop is the scalar's."""

    def call(*args: Array) -> Array:
        if len(args) > 1:
            args = tuple(np.broadcast_arrays(*args))
        shape = args[0].shape
        flat = [np.ascontiguousarray(arg).reshape(-1) for arg in args]
        result: Array = function(*flat).reshape(shape)
        return result

    return call


def _chosen(condition: Array, a: Array, b: Array) -> Array:
    chosen: Array = np.where(condition, a, b)
    return chosen


def _not(node: Node, args: list[Bulk]) -> Bulk:
    return Bulk(~args[0].values, args[0].undefined)


def _and(node: Node, args: list[Bulk], deciding: bool = False) -> Bulk:
    (a, bad_a), (b, bad_b) = args
    values = np.logical_or(a, b) if deciding else np.logical_and(a, b)
    if bad_a is None and bad_b is None:
        return Bulk(values)
    # The second operand is read, and can fail, only where the first is defined and does not decide.
    second: Array = np.asarray(np.uint8(0) if bad_b is None else np.where(a == deciding, np.uint8(0), bad_b))
    return Bulk(values, second if bad_a is None else np.where(bad_a != 0, bad_a, second))


def _or(node: Node, args: list[Bulk]) -> Bulk:
    return _and(node, args, deciding=True)


def _where(node: Node, args: list[Bulk]) -> Bulk:
    (condition, bad), (yes, bad_yes), (no, bad_no) = args
    values = np.where(condition, yes, no)
    undefined: Array | None = None
    if bad_yes is not None or bad_no is not None:
        zero = np.uint8(0)
        undefined = np.where(
            condition, zero if bad_yes is None else bad_yes, zero if bad_no is None else bad_no
        )
    if bad is not None:
        own = bad
        if node.type.kind is Kind.NUMBER:
            # A number chosen by a condition that read NaN is NaN, like any other result of NaN.
            values = np.where(bad != 0, np.nan, values)
            own = np.where(bad == NAN_READ, np.uint8(0), bad)
        undefined = np.where(bad != 0, own, np.uint8(0) if undefined is None else undefined)
    return Bulk(values, undefined)


VALUES: dict[str, Callable[..., Array]] = {
    "alias": lambda a: a,
    "neg": np.negative,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "abs": np.absolute,
    "floor": np.floor,
    "ceil": np.ceil,
    "sqrt": np.sqrt,
    "exp": _contiguous(np.exp),
    "log": _contiguous(np.log),
    "log2": _contiguous(np.log2),
    "pow": _contiguous(np.power),
    # np.minimum does not say which of 0.0 and -0.0 it returns; these return the first argument.
    "min": lambda a, b: _chosen((a <= b) | (a != a), a, b),
    "max": lambda a, b: _chosen((a >= b) | (a != a), a, b),
}
"""What operations on numbers do where their arguments are defined."""

_OPERATIONS: dict[str, Callable[[Node, list[Bulk]], Bulk]] = {
    **{op: _strict(function) for op, function in VALUES.items()},
    "lt": _comparison(np.less),
    "le": _comparison(np.less_equal),
    "eq": _comparison(np.equal),
    "ne": _comparison(np.not_equal),
    "not": _not,
    "and": _and,
    "or": _or,
    "where": _where,
}
