"""Bounds over boxes: no evaluated design ever escapes them, and boxes of one design are exact."""

from __future__ import annotations

import itertools
import math
import operator
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse import search
from dse.evaluation import State, evaluate_nodes, judge, member
from dse.evaluation.bounds import Boxes, Grid
from dse.evaluation.bounds.axes import digits
from dse.evaluation.bounds.boxes import Frame
from dse.evaluation.bounds.leaves import Table
from dse.problem import Bound, Problem
from dse.problem.library import load
from tests.randomspaces import problem, spaces

LIMITS = (0, 6, 65_536)
"""Nothing tabulated but what must be, small tables, everything tabulated."""


def prefixes(boxes: Boxes, rng: random.Random, count: int) -> list[dict[int, int]]:
    """Random boxes: digits of some axes, the first ones of each dimension."""
    found = []
    for _ in range(count):
        chosen: dict[int, int] = {}
        for own in boxes.grid.own:
            for axis in own[: rng.randint(0, len(own))]:
                chosen[axis] = rng.randrange(boxes.grid.axes[axis].size)
        found.append(chosen)
    return found


def designs(boxes: Boxes, prefix: dict[int, int]) -> list[int]:
    """The positions in the hull of all designs of a box."""
    grid = boxes.grid
    found = []
    for position in range(grid.total):
        rest, places = position, []
        for size in reversed(grid.sizes):
            rest, place = divmod(rest, size)
            places.append(place)
        places.reverse()
        inside = True
        for axis, digit in prefix.items():
            own = grid.axes[axis]
            first = grid.own[own.dimension][0] == axis
            digit_of = places[own.dimension] // own.stride
            inside &= (digit_of if first else digit_of % own.size) == digit
        if inside:
            found.append(position)
    return found


def bounds_of(boxes: Boxes, frame: Frame) -> tuple[bool, list[bool], list[bool], list[float]]:
    inside, rules = boxes.legal(frame)
    feasible = boxes.feasible(frame)
    lows = boxes.objectives(frame)
    flat = [np.asarray(x).reshape(-1)[0] for x in (inside, *rules, *feasible, *lows)]
    r, c = len(rules), len(feasible)
    return (
        bool(flat[0]),
        [bool(x) for x in flat[1 : 1 + r]],
        [bool(x) for x in flat[1 + r : 1 + r + c]],
        flat[1 + r + c :],
    )


def assert_contained(found: Problem, limit: int, seed: int) -> int:
    """Every design of random boxes is within their bounds; how many were compared."""
    rng = random.Random(seed)
    compared = 0
    for team in (found.everything, *found.teams.values()):
        boxes = Boxes(found, team, limit)
        for prefix in prefixes(boxes, rng, 3):
            columns = {axis: np.array([digit]) for axis, digit in prefix.items()}
            frame = boxes.frame(columns, None, 1)
            with np.errstate(all="ignore"):
                inside, rules, feasible, lows = bounds_of(boxes, frame)
            for position in designs(boxes, prefix):
                compared += 1
                places = boxes.grid.places_of(position)
                design = found.design_at([int(boxes.grid.hull[d][p]) for d, p in enumerate(places)])
                values = evaluate_nodes(found, design, [rule.check for rule in found.rules])
                for possible, rule in zip(rules, found.rules, strict=True):
                    assert possible or values[rule.check] is not True
                if any(values[rule.check] is not True for rule in found.rules):
                    continue
                bounds = [c.bound for c in found.constraints]
                nodes = [o.node for o in found.objectives] + [n for x in bounds for n in (x.lhs, x.rhs)]
                values = evaluate_nodes(found, design, nodes)
                for possible, bound in zip(feasible, bounds, strict=True):
                    assert possible or not met(bound, values[bound.lhs], values[bound.rhs])
                for low, objective in zip(lows, found.objectives, strict=True):
                    value = values[objective.node]
                    assert not isinstance(value, float) or math.isnan(value) or low <= value * objective.sign
                if judge(found, design).state is State.FEASIBLE and member(found, team, design):
                    assert inside
    return compared


def met(bound: Bound, lhs: Any, rhs: Any) -> bool:
    """Whether a bound certainly holds: what has no value meets nothing."""
    if bound.op == "holds":
        return lhs is True
    compare = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt, "==": operator.eq}
    return isinstance(lhs, float) and isinstance(rhs, float) and bool(compare[bound.op](lhs, rhs))


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("first", range(0, 150, 50))
def test_no_design_escapes_the_bounds_of_its_box(first: int, limit: int) -> None:
    compared = sum(assert_contained(problem(seed, 40), limit, seed) for seed in range(first, first + 50))
    assert compared > 1000


@settings(max_examples=100)
@given(spaces(designs=24), st.sampled_from(LIMITS), st.integers(0, 2**16))
def test_no_design_of_a_drawn_problem_escapes(data: dict[str, Any], limit: int, seed: int) -> None:
    assert_contained(load(data), limit, seed)


