"""How much of an input would do: where no design is feasible, inputs that may grow are multiplied until one is."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from dse.errors import InputError, SolverRefused
from dse.problem import Problem, Team
from dse.problem.parts import Input, plain_value
from dse.study.choosing import Choice
from dse.study.result import Result
from dse.study.solver import ExactSearch, ExactSolver, State
from dse.study.tally import Tally
from dse.units import Quantity

__all__ = ["DOUBLINGS", "SECONDS", "Grown", "grown", "grown_for"]

DOUBLINGS = 12
"""How often an input is multiplied at most."""

SECONDS = 8.0
"""What looking may take, over all inputs; a value that is begun may take longer to prepare."""


@dataclass(frozen=True, slots=True)
class Grown:
    """What came of letting one input grow; values in base units.

    ``enough`` is the first value with which some design is feasible, None if none was found. With each of ``without``
    none is: that is proven. ``undecided`` is the value at which time ran out.
    """

    input: Input
    without: tuple[float, ...] = ()
    enough: float | None = None
    undecided: float | None = None

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
        }


def grown_for(result: Result, *, seconds: float = SECONDS) -> tuple[Grown, ...]:
    """What would do where an exact search proved that no design is feasible; empty for any other result."""
    proven = result.promise == "exact" and result.status == "complete"
    if result.feasible or not proven:
        return ()
    return grown(result.problem, result.problem.team(result.team), seconds=seconds)


def grown(
    problem: Problem,
    team: str | Team | None = None,
    *,
    seconds: float = SECONDS,
    doublings: int = DOUBLINGS,
) -> tuple[Grown, ...]:
    """For each input that may grow, what it would have to be for some design to be feasible.

    Each is multiplied by its ``grow``, again and again, while all other inputs keep their values; every value is
    searched until a feasible design is found or it is proven that there is none.

    Args:
        seconds: what all searches together may take.
        doublings: how often an input is multiplied at most.
    """
    deadline = time.monotonic() + seconds
    whose = problem.team(team)
    return tuple(
        _grow(problem, whose, declared, doublings, deadline)
        for declared in problem.inputs.values()
        if declared.grow is not None
    )


def _grow(problem: Problem, team: Team, declared: Input, doublings: int, deadline: float) -> Grown:
    without: list[float] = []
    assert isinstance(declared.value, float) and declared.grow is not None
    value = declared.value
    for _ in range(doublings):
        value, before = value * declared.grow, value
        if not before < value < float("inf") or (declared.limits and not declared.limits.allow(value)):
            break
        given = value if declared.unit is None else Quantity(value, declared.unit)
        found = _feasible(problem.with_inputs({declared.name: given}), team, deadline)
        if found is None:
            return Grown(declared, tuple(without), undecided=value)
        if found:
            return Grown(declared, tuple(without), enough=value)
        without.append(value)
    return Grown(declared, tuple(without))


class _Known(Exception):
    """Raised inside a solver when a feasible design was found, or time is over."""


def _feasible(problem: Problem, team: Team, deadline: float) -> bool | None:
    """Whether some design of the team is feasible; None when that is not known by the deadline."""
    solver = None if time.monotonic() > deadline else _exact(problem, team)
    if solver is None:
        return None

    def on_tick(state: State, done: float) -> None:
        if search.tally.feasible or (done < 1.0 and time.monotonic() > deadline):
            raise _Known

    search = ExactSearch(problem, team, Tally(problem), on_tick=on_tick)
    if not all(team.hull(problem.sizes)):
        return False
    try:
        solver.explore(search)
    except _Known:
        return True if search.tally.feasible else None
    return bool(search.tally.feasible)


def _exact(problem: Problem, team: Team) -> ExactSolver | None:
    """The exact solver that ``auto`` picks; None if none can."""
    choice = Choice(problem, team, "exact")
    try:
        solver = choice.accepted(choice.automatic(None, sampling=False)[0])
    except (InputError, SolverRefused):
        return None
    return solver if isinstance(solver, ExactSolver) else None
