"""How a team's part of the space is swept: which dimensions are walked as rows, and which are spread inside.

Rows are the combinations of the walked dimensions that no condition rejects, so what is computed of them is
computed for legal designs only; but a value that depends on one of them is computed row by row. The inner
dimensions are spread by broadcasting. The plan weighs the two, by counting operations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.blocks import allowed_masks, members, team_names
from dse.evaluation.bulk import BulkEvaluator
from dse.evaluation.hashing import uniform
from dse.evaluation.hull import Hull
from dse.evaluation.verdict import Judge, condition_holds
from dse.problem import Problem, Team

__all__ = ["Plan", "deciding_plan", "plan_of"]

_DRAWN = 2048  # designs that the share of legal ones is guessed from
_CALL = 3_000.0  # what calling a NumPy function costs, in operations on one value
_SHORTEST = 128  # rows at least that are evaluated at once, so that operations run long
_PATIENCE = 3  # choices of rows that are no better, before the search for a better one ends
_SMALL = 4096  # designs that are not worth planning for


@dataclass(frozen=True, slots=True)
class Plan:
    """The dimensions that are walked, slowest first, and those spread inside.

    ``kept`` is the share of rows that is expected to be left by the conditions that rows decide.
    """

    rows: tuple[int, ...]
    inner: tuple[int, ...]
    kept: float


def plan_of(problem: Problem, team: Team, hull: Hull, *, batch: int) -> Plan:
    """The cheapest plan found, the same every time; ``batch`` designs are evaluated at once."""
    if hull.total <= _SMALL:
        return Plan(tuple(range(len(hull.sizes))), (), 1.0)
    work = _Work(problem, team, hull, batch)
    chosen = work.cheapest()
    return _plan(hull, chosen, work.shares(chosen)[0])


def deciding_plan(problem: Problem, team: Team, hull: Hull, first: Sequence[int] = ()) -> Plan:
    """The plan with the fewest rows that decide every condition; ``first`` are walked in any case, slowest."""
    names = team_names(problem, team).union(*(problem.graph[rule.check].support for rule in problem.rules))
    chosen = frozenset(d for d, name in enumerate(problem.names) if name in names or d in first)
    return _plan(hull, chosen or frozenset((0,)), 1.0, first)


def _plan(hull: Hull, chosen: frozenset[int], kept: float, first: Sequence[int] = ()) -> Plan:
    """Dimensions of one value are walked, too, which costs nothing."""
    walked = [d for d, size in enumerate(hull.sizes) if d in chosen or size == 1]
    inner = tuple(d for d in range(len(hull.sizes)) if d not in walked)
    return Plan((*first, *(d for d in walked if d not in first)), inner, float(kept))


class _Work:
    """What a choice of rows costs, guessed."""

    def __init__(self, problem: Problem, team: Team, hull: Hull, batch: int) -> None:
        self.batch = batch
        self.sizes = [float(size) for size in hull.sizes]
        self._products: dict[int, float] = {}
        graph, at = problem.graph, {name: d for d, name in enumerate(problem.names)}
        wide = {name for name, size in zip(problem.names, hull.sizes, strict=True) if size > 1}

        def bits(names: frozenset[str]) -> int:
            return sum(1 << at[name] for name in names & wide)

        checks = [rule.check for rule in problem.rules]
        conjuncts = [conjunct.node for box in team.boxes for conjunct in box.where]
        self.conditions = [bits(team_names(problem, team)), *(bits(graph[n].support) for n in checks)]
        self.metrics = _counted(bits(graph[n].support) for n in graph.needed(Judge(problem).roots))
        self.checks = _counted(bits(graph[n].support) for n in graph.needed([*checks, *conjuncts]))
        self.wide = sum(1 << at[name] for name in wide)
        self.held = self._drawn(problem, team, hull, checks + conjuncts)
        self.legal = max(int(np.count_nonzero(self.held.all(axis=0))), 0.5) / _DRAWN

    def _drawn(self, problem: Problem, team: Team, hull: Hull, nodes: Sequence[int]) -> NDArray[np.bool_]:
        """Which of some designs meet which condition, membership first: (conditions, designs)."""
        count, dimensions = _DRAWN, len(hull.sizes)
        shares = uniform(np.arange(count * dimensions, dtype=np.int64), 0).reshape(dimensions, count)
        digits = {
            name: axis[(share * len(axis)).astype(np.intp)]
            for name, axis, share in zip(hull.names, hull.axes, shares, strict=True)
        }
        values = BulkEvaluator(problem, nodes).evaluate(digits)
        held = np.empty((len(self.conditions), count), dtype=np.bool_)
        held[0] = members(team, [allowed_masks(problem, box, hull) for box in team.boxes], digits, values)
        for at, rule in enumerate(problem.rules, 1):
            held[at] = condition_holds(values[rule.check])
        return held

    def shares(self, chosen: frozenset[int]) -> tuple[float, float]:
        """The share of rows that is left, and of those whose designs must be looked at to say what rejects them.

        Of none, half of one.
        """
        rows, count = _bits(chosen), self.held.shape[1]
        decided = [at for at, names in enumerate(self.conditions) if not names & ~rows]
        certain = next((n for n, at in enumerate(decided) if n != at), len(decided))
        kept = np.count_nonzero(self.held[decided].all(axis=0)) if decided else count
        looked = np.count_nonzero(self.held[decided[:certain]].all(axis=0)) if certain else count
        return max(kept, 0.5) / count, max(looked, 0.5) / count

    def cost(self, chosen: frozenset[int]) -> float:
        """Operations on single values, for the whole of the team's part of the space."""
        rows = _bits(chosen)
        cells = self._product(rows)
        inner = self._product(self.wide & ~rows)
        kept, looked = self.shares(chosen)
        alive = kept * cells

        def per_row(counted: dict[int, int]) -> float:
            return sum(n * self._product(names & ~rows) for names, n in counted.items() if names & rows)

        batches = max(alive * inner / self.batch, 1.0)
        calls = sum(self.metrics.values()) + 40.0
        left = [names for names in self.conditions if names & ~rows]
        total = cells * 0.3 * (1 + len(self.conditions) - len(left)) + alive * 6.0 * len(chosen)
        spread = alive * (per_row(self.metrics) + 6.0 * inner)
        if left:
            total += looked * cells * (per_row(self.checks) + (2.0 + len(left)) * inner)
            flat = cells * inner * self.legal * (sum(self.metrics.values()) + 6.0 * len(self.sizes))
            spread = min(spread, flat)
            calls += sum(self.checks.values())
        return total + spread + batches * calls * _CALL

    def _product(self, names: int) -> float:
        found = self._products.get(names)
        if found is None:
            found = math.prod(size for d, size in enumerate(self.sizes) if names >> d & 1)
            self._products[names] = found
        return found

    def cheapest(self) -> frozenset[int]:
        """Rows grow by what makes them cheapest, a condition's dimensions or a single one, until all are walked."""
        every = frozenset(d for d in range(len(self.sizes)) if self.wide >> d & 1)
        chosen = frozenset(sorted(every)[:1])
        best, least, worse = every, math.inf, 0
        while worse < _PATIENCE:
            if self._product(self.wide & ~_bits(chosen)) * _SHORTEST <= self.batch:
                cost = self.cost(chosen)
                worse += 1
                if cost < least:
                    best, least, worse = chosen, cost, 0
            options = {chosen | {d} for d in every - chosen}
            options |= {chosen | {d for d in every if names >> d & 1} for names in self.conditions}
            options.discard(chosen)
            if not options:
                break
            chosen = min(options, key=lambda option: (self.cost(option), sorted(option)))
        return best


def _bits(dimensions: Iterable[int]) -> int:
    return sum(1 << d for d in dimensions)


def _counted(names: Iterable[int]) -> dict[int, int]:
    """How many nodes there are of each support, but for those that depend on nothing."""
    counted = Counter(names)
    del counted[0]
    return counted
