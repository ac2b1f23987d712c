"""Expanding boxes: what each child is found to be, and how many designs it stands for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bounds import Boxes, Frame
from dse.study.certificate import ABSENT, DOMINATED, INFINITE, JUDGED, OPEN, OUTSIDE
from dse.study.certificate import RULES as FIRST

from .guard import Guard

__all__ = [
    "ABSENT",
    "DOMINATED",
    "FIRST",
    "INFINITE",
    "JUDGED",
    "OPEN",
    "OUTSIDE",
    "Expanded",
    "Tree",
    "Wanted",
]

# What a child is, as certificates write it; from FIRST on, the number of the rule, then of the constraint, that it breaks.

_SPARSE = 0.5
"""Below this share of children alive, the rest is computed for those alone."""

Wanted: TypeAlias = Callable[[NDArray[np.float64], Mapping[int, NDArray[np.intp]]], NDArray[np.bool_]]
"""Of boxes given by their lower bounds (k, n) and digits, those that are wanted (n,)."""

Codes: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16]


@dataclass
class Expanded:
    """The children of some boxes.

    ``codes`` (n, children); of the open children, in row-major order: ``rows`` (depth + 1, m) their digits and ``lows``
    (k, m) their lower bounds, where they are known.
    """

    codes: Codes
    rows: NDArray[np.uint8]
    lows: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, rows: NDArray[np.uint8], codes: Codes, lows: NDArray[np.float64] | None = None) -> Expanded:
        """What became of boxes (depth, n), by the codes of their children."""
        parents, digits = np.divmod(np.flatnonzero(codes.reshape(-1) == OPEN), codes.shape[1])
        children = np.empty((len(rows) + 1, parents.size), dtype=np.uint8)
        np.take(rows, parents, axis=1, out=children[:-1])
        children[-1] = digits
        return cls(codes, children, lows)


class Tree:
    """The boxes of a problem in the order in which axes are fixed."""

    def __init__(self, boxes: Boxes, order: Sequence[int]) -> None:
        self.boxes = boxes
        self.grid = boxes.grid
        self.order = list(order)
        self.depth = len(self.order)
        rules, constraints = len(boxes.problem.rules), len(boxes.problem.constraints)
        self.first_constraint = FIRST + rules
        self.dtype = np.uint8 if self.first_constraint + constraints < 256 else np.uint16

    # -- how many designs -----------------------------------------------------------------------------

    def weights(self, rows: NDArray[np.uint8]) -> tuple[int, NDArray[np.int64] | None]:
        """How many designs boxes (depth, n) stand for: a common factor, and a factor per box (None: 1).

        They differ only where a dimension's last digits are missing, because its size is no product of its digits'.
        """
        fixed: dict[int, list[int]] = {}
        for at in range(len(rows)):
            fixed.setdefault(self.grid.axes[self.order[at]].dimension, []).append(at)
        common = 1
        factors: NDArray[np.int64] | None = None
        for dimension, size in enumerate(self.grid.sizes):
            places = fixed.get(dimension)
            if places is None:
                common *= size
                continue
            stride = self.grid.axes[self.order[places[-1]]].stride
            if stride == 1:
                continue
            place = np.zeros(rows.shape[1], dtype=np.int64)
            for at in places:
                place += rows[at].astype(np.int64) * self.grid.axes[self.order[at]].stride
            own = np.clip(size - place, 0, stride)
            if (own == stride).all():
                common *= stride
            else:
                factors = own if factors is None else _times(factors, own)
        return common, factors

    def designs(self, rows: NDArray[np.uint8], which: NDArray[np.bool_] | None = None) -> int:
        """How many designs boxes (depth, n) stand for, together."""
        common, factors = self.weights(rows)
        if factors is None:
            return common * (rows.shape[1] if which is None else int(np.count_nonzero(which)))
        return common * int((factors if which is None else factors[which]).sum())

    def width(self, depth: int) -> int:
        """How many children a box of this depth has."""
        return self.grid.axes[self.order[depth]].size

    def places(self, rows: NDArray[np.uint8]) -> list[NDArray[np.int64]]:
        """The places on the hull, per dimension, of the first design of boxes (depth, n)."""
        columns = {self.order[at]: rows[at].astype(np.intp) for at in range(len(rows))}
        return self.grid.places(columns, rows.shape[1])

    # -- expanding ------------------------------------------------------------------------------------

    def frame(self, rows: NDArray[np.uint8], child: int | None) -> Frame:
        """The frame of boxes (depth, n) and their children along axis ``child``."""
        columns = {self.order[at]: rows[at].astype(np.intp) for at in range(len(rows))}
        return self.boxes.frame(columns, child, rows.shape[1])

    def lows(self, rows: NDArray[np.uint8]) -> NDArray[np.float64]:
        """The lower bounds (k, n) of boxes (depth, n)."""
        frame, n = self.frame(rows, None), rows.shape[1]
        self.boxes.feasible(frame)  # objectives build on it
        return np.stack([np.broadcast_to(bound, (n, 1))[:, 0] for bound in self.boxes.objectives(frame)])

    def expand(
        self,
        rows: NDArray[np.uint8],
        guard: Guard,
        *,
        child: int | None = None,
        prune: bool = True,
        wanted: Wanted | None = None,
    ) -> Expanded:
        """What the children of boxes (depth, n) are, along the next axis of the order or ``child``.

        Args:
            prune: whether constraints and the front discard boxes; rules always do.
            wanted: says which boxes are kept although the front beats them.
        """
        boxes, n = self.boxes, rows.shape[1]
        axis = self.order[len(rows)] if child is None else child
        width = self.grid.axes[axis].size
        frame = self.frame(rows, axis)
        codes: Any = np.zeros((n, width), dtype=self.dtype)
        alive = self._present(rows, axis, codes)
        inside, rules = boxes.legal(frame)
        alive = _mark(codes, alive, inside, OUTSIDE)
        for number, possible in enumerate(rules):
            alive = _mark(codes, alive, possible, FIRST + number)
        k = len(boxes.problem.objectives)
        flat = np.flatnonzero(alive)
        lows = np.empty((k, 0))
        if prune and flat.size:
            sparse = flat.size < _SPARSE * alive.size
            own: Any = codes
            if sparse:
                frame, flat = frame.narrowed(alive, [])
                own = np.zeros((flat.size, 1), dtype=self.dtype)
                alive = np.ones((flat.size, 1), dtype=np.bool_)
            for number, possible in enumerate(boxes.feasible(frame)):
                alive = _mark(own, alive, possible, self.first_constraint + number)
            if alive.any():
                if not sparse and np.count_nonzero(alive) < _SPARSE * alive.size:
                    frame, flat = frame.narrowed(alive, boxes.program.carried[0])
                    sparse = True
                    own = np.zeros((flat.size, 1), dtype=self.dtype)
                    alive = np.ones((flat.size, 1), dtype=np.bool_)
                lows = self._bounded(frame, own, alive, guard, wanted)
            if sparse:
                codes.reshape(-1)[flat] = own[:, 0]
        elif flat.size:
            lows = np.full((k, flat.size), -np.inf)
        return Expanded.of(rows, codes, lows)

    def _bounded(
        self, frame: Frame, own: Codes, alive: NDArray[np.bool_], guard: Guard, wanted: Wanted | None
    ) -> NDArray[np.float64]:
        """The lower bounds of the boxes that stay open; the others get their code."""
        bounds = self.boxes.objectives(frame)
        shape = alive.shape
        flat = np.flatnonzero(alive)
        everything = flat.size == alive.size
        lows = np.empty((len(bounds), flat.size))
        for at, bound in enumerate(bounds):
            full = np.broadcast_to(bound, shape).reshape(-1)
            lows[at] = full if everything else full[flat]
        infinite = ((lows == np.inf) | np.isnan(lows)).any(axis=0)  # NaN where nothing in the box is legal
        beaten = guard.dominates(lows)
        codes = own.reshape(-1)
        if wanted is not None and (lost := np.flatnonzero(beaten)).size:
            doubtful = np.zeros(alive.size, dtype=np.bool_)
            doubtful[flat[lost]] = True
            columns = frame.narrowed(doubtful.reshape(shape), [])[0].columns
            beaten[lost[wanted(lows[:, lost], columns)]] = False
        if infinite.any():
            beaten &= ~infinite
            codes[flat[infinite]] = INFINITE
        codes[flat[beaten]] = DOMINATED
        return lows[:, ~(beaten | infinite)]

    def _present(self, rows: NDArray[np.uint8], axis: int, codes: Codes) -> NDArray[np.bool_]:
        """Which children stand for any design; the others get their code."""
        own = self.grid.axes[axis]
        size = self.grid.sizes[own.dimension]
        place = np.arange(own.size) * own.stride
        alive = np.ones(codes.shape, dtype=np.bool_)
        if all(self.grid.axes[a].size == size for a in self.grid.own[own.dimension]):
            return alive
        base = np.zeros(rows.shape[1], dtype=np.int64)
        for at in range(len(rows)):
            other = self.grid.axes[self.order[at]]
            if other.dimension == own.dimension:
                base += rows[at].astype(np.int64) * other.stride
        absent = base[:, None] + place[None, :] >= size
        codes[absent] = ABSENT
        return ~absent

    def counts(self, rows: NDArray[np.uint8], codes: Codes) -> dict[int, int]:
        """How many designs the children of each code stand for, open and absent ones left out."""
        width = codes.shape[1]
        flat = codes.reshape(-1)
        number = np.bincount(flat, minlength=FIRST)
        found: dict[int, int] = {}
        closed = [code for code in np.flatnonzero(number).tolist() if code not in (OPEN, ABSENT)]
        if not closed:
            return found
        common, factors = self._child_weights(rows, width)
        for code in closed:
            if factors is None:
                found[code] = common * int(number[code])
            else:
                found[code] = common * int(factors[flat == code].sum())
        return found

    def _child_weights(self, rows: NDArray[np.uint8], width: int) -> tuple[int, NDArray[np.int64] | None]:
        """:meth:`weights` of all children, in row-major order."""
        axis = self.grid.axes[self.order[len(rows)]]
        partial = {
            self.grid.axes[self.order[at]].dimension
            for at in range(len(rows) + 1)
            if len(self.grid.own[self.grid.axes[self.order[at]].dimension]) > 1
        }
        if not partial:
            fixed = {self.grid.axes[self.order[at]].dimension for at in range(len(rows))} | {axis.dimension}
            return math.prod(s for d, s in enumerate(self.grid.sizes) if d not in fixed), None
        children = np.empty((len(rows) + 1, rows.shape[1] * width), dtype=np.uint8)
        np.copyto(children[:-1], np.repeat(rows, width, axis=1))
        children[-1] = np.tile(np.arange(width, dtype=np.uint8), rows.shape[1])
        return self.weights(children)


def _times(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """The product of two factors, as Python integers where 64 bits could be too few."""
    if a.dtype == object or float(a.max(initial=0)) * float(b.max(initial=0)) >= 2.0**40:
        product: NDArray[np.int64] = a.astype(object) * b.astype(object)
        return product
    return a * b


def _mark(
    codes: Codes, alive: NDArray[np.bool_], possible: NDArray[np.bool_], code: int
) -> NDArray[np.bool_]:
    """Give ``code`` to what is alive and not possible; return what is still alive."""
    if possible.all():
        return alive
    lost = alive & ~possible
    if not lost.any():
        return alive
    codes[lost] = code
    return alive & possible
