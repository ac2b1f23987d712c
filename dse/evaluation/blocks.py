"""Walking a team's part of the space in blocks, in the order of design indices.

A block fixes the slow dimensions, takes a slice of one and all of the fast ones, so that NumPy evaluates it by
broadcasting. What depends only on dimensions that did not change since the last block is not computed again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bulk import Bulk, BulkEvaluator
from dse.evaluation.verdict import Judge, Outcomes, check_enumerable, condition_holds
from dse.problem import Box, Problem, Team

__all__ = ["BLOCK", "Blocks", "Judged"]

BLOCK = 250_000
"""Designs in a block: its arrays stay within a processor's cache."""

_SPARSE = 16
"""Below one legal design in this many, metrics are computed for the legal ones only."""


class Judged(NamedTuple):
    """One judged block.

    ``positions`` (n,) of its legal designs in the team's part of the space, ``outcomes`` theirs; ``size`` designs in
    all, of which ``outside`` the team; ``illegal`` counts per rule, the first broken one of each design.
    """

    size: int
    outside: int
    illegal: NDArray[np.int64]
    positions: NDArray[np.int64]
    outcomes: Outcomes | None


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


class Blocks:
    """The blocks of a team's part of the space. ``len(blocks)`` of them; :meth:`judge` evaluates one.

    A *position* counts the designs of the box around the team, in the order of their indices.

    Raises:
        InputError: a dimension is continuous.
    """

    def __init__(self, problem: Problem, team: Team, block: int = BLOCK, *, metrics: bool = True) -> None:
        """``metrics=False`` finds the legal designs only, without their outcomes (which may need measuring)."""
        check_enumerable(problem)
        self.metrics = metrics
        self.problem = problem
        self.team = team
        self.axes = [np.asarray(axis, dtype=np.intp) for axis in team.hull(problem.sizes)]
        self.sizes = [len(axis) for axis in self.axes]
        self.total = math.prod(self.sizes)
        self.inner = 1
        self.split = len(self.sizes) - 1
        while self.split > 0 and self.inner * self.sizes[self.split] <= block:
            self.inner *= self.sizes[self.split]
            self.split -= 1
        self.slice = max(1, min(self.sizes[self.split], block // self.inner)) if self.total else 1
        self.slices = -(-self.sizes[self.split] // self.slice)
        self.judge_of = Judge(problem)
        self._rules = _Hoisted(
            problem, [*(r.check for r in problem.rules), *(c.node for b in team.boxes for c in b.where)]
        )
        roots = self.judge_of.roots if metrics else []
        self._metrics = _Hoisted(problem, roots)
        self._sparse = BulkEvaluator(problem, roots)
        self._allowed = [self._masks(box) for box in team.boxes]
        inner = [d for d in range(self.split, len(self.sizes)) if self.sizes[d] > 1 or d == self.split]
        self._inner = {d: at for at, d in enumerate(inner)}

    def __len__(self) -> int:
        return math.prod(self.sizes[: self.split]) * self.slices if self.total else 0

    def _masks(self, box: Box) -> dict[str, NDArray[np.bool_]]:
        """Per dimension on which the box is narrower than the hull: value number -> allowed."""
        masks = {}
        for dimension, size, allowed, axis in zip(
            self.problem.dimensions, self.problem.sizes, box.allowed, self.axes, strict=True
        ):
            if allowed is not None and len(allowed) < len(axis):
                masks[dimension.name] = np.isin(np.arange(size), allowed)
        return masks

    # -- positions --------------------------------------------------------------------------------

    def digits_of(self, position: int) -> tuple[int, ...]:
        """The value numbers of the design at a position."""
        digits = []
        for axis in reversed(self.axes):
            position, at = divmod(int(position), len(axis))
            digits.append(int(axis[at]))
        return tuple(reversed(digits))

    def digit_arrays(self, positions: NDArray[np.int64]) -> dict[str, NDArray[np.intp]]:
        """The value numbers, per dimension, of the designs at ``positions`` (n,)."""
        arrays: dict[str, NDArray[np.intp]] = {}
        rest = positions
        for name, axis in zip(reversed(self.problem.names), reversed(self.axes), strict=True):
            if len(axis) == 1:
                arrays[name] = np.broadcast_to(axis, rest.shape)
                continue
            rest, at = np.divmod(rest, len(axis))
            arrays[name] = axis[at]
        return arrays

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
            name, axis = self.problem.names[d], self.axes[d]
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
        inside = _count(alive, size)
        illegal = np.zeros(len(self.problem.rules), dtype=np.int64)
        left = inside
        for at, rule in enumerate(self.problem.rules):
            if not left:
                break
            alive = alive & condition_holds(values[rule.check])
            now = _count(alive, size)
            illegal[at] = left - now
            left = now
        flat = np.flatnonzero(np.broadcast_to(alive, shape)) if left else np.zeros(0, dtype=np.intp)
        positions = flat.astype(np.int64) + base
        outcomes = self._outcomes(digits, varying, shape, flat, positions) if self.metrics else None
        return Judged(size, size - inside, illegal, positions, outcomes)

    def _members(self, digits: dict[str, NDArray[np.intp]], values: dict[int, Bulk]) -> NDArray[np.bool_]:
        """Which designs belong to the team; of a shape that broadcasts to the block's."""
        union: NDArray[np.bool_] | None = None
        for box, masks in zip(self.team.boxes, self._allowed, strict=True):
            held: NDArray[np.bool_] = np.asarray(True)
            for name, mask in masks.items():
                held = held & mask[digits[name]]
            for conjunct in box.where:
                held = held & condition_holds(values[conjunct.node])
            union = held if union is None else union | held
        return np.asarray(False) if union is None else union

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


def _count(mask: NDArray[np.bool_], size: int) -> int:
    """How many of a block's ``size`` designs a mask of fewer axes holds."""
    return int(np.count_nonzero(mask)) * (size // mask.size)
