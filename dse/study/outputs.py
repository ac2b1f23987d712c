"""The files that a study leaves behind: ``front.csv``, ``trials.csv`` or ``designs.csv``, and ``result.json``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dse.evaluation.gates import rows_told, told_violations
from dse.problem import Design, Problem
from dse.study.files import csv_columns, csv_text, write_atomic
from dse.study.points import indices
from dse.study.result import Kept, Result, columns
from dse.study.trial import Trial
from dse.units import Unit, from_base

__all__ = ["design_table", "design_text", "trial_columns", "trial_rows", "write_outputs"]


def write_outputs(folder: Path, result: Result, trials: Sequence[Trial] | None) -> None:
    """Write the outputs of a run, each whole or not at all.

    Args:
        trials: the finished trials of a sampling search; None for an exact one, whose kept designs are written.

    Raises:
        StudyError: a file cannot be written.
    """
    problem = result.problem
    write_atomic(folder / "front.csv", csv_text(columns(problem), result.rows()))
    if trials is not None:
        write_atomic(folder / "trials.csv", csv_text(trial_columns(problem), trial_rows(problem, trials)))
    elif result.kept is not None:
        write_atomic(folder / "designs.csv", design_text(problem, result.kept))
    write_atomic(folder / "result.json", result.to_json())


def design_text(problem: Problem, kept: Kept) -> str:
    """``designs.csv``."""
    return csv_columns(design_table(problem, kept))


def trial_columns(problem: Problem) -> list[str]:
    """The columns of :func:`trial_rows`."""
    return ["number", "batch", "state", *columns(problem)[:-1], *_violations(problem), "reason"]


def trial_rows(problem: Problem, trials: Iterable[Trial]) -> Iterable[dict[str, Any]]:
    """Trials as flat rows; numbers in the declared units, violations in their constraint's."""
    metric_columns = columns(problem)[1 + len(problem.names) : -1]
    for trial in trials:
        row: dict[str, Any] = {"number": trial.number, "batch": trial.batch, "state": trial.state.value}
        row |= {"index": trial.index, **_design(problem, trial.design), "reason": trial.reason}
        for (name, metric), column in zip(problem.metrics.items(), metric_columns, strict=True):
            value = trial.metrics.get(name)
            row[column] = from_base(value, metric.unit) if type(value) is float else value
        if trial.violations:
            row |= _violation_values(problem, told_violations(problem, trial.violations))
        yield row


def design_table(problem: Problem, kept: Kept) -> dict[str, list[Any]]:
    """Kept designs, column by column: objectives and violations in their declared units, None where a design failed.

    Of designs that break a constraint that comes first, the violations of those that do, and nothing else.
    """
    states = np.where(kept.failed, "FAILED", np.where(kept.feasible, "COMPLETE", "INFEASIBLE"))
    table: dict[str, list[Any]] = {"state": states.tolist(), "index": indices(problem, kept.digits)}
    for at, dimension in enumerate(problem.dimensions):
        shown_as, values = _in_unit(dimension.unit), dimension.values
        table[dimension.name] = [shown_as(values[digit]) for digit in kept.digits[:, at].tolist()]
    told = rows_told(problem, kept.violations)
    hidden = kept.failed if told is None else kept.failed | ~told
    units: list[Unit | None] = [o.unit for o in problem.objectives]
    without = [hidden] * len(units) + [kept.failed if c.first else hidden for c in problem.constraints]
    numbers = [*zip(_objectives(problem), units, kept.objectives.T, strict=True)]
    numbers += zip(
        _violations(problem), [c.unit for c in problem.constraints], kept.violations.T, strict=True
    )
    for (column, unit, found), absent in zip(numbers, without, strict=True):
        shown_as = _in_unit(unit)
        pairs = zip(found.tolist(), absent.tolist(), strict=True)
        table[column] = [None if bad else shown_as(value) for value, bad in pairs]
    return table


def _in_unit(unit: Unit | None) -> Callable[[Any], Any]:
    """Turns base units into ``unit``; what is no number stays as it is. Equal numbers are converted once."""
    if unit is None or unit.scale == 1:
        return lambda value: value
    known: dict[float, float] = {}

    def convert(value: Any) -> Any:
        if type(value) is not float:
            return value
        if value not in known:
            known[value] = from_base(value, unit)
        return known[value]

    return convert


def _design(problem: Problem, design: Design) -> dict[str, Any]:
    shown = {}
    for dimension in problem.dimensions:
        value = design[dimension.name]
        shown[dimension.name] = from_base(value, dimension.unit) if type(value) is float else value
    return shown


def _objectives(problem: Problem) -> list[str]:
    return [o.name if o.unit.text == "1" else f"{o.name} [{o.unit.text}]" for o in problem.objectives]


def _violations(problem: Problem) -> list[str]:
    """One column per constraint; those of one name are numbered."""
    names: list[str] = []
    for at, constraint in enumerate(problem.constraints):
        same = sum(c.name == constraint.name for c in problem.constraints[:at])
        unit = f" [{constraint.unit.text}]" if constraint.unit and constraint.unit.text != "1" else ""
        names.append(f"{constraint.name} violation{f' {same + 1}' if same else ''}{unit}")
    return names


def _violation_values(problem: Problem, violations: Sequence[float | None]) -> dict[str, float | None]:
    found = zip(_violations(problem), problem.constraints, violations, strict=True)
    return {
        column: None if value is None else from_base(value, constraint.unit)
        for column, constraint, value in found
    }
