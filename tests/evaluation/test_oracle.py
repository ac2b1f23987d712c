"""The scalar evaluator against an interpreter of the text that shares no code with it."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings

from dse.evaluation import State, judge
from dse.problem.library import load
from tests.oracle import Oracle
from tests.randomspaces import space, spaces


def assert_same_verdicts(data: dict[str, Any]) -> None:
    problem, oracle = load(data), Oracle(data)
    for index, design in enumerate(oracle.designs()):
        ours = problem.design_at(problem.digits_of(index))
        assert ours == design
        verdict = judge(problem, ours)
        found: tuple[Any, ...] = (verdict.state.name, verdict.objectives, verdict.violations)
        if verdict.state is State.ILLEGAL:
            assert verdict.rule is not None
            found = ("ILLEGAL", verdict.rule.name)
        elif verdict.state is State.FAILED:
            found = ("FAILED",)
        state, *values = oracle.judge(design)
        expected = (state, *(tuple(v + 0.0 for v in x) if isinstance(x, tuple) else x for x in values))
        assert repr(found) == repr(expected), (index, design)  # repr: to the bit, and 0.0 is not -0.0


@settings(max_examples=60)
@given(spaces(designs=20))
def test_a_drawn_space_means_what_its_text_says(data: dict[str, Any]) -> None:
    assert_same_verdicts(data)


def test_many_spaces_mean_what_their_texts_say() -> None:
    for seed in range(150):
        assert_same_verdicts(space(random.Random(seed), designs=40))


def test_the_spaces_hold_every_state_and_every_operation() -> None:
    """What the tests on random spaces are worth: a generator that drew only easy spaces would fail here."""
    states: set[str] = set()
    operations: set[str] = set()
    tied = infinite = narrowed = 0
    for seed in range(150):
        data = space(random.Random(seed), designs=40)
        problem, oracle = load(data), Oracle(data)
        operations |= {node.op for node in problem.graph.nodes}
        verdicts = [oracle.judge(design) for design in oracle.designs()]
        states |= {verdict[0] for verdict in verdicts}
        feasible = [verdict[1] for verdict in verdicts if verdict[0] == "FEASIBLE"]
        tied += len(set(feasible)) < len(feasible)
        infinite += any(
            abs(v) == float("inf") for verdict in verdicts if len(verdict) > 2 for v in verdict[1]
        )
        narrowed += any("when" in declared for declared in data["dimensions"].values())
    assert states == {"ILLEGAL", "FAILED", "INFEASIBLE", "FEASIBLE"}
    assert operations >= set(
        "const input dimension position cell neg add sub mul div pow floor ceil abs sqrt exp log log2 min max "
        "lt le eq ne and or not where contains".split()
    )
    assert min(tied, infinite, narrowed) >= 10
