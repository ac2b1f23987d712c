"""What ``check`` finds only by looking at designs: empty rules and teams, holes that legal designs reach."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dse.errors import Diagnostic, Location, SpaceError
from dse.evaluation import Blocks, BulkEvaluator, Judge, State, judge
from dse.evaluation.counting import LegalSpace, TooLarge
from dse.evaluation.verdict import condition_holds, spread
from dse.problem import Box, Design, Problem, Rule, Team
from dse.study.lacking import own_rows
from dse.study.legal import WORK
from dse.study.result import design_text

__all__ = ["findings"]

GRID = 65_536
"""Combinations of a condition's own dimensions that are tried one and all."""

LOOKED_AT = 262_144
"""Designs at most that are looked at: the whole space up to this size, else as many at random."""

_VALUES = 20_000_000  # values computed at most, so that a long cost model is not slow to check

_HOLES = 1_000  # missing cells of one table that are followed up
_EXPLAINED = 200  # failing designs whose reason is asked of the scalar evaluator


def findings(problem: Problem) -> list[str]:
    """Warnings about the designs of a problem that can be computed.

    Raises:
        SpaceError: a rule that no design meets, or a team that selects nothing, each with its place.
    """
    errors = _empty_rules(problem) or _empty_teams(problem)
    if errors:
        raise SpaceError(errors)
    if problem.continuous or problem.measured:
        return []
    own = [_at(problem, key, lack.text) for key, lacks in own_rows(problem).items() for lack in lacks]
    return [*own, *_looked_at(problem)]


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
        if all(() in box.allowed for box in team.boxes):
            continue  # what it may choose was left out by --set
        conditions = " and ".join(c.text for box in team.boxes for c in box.where)
        why = ""
        if not any(_met(problem, [c.node for c in box.where], box) for box in team.boxes):
            why = f"no design meets {conditions}" if conditions else "its parts have nothing in common"
        elif not _any_legal(problem, team):
            why = "every one of its designs breaks a rule"
        if why:
            where = problem.locations.get(f"teams.{name}", Location())
            found.append(Diagnostic(where, f"teams.{name}", f"selects nothing: {why}"))
    return found


def _any_legal(problem: Problem, team: Team) -> bool:
    """Whether a team has a legal design; assumed when it has too many to try."""
    if problem.continuous:
        return True
    blocks = Blocks(problem, team, metrics=False)
    return blocks.total > GRID or any(len(blocks.judge(at).positions) for at in range(len(blocks)))


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
    chosen = {name: column[at] for name, column in digits.items()}
    if not len(at):
        drawn = None if whole else _rare(problem, n)
        if drawn is None:
            none = (
                "no design is legal" if whole else f"no legal design was found{among}; legal ones may be rare"
            )
            return [none, *([] if whole else _holes(problem))]
        chosen, whole = drawn
        at = np.arange(len(chosen[problem.names[0]]))
        if not len(at):
            return ["no design is legal"]
        among = "" if whole else f" among {len(at):,} drawn at random"
    outcomes = Judge(problem).evaluate(chosen, len(at))
    found = _failures(problem, chosen, np.flatnonzero(outcomes.failed), among)
    for number, objective in enumerate(problem.objectives):
        infinite = int(np.count_nonzero(outcomes.infinite[:, number] & ~outcomes.failed))
        if infinite:
            designs = "1 legal design" if infinite == 1 else f"{infinite:,} legal designs"
            message = f"infinite for {designs}{among}, so infeasible"
            found.append(_at(problem, f"metrics.{objective.name}", message))
    for number, constraint in enumerate(problem.constraints):
        if ((outcomes.violations[:, number] > 0.0) | outcomes.failed).all():
            key = f"constraints.{constraint.metric or constraint.name}"
            found.append(_at(problem, key, f"no legal design meets {constraint.text}{among}"))
    return found if whole else [*found, *_holes(problem)]


