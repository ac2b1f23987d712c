"""Predictions for rows of tables through the space's one cost model: times, best batches, memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cases import Cases
from .given import Fit, Given
from .row import Row, Run

__all__ = [
    "Best",
    "Model",
    "predict_ceilings",
    "predict_further",
    "predict_memory",
    "predict_times",
    "shipped",
]

BATCHES = tuple(sorted({round(2 ** (step / 4)) for step in range(53)}))
"""Batches that are tried for a ceiling: up to 8,192, four to a doubling."""


@dataclass(frozen=True, slots=True)
class Model:
    """The cost model: ``seconds`` of what a case timed, ``steady`` output tokens/s of an instance at a batch, and ``peak``
    bytes on its fullest GPU, each of a namespace.
    """

    seconds: Callable[[Any], Any]
    steady: Callable[[Any], Any]
    peak: Callable[[Any], Any]


def shipped() -> Model:
    """The model of the space."""
    from dse.spaces.serving import cost, memory  # late: fitting its numbers comes through here

    return Model(cost.predicted_seconds, cost.steady, memory.peak)


@dataclass(frozen=True, slots=True)
class Best:
    """The batch at which an instance makes the most output tokens/s of those that fit, and that rate; 0 if none fits."""

    batch: float
    tokens: float


def predict_times(
    rows: Sequence[Row],
    given: Given,
    kinds: Collection[str] = ("exact", "bounds", "flagged"),
    fit: Fit | None = None,
) -> dict[int, list[float]]:
    """Seconds of what each row timed by index of the row, one for each of its runs.

    Rows of a GPU generation without efficiencies, and those that the model gives no finite time, are left out.
    """
    cases = Cases.of(_chosen(rows, given, kinds, fit))
    found: dict[int, list[float]] = {}
    for at, value in zip(
        cases.row.tolist(), _evaluated(shipped().seconds, cases, given, fit).tolist(), strict=True
    ):
        found.setdefault(at, []).append(value)
    return {at: ends for at, ends in found.items() if all(np.isfinite(end) and end > 0 for end in ends)}


def predict_further(
    rows: Sequence[Row], given: Given, fit: Fit | None = None
) -> dict[tuple[int, str], float]:
    """Seconds of the further figures of exact rows, by index of the row and metric."""
    chosen = [
        (at, row, one.metric, one.phase, one.run)
        for at, row in _chosen(rows, given, ("exact",), fit)
        for one in row.further
        if one.run is not None
    ]
    cases = Cases.flat([(at, row, phase, run) for at, row, _, phase, run in chosen])
    seconds = _evaluated(shipped().seconds, cases, given, fit).tolist()
    found = {(at, metric): value for (at, _, metric, *_), value in zip(chosen, seconds, strict=True)}
    return {key: value for key, value in found.items() if np.isfinite(value) and value > 0}


def predict_memory(rows: Sequence[Row], given: Given) -> dict[int, float]:
    """Bytes on the fullest GPU of exact rows that say what memory they took, by index of the row."""
    chosen = [
        (at, row)
        for at, row in _chosen(rows, given, ("exact",), None)
        if any(one.phase == "memory" for one in row.further)
    ]
    cases = Cases.of(chosen)
    peaks = _evaluated(shipped().peak, cases, given, None).tolist()
    return {at: peak for at, peak in zip(cases.row.tolist(), peaks, strict=True) if np.isfinite(peak)}


def predict_ceilings(rows: Sequence[Row], given: Given, fit: Fit | None = None) -> dict[int, Best]:
    """The best batch that fits of each ceiling, by index of the row."""
    model = shipped()
    chosen = _chosen(rows, given, ("ceiling",), fit)
    cases = Cases.flat(
        [(at, row, row.phase, _with_batch(row.runs[0], batch)) for at, row in chosen for batch in BATCHES]
    )
    if not len(cases):
        return {}
    rate = _evaluated(model.steady, cases, given, fit)
    peak = _evaluated(model.peak, cases, given, fit)
    memory = np.array([given.hardware[one]["memory"] for one in cases.hardware], float)
    rate = np.where((peak <= memory) & np.isfinite(rate), rate, 0.0).reshape(len(chosen), len(BATCHES))
    best = rate.argmax(axis=1)
    return {
        at: Best(float(BATCHES[number]) if rate[place, number] else 0.0, float(rate[place, number]))
        for place, ((at, _), number) in enumerate(zip(chosen, best.tolist(), strict=True))
    }


def _with_batch(run: Run, batch: float) -> Run:
    return replace(run, plan={**run.plan, "batch": float(batch)}, job={**run.job, "batch": float(batch)})


def _chosen(
    rows: Sequence[Row], given: Given, kinds: Collection[str], fit: Fit | None
) -> list[tuple[int, Row]]:
    known = (fit or given.fit).efficiency
    return [
        (at, row)
        for at, row in enumerate(rows)
        if row.kind in kinds and row.runs and given.generation(row.hardware) in known
    ]


def _evaluated(
    formula: Callable[[Any], Any], cases: Cases, given: Given, fit: Fit | None
) -> NDArray[np.float64]:
    """A formula's values, one a case."""
    if not len(cases):
        return np.zeros(0)
    with np.errstate(all="ignore"):
        found: NDArray[np.float64] = np.broadcast_to(
            np.asarray(formula(given.namespace(cases, fit)), float), len(cases)
        )
    return found
