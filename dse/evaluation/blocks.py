"""Walking a team's part of the space in blocks, in the order of design indices.

A block fixes the slow dimensions, takes a slice of one and all of the fast ones, so that NumPy evaluates it by
broadcasting. What depends only on dimensions that did not change since the last block is not computed again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bulk import Bulk, BulkEvaluator
from dse.evaluation.hull import Hull
from dse.evaluation.verdict import Judge, Outcomes, check_enumerable, condition_holds
from dse.problem import Box, Problem, Team

__all__ = ["BLOCK", "Blocks", "Judged", "allowed_masks", "count_of", "members", "team_names"]

BLOCK = 250_000
"""Designs in a block: its arrays stay within a processor's cache."""

_SPARSE = 16
"""Below one legal design in this many, metrics are computed for the legal ones only."""


class Judged(NamedTuple):
    """One judged block.

    ``positions`` (n,) of its legal designs in the team's part of the space, ``outcomes`` theirs; ``size`` designs in
    all, of which ``outside`` the team; ``illegal`` counts per rule, the first broken one of each design. Where not all
    dimensions are walked, ``doubtful`` are positions that break a rule, by its number, and are not counted under it:
    a condition that comes before it is undecided.
    """

    size: int
    outside: int
    illegal: NDArray[np.int64]
    positions: NDArray[np.int64]
    outcomes: Outcomes | None
    doubtful: tuple[tuple[int, NDArray[np.int64]], ...] = ()


class _Hoisted:
    """An evaluator that keeps the values of nodes whose dimensions have not changed since its last call."""

    def __init__(self, problem: Problem, roots: Sequence[int]) -> None:
        self.evaluator = BulkEvaluator(problem, roots)
        self.values: dict[int, Bulk] = {}
        self.last: dict[str, object] | None = None
        self._plans: dict[frozenset[str], list[int]] = {}

    def evaluate(self, digits: dict[str, NDArray[np.intp]], varying: dict[str, object]) -> dict[int, Bulk]:
        """``varying`` says, per dimension that changes from block to block, what it is now."""
        if self.last is None:
            nodes = self.evaluator.order
        else:
            changed = frozenset(name for name, now in varying.items() if self.last[name] != now)
            plan = self._plans.get(changed)
            if plan is None:
                graph = self.evaluator.graph
                plan = self._plans[changed] = [n for n in self.evaluator.order if graph[n].support & changed]
            nodes = plan
        self.last = dict(varying)
        return self.evaluator.evaluate(digits, nodes, self.values)


