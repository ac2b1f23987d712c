"""The order of the loops: what it costs is counted in operations, and lowered by moving one loop at a time.

Rules that cut much and need little belong outside; what changes only the last few operations belongs inside. How many
designs each cut leaves is estimated from a sample.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bulk import Array, Bulk, BulkEvaluator
from dse.evaluation.compiled.demands import Condition, Demands, Requirement
from dse.evaluation.compiled.facts import Facts
from dse.evaluation.verdict import Judge, Outcomes, condition_holds

__all__ = ["Sample", "best_order", "first_order"]

_SAMPLE = 4096
_SEED = 20_231
_ROUNDS = 40
_MOVES = 400  # tried in a round
_FATES = 256  # of a sample's designs that are told apart
_ELEMENTS = 1_000_000  # of arrays while orders are compared
_LOOP, _QUERY = 2.0, 25.0  # operations of a turn of a loop, and of one look into the guards
_COSTS = {"div": 4.0, "sqrt": 6.0, "floor": 2.0, "ceil": 2.0, "alias": 0.0, "const": 0.0, "input": 0.0}


class Sample:
    """Designs drawn evenly from a team's part of the space: which conditions they break, which are feasible.

    ``places`` (n, dimensions with more than one value), ``broken`` (n, conditions), ``lost`` (n,): failed or infeasible;
    ``legal`` is about how many legal designs there are in all.
    """

    def __init__(self, facts: Facts, demands: Demands, size: int = _SAMPLE) -> None:
        rng = np.random.default_rng(_SEED)
        self.facts = facts
        self.demands = demands
        self.judge = Judge(facts.problem)
        self._roots = BulkEvaluator(facts.problem, self.judge.roots)
        self.places = np.column_stack([rng.integers(0, n, size) for n in facts.sizes])
        self.broken = self._broken(self.places)
        self.outcomes = self._outcomes(self.places)
        self.lost = ~self.outcomes.feasible
        legal = ~self.broken.any(axis=1)
        self.legal = float(legal.mean()) * float(np.prod(facts.sizes, dtype=np.float64))
        self.feasible = self.outcomes.feasible & legal

    def judged(self, places: NDArray[np.int64]) -> tuple[Array, Array]:
        """Which designs at ``places`` (n, dimensions) are feasible, (n,), and the objectives of those, minimized."""
        legal = np.flatnonzero(~self._broken(places).any(axis=1))
        outcomes = self._outcomes(places[legal])
        feasible = np.zeros(len(places), dtype=np.bool_)
        feasible[legal[outcomes.feasible]] = True
        return feasible, outcomes.objectives[outcomes.feasible]

    def _digits(self, places: NDArray[np.int64]) -> dict[str, Array]:
        facts, digits = self.facts, {}
        for at, name in enumerate(facts.problem.names):
            bit = facts.axes.index(at) if at in facts.axes else -1
            digits[name] = facts.hull[at][
                places[:, bit] if bit >= 0 else np.zeros(len(places), dtype=np.intp)
            ]
        return digits

    def _outcomes(self, places: NDArray[np.int64]) -> Outcomes:
        return self.judge.evaluate(self._digits(places), len(places), self._roots)

    def _broken(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which conditions designs break, (n, conditions)."""
        conditions = self.demands.conditions
        broken = np.zeros((len(places), len(conditions)), dtype=np.bool_)
        if conditions:
            nodes = [
                n
                for c in conditions
                for n in (c.node, *(n for side in c.sides for n in side.nodes))
                if n >= 0
            ]
            values = self.facts.evaluator.evaluate(self._digits(places), self.facts.graph.needed(nodes))
            for at, condition in enumerate(conditions):
                broken[:, at] = ~self._holds(condition, values, places)
        return broken

    def _holds(self, condition: Condition, values: dict[int, Bulk], places: NDArray[np.int64]) -> Array:
        size = len(places)
        if not condition.sides:
            return np.broadcast_to(condition_holds(values[condition.node]), (size,))
        held = np.zeros(size, dtype=np.bool_)
        for side in condition.sides:
            own = np.ones(size, dtype=np.bool_)
            for bit, allowed in side.allowed:
                own &= allowed[places[:, bit]]
            for node in side.nodes:
                own &= condition_holds(values[node])
            held |= own
        return held


