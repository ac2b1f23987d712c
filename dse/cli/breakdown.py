"""The metrics of one design, what their sums are made of, and predictions that go past every measurement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dse.cli.text import GAP, aligned, paragraph, width, widths
from dse.problem import Problem
from dse.study.breakdown import Beyond, Share
from dse.study.result import FrontPoint, Result
from dse.units import Unit, format_value

__all__ = ["beyond_lines", "breakdown_lines", "metric_lines"]

_ALMOST_NONE = 0.005
"""A share that is shown as below one percent."""


def metric_lines(result: Result, point: FrontPoint, *, indent: int) -> list[str]:
    """Every metric of a design with its value, and what it is where that is short.

    The parts of a sum that is taken apart elsewhere are left out.
    """
    problem = result.problem
    apart = {share.name for share in result.breakdown}
    inner = {name for whole in apart for name in _all_parts(problem, whole)}
    objectives = {o.name for o in problem.objectives}
    rows = [
        [name, result.metric_text(name, point.metrics.get(name)), metric.about]
        for name, metric in problem.metrics.items()
        if name not in inner or name in objectives
    ]
    if not rows:
        return []
    room = width() - indent - sum(size + GAP for size in widths([row[:2] for row in rows]))
    short = [[*row[:2], row[2] if len(row[2]) <= room else ""] for row in rows]
    return aligned(short, right={1}, indent=indent, header=False)


def _all_parts(problem: Problem, name: str) -> Iterator[str]:
    for part in problem.metrics[name].parts:
        yield part
        yield from _all_parts(problem, part)


def breakdown_lines(problem: Problem, shares: Sequence[Share], *, indent: int) -> list[str]:
    """Each sum with its parts: values, shares, and the largest one as what bounds it."""
    lines: list[str] = []
    for share in shares:
        bound = share.bound
        unit = problem.metrics[share.name].unit
        by = f", bound by {bound.name} ({_percent(bound.share)})" if bound else ""
        lines += paragraph(f"{share.name} {format_value(share.value, unit)}{by}", indent=indent)
        rows = list(_rows(problem, share, unit, 0))
        lines += aligned(rows, right={1, 2}, indent=indent + 2, header=False)
        if share.zeros:
            lines += paragraph(f"zero: {', '.join(share.zeros)}", indent=indent + 2)
    return lines


def _rows(problem: Problem, whole: Share, unit: Unit, depth: int) -> Iterator[list[str]]:
    total = whole.value / whole.share
    for part in whole.parts:
        mark = "<- bound" if depth == 0 and part is whole.bound else ""
        text = format_value(part.value, problem.metrics[part.name].unit, digits=4)
        yield ["  " * depth + part.name, text, _percent(part.share), mark]
        yield from _rows(problem, part, unit, depth + 1)
    if whole.rest and whole.parts:
        text = format_value(whole.rest, unit, digits=4)
        yield ["  " * depth + "(other)", text, _percent(whole.rest / total), ""]


def _percent(share: float) -> str:
    return "< 1 %" if 0.0 < share < _ALMOST_NONE else f"{share * 100:.0f} %"


def beyond_lines(problem: Problem, beyond: Beyond, *, indent: int = 0, of: int = 1) -> list[str]:
    """A warning that a prediction, of one design or some ``of`` many, passes the best that was measured."""
    unit = problem.metrics[beyond.metric].unit
    value, record = (format_value(number, unit, digits=4) for number in (beyond.value, beyond.record))
    who = f" of {beyond.designs:,} of {of:,} designs, at the furthest" if of > 1 else ""
    return paragraph(
        f"WARNING: the {beyond.metric}{who} predicted, {value}, is beyond the best that was measured, {record}: "
        "treat it as the model's error",
        indent=indent,
    )
