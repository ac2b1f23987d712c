"""A cost model as a straight list of interval operations, the needed sides only, above exact tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bounds.axes import Grid
from dse.evaluation.bounds.intervals import LOGIC, NUMBER, Range, Recipe, operation
from dse.evaluation.bounds.ladder import Ladder
from dse.evaluation.bounds.leaves import LIMIT, Table, sides, tabulate
from dse.expressions import Kind, Node
from dse.problem import Problem

if TYPE_CHECKING:
    from dse.evaluation.bounds.boxes import Frame

__all__ = ["Program", "Side"]

Array = NDArray[Any]
Side = tuple[int, str]
"""A node and which of its extremes: ``lo``, ``hi``, ``true`` or ``false``."""

_READ = 2**22
"""Combinations up to which what can only be read from a table is tabulated."""

_ONLY_READ = ("dimension", "position", "cell", "input", "const")


class Program:
    """Evaluates the sides of nodes over boxes, in stages that build on each other.

    Args:
        stages: the sides that each stage must give; what an earlier stage computed is not computed again.
        limit: combinations up to which a sub-expression is tabulated.
        legal: whether bounds are of legal designs only: combinations of a table's dimensions that break a rule of those
            dimensions alone are then left out of it. Where a table has nothing left over a box, no design of the box is
            legal, and its bounds may be anything, NaN included.

    ``ranges`` says what each node can be anywhere.
    """

    def __init__(
        self,
        problem: Problem,
        grid: Grid,
        stages: Sequence[Iterable[Side]],
        limit: int = LIMIT,
        *,
        legal: bool = False,
    ) -> None:
        self.problem = problem
        self.grid = grid
        self.graph = problem.graph
        wanted = self._wanted = [list(stage) for stage in stages]
        roots = sorted({node for stage in wanted for node, _ in stage})
        self._legal = legal
        self._held: dict[frozenset[str], Array] = {}
        self._above: list[int] = []
        self._leaf = self._leaves(roots, limit)
        self.ranges: dict[int, Range] = {}
        self._recipes: dict[int, dict[str, Recipe]] = {}
        self._tables = self._read()
        self._slots: dict[Side, int] = {}
        self._steps: list[
            list[tuple[int, Table | Ladder | Array | Callable[..., Array], tuple[int, ...]]]
        ] = []
        self._prepare()
        for stage in wanted:
            self._steps.append([])
            for side in stage:
                self._want(side)
        self.size = len(self._slots)
        self.carried = [self._read_later(stage) for stage in range(len(wanted))]

    def _read_later(self, stage: int) -> list[int]:
        """The slots computed up to ``stage`` that later stages read."""
        before = {slot for steps in self._steps[: stage + 1] for slot, _, _ in steps}
        later = {arg for steps in self._steps[stage + 1 :] for _, _, args in steps for arg in args}
        roots = {self._slots[side] for wanted in self._wanted[stage + 1 :] for side in wanted}
        return sorted(before & (later | roots))

    # -- what is tabulated -------------------------------------------------------------------------

    def _leaves(self, roots: Iterable[int], limit: int) -> dict[int, str]:
        """The nodes that are read instead of computed: from a ``table``, a ``ladder``, or ``unknown`` where neither can be."""
        found: dict[int, str] = {}
        stack = list(roots)
        seen: set[int] = set()
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            node = self.graph[number]
            count = self.grid.combinations(node.support)
            if count > limit and node.op == "dimension" and self._ascends(node):
                found[number] = "ladder"
            elif count <= limit or (node.op in _ONLY_READ and count <= _READ):
                found[number] = "table"
            elif node.op in _ONLY_READ or not self._has_intervals(node):
                found[number] = "unknown"
            else:
                self._above.append(number)
                stack.extend(node.args)
        return found

    def _ascends(self, node: Node) -> bool:
        values = self._values(node) if node.type.kind is Kind.NUMBER else np.zeros(2)
        return bool((values[1:] > values[:-1]).all())

    def _values(self, node: Node) -> Array:
        """The numbers of a dimension, on the hull."""
        at = self.problem.names.index(node.data)
        hull, values = self.grid.hull[at], np.asarray(self.problem.dimensions[at].values, dtype=np.float64)
        return values if len(hull) == len(values) else values[hull]

    def _has_intervals(self, node: Node) -> bool:
        kinds = {self.graph[arg].type.kind for arg in node.args}
        return node.op not in ("contains", "measured") and not kinds & {Kind.STRING, Kind.TEXTS}

    def _read(self) -> dict[Side, Table | Ladder | Array]:
        """What the leaves' sides are read from; of an unknown leaf, what is true of anything."""
        known = {
            n
            for n, how in self._leaf.items()
            if how == "table" and self.graph[n].type.kind in (Kind.NUMBER, Kind.BOOL)
        }
        tables: dict[Side, Table | Ladder | Array] = {}
        for number, (values, undefined) in tabulate(self.problem, self.grid, sorted(known)).items():
            kind = self.graph[number].type.kind
            axes = self.grid.axes_of(self.graph[number].support)
            whole = np.ones(values.shape, dtype=np.bool_)
            held = self._legal_combinations(self.graph[number].support) if self._legal else whole
            found = sides(kind, values, undefined, held)
            for side, (extremes, reduce) in found.items():
                tables[number, side] = Table(axes, extremes, reduce)
            self.ranges[number] = _range(kind, values[held], None if undefined is None else undefined[held])
        for number in self._leaf.keys() - known:
            self.ranges[number] = Range()
            tables |= {(number, side): _anything(side) for side in (*NUMBER, *LOGIC)}
            if self._leaf[number] == "ladder":
                at, values = (
                    self.problem.names.index(self.graph[number].data),
                    self._values(self.graph[number]),
                )
                self.ranges[number] = Range(
                    float(values[0]), float(values[-1]), bool(np.isfinite(values).all())
                )
                tables |= {(number, side): Ladder(self.grid, at, values, side) for side in NUMBER}
        return tables

    def _legal_combinations(self, support: frozenset[str]) -> Array:
        """Which combinations of some dimensions no rule of these dimensions alone forbids; by digits."""
        held = self._held.get(support)
        if held is None:
            axes = self.grid.axes_of(support)
            held = np.ones([self.grid.axes[axis].size for axis in axes], dtype=np.bool_)
            checks = [
                rule.check
                for rule in self.problem.rules
                if self.graph[rule.check].support <= support
                and self.grid.combinations(self.graph[rule.check].support) <= LIMIT
            ]
            for check, (values, undefined) in tabulate(self.problem, self.grid, checks).items():
                own = self.grid.axes_of(self.graph[check].support)
                holds = values if undefined is None else values & (undefined == 0)
                held = held & holds.reshape([self.grid.axes[a].size if a in own else 1 for a in axes])
            self._held[support] = held
        return held

    # -- what is computed ---------------------------------------------------------------------------

    def _prepare(self) -> None:
        """The range of every node over the whole space, from which the recipes of its users follow."""
        whole: dict[Side, Array] = {}
        for number, bounds in self.ranges.items():
            whole[number, "lo"] = np.full((1, 1), bounds.lo)
            whole[number, "hi"] = np.full((1, 1), bounds.hi)
        for leaf, table in self._tables.items():
            if leaf[1] in LOGIC:
                any_ = table.values.any() if isinstance(table, Table) else table
                whole[leaf] = np.asarray(any_).reshape(1, 1)
        for number in sorted(self._above):
            node = self.graph[number]
            kind = node.type.kind
            args = [self.ranges[arg] for arg in node.args]
            recipes, sure = self._operation(number, node, args)
            self._recipes[number] = recipes
            with np.errstate(all="ignore"):
                for side in LOGIC if kind is Kind.BOOL else NUMBER:
                    needs, function = recipes[side]
                    whole[number, side] = np.array(function(*(whole[node.args[a], s] for a, s in needs)))
            if kind is Kind.BOOL:
                self.ranges[number] = Range(sure=sure)
            else:
                lo, hi = (float(whole[number, side].item()) for side in NUMBER)
                self.ranges[number] = Range(lo, hi, sure and math.isfinite(lo) and math.isfinite(hi))

    def _operation(self, number: int, node: Node, args: list[Range]) -> tuple[dict[str, Recipe], bool]:
        same = len(set(node.args)) < len(node.args)
        if node.op in ("eq", "ne") and self.graph[node.args[0]].type.kind is Kind.BOOL:
            return _same_truth(node.op), all(arg.sure for arg in args)
        if node.op == "alias" and node.type.kind is Kind.BOOL:
            return _TRUTH_ALIAS, args[0].sure
        return operation(node, args, same)

    def _want(self, side: Side) -> int:
        """The slot of a side, its steps added to the current stage unless it is there."""
        if side in self._slots:
            return self._slots[side]
        number, which = side
        if number in self._leaf:
            return self._step(side, self._tables[side], ())
        needs, function = self._recipes[number][which]
        args = self.graph[number].args
        slots = tuple(self._want((args[a], s)) for a, s in needs)
        return self._step(side, function, slots)

    def _step(
        self, side: Side, what: Table | Ladder | Array | Callable[..., Array], args: tuple[int, ...]
    ) -> int:
        slot = self._slots[side] = len(self._slots)
        self._steps[-1].append((slot, what, args))
        return slot

    def run(self, stage: int, frame: Frame, env: list[Any]) -> None:
        """Do the steps of a stage; ``env``, of length :attr:`size`, holds what earlier stages gave."""
        with np.errstate(all="ignore"):
            for slot, what, args in self._steps[stage]:
                if isinstance(what, Table | Ladder):
                    env[slot] = what.read(frame)
                elif callable(what):
                    env[slot] = what(*[env[a] for a in args])
                else:
                    env[slot] = what

    def slot(self, side: Side) -> int:
        """Where in ``env`` a wanted side is."""
        return self._slots[side]


def _range(kind: Kind, values: Array, undefined: Array | None) -> Range:
    """The range of tabulated values."""
    bad = np.zeros(values.shape, dtype=np.bool_) if undefined is None else undefined != 0
    if kind is Kind.BOOL:
        return Range(sure=not bad.any())
    bad = bad | np.isnan(values)
    lo, hi = float(values[~bad].min(initial=np.inf)), float(values[~bad].max(initial=-np.inf))
    return Range(lo, hi, not bad.any() and math.isfinite(lo) and math.isfinite(hi))


def _anything(side: str) -> Array:
    return np.asarray({"lo": -np.inf, "hi": np.inf}.get(side, True)).reshape(1, 1)


def _same_truth(op: str) -> dict[str, Recipe]:
    needs = ((0, "true"), (0, "false"), (1, "true"), (1, "false"))
    same = Recipe(needs, lambda a, b, c, d: (a & c) | (b & d))
    other = Recipe(needs, lambda a, b, c, d: (a & d) | (b & c))
    return {"true": same, "false": other} if op == "eq" else {"true": other, "false": same}


_TRUTH_ALIAS = {side: Recipe(((0, side),), lambda a: a) for side in LOGIC}
