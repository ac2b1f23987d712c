"""How well predicted peaks of memory agree with the measured ones: large peaks by share, small ones in GiB."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.study.agreement import Cell, Table
from dse.study.scoring import collapse, median, outside

from .memory_rows import GIB, MemoryRow

__all__ = ["LARGE", "MemoryScores", "memory_tables", "score_memory"]

LARGE = 10.0
"""GiB from which a peak is judged by its relative error."""

WEIGHT_BYTES = {"bf16-true": 2.0, "bf16-true + bnb.nf4": 0.5, "bf16-true + bnb.nf4-dq": 0.5}
"""Bytes that a parameter takes at least."""


@dataclass(frozen=True, slots=True)
class Peak:
    """One configuration: source, target, measured and predicted GiB, and the repeats' spread."""

    source: str
    target: str
    measured: float
    predicted: float
    spread: float


@dataclass(frozen=True, slots=True)
class MemoryScores:
    """Peaks by kind; ``oom`` says of each run that did not fit whether it was foreseen (None: cannot be told)."""

    peaks: Mapping[str, tuple[Peak, ...]]
    bounds: tuple[tuple[str, float], ...]
    oom: tuple[tuple[int, bool | None], ...]

    def large(self, kind: str = "exact") -> dict[tuple[str, str], tuple[Peak, ...]]:
        """Peaks of :data:`LARGE` and more, by source and target."""
        return _by_source([peak for peak in self.peaks.get(kind, ()) if peak.measured >= LARGE])

    def small(self, kind: str = "exact") -> dict[tuple[str, str], tuple[Peak, ...]]:
        """Peaks below :data:`LARGE`, by source and target."""
        return _by_source([peak for peak in self.peaks.get(kind, ()) if peak.measured < LARGE])


def relative(peaks: Sequence[Peak]) -> float:
    """Median absolute relative error."""
    return median([abs(peak.predicted / peak.measured - 1.0) for peak in peaks])


def absolute(peaks: Sequence[Peak]) -> float:
    """Median absolute error in GiB."""
    return median([abs(peak.predicted - peak.measured) for peak in peaks])


def score_memory(rows: Sequence[MemoryRow], predicted: Mapping[int, Sequence[float]]) -> MemoryScores:
    """The scores of a table.

    Args:
        rows: the whole table.
        predicted: bytes by index of the row, one for each of its plans.
    """
    peaks: dict[str, tuple[Peak, ...]] = {}
    for kind in ("exact", "mixture"):
        chosen = [at for at, row in enumerate(rows) if row.kind == kind and at in predicted]
        keys = [(*_configuration(rows[at]), rows[at].target) for at in chosen]
        peaks[kind] = tuple(
            Peak(
                rows[chosen[run.first]].cells["source"],
                rows[chosen[run.first]].target,
                run.value,
                predicted[chosen[run.first]][0] / GIB,
                run.spread,
            )
            for run in collapse(keys, [rows[at].value * rows[at].unit / GIB for at in chosen])
        )
    bounds = tuple(
        (row.cells["source"], outside(row.value * row.unit, predicted[at]))
        for at, row in enumerate(rows)
        if row.kind == "bounds" and at in predicted
    )
    oom = tuple(
        (at, _foreseen(row, predicted.get(at, ()))) for at, row in enumerate(rows) if row.kind == "oom"
    )
    return MemoryScores(peaks, bounds, oom)


def memory_tables(rows: Sequence[MemoryRow], scores: MemoryScores) -> list[Table]:
    """What is told of a table of measured memory."""
    tables: list[Table] = []
    for kind, title in (("exact", "dense models"), ("mixture", "mixtures of experts")):
        suffix = "" if kind == "exact" else "_mixture"
        tables.append(
            _errors(f"memory_large{suffix}", f"Peaks of {LARGE:g} GiB and more, {title}", scores.large(kind))
        )
        tables.append(
            _errors(f"memory_small{suffix}", f"Peaks below {LARGE:g} GiB, {title}", scores.small(kind))
        )
    tables.append(_bounds(scores))
    tables += [_ooms(rows, scores), _counts(rows)]
    return [table for table in tables if table.rows]


def _by_source(peaks: Sequence[Peak]) -> dict[tuple[str, str], tuple[Peak, ...]]:
    keys = dict.fromkeys((peak.source, peak.target) for peak in peaks)
    return {key: tuple(peak for peak in peaks if (peak.source, peak.target) == key) for key in keys}


