"""Good designs for compiled loops to start from: what they dominate is never handed over.

Beginning with a sample's best designs, all that differ from them in one dimension are judged, round after round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.compiled import Nest
from dse.study.front import Archive

__all__ = ["start"]

_WORTH = 20_000_000  # legal designs from which on the search for a start is repaid
_SHARE = 1 / 10_000  # of the legal designs are judged to find a start, at most
_IMPROVED = 60  # designs of the front whose neighbours are judged in a round
_VALUES = 16  # of a long dimension that are tried
_SEED = 77


def start(nest: Nest) -> NDArray[np.float64]:
    """Vectors of feasible designs (n, k), from anywhere in the space; none, if the sample has none."""
    facts, sample = nest.facts, nest.sample
    places = sample.places[sample.feasible].astype(np.int64)
    values = sample.outcomes.objectives[sample.feasible]
    if not len(places) or sample.legal < _WORTH:
        return values
    archive = Archive(values.shape[1])
    archive.add(values, np.arange(len(values)))
    known = [places]
    rng = np.random.default_rng(_SEED)
    done: set[int] = set()
    budget = sample.legal * _SHARE
    while budget > 0:
        fresh = [int(n) for n in archive.to_arrays()[1] if int(n) not in done]
        if not fresh:
            break
        if len(fresh) > _IMPROVED:
            fresh = rng.choice(fresh, _IMPROVED, replace=False).tolist()
        done.update(fresh)
        near = _neighbours(np.concatenate(known)[fresh], facts.sizes, nest.order, rng)
        budget -= len(near)
        feasible, costs = nest.judged(near)
        better = ~archive.dominates(costs, or_equal=True)
        first = sum(len(rows) for rows in known)
        known.append(near[feasible][better])
        archive.add(costs[better], first + np.arange(int(better.sum())))
    return archive.to_arrays()[0]


def _neighbours(
    places: NDArray[np.int64], sizes: list[int], dims: list[int], rng: np.random.Generator
) -> NDArray[np.int64]:
    """All designs (m, dimensions) that differ in one of ``dims`` from one at ``places`` (n, dimensions)."""
    moved = []
    for d in dims:
        size = sizes[d]
        values = np.arange(size) if size <= _VALUES else rng.choice(size, _VALUES, replace=False)
        new = np.repeat(places, len(values), axis=0)
        new[:, d] = np.tile(values, len(places))
        moved.append(new)
    return np.concatenate(moved)
