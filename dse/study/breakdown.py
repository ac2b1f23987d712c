"""What a metric is made of in one design, and predictions that nothing measured has reached."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dse.evaluation import evaluate_nodes
from dse.expressions import Value
from dse.problem import Design, Problem

if TYPE_CHECKING:
    from dse.study.result import FrontPoint

__all__ = ["Beyond", "Share", "beyond_record", "breakdowns"]

_ROUNDING = 1e-9
"""Of a sum, what may be missing of it without being told."""

Metrics = Mapping[str, float | bool | str | None]


@dataclass(frozen=True, slots=True)
class Share:
    """A metric of one design in base units, and its ``share`` of the sum that it is a part of.

    ``parts`` are those that are not zero, in the order in which they are declared, ``zeros`` the names of the others.
    ``rest`` is what the parts leave of the value.
    """

    name: str
    value: float
    share: float = 1.0
    parts: tuple[Share, ...] = ()
    zeros: tuple[str, ...] = ()
    rest: float = 0.0

    @property
    def bound(self) -> Share | None:
        """The largest part."""
        return max(self.parts, key=lambda part: part.value, default=None)

    def to_dict(self) -> dict[str, Any]:
        """The sum and its parts as JSON values."""
        data: dict[str, Any] = {"metric": self.name, "value": self.value, "share": self.share}
        if self.parts or self.zeros:
            data |= {
                "bound": self.bound.name if self.bound else None,
                "parts": [part.to_dict() for part in self.parts],
                "zero": list(self.zeros),
                "rest": self.rest,
            }
        return data


@dataclass(frozen=True, slots=True)
class Beyond:
    """A metric that ``designs`` designs predict past the best that was measured: the furthest of them, in base units."""

    metric: str
    value: float
    record: float
    above: bool
    designs: int
    index: int | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "metric": self.metric,
            "value": self.value,
            "record": self.record,
            "designs": self.designs,
            "index": self.index,
        }


def breakdowns(problem: Problem, metrics: Metrics) -> tuple[Share, ...]:
    """The metrics that have parts and are no part of another, taken apart; without those that have no finite value."""
    inner = {part for metric in problem.metrics.values() for part in metric.parts}
    sums = [name for name, metric in problem.metrics.items() if metric.parts and name not in inner]
    found = []
    for name in sums:
        value = _finite(metrics.get(name))
        if value:
            found.append(_taken_apart(problem, metrics, name, value, value))
    return tuple(found)


def _finite(value: object) -> float | None:
    return value if isinstance(value, float) and math.isfinite(value) else None


def _taken_apart(problem: Problem, metrics: Metrics, name: str, value: float, whole: float) -> Share:
    """A metric and its parts; shares are of the whole sum."""
    declared = problem.metrics[name].parts
    values = {part: _finite(metrics.get(part)) for part in declared}
    parts = tuple(_taken_apart(problem, metrics, part, v, whole) for part, v in values.items() if v)
    zeros = tuple(part for part, v in values.items() if not v)
    rest = value - math.fsum(v for v in values.values() if v) if declared else 0.0
    if abs(rest) <= _ROUNDING * abs(value):
        rest = 0.0
    return Share(name, value, value / whole, parts, zeros, rest)


def beyond_record(problem: Problem, points: Iterable[FrontPoint]) -> tuple[Beyond, ...]:
    """For each metric with a record: how many of these designs are predicted to pass it, and the furthest."""
    points = tuple(points)
    found = []
    for name, metric in problem.metrics.items():
        if metric.record is None:
            continue
        sign = 1.0 if metric.record.above else -1.0
        records = _records(problem, metric.record.node, points)
        past = [
            (sign * (value - record), value, record, point.index)
            for point, record in zip(points, records, strict=True)
            if (value := _finite(point.metrics.get(name))) is not None
            and record is not None
            and sign * (value - record) > 0.0
        ]
        if past:
            _, value, record, index = max(past, key=lambda one: one[0])
            found.append(Beyond(name, value, record, metric.record.above, len(past), index))
    return tuple(found)


def _records(problem: Problem, node: int, points: Sequence[FrontPoint]) -> list[float | None]:
    """The record for each design; None where it is missing. It is found once for all that it depends on alike."""
    support = sorted(problem.graph[node].support)
    if problem.graph.leaves(node, "measured"):
        return [_finite(_value(problem, node, point.design, point.metrics)) for point in points]
    known: dict[tuple[Value, ...], float | None] = {}
    records = []
    for point in points:
        key = tuple(point.design[name] for name in support)
        if key not in known:
            known[key] = _finite(_value(problem, node, point.design, {}))
        records.append(known[key])
    return records


def _value(problem: Problem, node: int, design: Design, metrics: Metrics) -> object:
    wanted = problem.graph.leaves(node, "measured")
    measured = {name: value for name in wanted if (value := _finite(metrics.get(name))) is not None}
    if len(measured) < len(wanted):
        return None
    return evaluate_nodes(problem, design, [node], measured)[node]
