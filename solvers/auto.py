"""Choosing a solver: count first, then pick, and say why."""

from __future__ import annotations

import math

from dse.problem import Problem, Team
from dse.study.solver import Chooser

from .exhaustive import refusal

__all__ = ["Auto"]

_ENUMERATED = 20_000_000  # designs that are evaluated one and all, for an exact funnel
_EXACT = 10**10  # beyond, cutting prefixes alone would take hours


class Auto(Chooser):
    """Picks ``exhaustive``, ``pareto`` or ``optuna``."""

    name = "auto"
    title = "counts first, then picks one of the others and says why"

    def choose(self, problem: Problem, team: Team, n_trials: int | None = None) -> tuple[str, str]:
        """By whether designs can be listed, and by how many there are."""
        reason = refusal(problem, team)
        if reason is not None:
            return "optuna", reason
        size = math.prod(len(axis) for axis in team.hull(problem.sizes))
        if n_trials is not None and size > n_trials:
            return "optuna", f"at most {n_trials:,} trials are allowed for {size:,} designs"
        if size <= _ENUMERATED:
            return (
                "exhaustive",
                f"{size:,} designs can all be evaluated" if size != 1 else "there is one design",
            )
        if size <= _EXACT:
            return "pareto", f"{size:,} designs are many, but prefixes can be cut"
        return "optuna", f"{size:.3g} designs are too many for an exact search"
