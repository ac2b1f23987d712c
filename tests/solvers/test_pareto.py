"""Exact fronts by ``pareto`` of odd spaces of every kind, of large ones, and the same however they come about."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dse.problem import Problem
from dse.problem.library import load
from dse.solvers.pareto import Pareto
from dse.study.certificate import Recorder
from dse.study.diagnosis import exact_result
from dse.study.exact import run_exact
from tests.brute import Everything
from tests.bruteforce import assert_accounted
from tests.solvers.narrowing import narrowed
from tests.solvers.proving import Data, assert_true, costs, flat, flat_data, solve
from tests.widespaces import wide

# -- best designs, ties, idle dimensions, teams ---------------------------------------------------------------


def test_the_best_designs_of_each_objective() -> None:
    for seed in range(40):
        data = wide(random.Random(seed), 200 + 30 * (seed % 20), 1 + seed % 3)
        found, right = load(data), Everything(data)
        objective, top = seed % len(found.objectives), (1, 4, 25, 5000)[seed % 4]
        with narrowed(limit=seed % 6, children=3 + seed):
            result = solve(found, top=top, objective=objective, ties=seed % 2 == 0)
        indices = np.flatnonzero(right.feasible)
        order = np.lexsort((indices, right.costs[indices, objective]))[:top]
        assert [point.index for point in result.best] == indices[order].tolist()
        assert_true(data, result)


def test_dimensions_on_which_nothing_depends() -> None:
    """They multiply the ties; the listed ones and the best designs count through them in order."""
    dimensions: Data = {
        "idle": ["p", "q", "r"], "a": {"range": [0, 4]}, "many": {"range": [1, 40]}, "b": {"range": [0, 4]},
        "last": [False, True],
    }  # fmt: skip
    data = flat_data(
        dimensions, {"x": "abs(a - b)", "y": "a % 3 + b // 2"}, {"x": "minimize", "y": "maximize"},
        teams={"some": {"idle": ["q", "r"], "many": [3, 7, 9]}},
    )  # fmt: skip
    found = load(data)
    for team in (None, "some"):
        result = solve(found, team, ties=True, top=9)
        assert_true(data, result, team)
        right = Everything(data, team)
        indices = np.flatnonzero(right.feasible)
        order = np.lexsort((indices, right.costs[indices, 0]))[:9]
        assert [point.index for point in result.best] == indices[order].tolist()
        weight = 6 if team else 240  # how many designs differ in what does not matter
        if team is None:
            assert all(point.ties % weight == 0 for point in result.front)


@pytest.mark.parametrize("team", [None, "box", "where", "both", "either", "mixed", "never"])
def test_teams(team: str | None) -> None:
    """Boxes, conditions, unions and intersections; a union's members are told from one another late."""
    dimensions: Data = {name: {"range": [0, 9]} for name in "abcd"}
    teams = {
        "box": {"a": [2, 3, 7], "d": 5}, "where": {"where": "a + d > 11 and b != c"}, "both": "box & where",
        "either": "box | where", "mixed": {"b": [1, 9], "where": "c % 3 == 0"}, "never": {"where": "a > 9"},
    }  # fmt: skip
    metrics = {"x": "a * b - c * d", "y": "abs(a - 4) + abs(d - b)"}
    data = flat_data(dimensions, metrics, teams=teams, constraints={"y": "<= 6"})
    for limit, children in ((None, None), (20, 30), (0, 500)):
        with narrowed(limit, children):
            result = solve(load(data), team, ties=True)
        assert_true(data, result, team)


# -- odd objectives --------------------------------------------------------------------------------------------

GRID: Data = {name: {"range": [-6, 6]} for name in "abc"}


