"""What is told first: the figures that matter, what they were fitted to, and what is left out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dse.spaces.measured.summary import (
    compared_tables,
    counted_note,
    error_cells,
    figures,
    first_table,
    seen_note,
)
from dse.spaces.measured.tables import number, percent
from dse.study.agreement import Cell, Table

from .fitted import Fitted
from .row import Row
from .scores import Ceiling, Scores
from .tables import assumed_notes, scored_note

__all__ = ["compared", "overall", "summary"]


def overall(scores: Scores, reached: Sequence[Ceiling] = ()) -> dict[str, Cell]:
    """The figures that bars are set on, by name."""
    ratio = [one.ratio for one in reached]
    return {
        **figures(scores),
        "decode_macro": scores.decode_macro,
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
        cells += error_cells(scores, held.left_out_macro, "")
        notes += [counted_note(scores, "model, GPU, engine"), *_single(scores), _provenance(scores, record)]
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
    found: Table = first_table(cells, notes, seen)
    return found


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
    told = f"Fitted numbers: {files}, fitted to {record.rows:,} rows"
    how = "where one of them has its GPU generation"
    note: str = seen_note(told, scores.sources, record.in_sample, how)
    return note


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
            each = [_ranks(one, name)[end] for _, one in tried]
            ranks.append((*each, f"{name}, {label}"))
    tables: tuple[Table, Table] = compared_tables(
        [name for name, _ in tried],
        found,
        ranks,
        f"Rank correlation in sweeps of the batch ({len(after.sweeps)})",
        [scored_note(rows), *assumed_notes(rows)] if rows else [],
    )
    return tables
