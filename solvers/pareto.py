"""The exact Pareto front by cutting prefixes: dimensions are fixed one after another, in their declared order, and
a prefix is dropped as soon as a rule or constraint that depends on nothing else rejects it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dse.evaluation import Blocks, BulkEvaluator, Judge
from dse.evaluation.verdict import bound_broken, condition_holds, inside, spread
from dse.problem import Problem, Team
from dse.study.exact import walk
from dse.study.solver import ExactSearch, ExactSolver
from dse.study.tally import Tally

from .exhaustive import refusal

__all__ = ["Pareto"]

_ROOTS = 4_096  # prefixes at least that the search is cut into
_PIECE = 1_024  # of them in one piece of work
_BATCH = 65_536  # prefixes extended at once


class _Prefixes:
    """Depth-first search over batches of prefixes; a row holds axis positions of the dimensions fixed so far."""

    prune = True

    def __init__(self, problem: Problem, team: Team) -> None:
        self.problem = problem
        self.team = team
        self.blocks = Blocks(problem, team, metrics=False)
        self.sizes = self.blocks.sizes
        self.depth = len(self.sizes)
        self.judge = Judge(problem)
        self.leaf = BulkEvaluator(problem, self.judge.roots)
        self._plan()
        self.root_depth = 0
        while self.root_depth < self.depth and math.prod(self.sizes[: self.root_depth]) < _ROOTS:
            self.root_depth += 1
        self.roots = math.prod(self.sizes[: self.root_depth])

    def _plan(self) -> None:
        """At which depth each condition is decided. A rule waits until the team has decided who is outside."""
        graph, names = self.problem.graph, self.problem.names
        order = {name: at + 1 for at, name in enumerate(names)}

        def decided(*nodes: int) -> int:
            return max((order[name] for node in nodes for name in graph[node].support), default=1)

        narrow = [
            d for box in self.team.boxes for d, allowed in enumerate(box.allowed) if allowed is not None
        ]
        self.team_depth = max([decided(c.node) for box in self.team.boxes for c in box.where], default=1)
        if len(self.team.boxes) > 1:
            self.team_depth = max([self.team_depth, *(d + 1 for d in narrow)])
        self.rules: dict[int, list[int]] = {}
        self.bounds: dict[int, list[int]] = {}
        for at, rule in enumerate(self.problem.rules):
            self.rules.setdefault(max(decided(rule.check), self.team_depth), []).append(at)
        for at, constraint in enumerate(self.problem.constraints):
            depth = max(decided(constraint.bound.lhs, constraint.bound.rhs), self.team_depth)
            if self.prune and depth < self.depth:
                self.bounds.setdefault(depth, []).append(at)
        self.evaluators: dict[int, BulkEvaluator] = {}
        for depth in {self.team_depth, *self.rules, *self.bounds}:
            roots = [self.problem.rules[at].check for at in self.rules.get(depth, [])]
            for at in self.bounds.get(depth, []):
                bound = self.problem.constraints[at].bound
                roots += [bound.lhs, bound.rhs]
            if depth == self.team_depth:
                roots += [c.node for box in self.team.boxes for c in box.where]
            self.evaluators[depth] = BulkEvaluator(self.problem, roots)

    def __len__(self) -> int:
        return math.ceil(self.roots / _PIECE)

    def run(self, piece: int, tally: Tally) -> None:
        first = piece * _PIECE
        numbers = np.arange(first, min(first + _PIECE, self.roots), dtype=np.int64)
        rows = np.empty((len(numbers), self.root_depth), dtype=np.int64)
        for d in range(self.root_depth - 1, -1, -1):
            numbers, rows[:, d] = np.divmod(numbers, self.sizes[d])
        for depth in range(1, self.root_depth + 1):
            rows = self._cut(rows, depth, tally, done=self.root_depth)
        stack = [rows]
        while stack:
            rows = stack.pop()
            if not len(rows):
                continue
            if rows.shape[1] == self.depth:
                self._evaluate(rows, tally)
                continue
            depth = rows.shape[1] + 1
            stack += [self._cut(extended, depth, tally, done=depth) for extended in self._extend(rows)][::-1]

    def _extend(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """The rows with every position of the next dimension, in batches."""
        size = self.sizes[rows.shape[1]]
        step = max(1, _BATCH // size)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            new = np.tile(np.arange(size, dtype=np.int64), len(part))
            yield np.column_stack([np.repeat(part, size, axis=0), new])

    def _digits(self, rows: NDArray[np.int64]) -> dict[str, NDArray[np.intp]]:
        return {self.problem.names[d]: self.blocks.axes[d][rows[:, d]] for d in range(rows.shape[1])}

    def _cut(self, rows: NDArray[np.int64], depth: int, tally: Tally, done: int) -> NDArray[np.int64]:
        """The rows that no condition decided at ``depth`` rejects; the others are accounted for.

        A row, of ``done`` dimensions, stands for all designs that begin with it.
        """
        if depth not in self.evaluators or not len(rows):
            return rows
        n = len(rows)
        weight = math.prod(self.sizes[done:])
        digits = self._digits(rows)
        values = {node: spread(bulk, n) for node, bulk in self.evaluators[depth].evaluate(digits).items()}
        alive = np.ones(n, dtype=np.bool_)
        if depth == self.team_depth:
            alive = inside(self.problem, self.team, digits, values, n)
            tally.outside += (n - int(np.count_nonzero(alive))) * weight
        for at in self.rules.get(depth, []):
            held = condition_holds(values[self.problem.rules[at].check])
            tally.illegal[at] += int(np.count_nonzero(alive & ~held)) * weight
            alive &= held
        for at in self.bounds.get(depth, []):
            constraint = self.problem.constraints[at]
            lost = alive & bound_broken(constraint.bound, values)
            if lost.any():
                tally.prune(f"constraint {constraint.name}", int(np.count_nonzero(lost)) * weight)
                alive &= ~lost
        return rows[alive]

    def _evaluate(self, rows: NDArray[np.int64], tally: Tally) -> None:
        digits = self._digits(rows)
        positions = _positions(rows, self.sizes)
        tally.add(positions, self.judge.evaluate(digits, len(rows), self.leaf), digits)


class _Unpruned(_Prefixes):
    """The same search with nothing dropped by a constraint, to explain why nothing is feasible."""

    prune = False


def _positions(rows: NDArray[np.int64], sizes: Sequence[int]) -> NDArray[np.int64]:
    positions = np.zeros(len(rows), dtype=np.int64)
    for d, size in enumerate(sizes):
        positions = positions * size + rows[:, d]
    return positions


class Pareto(ExactSolver):
    """The exact front, without evaluating what a prefix already rules out."""

    name = "pareto"
    title = "the exact front, prefixes cut by rules and constraints"
    needs = frozenset({"bulk"})

    def refuse(self, problem: Problem, team: Team) -> str | None:
        """Refuse what cannot be enumerated."""
        return refusal(problem, team)

    def explore(self, search: ExactSearch) -> None:
        """Search piece after piece; with nothing feasible, once more to say why."""
        if not (search.state and search.state.get("explaining")):
            walk(search, _Prefixes)
            if search.tally.feasible or not search.tally.pruned:
                return
            # Nothing is feasible: go again with every legal design evaluated, to say what comes closest.
            search.restart({"next": 0, "explaining": True})
        walk(search, _Unpruned)
