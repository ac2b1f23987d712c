"""What a design is: illegal, failed, infeasible or feasible, with its objective values and violations.

:func:`judge` decides it for one design with the scalar evaluator; :class:`Judge` for many with the bulk one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError
from dse.evaluation.bulk import Bulk, BulkEvaluator, Digits
from dse.evaluation.scalar import Scalar, Undefined, evaluate_nodes
from dse.evaluation.sentence import sentence
from dse.expressions import Value
from dse.problem import Bound, Constraint, Problem, Rule, Team

__all__ = [
    "GATE",
    "Judge",
    "Outcomes",
    "State",
    "Verdict",
    "weighed",
    "bound_broken",
    "broken_rule",
    "check_enumerable",
    "condition_holds",
    "inside",
    "judge",
    "member",
    "spread",
    "share_of",
    "violations_of",
]

GATE = 2.0**40
"""What a broken constraint that comes first weighs in the nearness of a design: more than all that others may add."""

TINY = math.ulp(0.0)
"""The violation of a strict bound that is met with equality: positive, as every violation is."""


class State(Enum):
    """What became of a design."""

    ILLEGAL = "ILLEGAL"
    FAILED = "FAILED"
    INFEASIBLE = "INFEASIBLE"
    FEASIBLE = "COMPLETE"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one design.

    ``objectives`` are in base units and as declared (not negated); ``violations`` are per constraint in base
    units, 0.0 where it holds; ``infinite`` names the objectives at their worst infinity; ``nearness`` is the sum
    of violation / abs(bound), where one that comes first is one more and times :data:`GATE`. Of an illegal or failed design there is only ``reason``.
    """

    state: State
    reason: str = ""
    rule: Rule | None = None
    objectives: tuple[float, ...] = ()
    violations: tuple[float, ...] = ()
    infinite: tuple[str, ...] = ()
    nearness: float = 0.0


def member(problem: Problem, team: Team, design: Mapping[str, Value]) -> bool:
    """Whether the team may choose the design."""
    for box in team.boxes:
        narrowed = [
            (d.name, box.allowed[at])
            for at, d in enumerate(problem.dimensions)
            if box.allowed[at] is not None
        ]
        if all(problem.digit(name, design[name]) in (allowed or ()) for name, allowed in narrowed):
            values = evaluate_nodes(problem, design, [c.node for c in box.where])
            if all(values[c.node] is True for c in box.where):
                return True
    return False


def broken_rule(problem: Problem, design: Mapping[str, Value]) -> Rule | None:
    """The first rule that the design breaks; None when it is legal."""
    values = evaluate_nodes(problem, design, [rule.check for rule in problem.rules])
    return next((rule for rule in problem.rules if values[rule.check] is not True), None)


def judge(
    problem: Problem, design: Mapping[str, Value], measured: Mapping[str, float] | None = None
) -> Verdict:
    """The verdict on one design, by the scalar reference.

    Raises:
        InputError: the problem has a measured metric that is needed and not given.
    """
    rule = broken_rule(problem, design)
    if rule is not None:
        return Verdict(State.ILLEGAL, sentence(problem, rule.because, design), rule)
    bounds = [c.bound for c in problem.constraints]
    roots = [o.node for o in problem.objectives] + [n for b in bounds for n in (b.lhs, b.rhs)]
    values = evaluate_nodes(problem, design, roots, measured)
    objectives, infinite = [], []
    for objective in problem.objectives:
        value = values[objective.node]
        if failure := _failure(objective.name, value):
            return Verdict(State.FAILED, failure)
        assert isinstance(value, float)
        if value * objective.sign == -math.inf:
            return Verdict(State.FAILED, f"unbounded objective: {objective.name} is {value}")
        if value * objective.sign == math.inf:
            infinite.append(objective.name)
        objectives.append(value + 0.0)
    violations, nearness = [], 0.0
    for constraint in problem.constraints:
        bound = constraint.bound
        for node, name in (
            (bound.lhs, constraint.metric or constraint.name),
            (bound.rhs, f"the bound {constraint.text}"),
        ):
            if failure := _failure(name, values[node]):
                return Verdict(State.FAILED, failure)
        violation, scale = _violation(bound, values)
        violations.append(violation)
        share = violation / scale
        nearness += (share + 1.0) * GATE if constraint.first and violation > 0.0 else share
    met = not infinite and not any(violations)
    return Verdict(
        State.FEASIBLE if met else State.INFEASIBLE,
        "",
        None,
        tuple(objectives),
        tuple(violations),
        tuple(infinite),
        nearness,
    )


