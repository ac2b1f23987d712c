"""What is known of each value before any loop runs: tables of small ones, ranges of all.

A value that depends on few combinations of dimensions is computed for all of them by the bulk evaluator: its table is
exact, and can be read by a loop in place of computing. For the others, ranges follow from those of their arguments.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dse.errors import DseError
from dse.evaluation.bulk import MISSING, NAN_READ, Array, Bulk, BulkEvaluator
from dse.evaluation.compiled.intervals import ANYTHING, OPERATIONS, TRUTH, Range
from dse.evaluation.hull import Hull
from dse.expressions import Kind, Node
from dse.problem import Problem, Team

__all__ = ["TABLE_LIMIT", "Declined", "Facts"]

TABLE_LIMIT = 65_536
"""Most combinations of a value that has to be tabulated."""

_TABULATED = 4096  # combinations up to which every value is tabulated
_AXES = 60  # NumPy's arrays have at most 64
_ALWAYS = frozenset({"exp", "log", "log2", "pow", "contains"})  # tabulated, whatever their size
_READ = frozenset({"position", "cell"})  # tabulated if that is possible


class Declined(DseError):
    """The problem cannot be compiled; the message says why."""


class Facts:
    """The values that ``roots`` need, over a team's part of a problem's space.

    Dimensions are known by their number among those with more than one value for the team (``axes``), supports by a
    bit for each; ``strides`` is by how much a design's position grows with its place in each. ``tables`` holds the values of small nodes, with one axis per dimension (of length 1 where the node
    does not depend on it), ``ranges`` the range of each node.

    Raises:
        Declined: a value is measured, or has to be tabulated and depends on too many combinations.
    """

    def __init__(self, problem: Problem, team: Team, roots: Iterable[int]) -> None:
        if problem.continuous or any(problem.graph[n].op == "measured" for n in problem.graph.needed(roots)):
            raise Declined("its designs cannot be listed or its cost is measured")
        self.problem = problem
        self.graph = problem.graph
        self.hull = Hull(problem, team).axes
        self.axes = [at for at, places in enumerate(self.hull) if len(places) > 1]
        self.sizes = [len(self.hull[at]) for at in self.axes]
        self.strides = [math.prod(self.sizes[bit + 1 :]) for bit in range(len(self.sizes))]
        if len(self.axes) > _AXES or not math.prod(len(places) for places in self.hull):
            raise Declined(f"it has more than {_AXES} dimensions, or no design")
        self.bits = {problem.names[at]: 1 << bit for bit, at in enumerate(self.axes)}
        self.evaluator = BulkEvaluator(problem, roots)
        self.order = self.evaluator.order
        self.supports: dict[int, int] = {}
        self._masks: dict[frozenset[str], int] = {}
        for n in self.order:
            self.supports[n] = self.mask(self.graph[n].support)
        self._grids: dict[int, int] = {}
        self.tables: dict[int, Bulk] = self._tabulate()
        self.ranges: dict[int, Range] = {}
        for n in self.order:
            self.ranges[n] = self._range_of_table(n) if n in self.tables else self._range(self.graph[n])

    def mask(self, names: frozenset[str]) -> int:
        """The dimensions ``names`` as bits; those with one value have none."""
        found = self._masks.get(names)
        if found is None:
            found = 0
            for name in names:
                found |= self.bits.get(name, 0)
            self._masks[names] = found
        return found

    def grid(self, mask: int) -> int:
        """How many combinations the dimensions of ``mask`` have."""
        found = self._grids.get(mask)
        if found is None:
            found = self._grids[mask] = math.prod(s for bit, s in enumerate(self.sizes) if mask >> bit & 1)
        return found

    def digits_of(self, positions: Array) -> dict[str, Array]:
        """The value numbers, per dimension, of the designs at ``positions`` (n,)."""
        found = {}
        for at, (name, places) in enumerate(zip(self.problem.names, self.hull, strict=True)):
            own = np.zeros(positions.shape, dtype=np.intp)
            if name in self.bits:
                bit = self.axes.index(at)
                own = positions // self.strides[bit] % self.sizes[bit]
            found[name] = places[own]
        return found

    # -- tables -----------------------------------------------------------------------------------

    def _tabulate(self) -> dict[int, Bulk]:
        wanted: set[int] = set()
        for n in reversed(self.order):
            node, size = self.graph[n], self.grid(self.supports[n])
            needs = node.op in _ALWAYS or node.type.kind is Kind.TEXTS
            if needs and size > TABLE_LIMIT:
                raise Declined(
                    f"{node.op} depends on {size:,} combinations; at most {TABLE_LIMIT:,} are tabulated"
                )
            if size <= _TABULATED or (node.op in _READ and size <= TABLE_LIMIT) or needs:
                wanted.add(n)
            if n in wanted:
                wanted.update(node.args)
        digits = {}
        for at, name in enumerate(self.problem.names):
            if name in self.bits:
                shape = [1] * len(self.axes)
                shape[self.axes.index(at)] = -1
                digits[name] = self.hull[at].reshape(shape)
            else:
                digits[name] = self.hull[at][0]
        return self.evaluator.evaluate(digits, [n for n in self.order if n in wanted])

    def dimension(self, name: str) -> Array:
        """The values of a dimension for the team, in order: numbers, truth values, or the codes of texts."""
        at = self.problem.names.index(name)
        values, codes = self.problem.dimensions[at].values, self.evaluator.codes
        if isinstance(values[0], str):
            return np.array([codes[str(values[d])] for d in self.hull[at]], dtype=np.int64)
        if isinstance(values[0], bool):
            return np.array([values[d] for d in self.hull[at]], dtype=np.bool_)
        numbers = np.asarray(values, dtype=np.float64)
        return numbers if len(self.hull[at]) == len(numbers) else numbers[self.hull[at]]

    # -- ranges -----------------------------------------------------------------------------------

    def _range_of_table(self, n: int) -> Range:
        values, undefined = self.tables[n]
        kind = self.graph[n].type.kind
        reasons = 0
        if undefined is not None:
            reasons = sum(code for code in (NAN_READ, MISSING) if (undefined == code).any())
        if kind not in (Kind.NUMBER, Kind.BOOL):
            return Range(-math.inf, math.inf, False, reasons)
        if reasons and undefined is not None:
            values = np.broadcast_to(values, np.broadcast_shapes(values.shape, undefined.shape))[
                np.broadcast_to(undefined == 0, np.broadcast_shapes(values.shape, undefined.shape))
            ]
        nan = False
        if values.dtype == np.float64:
            low = float(np.min(values)) if values.size else 0.0
            if low != low:
                nan, values = True, values[~np.isnan(values)]
        if not values.size:
            return Range(0.0, 0.0, nan, reasons)
        return Range(float(values.min()), float(values.max()), nan, reasons)

    def _range(self, node: Node) -> Range:
        args = [self.ranges[a] for a in node.args]
        if node.op in OPERATIONS:
            if node.type.kind is not Kind.NUMBER and node.op in ("alias", "eq", "ne"):
                reasons = args[0].reasons | (args[1].reasons if len(args) > 1 else 0)
                if node.op == "alias":
                    return args[0]
                if self.graph[node.args[0]].type.kind is not Kind.NUMBER:
                    return Range(0.0, 1.0, False, reasons)
            return OPERATIONS[node.op](*args)
        if node.op == "where":
            return self._choice(node, *args)
        if node.op == "dimension":
            if node.type.kind is Kind.NUMBER:
                values = self.dimension(node.data)
                return Range(float(values.min()), float(values.max()))
            return TRUTH if node.type.kind is Kind.BOOL else Range(-math.inf, math.inf)
        reasons = 0
        for arg in args:
            reasons |= arg.reasons
        if node.op == "position":
            return Range(-1.0, math.inf, False, reasons | MISSING)
        if node.op == "cell":
            return self._cell(node, reasons)
        return ANYTHING._replace(reasons=NAN_READ | MISSING)

    def _cell(self, node: Node, reasons: int) -> Range:
        cells = self.graph.tables[node.data[0]].columns[node.data[1]].cells
        if any(cell is None for cell in cells):
            reasons |= MISSING
        if node.type.kind is not Kind.NUMBER:
            return TRUTH._replace(reasons=reasons)
        numbers = [float(cell) for cell in cells if isinstance(cell, float)] or [0.0]
        return Range(min(numbers), max(numbers), False, reasons)

    @staticmethod
    def _where_reasons(node: Node, condition: Range) -> tuple[bool, int]:
        """What an undefined condition makes of the choice: can it be NaN, and undefined for which reasons."""
        if node.type.kind is Kind.NUMBER:
            return bool(condition.reasons & NAN_READ), condition.reasons & MISSING
        return False, condition.reasons

    def _choice(self, node: Node, condition: Range, yes: Range, no: Range) -> Range:
        nan, reasons = self._where_reasons(node, condition)
        arms = [arm for arm, taken in ((yes, condition.high > 0.0), (no, condition.low < 1.0)) if taken]
        for arm in arms:
            nan, reasons = nan or arm.nan, reasons | arm.reasons
        return Range(min(a.low for a in arms), max(a.high for a in arms), nan, reasons)
