"""Within epsilon a design rules out its own box: those that the search began with are followed down to be judged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.positions import Numbering, Positions

from .expanding import DOMINATED, OPEN, Expanded, Tree

__all__ = ["Begun"]


class Begun:
    """Knows which boxes hold one of some designs, given by their places (dimensions, n)."""

    def __init__(self, tree: Tree, places: NDArray[np.int64]) -> None:
        self.tree = tree
        self._rows = np.array([tree.grid.digits(places, axis) for axis in tree.order], dtype=np.uint8)
        self._known: dict[int, tuple[Numbering, Positions]] = {}

    def held(self, rows: NDArray[np.uint8]) -> NDArray[np.intp]:
        """The numbers of the boxes (depth, n) that hold one."""
        depth = len(rows)
        if depth not in self._known:
            numbering = Numbering([self.tree.width(at) for at in range(depth)])
            self._known[depth] = (
                numbering,
                np.unique(numbering.positions(list(self._rows[:depth].astype(np.int64)))),
            )
        numbering, own = self._known[depth]
        found = (
            numbering.positions(list(rows.astype(np.int64)))
            if depth
            else np.zeros(rows.shape[1], dtype=np.int64)
        )
        return np.flatnonzero(np.isin(found, own))

    def reopened(self, rows: NDArray[np.uint8], held: NDArray[np.intp], found: Expanded) -> Expanded:
        """What became of boxes, of which those ``held`` hold one, with no child closed by the front that does."""
        if not held.size:
            return found
        parents, digits = np.nonzero(found.codes[held] == DOMINATED)
        children = np.empty((len(rows) + 1, parents.size), dtype=np.uint8)
        children[:-1] = rows[:, held[parents]]
        children[-1] = digits
        again = self.held(children)
        if not again.size:
            return found
        found.codes[held[parents[again]], digits[again]] = OPEN
        return Expanded.of(rows, found.codes)