@pytest.mark.parametrize("limit", [None, 0, 13])
@pytest.mark.parametrize(
    "metrics",
    [
        {"x": "3", "y": "a - b"},
        {"x": "3", "y": "4"},
        {"x": "0 * a", "y": "-0 * b", "z": "abs(c)"},
        {"x": "(a - 6) / (b - 6) + c", "y": "b + c"},  # NaN in a corner
        {"x": "(a * a - 36) / (a - 6) - c", "y": "a"},
        {"x": "a / (b * c)", "y": "c - b"},  # through zero, infinities of both signs, NaN
        {"x": "a / abs(b)", "y": "b + c"},
        {"x": "1 / 0", "y": "a"},
        {"x": "-1 / 0", "y": "a"},
        {"x": "where(a > 0, 1 / 0, a)", "y": "b"},
        {"x": "0 / 0", "y": "a"},
        {"x": "a ** b", "y": "c - a"},
        {"x": "(a + 0.5) ** (b / 2)", "y": "c - a"},  # of negative numbers
        {"x": "a ** 3 - b ** 2", "y": "b ** -1 + c"},
        {"x": "sqrt(a) + b", "y": "log(b) - c"},
        {"x": "exp(a * b * c * 10)", "y": "c"},  # past the largest number
        {"x": "a * 1e308 + b * 1e308", "y": "c - b"},
        {"x": "a * 5e-324 * b / 3", "y": "c * 1e-320 - b * 1e-321"},  # the smallest numbers
        {"x": "1e300 * a * 1e10 * b", "y": "a + b * c"},
        {"x": "where(a / b > 1, c, -c)", "y": "b"},  # a condition that is undefined in places
        {"x": "min(a / b, c)", "y": "max(b / a, c)"},
        {"x": "a // b + c % 4", "y": "b % a - c"},
        {"x": "-floor(a / 4) * ceil(b / 5)", "y": "abs(c) // 2"},
        {"x": "where(a == 0 and b == 0, 1, 2) * where(c > 0 or a > b, -1, 1)", "y": "a * c"},
        {"x": "1 / (a + b)", "y": "-1 / (b - c)", "z": "c"},
    ],
    ids=lambda metrics: next(iter(metrics.values())),
)
def test_odd_objectives(metrics: dict[str, str], limit: int | None) -> None:
    for way in ("minimize", "maximize"):
        data = flat_data(GRID, metrics, dict.fromkeys(metrics, way))
        with narrowed(limit, 60):
            result = solve(load(data), ties=True)
        assert_true(data, result)


@pytest.mark.parametrize("limit", [None, 0, 13])
@pytest.mark.parametrize(
    "condition",
    [
        "a / b >= c", "not (a / b < c)", "a / b == 2", "a / b != 2", "(a / b > 0) or c > 0", "c > 0 or (a / b > 0)",
        "where(a / b > 0, c > 1, a > b)", "a % b == 0", "a * b * c in [0, 8, 27]", "a not in [1, 2] and b != c",
        "(a > b) == (b > c)", "(a > b) != (c > 0)", "a ** 0.5 > 1", "1 / a < 1 / b", "0 * a == 0 * b", "-a < b < c",
        "1 / (a * 0) > 1e308", "sqrt(a * b) <= 3 and log2(a) != 1",
    ],
)  # fmt: skip
def test_odd_conditions(condition: str, limit: int | None) -> None:
    """As a rule, as a constraint and as a team's: undefined in places, of either truth."""
    metrics = {"x": "a * b - c", "y": "abs(a) + c"}
    check: Data = {"check": condition}
    for more in (
        {"rules": {"r": {**check, "because": "it is so"}}}, {"constraints": {"c": check}},
        {"teams": {"t": {"where": condition}}},
    ):  # fmt: skip
        data = flat_data(GRID, metrics, {"x": "minimize", "y": "maximize"}, **more)
        team = "t" if "teams" in more else None
        with narrowed(limit, 90):
            assert_true(data, solve(load(data), team, ties=True), team)


