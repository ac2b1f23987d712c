"""Constraints that come first: of a design that breaks one, nothing else is told."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.prepared import prepared
from dse.evaluation.scalar import evaluate_nodes
from dse.evaluation.verdict import share_of
from dse.expressions import Value
from dse.problem import Constraint, Problem

__all__ = [
    "broken_first",
    "rows_told",
    "told_despite",
    "told_metrics",
    "told_of",
    "told_together",
    "told_violations",
]

_T = TypeVar("_T")


def broken_first(
    problem: Problem, design: Mapping[str, Value], measured: Mapping[str, float] | None = None
) -> dict[str, float]:
    """The constraints that come first and that a legal design breaks, with violation / abs(bound).

    One that waits for a measurement is not known to be broken.
    """
    graph, given = problem.graph, measured or {}
    broken: dict[str, float] = {}
    for constraint in problem.constraints:
        sides = (constraint.bound.lhs, constraint.bound.rhs)
        if not constraint.first or any(
            name not in given for side in sides for name in graph.leaves(side, "measured")
        ):
            continue
        share = share_of(constraint.bound, evaluate_nodes(problem, design, sides, given))
        if share is not None:
            broken[constraint.name] = share
    return broken


def told_metrics(problem: Problem, constraint: Constraint) -> frozenset[str]:
    """The metrics that a constraint compares, and what they are sums of."""

    def make() -> frozenset[str]:
        graph, names = problem.graph, {m.node: m.name for m in reversed([*problem.metrics.values()])}
        stack, found = [constraint.bound.lhs, constraint.bound.rhs], set()
        while stack:
            node = stack.pop()
            if node in names:
                found.add(names[node])
            elif graph[node].op not in ("dimension", "input", "const", "cell", "position", "measured"):
                stack += graph[node].args
        parts = list(found)
        while parts:
            more = [part for part in problem.metrics[parts.pop()].parts if part not in found]
            found.update(more)
            parts += more
        return frozenset(found)

    return prepared(problem, ("told", constraint.name, constraint.bound), make)


def told_despite(problem: Problem) -> frozenset[str]:
    """What is told of every design: the constraints that come first, and the metrics that these compare."""
    first = [constraint for constraint in problem.constraints if constraint.first]
    return frozenset(c.name for c in first).union(*(told_metrics(problem, c) for c in first))


def told_of(problem: Problem, broken: Collection[str], metrics: Mapping[str, _T]) -> dict[str, _T | None]:
    """The metrics of a design that breaks some constraints that come first: None but for what these compare.

    What was measured is told all the same.
    """
    told = frozenset[str]().union(
        *(told_metrics(problem, c) for c in problem.constraints if c.name in broken)
    )
    return {
        name: value if name in told or problem.metrics[name].measured else None
        for name, value in metrics.items()
    }


def told_violations(problem: Problem, violations: Sequence[float]) -> tuple[float | None, ...]:
    """Per constraint by how much it is broken; None for those of which nothing is told, as one that comes first is."""
    pairs = [*zip(problem.constraints, violations, strict=True)]
    if not any(constraint.first and violation > 0.0 for constraint, violation in pairs):
        return tuple(violations)
    return tuple(violation if constraint.first else None for constraint, violation in pairs)


def told_together(problem: Problem, broken: Collection[str]) -> bool:
    """Whether all these broken constraints are told of one design: none that comes first is among others."""
    first = {constraint.name for constraint in problem.constraints if constraint.first}
    return first.isdisjoint(broken) or first.issuperset(broken)


def rows_told(problem: Problem, violations: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    """Of which designs everything is told (n,), by their violations (n, constraints); None if nothing comes first."""
    first = [at for at, constraint in enumerate(problem.constraints) if constraint.first]
    if not first:
        return None
    return np.asarray((violations[:, first] <= 0.0).all(axis=1), dtype=np.bool_)
