"""Training's predictions against measurements: what ``dse validate training`` and ``dse calibrate training`` do.

Without a table of its own, validation scores ``published.csv`` and ``published_memory.csv``: figures of papers, READMEs and
documentation, each with its source, in the columns of any such table. Their notes are shortened to what is read here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dse.errors import InputError, SpaceError, nearest
from dse.study.agreement import Calibration, Cell, Report, Table, Validation
from dse.study.measurements import Measurements, read_measurements

from .measured.given import Given, load_given
from .measured.memory_rows import FORMULAS, MEASURED, read_memory_rows
from .measured.memory_scores import absolute, memory_tables, relative, score_memory
from .measured.predictions import predict_memory, predict_times
from .measured.row import Row
from .measured.scores import Scores, bounds, predicted_value, score
from .measured.tables import (
    bounds_table,
    counts_table,
    flagged_table,
    group_table,
    overall,
    repeats_table,
    sweep_table,
)
from .rows import Rows, read_rows

__all__ = ["PUBLISHED", "PUBLISHED_MEMORY", "calibrate", "validate"]

PUBLISHED = Path(__file__).with_name("published.csv")
PUBLISHED_MEMORY = Path(__file__).with_name("published_memory.csv")

ROWS_NEEDED = 2
"""Usable rows that a calibration needs."""

Columns = Mapping[str, Mapping[str, Any]]
Predicted = dict[int, list[float]]


def validate(request: Validation) -> Report:
    """Scores predictions against tables of measurements; a table of memory is known by its metrics.

    Raises:
        SpaceError: a file cannot be read as such a table.
        InputError: a column to group by does not exist.
    """
    data, memory = request.data, request.memory
    if data is None and memory is None:
        data, memory = PUBLISHED, PUBLISHED_MEMORY
    if data is not None and memory is None and _is_memory(data):
        data, memory = None, data
    given = load_given()
    tables: list[Table] = []
    scores: dict[str, Cell] = {}
    predictions = None
    titles = []
    if data is not None:
        rows = read_rows(data)
        _check_columns(request.by, rows.table)
        times = predict_times(rows.rows, given)
        tables += time_tables(rows, times, request.by)
        scores |= overall(score(rows.rows, times))
        predictions = _predictions(rows.table, {at: _told(rows.rows[at], ends) for at, ends in times.items()})
        titles.append("the published figures that come with dse" if data == PUBLISHED else str(data))
    if memory is not None:
        peaks = read_memory_rows(memory)
        found = predict_memory(peaks.rows, given)
        own = score_memory(peaks.rows, found)
        tables += memory_tables(peaks.rows, own)
        scores |= {
            f"memory_large {source}, {target}": relative(of) for (source, target), of in own.large().items()
        }
        scores |= {
            f"memory_small {source}, {target}": absolute(of) for (source, target), of in own.small().items()
        }
        scores["oom_foreseen"] = sum(answer is True for _, answer in own.oom)
        scores["oom_missed"] = sum(answer is False for _, answer in own.oom)
        titles += [] if memory == PUBLISHED_MEMORY else [str(memory)]
        if predictions is None:
            values = {
                at: (min(ends) * max(ends)) ** 0.5 / peaks.rows[at].unit
                for at, ends in found.items()
                if peaks.rows[at].kind != "oom"
            }
            predictions = _predictions(peaks.table, values)
    return Report(f"training against {' and '.join(titles)}", tuple(tables), scores, predictions)


def time_tables(rows: Rows, times: Predicted, by: Sequence[str]) -> list[Table]:
    """What is told of iteration times."""
    exact = score(rows.rows, times)
    tables = [counts_table(rows.rows, times)]
    if exact.runs:
        tables.append(_summary(exact))
        title = f"Errors by {', '.join(by)}"
        tables.append(group_table("groups", title, exact.by(rows.rows, by), exact))
        firsts = [run.first for run in exact.runs]
        tables.append(sweep_table("scale_sweeps", exact.scale, rows.rows, firsts))
        tables.append(sweep_table("plan_sweeps", exact.plan, rows.rows, firsts))
    mixture = score(rows.rows, times, "mixture")
    tables.append(group_table("mixture", "Mixtures of experts (apart)", mixture.groups))
    tables.append(bounds_table(bounds(rows.rows, times), rows.rows))
    tables.append(flagged_table(bounds(rows.rows, times, "flagged"), rows.rows))
    tables.append(repeats_table(rows.rows))
    return [table for table in tables if table.rows]


def calibrate(request: Calibration) -> Report:
    """Fits the efficiencies of GPU generations to measured runs, and scores them before and after.

    Raises:
        SpaceError: a file cannot be read as such a table.
        InputError: there are too few rows to fit.
    """
    rows = read_rows(request.data)
    usable = [row for row in rows.rows if row.kind == "exact"]
    if len(usable) < ROWS_NEEDED:
        reasons = "; ".join(f"{count} {reason}" for reason, count in rows.reasons().items())
        raise InputError(
            f"{request.data}: a calibration needs at least {ROWS_NEEDED} dense, fully configured rows, but got "
            f"{len(usable)} of {len(rows.rows)}" + (f" (skipped: {reasons})" if reasons else "")
        )
    from dse.spaces.training import calibration

    given, files = load_given(), {"gemm": request.gemm, "comm": request.comm}
    before = score(rows.rows, predict_times(rows.rows, given, ("exact",)))
    fitted: Columns = calibration.fit(rows, **files)
    after = score(rows.rows, predict_times(rows.rows, given, ("exact",), fitted))
    scores: dict[str, Cell] = {f"before_{name}": cell for name, cell in overall(before).items()}
    scores |= {f"after_{name}": cell for name, cell in overall(after).items()}
    tables = [counts_table(rows.rows)]
    held = apart = left = None
    if request.leave_out:
        held, apart, left = left_out(
            rows, given, lambda source: calibration.fit(rows, without=source, **files)
        )
        scores |= {f"left_out_{name}": cell for name, cell in overall(held).items() if "macro" in name}
        scores |= {
            f"left_out_{name}": cell for name, cell in overall(left).items() if "_s" in name or "_r" in name
        }
        scores |= {"left_out_apart_macro": apart.macro}
    tables += _compared(before, after, held, apart, left)
    if held and apart:
        tables.append(group_table("left_out", "Each source left out of the fit and predicted", held.groups))
        title = "Left out, where no other source has that GPU generation (no bar)"
        tables.append(group_table("left_out_apart", title, apart.groups))
    tables.append(_efficiencies(fitted))
    text = calibration.written(fitted, rows, **files)
    return Report(
        f"training calibrated on {request.data}",
        tuple(t for t in tables if t.rows),
        scores,
        files={request.out: text},
    )


def left_out(rows: Rows, given: Given, fit: Any) -> tuple[Scores, Scores, Scores]:
    """Each source predicted by what the others tell.

    Returns:
        the scores of groups whose GPU generation another source has, of the other groups, and of all.
    """
    sources = dict.fromkeys(row.cells["source"] for row in rows.rows if row.kind == "exact")

    def generation(row: Row) -> str:
        return str(given.hardware[row.hardware]["generation"])

    having: dict[str, set[str]] = {}
    for row in rows.rows:
        if row.kind == "exact":
            having.setdefault(generation(row), set()).add(row.cells["source"])
    shared: Predicted = {}
    alone: Predicted = {}
    for source in sources:
        fitted = fit(source)
        chosen = [
            row if row.cells["source"] == source else Row(row.line, row.cells, "skipped") for row in rows.rows
        ]
        for at, ends in predict_times(chosen, given, ("exact",), fitted).items():
            others = having[generation(rows.rows[at])] - {source}
            (shared if others else alone)[at] = ends
    return score(rows.rows, shared), score(rows.rows, alone), score(rows.rows, shared | alone)


def _is_memory(path: Path) -> bool:
    """Whether a table's metrics are all of memory."""
    known = {*MEASURED, *FORMULAS, "oom"}
    try:
        table = read_measurements(path, required=("metric",), numbers=())
    except SpaceError:  # reading it as a table of times will say everything that is wrong
        return False
    return all(record.cells["metric"] in known for record in table.records)


