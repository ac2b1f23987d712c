"""How well predicted iteration times agree with the measured ones, by group and inside sweeps.

Errors are taken in the unit of each row's ``value``: a prediction of tokens/s is compared with tokens/s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.spaces.measured.scores import Bound, bound_of, by_source, distinct, halfway
from dse.study.scoring import Collapsed, Errors, Sweep, collapse, errors, errors_by, macro, median, sweeps

from .row import Row

__all__ = [
    "LEAST_PLANS", "LEAST_SCALE", "NOISE", "Bound", "Scores", "bounds", "noise", "predicted_value", "score",
]  # fmt: skip

LEAST_SCALE = 3
"""Configurations of a scale sweep; a rank correlation of two is always 1 or -1."""

LEAST_PLANS = 5
"""Distinct plans of a plan sweep."""

NOISE = 1.5
"""Identical configurations of a source that differ by more say that what was not written down matters as much as
what was: such a source is told, and left out of macro means and medians of sweeps."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of rows of one kind.

    ``runs`` are distinct configurations (indices are those of the rows); ``groups`` are keyed by source, model and
    system; ``scale`` and ``plan`` are sweeps over ``runs``; ``noisy`` are sources beyond :data:`NOISE`, with the
    largest over the smallest value of identical configurations. Macro means and sweeps' medians leave them out,
    unless nothing else is there.
    """

    runs: tuple[Collapsed, ...]
    measured: tuple[float, ...]
    predicted: tuple[float, ...]
    groups: Mapping[tuple[str, ...], Errors]
    scale: tuple[Sweep, ...]
    plan: tuple[Sweep, ...]
    noisy: Mapping[str, float] = field(default_factory=dict)

    @property
    def left_out(self) -> dict[str, float]:
        """The noisy sources with runs, where other sources have some too."""
        own = {name: spread for name, spread in self.noisy.items() if name in self.sources}
        return own if len(own) < len(self.sources) else {}

    @property
    def macro(self) -> float:
        """Mean over sources of each source's mean over its groups of the mean absolute relative error."""
        return self.macro_of("mean")

    @property
    def macro_all(self) -> float:
        """The same with noisy sources."""
        return macro(self.groups)

    def macro_of(self, name: str) -> float:
        """The mean of means of another figure of :class:`~dse.study.scoring.Errors`."""
        away = self.left_out
        return macro({key: found for key, found in self.groups.items() if key[0] not in away}, name)

    def _quiet(self, found: Sequence[Sweep]) -> list[Sweep]:
        away = self.left_out
        return [sweep for sweep in found if sweep.key[0] not in away]

    @property
    def sources(self) -> dict[str, float]:
        """Each source's mean over its groups."""
        found: dict[str, float] = by_source(self.groups)
        return found

    @property
    def scale_rank(self) -> float:
        """Median rank correlation of the scale sweeps."""
        return median([sweep.rank for sweep in self._quiet(self.scale)])

    @property
    def plan_rank(self) -> float:
        """Median rank correlation of the plan sweeps."""
        return median([sweep.rank for sweep in self._quiet(self.plan)])

    @property
    def plan_regret(self) -> float:
        """Median regret of the plan sweeps."""
        return median([sweep.regret for sweep in self._quiet(self.plan)])

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
    runs = distinct(rows, {at: target.value for at, target in targets.items()})
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
        noise(rows),
    )


def noise(rows: Sequence[Row]) -> dict[str, float]:
    """Sources whose identical dense configurations, flagged repeats among them, differ by more than :data:`NOISE`.

    Returns:
        the largest over the smallest value, by source.
    """
    chosen = [row for row in rows if row.kind in {"exact", "flagged"} and row.target]
    found: dict[str, float] = {}
    values = [row.target.value if row.target else 1.0 for row in chosen]
    for group in collapse([row.configuration for row in chosen], values):
        source = chosen[group.first].cells["source"]
        if group.spread > max(NOISE, found.get(source, 0.0)):
            found[source] = group.spread
    return found


def predicted_value(row: Row, seconds: Sequence[float]) -> float:
    """The prediction in the unit of ``value``: of several plans, halfway (geometrically) between the ends."""
    assert row.target is not None
    found: float = halfway([row.target.in_unit(one) for one in seconds])
    return found


def bounds(rows: Sequence[Row], seconds: Mapping[int, Sequence[float]], kind: str = "bounds") -> list[Bound]:
    """The rows of one kind, with the range of their predictions in the unit of ``value``."""
    return [
        bound_of(at, row.target.value, [row.target.in_unit(one) for one in seconds[at]])
        for at, row in enumerate(rows)
        if row.kind == kind and at in seconds and row.target
    ]
