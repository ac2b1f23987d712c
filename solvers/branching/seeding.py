"""Good designs to start from, so that bounds have something to fail against: a random dive, then local search."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bounds import Boxes
from dse.study.front import Archive

from .expanding import JUDGED, Tree
from .guard import Guard
from .judging import Points

__all__ = ["Seeds", "seeds"]

_BEAM = 1_024  # boxes kept at each depth of the dive
_DIVES = 2
_ROUNDS = 12
_IMPROVED = 120  # designs of the front whose neighbours are tried in a round
_PAIRS = 60  # moves in two dimensions tried from each


class Seeds(NamedTuple):
    """Feasible designs, non-dominated among themselves.

    ``values`` (f, k) their vectors, ``positions`` (f,) where they are, ``worst`` (k,) the worst values of all that were tried.
    """

    values: NDArray[np.float64]
    positions: NDArray[Any]
    worst: NDArray[np.float64]


def seeds(boxes: Boxes, points: Points, rng: np.random.Generator) -> Seeds:
    """What a random dive and local search find."""
    grid = boxes.grid
    sizes = np.array(grid.sizes, dtype=np.int64)
    archive = Archive(len(boxes.problem.objectives))
    worst = np.full(archive.k, -np.inf)
    known: dict[int, NDArray[np.int64]] = {}

    def take(places: NDArray[np.int64]) -> None:
        """Judge designs (dimensions, n); the feasible ones enter the archive."""
        first = len(known)
        listed = list(places)
        digits = points.digits(listed)
        legal = np.flatnonzero(points.codes(digits, places.shape[1]) == JUDGED)
        if not legal.size:
            return
        chosen = places[:, legal]
        outcomes = points.outcomes(points.digits(list(chosen)), legal.size)
        good = np.flatnonzero(outcomes.feasible)
        if good.size:
            values = outcomes.objectives[good]
            np.maximum(worst, values.max(axis=0), out=worst)
            better = good[~archive.dominates(values, or_equal=True)]
            if better.size:
                archive.add(outcomes.objectives[better], np.arange(first, first + better.size))
                for at, row in enumerate(better.tolist()):
                    known[first + at] = chosen[:, row].copy()

    for _ in range(_DIVES):
        take(_dive(boxes, rng))
    done: set[int] = set()
    for _ in range(_ROUNDS):
        _, ids, _ = archive.to_arrays()
        fresh = [int(number) for number in ids if int(number) not in done]
        if not fresh:
            break
        if len(fresh) > _IMPROVED:
            fresh = [fresh[at] for at in np.sort(rng.choice(len(fresh), _IMPROVED, replace=False))]
        done.update(fresh)
        take(_neighbours(np.column_stack([known[number] for number in fresh]), sizes, rng))
    values, ids, _ = archive.to_arrays()
    places = [known[number] for number in ids.tolist()]
    found = np.column_stack(places) if places else np.zeros((len(sizes), 0), dtype=np.int64)
    return Seeds(values, points.positions(list(found)), worst)


def _dive(boxes: Boxes, rng: np.random.Generator) -> NDArray[np.int64]:
    """Places (dimensions, n) of random designs that no rule or constraint was seen to reject on the way down."""
    tree = Tree(boxes, _by_conditions(boxes))
    rows = np.zeros((0, 1), dtype=np.uint8)
    nobody = Guard(np.empty((0, len(boxes.problem.objectives))))
    for _ in range(tree.depth):
        rows = tree.expand(rows, nobody).rows
        if rows.shape[1] > _BEAM:
            rows = rows[:, np.sort(rng.choice(rows.shape[1], _BEAM, replace=False))]
    columns = {tree.order[at]: rows[at].astype(np.intp) for at in range(len(rows))}
    return np.array(boxes.grid.places(columns, rows.shape[1])).reshape(len(boxes.grid.sizes), -1)


def _by_conditions(boxes: Boxes) -> list[int]:
    """Axes, those first that many rules depend on; the axes of a dimension stay in order."""
    graph, problem = boxes.problem.graph, boxes.problem
    used = [sum(name in graph[rule.check].support for rule in problem.rules) for name in problem.names]
    return sorted(boxes.live, key=lambda axis: (-used[boxes.grid.axes[axis].dimension], axis))


def _neighbours(
    places: NDArray[np.int64], sizes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """All designs that differ in one dimension (of a long one: in some values), and some that differ in two."""
    n = places.shape[1]
    moved = []
    for d in np.flatnonzero(sizes > 1).tolist():
        values = np.arange(sizes[d]) if sizes[d] <= 64 else np.sort(rng.choice(sizes[d], 64, replace=False))
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
