"""How much of an input would do: where no design is feasible, inputs that may grow are multiplied until one is."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

from dse.errors import InputError, SolverRefused
from dse.evaluation import State as Outcome
from dse.evaluation import judge
from dse.evaluation.hull import Hull
from dse.evaluation.sentence import broken_whatever_the_design
from dse.problem import Objective, Problem, Team
from dse.problem.parts import Direction, Input, plain_value
from dse.study.choosing import Choice
from dse.study.listing import legal_count
from dse.study.registry import able, load_solver
from dse.study.result import Result
from dse.study.solver import ExactSearch, ExactSolver, State
from dse.study.tally import Tally
from dse.units import Quantity, parse_unit

__all__ = ["DOUBLINGS", "SECONDS", "Grown", "grown", "grown_for"]

DOUBLINGS = 12
"""How often an input is multiplied at most."""

SECONDS = 10.0
"""What looking may take, over all inputs; a value that is begun may take longer to prepare."""

LONGEST = 20.0
"""What it may take after a search that took long itself: four times as long, up to this."""

PATIENCE = 2
"""Multiplications in a row after which no more are tried if the nearest miss did not come nearer."""

_NEARER = 1.0 - 1e-6
"""By what a nearest miss must shrink to count as nearer."""

_MANY = 1_000_000
"""Designs beyond which whole boxes of them are discarded."""


@dataclass(frozen=True, slots=True)
class Grown:
    """What came of letting one input grow; values in base units.

    ``enough`` is the first value with which some design is feasible, None if none was found. With each of ``without``
    none is: that is proven. ``undecided`` is the value at which time ran out. ``stuck`` says that no more was tried, as
    the last of ``without`` came no nearer.
    """

    input: Input
    without: tuple[float, ...] = ()
    enough: float | None = None
    undecided: float | None = None
    stuck: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, in the input's unit."""
        unit = self.input.unit

        def plain(value: float | None) -> Any:
            return None if value is None else plain_value(value, unit)

        return {
            "input": self.input.name,
            "unit": None if unit is None else unit.text,
            "enough": plain(self.enough),
            "without": [plain(value) for value in self.without],
            "undecided": plain(self.undecided),
            "stuck": self.stuck,
        }


def grown_for(result: Result, *, seconds: float | None = None) -> tuple[Grown, ...]:
    """What would do where an exact search proved that no design is feasible; empty for any other result.

    Args:
        seconds: what all searches together may take; by default, four times what the search itself took, within limits.
    """
    proven = result.promise == "exact" and result.status == "complete"
    if result.feasible or not proven or (result.funnel.legal and result.funnel.failed == result.funnel.legal):
        return ()  # what fails whatever the plan is no matter of how much
    took = result.run.get("seconds") or 0.0
    allowed = max(SECONDS, min(4.0 * took, LONGEST)) if seconds is None else seconds
    return grown(result.problem, result.problem.team(result.team), seconds=allowed)


def grown(
    problem: Problem,
    team: str | Team | None = None,
    *,
    seconds: float = SECONDS,
    doublings: int = DOUBLINGS,
) -> tuple[Grown, ...]:
    """For each input that may grow, what it would have to be for some design to be feasible.

    Each is multiplied by its ``grow``, again and again, while all other inputs keep their values; every value is
    searched until a feasible design is found or it is proven that there is none. No more are tried once the nearest
    miss came no nearer over two.

    Args:
        seconds: what all searches together may take.
        doublings: how often an input is multiplied at most.
    """
    deadline = time.monotonic() + seconds
    whose = problem.team(team)
    growing = [declared for declared in problem.inputs.values() if declared.grow is not None]
    for rule in broken_whatever_the_design(problem):  # only what such a rule reads can change its mind
        read = problem.graph.leaves(rule.check, "input")
        growing = [declared for declared in growing if declared.name in read]
    return tuple(_grow(problem, whose, declared, doublings, deadline) for declared in growing)


