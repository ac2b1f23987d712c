"""A comparison in words: teams side by side, then why each failing team fails and what would help it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dse.cli.designs import ambitions, metric_text, point_lines
from dse.cli.misses import failure_lines
from dse.cli.summary import heading, nothing, trait_lines
from dse.cli.text import GAP, aligned, count, paragraph, plural, width, widths
from dse.problem import Objective, Problem
from dse.study.compare import Comparison, TeamReport
from dse.study.result import Result, number
from dse.units import from_base

__all__ = ["comparison_columns", "comparison_data", "comparison_lines", "comparison_rows"]

_LONG_UNIT = 7
"""Characters beyond which a unit stands in the label and not beside every value."""


def comparison_lines(comparison: Comparison) -> list[str]:
    """The whole comparison for people."""
    problem = comparison.problem
    size = "continuous" if problem.continuous else f"{count(problem.size)} designs"
    lines = [*heading(problem), *paragraph(f"{size}; {ambitions(problem)}"), ""]
    lines += _side_by_side(comparison.rows)
    for row in comparison.rows:
        lines += ["", *_team_lines(row)]
    if comparison.whole is not None:
        lines += _whole_lines(comparison, comparison.whole)
    if comparison.note:
        lines += ["", *paragraph(f"note: {comparison.note}")]
    return lines


def best(result: Result, objective: Objective) -> float | None:
    """The best value of one objective on the front, in base units."""
    values = [point.objectives[objective.name] for point in result.front]
    return min(values, key=lambda value: value * objective.sign) if values else None


def _side_by_side(rows: Sequence[TeamReport]) -> list[str]:
    """One column for each team, in blocks that fit the width."""
    if not rows:
        return []
    labels = ["", *(label for label, _ in _facts(rows[0].result))]
    columns = [[row.team, *(text for _, text in _facts(row.result))] for row in rows]
    room = width() - max(map(len, labels)) - GAP
    lines: list[str] = []
    while columns:
        fitting, used = 0, 0
        for column in columns:
            used += max(map(len, column)) + GAP
            if fitting and used > room:
                break
            fitting += 1
        block, columns = columns[:fitting], columns[fitting:]
        if lines:
            lines.append("")
        table = [list(row) for row in zip(labels, *block, strict=True)]
        lines += aligned(table, right=set(range(1, len(widths(table)))))
    return lines


def _facts(result: Result) -> list[tuple[str, str]]:
    """What is compared: counts, then the best value of each objective."""
    problem, funnel = result.problem, result.funnel
    least = "" if funnel.exact else ">= "
    facts = [
        ("designs", count(result.accounting.total - result.accounting.outside)),
        ("legal", f"{least}{count(funnel.legal)}"),
    ]
    texts = {constraint.name: constraint.text for constraint in problem.constraints}
    facts += [
        (f"lost to {texts.get(line.name, line.name)}", f"{'' if line.exact else '>= '}{count(line.in_order)}")
        for line in funnel.lines
    ]
    facts.append(("feasible", f"{least}{count(funnel.feasible)}"))
    for objective in problem.objectives:
        value = best(result, objective)
        label, text = (
            f"best {objective.name}",
            "-" if value is None else metric_text(problem, objective.name, value),
        )
        if len(objective.unit.text) > _LONG_UNIT:
            label, text = f"{label} [{objective.unit.text}]", text.removesuffix(f" {objective.unit.text}")
        facts.append((label, text))
    if len(problem.objectives) > 1:
        facts.append(("on the front", count(len(result.front)) if result.front else "-"))
    return facts


def _team_lines(row: TeamReport) -> list[str]:
    result = row.result
    if not result.feasible:
        lines = paragraph(f"{row.team}: {nothing(result)}")
        return [*lines, *failure_lines(result, row.unlocks, row.departures)]
    what = "Pareto front" if len(result.problem.objectives) > 1 else "best design"
    sampled = ", by sampling" if result.promise == "sampling" else ""
    lines = paragraph(f"{row.team}: {what}, of {plural(result.funnel.feasible, 'feasible design')}{sampled}")
    return [*lines, *point_lines(result.problem, result.front)]


def _whole_lines(comparison: Comparison, whole: Result) -> list[str]:
    """What feasible designs of the whole space share."""
    if not whole.feasible:
        return ["", *paragraph("the whole space has no feasible design"), *failure_lines(whole)]
    shared = trait_lines(whole, indent=0)
    return ["", *shared] if shared else []


def comparison_columns(problem: Problem) -> list[str]:
    """The columns of :func:`comparison_rows`."""
    bests = [
        f"best {o.name}" + ("" if o.unit.text == "1" else f" [{o.unit.text}]") for o in problem.objectives
    ]
    return [
        "team",
        "designs",
        "legal",
        "failed",
        *(f"lost to {name}" for name in _losses(problem)),
        "feasible",
        *bests,
        "front",
        "solver",
        "status",
    ]


def _losses(problem: Problem) -> list[str]:
    return [constraint.name for constraint in problem.constraints]


def comparison_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """One flat row for each team; best values in the objective's unit."""
    problem = comparison.problem
    rows = []
    for report in comparison.rows:
        result = report.result
        bests = [best(result, objective) for objective in problem.objectives]
        lost = {line.name: line.in_order for line in result.funnel.lines}
        values = [
            report.team,
            result.accounting.total - result.accounting.outside,
            result.funnel.legal,
            result.funnel.failed,
            *(lost.get(name, 0) for name in _losses(problem)),
            result.funnel.feasible,
            *(
                None if v is None else from_base(v, o.unit)
                for v, o in zip(bests, problem.objectives, strict=True)
            ),
            len(result.front),
            result.solver,
            result.status,
        ]
        rows.append(dict(zip(comparison_columns(problem), values, strict=True)))
    return rows


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON values, with every team's full result."""
    problem = comparison.problem
    return {
        "problem": {"name": problem.name, "digest": problem.digest},
        "teams": [
            {
                "team": row.team,
                "best": {
                    o.name: None if (v := best(row.result, o)) is None else number(v)
                    for o in problem.objectives
                },
                "unlocks": [{"dimensions": list(u.dimensions), "feasible": u.feasible} for u in row.unlocks],
                "departures": list(row.departures),
                "result": row.result.to_dict(),
            }
            for row in comparison.rows
        ],
        "whole": None if comparison.whole is None else comparison.whole.to_dict(),
        "note": comparison.note,
    }
