"""Why designs fail: by how much constraints are missed, and what would help, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dse.cli.designs import metric_text
from dse.cli.text import paragraph, plural
from dse.evaluation import evaluate_nodes
from dse.problem import Constraint, Problem
from dse.study.result import Miss, Result, design_text
from dse.units import format_value

__all__ = ["bound_text", "failure_lines", "miss_text"]

_SHORT = {"<=": "over", "<": "over", ">=": "under", ">": "under", "==": "off"}
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
    return f"{constraint.bound.op} {text}"


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


def _superlative(problem: Problem, names: tuple[str, ...]) -> str:
    """What the design that a relaxation names is among those that meet the rest."""
    rest = len(problem.constraints) - len(names)
    return "closest design that meets the rest" if rest else "closest design"


def failure_lines(
    result: Result, unlocks: tuple[UnlockLike, ...] = (), departures: tuple[str, ...] = (), *, indent: int = 2
) -> list[str]:
    """Why a search found no feasible design: nearest miss, smallest relaxations, what would unlock it."""
    problem = result.problem
    lines: list[str] = []
    miss = result.nearest_miss
    if result.funnel.legal == 0:
        lines += paragraph(
            "no design is legal: every one breaks a rule or is outside the team", indent=indent
        )
    elif miss is None:
        lines += paragraph("no design could be judged; see the failures", indent=indent)
    else:
        lines += paragraph(f"nearest miss: {design_text(problem, miss.design)}", indent=indent)
        lines += paragraph(miss_text(problem, miss), indent=indent + 4, hanging=2)
    for relaxation in result.relaxations:
        names = relaxation.constraints
        lines += paragraph(f"{_relax_text(problem, names, relaxation.miss)} would do:", indent=indent)
        lines += paragraph(
            f"{_superlative(problem, names)}: {design_text(problem, relaxation.miss.design)}",
            indent=indent + 4,
        )
        lines += paragraph(miss_text(problem, relaxation.miss), indent=indent + 4)
    for unlock in unlocks:
        lines += paragraph(
            f"unlock: free {' and '.join(unlock.dimensions)}: {plural(unlock.feasible, 'feasible design')}",
            indent=indent,
        )
    if departures:
        lines += paragraph(
            f"every feasible design of the whole space has {'; '.join(departures)}", indent=indent
        )
    return lines


def _relax_text(problem: Problem, names: tuple[str, ...], miss: Miss) -> str:
    units: Mapping[str, Constraint] = {constraint.name: constraint for constraint in problem.constraints}
    parts = []
    for name in names:
        constraint, amount = units.get(name), miss.violations.get(name)
        if constraint is None or amount is None or constraint.bound.op == "holds":
            parts.append(f"dropping {name}")
        else:
            parts.append(f"relaxing {name} by {format_value(amount, constraint.unit)}")
    return " and ".join(parts)
