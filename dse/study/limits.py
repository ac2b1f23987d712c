"""Limits: the inputs that constraints compare metrics with, how far they may be mapped, and what a mapping searches."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError, nearest
from dse.expressions import Kind
from dse.problem import Constraint, Problem
from dse.problem.parts import Bound, Direction, Input, Metric, Objective
from dse.problem.values import input_value
from dse.units import Unit, UnitError, format_value, parse_quantity, parse_unit

__all__ = ["POINTS", "Axis", "Limit", "Wanted", "front_problem", "limit_of", "read_wanted", "unmappable"]

POINTS = 24
"""Values of a limit, unless told otherwise."""

_MOST_POINTS = 400
_LOG = 20.0
"""A range of positive values whose ends differ by this factor or more is divided in equal ratios."""

_FLIPPED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}


@dataclass(frozen=True, slots=True)
class Limit:
    """An input that constraints compare nodes with: ``bounds`` are (node, operation, constraint) with the limit right."""

    input: Input
    bounds: tuple[tuple[int, str, Constraint], ...]

    def holds(self, values: Sequence[float], limit: float | NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether ``values``, one for each bound, meet the limit."""
        met = [
            _HOLDS[op](value, np.asarray(limit))
            for value, (_, op, _) in zip(values, self.bounds, strict=True)
        ]
        return np.asarray(np.logical_and.reduce(met), dtype=np.bool_)


_HOLDS: dict[str, Callable[[float, NDArray[np.float64]], NDArray[np.bool_]]] = {
    "<=": lambda value, limit: np.asarray(value <= limit),
    "<": lambda value, limit: np.asarray(value < limit),
    ">=": lambda value, limit: np.asarray(value >= limit),
    ">": lambda value, limit: np.asarray(value > limit),
}


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
    """The constraints that compare a metric, or anything else, with exactly this input."""
    bounds = []
    for constraint in problem.constraints:
        left, op, right = constraint.bound.lhs, constraint.bound.op, constraint.bound.rhs
        if op in _FLIPPED and right == known.node:
            bounds.append((left, op, constraint))
        elif op in _FLIPPED and left == known.node:
            bounds.append((right, _FLIPPED[op], constraint))
    return Limit(known, tuple(bounds))


def unmappable(problem: Problem, limit: Limit) -> str:
    """Why a front does not decide for which values of a limit there are feasible designs; empty when it does."""
    name, node = limit.input.name, limit.input.node
    own = {id(constraint) for _, _, constraint in limit.bounds}
    graph = problem.graph
    if not limit.bounds:
        return f"no constraint compares anything with {name} alone"
    if len({op[0] for _, op, _ in limit.bounds}) > 1:
        return f"{name} is a limit from above and from below"
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
    readers += [(f"constraint {c.name}", [left]) for left, _, c in limit.bounds]
    for where, nodes in readers:
        if node in graph.needed(nodes):
            return f"{name} also enters {where}"
    return ""


def front_problem(problem: Problem, limits: Sequence[Limit]) -> tuple[Problem, tuple[tuple[int, ...], ...]]:
    """The problem whose front decides for which values of the limits some design is feasible.

    What the limits bound is its objectives; its constraints are the others, and that the objectives of ``problem`` are
    finite, as they must be in a feasible design.

    Returns:
        The problem, and for each limit the numbers of the objectives that its bounds ask about.
    """
    graph = problem.graph.with_tables(())
    own = {id(constraint) for limit in limits for _, _, constraint in limit.bounds}
    objectives: dict[tuple[int, Direction], Objective] = {}
    metrics = dict(problem.metrics)
    asked = []
    for limit in limits:
        numbers = []
        for node, op, constraint in limit.bounds:
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
                bound = Bound(objective.node, op, graph.number(end, type_))
                text = f"{objective.name} {op} {end}"
                constraints.append(Constraint(text, bound, objective.unit, text, metric=objective.name))
    found = replace(
        problem,
        graph=graph,
        metrics=metrics,
        objectives=tuple(objectives.values()),
        constraints=tuple(constraints),
        errors={},
    )
    return found, tuple(asked)