@pytest.mark.parametrize("limit", LIMITS)
def test_a_box_of_one_design_is_exact(limit: int) -> None:
    """Where nothing is widened: correctly rounded operations on equal end points give the value itself."""
    exact = 0
    for seed in range(80):
        found = problem(seed, 30)
        operations = {found.graph[n].op for n in found.graph.needed(o.node for o in found.objectives)}
        if operations & {"exp", "log", "log2", "pow"}:
            continue
        boxes = Boxes(found, found.everything, limit)
        for position in range(min(boxes.grid.total, 6)):
            places = boxes.grid.places_of(position)
            columns = {}
            for d, own in enumerate(boxes.grid.own):
                rest = places[d]
                for axis in own:
                    stride = boxes.grid.axes[axis].stride
                    columns[axis] = np.array([rest // stride])
                    rest %= stride
            verdict = judge(found, found.design_at(places))
            if verdict.state not in (State.FEASIBLE, State.INFEASIBLE):
                continue
            with np.errstate(all="ignore"):
                lows = bounds_of(boxes, boxes.frame(columns, None, 1))[3]
            signs = [o.sign for o in found.objectives]
            values = [v * s for v, s in zip(verdict.objectives, signs, strict=True)]
            # A divisor that may be zero, or a factor 0 of inf, still gives a wide bound where no table is kept.
            exact += all(low == value for low, value in zip(lows, values, strict=True))
            assert all(low <= value for low, value in zip(lows, values, strict=True))
            if limit == max(LIMITS):
                assert [float(low) for low in lows] == values
    assert exact > 40


@pytest.mark.parametrize("size", [1, 2, 8, 9, 10, 11, 12, 16, 31, 32, 64, 97, 1000, 65_537, 10**7])
def test_digits_number_every_place_once(size: int) -> None:
    found = digits(size)
    assert found[-1][1] == 1
    assert math.prod(own for own, _ in found) >= size
    for (_, stride), (own, following) in itertools.pairwise(found):
        assert stride == own * following
    assert max(own for own, _ in found) <= 16


def test_the_bounds_of_a_long_dimension_are_of_its_digits() -> None:
    found = load(
        {
            "dse": 1,
            "name": "long",
            "dimensions": {"x": {"range": [1, 100_000]}, "y": {"range": [1, 100_000]}},
            "metrics": {"m": {"expr": "x * y - x", "unit": 1}},
            "objectives": {"m": "minimize"},
        }
    )
    boxes = Boxes(found, found.everything)
    first = boxes.grid.own[0][0]
    stride = boxes.grid.axes[first].stride
    frame = boxes.frame({first: np.array([1])}, None, 1)
    boxes.legal(frame)
    boxes.feasible(frame)
    (low,) = boxes.objectives(frame)
    assert low.item() <= 0.0
    assert low.item() >= (stride + 1) - 2 * stride
    assert Grid(found, found.everything).total == 10**10


# -- kinds of bugs that were -------------------------------------------------------------------------------


def test_signed_zeros_under_powers_are_bounded() -> None:
    """``-(0 * x)`` is -0.0, and -0.0 to a negative odd power is -inf: bounds do not tell the two zeros apart."""
    found = load(
        {
            "dse": 1,
            "name": "zeros",
            "dimensions": {"a": {"range": [0, 6]}, "b": {"range": [0, 6]}, "e": [-9, -11, -2, 3]},
            "lets": {"neg": "max(-(a * b), 0)"},
            "metrics": {
                "q": {"expr": "neg ** e", "unit": 1},
                "r": {"expr": "1 / (0 * -a + b - b)", "unit": 1},
                "m": {"expr": "a + b", "unit": 1},
            },
            "objectives": {"m": "minimize", "q": "minimize"},
            "constraints": {"q": "<= 0.5", "r": "<= 1"},
        }
    )
    for limit in LIMITS:
        for seed in range(20):
            assert assert_contained(found, limit, seed) > 0


def test_a_team_may_narrow_more_dimensions_than_an_array_has_axes() -> None:
    names = [f"x{at}" for at in range(100)]
    found = load(
        {
            "dse": 1,
            "name": "narrow",
            "dimensions": {name: [0, 1] for name in names},
            "metrics": {
                "a": {"expr": " + ".join(names), "unit": 1},
                "b": {"expr": "10 - x95 - 2 * x96", "unit": 1},
            },
            "objectives": {"a": "minimize", "b": "minimize"},
            "teams": {"most": dict.fromkeys(names[:90], 1), "one": dict.fromkeys(names, 1)},
        }
    )
    for team, size in (("most", 3), ("one", 1)):
        results = [search(found, team=team, solver=solver, ties=True) for solver in ("pareto", "exhaustive")]
        assert [len(result.front) for result in results] == [size, size]
        assert [point.tied for point in results[0].front] == [point.tied for point in results[1].front]


def test_tables_are_read_by_several_threads_at_once() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            values = np.arange(2.0**12).reshape((2,) * 12)
            table = Table(tuple(range(12)), values, np.minimum)
            rng = random.Random(0)
            subsets = [frozenset(rng.sample(range(12), rng.randint(1, 11))) for _ in range(60)]
            with ThreadPoolExecutor(4) as pool:
                for keys, found in pool.map(lambda own, table=table: table.over(own, None), subsets):
                    assert len(found) == 2 ** len(keys)
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("k", [6, 12, 13, 18])
def test_any_number_of_objectives(k: int) -> None:
    found = load(
        {
            "dse": 1,
            "name": "many",
            "dimensions": {f"x{at}": {"range": [0, 3]} for at in range(5)},
            "metrics": {
                f"m{at}": {"expr": f"x{at % 5} + 2 * (3 - x{(at + 1) % 5}) * x{(at * 3 + 2) % 5}", "unit": 1}
                for at in range(k)
            },
            "objectives": {f"m{at}": "minimize" for at in range(k)},
        }
    )
    results = [search(found, solver=solver, ties=True) for solver in ("pareto", "exhaustive")]
    assert [(p.index, p.tied) for p in results[0].front] == [(p.index, p.tied) for p in results[1].front]
