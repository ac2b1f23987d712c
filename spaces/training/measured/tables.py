"""What is told of scores of training runs, as tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dse.spaces.measured import tables as shared
from dse.study.agreement import Cell, Table
from dse.study.scoring import Sweep, median

from .row import Row
from .scores import LEAST_PLANS, LEAST_SCALE, Bound

__all__ = [
    "bounds_table",
    "counts_table",
    "flagged_table",
    "mixtures_table",
    "repeats_table",
    "sweep_table",
]

SHOWN = 3
"""Sweeps, repeats and flags that people are shown, the worst first."""

MEANINGS = {
    "exact": "dense and fully configured: these are scored",
    "mixture": "mixtures of experts, fully configured",
    "bounds": "recomputation or layout open: predicted at every end",
    "flagged": "marked as inconsistent in the table: scored apart",
    "skipped": "cannot be predicted",
}


def counts_table(rows: Sequence[Row]) -> Table:
    """How many rows were used and how many not, with the reasons."""
    found: Table = shared.counts_table(rows, MEANINGS, ("bounds", "flagged", "skipped"))
    return found


def sweep_table(name: str, sweeps: Sequence[Sweep], rows: Sequence[Row], first: Sequence[int]) -> Table:
    """Sweeps, the worst ranked first, plan sweeps with regret; ``first`` maps runs to rows."""
    plans = name == "plan_sweeps"
    least = f"{LEAST_PLANS} distinct plans" if plans else f"{LEAST_SCALE} configurations"
    title = (
        f"Plan sweeps (same model, GPUs, sequence, batch and precision; {least} or more)"
        if plans
        else f"Scale sweeps (same source, architecture, GPU and GPU count; {least} or more)"
    )
    found: list[tuple[Cell, ...]] = []
    for sweep in sorted(sweeps, key=lambda one: 2.0 if one.rank is None else one.rank):
        row = rows[first[sweep.members[0]]]
        told = [row.cells[part] for part in ("source", "model")]
        told += [f"{_whole(row.cells['layers'])} layers of {_whole(row.cells['hidden'])}"]
        told += [f"{_whole(row.cells['n_gpus'])} x {row.cells['system']}"]
        if plans:
            told += [f"sequence {_whole(row.cells['seq_len'])}, batch {_whole(row.cells['global_batch'])}"]
        cells: list[Cell] = [len(sweep.members), sweep.rank]
        found.append((*cells, *([sweep.regret] if plans else []), ", ".join(told)))
    ranks = [sweep.rank for sweep in sweeps]
    note = f"{_count(len(sweeps), 'sweep')}; median rank correlation {_number(median(ranks))}"
    if undefined := ranks.count(None):
        note += f" ({undefined} undefined: constant)"
    if plans:
        note += f", median regret {100 * median([sweep.regret for sweep in sweeps]):.1f} %"
    columns = (
        ("runs", "count"),
        ("rank", "number"),
        *([("regret", "percent")] if plans else []),
        ("sweep", "text"),
    )
    return Table(name, title, columns, tuple(found), (note,), SHOWN)


def flagged_table(bounds: Sequence[Bound], rows: Sequence[Row]) -> Table:
    """Flagged rows by what is wrong with them: how far the measured value lies from the (nearest) prediction."""
    found: dict[tuple[str, str], list[float]] = {}
    for bound in bounds:
        row = rows[bound.row]
        found.setdefault((row.reason, row.cells["source"]), []).append(bound.outside)
    told = tuple(
        (len(away), median([abs(one) for one in away]), median(away), f"{reason} ({source})")
        for (reason, source), away in found.items()
    )
    columns = (("rows", "count"), ("median", "percent"), ("signed", "percent"), ("flag", "text"))
    note = "signed: the measured value over the nearest prediction, less 1"
    told = tuple(sorted(told, key=lambda cells: -cells[1]))
    return Table("flagged", "Flagged rows (apart)", columns, told, (note,), SHOWN)


def bounds_table(bounds: Sequence[Bound], rows: Sequence[Row]) -> Table:
    """By source: how many measured values lie within the predictions' range, and how far outside the others do."""
    title = "Dense rows whose plan is open: measured values within the predictions' ends"
    return _ends_table(
        "bounds", title, [one for one in bounds if not _mixed(rows[one.row])], rows, ("source",)
    )


def mixtures_table(bounds: Sequence[Bound], rows: Sequence[Row]) -> Table:
    """The same of mixtures of experts, by source, model and system; a row that states everything has one end."""
    chosen = [one for one in bounds if _mixed(rows[one.row])]
    title = "Mixtures of experts (apart): measured values within the predictions' ends"
    return _ends_table("mixtures", title, chosen, rows, ("source", "model", "system"))


def _mixed(row: Row) -> bool:
    return bool(row.model and row.model["experts"])


def _ends_table(
    name: str, title: str, bounds: Sequence[Bound], rows: Sequence[Row], columns: Sequence[str]
) -> Table:
    groups: dict[tuple[str, ...], list[Bound]] = {}
    for bound in bounds:
        groups.setdefault(rows[bound.row].key(columns), []).append(bound)
    found: list[tuple[Cell, ...]] = []
    for key, own in groups.items():
        away = [abs(bound.outside) for bound in own]
        half = [bound.halfway - 1.0 for bound in own]
        found.append(
            (
                len(own),
                away.count(0.0),
                float(np.mean(away)),
                float(np.mean([abs(one) for one in half])),
                float(np.mean(half)),
                float(np.median([bound.high / bound.low - 1.0 for bound in own])),
                ", ".join(key),
            )
        )
    named = (
        ("rows", "count"), ("inside", "count"), ("outside", "hundredths"), ("halfway", "hundredths"),
        ("bias", "hundredths"), ("width", "hundredths"), ("group", "text"),
    )  # fmt: skip
    note = (
        "outside: mean distance from the nearer end; halfway: mean error of the (geometric) middle; bias: its sign; "
        "width: of the ends"
    )
    worst = sorted(found, key=lambda cells: -float(cells[2] or 0.0))
    return Table(name, f"{title}, percent", named, tuple(worst), (note,), 8)


def repeats_table(rows: Sequence[Row]) -> Table:
    """Identical configurations that differ, flagged ones among them: the largest over the smallest value."""
    chosen = [row for row in rows if row.kind in {"exact", "flagged", "mixture", "bounds"} and row.target]
    values = [row.target.value if row.target else math.nan for row in chosen]

    def label(row: Row) -> str:
        system = f"{_whole(row.cells['n_gpus'])} x {row.cells['system']}"
        return f"{row.cells['source']}, {row.cells['model']}, {system} ({row.cells['metric']})"

    found: Table = shared.repeats_table(chosen, values, label, SHOWN)
    return found


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _whole(text: str) -> str:
    return text.removesuffix(".0")


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.2f}"
