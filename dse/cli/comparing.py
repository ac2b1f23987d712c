"""A comparison in words: teams side by side, then why each failing team fails and what would help it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dse.cli.designs import ambitions, best, best_row, best_values, point_lines
from dse.cli.failing import failing_lines
from dse.cli.misses import MOST_UNLOCKS, failure_lines, miss_text
from dse.cli.summary import heading, help_data, nothing, trait_lines
from dse.cli.text import blocks, count, paragraph, plural
from dse.study.compare import Comparison, TeamReport
from dse.study.result import Result, columns, point_row

__all__ = ["comparison_data", "comparison_lines", "comparison_rows", "front_columns", "front_rows"]

_LABEL = 24
"""Characters of a constraint in the label of a row, so that three teams stand side by side."""

_LONG_UNIT = 7
"""Characters beyond which a unit stands in the label and not beside every value."""


def comparison_lines(comparison: Comparison) -> list[str]:
    """The whole comparison for people."""
    problem = comparison.problem
    size = "continuous" if problem.continuous else plural(problem.size, "design")
    lines = [*heading(problem), *paragraph(f"{size}; {ambitions(problem)}"), ""]
    lines += blocks(_facts(comparison.rows), fixed=1, left=1)
    failed = [row for row in comparison.rows if 0 < row.result.funnel.failed < row.result.funnel.legal]
    reasons = [line for row in failed for line in failing_lines(row.result, row.team)]
    lines += ["", *reasons] if reasons else []
    for row in comparison.rows:
        lines += ["", *_team_lines(row)]
    if comparison.whole is not None:
        lines += _whole_lines(comparison, comparison.whole)
    if comparison.note:
        lines += ["", *paragraph(f"note: {comparison.note}")]
    return lines


def _facts(rows: Sequence[TeamReport]) -> list[list[str]]:
    """What is compared, a label and a text for each team: counts, then the best value of each objective."""
    results = [row.result for row in rows]
    problem = results[0].problem
    texts = {c.name: c.text if c.metric else c.name for c in problem.constraints}
    sizes = [result.accounting.total - result.accounting.outside for result in results]
    facts = [["", *(row.team for row in rows)], ["designs", *map(count, sizes)]]
    facts.append(["legal", *(_least(result.funnel.legal, result.funnel.exact) for result in results)])
    if any(result.funnel.failed for result in results):
        facts.append(["failed", *(count(result.funnel.failed) for result in results)])
    for name in _losses(results):
        lines = [next((line for line in r.funnel.lines if line.name == name), None) for r in results]
        lost = ["0" if line is None else _least(line.in_order, line.exact) for line in lines]
        facts.append([f"lost to {_short(name, texts.get(name, name))}", *lost])
    facts.append(["feasible", *(_least(result.funnel.feasible, result.funnel.exact) for result in results)])
    bests = [best(result) for result in results]
    for objective in problem.objectives:
        label, unit = f"best {objective.name}", objective.unit.text
        values = [results[0].metric_text(objective.name, found[objective.name]) for found in bests]
        if len(unit) > _LONG_UNIT:
            label, values = f"{label} [{unit}]", [value.removesuffix(f" {unit}") for value in values]
        facts.append([label, *values])
    if len(problem.objectives) > 1:
        facts.append(["on the front", *(count(len(r.front)) if r.front else "-" for r in results)])
    return facts


def _short(name: str, text: str) -> str:
    """What a constraint is called in a table: by its text where that is short, else by its name."""
    return text if len(text) <= _LABEL else name if len(name) <= _LABEL else f"{name[: _LABEL - 3]}..."


def _least(number: int, exact: bool) -> str:
    return count(number) if exact else f">= {count(number)}"


def _losses(results: Sequence[Result]) -> list[str]:
    """The lines of all funnels; a team has none for an objective that is finite for all its designs."""
    return list(dict.fromkeys(line.name for result in results for line in result.funnel.lines))


def _team_lines(row: TeamReport) -> list[str]:
    result = row.result
    if not result.feasible:
        lines = paragraph(f"{row.team}: {nothing(result)}")
        return [*lines, *failure_lines(result, row.unlocks, row.departures)]
    what = "Pareto front" if len(result.problem.objectives) > 1 else "best design"
    sampled = ", by sampling" if result.promise == "sampling" else ""
    feasible = plural(result.funnel.feasible, "feasible design")
    least = "" if result.funnel.exact or sampled else "at least "
    lines = paragraph(f"{row.team}: {what}, of {least}{feasible}{sampled}")
    return [*lines, *point_lines(result, result.front)]


def _whole_lines(comparison: Comparison, whole: Result) -> list[str]:
    """What feasible designs of the whole space share."""
    if not whole.feasible:
        failure = failure_lines(whole, grown=comparison.grown)
        return ["", *paragraph("the whole space has no feasible design"), *failure]
    shared = trait_lines(whole, indent=0)
    return ["", *shared] if shared else []


def comparison_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """One flat row for each team; best values in the objective's unit. All rows have the same columns."""
    losses = _losses([report.result for report in comparison.rows])
    return [_row(report, losses) for report in comparison.rows]


def _row(report: TeamReport, losses: Sequence[str]) -> dict[str, Any]:
    result = report.result
    lost = {line.name: line.in_order for line in result.funnel.lines}
    miss = None if result.feasible else result.nearest_miss
    return {
        "team": report.team,
        "designs": result.accounting.total - result.accounting.outside,
        "legal": result.funnel.legal,
        "failed": result.funnel.failed,
        **{f"lost to {name}": lost.get(name, 0) for name in losses},
        "feasible": result.funnel.feasible,
        **best_row(result),
        "front": len(result.front),
        "nearest miss": None if miss is None else miss_text(result, miss),
        "unlocked by": _unlocked(report),
        "solver": result.solver,
        "promise": result.promise,
        "status": result.status,
    }


def _unlocked(report: TeamReport) -> str:
    sets = [" + ".join(unlock.dimensions) for unlock in report.unlocks[:MOST_UNLOCKS]]
    left_out = len(report.unlocks) - MOST_UNLOCKS
    return " or ".join([*sets, f"{count(left_out)} more"] if left_out > 0 else sets)


def front_columns(comparison: Comparison) -> list[str]:
    """The columns of :func:`front_rows`: the team's, and those of the ``front.csv`` of a search."""
    return ["team", *columns(comparison.problem)]


def front_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """One flat row for each design on a team's front."""
    return [
        {"team": row.team, **point_row(comparison.problem, point)}
        for row in comparison.rows
        for point in row.result.front
    ]


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON values, with every team's full result."""
    problem = comparison.problem
    return {
        "problem": {"name": problem.name, "digest": problem.digest},
        "teams": [
            {
                "team": row.team,
                "best": best_values(row.result),
                **help_data(row.unlocks, row.departures),
                "result": row.result.to_dict(),
            }
            for row in comparison.rows
        ],
        "whole": None if comparison.whole is None else comparison.whole.to_dict(),
        "note": comparison.note,
        "grown": [tried.to_dict() for tried in comparison.grown],
    }
