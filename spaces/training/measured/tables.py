"""What is told of scores of training runs, as tables."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from dse.study.agreement import Cell, Table
from dse.study.scoring import Errors, Sweep, collapse, median

from .row import Row
from .scores import LEAST_PLANS, LEAST_SCALE, Bound, Scores

__all__ = [
    "bounds_table",
    "counts_table",
    "flagged_table",
    "group_table",
    "overall",
    "repeats_table",
    "sweep_table",
]

ERRORS = (
    ("rows", "count"), ("mean", "percent"), ("median", "percent"), ("bias", "percent"), ("p90", "percent"),
)  # fmt: skip

SPREAD = 1.05
"""Repeats of one configuration that differ by more are listed; sources deviate by 1 to 5 percent."""

SHOWN = 12
"""Sweeps that people are shown, the worst first."""

MEANINGS = {
    "exact": "dense and fully configured: these are scored",
    "mixture": "mixtures of experts, fully configured",
    "bounds": "recomputation or layout open: predicted at every end",
    "flagged": "marked as inconsistent in the table: scored apart",
    "skipped": "cannot be predicted",
}


def counts_table(rows: Sequence[Row], predicted: Collection[int] | None = None) -> Table:
    """How many rows were used and how many not, with the reasons; ``predicted`` are the rows that the model took."""
    found: list[tuple[Cell, ...]] = []
    for kind, meaning in MEANINGS.items():
        own = [row for row in rows if row.kind == kind]
        if own:
            found.append((len(own), f"{kind}: {meaning}"))
        reasons: dict[str, int] = {}
        for row in own if kind in {"bounds", "flagged", "skipped"} else ():
            reasons[row.reason] = reasons.get(row.reason, 0) + 1
        found += [
            (count, f"- {reason}") for reason, count in sorted(reasons.items(), key=lambda one: -one[1])
        ]
    return Table("rows", f"{len(rows):,} rows", (("rows", "count"), ("what", "text")), tuple(found))


def overall(scores: Scores) -> dict[str, Cell]:
    """The figures that bars are set on, by name."""
    whole = scores.whole
    return {
        "macro": scores.macro,
        "macro_median": scores.macro_of("median"),
        "macro_bias": scores.macro_of("bias"),
        "macro_p90": scores.macro_of("p90"),
        "rows": sum(len(run.members) for run in scores.runs),
        "configurations": len(scores.runs),
        "groups": len(scores.groups),
        "sources": len(scores.sources),
        "pooled_mean": whole.mean if whole else None,
        "pooled_median": whole.median if whole else None,
        "scale_sweeps": len(scores.scale),
        "scale_spearman": scores.scale_rank,
        "plan_sweeps": len(scores.plan),
        "plan_spearman": scores.plan_rank,
        "plan_regret": scores.plan_regret,
    }


def group_table(
    name: str, title: str, groups: Mapping[tuple[str, ...], Errors], scores: Scores | None = None
) -> Table:
    """Errors of each group; by source alone also the mean over its groups, which the macro mean is made of."""
    sources = scores.sources if scores and groups and all(len(key) == 1 for key in groups) else {}
    known = [key for key in groups if key[0] in sources]
    columns = (
        *ERRORS,
        *([("macro", "percent")] if len(known) == len(groups) and known else []),
        ("group", "text"),
    )
    rows = []
    for key, found in groups.items():
        cells: list[Cell] = [found.count, found.mean, found.median, found.bias, found.p90]
        if len(columns) > len(ERRORS) + 1:
            cells.append(sources[key[0]])
        rows.append((*cells, ", ".join(filter(None, key))))
    return Table(name, title, columns, tuple(rows))


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
    return Table("flagged", "Flagged rows (apart)", columns, told, (note,))


def bounds_table(bounds: Sequence[Bound], rows: Sequence[Row]) -> Table:
    """By source: how many measured values lie within the predictions' range, and how far outside the others do."""
    by_source: dict[str, list[Bound]] = {}
    for bound in bounds:
        by_source.setdefault(rows[bound.row].cells["source"], []).append(bound)
    found: list[tuple[Cell, ...]] = []
    for source, own in by_source.items():
        away = [abs(bound.outside) for bound in own if bound.outside]
        width = float(np.median([bound.high / bound.low - 1.0 for bound in own]))
        found.append(
            (
                len(own),
                len(own) - len(away),
                float(np.median(away)) if away else None,
                max(away, default=None),
                width,
                source,
            )
        )
    columns = (
        ("rows", "count"), ("inside", "count"), ("outside_median", "percent"), ("outside_worst", "percent"),
        ("width", "percent"), ("source", "text"),
    )  # fmt: skip
    title = "Rows whose plan is open: measured values within the predictions' ends"
    return Table("bounds", title, columns, tuple(found))


def repeats_table(rows: Sequence[Row]) -> Table:
    """Identical configurations that differ, flagged ones among them: the largest over the smallest value."""
    chosen = [row for row in rows if row.kind in {"exact", "flagged", "mixture", "bounds"} and row.target]
    groups = collapse(
        [row.configuration for row in chosen],
        [row.target.value if row.target else math.nan for row in chosen],
    )
    repeated = [group for group in groups if len(group.members) > 1]
    worst = sorted((group for group in repeated if group.spread > SPREAD), key=lambda one: -one.spread)
    found: list[tuple[Cell, ...]] = []
    for group in worst:
        row = chosen[group.first]
        label = f"{row.cells['source']}, {row.cells['model']}, {_whole(row.cells['n_gpus'])} x {row.cells['system']}"
        found.append((len(group.members), group.spread, group.value, f"{label} ({row.cells['metric']})"))
    columns = (
        ("repeats", "count"),
        ("spread", "number"),
        ("median_value", "number"),
        ("configuration", "text"),
    )
    note = (
        f"Measured more than once: {_count(len(repeated), 'configuration')}; each counts once, with its median. "
        f"Listed: largest over smallest above {SPREAD}."
    )
    return Table("repeats", "Repeated configurations", columns, tuple(found), (note,))


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _whole(text: str) -> str:
    return text.removesuffix(".0")


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.2f}"
