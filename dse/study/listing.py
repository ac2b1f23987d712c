"""The legal designs of a team, where they are few, as pieces of work for :func:`dse.study.exact.walk`.

In a space of many rules nearly every combination is illegal. The legal ones are then listed, which takes as long as
there are of them, and the others are counted rule by rule without looking at any.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.counting import LegalSpace, TooLarge, legal_designs
from dse.evaluation.hull import Hull
from dse.evaluation.listed import Listed
from dse.evaluation.prepared import prepared
from dse.evaluation.verdict import Judge, Outcomes, spread
from dse.problem import Problem, Rule, Team
from dse.study.tally import Tally

__all__ = ["Listing", "few_legal", "legal_count"]

WORK = 2**24
"""Combinations that may be looked at to count the legal designs."""

PIECE = 2**16


def legal_count(problem: Problem, team: Team) -> int | None:
    """The number of legal designs of a team; None where that takes too long to count."""

    def counted() -> int | None:
        try:
            return LegalSpace(problem, team, work=WORK).count
        except TooLarge:
            return None

    return prepared(problem, ("legal count", team.boxes), counted)


def few_legal(problem: Problem, team: Team, most: int) -> int | None:
    """The number of legal designs of a team, if it is at most ``most`` and can be counted for each rule in turn."""
    count = legal_count(problem, team)
    if count is None or count > most:
        return None
    try:
        _illegal(problem, team)
    except TooLarge:
        return None
    return count


def _illegal(problem: Problem, team: Team) -> tuple[int, list[int]]:
    """Designs of the box around a team that are outside the team, and the others by the first rule they break."""

    def counts() -> tuple[int, list[int]]:
        rules = problem.rules
        left = [_count(problem, team, rules[:at]) for at in range(len(rules) + 1)]
        broken = [before - after for before, after in pairwise(left)]
        return Hull(problem, team).total - left[0], broken

    return prepared(problem, ("illegal counts", team.boxes), counts)


def _count(problem: Problem, team: Team, rules: Sequence[Rule]) -> int:
    return LegalSpace(problem, team, rules=rules, work=WORK).count


class Listing:
    """Pieces of the list of legal designs, lowest index first; the first accounts for all illegal ones too.

    Raises:
        TooLarge: the designs that break a rule cannot be counted.
    """

    def __init__(self, problem: Problem, team: Team) -> None:
        self.problem = problem
        self.team = team
        self._hull = Hull(problem, team)
        self._judge = Judge(problem)
        self._listed = Listed(problem, self._judge.roots)
        blocks = list(legal_designs(problem, team))
        self._columns: list[NDArray[Any]] = [
            np.concatenate([block[:, at] for block in blocks]) if blocks else np.zeros(0, dtype=np.uint8)
            for at in range(len(problem.dimensions))
        ]
        self._places = [np.zeros(size, dtype=np.int64) for size in problem.sizes]
        for place, axis in zip(self._places, self._hull.axes, strict=True):
            place[axis] = np.arange(len(axis))

    def __len__(self) -> int:
        return max(1, -(-len(self._columns[0]) // PIECE))

    def run(self, piece: int, tally: Tally) -> None:
        """Judge the designs of one piece."""
        if piece == 0:
            outside, illegal = _illegal(self.problem, self.team)
            tally.outside += outside
            tally.illegal = [a + b for a, b in zip(tally.illegal, illegal, strict=True)]
        found = self.judged(piece)
        if found is None:
            return
        digits, outcomes = found
        positions = self._hull.numbering.positions(
            [place[column] for place, column in zip(self._places, digits.values(), strict=True)]
        )
        tally.add(positions, outcomes, digits)

    def judged(self, piece: int) -> tuple[dict[str, NDArray[Any]], Outcomes] | None:
        """The value numbers (n,) of the designs of one piece, per dimension, and their outcomes; None without any."""
        columns = [column[piece * PIECE : (piece + 1) * PIECE] for column in self._columns]
        n = len(columns[0])
        if not n:
            return None
        values = self._listed.evaluate(columns)
        outcomes = self._judge.outcomes({root: spread(value, n) for root, value in values.items()}, n)
        return dict(zip(self.problem.names, columns, strict=True)), outcomes