def _rare(problem: Problem, most: int) -> tuple[dict[str, NDArray[np.intp]], bool] | None:
    """Value numbers per dimension of all legal designs, or of ``most`` drawn at random, and whether they are all.

    None where they cannot be counted.
    """
    space = LegalSpace(problem, work=WORK)
    try:
        count = space.count
    except TooLarge:
        return None
    few = count <= most
    digits = space.designs(range(count)) if few else space.draw(np.random.default_rng(0), most)
    return dict(zip(problem.names, digits.T, strict=True)), few


def _holes(problem: Problem) -> list[str]:
    """Missing cells that legal designs reach, table by table: for a space too large to look at as a whole.

    Every combination of a table's own keys is tried; the other dimensions are drawn at random.
    """
    judge_roots = Judge(problem).roots
    found: list[str] = []
    for number in problem.graph.needed(judge_roots):
        if problem.graph[number].op != "cell":
            continue
        grid = _grid(problem, [number])
        if grid is None or not grid:
            continue
        undefined = BulkEvaluator(problem, [number]).evaluate(grid)[number].undefined
        if undefined is None:
            continue
        at = np.flatnonzero(np.broadcast_to(undefined, (len(next(iter(grid.values()))),)))[:_HOLES]
        found += _reached(problem, {name: column[at] for name, column in grid.items()})
    return list(dict.fromkeys(found))


def _reached(problem: Problem, holes: dict[str, NDArray[np.intp]]) -> list[str]:
    """Which of the holes, given by the value numbers of some dimensions, a legal design falls into."""
    count = len(next(iter(holes.values())))
    if not count:
        return []
    each = max(1, min(LOOKED_AT, _VALUES // len(problem.graph.nodes)) // count)
    random = np.random.default_rng(0)
    digits = {
        name: np.repeat(holes[name], each) if name in holes else random.integers(size, size=count * each)
        for name, size in zip(problem.names, problem.sizes, strict=True)
    }
    checks = [rule.check for rule in problem.rules]
    values = BulkEvaluator(problem, checks).evaluate(digits)
    legal = np.ones(count * each, dtype=np.bool_)
    for check in checks:
        legal &= condition_holds(spread(values[check], count * each))
    at = np.flatnonzero(legal)
    chosen = {name: column[at] for name, column in digits.items()}
    failed = np.flatnonzero(Judge(problem).evaluate(chosen, len(at)).failed)
    return _failures(problem, chosen, failed, " where a cell is missing")


def _failures(
    problem: Problem, digits: dict[str, NDArray[np.intp]], failed: NDArray[np.intp], among: str
) -> list[str]:
    """Legal designs without a verdict, by place and reason, with the first of each."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in failed[:_EXPLAINED].tolist():
        design = problem.design_at([int(digits[name][row]) for name in problem.names])
        blame = (_blamed(problem, design), judge(problem, design).reason)
        reasons.setdefault(blame, []).append(design_text(problem, design))
    all_of = len(failed) <= _EXPLAINED
    lines = []
    for (key, reason), designs in reasons.items():
        count = f"{len(designs):,}" if all_of else f"at least {len(designs):,}"
        plural = "design fails" if len(designs) == 1 and all_of else "designs fail"
        lines.append(_at(problem, key, f"{count} legal {plural}{among}: {reason} (first: {designs[0]})"))
    return lines


def _blamed(problem: Problem, design: Design) -> str:
    """The first metric or constraint of a failed design that has no value."""
    for objective in problem.objectives:
        if judge(replace(problem, objectives=(objective,), constraints=()), design).state is State.FAILED:
            return f"metrics.{objective.name}"
    for constraint in problem.constraints:
        if judge(replace(problem, objectives=(), constraints=(constraint,)), design).state is State.FAILED:
            return f"metrics.{constraint.metric}" if constraint.metric else f"constraints.{constraint.name}"
    return ""


def _at(problem: Problem, key: str, message: str) -> str:
    """A warning with the place of what it is about."""
    return str(Diagnostic(problem.locations.get(key, Location()), key, message))