def _check_columns(by: Sequence[str], table: Measurements) -> None:
    for name in by:
        if name not in table.columns:
            raise InputError(f"--by: {table.file} has no column {name!r}{nearest(name, table.columns)}")


def _told(row: Row, seconds: Sequence[float]) -> float:
    return predicted_value(row, seconds)


def _predictions(
    table: Measurements, values: Mapping[int, float]
) -> tuple[Sequence[str], Sequence[Mapping[str, Any]]]:
    """The rows of a table with ``predicted`` behind them; empty where there is none."""
    columns = [*(name for name in table.columns if name != "predicted"), "predicted"]
    rows = [
        {**record.cells, "predicted": float(f"{values[at]:.8g}") if at in values else None}
        for at, record in enumerate(table.records)
    ]
    return columns, rows


def _summary(scores: Scores) -> Table:
    told = overall(scores)
    rows: list[tuple[Cell, ...]] = [
        (
            told["macro"],
            "mean absolute error, macro: mean over sources of each source's mean over (model, system)",
        ),
        (told["macro_median"], "median absolute error, macro"),
        (told["macro_bias"], "bias, macro (above 0: the predicted figure is too high)"),
        (told["macro_p90"], "90th percentile of the absolute error, macro"),
        (told["pooled_mean"], "mean absolute error over all configurations alike"),
        (told["pooled_median"], "median absolute error over all configurations alike"),
    ]
    note = (
        f"{told['rows']:,} rows, {told['configurations']:,} configurations, {told['groups']} groups, "
        f"{told['sources']} sources. Errors are relative to the measured figure in its own unit, a time or a rate."
    )
    columns = (("error", "percent"), ("figure", "text"))
    return Table("summary", "Error of the predicted figures", columns, tuple(rows), (note,))


