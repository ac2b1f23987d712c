"""The order in which axes are fixed, chosen by trying each on a sample of the boxes that are left."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bounds import Boxes

from .expanding import Tree
from .guard import Guard

__all__ = ["sampled_order"]

_SAMPLE = 256


def sampled_order(boxes: Boxes, guard: Guard, rng: np.random.Generator) -> list[int]:
    """The live axes; at each depth the one whose children are discarded most, for its size.

    What is minimized is log(open children / boxes) / log(children per box): the depth at which nothing would be left.
    """
    grid = boxes.grid
    waiting = {d: list(axes) for d, axes in enumerate(grid.own)}
    live = set(boxes.live)
    waiting = {d: [a for a in axes if a in live] for d, axes in waiting.items()}
    order: list[int] = []
    rows = np.zeros((0, 1), dtype=np.uint8)
    while candidates := [axes[0] for axes in waiting.values() if axes]:
        best: tuple[float, int] | None = None
        kept: NDArray[np.uint8] | None = None
        tree = Tree(boxes, order)
        if rows.shape[1] == 0:  # everything is discarded already: the rest matters little
            order += [axis for axes in waiting.values() for axis in axes]
            return order
        for axis in candidates:
            found = tree.expand(rows, guard, child=axis).rows
            size = grid.axes[axis].size
            share = found.shape[1] / rows.shape[1]
            score = (math.log(share) / math.log(max(size, 2)) if share else -math.inf), axis
            if best is None or score < best:
                best, kept = score, found
        assert best is not None
        assert kept is not None
        order.append(best[1])
        waiting[grid.axes[best[1]].dimension].pop(0)
        rows = kept
        if rows.shape[1] > _SAMPLE:
            rows = rows[:, np.sort(rng.choice(rows.shape[1], _SAMPLE, replace=False))]
    return order
