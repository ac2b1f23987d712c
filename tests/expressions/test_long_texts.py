"""A cost function that doubles an expression at each step has a text that can be shown."""

from __future__ import annotations

from dse.evaluation.explain import explain
from dse.expressions.render import render
from dse.problem.library import load
from dse.problem.tracing import CostFunction

SPACE = {
    "dse": 1,
    "name": "doubling",
    "dimensions": {"x": [1, 2]},
    "metrics": {"y": {"unit": "1"}},
    "objectives": {"y": "minimize"},
}


def test_shared_parts_are_not_written_out_again_and_again() -> None:
    def cost(x):  # type: ignore[no-untyped-def] # a cost function sees symbols
        for _ in range(40):
            x = x * x / (x + 1)
        return {"y": x}

    function: CostFunction = cost
    problem = load(SPACE, cost=function)
    found = explain(problem, {"x": 1.0})
    (step,) = found.metrics
    assert len(step.text) < 1000
    assert "..." in step.text
    node = problem.metrics["y"].node
    assert render(problem.graph, node, longest=20) == "... * ... / (... + 1)"