def _compared(
    before: Scores, after: Scores, held: Scores | None, apart: Scores | None, left: Scores | None
) -> list[Table]:
    """Figures with the shipped efficiencies, with the fitted ones, and of sources that were left out of the fit."""
    tried = [("before", before), ("after", after), *([("left_out", held)] if held else [])]
    rows: list[tuple[Cell, ...]] = [(*(one.macro for _, one in tried), "macro mean error")]
    if apart and apart.runs:
        rows.append(
            (None, None, apart.macro, "macro mean error, where no other source has the GPU generation")
        )
    ranked = [before, after, *([left] if left else [])]
    rows.append((*(one.plan_regret for one in ranked), "median regret of plan sweeps"))
    rows += [(*(one.sources.get(source) for _, one in tried), source) for source in after.sources]
    ranks: list[tuple[Cell, ...]] = [
        (*(one.scale_rank for one in ranked), f"scale sweeps ({len(after.scale)})"),
        (*(one.plan_rank for one in ranked), f"plan sweeps ({len(after.plan)})"),
    ]
    names = [name for name, _ in tried]
    errors = (*((name, "percent") for name in names), ("figure", "text"))
    numbers = (*((name, "number") for name in names), ("sweeps", "text"))
    return [
        Table("calibration", "Mean errors; of a source, the mean over its groups", errors, tuple(rows)),
        Table("ranks", "Median rank correlation", numbers, tuple(ranks)),
    ]


def _efficiencies(fitted: Columns) -> Table:
    rows = [
        (float(value), generation, name)
        for generation, cells in fitted.items()
        for name, value in cells.items()
        if isinstance(value, (int, float))
    ]
    columns = (("value", "number"), ("generation", "text"), ("efficiency", "text"))
    return Table("efficiencies", "Fitted efficiencies", columns, tuple(rows))
