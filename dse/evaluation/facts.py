"""What is certain of a node's value whatever the design: its sign, its size, and that it is a number at all.

One pass over the graph, from the values of dimensions, tables and inputs. Sizes are computed with the evaluators' own
operations; those are monotone after rounding, so a bound on what they are given bounds what they return.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dse.evaluation.prepared import prepared
from dse.expressions import Kind, Node
from dse.problem import Problem

__all__ = ["Facts", "facts_of"]


class Facts(NamedTuple):
    """What a value may be: ``negative`` (below zero), ``negative_zero`` (-0.0), and ``open``: NaN or undefined.

    If it is a number, its size is from ``least`` to ``most``. Of truth values and texts only ``open`` means anything.
    """

    negative: bool = False
    negative_zero: bool = False
    open: bool = False
    least: float = 0.0
    most: float = math.inf

    @property
    def finite(self) -> bool:
        """Whether it is certainly a number, and neither infinity."""
        return not self.open and self.most < math.inf


def facts_of(problem: Problem, nodes: Iterable[int]) -> dict[int, Facts]:
    """The facts of ``nodes``, which come in order of evaluation, arguments included."""
    known: dict[int, Facts] = prepared(problem, "facts", dict)
    for number in nodes:
        if number not in known:
            node = problem.graph[number]
            known[number] = _facts(problem, node, [known[arg] for arg in node.args])
    return known


def _facts(problem: Problem, node: Node, args: list[Facts]) -> Facts:
    if node.op == "dimension":
        dimension = problem.dimension(node.data)
        return _of_values(dimension.values) if node.type.kind is Kind.NUMBER else Facts()
    if node.op in ("const", "input"):
        value = node.data if node.op == "const" else problem.inputs[node.data].value
        return _of_values([value]) if node.type.kind is Kind.NUMBER else Facts()
    if node.op == "position":
        key = problem.graph[node.args[0]]
        table, axis = node.data
        lookup = problem.graph.tables[table].positions[axis]
        listed = key.op == "dimension" and all(v in lookup for v in problem.dimension(key.data).values)
        return Facts(open=args[0].open or not listed)
    if node.op == "cell":
        cells = problem.graph.tables[node.data[0]].columns[node.data[1]].cells
        there = [cell for cell in cells if cell is not None]
        open_ = len(there) < len(cells) or any(arg.open for arg in args)
        found = _of_values(there) if node.type.kind is Kind.NUMBER else Facts()
        return found._replace(open=open_ or found.open)
    rule = _RULES.get(node.op)
    if rule is None:  # a truth value, or an operation that nothing is known of
        return Facts(negative=True, negative_zero=True, open=node.op not in _TRUTHS or _any_open(args))
    return rule(*args)


def _of_values(values: Sequence[object]) -> Facts:
    numbers = np.asarray(values, dtype=np.float64)
    if not numbers.size:
        return Facts(least=math.inf, most=0.0)
    nan = bool(np.isnan(numbers).any())
    size = np.abs(numbers)
    zero = numbers == 0.0
    return Facts(
        bool((numbers < 0.0).any()),
        bool((np.signbit(numbers) & zero).any()),
        nan,
        0.0 if nan else float(size.min()),
        math.inf if nan else float(size.max()),
    )


# -- one function per operation ------------------------------------------------------------------------

_TRUTHS = frozenset({"lt", "le", "eq", "ne", "not", "and", "or", "contains"})


def _any_open(args: Iterable[Facts]) -> bool:
    return any(arg.open for arg in args)


def _sum(a: Facts, b: Facts) -> Facts:
    most = a.most + b.most
    signed = a.negative or b.negative
    opposed = signed and a.most == math.inf == b.most  # inf - inf
    least = 0.0 if signed else a.least + b.least
    return Facts(
        signed, a.negative_zero and b.negative_zero, a.open or b.open or opposed, _low(least), _high(most)
    )


def _difference(a: Facts, b: Facts) -> Facts:
    opposed = a.most == math.inf == b.most
    return Facts(True, a.negative_zero, a.open or b.open or opposed, 0.0, _high(a.most + b.most))


def _product(a: Facts, b: Facts) -> Facts:
    empty = (a.least == 0.0 and b.most == math.inf) or (b.least == 0.0 and a.most == math.inf)  # 0 * inf
    signed = a.negative or b.negative
    zero = signed or a.negative_zero or b.negative_zero
    least, most = a.least * b.least, a.most * b.most
    return Facts(signed, zero, a.open or b.open or empty, _low(least), math.inf if empty else _high(most))


def _quotient(a: Facts, b: Facts) -> Facts:
    empty = (a.least == 0.0 == b.least) or (a.most == math.inf == b.most)  # 0 / 0, inf / inf
    signed = a.negative or b.negative or a.negative_zero or b.negative_zero
    least = a.least / b.most if b.most > 0.0 else math.inf
    most = a.most / b.least if b.least > 0.0 else math.inf
    return Facts(signed, signed, a.open or b.open or empty, _low(least), _high(most))


def _chosen(a: Facts, b: Facts) -> Facts:
    return Facts(
        a.negative or b.negative,
        a.negative_zero or b.negative_zero,
        a.open or b.open,
        min(a.least, b.least),
        max(a.most, b.most),
    )


def _where(condition: Facts, a: Facts, b: Facts) -> Facts:
    chosen = _chosen(a, b)
    return chosen._replace(open=chosen.open or condition.open)


def _root(a: Facts) -> Facts:
    return Facts(
        False, a.negative_zero, a.open or a.negative, _low(math.sqrt(a.least)), _high(math.sqrt(a.most))
    )


def _floor(a: Facts) -> Facts:
    return Facts(a.negative, a.negative_zero, a.open, 0.0 if a.negative else _floored(a.least), a.most + 1.0)


def _ceil(a: Facts) -> Facts:
    return Facts(a.negative, a.negative or a.negative_zero, a.open, 0.0, a.most + 1.0)


def _floored(value: float) -> float:
    return math.floor(value) if value < math.inf else value


def _low(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _high(value: float) -> float:
    return math.inf if math.isnan(value) else value


_RULES: dict[str, Callable[..., Facts]] = {
    "alias": lambda a: a,
    "neg": lambda a: a._replace(negative=True, negative_zero=True),
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "abs": lambda a: a._replace(negative=False, negative_zero=False),
    "floor": _floor,
    "ceil": _ceil,
    "sqrt": _root,
    "exp": lambda a: Facts(False, False, a.open),
    "min": _chosen,
    "max": _chosen,
    "where": _where,
}
