"""What is certain of a node's value whatever the design: between what it lies, and that it is a number at all.

One pass over the graph, from the values of dimensions, tables and inputs. Bounds are computed by the evaluators' own
operations, which are monotone after rounding; so what bounds the arguments bounds the computed value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dse.evaluation.prepared import prepared
from dse.evaluation.scalar import Undefined, evaluate_nodes
from dse.expressions import Kind
from dse.problem import Problem

__all__ = ["Facts", "facts_of"]

INF = math.inf


class Facts(NamedTuple):
    """What a value may be: ``open`` if NaN or undefined; a number lies between ``low`` and ``high``, which it may
    attain; ``negative_zero`` if -0.0 is among them. Of truth values and texts only ``open`` means anything.
    """

    low: float = -INF
    high: float = INF
    negative_zero: bool = True
    open: bool = False

    @property
    def finite(self) -> bool:
        """Whether it is certainly a number, and neither infinity."""
        return not self.open and not self.endless

    @property
    def endless(self) -> bool:
        """Whether it may be an infinity."""
        return self.low == -INF or self.high == INF

    @property
    def zero(self) -> bool:
        """Whether it may be zero."""
        return self.low <= 0.0 <= self.high


def facts_of(problem: Problem, nodes: Iterable[int]) -> dict[int, Facts]:
    """The facts of ``nodes``, which come in order of evaluation, arguments included."""
    known: dict[int, Facts] = prepared(problem, "facts", dict)
    for number in nodes:
        if number not in known:
            known[number] = _facts(problem, number, [known[arg] for arg in problem.graph[number].args])
    return known


def _facts(problem: Problem, number: int, args: list[Facts]) -> Facts:
    node = problem.graph[number]
    numeric = node.type.kind is Kind.NUMBER
    if node.op == "dimension":
        return _of_values(problem.dimension(node.data).values) if numeric else Facts()
    if node.op in ("const", "input"):
        value = node.data if node.op == "const" else problem.inputs[node.data].value
        return _of_values([value]) if numeric else Facts()
    if node.op == "position":
        key = problem.graph[node.args[0]]
        table, axis = node.data
        lookup = problem.graph.tables[table].positions[axis]
        listed = key.op == "dimension" and all(v in lookup for v in problem.dimension(key.data).values)
        return Facts(open=args[0].open or not listed)
    if node.op == "cell" and not node.support:
        cell = evaluate_nodes(problem, {}, (number,))[number]
        if isinstance(cell, Undefined):
            return Facts(open=True)
        return _of_values([cell]) if numeric else Facts()
    if node.op == "cell":
        cells = problem.graph.tables[node.data[0]].columns[node.data[1]].cells
        there = [cell for cell in cells if cell is not None]
        found = _of_values(there) if numeric else Facts()
        return found._replace(open=found.open or len(there) < len(cells) or any(arg.open for arg in args))
    if node.op in _TRUTHS:
        return Facts(open=any(arg.open for arg in args))
    rule = _RULES.get(node.op)
    return Facts(open=True) if rule is None else rule(*args)


def _of_values(values: Sequence[object]) -> Facts:
    numbers = np.asarray(values, dtype=np.float64)
    if not numbers.size or np.isnan(numbers).any():
        return Facts(open=True)
    negative_zero = bool((np.signbit(numbers) & (numbers == 0.0)).any())
    return Facts(float(numbers.min()), float(numbers.max()), negative_zero)


# -- one function per operation ------------------------------------------------------------------------

_TRUTHS = frozenset({"lt", "le", "eq", "ne", "not", "and", "or", "contains"})


def _sum(a: Facts, b: Facts) -> Facts:
    opposed = (a.high == INF and b.low == -INF) or (a.low == -INF and b.high == INF)
    low, high = a.low + b.low, a.high + b.high
    return Facts(
        -INF if math.isnan(low) else low,
        INF if math.isnan(high) else high,
        a.negative_zero and b.negative_zero,
        a.open or b.open or opposed,
    )


def _difference(a: Facts, b: Facts) -> Facts:
    found = _sum(a, Facts(-b.high, -b.low, True, b.open))
    return found._replace(negative_zero=a.negative_zero and b.zero)


def _extremes(ends: list[float]) -> tuple[float, float]:
    """The bounds of what lies between some ends. 0 * inf and inf / inf stand beside values as small as 0."""
    ends = [0.0 if math.isnan(end) else end for end in ends]
    return min(ends), max(ends)


def _signed(a: Facts, b: Facts) -> bool:
    """Whether a product or quotient may be -0.0, by sign or by underflow."""
    return a.negative_zero or b.negative_zero or ((a.low < 0.0 or b.low < 0.0) and not a.high < 0.0 > b.high)


def _product(a: Facts, b: Facts) -> Facts:
    low, high = _extremes([x * y for x in (a.low, a.high) for y in (b.low, b.high)])
    empty = (a.zero and b.endless) or (b.zero and a.endless)  # 0 * inf
    return Facts(low, high, _signed(a, b), a.open or b.open or empty)


def _quotient(a: Facts, b: Facts) -> Facts:
    empty = (a.zero and b.zero) or (a.endless and b.endless)  # 0 / 0, inf / inf
    open_ = a.open or b.open or empty
    if not b.zero:
        low, high = _extremes([x / y for x in (a.low, a.high) for y in (b.low, b.high)])
    elif a.low >= 0.0 == b.low and not b.negative_zero:
        low, high = (a.low / b.high if 0.0 < b.high < INF else 0.0), INF
    else:
        low, high = -INF, INF
    return Facts(low, high, _signed(a, b), open_)


def _hull(a: Facts, b: Facts) -> Facts:
    return Facts(min(a.low, b.low), max(a.high, b.high), a.negative_zero or b.negative_zero, a.open or b.open)


def _where(condition: Facts, a: Facts, b: Facts) -> Facts:
    found = _hull(a, b)
    return found._replace(open=found.open or condition.open)


def _max(a: Facts, b: Facts) -> Facts:
    return _hull(a, b)._replace(low=max(a.low, b.low))


def _min(a: Facts, b: Facts) -> Facts:
    return _hull(a, b)._replace(high=min(a.high, b.high))


def _abs(a: Facts) -> Facts:
    low, high = sorted((abs(a.low), abs(a.high)))
    return Facts(0.0 if a.zero else low, high, False, a.open)


def _root(a: Facts) -> Facts:
    low, high = math.sqrt(max(a.low, 0.0)), math.sqrt(max(a.high, 0.0))
    return Facts(low, high, a.negative_zero, a.open or a.low < 0.0)


def _whole(value: float, function: Callable[[float], int]) -> float:
    return float(function(value)) if math.isfinite(value) else value


def _floor(a: Facts) -> Facts:
    return a._replace(low=_whole(a.low, math.floor), high=_whole(a.high, math.floor))


def _ceil(a: Facts) -> Facts:
    rounded = a._replace(low=_whole(a.low, math.ceil), high=_whole(a.high, math.ceil))
    return rounded._replace(negative_zero=a.negative_zero or (a.low < 0.0 and a.high > -1.0))


def _power(a: Facts, b: Facts) -> Facts:
    if a.low < 0.0 or a.negative_zero:
        return Facts(open=True)
    return Facts(0.0, INF, False, a.open or b.open)


_RULES: dict[str, Callable[..., Facts]] = {
    "alias": lambda a: a,
    "neg": lambda a: Facts(-a.high, -a.low, a.zero, a.open),
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "abs": _abs,
    "floor": _floor,
    "ceil": _ceil,
    "sqrt": _root,
    "exp": lambda a: Facts(0.0, INF, False, a.open),
    "log": lambda a: Facts(-INF, INF, False, a.open or a.low < 0.0),
    "log2": lambda a: Facts(-INF, INF, False, a.open or a.low < 0.0),
    "pow": _power,
    "min": _min,
    "max": _max,
    "where": _where,
}
