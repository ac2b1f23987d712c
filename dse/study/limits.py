"""Limits: the inputs that constraints compare metrics with, how far they may be mapped, and what a mapping searches."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError, nearest
from dse.evaluation import evaluate_nodes
from dse.expressions import Kind
from dse.problem import Constraint, Problem
from dse.problem.parts import Bound, Direction, Input, Metric, Objective
from dse.problem.values import input_value
from dse.units import Unit, UnitError, format_value, parse_quantity, parse_unit

__all__ = [
    "HOLDS",
    "POINTS",
    "Axis",
    "Limit",
    "LimitBound",
    "Wanted",
    "front_problem",
    "limit_of",
    "read_wanted",
    "unmappable",
]

POINTS = 24
"""Values of a limit, unless told otherwise."""

_MOST_POINTS = 400
_LOG = 20.0
"""A range of positive values whose ends differ by this factor or more is divided in equal ratios."""

_FLIPPED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}


@dataclass(frozen=True, slots=True)
class LimitBound:
    """A comparison ``node op right`` of a constraint, whose right side reads the limit and no dimension."""

    node: int
    op: str
    right: int
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class Limit:
    """An input that constraints compare nodes with."""

    input: Input
    bounds: tuple[LimitBound, ...]

    @property
    def side(self) -> str:
        """``<=`` of a limit from above, ``>=`` of one from below; empty of one that is both, or more than a number."""
        plain = all(bound.right == self.input.node for bound in self.bounds)
        signs = {bound.op[0] for bound in self.bounds}
        return f"{signs.pop()}=" if plain and len(signs) == 1 else ""

    def right(self, problem: Problem, bound: LimitBound, values: Floats) -> Floats:
        """What a bound's right side is for values of the limit."""
        if bound.right == self.input.node:
            return values
        found = []
        for value in values.tolist():
            inputs = {**problem.inputs, self.input.name: replace(self.input, value=value)}
            number = evaluate_nodes(replace(problem, inputs=inputs), {}, [bound.right])[bound.right]
            found.append(number if isinstance(number, float) else math.nan)
        return np.array(found)


Floats = NDArray[np.float64]

HOLDS: dict[str, Callable[[Floats, Floats], NDArray[np.bool_]]] = {
    "<=": lambda value, limit: np.asarray(value <= limit),
    "<": lambda value, limit: np.asarray(value < limit),
    ">=": lambda value, limit: np.asarray(value >= limit),
    ">": lambda value, limit: np.asarray(value > limit),
}
"""The comparisons of bounds, for arrays."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An input to be mapped, and the range that was asked for, in base units; None is to be found."""

    input: Input
    ends: tuple[float, float] | None = None
    points: int = POINTS


@dataclass(frozen=True, slots=True)
class Axis:
    """One mapped input: its ``values`` in base units, ascending, and whether they are equal ratios apart."""

    input: Input
    values: tuple[float, ...]
    log: bool

    @property
    def name(self) -> str:
        """The input's name."""
        return self.input.name

    @property
    def unit(self) -> Unit | None:
        """The unit that values are shown in."""
        return self.input.unit

    @property
    def label(self) -> str:
        """``max_latency [ms]``."""
        return self.name if self.unit is None else f"{self.name} [{self.unit.text}]"

    def text(self, value: float, digits: int = 4) -> str:
        """A value for people."""
        return format_value(value, self.unit, digits=digits)

    @classmethod
    def over(cls, wanted: Wanted, low: float, high: float) -> Axis:
        """An axis from ``low`` to ``high``."""
        log = low > 0.0 and high / low >= _LOG
        space = np.geomspace if log else np.linspace
        values = np.asarray(space(low, high, wanted.points), dtype=np.float64)
        values[0], values[-1] = low, high
        if wanted.input.limits is not None and wanted.input.limits.whole:
            values = np.round(values)
        return cls(wanted.input, tuple(float(value) for value in np.unique(values)), log)


def read_wanted(problem: Problem, text: str) -> Wanted:
    """What ``NAME``, ``NAME=LOW:HIGH`` or ``NAME=LOW:HIGH:POINTS`` asks for.

    ``LOW`` may leave out the unit of ``HIGH``: ``max_latency=5:100 ms:40``.

    Raises:
        InputError: no such input, none that is a number, or no such range.
    """
    name, sign, range_text = (part.strip() for part in text.partition("="))
    if name not in problem.inputs:
        hint = nearest(name, problem.inputs)
        limits = ", ".join(known.name for known in problem.inputs.values() if limit_of(problem, known).bounds)
        if not hint.startswith("; did you mean"):
            hint = f"; limits of {problem.name}: {limits}" if limits else f"; {problem.name} has no limits"
        raise InputError(f"--map {name}: unknown input{hint}")
    known = problem.inputs[name]
    if known.type.kind is not Kind.NUMBER:
        kind = f"names a row of {known.table}" if known.table else f"is {known.type.kind.value}"
        raise InputError(f"--map {name}: only limits that are numbers are mapped, but {name} {kind}")
    if not sign:
        return Wanted(known)
    parts = [part.strip() for part in range_text.split(":")]
    if len(parts) not in (2, 3) or not all(parts):
        raise InputError(f"--map {text}: expected {name}=LOW:HIGH or {name}=LOW:HIGH:POINTS")
    points = _points(text, parts[2]) if len(parts) > 2 else POINTS
    low, high = (_end(known, part) for part in _with_unit(parts[0], parts[1]))
    if not low < high:
        raise InputError(f"--map {text}: the range must ascend, but {parts[0]} is not below {parts[1]}")
    return Wanted(known, (low, high), points)


