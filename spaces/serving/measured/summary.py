"""What is told first: the figures that matter, what they were fitted to, and what is left out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dse.spaces.measured.tables import number, percent
from dse.study.agreement import Cell, Table

from .fitted import Fitted
from .row import Row
from .scores import Ceiling, Scores
from .tables import assumed_notes, scored_note

__all__ = ["compared", "overall", "summary"]


def overall(scores: Scores, reached: Sequence[Ceiling] = ()) -> dict[str, Cell]:
    """The figures that bars are set on, by name."""
    whole = scores.whole
    ratio = [one.ratio for one in reached]
    return {
        "macro": scores.macro,
        "macro_median": scores.macro_of("median"),
        "macro_bias": scores.macro_of("bias"),
        "macro_p90": scores.macro_of("p90"),
        "decode_macro": scores.decode_macro,
        "rows": sum(len(run.members) for run in scores.runs),
        "configurations": len(scores.runs),
        "groups": len(scores.groups),
        "sources": len(scores.sources),
        "pooled_mean": whole.mean if whole else None,
        "pooled_median": whole.median if whole else None,
        "batch_sweeps": len(scores.sweeps),
        **{
            f"{name}_spearman{end}": figure
            for name in ("throughput", "latency")
            for end, figure in _ranks(scores, name).items()
        },
        "ceilings": len(ratio),
        "ceilings_reached": float(np.mean([one >= 1.0 for one in ratio])) if ratio else math.nan,
        "ceilings_median": float(np.median(ratio)) if ratio else math.nan,
    }


def _ranks(scores: Scores, name: str) -> dict[str, float]:
    """The mean and the lowest of the rank correlations."""
    found = scores.ranks(name)
    return {"": float(np.mean(found)) if found else math.nan, "_lowest": min(found, default=math.nan)}


def summary(scores: Scores, reached: Sequence[Ceiling], record: Fitted | None, rows: Sequence[Row]) -> Table:
    """The first table of a validation: figures of this table, and beside them those of sources left out of the fit."""
    cells: list[tuple[Cell, ...]] = []
    seen = record is not None and bool(set(scores.sources) & set(record.in_sample))
    held = record or Fitted()
    notes = [scored_note(rows), *assumed_notes(rows)] if rows else []
    if scores.runs:
        cells += [
            (percent(scores.macro), percent(held.left_out_macro), "mean error, macro"),
            (percent(scores.macro_of("median")), "-", "median error, macro"),
            (
                percent(scores.macro_of("bias")),
                "-",
                "bias, macro (above 0: the figure is predicted too high)",
            ),
            (percent(scores.macro_of("p90")), "-", "90th percentile of the error, macro"),
        ]
        notes += [_counted(scores), *_single(scores), _provenance(scores, record)]
    if scores.decode:
        figure = "mean error of single tokens without the prefill, macro"
        cells.append((percent(scores.decode_macro), percent(held.figure("decode")), figure))
    for name in ("throughput", "latency"):
        if scores.ranks(name):
            mean, lowest = _ranks(scores, name).values()
            figure = f"rank correlation of {name} in sweeps of the batch ({len(scores.sweeps)}), mean"
            cells += [(number(mean), "-", figure), (number(lowest), "-", "- the lowest")]
    if reached:
        ratio = [one.ratio for one in reached]
        figure = "ceilings that the best batch reaches"
        cells.append((f"{sum(one >= 1.0 for one in ratio)} of {len(ratio)}", "-", figure))
        cells.append((f"{np.median(ratio):.2f}", "-", "predicted best over published, median"))
    if not seen:  # figures of a fit's own sources say nothing of others
        cells = [(here, figure) for here, _, figure in cells]
    columns = (("here", "value"), *([("left_out", "value")] if seen else []), ("figure", "text"))
    return Table("summary", "Summary", columns, tuple(cells), tuple(notes))


def _counted(scores: Scores) -> str:
    rows = sum(len(run.members) for run in scores.runs)
    count = len(scores.sources)
    return (
        f"{rows:,} rows, {len(scores.runs):,} configurations, {len(scores.groups)} groups of (model, GPU, engine), {count} "
        f"source{'' if count == 1 else 's'}. Errors are relative to the measured figure in its own unit; macro is the mean over "
        "sources of each source's mean over its groups."
    )


def _single(scores: Scores) -> list[str]:
    """Which sources time single tokens."""
    names = ", ".join(scores.decode_sources)
    told = "Single tokens without the prefill: rows of tpot_ms, and of tokens_s_user at batch 1 whose notes exclude the prefill"
    return [f"{told}: {names}."] if names else []


def _provenance(scores: Scores, record: Fitted | None) -> str:
    """Which numbers were used, and whether they have seen these sources."""
    files = "efficiency.csv (for each GPU generation) and engines.csv (for each engine) of the space"
    if record is None:
        return f"Fitted numbers: {files}."
    count = len([name for name in scores.sources if name in record.in_sample])
    told = f"Fitted numbers: {files}, fitted to {record.rows:,} rows"
    if not count:
        return f"{told} of other sources: nothing here was seen by the fit."
    share = "all" if count == len(scores.sources) else f"{count} of these {len(scores.sources)}"
    return (
        f"{told}, among them those of {share} sources: `here` is mostly in sample. `left out` is the error of each source "
        "predicted by a fit to the other sources, where one of them has its GPU generation (efficiency.json)."
    )


def compared(
    before: Scores, after: Scores, held: tuple[Scores, Scores] | None, rows: Sequence[Row] = ()
) -> tuple[Table, Table]:
    """Figures with the shipped numbers, with the fitted ones, and of sources that were left out of the fit."""
    tried = [("before", before), ("after", after), *([("left_out", held[0])] if held else [])]
    found: list[tuple[Cell, ...]] = [
        (*(one.macro for _, one in tried), "macro mean error"),
        (*(one.decode_macro for _, one in tried), "of single tokens without the prefill"),
    ]
    if held and held[1].runs:
        label = "macro mean error, where no other source has the GPU generation"
        found.append((None, None, held[1].macro, label))
    sources = dict.fromkeys(name for _, one in tried for name in one.sources)
    found += [(*(one.sources.get(source) for _, one in tried), source) for source in sources]
    ranks: list[tuple[Cell, ...]] = []
    for name in ("throughput", "latency"):
        for end, label in (("", "mean"), ("_lowest", "lowest")):
            figures = [_ranks(one, name)[end] for _, one in tried]
            ranks.append((*figures, f"{name}, {label}"))
    names = [name for name, _ in tried]
    errors = (*((name, "percent") for name in names), ("figure", "text"))
    numbers = (*((name, "number") for name in names), ("sweeps", "text"))
    notes = [scored_note(rows), *assumed_notes(rows)] if rows else []
    title = "Mean errors; of a source, the mean over its groups"
    return (
        Table("calibration", title, errors, tuple(found), tuple(notes)),
        Table(
            "ranks", f"Rank correlation in sweeps of the batch ({len(after.sweeps)})", numbers, tuple(ranks)
        ),
    )
