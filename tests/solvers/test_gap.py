"""What ``pareto`` promises short of the exact front: the gap when it is stopped, and epsilon-fronts."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dse.errors import DseError, InputError
from dse.problem import Problem
from dse.problem.library import load
from dse.solvers.pareto import Pareto
from dse.study.diagnosis import exact_result
from dse.study.exact import run_exact
from dse.study.gap import Gap, gap_of
from dse.study.result import Result
from dse.study.study import search
from tests.brute import Everything
from tests.bruteforce import assert_accounted
from tests.solvers.narrowing import narrowed
from tests.solvers.proving import Data, assert_feasible_front, costs, flat, solve
from tests.widespaces import wide

Floats = NDArray[np.float64]


# -- stopped: the gap -------------------------------------------------------------------------------------


def volume(vectors: Sequence[Sequence[float]], best: Floats, worst: Floats) -> float:
    """The share of a box that up to three objectives dominate: slabs along the last, each by recursion."""
    span = [b - a for a, b in zip(best, worst, strict=True)]
    scaled = sorted(
        ([(v - a) / s for v, a, s in zip(vector, best, span, strict=True)] for vector in vectors),
        key=lambda vector: vector[-1],
    )
    return unit_volume([vector for vector in scaled if max(vector) < 1.0])


def unit_volume(vectors: list[list[float]]) -> float:
    if not vectors:
        return 0.0
    if len(vectors[0]) == 1:
        return 1.0 - min(vector[0] for vector in vectors)
    vectors = sorted(vectors, key=lambda vector: vector[-1])
    ends = [*(vector[-1] for vector in vectors[1:]), 1.0]
    slabs = []
    for at, end in enumerate(ends):
        if end > vectors[at][-1]:
            slabs.append((end - vectors[at][-1]) * unit_volume([v[:-1] for v in vectors[: at + 1]]))
    return math.fsum(slabs)


def signed(problem: Problem, values: Any) -> Floats:
    return np.array([values[o.name] * o.sign for o in problem.objectives])


def assert_gap_holds(result: Result, truth: Sequence[tuple[float, ...]]) -> None:
    """What a stopped search claims, against the true front."""
    problem, gap, front = result.problem, result.gap, np.array(costs(result))
    assert gap is not None
    right = np.array(truth).reshape(-1, len(problem.objectives))
    bound = signed(problem, gap.bound)
    assert (right >= bound).all()
    additive = np.array([gap.additive[o.name] for o in problem.objectives])
    assert (additive >= 0.0).all()
    if not len(front):
        assert (additive == np.inf).all() or not len(right)
        return
    for vector in right:
        assert (front <= vector + additive).all(axis=1).any(), (vector, additive)
    if gap.hypervolume is None:
        return
    assert gap.hypervolume_bound is not None
    assert gap.hypervolume_gap is not None
    worst = signed(problem, gap.reference)
    assert (front <= worst).all()
    if len(problem.objectives) <= 3:
        own = volume(costs(result), bound, worst)
        assert own <= volume(truth, bound, worst) + 1e-12
        assert volume(truth, bound, worst) <= gap.hypervolume_bound + 1e-12
        assert gap.hypervolume == pytest.approx(own, abs=1e-9)
    assert 0.0 <= gap.hypervolume <= gap.hypervolume_bound <= 1.0


def stopped_at(found: Problem, team: str | None, tick: int, **options: Any) -> tuple[Result, bytes]:
    """The result of a search that is stopped at a tick, and its checkpoint."""
    saved: list[bytes] = []
    left = iter(range(tick))
    own = found.team(team)
    run = run_exact(
        found, own, Pareto(), save=saved.append, stop=lambda: next(left, None) is None, seed=3, **options
    )
    return exact_result(found, own, "pareto", run, seed=3), saved[-1]


def assert_stops_are_proven(data: Data, team: str | None, shares: Sequence[float], **options: Any) -> int:
    """How many of the stops came before the end."""
    found, right = load(data), Everything(data, team)
    truth = [own for own, _ in right.front]
    ticks: list[float] = []
    own = found.team(team)
    whole = run_exact(found, own, Pareto(), progress=ticks.append, seed=3, **options)
    undisturbed = exact_result(found, own, "pareto", whole, seed=3)
    assert costs(undisturbed) == truth
    count = 0
    for share in shares:
        result, checkpoint = stopped_at(found, team, int(share * len(ticks)), **options)
        if result.status == "complete":
            continue
        count += 1
        assert_accounted(result)
        if result.gap is not None:  # else it was looking for near misses
            assert_gap_holds(result, truth)
            assert (
                Gap.from_dict(json.loads(json.dumps(result.gap.to_dict()))).to_dict() == result.gap.to_dict()
            )
        assert_feasible_front(result, right)
        again = run_exact(found, own, Pareto(), checkpoint=checkpoint, seed=3, **options)
        resumed = exact_result(found, own, "pareto", again, seed=3)
        assert resumed.to_json(run=False) == undisturbed.to_json(run=False)
    return count


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_the_gap_of_a_stopped_search_contains_the_truth(first: int) -> None:
    stops = 0
    for seed in range(first, first + 20):
        data = wide(random.Random(seed), 150 + 40 * (seed % 20), 1 + seed % 4)
        team = "either" if seed % 5 == 0 else None
        with narrowed(limit=seed % 7, children=4 + seed % 30):
            stops += assert_stops_are_proven(
                data, team, (0.0, 0.1, 0.5, 0.9), ties=seed % 2 == 0, top=seed % 3
            )
    assert stops > 50


def test_the_gap_of_a_larger_search() -> None:
    for seed in (3, 10, 14, 15):
        data = wide(random.Random(seed), 20_000, 1 + seed % 4)
        with narrowed(limit=30, children=400):
            assert_stops_are_proven(data, None, (0.1, 0.5, 0.9))


@pytest.mark.parametrize("worst", [[math.inf, 9.0], [-math.inf, -math.inf], [1e308, 1e308], [9.0, 9.0]])
def test_the_gap_in_an_objective_does_not_hang_on_the_worst_value(worst: list[float]) -> None:
    axis = {"range": [1, 4]}
    data = flat({"a": axis, "b": axis}, {"x": "a", "y": "b"}, {"x": "minimize", "y": "minimize"})
    front = np.array([[0.1, 3.0], [2.0, 1e-3], [0.3, 0.7]])
    lows = np.array([[0.1, 0.6], [1e-17, 2.9]])
    gap = gap_of(data, front, lows, np.array(worst))
    more = np.array([gap.additive["x"], gap.additive["y"]])
    assert (more < [0.3, 3.0]).all()
    for low in lows:
        assert (front <= low + more).all(axis=1).any()
    endless = gap_of(data, front, np.array([[-math.inf, 0.6]]), np.array(worst))
    assert endless.additive["x"] == math.inf


def test_the_gap_narrows_and_closes() -> None:
    data = wide(random.Random(15), 5_000, 2)
    found = load(data)
    with narrowed(limit=10, children=40):
        ticks: list[float] = []
        run_exact(found, found.everything, Pareto(), progress=ticks.append)
        gaps = [
            stopped_at(found, None, at)[0].gap for at in range(0, len(ticks) - 1, max(1, len(ticks) // 12))
        ]
    widths = [sum(gap.additive.values()) for gap in gaps if gap is not None]
    assert len(widths) > 5
    assert widths[-1] < widths[0]
    bounds = [list(gap.bound.values()) for gap in gaps if gap is not None]
    signs = [o.sign for o in found.objectives]
    for before, after in pairwise(bounds):
        assert all(s * a <= s * b for s, a, b in zip(signs, before, after, strict=True))


# -- epsilon ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5])
def test_an_epsilon_front_is_near_every_feasible_design(epsilon: float) -> None:
    for seed in range(40):
        data = wide(random.Random(seed), 300 + 50 * (seed % 9), 1 + seed % 4)
        right = Everything(data)
        feasible = right.costs[right.feasible]
        with narrowed(limit=seed % 9, children=5 + seed):
            found = load(data)
            run = run_exact(found, found.everything, Pareto(), options={"epsilon": epsilon})
        result = exact_result(found, found.everything, "pareto", run, epsilon=epsilon)
        assert (result.promise, result.epsilon, result.status) == ("epsilon", epsilon, "complete")
        assert_accounted(result)
        assert_feasible_front(result, right)
        front = np.array(costs(result)).reshape(-1, feasible.shape[1])
        assert bool(len(front)) == bool(len(feasible))
        reach = feasible + epsilon * np.abs(feasible)
        for vector in reach:
            assert (front <= vector).all(axis=1).any()


@pytest.mark.parametrize("epsilon", [0.01, 0.5])
def test_an_epsilon_front_of_a_million_costs_no_more_than_the_exact_one(epsilon: float) -> None:
    """Near-continuous trade-offs of values of both signs; the exact front stands for all feasible designs."""
    found = flat(
        {name: {"range": [1, 32]} for name in "abcd"},
        {"x": "a * 1.01 + b * b / 50 - 20 + sqrt(c) * d / 7", "y": "1e3 / (a + b / 3 + c) - b / 9 - d * 1.7"},
    )
    exact = solve(found)
    near = search(found, solver="pareto", options={"epsilon": epsilon})
    front, right = np.array(costs(near)), np.array(costs(exact))
    assert {x < 0.0 for x in right[:, 0].tolist()} == {True, False}
    for reach in right + epsilon * np.abs(right):
        assert (front <= reach).all(axis=1).any()
    assert near.accounting.evaluated <= exact.accounting.evaluated


def test_an_epsilon_search_that_is_stopped_claims_a_true_gap() -> None:
    for seed in range(30):
        data = wide(random.Random(seed), 400, 2 + seed % 2)
        found, right = load(data), Everything(data)
        with narrowed(limit=5, children=10):
            for tick in (1, 5, 20):
                result, _ = stopped_at(found, None, tick, options={"epsilon": 0.2})
                if result.status == "stopped" and result.gap is not None:
                    assert_feasible_front(result, right)
                    assert_gap_holds(result, [own for own, _ in right.front])


@pytest.mark.parametrize("bad", [-0.1, 1.0, 2, "much", None, True, math.nan, math.inf, [0.1]])
def test_a_bad_epsilon_is_refused(bad: Any) -> None:
    with pytest.raises((InputError, DseError), match="epsilon"):
        search("camera", solver="pareto", options={"epsilon": bad})


def test_auto_picks_pareto_for_epsilon() -> None:
    result = search("camera", options={"epsilon": 0.05})
    assert (result.solver, result.promise, result.epsilon) == ("pareto", "epsilon", 0.05)
    assert "epsilon" in result.note
    assert search("camera", solver="pareto").promise == "exact"
    assert search("camera", solver="pareto", options={"epsilon": 0}).promise == "exact"
