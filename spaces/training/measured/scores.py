"""How well predicted iteration times agree with the measured ones, by group and inside sweeps.

Errors are taken in the unit of each row's ``value``: a prediction of tokens/s is compared with tokens/s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.study.scoring import (
    Collapsed,
    Errors,
    Sweep,
    collapse,
    errors,
    errors_by,
    macro,
    median,
    outside,
    sweeps,
)

from .row import Row

__all__ = ["LEAST_PLANS", "LEAST_SCALE", "Bound", "Scores", "bounds", "predicted_value", "score"]

LEAST_SCALE = 3
"""Configurations of a scale sweep; a rank correlation of two is always 1 or -1."""

LEAST_PLANS = 5
"""Distinct plans of a plan sweep."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A row whose plan is open: the lowest and highest prediction, and how far outside the measured value lies."""

    row: int
    low: float
    high: float
    outside: float


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of rows of one kind.

    ``runs`` are distinct configurations (indices are those of the rows); ``groups`` are keyed by source, model and
    system; ``scale`` and ``plan`` are sweeps over ``runs``.
    """

    runs: tuple[Collapsed, ...]
    measured: tuple[float, ...]
    predicted: tuple[float, ...]
    groups: Mapping[tuple[str, ...], Errors]
    scale: tuple[Sweep, ...]
    plan: tuple[Sweep, ...]

    @property
    def macro(self) -> float:
        """Mean over sources of each source's mean over its groups of the mean absolute relative error."""
        return macro(self.groups)

    def macro_of(self, field: str) -> float:
        """The same mean of means of another figure of :class:`~dse.study.scoring.Errors`."""
        return macro(self.groups, field)

    @property
    def sources(self) -> dict[str, float]:
        """Each source's mean over its groups."""
        names = dict.fromkeys(key[0] for key in self.groups)
        return {
            name: macro({key: found for key, found in self.groups.items() if key[0] == name})
            for name in names
        }

    @property
    def scale_rank(self) -> float:
        """Median rank correlation of the scale sweeps."""
        return median([sweep.rank for sweep in self.scale])

    @property
    def plan_rank(self) -> float:
        """Median rank correlation of the plan sweeps."""
        return median([sweep.rank for sweep in self.plan])

    @property
    def plan_regret(self) -> float:
        """Median regret of the plan sweeps."""
        return median([sweep.regret for sweep in self.plan])

    def by(self, rows: Sequence[Row], columns: Sequence[str]) -> dict[tuple[str, ...], Errors]:
        """Errors by some columns of the table."""
        keys = [rows[run.first].key(columns) for run in self.runs]
        return errors_by(keys, np.array(self.measured), np.array(self.predicted))

    @property
    def whole(self) -> Errors | None:
        """Errors over all runs alike, or None when there are none."""
        return errors(self.measured, self.predicted) if self.runs else None


def score(rows: Sequence[Row], seconds: Mapping[int, Sequence[float]], kind: str = "exact") -> Scores:
    """The scores of the rows of one kind that have one prediction.

    Args:
        rows: the whole table.
        seconds: predicted iteration times by index of the row, one for each of its plans.
        kind: the rows to score.
    """
    chosen = [
        at for at, row in enumerate(rows) if row.kind == kind and len(seconds.get(at, ())) == 1 and row.target
    ]
    targets = {at: target for at in chosen if (target := rows[at].target)}
    local = collapse([rows[at].configuration for at in chosen], [targets[at].value for at in chosen])
    runs = tuple(
        Collapsed(chosen[run.first], tuple(chosen[at] for at in run.members), run.value, run.spread)
        for run in local
    )
    measured = np.array([run.value for run in runs], float)
    predicted = np.array([predicted_value(rows[run.first], seconds[run.first]) for run in runs], float)
    # regret compares costs: a run's seconds, measured as the median of its repeats
    scale = np.array([targets[run.first].scale for run in runs], float)
    rate = np.array([targets[run.first].is_rate for run in runs], bool)
    cost = np.where(rate, scale / measured, measured) if runs else measured
    guess = np.array([seconds[run.first][0] for run in runs], float)
    firsts = [rows[run.first] for run in runs]
    return Scores(
        runs,
        tuple(measured.tolist()),
        tuple(predicted.tolist()),
        errors_by([row.group for row in firsts], measured, predicted),
        tuple(sweeps([row.scale_sweep for row in firsts], measured, predicted, least=LEAST_SCALE)),
        tuple(
            sweeps(
                [row.plan_sweep for row in firsts],
                measured,
                predicted,
                least=LEAST_PLANS,
                costs=(cost, guess),
                distinct=[row.plan for row in firsts],
            )
        ),
    )


def predicted_value(row: Row, seconds: Sequence[float]) -> float:
    """The prediction in the unit of ``value``: of several plans, halfway (geometrically) between the ends."""
    assert row.target is not None
    return row.target.in_unit(float(np.sqrt(min(seconds) * max(seconds))))


def bounds(rows: Sequence[Row], seconds: Mapping[int, Sequence[float]], kind: str = "bounds") -> list[Bound]:
    """The rows whose plan is open, with the range of their predictions in the unit of ``value``."""
    found = []
    for at, row in enumerate(rows):
        if row.kind == kind and at in seconds and row.target:
            ends = [row.target.in_unit(one) for one in seconds[at]]
            found.append(Bound(at, min(ends), max(ends), outside(row.target.value, ends)))
    return found
