"""Why designs of a search fail, that is have no value: the reasons with counts, and what whole rows of tables lack."""

from __future__ import annotations

from collections import Counter

import numpy as np

from dse.evaluation import State, judge
from dse.study.lacking import Lacking, lacking, own_rows
from dse.study.result import Result

__all__ = ["LARGE", "Reasons", "failed_much", "failing", "lacks"]

LARGE = 0.01
"""The share of evaluated designs beyond which failures are told before anything else."""

_LOOKED_AT = 120
"""Failed designs of which the reason is asked."""

_ROWS = 3
"""Rows of a table whose missing cells are looked for."""

Reasons = tuple[tuple[str, int], ...]
"""Reasons and how many of the failed designs that were looked at have each, those of most first."""


def failed_much(result: Result) -> bool:
    """Whether so many designs failed that it must be said first."""
    return result.funnel.failed > LARGE * result.funnel.legal


def failing(result: Result) -> Reasons:
    """The reasons for which designs fail, of some that are spread over all of them."""
    if not result.funnel.failed:
        return ()
    reasons: Counter[str] = Counter()
    kept = result.kept
    rows = np.flatnonzero(kept.failed) if kept is not None else np.zeros(0, dtype=np.intp)
    if kept is not None and len(rows) and not result.problem.measured:
        chosen = rows[np.unique(np.linspace(0, len(rows) - 1, _LOOKED_AT).astype(np.intp))]
        for row in chosen.tolist():
            verdict = judge(result.problem, result.problem.design_at(kept.digits[row].tolist()))
            reasons[verdict.reason if verdict.state is State.FAILED else ""] += 1
    else:
        reasons.update(why for why, *_ in result.failures)
    return tuple(reasons.most_common())


def lacks(result: Result) -> tuple[Lacking, ...]:
    """What rows of tables lack: those that the file adds, and of others those of failed designs where many fail, or
    those that are left where no design is legal.
    """
    problem, kept = result.problem, result.kept
    if problem.continuous or problem.measured or result.status == "stopped":
        return ()
    found = [lack for own in own_rows(problem).values() for lack in own]
    nothing_legal = result.funnel.exact and not result.funnel.legal and not result.accounting.pruned
    if not nothing_legal and not failed_much(result):
        return tuple(found)
    for at, dimension in enumerate(problem.dimensions):
        if dimension.table is None:
            continue
        if nothing_legal:
            rows = [str(value) for value in dimension.values]
        elif kept is None:
            rows = []
        else:
            digits = np.unique(kept.digits[kept.failed, at]).tolist()
            rows = [str(dimension.values[digit]) for digit in digits]
        if len(rows) <= _ROWS:
            found += [lack for row in rows if (lack := lacking(problem, dimension.name, row))]
    return tuple(dict.fromkeys(found))
