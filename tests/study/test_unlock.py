"""What would unlock a team, against freeing every set of dimensions and looking."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations
from typing import Any

import pytest

from dse.problem import Box, Problem, Team
from dse.problem.library import load
from dse.study.unlock import Needs, Unlock, survey
from tests.bruteforce import truth
from tests.randomspaces import problem


def smallest(found: Problem, team: Team) -> tuple[Unlock, ...]:
    """By the definition: free every set of dimensions, smallest sets first, and count what is feasible."""
    for size in range(1, len(found.names) + 1):
        unlocks = []
        for chosen in combinations(found.names, size):
            feasible = len(truth(found, team.freed(frozenset(chosen), found.names)).costs)
            if feasible:
                unlocks.append(Unlock(chosen, feasible))
        if unlocks:
            return tuple(unlocks)
    return ()


def drawn_team(draw: random.Random, found: Problem) -> Team:
    """One or two narrow boxes, at times with the conditions of a declared team."""
    boxes = []
    for _ in range(draw.choice([1, 1, 1, 2])):
        allowed = [
            tuple(sorted(draw.sample(range(n), 1))) if draw.random() < 0.8 else None for n in found.sizes
        ]
        declared = draw.choice([box for team in found.teams.values() for box in team.boxes] or [Box(())])
        boxes.append(Box(tuple(allowed), declared.where))
    return Team("drawn", tuple(boxes))


def test_unlocks_of_random_teams() -> None:
    compared: Counter[int] = Counter()
    for seed in range(240):
        found = problem(seed, 40)
        if len(found.dimensions) > 5 or not truth(found).costs:
            continue
        draw = random.Random(seed)
        drawn = [drawn_team(draw, found) for _ in range(6)]
        failing = [team for team in (*found.teams.values(), *drawn) if not truth(found, team).costs]
        for team, wish in zip(failing, survey(found, failing), strict=True):
            expected = smallest(found, team)
            assert wish.unlocks() == expected
            compared[len(expected[0].dimensions) if expected else 0] += 1
    assert compared[1] >= 20
    assert compared[2] + compared[3] >= 4


def space(teams: dict[str, Any], constraint: str = "<= 20") -> Problem:
    return load(
        {
            "dse": 1,
            "name": "unlock",
            "inputs": {"open": False},
            "dimensions": {"a": {"range": [1, 4]}, "b": {"range": [1, 4]}, "fast": [False, True]},
            "metrics": {"x": {"expr": "a * b + (0 if fast else 100)", "unit": 1}},
            "objectives": {"x": "maximize"},
            "constraints": {"x": constraint},
            "teams": teams,
        }
    )


def wish(found: Problem, team: str) -> Needs:
    return survey(found, [found.teams[team]])[0]


def test_a_condition_drops_once_any_dimension_it_names_is_freed() -> None:
    found = space({"t": {"fast": False, "where": "a + b > 7"}})
    assert wish(found, "t").unlocks() == (Unlock(("fast",), 1),)
    found = space({"t": {"where": "a + b > 7 and not fast"}})
    assert wish(found, "t").unlocks() == (Unlock(("fast",), 1),)
    found = space({"t": {"where": "a + b > 7 and not fast and a < 2"}})
    assert wish(found, "t").unlocks() == (Unlock(("a", "fast"), 16), Unlock(("b", "fast"), 4))


def test_a_condition_on_inputs_alone_cannot_be_unlocked() -> None:
    found = space({"t": {"where": "open"}})
    assert wish(found, "t").unlocks() == ()


def test_nothing_unlocks_what_is_infeasible_everywhere() -> None:
    found = space({"t": {"fast": False}}, "<= 0")
    assert wish(found, "t").unlocks() == ()


def test_a_team_of_several_boxes_is_unlocked_through_any() -> None:
    found = space({"p": {"fast": False, "a": 1}, "q": {"fast": False, "b": [1, 2]}, "t": "p | q"})
    assert wish(found, "t").unlocks() == (Unlock(("fast",), 10),)


@pytest.mark.parametrize(
    ("team", "departures"),
    [
        ({"fast": False}, ("fast = true",)),
        ({"a": [1, 2], "fast": False}, ("a other than 1, 2", "fast = true")),
        ({"a": [1, 2, 3], "fast": False}, ("a = 4", "fast = true")),
        ({"where": "not fast"}, ("fast",)),
        ({"where": "not fast and a > 0"}, ("fast",)),
        ({"where": "a > 4 and a < 3"}, ("not (a > 4)", "not (a < 3)")),
        ({"where": "not fast or a > 5"}, ("not (not fast or a > 5)",)),
        ({"where": "not (fast and a > 0)"}, ("fast and a > 0",)),
    ],
)
def test_departures_say_how_feasible_designs_leave(team: dict[str, Any], departures: tuple[str, ...]) -> None:
    assert wish(space({"t": team}), "t").departures() == departures
