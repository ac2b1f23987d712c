"""Serving's predictions against measurements: what ``dse validate serving`` and ``dse calibrate serving`` do.

Without a table of its own, validation scores ``published.csv``: figures of papers, READMEs and documentation, each with its
source, in the columns of any such table. Their notes are shortened to what is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dse.errors import InputError
from dse.spaces.measured.few import few_runs
from dse.spaces.measured.scores import held_out
from dse.spaces.measured.tables import (
    check_columns,
    efficiencies,
    group_table,
    unused,
    used_and_not,
    with_predictions,
)
from dse.study.agreement import Calibration, Cell, Report, Table, Validation

from .expected import ENGINE, GENERATION, own_numbers
from .measured.engine import DEFAULT
from .measured.fitted import fitted as fit_record
from .measured.fitted import fitted_text
from .measured.given import Fit, Given, load_given
from .measured.predictions import Best, predict_ceilings, predict_further, predict_memory, predict_times
from .measured.row import Row
from .measured.scores import (
    Scores,
    bounds,
    ceilings,
    further_errors,
    memory_errors,
    predicted_value,
    score,
)
from .measured.summary import compared, overall, summary
from .measured.tables import (
    bounds_table,
    ceilings_table,
    counts_table,
    errors_table,
    flagged_table,
    repeats_table,
    scored_note,
    sweep_table,
)
from .rows import Rows, read_rows

__all__ = ["PUBLISHED", "calibrate", "left_out", "validate"]

PUBLISHED = Path(__file__).with_name("published.csv")

ROWS_NEEDED = 2
"""Usable rows that a calibration needs."""

Predicted = Mapping[int, Sequence[float]]


def validate(request: Validation) -> Report:
    """Scores predictions against a table of measurements.

    Raises:
        SpaceError: the file cannot be read as such a table.
        InputError: a column to group by does not exist, or a table of memory is given.
    """
    if request.memory is not None:
        raise InputError(
            "--memory: serving has no table of memory; mem_gb is read from metric2 and metric3 of --data"
        )
    data = request.data or PUBLISHED
    given = load_given()
    rows = read_rows(data)
    check_columns(request.by, rows.table, rows.rows)
    times, best = predict_times(rows.rows, given), predict_ceilings(rows.rows, given)
    rows = _without_unpredicted(rows, times, best)
    scores, reached = score(rows.rows, times), ceilings(rows.rows, best)
    record = fit_record()
    tables = [
        summary(scores, reached, record, rows.rows),
        *_tables(rows, given, (times, best, scores), request.by),
    ]
    told = {at: predicted_value(rows.rows[at], ends) for at, ends in times.items()}
    told |= {
        at: rows.rows[at].runs[0].target.in_unit(1.0 / one.tokens) for at, one in best.items() if one.tokens
    }
    title = "the published figures that come with dse" if data == PUBLISHED else data.name
    return Report(
        f"serving against {title}",
        tuple(table for table in tables if table.rows or table.notes),
        overall(scores, reached),
        with_predictions(rows.table, told),
    )


def _tables(
    rows: Rows, given: Given, found: tuple[Predicted, Mapping[int, Best], Scores], by: Sequence[str]
) -> list[Table]:
    """What is told after the summary."""
    times, best, scores = found
    record = fit_record() if tuple(by) == ("source",) else None
    held = {**record.apart, **record.left_out} if record else {}
    tables = []
    if scores.runs:
        tables += [
            group_table(
                "groups",
                f"Errors by {', '.join(by)}",
                scores.by(rows.rows, by),
                counts=used_and_not(rows.rows, by),
                sources=scores.sources if tuple(by) == ("source",) else None,
                left_out={name: held[name] for name in scores.sources if name in held},
            ),
            errors_table("worst", "The worst groups of (source, model, GPU and engine)", scores.groups, 5),
            errors_table("decode", "Single tokens without the prefill, by group", scores.decode, 5),
            sweep_table(scores, rows.rows),
        ]
    memory = {name: float(cells["memory"] or "nan") for name, cells in given.hardware.items()}
    tables += [
        ceilings_table(ceilings(rows.rows, best), rows.rows),
        errors_table(
            "further",
            "Further figures of scored rows (metric2, metric3), by source and metric",
            further_errors(rows.rows, predict_further(rows.rows, given)),
        ),
        errors_table(
            "memory",
            "Memory of the fullest GPU (mem_gb), by source and engine",
            memory_errors(rows.rows, predict_memory(rows.rows, given), memory),
        ),
        bounds_table(bounds(rows.rows, times), rows.rows),
        flagged_table(bounds(rows.rows, times, "flagged"), rows.rows),
        repeats_table(rows.rows),
        unused(rows.rows, by, "told apart"),
        counts_table(rows.rows),
    ]
    return [table for table in tables if table.rows]


def calibrate(request: Calibration) -> Report:
    """Fits the numbers of GPU generations and engines to measured runs, and scores them before and after.

    Raises:
        SpaceError: a file cannot be read as such a table.
        InputError: there are too few rows to fit.
    """
    given, files = load_given(), {"gemm": request.gemm, "comm": request.comm}
    rows = read_rows(request.data)
    rows = _without_unpredicted(rows, predict_times(rows.rows, given), predict_ceilings(rows.rows, given))
    usable = [row for row in rows.rows if row.kind == "exact"]
    if len(usable) < ROWS_NEEDED:
        raise InputError(
            f"{request.data}: a calibration needs at least {ROWS_NEEDED} rows of static batches, but got {len(usable)} of "
            f"{len(rows.rows)}. {scored_note(rows.rows)}"
        )
    from dse.spaces.serving import calibration

    before = score(rows.rows, predict_times(rows.rows, given, ("exact",)))
    fitted = Fit(*calibration.fit(rows, **files))
    after = score(rows.rows, predict_times(rows.rows, given, ("exact",), fitted))
    reached = ceilings(rows.rows, predict_ceilings(rows.rows, given, fitted))
    scores: dict[str, Cell] = {f"before_{name}": cell for name, cell in overall(before).items()}
    scores |= {f"after_{name}": cell for name, cell in overall(after, reached).items()}
    held = None
    if request.leave_out:
        held = left_out(rows, given, lambda source: Fit(*calibration.fit(rows, without=source, **files)))
        scores |= {f"left_out_{name}": cell for name, cell in overall(held[0]).items()}
        scores |= {"left_out_apart_macro": held[1].macro}
    tables = [*compared(before, after, held, rows.rows)]
    if held:
        tables.append(
            errors_table("left_out", "Each source left out of the fit and predicted", held[0].groups, 10)
        )
        title = "Left out, where no other source has that GPU generation (no bar)"
        tables.append(errors_table("left_out_apart", title, held[1].groups, 10))
    tables += [
        ceilings_table(reached, rows.rows),
        efficiencies(fitted.efficiency),
        efficiencies(_of_engines(fitted), "engines", "Fitted numbers of engines, times in seconds"),
        counts_table(rows.rows),
    ]
    counts = {
        "by_generation": [given.generation(row.hardware) for row in usable],
        "by_engine": [row.engine for row in usable],
    }
    made = fitted_text({"data": request.data, **files}, request.out, counts, (after, reached), held)
    return Report(
        f"serving calibrated on {request.data.name}",
        tuple(table for table in tables if table.rows),
        scores,
        files={
            request.out: calibration.written(fitted.efficiency),
            _beside(request.out): calibration.written_engines(fitted.engines),
            request.out.with_suffix(".json"): made,
        },
        warnings=(
            *few_runs("generation", counts["by_generation"], len(GENERATION)),
            *few_runs("engine", counts["by_engine"], _numbers_of_engines(given)),
        ),
    )


def _numbers_of_engines(given: Given) -> dict[str, int]:
    """How many numbers each engine has of its own."""
    return {
        name: len(own_numbers(bool(facts["captures"]), bool(facts["repeats"])))
        for name, facts in given.fit.engines.items()
        if name != DEFAULT
    }


def _of_engines(fitted: Fit) -> dict[str, dict[str, object]]:
    """The columns of engines that are fitted, without what is known of them."""
    return {
        name: {label: row[label] for label in row if label in ENGINE} for name, row in fitted.engines.items()
    }


def _beside(out: Path) -> Path:
    """The file of engines beside a file of efficiencies: ``engines.csv`` beside ``efficiency.csv``."""
    stem = out.stem.replace("efficiency", "engines")
    return out.with_stem(stem if stem != out.stem else f"{out.stem}-engines")


def left_out(rows: Rows, given: Given, fit: Callable[[str], Fit]) -> tuple[Scores, Scores]:
    """Each source predicted by what the others tell; its engine, where no other has it, by what all engines share.

    Returns:
        the scores of rows whose GPU generation another source has, and of the other rows.
    """
    shared, alone = held_out(
        rows.rows,
        lambda row: given.generation(row.hardware),
        lambda source: predict_times(rows.rows, given, ("exact",), fit(source)),
    )
    return score(rows.rows, shared), score(rows.rows, alone)


def _without_unpredicted(rows: Rows, times: Predicted, best: Mapping[int, Best]) -> Rows:
    """Rows that the model gives no finite time are skipped rows."""

    def kept(at: int, row: Row) -> Row:
        if row.kind == "skipped" or at in times or at in best:
            return row
        return replace(
            row, kind="skipped", reason=f"no time predicted: figures of {row.hardware} are missing"
        )

    return Rows(rows.table, tuple(kept(at, row) for at, row in enumerate(rows.rows)))
