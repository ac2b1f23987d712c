"""Which solver does a study: the one asked for if it can, or the one that ``auto`` picks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dse.errors import InputError, SolverRefused, nearest
from dse.problem import Problem, Team
from dse.study.registry import able, load_solver, refusal, solvers
from dse.study.solver import Chooser, Solver

__all__ = ["Choice", "Promise", "check_settings"]

Promise = Literal["exact", "sampling"]


@dataclass(frozen=True)
class Choice:
    """What is asked of a solver. ``promise`` None takes either."""

    problem: Problem
    team: Team
    promise: Promise | None = None
    ties: bool = False
    within: bool = False
    options: Mapping[str, Any] | None = None

    def accepted(self, name: str) -> Solver:
        """The solver called ``name``.

        Raises:
            SolverRefused: it cannot do what is asked; names the solvers that can.
            InputError: there is no such solver, or it has no such options.
        """
        solver = load_solver(name)
        reason = refusal(solver, self.problem, self.team)
        if reason is not None:
            raise SolverRefused(f"solver {name} cannot do this: {reason}{self.others(self.promise)}")
        if self.promise == "exact" and solver.promise != "exact":
            raise SolverRefused(
                f"solver {name} samples, so it cannot promise an exact front{self.others('exact')}"
            )
        if self.ties and solver.promise != "exact":
            raise SolverRefused(f"solver {name} samples, so it cannot list all ties{self.others('exact')}")
        if self.within and solver.promise != "exact":
            raise SolverRefused(
                f"solver {name} samples, so it cannot count the designs near the best{self.others('exact')}"
            )
        if self.within and (self.options or {}).get("epsilon"):
            raise InputError("within must go by the best design, which a search with epsilon may miss")
        self._check_options(name, solver)
        return solver

    def _check_options(self, name: str, solver: Solver) -> None:
        unknown = [option for option in self.options or () if option not in solver.options]
        if not unknown:
            return
        having = [other for other, made in solvers().items() if made.options.issuperset(unknown)]
        hint = f"; solver {' and '.join(having)} has" if having else ""
        if solver.options:
            hint = hint or nearest(unknown[0], solver.options)
            raise InputError(f"solver {name} has no option {unknown[0]!r}{hint}")
        raise InputError(f"solver {name} has no options, but got {', '.join(unknown)}{hint}")

    def others(self, promise: Promise | None) -> str:
        """The end of a refusal: who can."""
        names = able(self.problem, self.team, promise)
        return f"; {', '.join(names)} can" if names else "; no installed solver can"

    def automatic(self, n_trials: int | None, *, sampling: bool) -> tuple[str, str]:
        """The solver that ``auto`` picks, and why; ``sampling`` if it must hand out trials.

        Raises:
            SolverRefused: no installed solver can.
        """
        auto = load_solver("auto")
        if not isinstance(auto, Chooser):
            raise InputError("solver 'auto' must be a class derived from dse.study.solver.Chooser")
        name, reason = auto.choose(self.problem, self.team, n_trials)
        promise = "exact" if self.ties or self.within else self.promise
        if sampling:
            promise, why = (
                "sampling",
                "ask and tell need a sampling solver",
            )
        else:
            why = f"a solver whose promise is {promise} was asked for"
        if promise is None or load_solver(name).promise == promise:
            return self._with_options(name, reason, promise)
        names = able(self.problem, self.team, promise)
        if not names:
            raise SolverRefused(f"{why}, but {reason}; no installed solver can")
        return names[
            0
        ], f"{why}, so whatever is run later is a sample and proves nothing" if sampling else why

    def _with_options(self, name: str, reason: str, promise: Promise | None) -> tuple[str, str]:
        """The picked solver, or one that has the options which were given and it has not."""
        asked = set(self.options or ())
        if asked <= load_solver(name).options:
            return name, reason
        for other in able(self.problem, self.team, promise):
            if asked <= load_solver(other).options:
                return other, f"it has the option{'s' * (len(asked) > 1)} {' and '.join(sorted(asked))}"
        return name, reason


def check_settings(
    problem: Problem,
    *,
    workers: int = 1,
    keep: int = 0,
    top: int = 0,
    batch: int | None = None,
    objective: str | None = None,
) -> None:
    """Make sure that a study's settings make sense.

    Raises:
        InputError: a number is too small, the objective is unknown, or there is none.
    """
    if not problem.objectives:
        raise InputError(f"{problem.name} declares no objectives, so there is nothing to search for")
    for name, value, least in (
        ("workers", workers, 1),
        ("keep", keep, 0),
        ("top", top, 0),
        ("batch", batch, 1),
    ):
        if value is not None and value < least:
            raise InputError(f"{name} must be at least {least}, but got {value}")
    names = [o.name for o in problem.objectives]
    if objective is not None and objective not in names:
        raise InputError(f"unknown objective {objective!r}{nearest(objective, names)}")
