"""How well predictions agree with measurements: errors by group, rank correlation and regret inside sweeps.

Runs of one sweep are correlated, so errors are averaged in steps: within a group, over the groups of a source,
and over sources. Nothing here knows what was measured.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Collapsed",
    "Errors",
    "Sweep",
    "average_ranks",
    "collapse",
    "errors",
    "errors_by",
    "macro",
    "median",
    "outside",
    "regret",
    "spearman",
    "sweeps",
]

Floats = NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Errors:
    """Relative errors of ``count`` predictions, as fractions: of the absolute error its mean, median and 90th
    percentile (linear between neighbours), and ``bias``, the mean of predicted / measured - 1.
    """

    count: int
    mean: float
    median: float
    bias: float
    p90: float


@dataclass(frozen=True, slots=True)
class Collapsed:
    """Identical configurations as one: ``first`` index, ``members``, and the median of what was measured.

    ``spread`` is the largest over the smallest.
    """

    first: int
    members: tuple[int, ...]
    value: float
    spread: float


@dataclass(frozen=True, slots=True)
class Sweep:
    """Runs that differ in what is explored. ``rank`` is None when either side is constant.

    ``regret`` is the measured cost of the run that is predicted to be best over the best measured, less 1; NaN where
    costs were not given.
    """

    key: tuple[str, ...]
    members: tuple[int, ...]
    rank: float | None
    regret: float


def errors(measured: Sequence[float] | Floats, predicted: Sequence[float] | Floats) -> Errors:
    """The errors of predictions, at least one; measured values are above 0."""
    truth, guess = np.asarray(measured, float), np.asarray(predicted, float)
    signed = guess / truth - 1.0
    size = np.abs(signed)
    return Errors(
        len(truth),
        float(size.mean()),
        float(np.median(size)),
        float(signed.mean()),
        float(np.quantile(size, 0.9)),
    )


def errors_by(keys: Sequence[Key], measured: Floats, predicted: Floats) -> dict[Key, Errors]:
    """The errors of each group, in the order in which groups first appear."""
    return {
        key: errors(measured[members], predicted[members])
        for key, members in ((key, np.array(found)) for key, found in _members(keys).items())
    }


def macro(groups: Mapping[Any, Errors], field: str = "mean") -> float:
    """The mean over sources (a key's first part) of each source's mean over its groups; NaN of no groups."""
    by_source: dict[str, list[float]] = {}
    for key, found in groups.items():
        by_source.setdefault(key[0], []).append(getattr(found, field))
    return float(np.mean([np.mean(values) for values in by_source.values()])) if by_source else float("nan")


def collapse(keys: Sequence[Hashable], values: Sequence[float] | Floats) -> list[Collapsed]:
    """One entry for each distinct key, in the order in which they first appear."""
    found = []
    for members in _members(keys).values():
        own = np.asarray([values[at] for at in members], float)
        found.append(
            Collapsed(members[0], tuple(members), float(np.median(own)), float(own.max() / own.min()))
        )
    return found


def average_ranks(values: Sequence[float] | Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    data = np.asarray(values, float)
    _, inverse, counts = np.unique(data, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: Floats = last - (counts - 1) / 2.0
    return means[inverse.reshape(-1)]


def spearman(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float | None:
    """Spearman's rank correlation with average ranks; None when either side is constant."""
    a, b = average_ranks(first), average_ranks(second)
    a, b = a - a.mean() if len(a) else a, b - b.mean() if len(b) else b
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return None if size == 0.0 else float(np.clip((a * b).sum() / size, -1.0, 1.0))


def regret(cost: Sequence[float] | Floats, predicted: Sequence[float] | Floats) -> float:
    """Measured cost of the run with the lowest prediction over the lowest measured, less 1.

    Of runs that are predicted alike, the most expensive counts.
    """
    truth, guess = np.asarray(cost, float), np.asarray(predicted, float)
    return float(truth[guess == guess.min()].max() / truth.min() - 1.0)


def sweeps(
    keys: Sequence[tuple[str, ...]],
    measured: Floats,
    predicted: Floats,
    *,
    least: int,
    costs: tuple[Floats, Floats] | None = None,
    distinct: Sequence[Hashable] | None = None,
) -> list[Sweep]:
    """The sweeps among runs: those that share a key, where there are enough.

    Args:
        keys: what the runs of one sweep share, for each run.
        measured: what is ranked.
        predicted: the same as predicted.
        costs: measured and predicted costs, of which the lowest is best; without them there is no regret.
        least: the fewest runs of a sweep, or the fewest different entries of ``distinct``.
        distinct: what the runs of a sweep have to differ in.
    """
    found = []
    for key, members in _members(keys).items():
        different = len(members) if distinct is None else len({distinct[at] for at in members})
        if different >= least:
            at = np.array(members)
            lost = float("nan") if costs is None else regret(costs[0][at], costs[1][at])
            found.append(Sweep(key, tuple(members), spearman(measured[at], predicted[at]), lost))
    return found


def median(values: Sequence[float | None]) -> float:
    """The median of the values that there are, None and NaN left out; NaN when there are none."""
    known = [value for value in values if value is not None and value == value]
    return float(np.median(known)) if known else float("nan")


def outside(value: float, ends: Sequence[float] | Floats) -> float:
    """How far a value lies outside the range of ``ends``, relative to the nearer end; 0 inside, negative below."""
    low, high = float(np.min(ends)), float(np.max(ends))
    return value / low - 1.0 if value < low else value / high - 1.0 if value > high else 0.0


def _members(keys: Sequence[Any]) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for at, key in enumerate(keys):
        found.setdefault(key, []).append(at)
    return found
