"""The planner: other inputs and teams, the answers of a search."""

from __future__ import annotations

import pytest

from dse.errors import InputError, SolverRefused
from dse.problem import Interval
from dse.study.planner import Planner
from dse.study.study import search
from dse.units import parse_quantity
from tests.study.problems import Build, camera


def test_plans_follow_inputs_and_teams() -> None:
    planner = Planner(camera())
    assert [point.index for point in planner.plan().front] == [319, 327]
    assert [p.index for p in planner.plan({"max_latency": "6 ms"}).front] == [327]
    assert [p.index for p in planner.plan({"max_latency": parse_quantity("6 ms")}).front] == [327]
    assert not planner.plan(team="ml").feasible
    assert [point.index for point in planner.plan().front] == [319, 327]


def test_a_plan_is_the_result_of_a_search() -> None:
    problem = camera().with_inputs({"min_accuracy": "85 percent"})
    plan = Planner(camera()).plan({"min_accuracy": "85 percent"}, "systems").to_dict()
    assert plan == search(problem, team="systems").to_dict()


def test_a_plan_by_sampling() -> None:
    planner = Planner(camera(), solver="optuna", n_trials=20, seed=3)
    plan = planner.plan(team="ml")
    assert (plan.promise, plan.n_trials) == ("sampling", 20)
    assert plan.to_dict() == search(camera(), team="ml", solver="optuna", n_trials=20, seed=3).to_dict()


def test_what_cannot_be_planned_is_refused() -> None:
    with pytest.raises(InputError, match="unknown input 'max_latncy'; did you mean 'max_latency'"):
        Planner(camera()).plan({"max_latncy": "6 ms"})
    with pytest.raises(InputError, match="declares no objectives"):
        Planner(Build().dimension("a", [1, 2]).problem("empty"))
    build = Build().dimension("a", Interval(0.0, 1.0)).metric("cost", "a").minimize("cost")
    with pytest.raises(SolverRefused, match=r"solver pareto cannot do this: .*continuous.*; optuna can"):
        Planner(build.problem(), solver="pareto").plan()


@pytest.mark.parametrize("solver", ["auto", "optuna"])
def test_a_plan_that_nothing_meets_is_an_empty_front_with_the_nearest_miss(solver: str) -> None:
    plan = Planner(camera(), solver=solver, n_trials=20).plan({"max_latency": "1 us"})
    assert (plan.front, plan.feasible) == ((), False)
    assert plan.nearest_miss is not None
