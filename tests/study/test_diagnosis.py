"""From a tally to a result: what is said of fronts, failures, infinities and stopped runs."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from dse.problem import Problem
from dse.problem.library import load
from dse.solvers.exhaustive import Exhaustive
from dse.solvers.pareto import Pareto
from dse.study.diagnosis import design_metrics, exact_result, loss_names
from dse.study.exact import run_exact
from dse.study.result import Result
from dse.study.study import search
from tests.study.problems import Build


def space(expr: str, direction: str = "minimize", **sections: Any) -> Problem:
    return load(
        {
            "dse": 1,
            "name": "corner",
            "dimensions": {"a": {"range": [-2, 2]}},
            "metrics": {"x": {"expr": expr, "unit": 1}, "other": {"expr": "log(a)", "unit": 1}},
            "objectives": {"x": direction},
            **sections,
        }
    )


def solve(found: Problem, solver: Any = Exhaustive, **options: Any) -> Result:
    run = run_exact(found, found.everything, solver(), **options)
    return exact_result(found, found.everything, solver.name, run)


@pytest.mark.parametrize("solver", [Exhaustive, Pareto])
class TestCorners:
    """A search that discards designs need not know how they fail; what it says of the front is the same."""

    def test_who_knows_all(self, solver: Any) -> None:
        assert solve(space("a / 0 - a / 0"), solver).funnel.exact == (solver is Exhaustive)

    def test_division_by_zero_at_the_worst_infinity_is_infeasible(self, solver: Any) -> None:
        result = solve(space("1 / abs(a)"), solver)
        assert [abs(point.design["a"]) for point in result.front] == [2.0]  # type: ignore[arg-type]
        assert result.nearest_miss is None
        if result.funnel.exact:
            assert (result.funnel.failed, result.funnel.feasible) == (0, 4)
            (line,) = result.funnel.lines
            assert (line.name, line.alone, line.in_order) == ("x finite", 1, 1)

    def test_the_best_infinity_is_a_failure(self, solver: Any) -> None:
        result = solve(space("1 / abs(a)", "maximize"), solver)
        assert result.funnel.failed == 1
        assert result.failures == (("unbounded objective: x is inf", 2, "a=0"),)

    def test_nan_is_a_failure_and_never_on_the_front(self, solver: Any) -> None:
        result = solve(space("sqrt(a) + a / a"), solver)
        assert [point.design["a"] for point in result.front] == [1.0]
        if result.funnel.exact:
            assert result.funnel.failed == 3
            assert [why for why, _, _ in result.failures] == ["x is NaN"] * 3

    def test_a_metric_that_nothing_needs_cannot_fail_a_design(self, solver: Any) -> None:
        result = solve(space("a"), solver)
        assert result.funnel.failed == 0
        (point,) = result.front
        assert math.isnan(point.metrics["other"])  # type: ignore[arg-type]
        assert '"other": "nan"' in json.dumps(result.to_dict()["front"], allow_nan=False)

    def test_minus_zero_is_written_as_zero(self, solver: Any) -> None:
        result = solve(space("-(a * 0)"), solver)
        (point,) = result.front
        assert math.copysign(1.0, point.objectives["x"]) == 1.0
        assert (point.ties, point.index) == (5, 0)
        assert "-0.0" not in result.to_json(run=False)

    def test_nothing_legal(self, solver: Any) -> None:
        result = solve(space("a", rules={"none": {"check": "a > 9", "because": "a is only {a}"}}), solver)
        assert not result.feasible
        assert result.accounting.illegal_by == {"none": 5}
        assert (result.nearest_miss, result.relaxations, result.traits) == (None, (), ())

    def test_all_failed(self, solver: Any) -> None:
        result = solve(space("a / 0 - a / 0"), solver)
        assert not result.feasible
        assert result.nearest_miss is None
        if result.funnel.exact:
            assert result.funnel.failed == 5
            assert len(result.failures) == 5

    def test_a_strict_bound_met_with_equality_is_a_miss_by_almost_nothing(self, solver: Any) -> None:
        result = solve(space("a", constraints={"x": "< -2"}), solver)
        assert result.nearest_miss is not None
        assert result.nearest_miss.design == {"a": -2.0}
        assert result.nearest_miss.violations == {"x": math.ulp(0.0)}

    def test_an_equality(self, solver: Any) -> None:
        result = solve(space("a ** 2", constraints={"x": "== 3"}), solver)
        assert [r.miss.violations["x"] for r in result.relaxations] == [1.0]
        result = solve(space("a ** 2", constraints={"x": "== 4"}), solver)
        assert [(p.index, p.ties) for p in result.front] == [(0, 2)]

    def test_the_two_smallest_relaxations(self, solver: Any) -> None:
        result = solve(space("a", constraints={"x": ">= 1", "low": {"check": "a <= -1"}}), solver)
        found = {r.constraints: (r.miss.design["a"], dict(r.miss.violations)) for r in result.relaxations}
        assert found == {("x",): (-1.0, {"x": 2.0}), ("low",): (1.0, {"low": 2.0})}


def test_funnel_lines_are_named_after_constraints_and_objectives() -> None:
    found = space("a", constraints={"x": [">= 0", "<= 1"], "low": {"check": "a <= 0"}})
    assert loss_names(found) == ["x >= 0", "x <= 1", "low", "x finite"]
    result = solve(found)
    lines = [(line.name, line.alone, line.in_order) for line in result.funnel.lines]
    assert lines == [("x >= 0", 2, 2), ("x <= 1", 1, 1), ("low", 2, 1)]


def test_a_stopped_run_says_so() -> None:
    found = load("camera")
    run = run_exact(found, found.everything, Pareto(), stop=lambda: True)
    result = exact_result(found, found.everything, "pareto", run)
    assert result.status == run.status
    assert result.accounting.total == 480


@pytest.mark.parametrize("solver", ["exhaustive", "optuna"])
def test_traits_are_of_all_feasible_designs(solver: str) -> None:
    build = Build()
    for name, size in {"a": 20, "b": 300, "c": 300}.items():
        build.dimension(name, [float(v) for v in range(size)])
    found = build.metric("x", "a + b * c").minimize("x").constrain("a", "a > 2").problem()
    stopped: dict[str, Any] = {"timeout": 0.0} if solver == "exhaustive" else {"n_trials": 5}
    result = search(found, solver=solver, **stopped)
    assert result.status == "stopped"
    assert result.feasible
    assert result.traits == ()
    assert [t.dimension for t in search(found, solver="exhaustive").traits] == ["a"]


def test_metrics_of_a_design_without_a_cell() -> None:
    found = load(
        {
            "dse": 1, "name": "hole", "dimensions": {"a": ["u", "v"]},
            "tables": {"t": {"keys": ["a"], "unit": "1", "rows": {"u": 1}}},
            "metrics": {"x": {"expr": "t[a]", "unit": 1}, "y": {"expr": "1", "unit": 1}},
            "objectives": {"x": "minimize"},
        }
    )  # fmt: skip
    assert design_metrics(found, {"a": "v"}) == {"x": None, "y": 1.0}
    result = solve(found)
    assert result.failures == (("t has no cell v", 1, "a=v"),)
