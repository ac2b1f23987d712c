"""Tables that are told of rows of measurements, whatever was measured: errors by group, what is not scored, fitted numbers.

A row has a ``kind``, a ``reason`` where it is not scored, ``key(columns)``, its cells in some columns, and ``configuration``, which
identical runs share.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from dse.errors import InputError, nearest
from dse.study.agreement import Cell, Table
from dse.study.measurements import Measurements
from dse.study.scoring import Errors, collapse

__all__ = [
    "MeasuredRow",
    "assumed_notes",
    "check_columns",
    "counts_table",
    "efficiencies",
    "group_table",
    "number",
    "percent",
    "repeats_table",
    "scored_note",
    "unused",
    "used_and_not",
    "with_predictions",
    "worst_first",
]

ERRORS = (
    ("used", "count"), ("unused", "count"), ("mean", "hundredths"), ("median", "hundredths"), ("bias", "hundredths"),
    ("p90", "hundredths"),
)  # fmt: skip

SPREAD = 1.05
"""Repeats of one configuration that differ by more are listed; sources deviate by 1 to 5 percent."""

REASONS = 3
"""Reasons that are told in a line; the table of rows has all."""


class MeasuredRow(Protocol):
    """What is told of a row."""

    @property
    def cells(self) -> Mapping[str, str]:
        """By column, as text."""

    @property
    def kind(self) -> str:
        """Whether it is scored, told apart or skipped."""

    @property
    def reason(self) -> str:
        """Why it is not scored, or ""."""

    @property
    def configuration(self) -> tuple[str,]:
        """What identical runs share."""

    def key(self, columns: Collection[str]) -> tuple[str,]:
        """Cells in some columns."""


def counts_table(
    rows: Sequence[MeasuredRow], meanings: Mapping[str, str], explained: Collection[str]
) -> Table:
    """How many rows were used and how many not, with the reasons.

    Args:
        rows: all of them.
        meanings: what each kind is.
        explained: the kinds whose reasons are told.
    """
    found: list[tuple[Cell, ...]] = []
    for kind, meaning in meanings.items():
        own = [row for row in rows if row.kind == kind]
        if own:
            found.append((len(own), f"{kind}: {meaning}"))
        reasons = Counter(row.reason for row in own) if kind in explained else Counter[str]()
        found += [(count, f"- {reason}") for reason, count in reasons.most_common()]
    return Table("rows", f"{len(rows):,} rows", (("rows", "count"), ("what", "text")), tuple(found))


def group_table(
    name: str,
    title: str,
    groups: Mapping[tuple[str, ...], Errors],
    *,
    counts: Mapping[tuple[str, ...], tuple[int, int]] | None = None,
    sources: Mapping[str, float] | None = None,
    left_out: Mapping[str, float] | None = None,
    shown: int = 1000,
) -> Table:
    """Errors of each group in percent.

    Args:
        name: of the table, as data.
        title: of the table.
        groups: the errors.
        counts: rows of each group that are scored, and that are not.
        sources: where groups are sources, each one's mean over its groups of runs alike.
        left_out: the same as predicted by a fit to the other sources.
        shown: groups that people are shown.
    """
    further = [(label, told) for label, told in (("macro", sources), ("left_out", left_out)) if told]
    columns = (*ERRORS, *((label, "hundredths") for label, _ in further), ("group", "text"))
    rows: list[tuple[Cell, ...]] = []
    for key, found in groups.items():
        used, rest = (counts or {}).get(key, (found.count, 0))
        cells = [found.mean, found.median, found.bias, found.p90, *(told.get(key[0]) for _, told in further)]
        rows.append((used, rest, *cells, ", ".join(filter(None, key))))
    unscored = [(key, rest) for key, (used, rest) in (counts or {}).items() if key not in groups]
    rows += [
        (0, rest, *(None for _ in columns[2:-1]), ", ".join(filter(None, key))) for key, rest in unscored
    ]
    return Table(name, f"{title}, percent", columns, tuple(rows), shown=shown)


def repeats_table(
    rows: Sequence[MeasuredRow], values: Sequence[float], label: Callable[[Any], str], shown: int
) -> Table:
    """Identical configurations that differ: the largest over the smallest value.

    Args:
        rows: those that are looked at.
        values: what was measured of each.
        label: what a configuration is called, by its first row.
        shown: configurations that people are shown.
    """
    groups = collapse([row.configuration for row in rows], values)
    repeated = [group for group in groups if len(group.members) > 1]
    worst = sorted((group for group in repeated if group.spread > SPREAD), key=lambda one: -one.spread)
    found = tuple((len(one.members), one.spread, one.value, label(rows[one.first])) for one in worst)
    columns = (
        ("repeats", "count"),
        ("spread", "number"),
        ("median_value", "number"),
        ("configuration", "text"),
    )
    note = (
        f"Measured more than once: {len(repeated)} configuration{'' if len(repeated) == 1 else 's'}; each counts once, "
        f"with its median. Listed: largest over smallest above {SPREAD}."
    )
    return Table("repeats", "Repeated configurations", columns, found, (note,), shown)


def unused(rows: Sequence[MeasuredRow], columns: Sequence[str], full: str = "fully configured") -> Table:
    """The rows of each group that are not scored, by kind and reason, most first; ``full`` tells those without one."""
    found = Counter((row.key(columns), row.kind, row.reason) for row in rows if row.kind != "exact")
    cells = tuple(
        (count, kind, f"{', '.join(key)}: {reason or full}")
        for (key, kind, reason), count in found.most_common()
    )
    columns_of = (("rows", "count"), ("kind", "text"), ("group", "text"))
    return Table("unused", "Rows that are not scored, by group", columns_of, cells, shown=5)


def used_and_not(
    rows: Sequence[MeasuredRow], columns: Sequence[str]
) -> dict[tuple[str, ...], tuple[int, int]]:
    """How many rows of each group are scored, and how many are not."""
    found: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        counts = found.setdefault(row.key(columns), [0, 0])
        counts[row.kind != "exact"] += 1
    return {key: (used, rest) for key, (used, rest) in found.items()}


def scored_note(
    rows: Sequence[Any], meanings: Mapping[str, str], scored: Collection[str] = ("exact",)
) -> str:
    """How many rows are scored, how many are not, and why.

    Args:
        rows: all of them, with kind and reason.
        meanings: why rows are not scored, by kind.
        scored: the kinds that are.
    """
    kinds = Counter(row.kind for row in rows)
    reasons = {
        kind: _shown(Counter(row.reason for row in rows if row.kind == kind and row.reason))
        for kind in meanings
    }
    used = sum(kinds[kind] for kind in scored)
    if kinds["skipped"] == len(rows):
        return f"No row could be predicted, of {_rows(len(rows))}. {reasons['skipped']}."
    told = [
        f"{kinds[kind]:,} {meaning}" + (f" ({reasons[kind]})" if reasons[kind] else "")
        for kind, meaning in meanings.items()
        if kinds[kind] and kind not in scored
    ]
    first = f"{used:,} of {_rows(len(rows))} scored"
    away = f", {len(rows) - used:,} not: {'; '.join(told)}" if told else ""
    return f"{first}{away}."


def assumed_notes(
    assumed: Sequence[Mapping[str, str]],
    names: Mapping[str, tuple[str, Mapping[str, str]]],
    columns: Mapping[str, str] | None = None,
) -> list[str]:
    """What predicted rows do not state and was assumed by rule, one line for each column, where it matters.

    Args:
        assumed: of each row that is predicted, what was assumed, by name.
        names: what may be assumed: by name, what it is called, and by which rule each value is taken.
        columns: the column that states it, where its name is another.
    """
    notes = []
    for name, (what, whose) in names.items():
        found = Counter(row[name] for row in assumed if name in row)
        if not found:
            continue
        each = ", ".join(
            f"{value}{'' if len(found) == 1 else f' in {count:,}'}{whose.get(value, '')}"
            for value, count in found.most_common()
        )
        column = (columns or {}).get(name, name)
        notes.append(f"{what} is not stated in {_rows(found.total())}: assumed {each} (column {column}).")
    return notes


def _shown(reasons: Counter[str]) -> str:
    """The most frequent reasons, with their counts."""
    shown = [f"{count:,}: {reason}" for reason, count in reasons.most_common(REASONS)]
    more = len(reasons) - len(shown)
    return "; ".join([*shown, *([f"and {more} more reason{'' if more == 1 else 's'} below"] if more else [])])


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def efficiencies(
    fitted: Mapping[str, Mapping[str, object]],
    name: str = "efficiencies",
    title: str = "Fitted efficiencies, times in seconds",
) -> Table:
    """The fitted numbers, one column for each row of the table that has its own."""
    names = [label for label, value in next(iter(fitted.values())).items() if isinstance(value, (int, float))]
    names += [label for cells in fitted.values() for label in cells if label not in names]
    groups: dict[tuple[float, ...], list[str]] = {}
    for row, cells in fitted.items():
        groups.setdefault(tuple(_value(cells.get(label)) for label in names), []).append(row)
    told = {own[0] if len(own) == 1 else "others": values for values, own in groups.items()}
    shown: list[tuple[Cell, ...]] = [
        (*(values[at] for values in told.values()), label)
        for at, label in enumerate(names)
        if any(not math.isnan(values[at]) for values in told.values())
    ]
    columns = (*((label, "number") for label in told), ("efficiency", "text"))
    return Table(name, title, columns, tuple(shown))


def _value(cell: object) -> float:
    return float(cell) if isinstance(cell, (int, float)) else math.nan


def percent(value: float) -> str:
    """A fraction as people read it; ``-`` where there is none."""
    return "-" if math.isnan(value) else f"{100.0 * value:.1f} %"


def number(value: float) -> str:
    """A correlation; ``-`` where there is none."""
    return "-" if math.isnan(value) else f"{value:.2f}"


def worst_first(groups: Mapping[tuple[str, ...], Errors]) -> dict[tuple[str, ...], Errors]:
    """Groups by their mean error."""
    return dict(sorted(groups.items(), key=lambda one: -one[1].mean))


def check_columns(by: Sequence[str], table: Measurements, rows: Sequence[MeasuredRow]) -> None:
    """Refuses columns to group by that a table has not.

    Raises:
        InputError: there is no such column; the message has the nearest.
    """
    known = dict.fromkeys((*table.columns, *(name for row in rows[:1] for name in row.cells)))
    for name in by:
        if name not in known:
            raise InputError(f"--by: {table.file} has no column {name!r}{nearest(name, known)}")


def with_predictions(
    table: Measurements, values: Mapping[int, float]
) -> tuple[Sequence[str], Sequence[Mapping[str, Any]]]:
    """The rows of a table with ``predicted`` behind them; empty where there is none."""
    columns = [*(name for name in table.columns if name != "predicted"), "predicted"]
    rows = [
        {**record.cells, "predicted": float(f"{values[at]:.8g}") if at in values else None}
        for at, record in enumerate(table.records)
    ]
    return columns, rows