def _configuration(row: MemoryRow) -> tuple[str, ...]:
    return row.run.configuration if row.run else (str(row.line),)


def _foreseen(row: MemoryRow, predicted: Sequence[float]) -> bool | None:
    """Whether a run that did not fit is predicted so; by its weights alone where nothing else is known."""
    capacity = row.capacity
    if predicted and not math.isnan(capacity):
        return min(predicted) > capacity
    size = re.search(r"(\d+(?:\.\d+)?) ?B\b", row.cells["model"])
    each = WEIGHT_BYTES.get(row.cells["precision"])
    if size and each and float(size.group(1)) * 1e9 * each > capacity:
        return True
    return None


def _counts(rows: Sequence[MemoryRow]) -> Table:
    meanings: dict[str, Callable[[int], str]] = {
        "exact": lambda _: "exact: dense and fully configured",
        "mixture": lambda _: "mixture: mixtures of experts, scored apart",
        "bounds": lambda _: "bounds: recomputation, precision or GPU count open",
        "formula": lambda _: "formula: analytic figures, not measured, not scored",
        "oom": lambda _: "oom: runs that did not fit",
        "skipped": lambda _: "skipped: cannot be predicted",
    }
    found: list[tuple[Cell, ...]] = []
    for kind, told in meanings.items():
        own = [row for row in rows if row.kind == kind]
        if own:
            found.append((len(own), told(len(own))))
        reasons: dict[str, int] = {}
        for row in own if kind in {"bounds", "skipped"} else ():
            reasons[row.reason] = reasons.get(row.reason, 0) + 1
        found += [
            (count, f"- {reason}") for reason, count in sorted(reasons.items(), key=lambda one: -one[1])
        ]
    return Table(
        "memory_rows", f"{len(rows):,} rows of memory", (("rows", "count"), ("what", "text")), tuple(found)
    )


def _errors(name: str, title: str, groups: Mapping[tuple[str, str], Sequence[Peak]]) -> Table:
    found: list[tuple[Cell, ...]] = []
    for (source, target), peaks in groups.items():
        bias = float(np.mean([peak.predicted / peak.measured - 1.0 for peak in peaks]))
        spread = max(peak.spread for peak in peaks)
        found.append((len(peaks), relative(peaks), absolute(peaks), bias, spread, f"{source}, {target}"))
    columns = (
        ("configurations", "count"), ("median", "percent"), ("median_GiB", "number"), ("bias", "percent"),
        ("spread", "number"), ("source", "text"),
    )  # fmt: skip
    return Table(name, title, columns, tuple(found))


def _bounds(scores: MemoryScores) -> Table:
    found: list[tuple[Cell, ...]] = []
    for source in dict.fromkeys(source for source, _ in scores.bounds):
        own = [abs(away) for name, away in scores.bounds if name == source]
        found.append((len(own), own.count(0.0), median([one for one in own if one]), max(own), source))
    columns = (
        ("rows", "count"), ("inside", "count"), ("outside_median", "percent"), ("outside_worst", "percent"),
        ("source", "text"),
    )  # fmt: skip
    return Table("memory_bounds", "Rows whose configuration is open", columns, tuple(found))


def _ooms(rows: Sequence[MemoryRow], scores: MemoryScores) -> Table:
    """What was predicted of runs that did not fit; people are shown those that were not foreseen."""
    told = {False: "predicted to fit", None: "too little is stated", True: "predicted not to fit"}
    answers = [(told[kind], at) for kind in told for at, answer in scores.oom if answer is kind]
    columns = (("prediction", "text"), ("capacity_GiB", "number"), ("run", "text"))
    cells = tuple((text, *_oom_cells(rows[at])) for text, at in answers)
    foreseen = sum(answer is True for _, answer in scores.oom)
    note = f"{foreseen} of {len(answers)} were predicted not to fit"
    shown = len(answers) - foreseen
    return Table("memory_oom", "Runs that did not fit", columns, cells, (note,), shown)


def _oom_cells(row: MemoryRow) -> tuple[float, str]:
    cells = row.cells
    what = [cells["model"], cells["precision"], cells.get("notes", "").partition(";")[0]]
    size = cells["micro_batch"].removesuffix(".0")
    return row.capacity / GIB, ", ".join(filter(None, [*what, size and f"micro-batch {size}"]))
