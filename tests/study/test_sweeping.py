"""Sweeps against brute force, however they are planned and cut; and the designs that they keep."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dse.evaluation import BulkEvaluator, broken_rule, member
from dse.evaluation.grid import Grid
from dse.evaluation.hull import Hull
from dse.evaluation.plan import Plan
from dse.evaluation.ranking import drawn_ranks, ranked
from dse.evaluation.sweep import Sweep
from dse.problem import Problem, Team
from dse.problem.library import load
from dse.solvers.exhaustive import Exhaustive
from dse.study import gathering, keeping
from dse.study.diagnosis import exact_result
from dse.study.dominance import nondominated
from dse.study.exact import run_exact, walk
from dse.study.front import FrontTooLarge
from dse.study.gathering import Gathering
from dse.study.guards import Steps, guards_of, unbeaten
from dse.study.result import Result
from dse.study.solver import ExactSearch, ExactSolver
from dse.study.sweeping import Sweeping
from dse.study.tally import Tally
from tests.bruteforce import (
    assert_accounted,
    assert_right_counts,
    assert_right_explanation,
    assert_right_front,
    truth,
)
from tests.randomspaces import problem


class Planned(ExactSolver):
    """An exhaustive search that is planned and cut as it is told."""

    name = "planned"
    title = "a sweep by plan"
    needs = frozenset({"bulk"})

    def __init__(self, plan: Plan | None, **sizes: int) -> None:
        self.plan = plan
        self.sizes = sizes

    def explore(self, search: ExactSearch) -> None:
        sweep = Sweep(search.problem, search.team, plan=self.plan, **self.sizes)
        walk(search, Sweeping, Sweeping(search.problem, search.team, sweep))


def solve(found: Problem, team: Team, solver: ExactSolver, **options: Any) -> Result:
    return exact_result(found, team, "exhaustive", run_exact(found, team, solver, **options))


def teams(found: Problem) -> Iterator[Team]:
    yield found.everything
    yield from found.teams.values()


def plans(found: Problem, team: Team, draw: random.Random) -> Iterator[Plan]:
    """All walked, some walked in any order, and one walked."""
    every = list(range(len(found.dimensions)))
    for count in sorted({1, draw.randint(1, len(every)), len(every)}):
        rows = draw.sample(every, count)
        inner = [d for d in every if d not in rows]
        rows += [d for d in inner if Hull(found, team).sizes[d] == 1]
        yield Plan(tuple(rows), tuple(d for d in inner if d not in rows), draw.choice([0.01, 0.3, 1.0]))


def assert_right(result: Result, right: Any) -> None:
    assert_accounted(result)
    assert_right_front(result, right)
    assert_right_explanation(result, right)
    assert_right_counts(result, right)
    best = sorted((costs[0], index) for index, costs in right.costs.items())[:3]
    assert [point.index for point in result.best] == [index for _, index in best]
    assert [point.tied for point in result.front] == [indices for _, indices in right.front]


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_any_plan_gives_the_truth(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + 40):
        monkeypatch.setattr(gathering, "_MANY", seed % 3 or 512)  # so that all tests for the front are used
        draw = random.Random(seed)
        found = problem(seed, 60)
        for team in teams(found):
            right = truth(found, team)
            for plan in plans(found, team, draw):
                sizes = {
                    "batch": draw.choice([1, 7, 65_536]),
                    "block": draw.choice([1, 5, 250_000]),
                    "piece": draw.choice([1, 20, 10**6]),
                }
                assert_right(solve(found, team, Planned(plan, **sizes), ties=True, top=3), right)


def test_larger_spaces_are_planned() -> None:
    """Some conditions are decided by rows and some are not; a membership, too."""
    found = load(
        {
            "dse": 1, "name": "planned",
            "dimensions": {"a": {"range": [0, 11]}, "b": {"range": [0, 9]}, "c": {"range": [0, 7]},
                           "d": [0, 1, 2], "e": [1, 2], "f": {"range": [1, 5]}},
            "rules": {
                "wide": {"check": "(a + b + c + d + e + f) % 7 != 3", "because": "x"},
                "narrow": {"check": "(a * b) % 4 == 0", "because": "y"},
            },
            "metrics": {"x": {"expr": "where(d > e, a * f, a / f) + c", "unit": 1},
                        "y": {"expr": "sqrt(b - 1) + max(c, d) * e", "unit": 1}},
            "objectives": {"x": "minimize", "y": "maximize"},
            "constraints": {"x": "<= 40"},
            "teams": {"odd": {"where": "(a + f) % 3 != 1 and c < 6"}, "one": {"a": [1, 2, 3], "e": 2},
                      "other": {"b": [2, 5, 7], "d": [0, 2]}, "both": "one | other"},
        }
    )  # fmt: skip
    assert found.size > 20_000
    for team in teams(found):
        assert_right(
            solve(found, team, Exhaustive(), ties=True, top=3, options={"jit": "off"}), truth(found, team)
        )


# -- kept designs ----------------------------------------------------------------------------------------


def legal_positions(found: Problem, team: Team) -> list[int]:
    hull = Hull(found, team)
    designs = ((at, found.design_at(hull.digits_of(at))) for at in range(hull.total))
    return [at for at, design in designs if member(found, team, design) and not broken_rule(found, design)]


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_designs_are_found_by_rank(seed: int) -> None:
    found = problem(seed, 60)
    for team in teams(found):
        right = legal_positions(found, team)
        first = random.Random(seed).sample(range(len(found.dimensions)), 1)
        for order in ([], first):
            ranks = np.arange(len(right) + 3, dtype=np.int64)
            listed = ranked(found, team, ranks, order)
            assert sorted(listed.tolist()) == right
            some = ranked(found, team, ranks[1::3], order)
            assert some.tolist() == listed[1::3].tolist()


def test_ranks_are_drawn_evenly_without_repeats() -> None:
    for total, count in ((10, 10), (10, 20), (1000, 3), (1000, 700), (10**15, 500), (7, 0)):
        ranks = drawn_ranks(total, count, 3).tolist()
        assert len(set(ranks)) == len(ranks) == min(total, count)
        assert ranks == sorted(ranks)
        assert all(0 <= rank < total for rank in ranks)
        assert ranks == drawn_ranks(total, count, 3).tolist()
    assert drawn_ranks(1000, 3, 3).tolist() != drawn_ranks(1000, 3, 4).tolist()
    met = np.zeros(9)
    for seed in range(3000):
        met[drawn_ranks(9, 4, seed)] += 1
        met[drawn_ranks(9, 6, seed)] += 1
    assert abs(met / 3000 - 10 / 9).max() < 0.05


def test_a_stopped_sweep_keeps_designs_that_it_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[int] = []
    take = Gathering.take

    def watched(self: Gathering, grid: Grid, tally: Tally) -> None:
        legal = np.asarray(True) if grid.legal is None else grid.legal
        evaluated.extend(grid.positions(grid.list(legal)).tolist())
        take(self, grid, tally)

    monkeypatch.setattr(Gathering, "take", watched)
    stopped = 0
    for seed in range(80):
        found, draw = problem(seed, 60), random.Random(seed)
        for plan in plans(found, found.everything, draw):
            evaluated.clear()
            ticks = iter(range(draw.randint(1, 4)))
            run = run_exact(
                found, found.everything, Planned(plan, batch=4, block=3, piece=4),
                keep=7, stop=lambda ticks=ticks: next(ticks, None) is None,  # type: ignore[misc]
            )  # fmt: skip
            kept = exact_result(found, found.everything, "exhaustive", run).kept
            assert kept is not None
            indices = [found.index_of(row) for row in kept.digits.tolist()]
            assert indices == sorted(indices)
            assert kept.seen == len(evaluated)
            assert len(indices) == len(set(indices)) == min(7, len(evaluated))
            assert set(indices) <= set(evaluated)
            assert kept.complete == (set(indices) == set(evaluated))
            stopped += run.status == "stopped"
    assert stopped > 30


def test_kept_designs_are_looked_for_when_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    monkeypatch.setattr(keeping, "_listed", lambda *_: called.append(1))
    found = load("camera")
    result = solve(found, found.everything, Exhaustive())
    assert not called
    assert result.kept is not None
    assert (result.kept.seen, result.kept.complete) == (312, True)
    assert not called
    with pytest.raises(TypeError):
        _ = result.kept.digits
    assert called


# -- what sweeps rely on ---------------------------------------------------------------------------------


def test_guards_beat_no_design_of_the_front() -> None:
    draw = np.random.default_rng(0)
    for k in (1, 2, 3, 4):
        for high in (3, 10, 10**6):
            values = draw.integers(0, high, (400, k)).astype(np.float64)
            guards = guards_of(values, values)
            left = unbeaten(values, guards)
            front = set(np.flatnonzero(nondominated(values)).tolist())
            assert front <= set(left.tolist())
            steps = Steps(values[sorted(front)]).unbeaten(values)
            assert front <= set(steps.tolist())
            assert high < 10**6 or len(steps) < len(front) + 20
            if high > 3 and k < 3:
                assert len(left) < 200


@pytest.mark.parametrize("k", [2, 5, 8, 12, 15, 16, 40])
def test_steps_of_many_objectives_are_few_and_beat_what_there_is_room_for(k: int) -> None:
    values = np.random.default_rng(k).normal(size=(300, k))
    front = values[nondominated(values)]
    steps = Steps(front)
    assert steps.table.size <= 2**14
    assert len(steps.unbeaten(front)) == len(front)
    beaten = front.max(axis=0)[None] + 1.0
    assert len(steps.unbeaten(beaten)) == (0 if k < 16 else 1)


@pytest.mark.parametrize("jit", ["on", "off"])
@pytest.mark.parametrize("k", [12, 18, 24])
def test_many_objectives_take_no_more_memory_than_few(k: int, jit: str) -> None:
    if jit == "on":
        pytest.importorskip("llvmlite")
    names = "abcd"
    exprs = {
        f"m{at}": f"({names[at % 4]} * {at + 1} + {names[(at + 1) % 4]} * {at * at + 3}) % {at + 5}"
        for at in range(k)
    }
    found = load(
        {
            "dse": 1, "name": "many", "dimensions": {name: {"range": [1, 9]} for name in names},
            "metrics": {name: {"expr": expr, "unit": 1} for name, expr in exprs.items()},
            "objectives": dict.fromkeys(exprs, "minimize"),
        }
    )  # fmt: skip
    tracemalloc.start()
    result = solve(found, found.everything, Exhaustive(), options={"jit": jit})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    digits = np.array(list(itertools.product(range(9), repeat=4)))
    values = BulkEvaluator(found, [o.node for o in found.objectives]).evaluate(
        dict(zip(names, digits.T, strict=True))
    )
    costs = np.column_stack([values[o.node].values for o in found.objectives])
    right = np.unique(costs[nondominated(costs)], axis=0)
    assert [list(p.objectives.values()) for p in result.front] == right.tolist()


def test_a_front_that_would_not_fit_into_memory_is_refused() -> None:
    dimensions = {f"d{at}": [0] for at in range(500)} | {"a": {"range": [1, 400]}, "b": {"range": [1, 400]}}
    found = load(
        {
            "dse": 1, "name": "wide", "dimensions": dimensions,
            "metrics": {"x": {"expr": "a", "unit": 1}, "y": {"expr": "b", "unit": 1}, "z": {"expr": "-a - b", "unit": 1}},
            "objectives": {"x": "minimize", "y": "minimize", "z": "minimize"},
        }
    )  # fmt: skip
    with pytest.raises(FrontTooLarge, match="--top"):
        solve(found, found.everything, Exhaustive())
