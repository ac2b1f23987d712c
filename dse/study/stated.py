"""What a stored result states, as far as a certificate must bear it out: its front, its best designs, its accounting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.problem import Problem, Team
from dse.study.result import FrontPoint

__all__ = ["Front", "Stated"]

_SAMPLE = 256  # vectors looked at to find what beats many
_PAIRS = 1 << 20  # so many comparisons are done at once


class Front(NamedTuple):
    """What a discarded design must be worse than.

    ``vectors`` (f, k) minimized. With ``top`` the best by objective number ``objective`` are listed, by value and then by
    index, the last of them at ``worst`` (minimized; inf when there are fewer) with the value numbers ``last``: a design
    that may belong among them is not discarded.
    """

    vectors: NDArray[np.float64]
    epsilon: float = 0.0
    objective: int = 0
    worst: float = -math.inf
    last: tuple[int, ...] = ()

    def beats(
        self, low: NDArray[np.float64], first: Sequence[NDArray[np.intp]] | None = None
    ) -> NDArray[np.bool_]:
        """Which vectors (n, k), or all above them, are discarded by the front.

        ``first``, a column (n,) per dimension, are the value numbers of the designs of lowest index that have them; without
        them any may come before the last one listed.
        """
        beaten = np.zeros(len(low), dtype=np.bool_)
        left = np.flatnonzero(self._unlisted(low[:, self.objective], first))
        while len(left) * len(self.vectors) > _PAIRS:  # first by those that beat many
            drawn = left[:: -(-len(left) // _SAMPLE)]
            counts = self._pairs(low[drawn]).sum(axis=0)
            if counts.max() < len(drawn) / 16:
                break
            guard = Front(self.vectors[counts.argmax()][None], self.epsilon)
            own = guard._pairs(low[left])[:, 0]
            beaten[left[own]] = True
            left = left[~own]
        step = max(1, _PAIRS // max(1, len(self.vectors)))
        for start in range(0, len(left), step):
            rows = left[start : start + step]
            beaten[rows] = self._pairs(low[rows]).any(axis=1)
        return beaten

    def _unlisted(
        self, values: NDArray[np.float64], first: Sequence[NDArray[np.intp]] | None
    ) -> NDArray[np.bool_]:
        """Which values (n,), of the designs from ``first`` on, come after the last one listed."""
        after = values > self.worst
        equal = values == self.worst
        if first is None or not self.last or not equal.any():
            return after
        for column, own in zip(first, self.last, strict=True):  # in the order of indices
            after |= equal & (column > own)
            equal &= column == own
        return after

    def _pairs(self, low: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which vectors (n, k) which vector of the front discards: (n, f)."""
        with np.errstate(invalid="ignore"):  # -inf has no reach
            reach = low + self.epsilon * np.abs(low) if self.epsilon else low
        below = np.ones((len(low), len(self.vectors)), dtype=np.bool_)
        for at, own in enumerate(self.vectors.T):
            below &= own <= reach[:, at, None]
        if not self.epsilon:
            equal = np.ones_like(below)
            for at, own in enumerate(self.vectors.T):
                equal &= own == low[:, at, None]
            below &= ~equal
        return below

    def covers(self, vector: Sequence[float]) -> bool:
        """Whether a vector equals one of the front, or is dominated by one."""
        return bool((self.vectors <= np.array(vector)).all(axis=1).any())


@dataclass(frozen=True)
class Stated:
    """A stored result. ``top`` best designs were asked for, by objective number ``objective``."""

    problem: Problem
    team: Team
    stored: Mapping[str, Any]
    points: Sequence[FrontPoint]
    epsilon: float
    top: int
    objective: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Places per dimension."""
        return tuple(len(axis) for axis in self.team.hull(self.problem.sizes))

    @property
    def front(self) -> Front:
        """What discarded designs must be worse than."""
        signs = [o.sign for o in self.problem.objectives]
        names = [o.name for o in self.problem.objectives]
        vectors = np.array(
            [[p.objectives[n] * s + 0.0 for n, s in zip(names, signs, strict=True)] for p in self.points]
        ).reshape(-1, len(names))
        if not self.top:
            return Front(vectors, self.epsilon)
        best = self.best
        worst, index = best[-1] if len(best) == self.top else (math.inf, -1)
        last = self.problem.digits_of(index) if 0 <= index < self.problem.size else ()
        return Front(vectors, self.epsilon, self.objective, worst, last)

    @property
    def best(self) -> list[tuple[float, int]]:
        """The listed best designs: value (minimized) and index, in order."""
        objective = self.problem.objectives[self.objective]
        listed = self.stored.get("best", [])
        return [(float(p["objectives"][objective.name]) * objective.sign + 0.0, p["index"]) for p in listed]
