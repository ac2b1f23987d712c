"""Predictions for rows of tables: iteration times and peaks of memory, through the space's one cost model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.spaces.training.memory import stage_memory
from dse.spaces.training.state import LAST

from .cases import Cases
from .given import Given
from .memory_rows import MemoryRow
from .row import Row

__all__ = ["predict_memory", "predict_times"]

Columns = Mapping[str, Mapping[str, Any]]


def predict_times(
    rows: Sequence[Row],
    given: Given,
    kinds: Collection[str] = ("exact", "mixture", "bounds", "flagged"),
    efficiency: Columns | None = None,
) -> dict[int, list[float]]:
    """Seconds of one iteration by index of the row, one for each of its plans.

    Rows of a GPU generation without efficiencies, and those that the model gives no finite time, are left out.
    """
    from dse.spaces.training.cost import iteration_time  # late: fitting its efficiencies comes through here

    known = given.efficiency if efficiency is None else efficiency
    chosen = [
        (at, row)
        for at, row in enumerate(rows)
        if row.kind in kinds and row.plans and given.hardware[row.hardware]["generation"] in known
    ]
    cases = Cases.of(chosen)
    if not len(cases):
        return {}
    with np.errstate(all="ignore"):
        seconds = np.broadcast_to(iteration_time(given.namespace(cases, known)), len(cases))
    return _by_row(cases, seconds)


def predict_memory(rows: Sequence[MemoryRow], given: Given) -> dict[int, list[float]]:
    """Bytes of each row's own target by index of the row, one for each of its plans."""
    chosen = [(at, row.run) for at, row in enumerate(rows) if row.run is not None]
    cases = Cases.of(chosen)
    if not len(cases):
        return {}
    own = [rows[at] for at in cases.row.tolist()]
    device = np.array([row.target == "device" for row in own])
    reserved = np.array([row.target == "reserved" for row in own])
    last = np.array([row.last_stage for row in own])
    oom = np.array([row.kind == "oom" for row in own])
    with np.errstate(all="ignore"):
        g = given.namespace(cases)
        peaks = []
        for stage in (0, 1, LAST):
            # whether a run fits is asked of what it must have, without what the allocator keeps for later
            lines = stage_memory(g, stage, cache=np.where(oom, 0.0, 1.0))
            whole = sum(np.broadcast_to(line, len(cases)) for line in lines.values())
            outside = np.where(device, 0.0, lines["context"])
            outside = outside + np.where(device | reserved, 0.0, lines["fragmentation"])
            peaks.append(whole - outside)
        found = np.where(last, peaks[-1], np.max(peaks, axis=0))
    return _by_row(cases, found)


def _by_row(cases: Cases, values: NDArray[np.float64]) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for at, value in zip(cases.row.tolist(), values.tolist(), strict=True):
        found.setdefault(at, []).append(value)
    return {at: ends for at, ends in found.items() if all(np.isfinite(end) and end > 0 for end in ends)}
