"""One design along one dimension, all else fixed: its metrics, its limits, and where what bounds it changes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dse.errors import InputError, nearest
from dse.evaluation import State, evaluate_nodes, judge
from dse.evaluation.sentence import sentence
from dse.expressions import Value
from dse.problem import Constraint, Design, Dimension, Problem
from dse.study.breakdown import Share, breakdowns
from dse.study.diagnosis import design_metrics

__all__ = ["MOST_METRICS", "Along", "Point", "Ridge", "along"]

MOST_METRICS = 4
"""Metrics that are shown unless told otherwise."""

_MOST_POINTS, _MOST_RIDGES = 400, 4

Number = float | bool | str | None


@dataclass(frozen=True, slots=True)
class Point:
    """One value of the dimension. An illegal design has a ``reason``, its ``rule``'s, and no metrics; metrics are in base
    units. ``broken`` are the constraints that an infeasible design breaks.
    """

    value: Value
    state: State
    reason: str
    metrics: Mapping[str, Number]
    broken: tuple[str, ...] = ()
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Ridge:
    """Between two neighbouring values, ``low`` and ``high``, what bounds ``metric`` changes from ``before`` to ``after``.

    ``at`` is where the two are equal if each is a power of the dimension in between; None where that has no numbers.
    """

    metric: str
    before: str
    after: str
    low: Value
    high: Value
    at: float | None


@dataclass(frozen=True, repr=False)
class Along:
    """A design along a dimension.

    ``metrics`` are those to be shown; ``limits`` are the values, by constraint, of bounds on them that are the same at
    every point.
    """

    problem: Problem
    dimension: Dimension
    design: Design
    points: tuple[Point, ...]
    metrics: tuple[str, ...]
    ridges: tuple[Ridge, ...]
    limits: tuple[tuple[Constraint, float], ...]
    left_out: int = 0

    def __repr__(self) -> str:
        return f"<Along {self.problem.name}: {self.dimension.name}, {len(self.points)} points>"

    @property
    def rest(self) -> Design:
        """What stays the same: the values of the other dimensions that are active in some design on the way."""
        problem, name = self.problem, self.dimension.name
        ways = [_with(problem, self.design, name, point.value) for point in self.points if point.metrics]
        found: Design = {}
        for dimension in problem.dimensions:
            when = dimension.when
            active = when is None or any(
                evaluate_nodes(problem, way, [when])[when] is not False for way in ways
            )
            if dimension.name != name and active:
                found[dimension.name] = self.design[dimension.name]
        return found


def along(
    problem: Problem,
    name: str,
    design: Mapping[str, Value],
    metrics: Sequence[str] = (),
    *,
    ridge: tuple[str, str] | None = None,
) -> Along:
    """The designs that differ from ``design`` in the dimension ``name`` alone.

    A conditional dimension takes the value that it has while it is inactive where the dimension makes it so.

    Args:
        design: in base units; its value of the dimension itself does not matter.
        metrics: what to show; default: objectives and bounded metrics that vary.
        ridge: two metrics of one unit; where they cross is marked. Default: where the largest part of a shown metric
            changes.

    Raises:
        InputError: no such dimension or metric, a dimension without values to go along or one that is inactive, a ridge
            of metrics that cannot be compared, or no legal design on the way.
    """
    dimension = problem.dimension(name)
    if dimension.interval is not None:
        raise InputError(
            f"dimension {name!r} is continuous, so there are no values to go along; give it step or count"
        )
    for metric in (*metrics, *(ridge or ())):
        if metric not in problem.metrics:
            raise InputError(f"{metric!r} is no metric of {problem.name}{nearest(metric, problem.metrics)}")
    if ridge is not None:
        _check_pair(problem, ridge)
    _check_active(problem, dimension, design)
    values = _values(dimension)
    points = tuple(_point(problem, _with(problem, design, name, value), value) for value in values)
    legal = [point for point in points if point.metrics]
    if not legal:
        why = next((point.reason for point in points if point.reason), "none can be evaluated")
        raise InputError(f"no design along {name} is legal: {why}")
    shown = tuple(metrics) or _varying(problem, legal)
    if ridge is not None:
        sequence = [(point, _larger(point, ridge)) for point in legal]
        ridges = _ridges(" and ".join(ridge), sequence)
    else:
        ridges = _part_ridges(problem, legal, shown)
    chosen = {
        **design,
        name: legal[0].value,
    }  # dimensions that are inactive at some values keep what they have at others
    return Along(
        problem,
        dimension,
        {d.name: chosen[d.name] for d in problem.dimensions},
        points,
        shown,
        tuple(ridges),
        _limits(problem, [_with(problem, design, name, point.value) for point in legal], shown),
        len(dimension.values) - len(values),
    )


def _check_pair(problem: Problem, pair: tuple[str, str]) -> None:
    """Refuses to compare milliseconds with bytes."""
    one, other = (problem.metrics[name].unit for name in pair)
    if one.dims != other.dims:
        raise InputError(
            f"metrics of a ridge are of one unit, but {pair[0]} is in {one.text} and {pair[1]} in {other.text}"
        )


def _check_active(problem: Problem, dimension: Dimension, design: Mapping[str, Value]) -> None:
    """Refuses a dimension that has one value only because the others of the design leave it inactive."""
    when = dimension.when
    if when is None or evaluate_nodes(problem, dict(design), [when])[when] is not False:
        return
    sentences = [sentence(problem, rule.because, design) for rule in problem.rules if rule.name == "inactive"]
    because = next(text for text in sentences if text.startswith(f"{dimension.name} is inactive "))
    raise InputError(f"there is nothing to go along in this design: {because}")


def _values(dimension: Dimension) -> list[Value]:
    """The dimension's values, or of very many some, spread as evenly over their logarithms as over their numbers."""
    values = list(dimension.values)
    if len(values) <= _MOST_POINTS:
        return values
    half = _MOST_POINTS // 2
    linear = np.linspace(0, len(values) - 1, half)
    ratio = np.geomspace(1, len(values), half) - 1
    return [values[at] for at in sorted({int(n) for n in np.concatenate((linear, ratio))})]


