"""Choosing a solver: count first, then pick, and say why."""

from __future__ import annotations

import math

from dse.problem import Problem, Team
from dse.study.solver import ExactSearch, ExactSolver

from .exhaustive import Exhaustive, refusal
from .pareto import Pareto

__all__ = ["Auto"]

_ENUMERATED = 20_000_000  # designs that are evaluated one and all, for an exact funnel
_EXACT = 10**12  # beyond, an exact search would take hours


class Auto(ExactSolver):
    """Picks ``exhaustive``, ``pareto`` or ``optuna``."""

    name = "auto"
    title = "counts first, then picks one of the others and says why"
    needs = frozenset({"bulk"})

    def choose(self, problem: Problem, team: Team, n_trials: int | None = None) -> tuple[str, str]:
        """The name of the solver for this problem, and the reason."""
        reason = refusal(problem, team)
        if reason is not None:
            return "optuna", reason
        size = math.prod(len(axis) for axis in team.hull(problem.sizes))
        if n_trials is not None and size > n_trials:
            return "optuna", f"at most {n_trials:,} trials are allowed for {size:,} designs"
        if size <= _ENUMERATED:
            return "exhaustive", f"{size:,} designs can all be evaluated"
        if size <= _EXACT:
            return "pareto", f"{size:,} designs are many, but prefixes can be cut"
        return "optuna", f"{size:.3g} designs are too many for an exact search"

    def refuse(self, problem: Problem, team: Team) -> str | None:
        """Refuse what cannot be enumerated."""
        return refusal(problem, team)

    def explore(self, search: ExactSearch) -> None:
        """Explore with the exact solver it chooses."""
        chosen, _ = self.choose(search.problem, search.team)
        (Pareto() if chosen == "pareto" else Exhaustive()).explore(search)
