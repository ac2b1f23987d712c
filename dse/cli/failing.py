"""Designs that have no value, in words: how many, and for want of what."""

from __future__ import annotations

from dse.cli.text import count, paragraph, plural
from dse.study.failing import failed_much, failing, lacks
from dse.study.result import Result

__all__ = ["failing_head", "failing_lines"]

_REASONS = 4
"""Reasons that are told; more are counted."""


def failing_head(result: Result) -> list[str]:
    """What must be said before the answer: that many designs failed, or that rows lack cells; often nothing."""
    lines = failing_lines(result) if failed_much(result) else []
    for lack in lacks(result):
        lines += paragraph(f"warning: {lack.text}")
    return lines


def failing_lines(result: Result, label: str = "") -> list[str]:
    """How many designs failed and why."""
    funnel = result.funnel
    whose = f"{label}: " if label else "warning: "
    least = "" if funnel.exact else "at least "
    lines = paragraph(
        f"{whose}{least}{count(funnel.failed)} of {plural(funnel.legal, 'evaluated design')} failed: nothing is known of them"
    )
    reasons = failing(result)
    for why, number in reasons[:_REASONS]:
        lines += paragraph(f"{_share(number, sum(n for _, n in reasons), funnel.failed)}: {why}", indent=2)
    if len(reasons) > _REASONS:
        lines += paragraph(f"and {plural(len(reasons) - _REASONS, 'more reason')}", indent=2)
    return lines


def _share(number: int, looked_at: int, failed: int) -> str:
    """How many of the failed designs have a reason, as far as is known from those that were looked at."""
    if looked_at == failed:
        return count(number)
    if number == looked_at:
        return f"all {number} that were looked at"
    return f"{number} of {looked_at} that were looked at"
