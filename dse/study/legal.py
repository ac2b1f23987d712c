"""Drawing legal designs uniformly: from a list where the team's part of the space is small, else by rejection."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation import Blocks, BulkEvaluator, broken_rule, evaluate_nodes
from dse.evaluation.verdict import condition_holds, inside
from dse.expressions import Value
from dse.problem import Dimension, Problem, Team
from dse.study.identity import Coder, Key, Membership

__all__ = ["LISTED", "Census", "Drawn", "LegalDesigns"]

LISTED = 2**20
"""The most designs in the box around a team that are listed to know the legal ones."""

_ROUND = 4096  # designs tried at once
_ROUNDS = 64
_BY_PARTS = 2000  # designs tried one by one, with their inactive dimensions set right
_TRIES = 50  # draws from the list before the unseen ones are listed


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
        hull = [] if problem.continuous else team.hull(problem.sizes)
        self._axes = [np.asarray(axis, dtype=np.intp) for axis in hull]

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

    @property
    def count(self) -> int | None:
        """How many legal designs there are; None when there are too many designs to list."""
        if not self._boxes:
            return 0
        return None if self._listed is None else len(self._listed.positions)

    def census(self) -> Census | None:
        """How the whole space divides; None when a dimension is continuous."""
        if self.problem.continuous:
            return None
        total = self.problem.size
        box = 1
        for axis in self._axes:
            box *= len(axis)
        if self._listed is None:
            return Census(total, total - box, 0, {}, complete=False)
        names = [rule.name for rule in self.problem.rules]
        by = {name: int(n) for name, n in zip(names, self._listed.illegal, strict=True) if n}
        return Census(total, total - box + self._listed.outside, sum(by.values()), by, complete=True)

    def draw(self, rng: np.random.Generator, taken: AbstractSet[Key]) -> Drawn | None:
        """A legal design that is not ``taken``; each is as likely as any other, unless legal designs are rare in a
        space too large to list.

        Returns:
            None when there is none, or (in a space too large to list) when none was found in many tries.
        """
        if not self._boxes:
            return None
        if not self.problem.continuous:
            if self._listed is not None:
                return self._from_list(rng, taken)
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

    # -- large spaces -----------------------------------------------------------------------------

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
