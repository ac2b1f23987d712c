"""Counting legal designs and drawing them uniformly: from a list where the team's part of the space is small, else by
number; by rejection where they cannot be counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation import Blocks, BulkEvaluator, broken_rule, evaluate_nodes
from dse.evaluation.counting import LegalSpace, TooLarge, legal_designs
from dse.evaluation.hull import Hull
from dse.evaluation.verdict import condition_holds, inside
from dse.expressions import Value
from dse.problem import Dimension, Problem, Rule, Team
from dse.study.identity import Coder, Key, Membership

__all__ = ["LISTED", "Census", "Drawn", "LegalDesigns"]

LISTED = 2**20
"""The most designs in the box around a team that are listed to know the legal ones; the most legal ones that are soon listed when drawing."""

WORK = 2**24
"""Combinations that are looked at to count the legal designs of a larger space."""

_ROUND = 4096  # designs tried at once
_ROUNDS = 64
_BY_PARTS = 2000  # designs tried one by one, with their inactive dimensions set right
_TRIES = 50  # draws before the unseen ones are listed
_PATIENCE = 2000  # draws where they are many


@dataclass(frozen=True, slots=True)
class Census:
    """How the designs of a whole space divide, as far as it is known.

    ``outside`` and ``illegal`` are proven, ``illegal_by`` per rule; ``complete`` says whether every design was looked
    at, so that the rest are legal.
    """

    total: int
    outside: int
    illegal: int
    illegal_by: dict[str, int]
    complete: bool


class Drawn(NamedTuple):
    """A legal design; ``uniform`` says whether each other one was as likely."""

    key: Key
    uniform: bool = True


@dataclass(frozen=True, slots=True)
class _Listed:
    positions: NDArray[np.int64]
    outside: int
    illegal: NDArray[np.int64]


class LegalDesigns:
    """The legal designs of a team."""

    def __init__(self, problem: Problem, team: Team, coder: Coder | None = None) -> None:
        self.problem = problem
        self.team = team
        self.coder = coder or Coder(problem)
        self.member = Membership(problem, team)
        self._boxes = [box for box in team.boxes if not box.empty]
        # Going dimension by dimension favours designs with inactive dimensions, and those in several or small boxes.
        self._even = len(self._boxes) < 2 and all(d.when is None for d in problem.dimensions)
        self._axes = [] if problem.continuous else Hull(problem, team).axes

    @cached_property
    def _blocks(self) -> Blocks | None:
        if self.problem.continuous:
            return None
        blocks = Blocks(self.problem, self.team, metrics=False)
        return blocks if blocks.total <= LISTED else None

    @cached_property
    def _listed(self) -> _Listed | None:
        blocks = self._blocks
        if blocks is None:
            return None
        judged = [blocks.judge(number) for number in range(len(blocks))]
        return _Listed(
            np.concatenate([np.zeros(0, dtype=np.int64), *(j.positions for j in judged)]),
            sum(j.outside for j in judged),
            sum((j.illegal for j in judged), np.zeros(len(self.problem.rules), dtype=np.int64)),
        )

    @cached_property
    def _counted(self) -> LegalSpace | None:
        """The legal designs by number; None where they cannot be counted."""
        return None if self.problem.continuous else self._counts(self.problem.rules)

    def _counts(self, rules: Sequence[Rule]) -> LegalSpace | None:
        space = LegalSpace(self.problem, self.team, rules=rules, work=WORK)
        try:
            return space if space.count >= 0 else None
        except TooLarge:
            return None

    @property
    def count(self) -> int | None:
        """How many legal designs there are; None when they cannot be counted."""
        if not self._boxes:
            return 0
        if self._listed is not None:
            return len(self._listed.positions)
        return None if self._counted is None else self._counted.count

    def census(self) -> Census | None:
        """How the whole space divides; None when a dimension is continuous."""
        if self.problem.continuous:
            return None
        total = self.problem.size
        box = math.prod(map(len, self._axes))
        if self._listed is not None:
            names = [rule.name for rule in self.problem.rules]
            by = {name: int(n) for name, n in zip(names, self._listed.illegal, strict=True) if n}
            return Census(total, total - box + self._listed.outside, sum(by.values()), by, complete=True)
        left = self._left
        if left is None:
            return Census(total, total - box, 0, {}, complete=False)
        by = {}
        for rule, (before, after) in zip(self.problem.rules, pairwise(left), strict=True):
            if before > after:
                by[rule.name] = by.get(rule.name, 0) + before - after
        return Census(total, total - left[0], left[0] - left[-1], by, complete=True)

    @cached_property
    def _left(self) -> list[int] | None:
        """How many designs of the team are left by the first 0, 1, ... all rules; None where one cannot be counted."""
        if self._counted is None:
            return None
        rules = self.problem.rules
        spaces = [self._counts(rules[:at]) for at in range(len(rules))]
        counts = [space.count for space in spaces if space is not None]
        return [*counts, self._counted.count] if len(counts) == len(rules) else None

    def draw(self, rng: np.random.Generator, taken: AbstractSet[Key]) -> Drawn | None:
        """A legal design that is not ``taken``; each is as likely as any other, unless they can neither be listed nor
        counted, and are rare.

        Returns:
            None when there is none, or (where they cannot be listed) when none was found in many tries.
        """
        if not self._boxes:
            return None
        if not self.problem.continuous:
            if self._listed is not None:
                return self._from_list(rng, taken)
            if self._counted is not None:
                return self._by_number(self._counted, rng, taken)
            found = self._by_rejection(rng, taken)
            if found is not None:
                return found
        return self._by_parts(rng, taken)

    # -- small spaces -----------------------------------------------------------------------------

    def _from_list(self, rng: np.random.Generator, taken: AbstractSet[Key]) -> Drawn | None:
        assert self._listed is not None
        assert self._blocks is not None
        positions = self._listed.positions
        if not len(positions):
            return None
        for _ in range(_TRIES):
            key = self._blocks.digits_of(int(positions[rng.integers(len(positions))]))
            if key not in taken:
                return Drawn(key)
        unseen = np.setdiff1d(positions, self._positions(taken), assume_unique=True)
        return Drawn(self._blocks.digits_of(int(rng.choice(unseen)))) if len(unseen) else None

    def _positions(self, keys: AbstractSet[Key]) -> NDArray[np.int64]:
        """Where designs of the team stand in the box around it."""
        digits = np.array(sorted(keys), dtype=np.intp).reshape(len(keys), len(self._axes))
        positions = np.zeros(len(keys), dtype=np.int64)
        for at, axis in enumerate(self._axes):
            positions = positions * len(axis) + np.searchsorted(axis, digits[:, at])
        return positions

    # -- spaces that are counted ------------------------------------------------------------------

    @staticmethod
    def _by_number(space: LegalSpace, rng: np.random.Generator, taken: AbstractSet[Key]) -> Drawn | None:
        for _ in range(_TRIES if space.count <= LISTED else _PATIENCE) if space.count else ():
            key = tuple(map(int, space.draw(rng)[0]))
            if key not in taken:
                return Drawn(key)
        blocks = legal_designs(space.problem, space.team)
        unseen = [key for block in blocks for key in map(tuple, block.tolist()) if key not in taken]
        return Drawn(unseen[rng.integers(len(unseen))]) if unseen else None

    # -- other spaces -----------------------------------------------------------------------------

    @cached_property
    def _conditions(self) -> BulkEvaluator:
        nodes = [rule.check for rule in self.problem.rules]
        nodes += [conjunct.node for box in self.team.boxes for conjunct in box.where]
        return BulkEvaluator(self.problem, nodes)

    def _by_rejection(self, rng: np.random.Generator, taken: AbstractSet[Key]) -> Drawn | None:
        names = self.problem.names
        for _ in range(_ROUNDS):
            drawn = [axis[rng.integers(len(axis), size=_ROUND)] for axis in self._axes]
            by_name = dict(zip(names, drawn, strict=True))
            values = self._conditions.evaluate(by_name)
            alive = inside(self.problem, self.team, by_name, values, _ROUND)
            for rule in self.problem.rules:
                alive &= condition_holds(values[rule.check])
            for at in np.flatnonzero(alive):
                key = tuple(int(digits[at]) for digits in drawn)
                if key not in taken:
                    return Drawn(key)
        return None

    def _by_parts(self, rng: np.random.Generator, taken: AbstractSet[Key]) -> Drawn | None:
        """A legal design, drawn dimension by dimension, with inactive dimensions where they must be."""
        for _ in range(_BY_PARTS):
            box = self._boxes[rng.integers(len(self._boxes))]
            design: dict[str, Value] = {}
            for dimension, allowed in zip(self.problem.dimensions, box.allowed, strict=True):
                design[dimension.name] = self._value(rng, dimension, allowed, design)
            key = self.coder.key(design)
            if key not in taken and self.member(key, design) and broken_rule(self.problem, design) is None:
                return Drawn(key, uniform=self._even)
        return None

    def _value(
        self,
        rng: np.random.Generator,
        dimension: Dimension,
        allowed: tuple[int, ...] | None,
        design: dict[str, Value],
    ) -> Value:
        interval = dimension.interval
        if interval is not None:
            if interval.log:
                value = float(np.exp(rng.uniform(np.log(interval.low), np.log(interval.high))))
            else:
                value = float(rng.uniform(interval.low, interval.high))
            return min(max(value, interval.low), interval.high)
        if dimension.when is not None:
            active = evaluate_nodes(self.problem, design, [dimension.when])[dimension.when]
            if active is not True:
                return dimension.values[dimension.otherwise]
        if allowed is None:
            return dimension.values[int(rng.integers(len(dimension.values)))]
        return dimension.values[allowed[rng.integers(len(allowed))]]