class _Costs:
    """What an order costs. Orders are given as the levels of dimensions, many at once: (m, dimensions)."""

    def __init__(self, facts: Facts, demands: Demands, sample: Sample, dims: Sequence[int]) -> None:
        self.dims = list(dims)
        self.logs = np.log([facts.sizes[d] for d in dims])
        roots = [*demands.roots] + [c.node for c in demands.conditions if c.node >= 0]
        work: dict[int, float] = defaultdict(float)
        for mask, cost in _work(facts, roots):
            work[mask] += cost
        self.masks = self._rows(list(work))
        self.work = np.array(list(work.values()))
        objectives = [facts.supports[o.node] for o in facts.problem.objectives]
        self.objectives = self._rows(objectives)
        self.conditions = self._rows([c.support for c in demands.conditions])
        late = [r.support for r in demands.requirements] + [facts.supports[n] for n in demands.fallible]
        late += [objectives[at] for at in demands.unbounded] + [c.support for c in demands.conditions]
        self.late = self._rows(late)
        fates, counts = np.unique(np.column_stack([sample.broken, sample.lost]), axis=0, return_counts=True)
        common = np.argsort(-counts, kind="stable")[:_FATES]
        fates, counts = fates[common], counts[common]
        self.broken, self.lost = fates[:, :-1], fates[:, -1]
        self.shares = counts / counts.sum()
        self.least = 0.3 / counts.sum()
        self.size = max(1, len(dims)) * len(self.masks) + fates.size

    def _rows(self, masks: Sequence[int]) -> NDArray[np.bool_]:
        rows = [[mask >> d & 1 for d in self.dims] for mask in masks]
        return np.array(rows, dtype=np.bool_).reshape(len(masks), len(self.dims))

    def _levels(self, levels: NDArray[np.int64], rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The level at which each support is complete, 0 outside all loops: (m, supports)."""
        found: NDArray[np.int64] = np.where(rows[None], levels[:, None, :], 0).max(axis=2, initial=0)
        return found

    def of(self, levels: NDArray[np.int64]) -> NDArray[np.float64]:
        """The costs of orders; ``levels`` (m, dimensions) are 1 (outermost) and up."""
        at_once = max(1, _ELEMENTS // self.size)
        parts = [self._of(levels[at : at + at_once]) for at in range(0, len(levels), at_once)]
        return np.concatenate(parts)

    def _of(self, levels: NDArray[np.int64]) -> NDArray[np.float64]:
        m, depth = levels.shape
        rows = np.arange(m)[:, None]
        turns = np.zeros((m, depth + 1))
        turns[rows, levels] = self.logs
        turns = np.exp(np.cumsum(turns, axis=1))
        end = self._levels(levels, self.late).max(axis=1, initial=0)
        ends = np.where(self.lost[None, :], end[:, None], depth + 1)
        if self.broken.shape[1]:
            at = self._levels(levels, self.conditions)
            cut = np.where(self.broken[None], at[:, None, :], depth + 1).min(axis=2)
            ends = np.minimum(ends, cut)
        alive = np.zeros((m, depth + 2))
        np.add.at(alive, (np.broadcast_to(rows, ends.shape), ends), np.broadcast_to(self.shares, ends.shape))
        # what is cut at a level is still alive when its turn begins
        alive = np.maximum(np.cumsum(alive[:, ::-1], axis=1)[:, ::-1][:, : depth + 1], self.least)
        turns *= alive
        work = np.full((m, depth + 1), _LOOP)
        at = self._levels(levels, self.masks)
        np.add.at(work, (np.broadcast_to(rows, at.shape), at), np.broadcast_to(self.work, at.shape))
        known = np.sort(self._levels(levels, self.objectives), axis=1)
        looked = np.maximum(known[:, -2] if known.shape[1] > 1 else 0, end)
        work[rows[:, 0], looked] += _QUERY
        found: NDArray[np.float64] = (turns * work).sum(axis=1)
        return found


def _work(facts: Facts, roots: Sequence[int]) -> list[tuple[int, float]]:
    """(support, operations) of what is computed in loops; a table is one load."""
    seen: set[int] = set()
    stack, found = list(roots), []
    while stack:
        n = stack.pop()
        if n in seen or not facts.supports[n]:
            continue
        seen.add(n)
        if n in facts.tables:
            found.append((facts.supports[n], 1.0))
            continue
        found.append((facts.supports[n], _COSTS.get(facts.graph[n].op, 1.0)))
        stack.extend(facts.graph[n].args)
    return found


def first_order(facts: Facts, demands: Sequence[Condition | Requirement], used: int) -> list[int]:
    """Dimensions in the order in which the demands need them; then the others."""
    order: list[int] = []
    for mask in [*(d.support for d in demands), used]:
        order += [d for d in range(len(facts.sizes)) if mask >> d & 1 and d not in order and used >> d & 1]
    return order


def best_order(facts: Facts, demands: Demands, sample: Sample) -> list[int]:
    """The cheapest order found from two beginnings: that of the demands, and that of the declaration."""
    used = demands.used
    dims = [d for d in range(len(facts.sizes)) if used >> d & 1]
    costs = _Costs(facts, demands, sample, dims)
    wanted = first_order(facts, [*demands.conditions, *demands.requirements], used)
    starts = [[dims.index(d) for d in wanted], list(range(len(dims)))]
    best: tuple[float, list[int]] = (math.inf, [])
    for start in starts:
        found = _improved(costs, start)
        if not best[1] or found[0] < best[0]:
            best = found
    return [dims[at] for at in best[1]]


def _improved(costs: _Costs, order: list[int]) -> tuple[float, list[int]]:
    """Move one loop at a time, the move that saves most, until none does."""
    n = len(order)
    rng = np.random.default_rng(_SEED)
    cost = float(costs.of(_levels_of([order]))[0])
    for _ in range(_ROUNDS):
        moved = []
        for at in range(n):
            rest = order[:at] + order[at + 1 :]
            moved += [[*rest[:to], order[at], *rest[to:]] for to in range(n) if to != at]
        if not moved:
            break
        if len(moved) > _MOVES:
            moved = [moved[at] for at in rng.choice(len(moved), _MOVES, replace=False)]
        found = costs.of(_levels_of(moved))
        least = int(found.argmin())
        if found[least] >= cost * 0.999:
            break
        cost, order = float(found[least]), moved[least]
    return cost, order


def _levels_of(orders: list[list[int]]) -> NDArray[np.int64]:
    array = np.array(orders, dtype=np.int64)
    levels = np.empty_like(array)
    np.put_along_axis(levels, array, np.arange(1, array.shape[1] + 1)[None, :], axis=1)
    return levels
