"""The exact Pareto front by branch and bound: whole boxes of designs are discarded by bounds that prove them worse."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from dse.errors import InputError
from dse.evaluation.bounds import Boxes
from dse.evaluation.prepared import prepared
from dse.problem import Problem, Team
from dse.study.gap import Standing
from dse.study.registry import unlisted
from dse.study.solver import ExactSearch, ExactSolver

from .branching.gap import standing, standing_at_first
from .branching.misses import Misses
from .branching.searching import Plan, Search, Settings
from .branching.seeding import Seeding

__all__ = ["Pareto"]

_POLLED = 0.5
"""Seconds of planning after which it can be stopped; it starts again when the search goes on."""

_PLANS = 4
"""Plans of a problem, by team and settings, that are kept for another search."""


class Pareto(ExactSolver):
    """The exact front, without evaluating what a bound rules out.

    With the option ``epsilon``, an epsilon-front: for every feasible design y some point f of it has
    f <= y + epsilon * abs(y) in every (minimized) objective.
    """

    name = "pareto"
    title = "the exact front by branch and bound, with proof"
    needs = frozenset({"bulk", "bounds"})
    options = frozenset({"epsilon"})

    def __init__(self) -> None:
        self._search: Search | None = None
        self._seeded: tuple[Boxes, Seeding] | None = None

    def refuse(self, problem: Problem, team: Team) -> str | None:
        """Refuse what has no list of designs, or must be measured."""
        return unlisted(problem)

    def explore(self, search: ExactSearch) -> None:
        """Search box after box; with nothing feasible, go on for the nearest misses."""
        problem, team, tally = search.problem, search.team, search.tally
        settings = Settings(tally.seed, _epsilon(search.options), tally.best.limit, tally.objective)

        polled = time.monotonic()

        def poll() -> None:
            nonlocal polled
            if time.monotonic() - polled > _POLLED:
                polled = time.monotonic()
                search.tick(search.state or {}, 0.0)

        def seeded(boxes: Boxes, seeding: Seeding) -> None:
            self._seeded = boxes, seeding

        plan = prepared(
            problem,
            ("branching", team, settings),
            lambda: Plan(problem, team, settings, poll=poll, seeded=seeded),
            most=_PLANS,
        )
        self._seeded = None
        state = search.state or {}
        if "misses" not in state:
            self._search = Search(search, plan)
            self._search.run()
            self._search = None
        if not search.tally.feasible and search.problem.constraints:
            Misses(search, plan).run()

    def standing(self, search: ExactSearch) -> Standing | None:
        """What the boxes that wait may still hold, and the designs that the search began with."""
        if self._search is not None:
            return standing(self._search)
        begun = {"stack", "misses"} & set(search.state or {})
        return None if self._seeded is None or begun else standing_at_first(*self._seeded)


def _epsilon(options: Mapping[str, Any]) -> float:
    """The option ``epsilon``.

    Raises:
        InputError: it is no number from 0 to below 1.
    """
    asked = options.get("epsilon", 0.0)
    try:
        epsilon = float(asked)
    except (TypeError, ValueError):
        epsilon = -1.0
    if isinstance(asked, bool) or not 0.0 <= epsilon < 1.0:
        raise InputError(
            f"option epsilon must be a number from 0 to below 1, such as 0.01, but got {asked!r}"
        )
    return epsilon
