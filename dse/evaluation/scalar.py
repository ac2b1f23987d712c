"""The scalar evaluator: one design, every node, in plain Python. The reference that all others are tested against.

Every operation is a correctly rounded double operation, or a NumPy function called on one value, so that the
bulk evaluator can agree with it to the bit. A value that cannot be had is carried along as :class:`Undefined`
rather than raised, because an arm that is not taken, or an operand after a deciding one, cannot fail a design.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dse.errors import InputError, nearest
from dse.evaluation.prepared import prepared
from dse.expressions import Graph, Kind, Node, Value, format_typed
from dse.problem import Problem

__all__ = ["Scalar", "Undefined", "evaluate_nodes"]


@dataclass(frozen=True, slots=True)
class Undefined:
    """A value that does not exist: a missing table cell, or a truth value that read NaN."""

    reason: str
    missing: bool = True


Scalar: TypeAlias = float | bool | str | tuple[str, ...] | int | Undefined | None


def evaluate_nodes(
    problem: Problem,
    design: Mapping[str, Value],
    roots: Iterable[int],
    measured: Mapping[str, float] | None = None,
) -> dict[int, Scalar]:
    """The value of every node that ``roots`` need, for one design.

    Args:
        measured: values of the measured metrics, in base units; one that is asked for and not given is an error.

    Raises:
        InputError: a measured metric has no value.
    """
    graph = problem.graph
    values: dict[int, Scalar] = {}
    asked = tuple(roots)
    for number in prepared(problem, ("needed", asked), lambda: graph.needed(asked)):
        node = graph[number]
        if node.op == "dimension":
            values[number] = design[node.data]
        elif node.op == "input":
            values[number] = problem.inputs[node.data].value
        elif node.op == "const":
            values[number] = node.data
        elif node.op == "measured":
            if measured is None or node.data not in measured:
                raise InputError(f"metric {node.data!r} is measured, and has no value yet")
            values[number] = measured[node.data]
        elif node.op == "position":
            values[number] = _position(graph, node, values[node.args[0]])
        elif node.op == "cell":
            values[number] = _cell(graph, node, values)
        else:
            values[number] = _OPERATIONS[node.op](graph, node, [values[a] for a in node.args])
    return values


def _position(graph: Graph, node: Node, key: Any) -> Scalar:
    """Where ``key`` stands on its table's axis; None when it does not."""
    table, axis = node.data
    if isinstance(key, Undefined):
        return key
    position: int | None = graph.tables[table].positions[axis].get(key)
    if position is None:
        hint = nearest(key, map(str, graph.tables[table].axes[axis])) if isinstance(key, str) else ""
        return Undefined(f"{table} has no key {format_typed(key, graph[node.args[0]])}{hint}")
    return position


def _cell(graph: Graph, node: Node, values: Mapping[int, Any]) -> Scalar:
    table, column = graph.tables[node.data[0]], node.data[1]
    at = 0
    for arg, size in zip(node.args, table.shape, strict=True):
        position = values[arg]
        if isinstance(position, Undefined):
            return position
        at = at * size + position
    cell = table.columns[column].cells[at]
    if cell is None:
        where = f"{table.name}.{column} has no cell" if column else f"{table.name} has no cell"
        keys = [graph[arg].args[0] for arg in node.args]
        return Undefined(f"{where} {', '.join(format_typed(values[key], graph[key]) for key in keys)}")
    return cell


# -- operations: (graph, node, argument values) -> value ---------------------------------------------


def _strict(function: Callable[..., float]) -> Callable[[Graph, Node, list[Any]], Scalar]:
    """Arithmetic: undefined when an argument is, and the first such reason wins."""

    def operation(graph: Graph, node: Node, args: list[Any]) -> Scalar:
        for arg in args:
            if isinstance(arg, Undefined):
                return arg
        return function(*args)

    return operation


def _comparison(function: Callable[[Any, Any], bool]) -> Callable[[Graph, Node, list[Any]], Scalar]:
    """Comparisons: a truth value that reads NaN is undefined."""

    def operation(graph: Graph, node: Node, args: list[Any]) -> Scalar:
        for arg in args:
            if isinstance(arg, Undefined):
                return arg
            if arg != arg:
                return Undefined("a comparison reads NaN", missing=False)
        return function(*args)

    return operation


def _divide(a: float, b: float) -> float:
    if b == 0.0:
        if a == 0.0 or a != a:
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def _rounded(function: Callable[[float], int]) -> Callable[[float], float]:
    """Rounding to a whole number; a zero keeps the argument's sign, as IEEE 754 has it."""
    return lambda a: math.copysign(function(a), a) if abs(a) < 2.0**52 else a


def _sqrt(a: float) -> float:
    return math.sqrt(a) if a >= 0.0 else a if a != a else math.nan


def _vectorized(function: np.ufunc) -> Callable[..., float]:
    """A transcendental function, through NumPy's loop on arrays of length 1."""

    def call(*args: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(*(np.array([a]) for a in args))[0])

    return call


def _not(graph: Graph, node: Node, args: list[Any]) -> Scalar:
    return args[0] if isinstance(args[0], Undefined) else not args[0]


def _and(graph: Graph, node: Node, args: list[Any]) -> Scalar:
    decided: Scalar = args[1] if args[0] is True else args[0]
    return decided


def _or(graph: Graph, node: Node, args: list[Any]) -> Scalar:
    decided: Scalar = args[1] if args[0] is False else args[0]
    return decided


def _where(graph: Graph, node: Node, args: list[Any]) -> Scalar:
    condition, yes, no = args
    if isinstance(condition, Undefined):
        # A number chosen by a condition that read NaN is NaN, like any other result of NaN.
        return math.nan if not condition.missing and node.type.kind is Kind.NUMBER else condition
    return yes if condition else no  # type: ignore[no-any-return]


_OPERATIONS: dict[str, Callable[[Graph, Node, list[Any]], Scalar]] = {
    "alias": _strict(lambda a: a),
    "neg": _strict(lambda a: -a),
    "add": _strict(lambda a, b: a + b),
    "sub": _strict(lambda a, b: a - b),
    "mul": _strict(lambda a, b: a * b),
    "div": _strict(_divide),
    "abs": _strict(abs),
    "floor": _strict(_rounded(math.floor)),
    "ceil": _strict(_rounded(math.ceil)),
    "sqrt": _strict(_sqrt),
    "exp": _strict(_vectorized(np.exp)),
    "log": _strict(_vectorized(np.log)),
    "log2": _strict(_vectorized(np.log2)),
    "pow": _strict(_vectorized(np.power)),
    "min": _strict(lambda a, b: a if a <= b or a != a else b),
    "max": _strict(lambda a, b: a if a >= b or a != a else b),
    "lt": _comparison(lambda a, b: a < b),
    "le": _comparison(lambda a, b: a <= b),
    "eq": _comparison(lambda a, b: a == b),
    "ne": _comparison(lambda a, b: a != b),
    "contains": _strict(lambda texts, text: text in texts),
    "not": _not,
    "and": _and,
    "or": _or,
    "where": _where,
}
