"""In words: what an epsilon-front promises, and what a stopped search has proven."""

from __future__ import annotations

import math

from dse.cli.text import aligned, count, paragraph
from dse.study.gap import Gap
from dse.study.result import Result
from dse.units import format_value

__all__ = ["epsilon_lines", "gap_lines"]


def epsilon_lines(result: Result) -> list[str]:
    """What holds of a front that may be worse by a share."""
    if not result.epsilon or result.status != "complete" or not result.feasible:
        return []
    share = f"{result.epsilon * 100:.6g} %"
    text = f"every feasible design has a point here that is worse by at most {share} in every objective"
    return paragraph(text, indent=2, hanging=0)


def gap_lines(result: Result, *, indent: int = 2) -> list[str]:
    """How far a stopped search may be from the truth: per objective, and as the share of the hypervolume."""
    gap = result.gap
    if gap is None:
        return []
    if not result.feasible:
        return paragraph("no feasible design was found yet, and that there is none is not proven")
    rows = [["", "some point is worse by at most", "no design is better than"]]
    for objective in result.problem.objectives:
        name, unit = objective.name, objective.unit
        rows.append([name, format_value(gap.additive[name], unit), format_value(gap.bound[name], unit)])
    lines = ["proven gap, in all objectives at once", *aligned(rows, right={1, 2}, indent=indent)]
    lines += paragraph(_volume(gap), indent=indent)
    early = len(result.front) - result.funnel.feasible
    if early > 0:
        text = f"{count(early)} or more of these designs were found ahead of the search, and are not on its account yet"
        lines += paragraph(text, indent=indent)
    return lines


def _volume(gap: Gap) -> str:
    if gap.hypervolume is None or gap.hypervolume_bound is None or not math.isfinite(gap.hypervolume_bound):
        return "hypervolume: not bounded yet"
    return (
        f"hypervolume {gap.hypervolume:.6f} of at most {gap.hypervolume_bound:.6f}, "
        "as shares of the box from those bounds to the worst feasible values seen"
    )
