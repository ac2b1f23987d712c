"""The explainer: steps, winners, and agreement with the scalar reference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from dse.evaluation import State, judge
from dse.evaluation.explain import Step, explain
from dse.evaluation.sentence import sentence
from dse.problem import Problem
from dse.problem.library import load


def space(**parts: Any) -> Problem:
    """A small problem from plain data."""
    base: dict[str, Any] = {
        "dse": 1,
        "name": "small",
        "dimensions": {"a": [1, 2, 4], "on": [False, True]},
        "metrics": {"m": {"expr": "a", "unit": 1}},
        "objectives": {"m": "minimize"},
    }
    return load(base | parts)


def metric(expression: str, **parts: Any) -> Problem:
    """A problem with one metric."""
    return space(metrics={"m": {"expr": expression, "unit": parts.pop("unit", 1)}}, **parts)


def steps(step: Step) -> Iterator[Step]:
    """A step and everything below it."""
    yield step
    for part in step.parts:
        yield from steps(part)


def only(problem: Problem, **design: float | bool | str) -> Step:
    (step,) = explain(problem, dict(design)).metrics
    return step


def test_camera_by_hand() -> None:
    problem = load("camera")
    design = problem.design_at(
        problem.digits(
            {
                "detector": "Det-L",
                "format": "int8-QAT",
                "pruning": "structured",
                "distill": "true",
                "engine": "optimized",
                "hardware": "npu",
            }
        )
    )
    explanation = explain(problem, design)
    assert explanation.feasible
    by_name = {step.name: step for root in explanation.metrics for step in steps(root)}
    shown = {name: step.shown for name, step in by_name.items()}
    assert (shown["accuracy"], shown["latency"], shown["memory"]) == ("90.9 %", "5.75 ms", "30.5 MB")
    assert (shown["compute"], shown["transfer"], shown["rates[hardware, format]"]) == (
        "5.25 ms",
        "2.34375 ms",
        "2000 Gop/s",
    )
    assert by_name["max"].winner == "compute"
    assert by_name["max"].text == "compute 5.25 ms > transfer 2.34375 ms"
    assert [(m.name, m.met, m.by_text) for m in explanation.margins] == [
        ("accuracy", True, "0.9 %"),
        ("latency", True, "4.25 ms"),
        ("memory", True, "69.5 MB"),
    ]


def test_every_camera_design_agrees_with_the_reference() -> None:
    problem = load("camera")
    for index in range(0, problem.size, 7):
        design = problem.design_at(problem.digits_of(index))
        explanation, verdict = explain(problem, design), judge(problem, design)
        assert explanation.index == index
        assert explanation.verdict is not None
        assert explanation.verdict.state is verdict.state
        if verdict.state is State.ILLEGAL:
            assert explanation.broken
            assert not explanation.metrics
            assert verdict.rule is not None
            assert explanation.broken[0].name == verdict.rule.name
        else:
            values = {step.name: step.value for step in explanation.metrics}
            assert tuple(values[o.name] for o in problem.objectives) == verdict.objectives
            assert [m.by for m in explanation.margins if not m.met] == [v for v in verdict.violations if v]


@pytest.mark.parametrize(
    ("expression", "winner", "text"),
    [
        ("max(a, 3)", "a", "a 4 > 3"),
        ("max(a, 9)", "9", "9 > a 4"),
        ("min(a, 9)", "a", "a 4 < 9"),
        ("max(a, 4)", "a", "a 4 = 4"),
        ("max(1, a, 2)", "a", "a 4 > 1, 2"),
        ("max(a * 2, a + 3)", "a * 2", "a * 2 8 > a + 3 7"),
        ("(a if on else 0)", "0", "on is false"),
    ],
)
def test_winners(expression: str, winner: str, text: str) -> None:
    (choice,) = (s for s in steps(only(metric(f"{expression} + 1"), a=4.0, on=False)) if s.kind == "choice")
    assert (choice.winner, choice.text) == (winner, text)


def test_a_metric_that_is_a_choice_has_the_winner_itself() -> None:
    step = only(metric("max(a, 3)"), a=1.0, on=False)
    assert (step.name, step.winner, step.value, step.text) == ("m", "3", 3.0, "max(a, 3)")


def test_the_arm_not_taken_is_no_part() -> None:
    lets = {"slow": "a * 100 + 1", "fast": "a / 100 + 1"}
    problem = metric("(slow if on else fast) + 1", lets=lets)
    assert {s.name for s in steps(only(problem, a=2.0, on=False))} == {"m", "if", "fast"}
    assert {s.name for s in steps(only(problem, a=2.0, on=True))} == {"m", "if", "slow"}


def test_a_let_used_twice_is_one_step() -> None:
    problem = metric("x * 2 + sqrt(x)", lets={"x": "a + 1"})
    step = only(problem, a=2.0, on=False)
    assert [part.name for part in step.parts] == ["x"]
    both = space(
        lets={"x": "a + 1"}, metrics={"m": {"expr": "x * 2", "unit": 1}, "n": {"expr": "x * 3", "unit": 1}}
    )
    m, n = explain(both, {"a": 2.0, "on": True}).metrics
    assert m.parts[0] is n.parts[0]


def test_lets_no_metric_uses_are_shown_apart() -> None:
    explanation = explain(space(lets={"spare": "a * 7"}), {"a": 2.0, "on": True})
    assert [(step.name, step.shown) for step in explanation.lets] == [("spare", "14")]


def test_a_let_that_is_another_name() -> None:
    problem = metric("alias + 1", lets={"x": "a * 2", "alias": "x", "plain": "a", "number": "3"})
    step = only(problem, a=2.0, on=False)
    assert step.text == "alias + 1"
    assert [(part.name, part.text, part.shown) for part in step.parts] == [("alias", "x", "4")]
    lets = {let.name: let for let in explain(problem, {"a": 2.0, "on": False}).lets}
    shown = {name: (let.text, let.shown) for name, let in lets.items()}
    assert shown == {"plain": ("a", "2"), "number": ("3", "3")}


def test_lets_with_equal_expressions_keep_their_names_apart() -> None:
    problem = metric("weights + grads", lets={"weights": "a * 2", "grads": "a * 2"})
    step = only(problem, a=2.0, on=False)
    assert step.text == "weights + grads"
    assert [(part.name, part.shown) for part in step.parts] == [("weights", "4"), ("grads", "4")]
    assert step.shown == "8"


def test_illegal_designs_name_every_broken_rule() -> None:
    rules = {
        "small": {"check": "a < 4", "because": "{a} is too large"},
        "off": {"check": "not on or a == 1", "because": "{on} needs 1"},
    }
    explanation = explain(space(rules=rules), {"a": 4.0, "on": True})
    assert [broken.because for broken in explanation.broken] == ["4 is too large", "true needs 1"]
    assert explanation.verdict is not None
    assert explanation.verdict.reason == "4 is too large"
    assert not explanation.feasible


def test_missing_cells_and_nan_say_why() -> None:
    tables = {"t": {"keys": ["a"], "unit": 1, "rows": {"1": 5, "2": 6}}}
    problem = space(tables=tables, metrics={"m": {"expr": "t[a]", "unit": 1}}, constraints={"m": "<= 9"})
    explanation = explain(problem, {"a": 4.0, "on": True})
    assert explanation.metrics[0].shown == "no value (t has no cell 4)"
    assert explanation.metrics[0].value is None
    assert [(margin.met, margin.rhs) for margin in explanation.margins] == [(None, "9")]
    assert explanation.verdict is not None
    assert explanation.verdict.state is State.FAILED
    nan = explain(metric("max((a - a) / (a - a), 1)"), {"a": 1.0, "on": True}).metrics[0]
    assert isinstance(nan.value, float)
    assert math.isnan(nan.value)
    assert nan.winner == ""


def test_margins_of_constraints() -> None:
    constraints = {
        "m": ["<= 1", ">= 0"],
        "named": {"check": "m * 2 < 8", "because": "{m} is a lot"},
        "logic": {"check": "not (on and m > 3)", "because": "{a} and {on}"},
    }
    explanation = explain(space(constraints=constraints), {"a": 4.0, "on": True})
    found = {margin.text: (margin.met, margin.by, margin.because) for margin in explanation.margins}
    assert found["m <= 1"] == (False, 3.0, "")
    assert found["m >= 0"] == (True, 4.0, "")
    assert found["m * 2 < 8"] == (False, 0.0, "4 is a lot")
    assert found["not (on and m > 3)"] == (False, 1.0, "4 and true")


def test_a_measured_metric_is_left_open() -> None:
    problem = space(
        metrics={
            "m": {"unit": "ms", "measured": True},
            "n": {"expr": "m * a", "unit": "ms"},
            "k": {"expr": "a", "unit": 1},
        },
        objectives={"n": "minimize"},
        measure={"command": ["true"]},
    )
    explanation = explain(problem, {"a": 2.0, "on": True})
    assert explanation.verdict is None
    assert explanation.unmeasured == ("m",)
    assert [step.shown for step in explanation.metrics] == [
        "no value (not measured: m)",
        "no value (not measured: m)",
        "2",
    ]
    assert (explanation.metrics[0].text, explanation.metrics[0].parts) == ("measured", ())
    known = explain(problem, {"a": 2.0, "on": True}, {"m": 0.003})
    assert [step.shown for step in known.metrics] == ["3 ms", "6 ms", "2"]
    assert known.feasible


def test_a_long_sum_is_no_problem() -> None:
    lets = {"x0": "a + 1"} | {f"x{i}": f"x{i - 1} * 1.001 + {i}" for i in range(1, 200)}
    problem = metric("x199", lets=lets)
    step = only(problem, a=1.0, on=False)
    depth = 0
    while step.parts:
        step, depth = step.parts[0], depth + 1
    assert depth >= 199


def test_sentences() -> None:
    problem = load("camera")
    design = problem.design_at(problem.digits_of(277))
    assert sentence(problem, problem.rules[0].because, design) == "npu cannot run fp16"
