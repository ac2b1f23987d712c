"""The legal designs of a team in the order of their indices, in blocks.

Where they are few, they are found by number and sorted. Else they are streamed: prefixes grow one dimension at a time,
and end as soon as a condition that is decided, or has no way left to hold, rejects them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bulk import BulkEvaluator
from dse.evaluation.counting.conditions import Clause, clauses, holds
from dse.evaluation.counting.joining import TooLarge
from dse.evaluation.counting.legal import LegalSpace
from dse.evaluation.verdict import check_enumerable, inside
from dse.problem import Problem, Team

__all__ = ["legal_designs"]

FEW = 2**20
"""Legal designs up to which they are found by number and sorted, which no dead end slows."""

_WORK = 2**24  # combinations that are looked at to count them
_CHUNK = 2**17  # prefixes that are looked at together
_TABLE = 2**16  # combinations of a clause's dimensions up to which it is tabulated


def legal_designs(problem: Problem, team: Team | None = None, chunk: int = _CHUNK) -> Iterator[NDArray[Any]]:
    """Blocks (n, dimensions) of the value numbers of all legal designs, lowest index first.

    They are of the smallest type of integers that holds every value number.

    Args:
        problem: the problem.
        team: whose designs; None for the whole space.
        chunk: how many prefixes are looked at together, which bounds the memory and the size of the blocks.

    Raises:
        InputError: a dimension is continuous.
    """
    check_enumerable(problem)
    team = team or problem.everything
    if not team.boxes:
        return
    narrow = np.min_scalar_type(max(problem.sizes, default=1))
    counted = LegalSpace(problem, team, work=_WORK)
    with suppress(TooLarge):
        if counted.count <= FEW:
            designs = counted.designs(range(counted.count))
            designs = designs[np.lexsort(designs.T[::-1])].astype(narrow)
            yield from (designs[start : start + chunk] for start in range(0, len(designs), chunk))
            return
    axes = [np.asarray(axis, dtype=np.intp) for axis in team.hull(problem.sizes)]
    sieve = _Sieve(problem, team, axes)
    # Each entry: prefixes, and which of their children are still to come.
    stack = [(np.zeros((1, 0), dtype=narrow), 0)]
    while stack:
        prefixes, start = stack.pop()
        depth = prefixes.shape[1]
        if depth == len(axes):
            prefixes = prefixes[sieve.members(prefixes)]
            if len(prefixes):
                yield prefixes
            continue
        axis = axes[depth]
        stop = min(start + chunk, len(prefixes) * len(axis))
        if stop < len(prefixes) * len(axis):
            stack.append((prefixes, stop))
        row, digit = np.divmod(np.arange(start, stop), max(len(axis), 1))
        row, digit = sieve.passed(prefixes, row, axis[digit])
        if len(row):
            stack.append((np.concatenate([prefixes[row], digit[:, None].astype(narrow)], axis=1), 0))


class _Sieve:
    """Rejects prefixes of designs."""

    def __init__(self, problem: Problem, team: Team, axes: Sequence[NDArray[np.intp]]) -> None:
        self.problem = problem
        self.team = team
        conditions = [rule.check for rule in problem.rules]
        if len(team.boxes) == 1:
            conditions += [conjunct.node for conjunct in team.boxes[0].where]
        found = clauses(problem, conditions)
        every = [c.node for box in team.boxes for c in box.where]
        self.evaluator = BulkEvaluator(problem, [*(arg for c in found for arg in c.args), *every])
        self.tables: list[list[tuple[list[int], NDArray[np.bool_]]]] = [[] for _ in axes]
        self.last: list[list[tuple[Clause, list[int]]]] = [[] for _ in axes]
        self.empty = False
        for clause in found:
            support = frozenset().union(*(problem.graph[arg].support for arg in clause.args))
            dims = [at for at, name in enumerate(problem.names) if name in support]
            if not dims:
                values = self.evaluator.evaluate({}, problem.graph.needed(clause.args))
                self.empty |= not bool(holds(clause, values).all())
            elif math.prod(len(axes[at]) for at in dims) <= _TABLE:
                self._tabulate(clause, dims, axes)
            else:
                self.last[dims[-1]].append((clause, dims))

    def _tabulate(self, clause: Clause, dims: Sequence[int], axes: Sequence[NDArray[np.intp]]) -> None:
        """Which combinations of a clause's first dimensions some values of the others can complete."""
        digits = {
            self.problem.names[at]: axes[at].reshape((-1,) + (1,) * (len(dims) - place - 1))
            for place, at in enumerate(dims)
        }
        values = self.evaluator.evaluate(digits, self.problem.graph.needed(clause.args))
        shape = tuple(len(axes[at]) for at in dims)
        table = np.broadcast_to(holds(clause, values), shape)
        for place, at in enumerate(dims):
            held = table.any(axis=tuple(range(place + 1, len(dims))))
            if not held.all():
                of = list(dims[: place + 1])
                whole = np.zeros([int(axes[d][-1]) + 1 for d in of], dtype=np.bool_)
                whole[np.ix_(*(axes[d] for d in of))] = held
                self.tables[at].append((of, whole))

    def passed(
        self, prefixes: NDArray[Any], row: NDArray[np.intp], digit: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The children (a prefix's row, and the value number that follows) that no condition rejects which their last
        dimension decides or narrows.
        """
        at = prefixes.shape[1]
        if self.empty:
            return row[:0], digit[:0]
        for of, table in self.tables[at]:
            held = table[(*(prefixes[row, d] for d in of[:-1]), digit)]
            row, digit = row[held], digit[held]
        for clause, of in self.last[at]:
            digits = {self.problem.names[d]: prefixes[row, d] for d in of[:-1]}
            digits[self.problem.names[at]] = digit
            values = self.evaluator.evaluate(digits, self.problem.graph.needed(clause.args))
            held = np.broadcast_to(holds(clause, values), len(row))
            row, digit = row[held], digit[held]
        return row, digit

    def members(self, designs: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which designs belong to a team of several boxes; the axes and clauses see to one box."""
        if len(self.team.boxes) == 1:
            return np.ones(len(designs), dtype=np.bool_)
        digits = {name: designs[:, at] for at, name in enumerate(self.problem.names)}
        nodes = [c.node for box in self.team.boxes for c in box.where]
        values = self.evaluator.evaluate(digits, self.problem.graph.needed(nodes))
        return inside(self.problem, self.team, digits, values, len(designs))
