"""Pieces of scores that spaces share: distinct configurations, means by source, ends of open rows, sources left out of a fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dse.study.scoring import Collapsed, Errors, collapse, macro, outside

__all__ = ["Bound", "bound_of", "by_source", "distinct", "halfway", "held_out"]


@dataclass(frozen=True, slots=True)
class Bound:
    """A row's lowest and highest prediction, how far outside the measured value lies, and the middle over it."""

    row: int
    low: float
    high: float
    outside: float
    halfway: float


def bound_of(row: int, value: float, ends: Sequence[float]) -> Bound:
    """What is told of a measured value and the predictions of its row."""
    return Bound(row, min(ends), max(ends), outside(value, ends), halfway(ends) / value)


def halfway(ends: Sequence[float]) -> float:
    """The geometric middle of the lowest and the highest."""
    return math.sqrt(min(ends) * max(ends))


def distinct(rows: Sequence[Any], values: Mapping[int, float]) -> tuple[Collapsed, ...]:
    """Runs of chosen rows: identical configurations count once, with their median.

    Args:
        rows: the whole table.
        values: what was measured, by the index of each row that is chosen.

    Returns:
        runs whose indices are those of the rows.
    """
    chosen = list(values)
    local = collapse([rows[at].configuration for at in chosen], list(values.values()))
    return tuple(
        Collapsed(chosen[run.first], tuple(chosen[at] for at in run.members), run.value, run.spread)
        for run in local
    )


def by_source(groups: Mapping[tuple[str, ...], Errors]) -> dict[str, float]:
    """Each source's mean over its groups, whose keys have it first."""
    names = dict.fromkeys(key[0] for key in groups)
    return {name: macro({key: one for key, one in groups.items() if key[0] == name}) for name in names}


def held_out(
    rows: Sequence[Any],
    generation: Callable[[Any], str],
    predicted: Callable[[str], Mapping[int, Sequence[float]]],
) -> tuple[dict[int, Sequence[float]], dict[int, Sequence[float]]]:
    """Exact rows of each source as they are predicted by what the others tell.

    Args:
        rows: the whole table.
        generation: the GPU generation of a row.
        predicted: predictions by index of the row, by a fit without a source.

    Returns:
        predictions of rows whose GPU generation another source has, and of the other rows, by their index.
    """
    exact = [row for row in rows if row.kind == "exact"]
    owners: dict[str, set[str]] = {}
    for row in exact:
        owners.setdefault(generation(row), set()).add(row.cells["source"])
    shared: dict[int, Sequence[float]] = {}
    alone: dict[int, Sequence[float]] = {}
    for source in dict.fromkeys(row.cells["source"] for row in exact):
        for at, ends in predicted(source).items():
            if rows[at].cells["source"] == source:
                (shared if len(owners[generation(rows[at])]) > 1 else alone)[at] = ends
    return shared, alone
