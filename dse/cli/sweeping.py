"""The results of a sweep as a table and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dse.cli.designs import ambitions, assignments, best, best_row, best_values
from dse.cli.failing import failing_lines
from dse.cli.text import blocks, count, paragraph, whose, width
from dse.problem import Objective
from dse.study.result import FrontPoint, Result, columns, point_row

__all__ = ["sweep_data", "sweep_lines", "sweep_rows"]

Swept = Sequence[tuple[tuple[tuple[str, str], ...], Result]]
"""For each combination: the swept settings, and the result."""


def _single(result: Result) -> FrontPoint | None:
    """The best design of a search with one objective."""
    return result.front[0] if len(result.problem.objectives) == 1 and result.front else None


def _short(name: str) -> str:
    """The end of a long path, for the head of a column: ``int8-PTQ.loss``."""
    return ".".join(name.split(".")[-2:])


def sweep_lines(results: Swept) -> list[str]:
    """One row for each value, then the best designs by each objective."""
    problem = results[0][1].problem
    names = [name for name, _ in results[0][0]]
    lines = paragraph(f"{problem.name}: {problem.title}" if problem.title else problem.name)
    for name, value in problem.overrides:
        if name not in names:
            lines += paragraph(f"with {name} = {value}", indent=2)
    team = results[0][1].team
    lines += paragraph(f"{ambitions(problem)}{'' if team == problem.everything.name else f'; {whose(team)}'}")
    several = len(problem.objectives) > 1
    failed = any(result.funnel.failed for _, result in results)
    header = [
        *map(_short, names),
        "legal",
        *(["failed"] if failed else []),
        "feasible",
        *(f"best {o.name}" for o in problem.objectives),
        *(["front"] if several else []),
    ]
    rows = [header]
    for settings, result in results:
        texts = [result.metric_text(name, value) for name, value in best(result).items()]
        least = "" if result.funnel.exact else ">= "
        funnel = result.funnel
        counts = [
            f"{least}{count(funnel.legal)}",
            *([f"{least if funnel.failed else ''}{count(funnel.failed)}"] if failed else []),
            f"{least}{count(funnel.feasible)}",
        ]
        rows.append(
            [
                *(text for _, text in settings),
                *counts,
                *texts,
                *([count(len(result.front))] if several else []),
            ]
        )
    lines += ["", *blocks(rows, fixed=len(names))]
    told = [(", ".join(text for _, text in settings), result) for settings, result in results]
    reasons = [
        line for label, result in told if result.funnel.failed for line in failing_lines(result, label)
    ]
    lines += ["", *reasons] if reasons else []
    for objective in problem.objectives:
        title = f"designs with the best {objective.name}" if several else "best designs"
        lines += _design_lines(results, objective, title)
    return lines


def _design_lines(results: Swept, objective: Objective, title: str) -> list[str]:
    """The best design of each value by one objective; what all of them share is said once."""

    def loss(point: FrontPoint) -> float:
        return point.objectives[objective.name] * objective.sign

    points = [(settings, min(result.front, key=loss)) for settings, result in results if result.front]
    if not points:
        return []
    problem = results[0][1].problem
    names = [d.name for d in problem.dimensions]
    first = points[0][1].design
    shared = [name for name in names if all(point.design[name] == first[name] for _, point in points)]
    lines = ["", title]
    if shared and len(points) > 1:
        lines += paragraph(
            f"all: {assignments(problem, {name: first[name] for name in shared})}", indent=2, hanging=5
        )
    else:
        shared = []
    if len(shared) == len(names):
        return lines
    labels = [", ".join(text for _, text in settings) for settings, _ in points]
    size = min(max(map(len, labels)), width() // 3)
    for label, (_, point) in zip(labels, points, strict=True):
        own = {name: point.design[name] for name in names if name not in shared}
        lines += paragraph(
            f"{label:{size}}  {assignments(problem, own)}".rstrip(), indent=2, hanging=size + 2
        )
    return lines


def sweep_rows(results: Swept) -> list[dict[str, Any]]:
    """One flat row for each value; best values in the objective's unit, and of one objective the best design.

    All rows have the same columns.
    """
    return [_row(settings, result) for settings, result in results]


def _row(settings: tuple[tuple[str, str], ...], result: Result) -> dict[str, Any]:
    problem = result.problem
    row: dict[str, Any] = dict(settings)
    row |= {
        "legal": result.funnel.legal,
        "failed": result.funnel.failed,
        "feasible": result.funnel.feasible,
        **best_row(result),
    }
    row["front"] = len(result.front)
    if len(problem.objectives) == 1:
        point = _single(result)
        design = {} if point is None else point_row(problem, point)
        row |= {name: design.get(name) for name in columns(problem)[: 1 + len(problem.names)]}
    return row


def sweep_data(results: Swept) -> list[dict[str, Any]]:
    """One JSON object for each value, with its full result; best values in base units."""
    return [
        {"settings": dict(settings), "best": best_values(result), "result": result.to_dict()}
        for settings, result in results
    ]
