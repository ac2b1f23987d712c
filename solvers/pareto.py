"""The exact Pareto front by branch and bound: whole boxes of designs are discarded by bounds that prove them worse."""

from __future__ import annotations

from dse.problem import Problem, Team
from dse.study.solver import ExactSearch, ExactSolver

from .branching.searching import Plan, Search
from .exhaustive import refusal

__all__ = ["Pareto"]


class Pareto(ExactSolver):
    """The exact front, without evaluating what a bound rules out."""

    name = "pareto"
    title = "the exact front by branch and bound, with proof"
    needs = frozenset({"bulk", "bounds"})
    options = frozenset({"epsilon"})

    def refuse(self, problem: Problem, team: Team) -> str | None:
        """Refuse what cannot be enumerated."""
        return refusal(problem, team)

    def explore(self, search: ExactSearch) -> None:
        """Search box after box."""
        plan = Plan(search.problem, search.team, search.tally.seed)
        Search(search, plan).run()
