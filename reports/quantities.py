"""What can stand on an axis - an objective, a metric, a constraint's violation, the index - and its values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError, nearest
from dse.evaluation import BulkEvaluator, evaluate_nodes
from dse.evaluation.gates import rows_told, told_despite
from dse.evaluation.verdict import spread
from dse.problem import Constraint, Problem
from dse.study.result import FrontPoint, Kept, Miss
from dse.units import Unit, from_base

__all__ = ["INDEX", "Quantity", "constant", "fixed_bound", "quantity"]

INDEX = "index"
_EXACT = 2**53  # indices below are exact doubles

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something with one number per design.

    ``kind`` says where the numbers come from, ``at`` which objective or constraint it is, ``node`` which metric;
    ``better`` is the direction of an objective, or empty.
    """

    name: str
    kind: Literal["objective", "metric", "violation", "index"]
    unit: Unit | None = None
    better: Literal["minimize", "maximize", ""] = ""
    at: int = 0
    node: int = -1

    def of_kept(self, problem: Problem, kept: Kept) -> Floats:
        """The value of every kept design, shape (n,), in the unit that is printed; NaN where there is none or none is told.

        Raises:
            InputError: the metric is measured, so its value is not among what is kept.
        """
        if self.kind == "index" or self.name in told_despite(problem):
            return self._of_kept(problem, kept)
        told = rows_told(problem, kept.violations)
        values = self._of_kept(problem, kept)
        return values if told is None else np.where(told, values, math.nan)

    def _of_kept(self, problem: Problem, kept: Kept) -> Floats:
        count = len(kept.feasible)
        if self.kind == "objective":
            return scaled(kept.objectives[:, self.at], self.unit)
        if self.kind == "violation":
            return scaled(kept.violations[:, self.at], self.unit)
        if self.kind == "index":
            return (
                _positions(problem, kept.digits)
                if not problem.continuous
                else np.arange(count, dtype=np.float64)
            )
        digits = {name: kept.digits[:, at] for at, name in enumerate(problem.names)}
        values, undefined = spread(BulkEvaluator(problem, [self.node]).evaluate(digits)[self.node], count)
        numbers = scaled(values.astype(np.float64), self.unit)
        return numbers if undefined is None else np.where(undefined != 0, math.nan, numbers)

    def of_point(self, problem: Problem, point: FrontPoint | Miss) -> float:
        """The value of a front point or a near miss, in the unit that is printed; NaN where there is none."""
        if self.kind == "index":
            if point.index is None:
                return math.nan
            return float(point.index) if problem.size <= _EXACT else point.index / problem.size
        if self.kind == "violation":
            broken = point.violations if isinstance(point, Miss) else {}
            hidden = self.name not in broken and not told_despite(problem).isdisjoint(broken)
            value: object = None if hidden else broken.get(self.name, 0.0)
        else:
            value = point.metrics.get(self.name)
            if value is None and isinstance(point, FrontPoint):
                value = point.objectives.get(self.name)
        return from_base(value, self.unit) if isinstance(value, float) else math.nan


def scaled(values: Floats, unit: Unit | None) -> Floats:
    """Base units to the unit that is printed."""
    with np.errstate(over="ignore"):
        return values * float(1 / unit.scale) if unit is not None else values


def _positions(problem: Problem, digits: NDArray[np.intp]) -> Floats:
    """The indices as doubles; of a space too large for that, the share of the space that lies before each."""
    large = problem.size > _EXACT
    total = np.zeros(len(digits))
    stride = 1.0 if large else float(problem.size)
    for at, size in enumerate(problem.sizes):
        stride /= size
        total += digits[:, at] * stride
    return total


def quantity(problem: Problem, name: str) -> Quantity:
    """What ``name`` stands for: an objective, a metric, a constraint (its metric, or its violation) or ``index``.

    Raises:
        InputError: nothing has this name, or its values are not kept; the message has the nearest spelling.
    """
    for at, objective in enumerate(problem.objectives):
        if objective.name == name:
            return Quantity(name, "objective", objective.unit, objective.direction, at, objective.node)
    metric = problem.metrics.get(name)
    if metric is not None:
        return _metric(problem, name)
    for at, constraint in enumerate(problem.constraints):
        if constraint.name == name:
            if constraint.metric is not None:
                return quantity(problem, constraint.metric)
            return Quantity(name, "violation", constraint.unit, "", at)
    if name == INDEX:
        return Quantity(INDEX, "index")
    known = dict.fromkeys([*problem.metrics, *(c.name for c in problem.constraints), INDEX])
    raise InputError(
        f"an axis must be a metric, a constraint or the index, but got {name!r}{nearest(name, known)}"
    )


def _metric(problem: Problem, name: str) -> Quantity:
    metric = problem.metrics[name]
    if measures(problem, metric.node):
        raise InputError(
            f"metric {name!r} is measured and no objective, so its values are not kept for a plot"
        )
    if problem.continuous:
        raise InputError(
            f"metric {name!r} is no objective, and a space with continuous dimensions keeps only objectives"
        )
    return Quantity(name, "metric", metric.unit, "", 0, metric.node)


def measures(problem: Problem, node: int) -> bool:
    """Whether a node needs a measured metric."""
    return bool(problem.graph.leaves(node, "measured"))


def constant(problem: Problem, node: int) -> float | None:
    """The value of a node that is the same for every design; None when it is not, or is no finite number."""
    if problem.graph[node].support or measures(problem, node):
        return None
    value = evaluate_nodes(problem, {}, [node])[node]
    return value if isinstance(value, float) and math.isfinite(value) else None


_MIRRORED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "==": "=="}


def fixed_bound(problem: Problem, constraint: Constraint, node: int) -> tuple[str, float] | None:
    """``("<=", 0.01)``: what a constraint demands of ``node``, when that is the same for every design."""
    op, lhs, rhs = constraint.bound.op, constraint.bound.lhs, constraint.bound.rhs
    if op == "holds" or node not in (lhs, rhs):
        return None
    value = constant(problem, rhs if node == lhs else lhs)
    if value is None:
        return None
    return (op if node == lhs else _MIRRORED[op]), value
