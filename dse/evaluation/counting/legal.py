"""The legal designs of a team: how many, which is the n-th, and draws that are uniform. None of them is listed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bulk import BulkEvaluator
from dse.evaluation.counting.boxes import Axis, Part, disjoint
from dse.evaluation.counting.conditions import clauses
from dse.evaluation.counting.groups import Group, Leaf
from dse.evaluation.counting.joining import ROWS, Budget, Joining, TooLarge, TooManyStates, refusal
from dse.evaluation.counting.unranking import Unranking
from dse.evaluation.verdict import check_enumerable
from dse.problem import Problem, Rule, Team

__all__ = ["WORK", "LegalSpace", "draw_below"]

WORK = 2**36
"""Pairs of states that are looked at before counting gives up."""

_NATIVE = 2**62
_DEPTH = 10  # how often a part is halved


class LegalSpace:
    """The legal designs of a team.

    Args:
        problem: the problem.
        team: whose designs; None for the whole space.
        rules: those that a design must meet; all of the problem's where None.
        work: how many combinations may be looked at.
        report: is told from time to time how many pairs of the current step are done, of how many.

    Raises:
        InputError: a dimension is continuous.
    """

    def __init__(
        self,
        problem: Problem,
        team: Team | None = None,
        *,
        rules: Sequence[Rule] | None = None,
        work: int = WORK,
        report: Callable[[int, int], None] | None = None,
    ) -> None:
        check_enumerable(problem)
        self.problem = problem
        self.team = team or problem.everything
        self.rules = problem.rules if rules is None else tuple(rules)
        self.budget = Budget(work, report)

    @cached_property
    def _pieces(self) -> list[_Piece]:
        rules = tuple(clauses(self.problem, [rule.check for rule in self.rules]))
        parts = [Part(part.axes, rules + part.clauses) for part in disjoint(self.problem, self.team)]
        nodes = {arg for part in parts for clause in part.clauses for arg in clause.args}
        evaluator = BulkEvaluator(self.problem, nodes)
        return [piece for part in parts for piece in _pieces(evaluator, part, self.budget)]

    @cached_property
    def count(self) -> int:
        """How many there are.

        Raises:
            TooLarge: the conditions couple too many combinations of too many dimensions.
        """
        return sum(piece.count for piece in self._pieces)

    def designs(self, ranks: Sequence[int]) -> NDArray[np.intp]:
        """The value numbers (n, dimensions) of the designs with these ranks, from 0 to ``count`` - 1.

        Ranks number all legal designs, in an order that is always the same but means nothing.
        """
        found = np.zeros((len(ranks), len(self.problem.dimensions)), dtype=np.intp)
        left: NDArray[Any] = np.array(ranks, dtype=np.int64 if self.count < _NATIVE else np.object_)
        start = 0
        for piece in self._pieces:
            rows = np.flatnonzero((left >= start) & (left < start + piece.count))
            if len(rows):
                found[rows] = piece.designs(left[rows] - start)
            start += piece.count
        return found

    def draw(self, rng: np.random.Generator, n: int = 1) -> NDArray[np.intp]:
        """The value numbers (n, dimensions) of designs drawn with replacement, each as likely as any other."""
        return self.designs([draw_below(rng, self.count) for _ in range(n)])


class _Piece:
    """A part whose groups fit into memory. They are made again for its designs unless they are ``small``."""

    def __init__(self, joining: Joining, groups: list[Group], *, small: bool) -> None:
        self.joining = joining
        self.idle = [
            at for at, axis in enumerate(joining.axes) if len(axis) > 1 and not joining.read >> at & 1
        ]
        self.count = math.prod(g.total for g in groups) * math.prod(len(joining.axes[at]) for at in self.idle)
        self._kept = (groups, Unranking(joining)) if small else None

    def designs(self, ranks: NDArray[Any]) -> NDArray[np.intp]:
        found = np.zeros((len(ranks), len(self.joining.axes)), dtype=np.intp)
        for at, axis in enumerate(self.joining.axes):
            if len(axis) == 1:
                found[:, at] = axis[0]
        for at in self.idle:
            axis = self.joining.axes[at]
            ranks, digits = ranks // len(axis), (ranks % len(axis)).astype(np.intp)
            found[:, at] = axis.start + digits * axis.step if isinstance(axis, range) else axis[digits]
        groups, unranking = self._kept or (self.joining.groups(), Unranking(self.joining))
        for group in groups:
            ranks, own = ranks // group.total, ranks % group.total
            own = own.astype(np.int64) if group.total < _NATIVE else own
            unranking.fill(found, np.arange(len(found)), group, np.zeros(len(found), np.intp), own)
        return found


def _pieces(evaluator: BulkEvaluator, part: Part, budget: Budget, depth: int = 0) -> Iterator[_Piece]:
    """A part as pieces that fit into memory: halves of it along its longest dimension where it does not."""
    joining = Joining(evaluator, part.axes, part.clauses, budget)
    if joining.empty:
        return
    groups, dims = _fitting(joining)
    if dims and depth == _DEPTH:
        raise TooLarge(refusal(joining.name(dims), f"more than {ROWS << depth:,}"))
    if dims:
        at = max((at for at in range(len(part.axes)) if dims >> at & 1), key=lambda at: len(part.axes[at]))
        for half in _halves(part.axes[at]):
            axes = (*part.axes[:at], half, *part.axes[at + 1 :])
            yield from _pieces(evaluator, part._replace(axes=axes), budget, depth + 1)
        return
    if all(group.total for group in groups):
        yield _Piece(joining, groups, small=budget.keep(sum(map(_states, groups))))


def _fitting(joining: Joining) -> tuple[list[Group], int]:
    """The groups, or the dimensions of one that does not fit; what was made on the way is let go."""
    try:
        return joining.groups(), 0
    except TooManyStates as error:
        return [], error.dims


def _states(group: Group) -> int:
    """The states, and value numbers, of a group and of those that it was made of."""
    if isinstance(group.source, Leaf):
        return len(group) + len(group.source.digits)
    return len(group) + sum(map(_states, group.source))


def _halves(axis: Axis) -> tuple[Axis, Axis]:
    middle = len(axis) // 2
    return axis[:middle], axis[middle:]


def draw_below(rng: np.random.Generator, bound: int) -> int:
    """A uniform integer from 0 to ``bound`` - 1, of any size."""
    if bound < _NATIVE:
        return int(rng.integers(bound))
    bits = (bound - 1).bit_length()
    while True:
        drawn = int.from_bytes(rng.bytes(-(-bits // 8)), "little") & ((1 << bits) - 1)
        if drawn < bound:
            return drawn
