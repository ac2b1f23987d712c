"""What is told first of any table: mean errors beside those of sources left out of the fit, counts, what the fit has seen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from dse.study.agreement import Cell, Table

from .tables import percent

__all__ = ["compared_tables", "counted_note", "error_cells", "figures", "first_table", "seen_note"]


def figures(scores: Any) -> dict[str, Cell]:
    """Errors and counts by name, of a space's scores: their ``runs``, ``groups``, ``sources``, ``whole`` and macro means."""
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
    }


def error_cells(scores: Any, left_out: float, what: str) -> list[tuple[Cell, ...]]:
    """The macro errors: of this table, of sources left out of the fit (or ``-``), and what they are the error of."""
    return [
        (percent(scores.macro), percent(left_out), f"mean error{what}, macro"),
        (percent(scores.macro_of("median")), "-", "median error, macro"),
        (percent(scores.macro_of("bias")), "-", "bias, macro (above 0: the figure is predicted too high)"),
        (percent(scores.macro_of("p90")), "-", "90th percentile of the error, macro"),
    ]


def first_table(cells: Sequence[tuple[Cell, ...]], notes: Sequence[str], seen: bool) -> Table:
    """The first table of a validation.

    Args:
        cells: figures of this table, those of sources left out of the fit, and what they are.
        notes: what is told below.
        seen: whether the fit saw sources of this table; figures of a fit's own sources say nothing of others.
    """
    told = list(cells) if seen else [(here, figure) for here, _, figure in cells]
    columns = (("here", "value"), *([("left_out", "value")] if seen else []), ("figure", "text"))
    return Table("summary", "Summary", columns, tuple(told), tuple(notes))


def counted_note(scores: Any, grouped: str) -> str:
    """How many rows and configurations there are, in how many groups of what, and what the errors are."""
    rows, count = sum(len(run.members) for run in scores.runs), len(scores.sources)
    return (
        f"{rows:,} rows, {len(scores.runs):,} configurations, {len(scores.groups)} groups of ({grouped}), {count} "
        f"source{'' if count == 1 else 's'}. Errors are relative to the measured figure in its own unit; macro is the mean over "
        "sources of each source's mean over its groups."
    )


def seen_note(told: str, sources: Collection[str], fitted: Collection[str], errors: str) -> str:
    """Whether a fit has seen the sources of a table.

    Args:
        told: which numbers were used and how many rows they were fitted to.
        sources: those of the table.
        fitted: those of the fit.
        errors: how the errors of sources left out are come by.
    """
    count = len([name for name in sources if name in fitted])
    if not count:
        return f"{told} of other sources: nothing here was seen by the fit."
    share = "all" if count == len(sources) else f"{count} of these {len(sources)}"
    return (
        f"{told}, among them those of {share} sources: `here` is mostly in sample. `left out` is the error of each source "
        f"predicted by a fit to the other sources, {errors} (efficiency.json)."
    )


def compared_tables(
    names: Sequence[str],
    errors: Sequence[tuple[Cell, ...]],
    ranks: Sequence[tuple[Cell, ...]],
    title: str,
    notes: Sequence[str],
) -> tuple[Table, Table]:
    """Errors and rank correlations (whose table is called ``title``) with several numbers, ``names``, side by side."""
    shares = (*((name, "percent") for name in names), ("figure", "text"))
    numbers = (*((name, "number") for name in names), ("sweeps", "text"))
    of_errors = "Mean errors; of a source, the mean over its groups"
    return (
        Table("calibration", of_errors, shares, tuple(errors), tuple(notes)),
        Table("ranks", title, numbers, tuple(ranks)),
    )
