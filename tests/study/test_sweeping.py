"""Sweeps against brute force, however they are planned and cut; and the designs that they keep."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from dse.evaluation.hull import Hull
from dse.evaluation.plan import Plan
from dse.evaluation.sweep import Sweep
from dse.problem import Problem, Team
from dse.solvers.exhaustive import Exhaustive
from dse.study.diagnosis import exact_result
from dse.study.exact import run_exact, walk
from dse.study.result import Result
from dse.study.solver import ExactSearch, ExactSolver
from dse.study.sweeping import Sweeping
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
def test_any_plan_gives_the_truth(first: int) -> None:
    for seed in range(first, first + 40):
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


def test_a_larger_space_that_is_planned() -> None:
    for seed in (1000, 1003, 1007):
        found = problem(seed, 12_000)
        assert_right(solve(found, found.everything, Exhaustive(), ties=True, top=3), truth(found))
