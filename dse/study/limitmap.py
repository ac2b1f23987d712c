"""For which limits do teams succeed? A map over one or two limits, exact wherever a front decides.

A design is feasible under some limits when it meets every other constraint and its bounded metrics are within them. So
one exact search for each team, with the bounded metrics as objectives and the other constraints kept, answers for all
limits at once: a team succeeds where some point of that front is within the limits. Where a limit is more than that (a
rule reads it, say), every cell is searched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError
from dse.problem import Design, Problem
from dse.problem.library import load
from dse.study.limits import HOLDS, Axis, Limit, Wanted, front_problem, limit_of, read_wanted, unmappable
from dse.study.result import Result
from dse.units import Quantity

__all__ = ["MOST_SEARCHES", "Corner", "LimitMap", "TeamLimits", "limit_map"]

MOST_SEARCHES = 600
"""Searches that a map without a front may take."""

_MARGIN = 0.15
_UNBOUNDED = "unbounded objective"

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Solve = Callable[..., Result]


@dataclass(frozen=True, slots=True)
class Corner:
    """The tightest limits, one for each axis and in base units, that a design of a team's front is within."""

    limits: tuple[float, ...]
    design: Design
    index: int | None


@dataclass(frozen=True, slots=True)
class TeamLimits:
    """One team: ``succeeds`` (values of the first axis, values of the second if there is one).

    ``front`` (n, bounds of all limits) are what the limits bound, of the designs that decide. ``corners`` are the exact
    border, where limits are plain numbers: the team succeeds where they are no tighter than those of a corner.
    """

    team: str
    succeeds: Bools
    front: Floats
    corners: tuple[Corner, ...] = ()


@dataclass(frozen=True, repr=False)
class LimitMap:
    """Which teams succeed for which limits.

    ``method`` is ``front`` (which decides, for any limits) or ``searches`` (each cell was searched, for the reason
    in ``note``). ``proven`` says that no search was stopped or sampled; otherwise a team may succeed in more cells.
    """

    problem: Problem
    axes: tuple[Axis, ...]
    teams: tuple[TeamLimits, ...]
    limits: tuple[Limit, ...]
    method: Literal["front", "searches"] = "front"
    proven: bool = True
    note: str = ""

    def __repr__(self) -> str:
        names = " x ".join(f"{axis.name} ({len(axis.values)})" for axis in self.axes)
        return f"<LimitMap {self.problem.name}: {names}, {len(self.teams)} teams>"

    @property
    def given(self) -> tuple[float, ...]:
        """The limits that the problem itself has, in base units."""
        return tuple(float(axis.input.value) for axis in self.axes)

    @property
    def bordered(self) -> bool:
        """Whether the teams' corners are the borders."""
        return self.method == "front" and all(limit.side for limit in self.limits)

    def succeeding(self, limits: Sequence[float]) -> tuple[str, ...] | None:
        """The teams that succeed for limits in base units, one for each axis; None where no front tells."""
        if self.method != "front":
            return None
        found = self.within([np.array([value]) for value in limits])
        return tuple(team.team for team, met in zip(self.teams, found, strict=True) if met.all())

    def within(self, values: Sequence[Floats]) -> list[Bools]:
        """For each team, whether some design of its front is within the limits: (values of the first, of the second)."""
        rights = _rights(self.problem, self.limits, values)
        return [_within(self.limits, rights, team.front) for team in self.teams]

    def group_text(self, group: Sequence[str]) -> str:
        """``no team``, ``only mlsys``, ``ml and mlsys``, ``every team``."""
        if not group:
            return "no team"
        if len(group) == len(self.teams) > 1:
            return "every team"
        return f"only {group[0]}" if len(group) == 1 < len(self.teams) else " and ".join(group)

    def groups(self) -> dict[tuple[str, ...], Bools]:
        """The cells by the teams that succeed there: nobody first, then the fewest, in the order of the teams."""
        names = [team.team for team in self.teams]
        numbers = sum(team.succeeds.astype(np.int64) << at for at, team in enumerate(self.teams))
        cells = np.asarray(numbers)
        found = {
            tuple(name for at, name in enumerate(names) if number >> at & 1): cells == number
            for number in map(int, np.unique(cells))
        }
        return dict(sorted(found.items(), key=lambda item: (len(item[0]), [names.index(n) for n in item[0]])))