def _failure(name: str, value: Scalar) -> str:
    if isinstance(value, Undefined):
        return value.reason if value.missing else f"{name} is undefined: {value.reason}"
    return f"{name} is NaN" if isinstance(value, float) and value != value else ""


def share_of(bound: Bound, values: Mapping[int, Scalar]) -> float | None:
    """Violation / abs(bound) of one design; None where the bound holds, or a side has no value."""
    if any(_failure("", values[side]) for side in (bound.lhs, bound.rhs)):
        return None
    violation, scale = _violation(bound, values)
    return violation / scale if violation > 0.0 else None


def _violation(bound: Bound, values: Mapping[int, Scalar]) -> tuple[float, float]:
    """The violation of a bound and what it is measured against."""
    lhs, rhs = values[bound.lhs], values[bound.rhs]
    if bound.op == "holds":
        return (0.0 if lhs is True else 1.0), 1.0
    assert isinstance(lhs, float)
    assert isinstance(rhs, float)
    scale = abs(rhs) if 0.0 < abs(rhs) < math.inf else 1.0
    holds = {"<=": lhs <= rhs, "<": lhs < rhs, ">=": lhs >= rhs, ">": lhs > rhs, "==": lhs == rhs}[bound.op]
    if holds:
        return 0.0, scale
    if bound.op == "==":
        return abs(lhs - rhs), scale
    excess = lhs - rhs if bound.op in ("<=", "<") else rhs - lhs
    return (excess if excess > 0.0 else TINY), scale


class Outcomes(NamedTuple):
    """The outcomes of ``n`` legal designs.

    ``objectives`` (n, k) are minimized (maximized ones negated), in base units, and mean nothing where ``failed``;
    ``violations`` (n, c) in base units; ``infinite`` (n, k) is where an objective is at its worst infinity;
    ``nearness`` (n,) as of a :class:`Verdict`.
    """

    objectives: NDArray[np.float64]
    violations: NDArray[np.float64]
    infinite: NDArray[np.bool_]
    nearness: NDArray[np.float64]
    failed: NDArray[np.bool_]
    feasible: NDArray[np.bool_]


class Judge:
    """Judges many legal designs at once. ``roots`` are the nodes whose values :meth:`outcomes` needs."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.roots = [o.node for o in problem.objectives]
        self.roots += [n for c in problem.constraints for n in (c.bound.lhs, c.bound.rhs)]

    def evaluate(self, digits: Digits, count: int, evaluator: BulkEvaluator | None = None) -> Outcomes:
        """The outcomes of ``count`` legal designs given as equally long arrays of value numbers."""
        evaluator = evaluator or BulkEvaluator(self.problem, self.roots)
        values = evaluator.evaluate(digits)
        return self.outcomes({root: spread(values[root], count) for root in self.roots}, count)

    def outcomes(self, values: Mapping[int, Bulk], n: int) -> Outcomes:
        """The outcomes of ``n`` designs from the values of :attr:`roots`, each of shape (n,)."""
        problem = self.problem
        objectives = np.empty((n, len(problem.objectives)))
        violations = np.empty((n, len(problem.constraints)))
        nearness = np.zeros(n)
        failed = np.zeros(n, dtype=np.bool_)
        for root in self.roots:
            found, undefined = values[root]
            if undefined is not None:
                failed |= undefined != 0
            if found.dtype == np.float64:
                failed |= np.isnan(found)
        with np.errstate(all="ignore"):
            for at, objective in enumerate(problem.objectives):
                objectives[:, at] = values[objective.node].values * objective.sign + 0.0
            for at, constraint in enumerate(problem.constraints):
                violation, scale = violations_of(constraint.bound, values)
                violations[:, at] = violation
                nearness += weighed(constraint, violation, scale)
        failed |= np.isneginf(objectives).any(axis=1)
        infinite = np.isposinf(objectives)
        feasible = ~failed & ~infinite.any(axis=1) & ~(violations > 0.0).any(axis=1)
        return Outcomes(objectives, violations, infinite, nearness, failed, feasible)


def spread(bulk: Bulk, n: int) -> Bulk:
    """A value of any shape as one of shape (n,)."""
    undefined = None if bulk.undefined is None else np.broadcast_to(bulk.undefined, (n,))
    return Bulk(np.broadcast_to(bulk.values, (n,)), undefined)


def condition_holds(value: Bulk) -> NDArray[np.bool_]:
    """Where a condition is true and defined; a shape that broadcasts to the value's."""
    held: NDArray[np.bool_] = (
        value.values if value.undefined is None else value.values & (value.undefined == 0)
    )
    return held