@pytest.mark.parametrize("limit", [None, 0, 5])
def test_texts_and_missing_cells(limit: int | None) -> None:
    dimensions: Data = {
        "tone": ["red", "green", "blue"], "other": ["green", "blue", "grey"], "part": {"table": "parts"},
        "n": {"range": [0, 5]}, "m": {"range": [0, 5]},
    }  # fmt: skip
    tables: Data = {
        "parts": {"columns": {"w": "1", "good": "texts"}, "rows": {
            "p": [1, ["red", "blue"]], "q": [None, ["green"]], "r": [-2, ["blue"]], "s": [0, None]}},
        "pay": {"keys": ["tone", "n"], "unit": "1", "rows": {
            "red": {"0": 1, "1": 2, "4": -1}, "green": {"0": 0, "2": 5, "3": 1, "5": 2}}},
    }  # fmt: skip
    data = flat_data(
        dimensions, {"x": "where(tone == 'blue', n, pay[tone, n]) - m", "y": "part.w * m + n"},
        tables=tables, rules={"fits": {"check": "tone in part.good or tone != other", "because": "it is so"}},
        constraints={"c": {"check": "other not in ['grey'] or m > n"}},
    )  # fmt: skip
    with narrowed(limit, 30):
        assert_true(data, solve(load(data), ties=True))


def test_one_design() -> None:
    data = flat_data({"a": [3], "b": ["x"]}, {"x": "a * a", "y": "-a"})
    result = solve(load(data), ties=True, top=2)
    assert_true(data, result)
    assert [point.index for point in result.best] == [0]
    several = flat_data(GRID, {"x": "a * b - c"}, teams={"one": {"a": 1, "b": -2, "c": 6}})
    assert_true(several, solve(load(several), "one", ties=True), "one")


# -- large -----------------------------------------------------------------------------------------------------


def test_nothing_is_feasible_among_10_to_the_12() -> None:
    """That is proven, with the nearest miss: sums of squares of twelve numbers from 1 to 10 reach 1200."""
    names = [f"d{at}" for at in range(12)]
    found = flat(
        {name: {"range": [1, 10]} for name in names},
        {"squares": " + ".join(f"{name} ** 2" for name in names), "x": " + ".join(names)},
        {"x": "minimize"},
        constraints={"squares": ">= 1201"},
    )
    assert found.size == 10**12
    result = solve(found)
    assert_accounted(result)
    assert not result.feasible
    assert result.accounting.unvisited == 0
    assert result.nearest_miss is not None
    assert set(result.nearest_miss.design.values()) == {10.0}
    assert result.nearest_miss.violations == {"squares": 1.0}
    assert [relaxation.constraints for relaxation in result.relaxations] == [("squares",)]


def test_two_constraints_that_exclude_each_other_among_10_to_the_12() -> None:
    names = [f"d{at}" for at in range(12)]
    found = flat(
        {name: {"range": [0, 9]} for name in names},
        {"sum": " + ".join(names), "weighted": " + ".join(f"{at + 1} * {n}" for at, n in enumerate(names))},
        {"weighted": "minimize"},
        constraints={"sum": ">= 100", "weighted": "<= 500"},
    )
    result = solve(found)
    assert_accounted(result)
    assert not result.feasible

    # The least weighted sum of designs whose sum is s takes the light dimensions first.
    def least(total: int) -> int:
        full, rest = divmod(total, 9)
        return 9 * full * (full + 1) // 2 + (rest * (full + 1) if rest else 0)

    nearest = min(max(100 - s, 0) / 100 + max(least(s) - 500, 0) / 500 for s in range(109))
    assert result.nearest_miss is not None
    assert result.nearest_miss.nearness == pytest.approx(nearest, rel=1e-12)
    assert {r.constraints for r in result.relaxations} == {("sum",), ("weighted",)}


