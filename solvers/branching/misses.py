"""When nothing is feasible: the legal designs that miss least, found by the same kind of search.

A legal design misses by the sum of violation / abs(bound). Over a box that sum is bounded from below, and so is the set of
constraints that are broken; a box is kept while it may hold a nearer miss, or one that breaks fewer constraints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bounds import Frame
from dse.evaluation.bounds.program import Program, Side
from dse.evaluation.verdict import GATE
from dse.problem import Bound
from dse.study.solver import ExactSearch

from .guard import Guard
from .searching import CHILDREN, Batch, Plan
from .seeding import neighbours

__all__ = ["Misses"]

_BEAM = 1_024
"""Boxes kept at each depth of the first dive."""

_ROUNDS = 20
"""Rounds of local search from the nearest miss known."""

_MASKED = 62
"""Constraints up to which the set of broken ones is one integer."""


class Misses:
    """The search for the nearest misses; what it finds goes to the tally's ``nearest`` and ``relaxed``."""

    def __init__(self, search: ExactSearch, plan: Plan) -> None:
        self.search = search
        self.plan = plan
        self.tree = plan.tree
        self.problem = search.problem
        self.bounds = [constraint.bound for constraint in self.problem.constraints]
        self.first = [constraint.first for constraint in self.problem.constraints]
        sides = [side for bound in self.bounds for side in _sides(bound)]
        self.program = Program(self.problem, plan.boxes.grid, [sides], legal=True)
        self.nobody = Guard(np.empty((0, len(self.problem.objectives))))
        self.stack = [Batch.root()]
        state = search.state or {}
        if "misses" in state:
            self.stack = [Batch.unpack(data) for data in state["misses"]]

    def state(self) -> Mapping[str, Any]:
        """Where the search stands, as JSON values."""
        return {"misses": [batch.pack() for batch in self.stack]}

    def run(self) -> None:
        """Search until no box can hold a nearer miss; the nearest boxes first."""
        if not len(self.search.tally.nearest.positions):
            self._begin()
        while self.stack:
            batch = self.stack.pop()
            depth = len(batch.rows)
            width = self.tree.width(depth)
            most = max(1, CHILDREN // width)
            if batch.rows.shape[1] > most:
                batch, rest = batch.cut(most)
                self.stack.append(rest)
            rows = self.tree.expand(batch.rows, self.nobody, prune=False).rows
            if rows.shape[1]:
                self._sift(rows)
            self.search.tick(self.state, 1.0 if not self.stack else 0.999)

    def _begin(self) -> None:
        """Find some near misses: a dive for the boxes that may be nearest, then the neighbours of the nearest design."""
        rng = np.random.default_rng(self.search.tally.seed)
        rows = np.zeros((0, 1), dtype=np.uint8)
        for _ in range(self.tree.depth):
            rows = self.tree.expand(rows, self.nobody, prune=False).rows
            if rows.shape[1] > _BEAM:
                nearness = self._nearness(self.tree.frame(rows, None), rows.shape[1])[0]
                best = np.argsort(nearness, kind="stable")[: _BEAM // 2]
                some = rng.choice(rows.shape[1], _BEAM // 2, replace=False)
                rows = rows[:, np.unique(np.concatenate([best, some]))]
        if rows.shape[1]:
            self._judge(self.tree.places(rows))
        sizes = np.array(self.tree.grid.sizes, dtype=np.int64)
        known = None
        for _ in range(_ROUNDS):
            nearest = self.search.tally.nearest.positions
            if not len(nearest) or nearest[0] == known:
                return
            known = nearest[0]
            places = np.array(self.plan.points.places(nearest), dtype=np.int64)
            self._judge(list(neighbours(places, sizes, rng)))

    def _sift(self, rows: NDArray[np.uint8]) -> None:
        frame = self.tree.frame(rows, None)
        nearness, broken = self._nearness(frame, rows.shape[1])
        kept = np.flatnonzero(self._wanted(rows, nearness, broken))
        kept = kept[np.argsort(nearness[kept], kind="stable")]
        if not kept.size:
            return
        if len(rows) == self.tree.depth:
            self._judge(self.tree.places(rows[:, kept]))
        else:
            self.stack.append(Batch(0, 0, rows[:, kept], np.zeros(0, dtype=np.intp)))

    def _judge(self, places: list[NDArray[np.int64]]) -> None:
        """Judge designs given by their places, one array (n,) per dimension."""
        points = self.plan.points
        _, places, _, outcomes = points.judged(places)
        if outcomes is not None:
            self.search.tally.add_misses(points.positions(places), outcomes)

    # -- bounds ---------------------------------------------------------------------------------------

    def _nearness(self, frame: Frame, n: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The least that designs of each box miss by (n,), and which constraints (constraints, n) all of them break."""
        env: list[Any] = [None] * self.program.size
        self.program.run(0, frame, env)
        total = np.zeros(n)
        broken = np.zeros((len(self.bounds), n), dtype=np.bool_)
        with np.errstate(all="ignore"):
            for at, (bound, first) in enumerate(zip(self.bounds, self.first, strict=True)):
                values = [env[self.program.slot(side)].reshape(-1) for side in _sides(bound)]
                least, must = _violation(bound, values)
                total += np.where(must, (least + 1.0) * GATE, least) if first else least
                broken[at] = must
        return total, broken

    def _wanted(
        self, rows: NDArray[np.uint8], nearness: NDArray[np.float64], broken: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Which boxes may hold a nearest miss, or one of those that break fewest constraints."""
        tally = self.search.tally
        nearest = tally.nearest.arrays()
        if not len(nearest["keys"]) or not tally.relaxed:
            return np.ones(len(nearness), dtype=np.bool_)
        lowest = self.plan.points.positions(self.tree.places(rows))
        wanted = _before(nearness, lowest, float(nearest["keys"][0]), nearest["positions"][0])
        count = broken.sum(axis=0)
        fewest = next(iter(tally.relaxed)).bit_count()
        wanted |= count < fewest
        equal = np.flatnonzero(~wanted & (count == fewest))
        if equal.size and len(broken) > _MASKED:
            wanted[equal] = True
        elif equal.size:
            masks = (broken[:, equal] * (1 << np.arange(len(broken)))[:, None]).sum(axis=0)
            for mask in np.unique(masks).tolist():
                own = equal[masks == mask]
                known = tally.relaxed.get(mask)
                wanted[own] = True if known is None else _before(nearness[own], lowest[own], *known)
        return wanted


def _before(
    values: NDArray[np.float64], positions: NDArray[Any], value: float, position: Any
) -> NDArray[np.bool_]:
    """Which (value, position) come before the given one."""
    found: NDArray[np.bool_] = (values < value) | ((values == value) & (positions < position))
    return found


def _sides(bound: Bound) -> list[Side]:
    if bound.op == "holds":
        return [(bound.lhs, "true"), (bound.lhs, "false")]
    return [(node, side) for node in (bound.lhs, bound.rhs) for side in ("lo", "hi")]


def _violation(bound: Bound, values: list[NDArray[Any]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The least violation / scale of a bound, and whether it is broken for certain."""
    if bound.op == "holds":
        must = ~values[0]
        return np.where(must, 1.0, 0.0), must
    low, high, least, most = values
    scale = np.maximum(np.abs(least), np.abs(most))
    unscaled = ((least <= 0.0) & (most >= 0.0)) | ~np.isfinite(scale)
    scale = np.where(unscaled, np.maximum(scale, 1.0), scale)
    if bound.op == "==":
        must = (low > most) | (high < least)
        excess = np.maximum(low - most, least - high)
    elif bound.op in ("<=", "<"):
        must = low > most if bound.op == "<=" else low >= most
        excess = low - most
    else:
        must = high < least if bound.op == ">=" else high <= least
        excess = least - high
    found = np.maximum(excess, 0.0) / scale
    return np.where(np.isnan(found), 0.0, found), must
