"""How much of an input would do: proven not to below, found above, and nothing claimed where time ran out."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dse
from dse.cli import main
from dse.cli.comparing import comparison_data, comparison_lines
from dse.cli.misses import grown_text
from dse.problem import Problem
from dse.study.growing import grown, grown_for


def space(**changes: Any) -> dict[str, Any]:
    """Machines hold 10 each; 55 must be held by as many as divide them."""
    return {
        "dse": 1,
        "name": "s",
        "inputs": {"machines": {"default": 1, "grow": 2, "whole": True, "at_most": 64}, "load": 55},
        "dimensions": {"used": {"range": [1, 64]}, "spare": [0, 1]},
        "rules": {"divides": {"check": "machines % used == 0", "because": "{used} do not divide"}},
        "metrics": {"held": {"expr": "load / used + spare", "unit": 1}, "time": {"expr": "used", "unit": 1}},
        "objectives": {"time": "minimize"},
        "constraints": {"held": "<= 10"},
        "teams": {"one": {"used": 1}, "few": {"used": [1, 2, 4], "spare": 0}},
        **changes,
    }


def texts(problem: Problem, team: str | None = None) -> list[str]:
    return [grown_text(tried) for tried in grown(problem, team)]


@pytest.mark.parametrize("size", [64, 2_000_000])
def test_the_first_multiple_that_does_is_found_and_those_below_are_proven(size: int) -> None:
    spaces = space(dimensions={"used": {"range": [1, 64]}, "spare": {"range": [0, size]}})
    problem = dse.load(spaces)
    result = dse.search(problem, solver="pareto")
    assert not result.feasible
    (tried,) = grown_for(result)
    assert (tried.enough, tried.without, tried.undecided) == (8.0, (2.0, 4.0), None)
    assert grown_text(tried) == "with machines = 8 some design is feasible; with 2 and 4 none is"
    for value in (1, 2, 4):
        assert not dse.search(problem.with_inputs({"machines": value}), solver="pareto").feasible
    assert dse.search(problem.with_inputs({"machines": 8}), solver="pareto").feasible


def test_a_team_is_asked_for_itself() -> None:
    problem = dse.load(space())
    (told,) = texts(problem, "few")
    none = "with machines = 2, 4, 8 and 16 no design is feasible either"
    assert told == f"{none}; the last of them come no nearer, so more was not tried"
    assert texts(dse.load(space(), {"load": "35"}), "few") == [
        "with machines = 4 some design is feasible; with 2 none is"
    ]


def test_many_values_without_success_are_told_shortly() -> None:
    inputs = {"machines": {"default": 1, "grow": 2}, "load": 1e6}
    metrics = {"held": {"expr": "load / machines", "unit": 1}, "time": {"expr": "used + spare", "unit": 1}}
    (tried,) = grown(dse.load(space(inputs=inputs, metrics=metrics)), "one")
    assert tried.without == tuple(2.0**n for n in range(1, 13))
    assert grown_text(tried) == "with machines = 2, 4, ... 4096 (12 values) no design is feasible either"


def test_of_a_continuous_space_nothing_is_claimed() -> None:
    dimensions = {"used": {"range": [1.0, 64.0]}, "spare": [0, 1]}
    (tried,) = grown(dse.load(space(dimensions=dimensions, teams={})))
    assert (tried.enough, tried.without, tried.undecided) == (None, (), 2.0)


def test_an_input_keeps_its_limits_and_unit() -> None:
    inputs = {"room": {"default": "3 GiB", "grow": 2, "at_most": "10 GiB"}, "machines": 1, "load": 55}
    bounded = space(
        inputs=inputs,
        metrics={
            "time": {"expr": "used", "unit": 1},
            "bytes": {"expr": "7 GiB + used * 0 GiB", "unit": "GiB"},
        },
        constraints={"bytes": "<= room"},
    )
    assert texts(dse.load(bounded)) == ["with room = 6 GiB no design is feasible either"]
    (tried,) = grown(dse.load(bounded, {"room": "4 GiB"}))
    assert tried.to_dict() == {
        "input": "room", "unit": "GiB", "enough": 8, "without": [], "undecided": None, "stuck": False
    }  # fmt: skip
    assert texts(dse.load(bounded, {"room": "6 GiB"})) == ["room cannot grow beyond 6 GiB"]


def test_a_bound_that_is_met_is_not_enough_without_a_finite_objective() -> None:
    metrics = {
        "held": {"expr": "load / used", "unit": 1},
        "time": {"expr": "where(used >= 16, 1, 1 / (used - used))", "unit": 1},
    }
    assert texts(dse.load(space(metrics=metrics))) == [
        "with machines = 16 some design is feasible; with 2, 4 and 8 none is"
    ]


def test_an_infinite_value_within_an_infinite_bound_is_feasible() -> None:
    metrics = {"held": {"expr": "load / (used - used)", "unit": 1}, "time": {"expr": "used", "unit": 1}}
    problem = dse.load(space(metrics=metrics, constraints={"held": "<= 1 / (spare - spare)"}))
    assert dse.search(problem).feasible
    assert [tried.enough for tried in grown(problem)] == [2.0]


def test_without_time_nothing_is_claimed() -> None:
    (tried,) = grown(dse.load(space()), seconds=-1.0)
    assert (tried.enough, tried.without, tried.undecided) == (None, (), 2.0)
    assert grown_text(tried) == "machines: whether 2 would do was not decided in time"


def test_only_proven_failures_of_inputs_that_may_grow_are_followed_up() -> None:
    feasible = dse.search(dse.load(space(), {"machines": "8"}))
    assert grown_for(feasible) == ()
    sampled = dse.search(dse.load(space()), solver="optuna", n_trials=1)
    assert not sampled.feasible
    assert grown_for(sampled) == ()
    fixed = space(inputs={"machines": 1, "load": 55})
    assert grown(dse.load(fixed)) == ()


def test_a_comparison_in_which_nothing_is_feasible_says_it_of_the_whole_space() -> None:
    nothing = dse.compare(dse.load(space()))
    (tried,) = nothing.grown
    assert tried.enough == 8.0
    lines = "\n".join(comparison_lines(nothing))
    assert lines.count("with machines = 8 some design is feasible; with 2 and 4 none is") == 1
    assert comparison_data(nothing)["grown"] == [tried.to_dict()]
    assert dse.compare(dse.load(space(), {"machines": "8"})).grown == ()


def test_the_command_line_says_it(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps(space()), encoding="utf-8")
    assert main(["search", str(path)], standalone_mode=False) == 1
    assert "with machines = 8 some design is feasible; with 2 and 4 none is" in capsys.readouterr().out
    assert main(["search", str(path), "--format", "json"], standalone_mode=False) == 1
    (tried,) = json.loads(capsys.readouterr().out)["grown"]
    known = {
        "input": "machines",
        "unit": None,
        "enough": 8,
        "without": [2, 4],
        "undecided": None,
        "stuck": False,
    }
    assert tried == known
