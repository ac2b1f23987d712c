"""Cells of the row that an input names: a space in which a table dimension became an input means, for every evaluator,
what the other space means where that dimension has the input's value."""

from __future__ import annotations

import copy
import random
from contextlib import suppress
from typing import Any

import pytest

from dse.errors import InputError
from dse.evaluation import State, judge
from dse.evaluation.counting import LegalSpace
from dse.evaluation.facts import facts_of
from dse.problem import Problem
from dse.problem.library import load
from dse.solvers.exhaustive import Exhaustive
from dse.solvers.pareto import Pareto
from dse.study.diagnosis import exact_result
from dse.study.exact import run_exact
from dse.study.solver import ExactSolver
from tests.bruteforce import dominates
from tests.randomspaces import space
from tests.solvers.narrowing import narrowed

Data = dict[str, Any]


def turned(data: Data) -> tuple[str, list[str], Data, Data] | None:
    """A table dimension of a space, its rows, the space without teams, and the same with the dimension as an input."""
    plain = {**copy.deepcopy(data), "teams": {}}
    for name, declared in plain["dimensions"].items():
        if "table" in declared and "when" not in declared and len(plain["dimensions"]) > 1:
            rows = list(plain["tables"][declared["table"]]["rows"])
            other = copy.deepcopy(plain)
            del other["dimensions"][name]
            other["inputs"][name] = {"table": declared["table"], "default": rows[0]}
            if any("when" in d for d in other["dimensions"].values()):
                return None  # a condition may read what an order of declaration made earlier
            return name, rows, plain, other
    return None


def cases(count: int) -> list[tuple[str, list[str], Problem, Problem]]:
    found: list[tuple[str, list[str], Problem, Problem]] = []
    seed = 0
    while len(found) < count:
        drawn = turned(space(random.Random(seed), 60))
        seed += 1
        if drawn is not None:
            name, rows, plain, other = drawn
            found.append((name, rows, load(plain), load(other)))
    return found


def solve(found: Problem, solver: type[ExactSolver], **options: Any) -> list[Any]:
    run = run_exact(found, found.everything, solver(), ties=True, options=options)
    result = exact_result(found, found.everything, solver.name, run)
    return [
        (tuple(p.objectives.values()), [found.design_at(found.digits_of(i)) for i in p.tied])
        for p in result.front
    ]


def front(problem: Problem) -> list[Any]:
    """The front by the definition, worst case slow."""
    costs: dict[int, tuple[float, ...]] = {}
    for index in range(problem.size):
        verdict = judge(problem, problem.design_at(problem.digits_of(index)))
        if verdict.state is State.FEASIBLE:
            signs = [o.sign for o in problem.objectives]
            costs[index] = tuple(v * s + 0.0 for v, s in zip(verdict.objectives, signs, strict=True))
    values = set(costs.values())
    best = [v for v in sorted(values) if not any(dominates(o, v) for o in values)]
    return [
        (
            tuple(v * o.sign + 0.0 for v, o in zip(value, problem.objectives, strict=True)),
            [problem.design_at(problem.digits_of(i)) for i in costs if costs[i] == value],
        )
        for value in best
    ]


CASES = cases(60)


def test_the_scalar_evaluator_reads_the_row() -> None:
    states = set()
    for name, rows, plain, other in CASES:
        for row in rows:
            mine = other.with_inputs({name: row})
            for index in range(mine.size):
                design = mine.design_at(mine.digits_of(index))
                ours, theirs = judge(mine, design), judge(plain, {**design, name: row})
                states.add(ours.state)
                assert ours.state is theirs.state
                assert repr((ours.objectives, ours.violations)) == repr(
                    (theirs.objectives, theirs.violations)
                )
                assert (ours.rule and ours.rule.name) == (theirs.rule and theirs.rule.name)
    assert states == set(State)


@pytest.mark.parametrize("limits", [(None, None), (4, 5)])
def test_every_solver_finds_the_front_of_the_row(limits: tuple[int | None, int | None]) -> None:
    compiled = reached = 0
    for at, (name, rows, _, other) in enumerate(CASES):
        for row in rows[:2]:
            mine = other.with_inputs({name: row})
            right = front(mine)
            reached += bool(right)
            with narrowed(*limits):
                assert solve(mine, Pareto) == right
            assert solve(mine, Exhaustive, jit="off") == right
            if at < 12 and limits == (None, None):
                with suppress(InputError):  # what cannot be compiled is refused
                    assert solve(mine, Exhaustive, jit="on") == right
                    compiled += 1
    assert reached >= 10
    assert compiled > 0 or limits != (None, None) or not _compiles()


def _compiles() -> bool:
    from importlib.util import find_spec

    return find_spec("llvmlite") is not None


def test_counts_of_legal_designs_follow_the_row() -> None:
    for name, rows, _, other in CASES:
        for row in rows:
            mine = other.with_inputs({name: row})
            designs = (mine.design_at(mine.digits_of(index)) for index in range(mine.size))
            legal = sum(judge(mine, design).state is not State.ILLEGAL for design in designs)
            assert LegalSpace(mine, mine.everything).count == legal


def test_facts_are_those_of_the_one_row() -> None:
    found = load(
        {
            "dse": 1, "name": "one", "inputs": {"m": {"table": "t", "default": "a"}},
            "tables": {"t": {"columns": {"x": "1", "y": "1"}, "rows": {"a": [3, None], "b": [5, 7]}}},
            "dimensions": {"d": [1, 2]},
            "metrics": {"c": {"expr": "m.x * d", "unit": 1}, "e": {"expr": "m.y * d", "unit": 1}},
            "objectives": {"c": "minimize", "e": "minimize"},
        }
    )  # fmt: skip
    x, y = (node for node, n in enumerate(found.graph.nodes) if n.op == "cell")
    known = facts_of(found, found.graph.needed((x, y)))
    assert known[x][:2] == (3.0, 3.0)
    assert not known[x].open
    assert known[y].open
    other = found.with_inputs({"m": "b"})
    known = facts_of(other, other.graph.needed((x, y)))
    assert known[x][:2] == (5.0, 5.0)
    assert not known[y].open