def _rights(problem: Problem, limits: Sequence[Limit], values: Sequence[Floats]) -> list[list[Floats]]:
    """The right side of each limit's bounds at its values."""
    return [
        [limit.right(problem, bound, axis) for bound in limit.bounds]
        for limit, axis in zip(limits, values, strict=True)
    ]


def _within(limits: Sequence[Limit], rights: Sequence[Sequence[Floats]], front: Floats) -> Bools:
    met = np.zeros([len(own[0]) for own in rights], dtype=np.bool_)
    for point in front:
        values = iter(point)
        along = [
            np.logical_and.reduce(
                [HOLDS[bound.op](next(values), right) for bound, right in zip(limit.bounds, own, strict=True)]
            )
            for limit, own in zip(limits, rights, strict=True)
        ]
        met |= along[0] if len(along) == 1 else np.logical_and.outer(*along)
    return met


def limit_map(
    problem: Problem | str | Path | Mapping[str, Any],
    axes: Sequence[str],
    teams: Sequence[str] | None = None,
    *,
    solve: Solve | None = None,
) -> LimitMap:
    """For which limits the teams of a problem succeed.

    Args:
        axes: one or two limits, as :func:`dse.study.limits.read_wanted` reads them: ``"max_latency=5:100 ms:40"``. A
            range that is left out is that of all teams' corners.
        teams: default: all of the problem's, or the whole space where it has none.
        solve: called as ``solve(problem, team=...)``; default: an exact search.

    Raises:
        InputError: no such limit or team, or a map that would take too many searches.
        SolverRefused: no solver promises an exact answer.
    """
    if not isinstance(problem, Problem):
        problem = load(problem)
    if solve is None:
        from functools import partial

        from dse.study.study import search

        solve = partial(search, within=0, promise="exact")
    wanted = [read_wanted(problem, text) for text in axes]
    names = [one.input.name for one in wanted]
    if len(wanted) not in (1, 2) or len(set(names)) != len(names):
        raise InputError(f"a map has one or two different limits, but got {', '.join(names) or 'none'}")
    chosen = list(teams or problem.teams) or [problem.everything.name]
    for team in chosen:
        problem.team(team)
    limits = tuple(limit_of(problem, one.input) for one in wanted)
    why = unmappable(problem, limits)
    if not why:
        found = _by_fronts(problem, wanted, limits, chosen, solve)
        if isinstance(found, LimitMap):
            return found
        why = found
    return _by_searches(problem, wanted, limits, chosen, solve=solve, why=why)


# -- by fronts -------------------------------------------------------------------------------------


def _by_fronts(
    problem: Problem, wanted: Sequence[Wanted], limits: tuple[Limit, ...], names: Sequence[str], solve: Solve
) -> LimitMap | str:
    """The map by one search for each team; or why fronts do not tell."""
    asked, numbers = front_problem(problem, limits)
    results = [solve(asked, team=name) for name in names]
    for result in results:
        reason = next((why for why, *_ in result.failures if why.startswith(_UNBOUNDED)), "")
        if reason:
            return f"a limit bounds what can be infinite ({reason})"
    names_of = [objective.name for objective in asked.objectives]
    order = [names_of[number] for own in numbers for number in own]
    fronts = [
        np.array([[point.objectives[name] for name in order] for point in result.front]).reshape(
            -1, len(order)
        )
        for result in results
    ]
    plain = all(limit.side for limit in limits)
    corners = [
        _corners(limits, front, result) if plain else ()
        for front, result in zip(fronts, results, strict=True)
    ]
    axes = [
        _axis(one, limit, [corner.limits[at] for found in corners for corner in found])
        for at, (one, limit) in enumerate(zip(wanted, limits, strict=True))
    ]
    rights = _rights(problem, limits, [np.array(axis.values) for axis in axes])
    if not all(np.isfinite(right).all() for own in rights for right in own):
        return "a bound is not finite for all these limits"
    proven = all(result.promise == "exact" and result.status == "complete" for result in results)
    return LimitMap(
        problem,
        tuple(axes),
        tuple(
            TeamLimits(name, _within(limits, rights, front), front, found)
            for name, front, found in zip(names, fronts, corners, strict=True)
        ),
        limits,
        proven=proven,
        note=""
        if proven
        else "a search was stopped or sampled: teams may succeed for tighter limits as well",
    )


