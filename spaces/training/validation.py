"""Training's predictions against measurements: what ``dse validate training`` and ``dse calibrate training`` do.

Without a table of its own, validation scores ``published.csv`` and ``published_memory.csv``: figures of papers, READMEs and
documentation, each with its source, in the columns of any such table. Their notes are shortened to what is read here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dse.errors import InputError, SpaceError
from dse.spaces.measured.few import few_runs
from dse.spaces.measured.scores import held_out
from dse.spaces.measured.tables import (
    check_columns,
    efficiencies,
    group_table,
    unused,
    used_and_not,
    with_predictions,
    worst_first,
)
from dse.study.agreement import Calibration, Cell, Report, Table, Validation
from dse.study.measurements import read_measurements

from .expected import EXPECTED
from .measured.fitted import fitted as fit_record
from .measured.fitted import fitted_text
from .measured.given import Given, load_given
from .measured.memory_rows import FORMULAS, MEASURED, MemoryRows, read_memory_rows
from .measured.memory_scores import MemoryScores, absolute, memory_tables, relative, score_memory
from .measured.predictions import predict_memory, predict_times
from .measured.row import Row
from .measured.scores import Scores, bounds, predicted_value, score
from .measured.summary import compared, overall, summary
from .measured.tables import (
    bounds_table,
    counts_table,
    flagged_table,
    mixtures_table,
    repeats_table,
    sweep_table,
)
from .measured.told import scored_note
from .rows import Rows, read_rows

__all__ = ["PUBLISHED", "PUBLISHED_MEMORY", "calibrate", "validate"]

PUBLISHED = Path(__file__).with_name("published.csv")
PUBLISHED_MEMORY = Path(__file__).with_name("published_memory.csv")

ROWS_NEEDED = 2
"""Usable rows that a calibration needs."""

Columns = Mapping[str, Mapping[str, Any]]
Predicted = dict[int, list[float]]
Written = tuple[Sequence[str], Sequence[Mapping[str, Any]]]


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
    exact = own = predictions = None
    unscored = ""
    measured: tuple[Row, ...] = ()
    tables: list[Table] = []
    scores: dict[str, Cell] = {}
    titles = []
    if data is not None:
        rows = read_rows(data)
        check_columns(request.by, rows.table, rows.rows)
        times = predict_times(rows.rows, given)
        rows = _without_unpredicted(rows, times)
        measured, exact = rows.rows, score(rows.rows, times)
        tables += time_tables(rows, times, exact, request.by)
        scores |= overall(exact)
        told = {at: predicted_value(rows.rows[at], ends) for at, ends in times.items()}
        predictions = with_predictions(rows.table, told)
        titles.append("the published figures that come with dse" if data == PUBLISHED else data.name)
    if memory is not None:
        peaks = read_memory_rows(memory)
        found = predict_memory(peaks.rows, given)
        own = score_memory(peaks.rows, found)
        tables += memory_tables(peaks.rows, own)
        unscored = f"Memory: {scored_note(peaks.rows, ('exact', 'mixture', 'oom'))}"
        scores |= _memory_scores(own)
        titles += [] if memory == PUBLISHED_MEMORY else [memory.name]
        predictions = predictions or _memory_predictions(peaks, found)
    first = summary(exact, own, fit_record(), measured)
    first = replace(first, notes=(*first.notes, unscored)) if unscored else first
    report = [first, *tables] if first.rows or first.notes else tables
    return Report(f"training against {' and '.join(titles)}", tuple(report), scores, predictions)


def time_tables(rows: Rows, times: Predicted, exact: Scores, by: Sequence[str]) -> list[Table]:
    """What is told of iteration times, after the summary."""
    tables = []
    if exact.runs:
        record = fit_record() if tuple(by) == ("source",) else None
        held = {**record.apart, **record.left_out} if record else {}
        tables.append(
            group_table(
                "groups",
                f"Errors by {', '.join(by)}",
                exact.by(rows.rows, by),
                counts=used_and_not(rows.rows, by),
                sources=exact.sources if tuple(by) == ("source",) else None,
                left_out={name: held[name] for name in exact.sources if name in held},
            )
        )
        firsts = [run.first for run in exact.runs]
        tables.append(sweep_table("scale_sweeps", exact.scale, rows.rows, firsts))
        tables.append(sweep_table("plan_sweeps", exact.plan, rows.rows, firsts))
    mixtures = bounds(rows.rows, times, "mixture")
    opened = bounds(rows.rows, times)
    tables.append(bounds_table(opened, rows.rows))
    tables.append(mixtures_table([*mixtures, *opened], rows.rows))
    tables.append(flagged_table(bounds(rows.rows, times, "flagged"), rows.rows))
    tables.append(repeats_table(rows.rows))
    tables += [unused(rows.rows, by), counts_table(rows.rows)]
    return [table for table in tables if table.rows]


def calibrate(request: Calibration) -> Report:
    """Fits the efficiencies of GPU generations to measured runs, and scores them before and after.

    Raises:
        SpaceError: a file cannot be read as such a table.
        InputError: there are too few rows to fit.
    """
    given, files = load_given(), {"gemm": request.gemm, "comm": request.comm}
    rows = read_rows(request.data)
    rows = _without_unpredicted(rows, predict_times(rows.rows, given))
    usable = [row for row in rows.rows if row.kind == "exact"]
    if len(usable) < ROWS_NEEDED:
        raise InputError(
            f"{request.data}: a calibration needs at least {ROWS_NEEDED} dense, fully configured rows, but got "
            f"{len(usable)} of {len(rows.rows)}. {scored_note(rows.rows)}"
        )
    from dse.spaces.training import calibration

    before = score(rows.rows, predict_times(rows.rows, given, ("exact",)))
    fitted: Columns = calibration.fit(rows, **files)
    after = score(rows.rows, predict_times(rows.rows, given, ("exact",), fitted))
    scores: dict[str, Cell] = {f"before_{name}": cell for name, cell in overall(before).items()}
    scores |= {f"after_{name}": cell for name, cell in overall(after).items()}
    held = None
    if request.leave_out:
        held = left_out(rows, given, lambda source: calibration.fit(rows, without=source, **files))
        scores |= {f"left_out_{name}": cell for name, cell in overall(held[0]).items() if "macro" in name}
        scores |= {
            f"left_out_{name}": cell
            for name, cell in overall(held[2]).items()
            if "_s" in name or "_r" in name
        }
        scores |= {"left_out_apart_macro": held[1].macro_all}
    tables = [*compared(before, after, held, rows.rows)]
    if held:
        title = "Each source left out of the fit and predicted"
        tables.append(group_table("left_out", title, worst_first(held[0].groups), shown=10))
        title = "Left out, where no other source has that GPU generation (no bar)"
        tables.append(group_table("left_out_apart", title, worst_first(held[1].groups), shown=10))
    tables += [efficiencies(fitted), counts_table(rows.rows)]
    generations = [_generation(row, given) for row in usable]
    made = fitted_text({"data": request.data, **files}, request.out, generations, after, held)
    return Report(
        f"training calibrated on {request.data.name}",
        tuple(t for t in tables if t.rows),
        scores,
        files={
            request.out: calibration.written(fitted),
            request.out.with_suffix(".json"): made,
        },
        warnings=few_runs("generation", generations, len(EXPECTED)),
    )


def left_out(rows: Rows, given: Given, fit: Any) -> tuple[Scores, Scores, Scores]:
    """Each source predicted by what the others tell.

    Returns:
        the scores of groups whose GPU generation another source has, of the other groups, and of all.
    """
    shared, alone = held_out(
        rows.rows,
        lambda row: _generation(row, given),
        lambda source: predict_times(rows.rows, given, ("exact",), fit(source)),
    )
    return score(rows.rows, shared), score(rows.rows, alone), score(rows.rows, shared | alone)


def _generation(row: Row, given: Given) -> str:
    return str(given.hardware[row.hardware]["generation"])


def _memory_scores(own: MemoryScores) -> dict[str, Cell]:
    large = {f"memory_large {source}, {target}": relative(of) for (source, target), of in own.large().items()}
    small = {f"memory_small {source}, {target}": absolute(of) for (source, target), of in own.small().items()}
    return {
        **large,
        **small,
        "oom_foreseen": sum(answer is True for _, answer in own.oom),
        "oom_missed": sum(answer is False for _, answer in own.oom),
    }


def _memory_predictions(peaks: MemoryRows, found: Predicted) -> Written:
    values = {
        at: (min(ends) * max(ends)) ** 0.5 / peaks.rows[at].unit
        for at, ends in found.items()
        if peaks.rows[at].kind != "oom"
    }
    written: Written = with_predictions(peaks.table, values)
    return written


def _is_memory(path: Path) -> bool:
    """Whether a table's metrics are all of memory."""
    known = {*MEASURED, *FORMULAS, "oom"}
    try:
        table = read_measurements(path, required=("metric",), numbers=())
    except SpaceError:  # reading it as a table of times will say everything that is wrong
        return False
    return all(record.cells["metric"] in known for record in table.records)


def _without_unpredicted(rows: Rows, times: Predicted) -> Rows:
    """Rows that the model gives no finite time are skipped rows."""

    def kept(at: int, row: Row) -> Row:
        if row.kind == "skipped" or not row.plans or at in times:
            return row
        kind = "flagged" if row.kind == "flagged" else "skipped"
        return replace(row, kind=kind, reason=f"no time predicted: figures of {row.hardware} are missing")

    return Rows(rows.table, tuple(kept(at, row) for at, row in enumerate(rows.rows)))
