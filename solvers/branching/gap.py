"""The proven gap of a search that was stopped: the bounds of the boxes that wait."""

from __future__ import annotations

import numpy as np

from dse.evaluation.bounds import Boxes
from dse.study.gap import Standing, gap_of

from .expanding import Tree
from .searching import CHILDREN, Search
from .seeding import Seeding

__all__ = ["standing", "standing_at_first"]


def standing_at_first(boxes: Boxes, seeding: Seeding) -> Standing:
    """The same before the search began: nothing is known of the whole space but its bound."""
    low = Tree(boxes, []).lows(np.zeros((0, 1), dtype=np.uint8)).T
    seeds = seeding.seeds()
    gap = gap_of(boxes.problem, seeds.values, np.where(np.isnan(low), -np.inf, low), seeds.worst)
    return Standing(gap, seeds.values, seeds.positions)


def standing(search: Search) -> Standing:
    """How far the front found so far may be from the truth, and the designs that the search began with."""
    k = len(search.problem.objectives)
    lows = [np.empty((k, 0))]
    for batch in search.stack:
        for start in range(0, batch.rows.shape[1], CHILDREN):
            own = search.tree.lows(batch.rows[:, start : start + CHILDREN])
            lows.append(own[:, (own < np.inf).all(axis=0) & ~search.guard.dominates(own)])  # not NaN either
    first, guard = search.plan.start, search.guard
    if guard.epsilon:  # better designs than the front's may have been discarded
        lows.append(guard.least.T)
    gap = gap_of(search.problem, guard.front, np.concatenate(lows, axis=1).T, search.worst)
    return Standing(gap, first.values, first.positions)
