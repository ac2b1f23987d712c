"""The designs that a cost model cannot tell from the best, in words and as points."""

from __future__ import annotations

from dse.cli.designs import assignments
from dse.cli.text import count, paragraph, plural, wrapped
from dse.cli.traits import trait_text
from dse.study.result import FrontPoint, Near, Result

__all__ = ["near_lines", "near_points"]


def near_points(result: Result) -> list[FrontPoint]:
    """The best design, and those near it that are listed."""
    known = {point.index: point for point in result.best}
    return [result.front[0], *(known[index] for index in result.near.listed)] if result.near else []


def near_lines(result: Result, *, listed: bool = True) -> list[str]:
    """How many designs are near the best, what they share, and (if ``listed``) some of them by what differs."""
    near = result.near
    if near is None:
        return []
    (objective,) = result.problem.objectives
    share = f"{near.share * 100:.6g} %"
    known = (
        " (the error of its prediction)" if result.problem.errors.get(objective.name) == near.share else ""
    )
    sign = "<=" if objective.direction == "minimize" else ">="
    bound = f"{objective.name} {sign} {result.metric_text(objective.name, near.bound)}"
    lines = paragraph(f"within {share} of the best{known}, {bound}: {_counted(near)}")
    if near.shared and near.count > 1:
        lines += paragraph(
            f"all of them share: {'; '.join(trait_text(result.problem, trait) for trait in near.shared)}",
            indent=2,
        )
    best, *others = near_points(result)
    if not listed or not others:
        return ["", *lines]
    rows = [
        [
            result.metric_text(objective.name, point.objectives[objective.name]),
            assignments(
                result.problem,
                {name: value for name, value in point.design.items() if value != best.design[name]},
            ),
        ]
        for point in others
    ]
    title = [objective.name, "what differs from the best design"]
    return ["", *lines, *wrapped([title, *rows], right={0}, indent=2, header=True)]


def _counted(near: Near) -> str:
    if near.counted == "exact" and near.count == 1:
        return "no other design"
    least = {"exact": "", "more": "more than ", "least": "at least "}[near.counted]
    return f"{least}{plural(near.count, 'design') if not least else f'{count(near.count)} designs'}, the best among them"