def _with(problem: Problem, design: Mapping[str, Value], name: str, value: Value) -> Design:
    """The design with another value of a dimension, and inactive dimensions at what they then have."""
    changed: Design = {}
    for dimension in problem.dimensions:
        changed[dimension.name] = value if dimension.name == name else design[dimension.name]
        if dimension.when is not None and dimension.name != name:
            before = {**design, **changed}
            if evaluate_nodes(problem, before, [dimension.when])[dimension.when] is False:
                changed[dimension.name] = dimension.values[dimension.otherwise]
    return changed


def _point(problem: Problem, design: Design, value: Value) -> Point:
    verdict = judge(problem, design)
    if verdict.state is State.ILLEGAL:
        return Point(value, verdict.state, verdict.reason, {}, (), verdict.rule.name if verdict.rule else "")
    broken = [
        constraint.name
        for constraint, violation in zip(problem.constraints, verdict.violations, strict=False)
        if violation > 0.0
    ]
    return Point(value, verdict.state, verdict.reason, design_metrics(problem, design), tuple(broken))


def _varying(problem: Problem, points: Sequence[Point]) -> tuple[str, ...]:
    """Objectives, then bounded metrics, that are numbers and vary; the objectives where nothing does."""
    bounded = [constraint.metric for constraint in problem.constraints if constraint.metric]
    names = list(dict.fromkeys([*(o.name for o in problem.objectives), *bounded]))
    found = [
        name
        for name in names
        if len({value for p in points if isinstance(value := p.metrics[name], float)}) > 1
    ]
    return tuple((found or [o.name for o in problem.objectives])[:MOST_METRICS])


# -- ridges ----------------------------------------------------------------------------------------


def _larger(point: Point, pair: tuple[str, str]) -> dict[str, float]:
    """Both metrics of a pair as far as they are numbers."""
    values = {name: point.metrics[name] for name in pair}
    return {name: value for name, value in values.items() if isinstance(value, float)}


def _part_ridges(problem: Problem, points: Sequence[Point], shown: Sequence[str]) -> list[Ridge]:
    """Where the largest part changes of shown metrics that have parts."""
    shares = [
        (point, {share.name: share for share in _apart(breakdowns(problem, point.metrics))})
        for point in points
    ]
    ridges = []
    for name in shown:
        sequence = [(point, _parts(found[name])) for point, found in shares if name in found]
        ridges += _ridges(name, sequence)
    return ridges[:_MOST_RIDGES]


def _apart(shares: Iterable[Share]) -> Iterator[Share]:
    """These and the parts of theirs that have parts."""
    for share in shares:
        if share.parts:
            yield share
            yield from _apart(share.parts)


def _parts(share: Share) -> dict[str, float]:
    return {part.name: part.value for part in share.parts}


def _ridges(name: str, sequence: Sequence[tuple[Point, dict[str, float]]]) -> list[Ridge]:
    """Where the largest of some values changes from one point to the next."""
    ridges = []
    for (low, left), (high, right) in pairwise(sequence):
        if not left or not right:
            continue
        before, after = (max(values, key=lambda key: values[key]) for values in (left, right))
        if before != after:
            gaps = [_log_ratio(values.get(after, 0.0), values.get(before, 0.0)) for values in (left, right)]
            ridges.append(
                Ridge(name, before, after, low.value, high.value, _crossing(low.value, high.value, gaps))
            )
    return ridges


def _log_ratio(over: float, under: float) -> float:
    return math.log(over / under) if over > 0.0 and under > 0.0 else math.nan


def _crossing(low: Value, high: Value, gaps: Sequence[float]) -> float | None:
    """Where the logarithm of a ratio, drawn over that of the dimension, passes zero; midway where it is not known."""
    if not isinstance(low, float) or not isinstance(high, float):
        return None
    first, second = gaps
    share = first / (first - second) if first < 0.0 <= second else 0.5
    return low * (high / low) ** share if low > 0.0 else low + (high - low) * share


# -- limits ----------------------------------------------------------------------------------------


def _limits(
    problem: Problem, designs: Sequence[Design], shown: Sequence[str]
) -> tuple[tuple[Constraint, float], ...]:
    """The bounds on shown metrics that are the same for all designs."""
    found = []
    for constraint in problem.constraints:
        if constraint.metric not in shown or constraint.bound.op == "holds":
            continue
        node = constraint.bound.rhs
        values = {evaluate_nodes(problem, design, [node])[node] for design in designs}
        (value, *others) = values
        if not others and isinstance(value, float) and math.isfinite(value):
            found.append((constraint, value))
    return tuple(found)
