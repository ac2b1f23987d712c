"""The tables of a report as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from dse.study.result import columns, point_row

from .cards import missing
from .source import Material
from .words import listing

__all__ = ["front_csv", "teams_csv"]


def teams_csv(found: Material) -> str:
    """One row per team: counts, the size of the front, the nearest miss, what would unlock it."""
    names = [
        "team",
        "solver",
        "promise",
        "status",
        "total",
        "outside",
        "illegal",
        "evaluated",
        "pruned",
        "unvisited",
    ]
    names += ["legal", "failed", "feasible", "front", "nearest_miss", "unlock"]
    rows = []
    for entry in found.entries:
        result, a, f = entry.result, entry.result.accounting, entry.result.funnel
        near = (
            ""
            if result.front or result.nearest_miss is None
            else missing(found.problem, result.nearest_miss.violations)
        )
        unlocks = listing([" + ".join(u.dimensions) + f" ({u.feasible})" for u in entry.unlocks], "or")
        counts = [
            a.total,
            a.outside,
            a.illegal,
            a.evaluated,
            a.pruned,
            a.unvisited,
            f.legal,
            f.failed,
            f.feasible,
        ]
        rows.append(
            [
                entry.team,
                result.solver,
                result.promise,
                result.status,
                *counts,
                len(result.front),
                near,
                unlocks,
            ]
        )
    return _csv(names, rows)


def front_csv(found: Material) -> str:
    """One row per design of a front: the team, then the columns of a result's ``front.csv``."""
    names = columns(found.problem)
    rows = [
        [entry.team, *(_cell(row[name]) for name in names)]
        for entry in found.entries
        for row in (point_row(found.problem, point) for point in entry.result.front)
    ]
    return _csv(["team", *names], rows)


def _cell(value: object) -> object:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else value


def _csv(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return stream.getvalue()
