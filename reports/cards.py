"""What is shown when the pointer rests on a design: the whole design, every metric, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dse.evaluation import BulkEvaluator
from dse.evaluation.gates import rows_told, told_despite, told_violations
from dse.evaluation.verdict import spread
from dse.problem import Constraint, Problem, shown
from dse.study.result import FrontPoint, Kept, Miss
from dse.units import Unit, format_value

from .quantities import measures
from .source import clean

__all__ = ["Card", "Deck", "missing", "short_of"]

_STRICT = 1e-300
"""A violation below this is a strict bound met with equality."""


@dataclass(frozen=True, slots=True)
class Card:
    """One design for people: its index, the text of each dimension and metric, and how it was judged."""

    index: str
    design: tuple[str, ...]
    metrics: tuple[str, ...]
    verdict: str
    teams: str = ""

    def text(self, dimensions: Sequence[str], metrics: Sequence[str]) -> str:
        """The card as lines."""
        pairs = [*zip(dimensions, self.design, strict=True), *zip(metrics, self.metrics, strict=True)]
        title = f"design {self.index}, {self.verdict}" if self.index else self.verdict
        teams = [f"teams: {self.teams}"] if self.teams else []
        return "\n".join([title, *teams, *(f"{name}: {value}" for name, value in pairs)])


def value_text(value: object, unit: Unit | None) -> str:
    """A value in its unit; ``-`` where there is none."""
    if isinstance(value, float):
        return format_value(value, unit)
    return clean(shown(value)) if isinstance(value, (bool, str)) else "-"


def missing(problem: Problem, violations: Mapping[str, float]) -> str:
    """``misses latency by 47 ms, accuracy by 0.2 %``; a condition that is no comparison has no amount."""
    parts = []
    for constraint in problem.constraints:
        amount = violations.get(constraint.name, 0.0)
        if amount > 0.0:
            parts.append(f"{clean(constraint.name)}{short_of(amount, constraint)}")
    return f"misses {', '.join(parts)}" if parts else "infeasible"


def short_of(amount: float, constraint: Constraint) -> str:
    """`` by 47 ms``; nothing for a condition that is no comparison."""
    if constraint.bound.op == "holds":
        return ""
    if amount < _STRICT:
        return " by nothing but its bound being strict"
    return f" by {format_value(amount, constraint.unit, 3)}"


@dataclass
class Deck:
    """The cards of all drawn designs; a design in several teams has one card."""

    problem: Problem
    teams: tuple[str, ...] = ()
    cards: list[Card] = field(default_factory=list)
    _known: dict[object, int] = field(default_factory=dict)

    def of_point(self, point: FrontPoint | Miss) -> int:
        """The number of the card of a front point or of a near miss."""
        problem = self.problem
        key = point.index if point.index is not None else tuple(point.design.items())
        values: dict[str, object] = dict(point.metrics)
        if isinstance(point, FrontPoint):
            values = {**point.objectives, **values}
        design = tuple(value_text(point.design[d.name], d.unit) for d in problem.dimensions)
        metrics = tuple(value_text(values.get(name), metric.unit) for name, metric in problem.metrics.items())
        verdict = missing(problem, point.violations) if isinstance(point, Miss) else "feasible"
        card = Card("" if point.index is None else str(point.index), design, metrics, verdict)
        known = self._known.get(key)
        if known is None:
            return self._add(key, card)
        # A measured metric is known here, and is not among what is kept.
        self.cards[known] = replace(card, teams=self.cards[known].teams)
        return known

    def of_kept(self, kept: Kept, rows: Sequence[int], teams: Sequence[Sequence[int]]) -> list[int]:
        """The numbers of the cards of some kept designs, which the numbered ``teams`` have."""
        problem = self.problem
        if problem.continuous:
            return [self._unplaced(kept, row) for row in rows]
        keys = [problem.index_of(kept.digits[row].tolist()) for row in rows]
        new = [at for at, key in enumerate(keys) if key not in self._known]
        columns = self._metrics(kept, np.asarray(rows, dtype=np.intp)[new]) if new else {}
        for place, at in enumerate(new):
            digits = kept.digits[rows[at]].tolist()
            design = tuple(clean(d.label(digit)) for d, digit in zip(problem.dimensions, digits, strict=True))
            metrics = tuple(columns[name][place] for name in problem.metrics)
            who = ", ".join(self.teams[team] for team in teams[at])
            self._add(keys[at], Card(str(keys[at]), design, metrics, self._verdict(kept, rows[at]), who))
        return [self._known[key] for key in keys]

    def _add(self, key: object, card: Card) -> int:
        number = self._known[key] = len(self.cards)
        self.cards.append(card)
        return number

    def _unplaced(self, kept: Kept, row: int) -> int:
        """The card of a design in a space without indices, of which continuous values and most metrics are not kept."""
        problem = self.problem
        digits = kept.digits[row].tolist()
        pairs = zip(problem.dimensions, digits, strict=True)
        design = tuple("-" if d.interval is not None else clean(d.label(digit)) for d, digit in pairs)
        values = {o.name: float(kept.objectives[row, at]) for at, o in enumerate(problem.objectives)}
        told = rows_told(problem, kept.violations[[row]])
        if told is not None and not told[0]:
            values = {name: value for name, value in values.items() if name in told_despite(problem)}
        metrics = tuple(value_text(values.get(name), metric.unit) for name, metric in problem.metrics.items())
        return self._add((id(kept), row), Card("", design, metrics, self._verdict(kept, row)))

    def _verdict(self, kept: Kept, row: int) -> str:
        if kept.feasible[row]:
            return "feasible"
        names = [constraint.name for constraint in self.problem.constraints]
        told = told_violations(self.problem, kept.violations[row].tolist())
        return missing(self.problem, {name: by or 0.0 for name, by in zip(names, told, strict=True)})

    def _metrics(self, kept: Kept, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> dict[str, list[str]]:
        """The texts of every metric for these rows; a measured metric is known if it is an objective."""
        problem = self.problem
        objectives = {o.name: at for at, o in enumerate(problem.objectives)}
        free = {n: m.node for n, m in problem.metrics.items() if not measures(problem, m.node)}
        evaluator = BulkEvaluator(problem, free.values())
        found = evaluator.evaluate({name: kept.digits[rows, at] for at, name in enumerate(problem.names)})
        told, despite = rows_told(problem, kept.violations[rows]), told_despite(problem)
        texts: dict[str, list[str]] = {}
        for name, metric in problem.metrics.items():
            if name in objectives:
                column: list[object] = kept.objectives[rows, objectives[name]].tolist()
            elif name in free:
                values, undefined = spread(found[metric.node], len(rows))
                column = values.tolist()
                if undefined is not None:
                    column = [None if bad else value for value, bad in zip(column, undefined, strict=True)]
            else:
                column = [None] * len(rows)
            if told is not None and name not in despite:
                column = [value if whole else None for value, whole in zip(column, told, strict=True)]
            texts[name] = [value_text(value, metric.unit) for value in column]
        return texts
