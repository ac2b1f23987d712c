"""Why designs fail: by how much constraints are missed, and what would help, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dse.cli.designs import metric_text
from dse.cli.text import paragraph, plural
from dse.evaluation import evaluate_nodes
from dse.problem import Constraint, Problem
from dse.study.result import Miss, Relaxation, Result, design_text
from dse.units import format_value

__all__ = ["bound_text", "failure_lines", "miss_text"]

_SHORT = {"<=": "over", "<": "over", ">=": "under", ">": "under", "==": "away from"}
_EXTREME = {"<=": "lowest", "<": "lowest", ">=": "highest", ">": "highest"}
_STRICT = 1e-300
"""A violation below this is a strict bound met with equality."""


class UnlockLike(Protocol):
    """A set of dimensions that a team would have to be given, and what it gets."""

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        ...

    @property
    def feasible(self) -> int:
        """Feasible designs with them freed."""
        ...


def bound_text(problem: Problem, constraint: Constraint, miss: Miss) -> str:
    """``<= 10 ms``: the bound of a constraint for one design, with its value."""
    measured = {name: value for name, value in miss.metrics.items() if isinstance(value, float)}
    value = evaluate_nodes(problem, miss.design, [constraint.bound.rhs], measured)[constraint.bound.rhs]
    text = format_value(value, constraint.unit) if isinstance(value, float) else str(value)
    return text if constraint.bound.op == "==" else f"{constraint.bound.op} {text}"


def miss_text(problem: Problem, miss: Miss) -> str:
    """``latency 57 ms, 47 ms over <= 10 ms; ...``: what a design misses, and by how much."""
    by_name = {constraint.name: constraint for constraint in problem.constraints}
    parts = []
    for name, amount in miss.violations.items():
        if name not in by_name:
            parts.append(f"{name} does not hold")
            continue
        parts.append(_missed(problem, by_name[name], amount, miss))
    return "; ".join(parts) or "meets every constraint"


def _missed(problem: Problem, constraint: Constraint, amount: float, miss: Miss) -> str:
    because = f" ({constraint.because})" if constraint.because else ""
    if constraint.bound.op == "holds":
        return f"{constraint.text} does not hold{because}"
    bound = bound_text(problem, constraint, miss)
    by = "just" if amount < _STRICT else format_value(amount, constraint.unit)
    gap = f"{by} {_SHORT[constraint.bound.op]} {bound}"
    if constraint.metric:
        return f"{constraint.metric} {metric_text(problem, constraint.metric, miss.metrics.get(constraint.metric))}, {gap}{because}"
    return f"{constraint.text}: {gap}{because}"


def failure_lines(
    result: Result,
    unlocks: tuple[UnlockLike, ...] = (),
    departures: tuple[str, ...] = (),
    *,
    indent: int = 2,
) -> list[str]:
    """Why a search found no feasible design: nearest miss, smallest relaxations, what would unlock it."""
    problem, miss = result.problem, result.nearest_miss
    lines: list[str] = []
    if result.funnel.legal == 0:
        lines += paragraph("every design breaks a rule or is outside the team", indent=indent)
    elif miss is None:
        lines += paragraph("no design could be judged; see the failures", indent=indent)
    else:
        lines += paragraph(f"nearest miss: {miss_text(problem, miss)}", indent=indent)
        lines += paragraph(design_text(problem, miss.design), indent=indent + 2)
    if result.relaxations:
        lines += paragraph("smallest relaxations, each of which is enough:", indent=indent)
    for relaxation in result.relaxations:
        same = miss is not None and relaxation.miss.design == miss.design
        text = _relaxed(problem, relaxation)
        lines += paragraph(f"{text} (the nearest miss)" if same else text, indent=indent + 2)
        if not same:
            lines += paragraph(design_text(problem, relaxation.miss.design), indent=indent + 4)
    for unlock in unlocks:
        freed = " and ".join(unlock.dimensions)
        lines += paragraph(
            f"unlocked by freeing {freed}: {plural(unlock.feasible, 'feasible design')}", indent=indent
        )
    if departures:
        several = "one or more of: " if len(departures) > 1 else ""
        lines += paragraph(
            f"every feasible design of the whole space has {several}{'; '.join(departures)}", indent=indent
        )
    return lines


def _relaxed(problem: Problem, relaxation: Relaxation) -> str:
    """``latency by 47 ms: the lowest of a design that meets the rest is 57 ms, 47 ms over <= 10 ms``."""
    by_name = {constraint.name: constraint for constraint in problem.constraints}
    miss = relaxation.miss
    steps = []
    for name in relaxation.constraints:
        constraint, amount = by_name[name], miss.violations.get(name, 0.0)
        by = "" if constraint.bound.op == "holds" else f" by {format_value(amount, constraint.unit)}"
        steps.append(f"{name}{by}")
    return f"{' and '.join(steps)}: {_why_so_much(problem, relaxation, by_name)}"


def _why_so_much(problem: Problem, relaxation: Relaxation, by_name: Mapping[str, Constraint]) -> str:
    """What the design behind a relaxation is: of one plain bound, the extreme of its metric."""
    miss = relaxation.miss
    rest = " that meets the rest" if len(by_name) > len(relaxation.constraints) else ""
    constraint = by_name[relaxation.constraints[0]]
    plain = (
        constraint.metric
        and constraint.bound.op in _EXTREME
        and not problem.graph[constraint.bound.rhs].support
    )
    if len(relaxation.constraints) > 1 or not plain:
        return f"the closest design{rest} has {miss_text(problem, miss)}"
    assert constraint.metric is not None
    amount = miss.violations.get(constraint.name, 0.0)
    gap = f"{format_value(amount, constraint.unit)} {_SHORT[constraint.bound.op]} {bound_text(problem, constraint, miss)}"
    value = metric_text(problem, constraint.metric, miss.metrics.get(constraint.metric))
    return f"the {_EXTREME[constraint.bound.op]} {constraint.metric} of a design{rest} is {value}, {gap}"
