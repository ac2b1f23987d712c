"""The files that a study leaves behind: ``front.csv``, ``trials.csv`` or ``designs.csv``, and ``result.json``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dse.problem import Design, Problem
from dse.study.files import csv_text, write_atomic
from dse.study.result import Kept, Result, columns
from dse.study.trial import Trial
from dse.units import from_base

__all__ = ["design_columns", "design_rows", "trial_columns", "trial_rows", "write_outputs"]


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
        write_atomic(
            folder / "designs.csv", csv_text(design_columns(problem), design_rows(problem, result.kept))
        )
    write_atomic(folder / "result.json", result.to_json())


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
            row |= _violation_values(problem, trial.violations)
        yield row


def design_columns(problem: Problem) -> list[str]:
    """The columns of :func:`design_rows`."""
    return ["state", "index", *problem.names, *_objectives(problem), *_violations(problem)]


def design_rows(problem: Problem, kept: Kept) -> Iterable[dict[str, Any]]:
    """Kept designs as flat rows: objectives and violations in their declared units."""
    states = {(True, False): "COMPLETE", (False, False): "INFEASIBLE"}
    for at in range(len(kept.digits)):
        digits = kept.digits[at].tolist()
        state = states.get((bool(kept.feasible[at]), bool(kept.failed[at])), "FAILED")
        row: dict[str, Any] = {"state": state, "index": problem.index_of(digits)}
        row |= _design(problem, problem.design_at(digits))
        if state != "FAILED":
            values = zip(_objectives(problem), problem.objectives, kept.objectives[at].tolist(), strict=True)
            row |= {column: from_base(value, o.unit) for column, o, value in values}
            row |= _violation_values(problem, kept.violations[at].tolist())
        yield row


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


def _violation_values(problem: Problem, violations: Sequence[float]) -> dict[str, float]:
    found = zip(_violations(problem), problem.constraints, violations, strict=True)
    return {column: from_base(value, constraint.unit) for column, constraint, value in found}