def _corners(limits: Sequence[Limit], front: Floats, result: Result) -> tuple[Corner, ...]:
    """The corners of a team's front, by the first limit from tight to loose; none that another makes needless."""
    signs = [1.0 if limit.side == "<=" else -1.0 for limit in limits]
    found = []
    for values, point in zip(front, result.front, strict=True):
        ends, at = [], 0
        for limit in limits:
            own = values[at : at + len(limit.bounds)]
            at += len(limit.bounds)
            ends.append(float(own.max() if limit.side == "<=" else own.min()))
        found.append(Corner(tuple(ends), point.design, point.index))

    def tightness(corner: Corner) -> tuple[float, ...]:
        return tuple(sign * value for sign, value in zip(signs, corner.limits, strict=True))

    kept: list[Corner] = []
    best = np.inf
    for corner in sorted(found, key=tightness):
        last = tightness(corner)[-1] if len(signs) > 1 else -np.inf
        if last < best:
            kept.append(corner)
            best = last
    return tuple(kept)


def _axis(wanted: Wanted, limit: Limit, corners: Sequence[float]) -> Axis:
    """The range that was asked for, or one in which all corners lie with some room around."""
    if wanted.ends is not None:
        return Axis.over(wanted, *wanted.ends)
    if not limit.side:
        name = wanted.input.name
        raise InputError(
            f"--map {name}: give a range, as in {name}=LOW:HIGH, since {name} is more than a bound itself"
        )
    known = [*corners, float(wanted.input.value)]
    low, high = min(known), max(known)
    if low > 0.0 and not (wanted.input.unit and wanted.input.unit.percent):
        ratio = max((high / low) ** _MARGIN, 1.0 + _MARGIN)
        return Axis.over(wanted, low / ratio, high * ratio)
    span = (high - low) or abs(high) or 1.0
    return Axis.over(wanted, low - _MARGIN * span, high + _MARGIN * span)


# -- by searches -----------------------------------------------------------------------------------


def _by_searches(
    problem: Problem,
    wanted: Sequence[Wanted],
    limits: tuple[Limit, ...],
    names: Sequence[str],
    *,
    solve: Solve,
    why: str,
) -> LimitMap:
    """The map by one search for each cell and team."""
    for one in wanted:
        if one.ends is None:
            name = one.input.name
            raise InputError(
                f"--map {name}: give a range, as in {name}=LOW:HIGH:POINTS, since each cell is searched: {why}"
            )
    axes = tuple(Axis.over(one, *one.ends) for one in wanted if one.ends is not None)
    shape = [len(axis.values) for axis in axes]
    count = int(np.prod(shape)) * len(names)
    if count > MOST_SEARCHES:
        raise InputError(
            f"the map would take {count:,} searches, more than {MOST_SEARCHES}, since each cell is searched: {why}; "
            f"ask for fewer points, as in {axes[0].name}=LOW:HIGH:8"
        )
    cells = [np.zeros(shape, dtype=np.bool_) for _ in names]
    proven = True
    for at in np.ndindex(*shape):
        values = {axis.name: Quantity(axis.values[n], axis.unit) for axis, n in zip(axes, at, strict=True)}
        here = problem.with_inputs(
            {name: value if value.unit else value.value for name, value in values.items()}
        )
        for name, met in zip(names, cells, strict=True):
            result = solve(here, team=name)
            met[at] = result.feasible
            proven &= result.promise == "exact" and result.status == "complete"
    nothing = np.empty((0, 0))
    teams = tuple(TeamLimits(name, met, nothing) for name, met in zip(names, cells, strict=True))
    hedge = "" if proven else "; a search was stopped or sampled, so teams may succeed in more cells"
    return LimitMap(
        problem, axes, teams, limits, "searches", proven, f"each cell was searched, since {why}{hedge}"
    )
