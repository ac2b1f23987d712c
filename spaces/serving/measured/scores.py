"""How well predicted times agree with the measured ones, by group and inside sweeps of the batch; and ceilings.

Errors are taken in the unit of each row's ``value``: a prediction of tokens/s is compared with tokens/s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.spaces.measured.scores import Bound, bound_of, by_source, distinct, halfway
from dse.study.scoring import Collapsed, Errors, errors, errors_by, macro, spearman

from .predictions import Best
from .row import Row

__all__ = [
    "LEAST_BATCHES", "BatchSweep", "Bound", "Ceiling", "Scores", "bounds", "ceilings", "further_errors", "memory_errors",
    "predicted_value", "score",
]  # fmt: skip

LEAST_BATCHES = 5
"""Distinct batches of a sweep."""

Seconds = Mapping[int, Sequence[float]]


@dataclass(frozen=True, slots=True)
class BatchSweep:
    """Runs that differ in the batch alone, and the rank correlations of their throughput and of their latency (None where
    either side is constant).
    """

    key: tuple[str, ...]
    members: tuple[int, ...]
    throughput: float | None
    latency: float | None


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A published highest rate, by its row, and the predicted best over it: above 1 it is reached."""

    row: int
    batch: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of exact rows.

    ``runs`` are distinct configurations (indices are those of the rows); ``groups`` are keyed by source, model and system
    (GPU and engine), ``decode`` are those of the rows that time single tokens; ``sweeps`` are over ``runs``.
    """

    runs: tuple[Collapsed, ...]
    measured: tuple[float, ...]
    predicted: tuple[float, ...]
    groups: Mapping[tuple[str, ...], Errors]
    decode: Mapping[tuple[str, ...], Errors]
    sweeps: tuple[BatchSweep, ...]

    @property
    def macro(self) -> float:
        """Mean over sources of each source's mean over its groups of the mean absolute relative error."""
        return macro(self.groups)

    def macro_of(self, name: str) -> float:
        """The mean of means of another figure of :class:`~dse.study.scoring.Errors`."""
        return macro(self.groups, name)

    @property
    def decode_macro(self) -> float:
        """The macro mean error of rows that time single tokens."""
        return macro(self.decode)

    @property
    def sources(self) -> dict[str, float]:
        """Each source's mean over its groups."""
        found: dict[str, float] = by_source(self.groups)
        return found

    @property
    def decode_sources(self) -> dict[str, float]:
        """The same of rows that time single tokens."""
        found: dict[str, float] = by_source(self.decode)
        return found

    def ranks(self, name: str) -> list[float]:
        """The rank correlations of ``throughput`` or ``latency`` that are defined, one a sweep."""
        found = [getattr(sweep, name) for sweep in self.sweeps]
        return [rank for rank in found if rank is not None]

    def by(self, rows: Sequence[Row], columns: Sequence[str]) -> dict[tuple[str, ...], Errors]:
        """Errors by some columns of the table."""
        keys = [rows[run.first].key(columns) for run in self.runs]
        return errors_by(keys, np.array(self.measured), np.array(self.predicted))

    @property
    def whole(self) -> Errors | None:
        """Errors over all runs alike, or None when there are none."""
        return errors(self.measured, self.predicted) if self.runs else None


def score(rows: Sequence[Row], seconds: Seconds) -> Scores:
    """The scores of exact rows that have a prediction.

    Args:
        rows: the whole table.
        seconds: predicted times by index of the row.
    """
    chosen = [at for at, row in enumerate(rows) if row.kind == "exact" and at in seconds]
    runs = distinct(rows, {at: _value(rows[at]) for at in chosen})
    measured = np.array([run.value for run in runs], float)
    predicted = np.array([predicted_value(rows[run.first], seconds[run.first]) for run in runs], float)
    firsts = [rows[run.first] for run in runs]
    single = np.array([row.decode_only for row in firsts], bool)
    return Scores(
        runs,
        tuple(measured.tolist()),
        tuple(predicted.tolist()),
        errors_by([row.group for row in firsts], measured, predicted),
        errors_by([row.group for row in firsts if row.decode_only], measured[single], predicted[single]),
        tuple(_sweeps(firsts, measured.tolist(), [seconds[run.first][0] for run in runs])),
    )


