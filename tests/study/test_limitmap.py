"""Maps over limits: the fronts' borders are what a search at every point finds, and what no front tells is searched."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from dse.errors import InputError
from dse.problem import Problem
from dse.problem.library import load
from dse.study.limitmap import LimitMap, limit_map
from dse.study.study import search
from dse.units import Quantity


def per_cell(problem: Problem, found: LimitMap) -> dict[str, Any]:
    """The map by one search for each cell and team."""
    cells: dict[str, Any] = {team.team: np.zeros(team.succeeds.shape, bool) for team in found.teams}
    for at in np.ndindex(*found.teams[0].succeeds.shape):
        values = {a.name: Quantity(a.values[n], a.unit) for a, n in zip(found.axes, at, strict=True)}
        here = problem.with_inputs(
            {name: value if value.unit else value.value for name, value in values.items()}
        )
        for team, own in cells.items():
            own[at] = search(here, team=team, within=0).feasible
    return cells


def at_corners(found: LimitMap) -> LimitMap:
    """The same map at the corners themselves and just on their tight side."""
    import math
    from dataclasses import replace

    axes = []
    for number, (axis, limit) in enumerate(zip(found.axes, found.limits, strict=True)):
        corners = {corner.limits[number] for team in found.teams for corner in team.corners}
        tighter = -math.inf if limit.side == "<=" else math.inf
        values = sorted(corners | {math.nextafter(value, tighter) for value in corners})
        axes.append(replace(axis, values=tuple(values)))
    met = found.within([np.array(axis.values) for axis in axes])
    teams = tuple(replace(team, succeeds=cells) for team, cells in zip(found.teams, met, strict=True))
    return replace(found, axes=tuple(axes), teams=teams)


def assert_same(problem: Problem, found: LimitMap) -> None:
    assert found.method == "front"
    for team, cells in per_cell(problem, found).items():
        own = next(t for t in found.teams if t.team == team)
        assert (own.succeeds == cells).all(), (team, found)


def test_the_camera_space_cell_by_cell() -> None:
    problem = load("camera")
    found = limit_map(problem, ["max_latency=0.5:200 ms:7", "min_accuracy=84:94 percent:6"])
    assert_same(problem, found)
    assert found.succeeding(found.given) == ("mlsys",)
    groups = {"+".join(group): int(cells.sum()) for group, cells in found.groups().items()}
    assert set(groups) == {"", "mlsys", "ml+mlsys", "systems+mlsys", "ml+systems+mlsys"}
    assert sum(groups.values()) == 42
    (systems,) = (team for team in found.teams if team.team == "systems")
    assert [(round(c.limits[0] * 1e3, 6), round(c.limits[1] * 100, 6)) for c in systems.corners] == [
        (8.0, 89.8),
        (150.5, 91.8),
    ]


def test_the_borders_hold_to_the_last_bit() -> None:
    problem = load("camera", {"teams": "{ml: {engine: naive, hardware: cpu}}"})
    assert_same(problem, at_corners(limit_map(problem, ["max_latency", "max_memory"])))


def random_problem(seed: int) -> Problem:
    """Random figures, bounded from either side, strictly or not, by limits that may bound two metrics at once."""
    draw = random.Random(seed)
    rows = {f"r{at}": [draw.randint(0, 9) for _ in range(4)] for at in range(12)}
    signs = [draw.choice(["<=", "<"]), draw.choice([">=", ">"])]
    return load(
        {
            "dse": 1,
            "name": "random",
            "inputs": {"top": draw.randint(2, 8), "least": draw.randint(1, 6), "other": 7},
            "tables": {"t": {"columns": dict.fromkeys("abcd", "1"), "rows": rows}},
            "dimensions": {"x": {"table": "t"}, "y": [1, 2, 3]},
            "rules": {"some": {"check": "x.d + y > 2", "because": "too small"}},
            "metrics": {
                "m": {"expr": "x.a * y", "unit": 1},
                "k": {"expr": "x.b + y", "unit": 1},
                "n": {"expr": "x.c / (y - 2)", "unit": 1},  # not finite at y = 2
            },
            "objectives": {draw.choice(["m", "n"]): draw.choice(["minimize", "maximize"])},
            "constraints": {
                "m": f"{signs[0]} top",
                "k": [f"{signs[1]} least", "<= other"],
                "both": {"check": f"top {'>=' if signs[0] == '<=' else '>'} x.b"},
            },
            "teams": {"low": {"y": [1, 2]}, "high": {"where": "y >= 2"}, "any": {}},
        }
    )


def test_random_problems_cell_by_cell() -> None:
    for seed in range(6):
        problem = random_problem(seed)
        assert_same(problem, limit_map(problem, ["top=0:20:7", "least=0:12:5"]))


def test_a_limit_that_enters_elsewhere_is_searched() -> None:
    data: dict[str, Any] = {
        "dse": 1,
        "name": "n",
        "inputs": {"most": 5, "least": 1},
        "dimensions": {"x": [1, 2, 3, 4, 5, 6]},
        "rules": {"r": {"check": "x % 2 == 0 or most > 3", "because": "odd"}},
        "metrics": {"m": {"expr": "x", "unit": 1}},
        "objectives": {"m": "minimize"},
        "constraints": {"m": ["<= most", ">= least"]},
        "teams": {"odd": {"x": [1, 3, 5]}, "any": {}},
    }
    problem = load(data)
    found = limit_map(problem, ["most=0:6:7", "least=1:4:2"])
    assert found.method == "searches"
    assert "most also enters rule r" in found.note
    odd, everybody = (team.succeeds[:, 0].tolist() for team in found.teams)
    assert odd == [False, False, False, False, True, True, True]
    assert everybody == [False, False, True, True, True, True, True]
    with pytest.raises(
        InputError, match=r"give a range, as in most=LOW:HIGH:POINTS, .* most also enters rule r"
    ):
        limit_map(problem, ["most"])
    with pytest.raises(InputError, match=r"would take 1,600 searches, more than 600.*most=LOW:HIGH:8"):
        limit_map(problem, ["most=0:6:400", "least=1:4:2"])
    assert limit_map(problem, ["least"]).method == "front"


def test_a_team_called_all_is_not_the_whole_space() -> None:
    data: dict[str, Any] = {
        "dse": 1,
        "name": "n",
        "inputs": {"most": 5},
        "dimensions": {"x": [1, 2, 3, 4]},
        "metrics": {"m": {"expr": "x", "unit": 1}},
        "objectives": {"m": "minimize"},
        "constraints": {"m": "<= most"},
        "teams": {"all": {"x": [3, 4]}, "low": {"x": [1, 2]}},
    }
    searched = {**data, "rules": {"r": {"check": "most < 9", "because": "both ways of mapping"}}}
    for problem in (load(data), load(searched)):
        found = limit_map(problem, ["most=1:4:4"])
        succeeds = {team.team: team.succeeds.tolist() for team in found.teams}
        assert succeeds == {"all": [False, False, True, True], "low": [True] * 4}, found.method
        assert search(problem, within=0).team == "whole space"


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (["max_latencie"], "unknown input; did you mean 'max_latency'?"),
        (["xyz"], "limits of camera: min_accuracy, max_latency, max_memory"),
        (["max_latency=1"], "expected max_latency=LOW:HIGH or max_latency=LOW:HIGH:POINTS"),
        (["max_latency=1:2"], "needs a quantity in ms"),
        (["max_latency=2:1 ms"], "must ascend"),
        (["max_latency=1:2 ms:1"], "from 2 to 400"),
        (["max_latency=1:2 MB"], "needs a quantity in ms, but got MB"),
        (["max_latency", "max_latency"], "one or two different limits"),
        (["max_latency", "min_accuracy", "max_memory"], "one or two different limits"),
        ([], "one or two different limits"),
    ],
)
def test_what_cannot_be_mapped(axes: list[str], message: str) -> None:
    with pytest.raises(InputError) as raised:
        limit_map("camera", axes)
    assert message in str(raised.value)


def test_what_can_be_infinite_is_searched() -> None:
    problem = load(
        {
            "dse": 1,
            "name": "n",
            "inputs": {"least": 5},
            "dimensions": {"x": [0, 1, 2]},
            "metrics": {"m": {"expr": "1 / x", "unit": 1}, "k": {"expr": "x", "unit": 1}},
            "objectives": {"k": "minimize"},
            "constraints": {"m": ">= least"},
        }
    )
    found = limit_map(problem, ["least=1:9:3"])
    assert (found.method, found.teams[0].succeeds.tolist()) == ("searches", [True, True, True])


def test_a_bound_may_be_made_of_a_limit() -> None:
    """Fronts decide as long as a bound reads no dimension: here one that falls with the limit, and one from below."""
    data: dict[str, Any] = {
        "dse": 1,
        "name": "n",
        "inputs": {"share": 0.5, "room": 10, "least": 1},
        "dimensions": {"x": [1, 2, 3, 4, 5, 6], "y": [1, 2, 3]},
        "metrics": {"m": {"expr": "x * y", "unit": 1}, "k": {"expr": "x + 2 * y", "unit": 1}},
        "objectives": {"m": "minimize"},
        "constraints": {"m": "<= room * (1 - share)", "k": [">= 8 * share", "< room", ">= least"]},
        "teams": {"odd": {"x": [1, 3, 5]}, "any": {}},
    }
    problem = load(data)
    found = limit_map(problem, ["share=0:1.5:9", "least=1:12:5"])
    assert_same(problem, found)
    assert (found.bordered, found.teams[0].corners) == (False, ())
    assert found.succeeding((0.5, 1.0)) == ("odd", "any")
    with pytest.raises(
        InputError, match=r"give a range, as in share=LOW:HIGH, since share is more than a bound"
    ):
        limit_map(problem, ["share"])
    assert (
        "share and room bound constraint m together" in limit_map(problem, ["share=0:1:3", "room=1:9:3"]).note
    )
    endless = load(data | {"constraints": {"m": "<= 1 / share"}})
    assert "a bound is not finite" in limit_map(endless, ["share=0:1:3"]).note