def inside(
    problem: Problem, team: Team, digits: Digits, values: Mapping[int, Bulk], n: int
) -> NDArray[np.bool_]:
    """Which of ``n`` designs the team may choose.

    Args:
        digits: value numbers (n,) of the dimensions that are known; a dimension that is not narrows nothing.
        values: those of the team's conditions.
    """
    union = np.zeros(n, dtype=np.bool_)
    for box in team.boxes:
        held = np.ones(n, dtype=np.bool_)
        for name, allowed in zip(problem.names, box.allowed, strict=True):
            if allowed is not None and name in digits:
                held &= np.isin(digits[name], allowed)
        for conjunct in box.where:
            held &= condition_holds(values[conjunct.node])
        union |= held
    return union


def bound_broken(bound: Bound, values: Mapping[int, Bulk]) -> NDArray[np.bool_]:
    """Where a bound is certainly violated: both sides are defined numbers and the comparison is false."""
    sides = (values[bound.lhs], values[bound.rhs])
    with np.errstate(all="ignore"):
        broken = violations_of(bound, values)[0] > 0.0
    for side in sides:
        if side.undefined is not None:
            broken &= side.undefined == 0
        if side.values.dtype == np.float64:
            broken &= ~np.isnan(side.values)
    return broken


def violations_of(
    bound: Bound, values: Mapping[int, Bulk]
) -> tuple[NDArray[np.float64], NDArray[np.float64] | float]:
    """The violations of a bound, and what they are measured against."""
    lhs, rhs = values[bound.lhs].values, values[bound.rhs].values
    if bound.op == "holds":
        return np.where(lhs, 0.0, 1.0), 1.0
    size = np.abs(rhs)
    scale = np.where((size > 0.0) & (size < np.inf), size, 1.0)
    if bound.op == "==":
        return np.where(lhs == rhs, 0.0, np.abs(lhs - rhs)), scale
    excess = lhs - rhs if bound.op in ("<=", "<") else rhs - lhs
    holds = {"<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater}[bound.op](lhs, rhs)
    return np.where(holds, 0.0, np.where(excess > 0.0, excess, TINY)), scale


def weighed(
    constraint: Constraint, violation: NDArray[np.float64], scale: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """What violations of a constraint add to the nearness of designs."""
    share: NDArray[np.float64] = violation / scale
    return np.where(violation > 0.0, (share + 1.0) * GATE, share) if constraint.first else share


def check_enumerable(problem: Problem) -> None:
    """Refuse a space that has no list of designs.

    Raises:
        InputError: a dimension is continuous.
    """
    if problem.continuous:
        raise InputError(
            f"dimension {problem.continuous[0]!r} is continuous, so designs cannot be listed; "
            "give it `step` or `count`, or search with a sampling solver"
        )