def _value(row: Row) -> float:
    value: float = row.runs[0].target.value
    return value


def _sweeps(rows: Sequence[Row], values: Sequence[float], seconds: Sequence[float]) -> list[BatchSweep]:
    """The sweeps of at least :data:`LEAST_BATCHES` batches. Sequences of one sweep are equally long, so that their rate goes
    as the batch over the time.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for at, row in enumerate(rows):
        groups.setdefault(row.batch_sweep, []).append(at)
    found = []
    for key, members in groups.items():
        batch = np.array([rows[at].runs[0].job["batch"] for at in members])
        if len(set(batch.tolist())) < LEAST_BATCHES:
            continue
        targets = [(rows[at].runs[0].target, values[at]) for at in members]
        took = np.array([one.scale / value if one.is_rate else value / one.scale for one, value in targets])
        guess = np.array([seconds[at] for at in members])
        throughput, latency = spearman(batch / took, batch / guess), spearman(took, guess)
        found.append(BatchSweep(key, tuple(members), throughput, latency))
    return found


def predicted_value(row: Row, seconds: Sequence[float]) -> float:
    """The prediction in the unit of ``value``: of several runs, halfway (geometrically) between the ends."""
    found: float = halfway(_in_unit(row, seconds))
    return found


def _in_unit(row: Row, seconds: Sequence[float]) -> list[float]:
    return [run.target.in_unit(one) for run, one in zip(row.runs, seconds, strict=True)]


def bounds(rows: Sequence[Row], seconds: Seconds, kind: str = "bounds") -> list[Bound]:
    """The rows of a kind, of which something that matters is not stated, with the range of their predictions."""
    return [
        bound_of(at, _value(row), _in_unit(row, seconds[at]))
        for at, row in enumerate(rows)
        if row.kind == kind and at in seconds
    ]


def ceilings(rows: Sequence[Row], best: Mapping[int, Best]) -> list[Ceiling]:
    """The ceilings with the predicted best over the published rate."""
    return [Ceiling(at, one.batch, one.tokens * rows[at].runs[0].target.seconds) for at, one in best.items()]


def further_errors(
    rows: Sequence[Row], seconds: Mapping[tuple[int, str], float]
) -> dict[tuple[str, ...], Errors]:
    """Errors of the further figures of exact rows, by source and metric, each in its own unit."""
    found: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for at, row in enumerate(rows):
        for one in row.further:
            if one.run is not None and (at, one.metric) in seconds:
                guess = one.run.target.in_unit(seconds[at, one.metric])
                found.setdefault((row.cells["source"], one.metric), []).append((one.value, guess))
    return {key: errors(*zip(*pairs, strict=True)) for key, pairs in found.items()}


def memory_errors(
    rows: Sequence[Row], peaks: Mapping[int, float], memory: Mapping[str, float]
) -> dict[tuple[str, ...], Errors]:
    """Errors of the bytes on the fullest GPU, by source and engine; a figure beyond one GPU's memory is that of all.

    Args:
        rows: the whole table.
        peaks: predicted bytes by index of the row.
        memory: bytes of a GPU, by its id.
    """
    found: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for at, peak in peaks.items():
        row = rows[at]
        told = next(one.value for one in row.further if one.phase == "memory")
        n_gpus = row.runs[0].job["n_gpus"] if told > memory[row.hardware] else 1.0
        found.setdefault((row.cells["source"], row.engine), []).append((told / n_gpus, peak))
    return {key: errors(*zip(*pairs, strict=True)) for key, pairs in found.items()}
