"""How far a stopped search may be from the truth: proven, not estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.positions import Positions, as_integer, packed, unpacked
from dse.problem import Problem
from dse.study.dominance import nondominated
from dse.study.hypervolume import normalized_hypervolume

__all__ = ["Gap", "Standing", "gap_of"]

_BOXES = 2_000
"""Lower bounds that are compared one by one; more are first merged, which only widens the gap."""

_FRONT = 4_000
"""Vectors of the front that may meet them; fewer only widen the gap."""

_VOLUME = {1: 10**9, 2: 10**9, 3: 4_000, 4: 100, 5: 30}
"""Vectors whose hypervolume is computed, per number of objectives; with more objectives there is no claim."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What a front found so far may lack. Objectives are by name, in base units and as declared.

    Whatever feasible design there is, some point of the front is worse by at most ``additive`` in every objective at
    once. No feasible design is better than ``bound`` in an objective. ``hypervolume`` is what the front covers (or less), and
    ``hypervolume_bound`` an upper bound of what the true front covers, as shares of the box from ``bound`` to
    ``reference``, the worst feasible value seen; both are None where that box is flat or not finite. Without a feasible
    design, ``additive`` is infinite.
    """

    additive: Mapping[str, float]
    bound: Mapping[str, float]
    reference: Mapping[str, float]
    hypervolume: float | None
    hypervolume_bound: float | None

    @property
    def hypervolume_gap(self) -> float | None:
        """The share of the box that the true front may cover and the front does not."""
        if self.hypervolume is None or self.hypervolume_bound is None:
            return None
        return max(0.0, self.hypervolume_bound - self.hypervolume)

    def to_dict(self) -> dict[str, Any]:
        """JSON values; infinities as texts."""
        return {
            "additive": _texts(self.additive),
            "bound": _texts(self.bound),
            "reference": _texts(self.reference),
            "hypervolume": self.hypervolume,
            "hypervolume_bound": self.hypervolume_bound,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Gap:
        """What :meth:`to_dict` gave."""
        additive, bound, reference = (
            {name: float(value) for name, value in data[key].items()}
            for key in ("additive", "bound", "reference")
        )
        return cls(additive, bound, reference, data["hypervolume"], data["hypervolume_bound"])


def _texts(values: Mapping[str, float]) -> dict[str, float | str]:
    return {name: value if np.isfinite(value) else str(value) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Standing:
    """What a stopped search knows beyond its tally: its gap, and feasible designs that it found on the way.

    ``values`` (n, k) are their vectors, minimized, and ``positions`` (n,) their places in the box around the team. They
    are on no account yet: the search will come to them.
    """

    gap: Gap
    values: NDArray[np.float64]
    positions: Positions

    def joined(self, earlier: Standing) -> Standing:
        """With the designs of an earlier stop of the same search, and the better gap: the front only grew since."""
        values = np.concatenate([self.values, earlier.values])
        positions = np.concatenate([self.positions, earlier.positions])
        _, first = np.unique(values, axis=0, return_index=True)
        first = first[nondominated(values[first])]
        gaps = self.gap.hypervolume_gap, earlier.gap.hypervolume_gap
        better = earlier.gap if gaps[1] is not None and (gaps[0] is None or gaps[1] < gaps[0]) else self.gap
        return Standing(better, values[first], positions[first])

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "gap": self.gap.to_dict(),
            "values": self.values.tolist(),
            "positions": [packed(as_integer(position)) for position in self.positions],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], k: int) -> Standing:
        """What :meth:`to_dict` gave, of a problem of ``k`` objectives."""
        values = np.array(data["values"], dtype=np.float64).reshape(-1, k)
        positions = [unpacked(position) for position in data["positions"]]
        return cls(
            Gap.from_dict(data["gap"]), values, np.array(positions, dtype=None if positions else np.int64)
        )


def gap_of(
    problem: Problem, front: NDArray[np.float64], open_: NDArray[np.float64], worst: NDArray[np.float64]
) -> Gap:
    """The gap of a front when what was not searched is at best ``open_``.

    Args:
        front: feasible non-dominated vectors (f, k), minimized.
        open_: lower bounds of what was not searched (n, k), minimized.
        worst: the worst feasible value seen of each objective (k,).
    """
    k = front.shape[1]
    open_ = _merged(open_[nondominated(open_)] if len(open_) else open_)
    both = np.concatenate([front, open_])
    bound = both.min(axis=0) if len(both) else np.full(k, np.inf)
    if not len(front):
        additive = np.full(k, np.inf if len(open_) else 0.0)
        return _named(problem, (additive, bound, np.full(k, np.nan)))
    additive = _additive(_thinned(front, _FRONT), open_, bound, worst)
    with np.errstate(over="ignore", invalid="ignore"):
        span = worst - bound
    if k not in _VOLUME or not (np.isfinite(span).all() and (span > 0.0).all()):
        return _named(problem, (additive, bound, worst))
    most = _VOLUME[k]
    at_best = both[nondominated(both)]
    covered = normalized_hypervolume(_thinned(front, most), bound, worst)
    covered_at_best = normalized_hypervolume(_merged(at_best, most), bound, worst)
    return _named(problem, (additive, bound, worst), (covered, max(covered, covered_at_best)))


def _additive(
    front: NDArray[np.float64],
    open_: NDArray[np.float64],
    bound: NDArray[np.float64],
    worst: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Per objective, how much worse the front is than the open bounds, each met by the vector that suits it best."""
    with np.errstate(over="ignore", invalid="ignore"):
        span = worst - bound
    span = np.where(np.isfinite(span) & (span > 0.0), span, 1.0)
    additive, reached = np.zeros(front.shape[1]), np.zeros(front.shape[1])
    for low in open_:
        with np.errstate(over="ignore", invalid="ignore"):
            excess = np.maximum(front - low, 0.0)
            best = int(np.argmin((excess / span).max(axis=1)))
        additive = np.maximum(additive, excess[best])
        reached = np.maximum(reached, np.abs(front[best]))
    # What is added to a lower bound must reach the front's value also after rounding.
    with np.errstate(over="ignore"):
        return np.where(additive > 0.0, additive * (1 + 2.0**-40) + 2.0**-40 * reached, 0.0)


def _merged(lows: NDArray[np.float64], most: int = _BOXES) -> NDArray[np.float64]:
    """At most ``most`` vectors that are below these everywhere: neighbours in one objective share their least values."""
    if len(lows) <= most:
        return lows
    order = np.lexsort(lows.T)
    starts = np.linspace(0, len(lows), most, endpoint=False).astype(np.intp)
    found = np.minimum.reduceat(lows[order], starts, axis=0)
    return found[nondominated(found)]


def _thinned(front: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """At most ``most`` vectors of a front: they cover no more than it does."""
    return front if len(front) <= most else front[np.linspace(0, len(front) - 1, most).astype(np.intp)]


def _named(
    problem: Problem,
    vectors: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    volumes: tuple[float, float] | tuple[None, None] = (None, None),
) -> Gap:
    """The gap of (additive, bound, worst), minimized, and the hypervolumes of the front and of what may be."""
    names = [o.name for o in problem.objectives]
    signs = np.array([o.sign for o in problem.objectives])
    additive, bound, worst = (
        dict(zip(names, values.tolist(), strict=True))
        for values in (vectors[0], vectors[1] * signs, vectors[2] * signs)
    )
    return Gap(additive, bound, worst, *volumes)
