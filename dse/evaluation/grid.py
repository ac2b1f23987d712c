"""The outcomes of a grid of designs, each value in the smallest shape that it has.

What holds of whole rows or of whole inner dimensions is neither computed nor counted design by design. A grid says
the same as :class:`dse.evaluation.Outcomes` does of its designs one by one, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.blocks import count_of
from dse.evaluation.bulk import Array, Bulk
from dse.evaluation.tape import Tape
from dse.evaluation.verdict import Judge, Outcomes, violations_of, weighed
from dse.problem import Bound

__all__ = ["Grid", "Rows"]

Mask = NDArray[np.bool_]

_HOLDS: dict[str, np.ufunc] = {
    "<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater, "==": np.equal,
}  # fmt: skip


class Rows(NamedTuple):
    """The rows of a grid: what each, shape (rows,), adds to the positions of its designs, and its value numbers."""

    base: NDArray[np.int64]
    digits: Mapping[str, NDArray[np.intp]]


class Grid:
    """Judged designs, some of which may be illegal. Valid until the tape runs again.

    Args:
        tape: has run, and holds the values of the judge's roots. Its grid is the inner dimensions, then rows.
        rows: the rows.
        offsets: what the inner dimensions, of the inner shape, add to the positions of their designs.
        legal: where designs are legal; None: everywhere.
    """

    def __init__(
        self,
        judge: Judge,
        tape: Tape,
        rows: Rows,
        offsets: NDArray[np.int64],
        legal: Mask | None = None,
    ) -> None:
        self.judge = judge
        self.problem = judge.problem
        self.tape = tape
        self.legal = legal
        self.digits = rows.digits
        self.shape = (*offsets.shape, len(rows.base))
        self.size = offsets.size * len(rows.base)
        self._base = rows.base
        self._offsets = offsets
        self.count = self.size if legal is None else count_of(legal, self.size)
        self._within: dict[tuple[int, ...], NDArray[np.intp]] = {}
        self._judge()

    def number(self, mask: Mask) -> int:
        """How many designs a mask holds."""
        return count_of(mask, self.size)

    # -- judging ----------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Find ``failed``, ``broken`` (by constraint) and ``infinite`` (by objective); None is nowhere."""
        with np.errstate(all="ignore"):
            failed = [
                mask for root in dict.fromkeys(self.judge.roots) if (mask := self._failed(root)) is not None
            ]
            self.infinite: list[Mask | None] = []
            self.objectives: list[Array] = []
            for objective in self.problem.objectives:
                values = self.tape[objective.node].values
                self.objectives.append(values)
                self.infinite.append(None)
                if self.tape.facts(objective.node).endless:
                    worst, best = values == objective.sign * math.inf, values == -objective.sign * math.inf
                    self.infinite[-1] = worst if worst.any() else None
                    failed += [best] if best.any() else []
            self.broken = [self._broken(constraint.bound) for constraint in self.problem.constraints]
        self.failed: Mask | None = None
        for mask in failed:
            self.failed = mask if self.failed is None else self.failed | mask
        if self.failed is not None and self.legal is not None:
            self.failed = self.failed & self.legal

    def _failed(self, root: int) -> Mask | None:
        """Where a root is undefined or NaN."""
        if not self.tape.facts(root).open:
            return None
        values, undefined = self.tape[root]
        mask: Mask | None = None if undefined is None else undefined != 0
        if values.dtype == np.float64:
            nan = np.isnan(values)
            mask = nan if mask is None else mask | nan
        return mask if mask is not None and mask.any() else None

    def _broken(self, bound: Bound) -> Mask:
        """Where a bound is broken: its violation is above zero."""
        lhs = self.tape[bound.lhs].values
        if bound.op == "holds":
            broken: Mask = np.logical_not(lhs)
        else:
            broken = np.logical_not(_HOLDS[bound.op](lhs, self.tape[bound.rhs].values))
        return broken

    @cached_property
    def sound(self) -> Mask:
        """Where designs are legal and did not fail."""
        if self.failed is None:
            return np.asarray(True) if self.legal is None else self.legal
        return ~self.failed if self.legal is None else self.legal & ~self.failed

    def axis(self, name: str) -> tuple[int | None, NDArray[np.intp]]:
        """The axis of an inner dimension (None: it has one value) and its value numbers."""
        return self.tape.axes.get(name), self.tape.inner[name]

    def nearness(self) -> Array:
        """By how much designs miss: the ``nearness`` of their verdicts; means nothing where designs failed."""
        found: Array = np.zeros(())
        with np.errstate(all="ignore"):
            for constraint in self.problem.constraints:
                bound = constraint.bound
                sides = {node: self.tape[node] for node in (bound.lhs, bound.rhs)}
                violation, scale = violations_of(bound, sides)
                found = found + weighed(constraint, violation, scale)
        return found

    # -- designs one by one -----------------------------------------------------------------------

    def list(self, mask: Mask) -> NDArray[np.intp]:
        """The numbers, in this grid, of the designs that a mask holds."""
        return np.flatnonzero(np.broadcast_to(mask, self.shape))

    def positions(self, numbers: NDArray[np.intp]) -> NDArray[np.int64]:
        """The positions of designs in the team's part of the space."""
        inner, row = self._parts(numbers)
        return self._base[row] + self._offsets.reshape(-1)[inner]

    def pick(self, array: Array, numbers: NDArray[np.intp]) -> Array:
        """The values, shape (n,), of designs."""
        array = np.asarray(array)
        if not array.ndim:
            return np.broadcast_to(array, numbers.shape)
        if array.size == self.size:
            return array.reshape(-1)[numbers]
        inner, row = self._parts(numbers)
        across = array.shape[-1]
        at = self._place(array.shape[:-1])[inner]
        return array.reshape(-1)[at if across == 1 else at * across + row]

    def outcomes(self, numbers: NDArray[np.intp]) -> Outcomes:
        """The outcomes of designs, one by one."""
        values = {}
        for root in self.judge.roots:
            found, undefined = self.tape[root]
            bad = None if undefined is None else self.pick(undefined, numbers)
            values[root] = Bulk(self.pick(found, numbers), bad)
        return self.judge.outcomes(values, len(numbers))

    def _parts(self, numbers: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        rows = self.shape[-1]
        inner = numbers // rows
        return inner, numbers - inner * rows

    def _place(self, shape: tuple[int, ...]) -> NDArray[np.intp]:
        """Where an array of this inner shape has the value of each combination of the inner dimensions."""
        place = self._within.get(shape)
        if place is None:
            at = np.arange(math.prod(shape), dtype=np.intp).reshape(shape)
            place = self._within[shape] = np.broadcast_to(at, self._offsets.shape).reshape(-1)
        return place