def _grow(problem: Problem, team: Team, declared: Input, doublings: int, deadline: float) -> Grown:
    without: list[float] = []
    assert isinstance(declared.value, float)
    assert declared.grow is not None
    value = declared.value
    nearest, idle = math.inf, 0
    for _ in range(doublings):
        value, before = value * declared.grow, value
        if not before < value < float("inf") or (declared.limits and not declared.limits.allow(value)):
            break
        given = value if declared.unit is None else Quantity(value, declared.unit)
        found, miss = _feasible(problem.with_inputs({declared.name: given}), team, deadline)
        if found is None:
            return Grown(declared, tuple(without), undecided=value)
        if found:
            return Grown(declared, tuple(without), enough=value)
        without.append(value)
        nearer = miss is None or miss < nearest * _NEARER
        nearest, idle = nearest if miss is None else min(nearest, miss), 0 if nearer else idle + 1
        if idle == PATIENCE:
            return Grown(declared, tuple(without), stuck=True)
    return Grown(declared, tuple(without))


class _Known(Exception):
    """Raised inside a solver when a feasible design was found, or time is over."""


def _feasible(problem: Problem, team: Team, deadline: float) -> tuple[bool | None, float | None]:
    """Whether some design of the team is feasible, None when that is not known by the deadline; and how near one is."""
    if problem.continuous or time.monotonic() > deadline:
        return None, None
    if legal_count(problem, team) == 0:
        return False, None
    simpler = _bounded(problem)
    if simpler is not None:
        tally = _first(simpler, team, deadline)
        if tally is None:
            return None, None
        if not tally.feasible and not _unbounded(tally):
            return False, _miss(tally)  # what is not feasible here is not feasible there either
        for position in tally.archive.to_arrays()[1]:
            design = problem.design_at(Hull(problem, team).digits_of(position))
            if judge(problem, design).state is Outcome.FEASIBLE:
                return True, None
    tally = _first(problem, team, deadline)
    return (None, None) if tally is None else (bool(tally.feasible), _miss(tally))


def _miss(tally: Tally) -> float | None:
    """How near the nearest miss is; None where there is none, or designs were discarded that may be nearer."""
    keys = tally.nearest.arrays()["keys"]
    return None if tally.pruned or not len(keys) else float(keys[0])


def _unbounded(tally: Tally) -> bool:
    """Whether designs may have been lost because what was searched for, and no constraint, has no finite value."""
    infinite = tally.in_order[len(tally.problem.constraints) :]
    return bool(tally.failed) or any(infinite) or any("not finite" in why for why in tally.pruned)


def _bounded(problem: Problem) -> Problem | None:
    """The problem with what its first bound is on as the objective; None where nothing is bounded.

    It is less to compute, and its best designs are the first to be feasible.
    """
    for constraint in problem.constraints:
        bound = constraint.bound
        if bound.op in _DIRECTIONS:
            unit = constraint.unit or parse_unit("1")
            goal = Objective(constraint.name, bound.lhs, _DIRECTIONS[bound.op], unit)
            return replace(problem, objectives=(goal,))
    return None


_DIRECTIONS: dict[str, Direction] = {"<=": "minimize", "<": "minimize", ">=": "maximize", ">": "maximize"}


def _first(problem: Problem, team: Team, deadline: float) -> Tally | None:
    """What an exact search knows when it has found a feasible design, or none of all; None if time ran out."""
    solver = None if time.monotonic() > deadline else _exact(problem, team)
    if solver is None:
        return None

    def on_tick(state: State, done: float) -> None:
        if search.tally.feasible or (done < 1.0 and time.monotonic() > deadline):
            raise _Known

    search = ExactSearch(problem, team, Tally(problem), on_tick=on_tick)
    try:
        if all(team.hull(problem.sizes)):
            solver.explore(search)
    except _Known:
        return search.tally if search.tally.feasible else None
    return search.tally


def _exact(problem: Problem, team: Team) -> ExactSolver | None:
    """Of many designs a solver that discards by bounds, of few or where none can the one that ``auto`` picks.

    Few are also a million legal ones among any number, which can be listed.
    """
    choice = Choice(problem, team, "exact")
    many = math.prod(map(len, team.hull(problem.sizes))) > _MANY
    if many:
        legal = legal_count(problem, team)
        many = legal is None or legal > _MANY
    names = able(problem, team, "exact") if many else []
    name = next((name for name in names if "bounds" in load_solver(name).needs), None)
    try:
        solver = choice.accepted(name or choice.automatic(None, sampling=False)[0])
    except (InputError, SolverRefused):
        return None
    return solver if isinstance(solver, ExactSolver) else None
