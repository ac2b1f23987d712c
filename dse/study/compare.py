"""Teams side by side on the same space: what each finds, why it fails, and what would unlock it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dse.errors import InputError
from dse.problem import Problem
from dse.problem.library import load
from dse.study.growing import Grown, grown_for
from dse.study.result import Result
from dse.study.unlock import Unlock, can_survey, survey

__all__ = ["Comparison", "TeamReport", "Unlock", "compare"]


@dataclass(frozen=True)
class TeamReport:
    """One team's result. ``unlocks`` and ``departures`` are empty for a team that has a feasible design.

    ``departures`` are the ways in which feasible designs of the whole space leave the team: each takes at least one.
    """

    team: str
    result: Result
    unlocks: tuple[Unlock, ...] = ()
    departures: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Comparison:
    """The reports of the teams, and the result of the whole space, which says what feasible designs share.

    Where none is feasible, ``grown`` says how much of an input would do.
    """

    problem: Problem
    rows: tuple[TeamReport, ...]
    whole: Result | None = None
    note: str = ""
    grown: tuple[Grown, ...] = ()

    def __repr__(self) -> str:
        counts = ", ".join(f"{row.team} {row.result.funnel.feasible} feasible" for row in self.rows)
        return f"<Comparison {self.problem.name}: {counts}>"

    @property
    def feasible(self) -> bool:
        """Whether any team found a feasible design."""
        return any(row.result.feasible for row in self.rows)


def compare(
    problem: Problem | str | Path | Mapping[str, Any],
    teams: Sequence[str] | None = None,
    *,
    solver: str = "auto",
    seed: int = 0,
    n_trials: int | None = None,
    timeout: float | None = None,
    workers: int = 1,
    options: Mapping[str, Any] | None = None,
    solve: Callable[..., Result] | None = None,
) -> Comparison:
    """Search the space once for each team (default: all of the problem's) and once for everybody.

    The settings are those of :func:`dse.study.study.search`, for each of the searches.

    Args:
        solve: called as ``solve(problem, team=...)`` instead of ``search`` with the settings.

    Raises:
        InputError: an unknown team, or no team at all.
        SpaceError: the space cannot be loaded.
    """
    if not isinstance(problem, Problem):
        problem = load(problem)
    if solve is None:
        from dse.study.study import search

        solve = partial(
            search,
            solver=solver,
            seed=seed,
            n_trials=n_trials,
            timeout=timeout,
            workers=workers,
            options=options,
            within=0,
        )
    names = list(teams) if teams else list(problem.teams)
    if not names:
        raise InputError(f"{problem.name} declares no teams to compare")
    found = {name: problem.team(name) for name in names}
    (everything,) = problem.everything.boxes
    results = {name: solve(problem, team=name) for name in names}
    whole_team = next((name for name in names if any(box == everything for box in found[name].boxes)), None)
    whole = results[whole_team] if whole_team else solve(problem, team=None)
    failing = [name for name in names if not results[name].feasible and name != whole_team]
    exact = whole.promise == "exact" and whole.status == "complete"
    needs = {}
    note = ""
    if failing and whole.feasible:
        if exact and can_survey(problem):
            needs = dict(zip(failing, survey(problem, [found[name] for name in failing]), strict=True))
        else:
            why = (
                "every feasible design must be listed, and there are too many"
                if exact
                else "that takes an exact search of the whole space"
            )
            note = f"what would unlock a team is not known: {why}"
    rows = []
    for name in names:
        asked = needs.get(name)
        unlocks, departures = (asked.unlocks(), asked.departures()) if asked else ((), ())
        rows.append(TeamReport(name, results[name], unlocks, departures))
    return Comparison(problem, tuple(rows), whole, note, grown_for(whole))