@pytest.mark.parametrize("size", [10**5, 10**6])
def test_a_long_dimension(size: int) -> None:
    """(a - m)^2 against a + b: the front runs from the least sum to the middle."""
    middle = size // 3 + 7
    found = flat(
        {"a": {"range": [0, size - 1]}, "b": {"range": [0, 3]}},
        {"far": f"(a - {middle}) ** 2 + b", "sum": f"floor((a + b) / {size // 20})"},
    )
    result = solve(found)
    assert_accounted(result)
    step = size // 20
    right = [(0.0, float(middle // step))]
    right += [
        (float((middle - (level + 1) * step + 1) ** 2), float(level)) for level in range(middle // step)[::-1]
    ]
    assert costs(result) == right
    assert result.accounting.evaluated < size / 20


def test_a_dimension_of_ten_million_values() -> None:
    """Products near a number against how large the factors are, in steps of a million."""
    found = flat(
        {"a": {"range": [1, 10**7]}, "b": {"range": [1, 8]}},
        {"x": "abs(a * b - 7654321)", "y": "b + floor(a / 1000000)"},
    )
    result = solve(found)
    assert_accounted(result)
    best: dict[float, float] = {}
    for b in range(1, 9):
        for level in range(11):
            low, high = max(1, level * 10**6), min(10**7, level * 10**6 + 999_999)
            near = [min(max(a, low), high) for a in (7654321 // b, 7654321 // b + 1)]
            x = float(min(abs(a * b - 7654321) for a in near))
            best[b + level] = min(best.get(b + level, math.inf), x)
    right = sorted(
        (x, float(y)) for y, x in best.items() if all(o > x for other, o in best.items() if other < y)
    )
    assert costs(result) == right


# -- the same whatever the work ---------------------------------------------------------------------------------


def certified(found: Problem, folder: Path, tick: int | None = None, **options: Any) -> tuple[str, bytes]:
    """The canonical result and the certificate; stopped once at ``tick`` and gone on with, if one is given."""
    folder.mkdir()
    saved: list[bytes] = []
    recorder = Recorder(folder, found, found.everything)
    own: dict[str, Any] = {"certificate": recorder, "save": saved.append, "seed": 1, **options}
    if tick is not None:
        left = iter(range(tick))
        first = run_exact(found, found.everything, Pareto(), stop=lambda: next(left, None) is None, **own)
        assert first.status == "stopped"
        own |= {"certificate": Recorder(folder, found, found.everything), "checkpoint": saved[-1]}
    run = run_exact(found, found.everything, Pareto(), **own)
    result = exact_result(found, found.everything, "pareto", run, seed=1).to_json(run=False)
    return result, (folder / "certificate.bin").read_bytes()


def test_result_and_certificate_are_the_same_however_they_came_about(tmp_path: Path) -> None:
    compared = 0
    for seed in (2, 7, 10, 14, 15, 23):
        found = load(wide(random.Random(seed), 3_000, 1 + seed % 4))
        with narrowed(limit=20, children=60):
            whole = certified(found, tmp_path / f"{seed}")
            assert certified(found, tmp_path / f"{seed}-two", workers=2) == whole
            for tick in (0, 3, 11):
                ticks: list[float] = []
                run_exact(found, found.everything, Pareto(), progress=ticks.append)
                if tick < len(ticks) - 1:
                    compared += 1
                    assert certified(found, tmp_path / f"{seed}-{tick}", tick=tick) == whole
    assert compared > 9


def test_the_front_does_not_depend_on_how_many_boxes_are_looked_at_in_a_step() -> None:
    for seed in range(12):
        found = load(wide(random.Random(seed), 2_000, 1 + seed % 4))
        fronts = []
        for children in (2, 30, 1_000, None):
            with narrowed(limit=15, children=children):
                fronts.append(solve(found, ties=True, top=3).to_dict())
        assert all((f["front"], f["best"]) == (fronts[0]["front"], fronts[0]["best"]) for f in fronts)


def test_two_workers_find_what_one_finds_on_a_longer_search() -> None:
    found = load(wide(random.Random(30), 400_000, 3))
    with narrowed(limit=100, children=2_000):
        ticks: list[float] = []
        one = solve(found, progress=ticks.append).to_json(run=False)
        assert solve(found, workers=2).to_json(run=False) == one
    assert len(ticks) > 10
