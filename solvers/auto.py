"""Choosing a solver: count first, then pick, and say why."""

from __future__ import annotations

import math

from dse.problem import Problem, Team
from dse.study.listing import legal_count
from dse.study.solver import Chooser

from .exhaustive import listed, refusal

__all__ = ["Auto"]

_ENUMERATED = 20_000_000  # designs that are evaluated one and all, for an exact funnel
_LISTED = 4_000_000  # legal designs of a space with many more illegal ones
_PROVEN = 10**10  # legal designs of a space beyond that
_EXACT = 10**15  # beyond, a branch and bound may never end


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
        legal = listed(problem, team)
        if legal is not None and legal <= _LISTED:
            return "exhaustive", f"of {size:,} designs {legal:,} are legal, and these can all be evaluated"
        count = legal_count(problem, team) if size > _EXACT else None
        if count is not None and count <= _PROVEN:
            return "pareto", f"of {size:,} designs {count:,} are legal, and bounds can discard most"
        if size <= _EXACT:
            return "pareto", f"{size:,} designs are many, but bounds can discard most"
        text = f"{size:.3g}" if size < 10**300 else f"more than 10^{len(str(size)) - 1}"
        return "optuna", f"{text} designs may be too many for an exact search; pareto would try"
