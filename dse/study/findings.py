"""What ``check`` finds only by looking at designs: empty rules and teams, holes that legal designs reach."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dse.errors import Diagnostic, Location, SpaceError
from dse.evaluation import BulkEvaluator, Judge, judge
from dse.evaluation.verdict import condition_holds, spread
from dse.problem import Box, Problem, Rule
from dse.study.result import design_text

__all__ = ["findings"]

GRID = 65_536
"""Combinations of a condition's own dimensions that are tried one and all."""

LOOKED_AT = 262_144
"""Designs at most that are looked at: the whole space up to this size, else as many at random."""

_VALUES = 20_000_000  # values computed at most, so that a long cost model is not slow to check

_EXPLAINED = 200  # failing designs whose reason is asked of the scalar evaluator


def findings(problem: Problem) -> list[str]:
    """Warnings about the designs of a problem that can be computed.

    Raises:
        SpaceError: a rule that no design meets, or a team that selects nothing, each with its place.
    """
    errors = [*_empty_rules(problem), *_empty_teams(problem)]
    if errors:
        raise SpaceError(errors)
    if problem.continuous or problem.measured:
        return []
    return _looked_at(problem)


# -- conditions that nothing meets -----------------------------------------------------------------


def _grid(
    problem: Problem, nodes: Iterable[int], box: Box | None = None
) -> dict[str, NDArray[np.intp]] | None:
    """All value numbers of the dimensions that ``nodes`` depend on, as flat columns; None when they are too many."""
    names = sorted({name for node in nodes for name in problem.graph[node].support}, key=problem.names.index)
    axes = []
    for name in names:
        at = problem.names.index(name)
        if problem.dimensions[at].interval is not None:
            return None
        allowed = box.allowed[at] if box else None
        axes.append(np.arange(problem.sizes[at]) if allowed is None else np.array(allowed, dtype=np.intp))
    if math.prod(len(axis) for axis in axes) > GRID:
        return None
    columns = np.meshgrid(*axes, indexing="ij") if axes else []
    return {name: column.reshape(-1) for name, column in zip(names, columns, strict=True)}


def _met(problem: Problem, nodes: Sequence[int], box: Box | None = None) -> bool:
    """Whether some combination meets all conditions; assumed when there are too many to try."""
    digits = _grid(problem, nodes, box)
    if digits is None:
        return True
    n = max((len(column) for column in digits.values()), default=1)
    values = BulkEvaluator(problem, nodes).evaluate(digits)
    held = np.ones(n, dtype=np.bool_)
    for node in nodes:
        held &= condition_holds(spread(values[node], n))
    return bool(held.any())


def _empty_rules(problem: Problem) -> list[Diagnostic]:
    def message(rule: Rule) -> Diagnostic:
        return Diagnostic(
            rule.location, f"rules.{rule.name}.check", f"no design meets {rule.text!r}; it must hold for some"
        )

    return [message(rule) for rule in problem.rules if not _met(problem, [rule.check])]


def _empty_teams(problem: Problem) -> list[Diagnostic]:
    found = []
    for name, team in problem.teams.items():
        if not any(_met(problem, [c.node for c in box.where], box) for box in team.boxes):
            conditions = " and ".join(c.text for box in team.boxes for c in box.where)
            where = problem.locations.get(f"teams.{name}", Location())
            found.append(Diagnostic(where, f"teams.{name}", f"selects nothing: no design meets {conditions}"))
    return found


# -- designs ---------------------------------------------------------------------------------------


def _sample(problem: Problem) -> tuple[dict[str, NDArray[np.intp]], int, bool]:
    """Value numbers per dimension of all designs, or of many drawn at random with a fixed seed; how many; if all."""
    limit = min(LOOKED_AT, _VALUES // len(problem.graph.nodes))
    whole = problem.size <= limit
    n = problem.size if whole else limit
    digits: dict[str, NDArray[np.intp]] = {}
    if whole:
        rest = np.arange(n)
        for name, size in zip(reversed(problem.names), reversed(problem.sizes), strict=True):
            rest, digits[name] = np.divmod(rest, size)
    else:
        random = np.random.default_rng(0)
        digits = {
            name: random.integers(size, size=n)
            for name, size in zip(problem.names, problem.sizes, strict=True)
        }
    return digits, n, whole


def _looked_at(problem: Problem) -> list[str]:
    digits, n, whole = _sample(problem)
    checks = [rule.check for rule in problem.rules]
    values = BulkEvaluator(problem, checks).evaluate(digits)
    legal = np.ones(n, dtype=np.bool_)
    for check in checks:
        legal &= condition_holds(spread(values[check], n))
    at = np.flatnonzero(legal)
    among = "" if whole else f" among {n:,} drawn at random"
    if not len(at):
        return [f"no design is legal{among}"]
    chosen = {name: column[at] for name, column in digits.items()}
    outcomes = Judge(problem).evaluate(chosen, len(at))
    found = _failures(problem, chosen, np.flatnonzero(outcomes.failed), among)
    for number, objective in enumerate(problem.objectives):
        infinite = int(np.count_nonzero(outcomes.infinite[:, number] & ~outcomes.failed))
        if infinite:
            found.append(
                f"{objective.name} is infinite for {infinite:,} legal designs{among}, which makes them infeasible"
            )
    for number, constraint in enumerate(problem.constraints):
        if ((outcomes.violations[:, number] > 0.0) | outcomes.failed).all():
            found.append(f"no legal design meets the constraint {constraint.text}{among}")
    return found


def _failures(
    problem: Problem, digits: dict[str, NDArray[np.intp]], failed: NDArray[np.intp], among: str
) -> list[str]:
    """Legal designs without a verdict, by reason, with the first of each."""
    reasons: dict[str, list[str]] = {}
    for row in failed[:_EXPLAINED].tolist():
        design = problem.design_at([int(digits[name][row]) for name in problem.names])
        reasons.setdefault(judge(problem, design).reason, []).append(design_text(problem, design))
    all_of = len(failed) <= _EXPLAINED
    lines = []
    for reason, designs in reasons.items():
        count = f"{len(designs):,}" if all_of else f"at least {len(designs):,}"
        plural = "design fails" if len(designs) == 1 and all_of else "designs fail"
        lines.append(f"{count} legal {plural}{among}: {reason} (first: {designs[0]})")
    return lines
