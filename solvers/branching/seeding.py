"""Good designs to start from, so that bounds have something to fail against: a random dive, then local search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bounds import Boxes
from dse.evaluation.positions import Positions, as_integer
from dse.study.front import Archive

from .expanding import Tree
from .guard import Guard
from .judging import Points

__all__ = ["Seeding", "Seeds", "neighbours"]

_BEAM = 1_024  # boxes kept at each depth of the dive
_DIVES = 2
_WEIGHTS = 8  # ways of weighting the objectives by which boxes of the dive are kept
_VALUES = 64  # of a dimension, tried from each
_AT_ONCE = 4_000_000  # values of neighbours that are made at once
_PAIRS = 60  # moves in two dimensions tried from each


def _never() -> None:
    """What is called now and then, and may raise to stop; by default nothing."""


class Seeds(NamedTuple):
    """Feasible designs to begin with.

    ``values`` (f, k) are vectors that are non-dominated among themselves, ``places`` (dimensions, f) and ``positions``
    (f,) where they are, ``worst``
    (k,) the worst values of all that were tried, ``best`` the last of the best designs of one objective, value and
    position, when those are asked for and as many were found.
    """

    values: NDArray[np.float64]
    places: NDArray[np.int64]
    positions: Positions
    worst: NDArray[np.float64]
    best: tuple[float, Any] | None


class Seeding:
    """Designs tried so far: their front, where its designs are, and the best designs of one objective.

    Begins with random dives.
    """

    def __init__(
        self,
        boxes: Boxes,
        points: Points,
        rng: np.random.Generator,
        *,
        top: int = 0,
        objective: int = 0,
        poll: Callable[[], None] = _never,
    ) -> None:
        self.points = points
        self.rng = rng
        self.poll = poll
        self.top = top
        self.objective = objective
        self.sizes = np.array(boxes.grid.sizes, dtype=np.int64)
        self.idle = sorted({boxes.grid.axes[axis].dimension for axis in boxes.idle})
        self.archive = Archive(len(boxes.problem.objectives))
        self.worst = np.full(self.archive.k, -np.inf)
        self.known: list[NDArray[np.int64]] = []
        self.best: dict[Any, float] = {}
        self._done: set[int] = set()
        for _ in range(_DIVES):
            self.take(_dive(boxes, rng, poll))

    def improve(self, rounds: int, most: int) -> None:
        """Local search: try the neighbours of designs of the front whose neighbours were not, ``most`` of them a round."""
        tried = int(np.minimum(self.sizes, _VALUES).sum()) + _PAIRS
        most = min(most, max(1, _AT_ONCE // (tried * len(self.sizes))))
        for _ in range(rounds):
            self.poll()
            fresh = [number for number in self.archive.to_arrays()[1].tolist() if number not in self._done]
            if not fresh:
                return
            if len(fresh) > most:
                fresh = [fresh[at] for at in np.sort(self.rng.choice(len(fresh), most, replace=False))]
            self._done.update(fresh)
            self.take(
                neighbours(np.column_stack([self.known[number] for number in fresh]), self.sizes, self.rng)
            )

    def take(self, places: NDArray[np.int64]) -> None:
        """Judge designs (dimensions, n); of those that differ in idle dimensions alone, the first."""
        places[self.idle] = 0
        _, legal, _, outcomes = self.points.judged(list(places))
        if outcomes is None:
            return
        chosen = np.array(legal)
        good = np.flatnonzero(outcomes.feasible)
        if not good.size:
            return
        values = outcomes.objectives[good]
        np.maximum(self.worst, values.max(axis=0), out=self.worst)
        if self.top:
            self._rank(values[:, self.objective], chosen[:, good])
        better = ~self.archive.dominates(values, or_equal=True)
        self.archive.add(values[better], len(self.known) + np.arange(np.count_nonzero(better)))
        self.known += [column.copy() for column in chosen[:, good[better]].T]

    def _rank(self, values: NDArray[np.float64], places: NDArray[np.int64]) -> None:
        order = np.argsort(values, kind="stable")[: 4 * self.top]
        positions = self.points.positions(list(places[:, order]))
        self.best |= dict(zip(map(as_integer, positions), values[order].tolist(), strict=True))
        ranked = sorted(self.best.items(), key=lambda item: (item[1], item[0]))
        self.best = dict(ranked[: self.top])

    def seeds(self) -> Seeds:
        """What came of it."""
        values, ids, _ = self.archive.to_arrays()
        rows = np.array([self.known[number] for number in ids.tolist()], dtype=np.int64)
        places = rows.reshape(-1, len(self.sizes)).T
        positions = self.points.positions(list(places))
        last = list(self.best.items())[-1] if self.top and len(self.best) == self.top else None
        return Seeds(values, places, positions, self.worst, None if last is None else (last[1], last[0]))


def _dive(boxes: Boxes, rng: np.random.Generator, poll: Callable[[], None]) -> NDArray[np.int64]:
    """Places (dimensions, n) of random designs that no rule or constraint was seen to reject on the way down."""
    tree = Tree(boxes, _by_conditions(boxes))
    rows = np.zeros((0, 1), dtype=np.uint8)
    nobody = Guard(np.empty((0, len(boxes.problem.objectives))))
    for _ in range(tree.depth):
        poll()
        found = tree.expand(rows, nobody)
        rows = found.rows
        if rows.shape[1] > _BEAM:
            assert found.lows is not None
            rows = rows[:, _promising(found.lows, rng)]
    columns = {tree.order[at]: rows[at].astype(np.intp) for at in range(len(rows))}
    return np.array(boxes.grid.places(columns, rows.shape[1])).reshape(len(boxes.grid.sizes), -1)


def _promising(lows: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Of boxes with lower bounds (k, n): the best for some random weights of the objectives, and some at random."""
    k, n = lows.shape
    ranks = np.argsort(np.argsort(lows, axis=1, kind="stable"), axis=1, kind="stable")
    chosen = [rng.choice(n, _BEAM // 2, replace=False)]
    share = _BEAM // 2 // _WEIGHTS
    ways = [*np.eye(k), *rng.dirichlet(np.ones(k), max(0, _WEIGHTS - k))][:_WEIGHTS]
    chosen += [np.argpartition(weights @ ranks, share)[:share] for weights in ways]
    return np.unique(np.concatenate(chosen))


def _by_conditions(boxes: Boxes) -> list[int]:
    """Axes, those first that many rules depend on; the axes of a dimension stay in order."""
    graph, problem = boxes.problem.graph, boxes.problem
    used = [sum(name in graph[rule.check].support for rule in problem.rules) for name in problem.names]
    return sorted(boxes.live, key=lambda axis: (-used[boxes.grid.axes[axis].dimension], axis))


def neighbours(
    places: NDArray[np.int64], sizes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """All designs that differ in one dimension (of a long one: in some values), and some that differ in two."""
    n = places.shape[1]
    moved = []
    for d in np.flatnonzero(sizes > 1).tolist():
        values = np.arange(sizes[d]) if sizes[d] <= _VALUES else np.sort(rng.integers(sizes[d], size=_VALUES))
        new = np.repeat(places, len(values), axis=1)
        new[d] = np.tile(values, n)
        moved.append(new)
    new = np.repeat(places, _PAIRS, axis=1)
    several = np.flatnonzero(sizes > 1)
    if several.size:
        for _ in range(2):
            which = several[rng.integers(several.size, size=new.shape[1])]
            new[which, np.arange(new.shape[1])] = rng.integers(sizes[which])
        moved.append(new)
    return np.concatenate(moved, axis=1) if moved else places
