"""Tables as expressions read them: units of keys and cells, and cells that are not there."""

from __future__ import annotations

from typing import Any

from dse.evaluation import State, Undefined, evaluate_nodes, judge
from dse.problem import Problem
from dse.problem.library import load


def keyed(choices: list[Any], rows: dict[str, Any], unit: str = "ms") -> Problem:
    return load(
        {
            "dse": 1,
            "name": "keyed",
            "dimensions": {"budget": {"choices": choices, "unit": unit}},
            "tables": {"score": {"keys": ["budget"], "unit": "1", "rows": rows}},
            "metrics": {"x": {"expr": "score[budget]", "unit": "1"}},
            "objectives": {"x": "maximize"},
        }
    )


def scores(problem: Problem) -> list[Any]:
    node = problem.metrics["x"].node
    designs = (problem.design_at((at,)) for at in range(problem.size))
    return [evaluate_nodes(problem, design, [node])[node] for design in designs]


def test_numeric_keys_are_in_the_unit_of_their_dimension() -> None:
    assert scores(keyed([1, 1000], {"1": 5, "1000": 7})) == [5.0, 7.0]


def test_a_key_is_never_taken_in_base_units() -> None:
    """1000 ms is 1 s, but the key 1 means 1 ms."""
    assert scores(keyed([1000, 1], {"1": 5, "1000": 7})) == [7.0, 5.0]


def test_keys_may_be_written_with_their_unit() -> None:
    assert scores(keyed([1, 2.5], {"1 ms": 5, "2.5 ms": 7})) == [5.0, 7.0]


def test_a_missing_cell_fails_a_legal_design_and_says_which() -> None:
    problem = keyed([1, 2], {"1": 5})
    first, second = scores(problem)
    assert first == 5.0
    assert second == Undefined("score has no cell 2 ms")
    verdict = judge(problem, problem.design_at((1,)))
    assert (verdict.state, verdict.reason) == (State.FAILED, "score has no cell 2 ms")
