"""What is told of scores of inference runs, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dse.spaces.measured import tables as shared
from dse.study.agreement import Cell, Table
from dse.study.scoring import Errors

from .row import Row
from .scores import LEAST_BATCHES, BatchSweep, Bound, Ceiling, Scores

__all__ = [
    "assumed_notes", "bounds_table", "ceilings_table", "counts_table", "errors_table", "flagged_table", "repeats_table", "scored_note",
    "sweep_table",
]  # fmt: skip

SHOWN = 3
"""Sweeps and groups that people are shown, the worst first."""

KINDS = {
    "exact": "a static batch or a single sequence, stated in full: these are scored",
    "ceiling": "the highest rate of an engine that schedules itself: the best batch that fits must reach it",
    "bounds": "something that matters is open: predicted at both ends",
    "flagged": "marked as doubtful, or contradicted by another row of its source",
    "skipped": "cannot be predicted",
}

UNSCORED = {"skipped": "skipped", "ceiling": "ceilings", "bounds": "open", "flagged": "flagged"}
"""Why rows are not scored, by kind."""

ASSUMED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "gpu": ("The exact product of the GPU", {}),
    "engine": ("An engine with numbers of its own", {}),
    "input_len": ("The length of the prompt", {}),
    "metric": ("Whether the prefill counts", {}),
    "weights_precision": ("The format of the weights", {}),
}
"""What may be assumed, by column."""


def scored_note(rows: Sequence[Row]) -> str:
    """How many rows are scored, how many are not, and why."""
    found: str = shared.scored_note(rows, UNSCORED)
    return found


def counts_table(rows: Sequence[Row]) -> Table:
    """How many rows were used and how many not, with the reasons."""
    found: Table = shared.counts_table(rows, KINDS, ("bounds", "flagged", "skipped"))
    return found


def assumed_notes(rows: Iterable[Row]) -> list[str]:
    """What predicted rows do not state and was assumed by rule, one line for each column."""
    predicted = [row.assumed for row in rows if row.runs and row.kind != "skipped"]
    found: list[str] = shared.assumed_notes(predicted, ASSUMED)
    return found


def sweep_table(scores: Scores, rows: Sequence[Row]) -> Table:
    """Sweeps of the batch, the worst ranked first."""

    def worst(sweep: BatchSweep) -> float:
        return min(1.0 if one is None else one for one in (sweep.throughput, sweep.latency))

    found: list[tuple[Cell, ...]] = []
    for sweep in sorted(scores.sweeps, key=worst):
        row = rows[scores.runs[sweep.members[0]].first]
        cells, plan = row.cells, row.runs[0].plan
        told = [
            cells["source"],
            cells["model"],
            f"{cells['n_gpus'] or 1} x {cells['gpu']}, {plan['weights']}",
        ]
        told.append(f"{cells['input_len']} + {cells['output_len']} tokens")
        found.append((len(sweep.members), sweep.throughput, sweep.latency, ", ".join(told)))
    notes = [
        f"{name}: mean {np.mean(ranks):.3f}, lowest {min(ranks):.3f} of {len(ranks)}"
        for name in ("throughput", "latency")
        if (ranks := scores.ranks(name))
    ]
    title = f"Sweeps of the batch ({LEAST_BATCHES} batches or more, all else equal), rank correlations"
    columns = (("runs", "count"), ("throughput", "number"), ("latency", "number"), ("sweep", "text"))
    return Table("batch_sweeps", title, columns, tuple(found), ("; ".join(notes),) if notes else (), SHOWN)


def ceilings_table(found: Sequence[Ceiling], rows: Sequence[Row]) -> Table:
    """By source, model, GPU, count and format: how many published ceilings the best batch reaches, and by how much."""
    groups: dict[tuple[str, ...], list[Ceiling]] = {}
    for one in found:
        key = rows[one.row].key(("source", "model", "gpu", "n_gpus", "weights_precision"))
        groups.setdefault(key, []).append(one)
    told: list[tuple[Cell, ...]] = []
    for (source, model, gpu, n_gpus, stored), own in groups.items():
        ratio = [one.ratio for one in own]
        label = f"{source}, {model} in {stored}, {n_gpus or 1} x {gpu}"
        told.append(
            (
                len(own),
                sum(one >= 1.0 for one in ratio),
                float(np.min(ratio)),
                float(np.median(ratio)),
                float(np.max(ratio)),
                label,
            )
        )
    columns = (
        ("rows", "count"), ("reached", "count"), ("lowest", "number"), ("median", "number"), ("highest", "number"),
        ("group", "text"),
    )  # fmt: skip
    note = "predicted best over published; below 1 the published rate is not reached"
    return Table(
        "ceilings",
        "Ceilings: the best batch that fits against the highest published rate",
        columns,
        tuple(sorted(told, key=lambda cells: float(cells[3] or 0.0))),
        (note,),
        6,
    )


def bounds_table(found: Sequence[Bound], rows: Sequence[Row]) -> Table:
    """By source: how many measured values lie within the predictions' range, and how far outside the others do."""
    groups: dict[tuple[str, ...], list[Bound]] = {}
    for one in found:
        groups.setdefault((rows[one.row].cells["source"], rows[one.row].reason), []).append(one)
    told = tuple(
        (
            len(own),
            sum(one.outside == 0.0 for one in own),
            float(np.mean([abs(one.outside) for one in own])),
            float(np.mean([abs(one.halfway - 1.0) for one in own])),
            ", ".join(key),
        )
        for key, own in groups.items()
    )
    columns = (
        ("rows", "count"), ("inside", "count"), ("outside", "hundredths"), ("halfway", "hundredths"), ("group", "text"),
    )  # fmt: skip
    note = "outside: mean distance from the nearer end; halfway: mean error of the (geometric) middle"
    return Table(
        "bounds", "Open rows: measured values within the predictions' ends, percent", columns, told, (note,)
    )


def flagged_table(found: Sequence[Bound], rows: Sequence[Row]) -> Table:
    """Flagged rows: how far the measured value lies from the (nearest) prediction."""
    told = tuple(
        (one.outside, f"{rows[one.row].cells['source']}, line {rows[one.row].line}: {rows[one.row].reason}")
        for one in sorted(found, key=lambda one: -abs(one.outside))
    )
    note = "signed: the measured value over the nearest prediction, less 1"
    return Table(
        "flagged", "Flagged rows (apart)", (("signed", "percent"), ("flag", "text")), told, (note,), SHOWN
    )


def errors_table(name: str, title: str, groups: Mapping[tuple[str, ...], Errors], shown: int = 1000) -> Table:
    """Errors of each group, the worst first."""
    found: Table = shared.group_table(name, title, shared.worst_first(groups), shown=shown)
    return found


def repeats_table(rows: Sequence[Row]) -> Table:
    """Identical configurations that differ: the largest over the smallest value."""
    chosen = [row for row in rows if row.runs and row.kind != "skipped"]

    def label(row: Row) -> str:
        cells = row.cells
        system = f"{cells['n_gpus'] or 1} x {cells['gpu']}, {row.engine}"
        return f"{cells['source']}, {cells['model']}, {system} ({cells['metric']})"

    found: Table = shared.repeats_table(chosen, [row.runs[0].target.value for row in chosen], label, SHOWN)
    return found
