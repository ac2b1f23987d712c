"""What is told first: the figures that matter of times and of memory, what they were fitted to, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dse.spaces.measured.tables import number, percent
from dse.study.agreement import Cell, Table

from .fitted import Fitted
from .memory_scores import LARGE, MemoryScores, absolute, relative
from .row import Row
from .scores import NOISE, Scores
from .told import assumed_notes, scored_note

__all__ = ["compared", "noise_note", "overall", "summary"]


def overall(scores: Scores) -> dict[str, Cell]:
    """The figures that bars are set on, by name."""
    whole = scores.whole
    return {
        "macro": scores.macro,
        "macro_with_noisy": scores.macro_all,
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


def noise_note(scores: Scores) -> list[str]:
    """Says which sources are left out of the macro means and why; nothing when none is."""
    away = scores.left_out
    if not away:
        return []
    told = "; ".join(
        f"{name} (identical runs differ {spread:.2f}-fold; its error is {percent(scores.sources[name])})"
        for name, spread in away.items()
    )
    rule = f"identical runs differ at most {NOISE:g}-fold"
    whole = percent(scores.macro_all)
    return [f"Shown but not in macro figures and medians, by the rule that {rule}: {told}. With it: {whole}."]


def summary(
    times: Scores | None, memory: MemoryScores | None, record: Fitted | None, rows: Sequence[Row] = ()
) -> Table:
    """The first table of a validation: figures of this table, and beside them those of sources left out of the fit."""
    cells: list[tuple[Cell, ...]] = []
    notes = [scored_note(rows), *assumed_notes(rows)] if rows else []
    seen = record is not None and times is not None and bool(set(times.sources) & set(record.in_sample))
    if times and times.runs:
        cells += _time_rows(times, record)
        notes += [_counted(times), _provenance(times, record), *noise_note(times)]
    if memory:
        cells += _memory_rows(memory)
    if not seen:  # figures of a fit's own sources say nothing of others
        cells = [(here, figure) for here, _, figure in cells]
    columns = (("here", "value"), *([("left_out", "value")] if seen else []), ("figure", "text"))
    return Table("summary", "Summary", columns, tuple(cells), tuple(notes))


def _time_rows(times: Scores, record: Fitted | None) -> list[tuple[Cell, ...]]:
    held = record or Fitted()
    scale, plan = len(times.scale), len(times.plan)
    rows: list[tuple[Cell, ...]] = [
        (percent(times.macro), percent(held.left_out_macro), "mean error of step times and rates, macro"),
        (percent(times.macro_of("median")), "-", "median error, macro"),
        (percent(times.macro_of("bias")), "-", "bias, macro (above 0: the figure is predicted too high)"),
        (percent(times.macro_of("p90")), "-", "90th percentile of the error, macro"),
    ]
    if scale:
        figure = f"rank correlation in sweeps of scale ({scale}), median"
        rows.append((number(times.scale_rank), number(held.figure("scale_spearman")), figure))
    if plan:
        figure = f"rank correlation in sweeps of plans ({plan}), median"
        rows += [
            (number(times.plan_rank), number(held.figure("plan_spearman")), figure),
            (
                percent(times.plan_regret),
                percent(held.figure("plan_regret")),
                "regret of the plan ranked first, median",
            ),
        ]
    return rows


def _memory_rows(memory: MemoryScores) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    if large := {" ".join(key): relative(peaks) for key, peaks in memory.large().items()}:
        worst = max(large, key=lambda name: large[name])
        figure = f"memory peaks of {LARGE:g} GiB and more, median error{_worst_of(large)} ({worst})"
        rows.append((percent(large[worst]), "-", figure))
    if small := {" ".join(key): absolute(peaks) for key, peaks in memory.small().items()}:
        worst = max(small, key=lambda name: small[name])
        figure = f"memory peaks below {LARGE:g} GiB, median error{_worst_of(small)} ({worst})"
        rows.append((f"{small[worst]:.2f} GiB", "-", figure))
    known = [answer for _, answer in memory.oom if answer is not None]
    if known:
        untold = len(memory.oom) - len(known)
        more = f"; of {untold} more too little is stated" if untold else ""
        figure = f"runs out of memory, predicted not to fit{more}"
        rows.append((f"{sum(known)} of {len(known)}", "-", figure))
    return rows


def _worst_of(errors: Mapping[str, float]) -> str:
    return f" of the worst of {len(errors)} sources" if len(errors) > 1 else ""


def _counted(times: Scores) -> str:
    rows = sum(len(run.members) for run in times.runs)
    return (
        f"{rows:,} rows, {len(times.runs):,} configurations, {len(times.groups)} groups of (model, system), "
        f"{len(times.sources)} source{'' if len(times.sources) == 1 else 's'}. Errors are relative to the measured figure in its own unit; macro is the mean "
        "over sources of each source's mean over its groups."
    )


def _provenance(times: Scores, record: Fitted | None) -> str:
    """Which efficiencies were used, and whether they have seen these sources."""
    if record is None:
        return "Efficiencies: efficiency.csv of the space."
    seen = [name for name in times.sources if name in record.in_sample]
    share = "all" if len(seen) == len(times.sources) else f"{len(seen)} of these {len(times.sources)}"
    told = f"Efficiencies: efficiency.csv of the space, 12 numbers for each GPU generation, fitted to {record.rows:,} rows"
    if not seen:
        return f"{told} of other sources: nothing here was seen by the fit."
    return (
        f"{told}, among them those of {share} sources: `here` is mostly in sample. `left out` is the error of each "
        "source predicted by a fit to the other sources, as recorded with the fit (efficiency.json)."
    )


def compared(
    before: Scores, after: Scores, held: tuple[Scores, Scores, Scores] | None, measured: Sequence[Row] = ()
) -> tuple[Table, Table]:
    """Figures with the shipped efficiencies, with the fitted ones, and of sources that were left out of the fit."""
    tried = [("before", before), ("after", after), *([("left_out", held[0])] if held else [])]
    rows: list[tuple[Cell, ...]] = [(*(one.macro for _, one in tried), "macro mean error")]
    if after.left_out:
        rows.append((*(one.macro_all for _, one in tried), "macro mean error with noisy sources"))
    if held and held[1].runs:
        rows.append(
            (None, None, held[1].macro_all, "macro mean error, where no other source has the GPU generation")
        )
    ranked = [before, after, *([held[2]] if held else [])]
    rows.append((*(one.plan_regret for one in ranked), "median regret of plan sweeps"))
    for source in after.sources:
        noisy = " (noisy)" if source in after.left_out else ""
        rows.append((*(one.sources.get(source) for _, one in tried), source + noisy))
    ranks: list[tuple[Cell, ...]] = [
        (*(one.scale_rank for one in ranked), f"scale sweeps ({len(after.scale)})"),
        (*(one.plan_rank for one in ranked), f"plan sweeps ({len(after.plan)})"),
    ]
    names = [name for name, _ in tried]
    errors = (*((name, "percent") for name in names), ("figure", "text"))
    numbers = (*((name, "number") for name in names), ("sweeps", "text"))
    notes = [scored_note(measured), *assumed_notes(measured)] if measured else []
    title = "Mean errors; of a source, the mean over its groups"
    return (
        Table("calibration", title, errors, tuple(rows), (*notes, *noise_note(after))),
        Table("ranks", "Median rank correlation", numbers, tuple(ranks)),
    )