class Blocks(Hull):
    """The blocks of a team's part of the space. ``len(blocks)`` of them; :meth:`judge` evaluates one.

    A *position* counts the designs of the box around the team, in the order of their indices.

    Args:
        metrics: False finds the legal designs only, without their outcomes (which may need measuring).
        dimensions: those that are walked, slowest first; default: all, in their order. Conditions that depend on
            others are then left undecided, and there are no outcomes.

    Raises:
        InputError: a dimension is continuous.
    """

    def __init__(
        self,
        problem: Problem,
        team: Team,
        block: int = BLOCK,
        *,
        metrics: bool = True,
        dimensions: Sequence[int] | None = None,
    ) -> None:
        check_enumerable(problem)
        super().__init__(problem, team, dimensions)
        self.metrics = metrics and dimensions is None
        self.inner = 1
        self.split = len(self.sizes) - 1
        while self.split > 0 and self.inner * self.sizes[self.split] <= block:
            self.inner *= self.sizes[self.split]
            self.split -= 1
        self.slice = max(1, min(self.sizes[self.split], block // self.inner)) if self.total else 1
        self.slices = -(-self.sizes[self.split] // self.slice)
        self.judge_of = Judge(problem)
        known = frozenset(self.names)
        self.decided = [problem.graph[rule.check].support <= known for rule in problem.rules]
        self.membership = known >= team_names(problem, team)
        undecided = [not known >= team_names(problem, team), *(not decided for decided in self.decided)]
        self.doubtful = [any(undecided[: at + 1]) for at in range(len(problem.rules))]
        conditions = [
            rule.check for rule, decided in zip(problem.rules, self.decided, strict=True) if decided
        ]
        if self.membership:
            conditions += [conjunct.node for box in team.boxes for conjunct in box.where]
        self._rules = _Hoisted(problem, conditions)
        roots = self.judge_of.roots if self.metrics else []
        self._metrics = _Hoisted(problem, roots)
        self._sparse = BulkEvaluator(problem, roots)
        self._allowed = [allowed_masks(problem, box, self) for box in team.boxes] if self.membership else []
        inner = [d for d in range(self.split, len(self.sizes)) if self.sizes[d] > 1 or d == self.split]
        self._inner = {d: at for at, d in enumerate(inner)}

    def __len__(self) -> int:
        return math.prod(self.sizes[: self.split]) * self.slices if self.total else 0

    # -- evaluation -------------------------------------------------------------------------------

    def judge(self, number: int) -> Judged:
        """Evaluate block ``number``: which designs are legal, and their outcomes."""
        prefix, at = divmod(number, self.slices)
        start = at * self.slice
        stop = min(start + self.slice, self.sizes[self.split])
        shape = tuple(stop - start if d == self.split else self.sizes[d] for d in self._inner)
        digits: dict[str, NDArray[np.intp]] = {}
        varying: dict[str, object] = {}
        rest = prefix
        for d in range(len(self.sizes) - 1, -1, -1):
            name, axis = self.names[d], self.axes[d]
            if d in self._inner:
                own = axis[start:stop] if d == self.split else axis
                place = self._inner[d]
                digits[name] = own.reshape((1,) * place + (-1,) + (1,) * (len(shape) - place - 1))
                if d == self.split:
                    varying[name] = start
            elif d > self.split:
                digits[name] = axis[0]
            else:
                rest, digit = divmod(rest, len(axis))
                digits[name] = axis[digit]
                varying[name] = digit
        base = (prefix * self.sizes[self.split] + start) * self.inner
        return self._judge(digits, varying, shape, base)

    def _judge(
        self,
        digits: dict[str, NDArray[np.intp]],
        varying: dict[str, object],
        shape: tuple[int, ...],
        base: int,
    ) -> Judged:
        size = math.prod(shape)
        values = self._rules.evaluate(digits, varying)
        alive = self._members(digits, values)
        inside = count_of(alive, size)
        illegal = np.zeros(len(self.problem.rules), dtype=np.int64)
        doubtful: list[tuple[int, NDArray[np.int64]]] = []
        left = inside
        for at, rule in enumerate(self.problem.rules):
            if not left:
                break
            if not self.decided[at]:
                continue
            before, alive = alive, alive & condition_holds(values[rule.check])
            now = count_of(alive, size)
            if not self.doubtful[at]:
                illegal[at] = left - now
            elif now < left:
                lost = np.flatnonzero(np.broadcast_to(before & ~alive, shape))
                doubtful.append((at, lost.astype(np.int64) + base))
            left = now
        flat = np.flatnonzero(np.broadcast_to(alive, shape)) if left else np.zeros(0, dtype=np.intp)
        positions = flat.astype(np.int64) + base
        outcomes = self._outcomes(digits, varying, shape, flat, positions) if self.metrics else None
        return Judged(size, size - inside, illegal, positions, outcomes, tuple(doubtful))

    def _members(self, digits: dict[str, NDArray[np.intp]], values: dict[int, Bulk]) -> NDArray[np.bool_]:
        """Which designs belong to the team; of a shape that broadcasts to the block's."""
        if not self.membership:
            return np.asarray(True)
        return members(self.team, self._allowed, digits, values)

    def _outcomes(
        self,
        digits: dict[str, NDArray[np.intp]],
        varying: dict[str, object],
        shape: tuple[int, ...],
        flat: NDArray[np.intp],
        positions: NDArray[np.int64],
    ) -> Outcomes:
        n = len(flat)
        if n * _SPARSE < math.prod(shape):
            return self.judge_of.evaluate(self.digit_arrays(positions), n, self._sparse)
        values = self._metrics.evaluate(digits, varying)
        everything = n == math.prod(shape)

        def pick(array: NDArray[np.generic]) -> NDArray[np.generic]:
            if array.ndim == 0:
                return np.broadcast_to(array, (n,))
            full = np.broadcast_to(array, shape).reshape(-1)
            return full if everything else full[flat]

        roots = {
            root: Bulk(
                pick(values[root].values), None if (bad := values[root].undefined) is None else pick(bad)
            )
            for root in self.judge_of.roots
        }
        return self.judge_of.outcomes(roots, n)


def team_names(problem: Problem, team: Team) -> frozenset[str]:
    """The dimensions that decide who belongs to a team, among the designs of the box around it."""
    if not team.boxes:
        return frozenset()
    names = frozenset(name for box in team.boxes for conjunct in box.where for name in conjunct.names)
    if len(team.boxes) > 1:
        names |= {
            name
            for box in team.boxes
            for name, allowed in zip(problem.names, box.allowed, strict=True)
            if allowed is not None
        }
    return names


def allowed_masks(problem: Problem, box: Box, hull: Hull) -> dict[str, NDArray[np.bool_]]:
    """Per dimension on which a box is narrower than the hull: value number -> allowed."""
    masks = {}
    for d, name, axis in zip(hull.dimensions, hull.names, hull.axes, strict=True):
        allowed = box.allowed[d]
        if allowed is not None and len(allowed) < len(axis):
            masks[name] = np.isin(np.arange(problem.sizes[d]), allowed)
    return masks


def members(
    team: Team,
    allowed: Sequence[Mapping[str, NDArray[np.bool_]]],
    digits: Mapping[str, NDArray[np.intp]],
    values: Mapping[int, Bulk],
) -> NDArray[np.bool_]:
    """Which designs of the hull belong to the team; of a shape that broadcasts to theirs.

    Args:
        allowed: of each box, :func:`allowed_masks`.
        values: those of the boxes' conditions.
    """
    union: NDArray[np.bool_] | None = None
    for box, masks in zip(team.boxes, allowed, strict=True):
        held: NDArray[np.bool_] = np.asarray(True)
        for name, mask in masks.items():
            held = held & mask[digits[name]]
        for conjunct in box.where:
            held = held & condition_holds(values[conjunct.node])
        union = held if union is None else union | held
    return np.asarray(False) if union is None else union


def count_of(mask: NDArray[np.bool_], size: int) -> int:
    """How many of a block's ``size`` designs a mask of fewer axes holds."""
    return int(np.count_nonzero(mask)) * (size // mask.size)
