"""What is said to be certain of a node holds of every design."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings

from dse.evaluation import Undefined, evaluate_nodes
from dse.evaluation.facts import Facts, facts_of
from dse.problem import Problem
from dse.problem.library import load
from tests.randomspaces import problem, spaces


def holds(facts: Facts, value: Any) -> bool:
    if isinstance(value, Undefined) or (isinstance(value, float) and math.isnan(value)):
        return facts.open
    if type(value) is not float:
        return True
    if value == 0.0 and math.copysign(1.0, value) < 0.0 and not facts.negative_zero:
        return False
    return facts.low <= value <= facts.high and (not facts.finite or math.isfinite(value))


def check(found: Problem) -> int:
    """How many nodes are certainly numbers."""
    nodes = list(range(len(found.graph.nodes)))
    facts = facts_of(found, nodes)
    for index in range(found.size):
        values = evaluate_nodes(found, found.design_at(found.digits_of(index)), nodes)
        for node, value in values.items():
            assert holds(facts[node], value), (found.graph[node], facts[node], value)
    return sum(not facts[node].open for node in nodes)


@settings(max_examples=100)
@given(spaces(designs=20))
def test_facts_of_a_drawn_space(data: dict[str, Any]) -> None:
    check(load(data))


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_facts_of_many_spaces(first: int) -> None:
    sure = sum(check(problem(seed, 40)) for seed in range(first, first + 100))
    assert sure > 1000


def test_facts_are_sharp_where_it_matters() -> None:
    """A cost model of sums, products and quotients of positive numbers is certainly finite, and has no -0.0."""
    found = load(
        {
            "dse": 1, "name": "sharp", "dimensions": {"a": [1, 2, 4], "b": {"range": [1, 100]}},
            "tables": {"t": {"keys": ["a"], "unit": 1, "rows": {1: 5, 2: 7, 4: 9}}},
            "metrics": {"x": {"expr": "max((a - 1) * b, t[a] / b) + where(a > 1, sqrt(b), 0)", "unit": 1}},
            "objectives": {"x": "minimize"},
        }
    )  # fmt: skip
    node = found.objectives[0].node
    facts = facts_of(found, found.graph.needed([node]))[node]
    assert facts.finite
    assert not facts.negative_zero
    assert (facts.low, facts.high) == (0.05, 310.0)