def _points(text: str, found: str) -> int:
    points = int(found) if found.isascii() and found.isdigit() else 0
    if not 2 <= points <= _MOST_POINTS:
        raise InputError(
            f"--map {text}: the number of points must be from 2 to {_MOST_POINTS}, but got {found!r}"
        )
    return points


def _with_unit(low: str, high: str) -> tuple[str, str]:
    """The ends of a range as texts, the first with the unit of the second where it has none."""
    try:
        bare, unit = parse_quantity(low).unit is None, parse_quantity(high).unit
    except UnitError:
        return low, high  # reading them says what is wrong
    return (f"{low} {unit.text}" if bare and unit is not None else low), high


def _end(known: Input, text: str) -> float:
    value = input_value(known, text)
    assert isinstance(value, float)
    if not math.isfinite(value):
        raise InputError(f"--map {known.name}: the ends of a range must be finite, but got {text}")
    return value


def limit_of(problem: Problem, known: Input) -> Limit:
    """The comparisons of constraints in which exactly one side reads an input; that side reads no dimension."""
    graph = problem.graph
    bounds = []
    for constraint in problem.constraints:
        left, op, right = constraint.bound.lhs, constraint.bound.op, constraint.bound.rhs
        for node, sign, other in ((left, op, right), (right, _FLIPPED.get(op, ""), left)):
            reads = known.node in graph.needed([other])
            if sign in _FLIPPED and reads and not graph[other].support and not _measured(problem, other):
                bounds.append(LimitBound(node, sign, other, constraint))
    return Limit(known, tuple(bounds))


def _measured(problem: Problem, node: int) -> bool:
    return bool(problem.graph.leaves(node, "measured"))


def unmappable(problem: Problem, limits: Sequence[Limit]) -> str:
    """Why a front does not decide for which values of limits there are feasible designs; empty when it does."""
    return "; ".join(filter(None, (_elsewhere(problem, limit, limits) for limit in limits)))


def _elsewhere(problem: Problem, limit: Limit, limits: Sequence[Limit]) -> str:
    """Where a limit enters besides the right sides of its own bounds."""
    name, node = limit.input.name, limit.input.node
    own = {id(bound.constraint) for bound in limit.bounds}
    graph = problem.graph
    if not limit.bounds:
        return f"no constraint compares anything with {name} alone"
    readers = [("rule " + rule.name, [rule.check]) for rule in problem.rules]
    readers += [(f"dimension {d.name}", [d.when]) for d in problem.dimensions if d.when is not None]
    readers += [
        (f"team {team.name}", [conjunct.node for box in team.boxes for conjunct in box.where])
        for team in problem.teams.values()
    ]
    readers += [(f"objective {o.name}", [o.node]) for o in problem.objectives]
    readers += [
        (f"constraint {c.name}", [c.bound.lhs, c.bound.rhs]) for c in problem.constraints if id(c) not in own
    ]
    readers += [(f"constraint {bound.constraint.name}", [bound.node]) for bound in limit.bounds]
    for where, nodes in readers:
        if node in graph.needed(nodes):
            return f"{name} also enters {where}"
    for bound in limit.bounds:
        for other in limits:
            if other is not limit and other.input.node in graph.needed([bound.right]):
                return f"{name} and {other.input.name} bound constraint {bound.constraint.name} together"
    return ""


def front_problem(problem: Problem, limits: Sequence[Limit]) -> tuple[Problem, tuple[tuple[int, ...], ...]]:
    """The problem whose front decides for which values of the limits some design is feasible.

    What the limits bound is its objectives; its constraints are the others, and that the objectives of ``problem`` are
    finite, as they must be in a feasible design.

    Returns:
        The problem, and for each limit the numbers of the objectives that its bounds ask about.
    """
    graph = problem.graph.with_tables(())
    own = {id(bound.constraint) for limit in limits for bound in limit.bounds}
    objectives: dict[tuple[int, Direction], Objective] = {}
    metrics = dict(problem.metrics)
    asked = []
    for limit in limits:
        numbers = []
        for bound in limit.bounds:
            node, op, constraint = bound.node, bound.op, bound.constraint
            direction: Direction = "minimize" if op[0] == "<" else "maximize"
            if (node, direction) not in objectives:
                name = constraint.metric or constraint.name
                if any(o.name == name for o in objectives.values()) or name not in metrics:
                    name = f"{name} {op} {limit.input.name}"
                    metrics[name] = Metric(name, node, constraint.unit or parse_unit("1"), constraint.text)
                unit = metrics[name].unit
                objectives[node, direction] = Objective(name, node, direction, unit)
            numbers.append(list(objectives).index((node, direction)))
        asked.append(tuple(numbers))
    constraints = [c for c in problem.constraints if id(c) not in own]
    for objective in problem.objectives:
        if (objective.node, objective.direction) not in objectives:
            type_ = graph[objective.node].type
            for op, end in (("<=", sys.float_info.max), (">=", -sys.float_info.max)):
                finite = Bound(objective.node, op, graph.number(end, type_))
                text = f"{objective.name} {op} {end}"
                constraints.append(Constraint(text, finite, objective.unit, text, metric=objective.name))
    found = replace(
        problem,
        graph=graph,
        metrics=metrics,
        objectives=tuple(objectives.values()),
        constraints=tuple(constraints),
        errors={},
    )
    return found, tuple(asked)
