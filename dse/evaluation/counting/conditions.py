"""Conditions cut into clauses that must all hold: each reads few dimensions, so that it rejects early."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bulk import Bulk
from dse.evaluation.scalar import Scalar, Undefined, evaluate_nodes
from dse.expressions import Kind
from dse.problem import Problem

__all__ = ["Clause", "Literal", "broken", "clauses", "holds"]

_MOST = 64  # clauses that one condition may become


@dataclass(frozen=True, slots=True)
class Literal:
    """A truth value over the values of ``args``: ``is`` of one, ``le`` or ``lt`` of two numbers.

    It is met where it is defined, reads no NaN, and is ``wanted``.
    """

    op: str
    args: tuple[int, ...]
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class Clause:
    """Literals of which one must be met; those before it must be defined. ``broken`` asks for the opposite."""

    literals: tuple[Literal, ...]
    broken: bool = False

    @property
    def args(self) -> tuple[int, ...]:
        """The nodes that are read."""
        return tuple(arg for literal in self.literals for arg in literal.args)


def clauses(problem: Problem, nodes: Iterable[int]) -> list[Clause]:
    """The clauses that hold together exactly where all conditions ``nodes`` do; each once, in order."""
    writer = _Writer(problem)
    return [Clause(c) for c in dict.fromkeys(c for node in nodes for c in writer.clauses(node, wanted=True))]


def broken(node: int) -> Clause:
    """The clause that holds exactly where the condition ``node`` does not."""
    return Clause((Literal("is", (node,)),), broken=True)


def holds(clause: Clause, values: Mapping[int, Bulk]) -> NDArray[np.bool_]:
    """Where a clause holds; of a shape that broadcasts to that of its arguments."""
    held: NDArray[np.bool_] | None = None
    for literal in reversed(clause.literals):
        met, bad = _met(literal, values)
        if held is not None:
            met = met | (held if bad is None else held & (bad == 0))
        held = met
    assert held is not None
    return ~held if clause.broken else held


def _met(literal: Literal, values: Mapping[int, Bulk]) -> tuple[NDArray[np.bool_], NDArray[np.uint8] | None]:
    """Where a literal is met, and where it is undefined."""
    args = [values[arg] for arg in literal.args]
    bad: NDArray[np.uint8] | None = None
    for value, undefined in args:
        nan = np.isnan(value) if literal.op != "is" else None
        for own in (undefined, nan):
            if own is not None and own.any():
                bad = (own != 0) if bad is None else bad | (own != 0)
    if literal.op == "is":
        met = np.asarray(args[0].values == literal.wanted)
    else:
        compare = np.less_equal if literal.op == "le" else np.less
        met = np.asarray(compare(args[0].values, args[1].values) == literal.wanted)
    return (met if bad is None else met & (bad == 0)), bad


_Literals = tuple[Literal, ...]


class _Writer:
    """Rewrites conditions as conjunctions of clauses.

    ``p or (q and r)`` is ``(p or q) and (p or r)``, undefined operands included. ``(p and q) or r`` is
    ``(p or r) and (q or r)`` only if q cannot be undefined where p is false, so only where they never are.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.graph = problem.graph
        self.largest = cache(self._largest)

    def clauses(self, number: int, *, wanted: bool) -> list[_Literals]:
        node = self.graph[number]
        match node.op:
            case "alias":
                return self.clauses(node.args[0], wanted=wanted)
            case "not":
                return self.clauses(node.args[0], wanted=not wanted)
            case "and" | "or":
                first, second = (self.clauses(arg, wanted=wanted) for arg in node.args)
                if (node.op == "and") == wanted:
                    return first + second
                if len(first) * len(second) <= _MOST and (len(first) == 1 or all(map(self.defined, first))):
                    return [tuple(dict.fromkeys(a + b)) for a in first for b in second]
            case "le" | "lt":
                lows = self.sides(node.args[0], "max" if wanted else "min")
                highs = self.sides(node.args[1], "min" if wanted else "max")
                if len(lows) * len(highs) > 1:
                    return [(Literal(node.op, (low, high), wanted),) for low in lows for high in highs]
        return [(Literal("is", (number,), wanted),)]

    def sides(self, number: int, op: str) -> list[int]:
        """What a side stands for: ``max(a, b) <= c`` is ``a <= c and b <= c``. A NaN in any rejects both ways."""
        node = self.graph[number]
        return [side for arg in node.args for side in self.sides(arg, op)] if node.op == op else [number]

    # -- what is never undefined ------------------------------------------------------------------

    def defined(self, literals: Sequence[Literal]) -> bool:
        """Whether literals are never undefined."""
        return all(self._defined(literal) for literal in literals)

    def _defined(self, literal: Literal) -> bool:
        return all(self._is_defined(arg) for arg in literal.args)

    def _is_defined(self, number: int) -> bool:
        node = self.graph[number]
        if node.type.kind is Kind.NUMBER:
            return self.largest(number) < math.inf
        if node.op in ("dimension", "const", "input"):
            return True
        if node.op == "cell" and not node.support:
            return not isinstance(self._fixed(number), Undefined)
        known = node.op in ("alias", "not", "and", "or", "eq", "ne", "lt", "le")
        return known and all(map(self._is_defined, node.args))

    def _fixed(self, number: int) -> Scalar:
        """The value of a node that depends on no dimension."""
        return evaluate_nodes(self.problem, {}, (number,))[number]

    def _largest(self, number: int) -> float:
        """A bound on the size of a number, infinite where it could be infinite or NaN."""
        node = self.graph[number]
        match node.op:
            case "const":
                return abs(node.data) if math.isfinite(node.data) else math.inf
            case "input":
                value = abs(float(self.problem.inputs[node.data].value))
                return value if math.isfinite(value) else math.inf
            case "cell" if not node.support:
                cell = self._fixed(number)
                return abs(cell) if isinstance(cell, float) and math.isfinite(cell) else math.inf
            case "dimension":
                return float(np.abs(self.problem.dimension(node.data).values).max())
            case "alias" | "neg" | "abs":
                return self.largest(node.args[0])
            case "floor" | "ceil":
                return self.largest(node.args[0]) + 1.0
            case "min" | "max":
                return max(map(self.largest, node.args))
            case "add" | "sub":
                return self._finite(sum(map(self.largest, node.args)))
            case "mul":
                a, b = map(self.largest, node.args)
                return self._finite(a * b) if max(a, b) < math.inf else math.inf
            case "div":
                below = self._smallest(node.args[1])
                return self._finite(self.largest(node.args[0]) / below) if below else math.inf
        return math.inf

    def _smallest(self, number: int) -> float:
        """How near to 0 a number can be; 0 where that is not known."""
        node = self.graph[number]
        match node.op:
            case "const":
                return abs(float(node.data))
            case "cell" if not node.support:
                cell = self._fixed(number)
                return abs(cell) if isinstance(cell, float) else 0.0
            case "dimension":
                return float(np.abs(self.problem.dimension(node.data).values).min())
            case "mul":
                a, b = map(self._smallest, node.args)
                return a * b
        return 0.0

    @staticmethod
    def _finite(bound: float) -> float:
        """Rounding cannot lift a bound that is far from the largest double past it."""
        return bound if bound < 1e300 else math.inf
