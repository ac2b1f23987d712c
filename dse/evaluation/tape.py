"""A fixed sequence of NumPy operations over many designs, into arrays that are used again.

The designs are a *grid*: rows, whose dimensions are given as lists of value numbers, times all values of the inner
dimensions. Rows are the last axis, so that every operation runs along it; a node that depends on inner dimensions
alone is computed once and for all. Arrays whose values are no longer needed are written over.

Where an operation reads NaN or a missing cell, it and what follows from it go through the bulk evaluator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bulk import VALUES, Array, Bulk, BulkEvaluator
from dse.evaluation.facts import Facts, facts_of
from dse.expressions import Kind, Node
from dse.problem import Problem

__all__ = ["Tape"]

_UFUNCS: dict[str, np.ufunc] = {
    "neg": np.negative, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "abs": np.absolute, "floor": np.floor, "ceil": np.ceil, "sqrt": np.sqrt,
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal,
    "not": np.logical_not, "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip
_COMPARISONS = frozenset({"lt", "le", "eq", "ne"})


class _Step(NamedTuple):
    """How a node is computed: ``call`` is given the values of ``args``, and an array to write to unless ``fresh``.

    Without one, or where an argument is undefined, the bulk evaluator computes it.
    """

    call: Callable[..., Any] | None
    node: int
    args: tuple[int, ...]
    fresh: bool = False


class Tape:
    """The operations that compute ``roots``.

    Args:
        rows: the names of the dimensions that rows list.
        inner: value numbers of each other dimension; ``{"a": 3 values, "b": 2 values}`` makes grids of shape
            (3, 2, rows). One of a single value has no axis.
        capacity: how many rows at most are evaluated at once.

    ``axes`` are the numbers of the inner dimensions' axes, and ``digits`` their value numbers as they broadcast.
    """

    def __init__(
        self,
        problem: Problem,
        roots: Iterable[int],
        rows: Sequence[str],
        inner: Mapping[str, NDArray[np.intp]],
        capacity: int,
    ) -> None:
        self.evaluator = BulkEvaluator(problem, roots)
        self.graph = problem.graph
        self.rows = frozenset(rows)
        self.capacity = capacity
        self.inner = inner
        self.axes = {name: at for at, name in enumerate(n for n, axis in inner.items() if len(axis) > 1)}
        self.digits: dict[str, NDArray[np.intp]] = {}
        for name, axis in inner.items():
            after = len(self.axes) - self.axes[name] if name in self.axes else 0
            self.digits[name] = axis.reshape(-1, *(1,) * after) if after else axis[0]
        order = self.evaluator.order
        self.roots = tuple(roots)
        self._same = {n: n for n in order}
        for n in order:
            if self.graph[n].op == "alias":
                self._same[n] = self._same[self.graph[n].args[0]]
        self._known: dict[int, Bulk] = self.evaluator.evaluate(
            self.digits, [n for n in order if not self.graph[n].support & self.rows]
        )
        self._odd = {n: bulk.undefined for n, bulk in self._known.items() if bulk.undefined is not None}
        self._facts = facts_of(problem, order)
        self._steps: list[_Step] = []
        self._shapes: dict[int, tuple[tuple[int, ...], Any]] = {}
        for n in order:
            if n not in self._known and self._same[n] == n:
                self._compile(n)
        self._buffers: list[Array] = []
        self._places: dict[int, int] = {}
        self._allocate()
        self._views: dict[int, dict[int, Array]] = {}
        self._values: dict[int, Array] = {}
        self._undefined: dict[int, Array] = {}

    # -- making -----------------------------------------------------------------------------------

    def _compile(self, n: int) -> None:
        """Add the step that computes a node, and find the shape of its value: the inner axes, then rows."""
        node = self.graph[n]
        args = tuple(self._same[a] for a in node.args)
        self._steps.append(self._step(n, node, args))
        shapes = [self._shape_of(a) for a in args if node.op != "dimension"]
        inner = np.broadcast_shapes(*(shape for shape, _ in shapes)) if shapes else ()
        dtype = {Kind.NUMBER: np.float64, Kind.BOOL: np.bool_}.get(node.type.kind, np.int64)
        self._shapes[n] = (inner, dtype)

    def _step(self, n: int, node: Node, args: tuple[int, ...]) -> _Step:
        if node.op == "dimension":
            return _Step(self.evaluator.axes[node.data].take, n, ())
        if node.op in ("min", "max") and not any(self._facts[a].negative_zero for a in args):
            # NumPy does not say which of 0.0 and -0.0 it returns; where neither can be -0.0, they are one.
            return _Step(np.minimum if node.op == "min" else np.maximum, n, args)
        if node.op in _COMPARISONS and any(self._facts[a].open for a in args):
            return _Step(None, n, args)
        if node.op == "where":
            # A condition that is the same all along the rows copies runs; any other is quicker into a new array.
            if node.type.kind is Kind.NUMBER and args[0] in self._known:
                return _Step(_choose, n, args)
            return _Step(np.where, n, args, fresh=True)
        if node.op in _UFUNCS:
            return _Step(_UFUNCS[node.op], n, args)
        if node.op in VALUES:
            return _Step(VALUES[node.op], n, args, fresh=True)
        return _Step(None, n, args)

    def _shape_of(self, n: int) -> tuple[tuple[int, ...], Any]:
        """The inner shape of a value, and its kind of number."""
        if n in self._known:
            values = self._known[n].values
            return values.shape[:-1], values.dtype
        return self._shapes[n]

    def _allocate(self) -> None:
        """Give every step an array to write to; one whose value is not read again is given to the next."""
        last = {a: at for at, step in enumerate(self._steps) for a in step.args}
        for root in self.roots:
            last[self._same[root]] = len(self._steps)
        free: dict[tuple[int, Any], list[int]] = {}
        for at, (call, n, args, fresh) in enumerate(self._steps):
            dying = list(dict.fromkeys(a for a in args if a in self._places and last[a] == at))
            if call is not None and not fresh:
                shape, dtype = self._shapes[n]
                kind = (math.prod(shape), dtype)
                idle = free.setdefault(kind, [])
                own = next((a for a in dying if self._shapes[a] == self._shapes[n]), None)
                if own is not None and isinstance(call, np.ufunc):
                    self._places[n] = self._places[own]  # written over what it reads, element by element
                    dying.remove(own)
                elif idle:
                    self._places[n] = idle.pop()
                else:
                    self._places[n] = len(self._buffers)
                    self._buffers.append(np.empty(kind[0] * self.capacity, dtype=dtype))
            for a in dying:
                shape, dtype = self._shapes[a]
                free.setdefault((math.prod(shape), dtype), []).append(self._places[a])

    def _views_of(self, count: int) -> dict[int, Array]:
        """The arrays that steps write to, for so many rows."""
        views = self._views.get(count)
        if views is None:
            views = {}
            for n, place in self._places.items():
                shape = self._shapes[n][0]
                views[n] = self._buffers[place][: math.prod(shape) * count].reshape(*shape, count)
            if len(self._views) >= 2:
                self._views.pop(next(c for c in self._views if c != self.capacity), None)
            self._views[count] = views
        return views

    # -- running ----------------------------------------------------------------------------------

    def run(self, digits: Mapping[str, NDArray[np.intp]], count: int) -> None:
        """Evaluate ``count`` rows, given by value numbers (count,) per dimension. What ran before is forgotten."""
        values = self._values = {n: bulk.values for n, bulk in self._known.items()}
        self._undefined = dict(self._odd)
        outs = self._views_of(count)
        odd = bool(self._odd)
        with np.errstate(all="ignore"):
            for call, n, args, fresh in self._steps:
                if call is None or (odd and any(a in self._undefined for a in args)):
                    odd |= self._bulk(n, digits)
                    continue
                if fresh:
                    values[n] = call(*[values[a] for a in args])
                    continue
                out = outs[n]
                if len(args) == 2:
                    call(values[args[0]], values[args[1]], out=out)
                elif len(args) == 1:
                    call(values[args[0]], out=out)
                elif args:
                    call(values[args[0]], values[args[1]], values[args[2]], out)
                else:
                    call(digits[self.graph[n].data], None, out, "clip")
                values[n] = out

    def _bulk(self, n: int, digits: Mapping[str, NDArray[np.intp]]) -> bool:
        """Compute a node as the bulk evaluator does; whether some of it is undefined."""
        node = self.graph[n]
        known = {a: self[a] for a in node.args}
        bulk = self.evaluator.compute(n, self._all_digits(node, digits), known)
        self._values[n] = bulk.values
        if bulk.undefined is None:
            return False
        self._undefined[n] = bulk.undefined
        return True

    def _all_digits(
        self, node: Node, digits: Mapping[str, NDArray[np.intp]]
    ) -> Mapping[str, NDArray[np.intp]]:
        return digits if node.support <= self.rows else {**self.digits, **digits}

    def __getitem__(self, node: int) -> Bulk:
        """The value of a node that was kept: a root, for certain. Its shape broadcasts to the grid's."""
        own = self._same[node]
        return Bulk(self._values[own], self._undefined.get(own))

    def facts(self, node: int) -> Facts:
        """What is certain of a node."""
        return self._facts[node]


def _choose(condition: Array, yes: Array, no: Array, out: Array) -> None:
    """``where`` into an array."""
    np.copyto(out, no)
    np.copyto(out, yes, where=condition)
