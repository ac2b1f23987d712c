"""The kit that every solver is run through, ours or a third party's.

``check(name)`` runs the solver of that name (as entry points give it) through everything; a failed assertion says
what it did wrong. Authors of solvers can call it from a test of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from dse.errors import SolverRefused
from dse.evaluation import broken_rule, judge, member
from dse.problem import Problem, Team
from dse.problem.library import load
from dse.study.registry import load_solver, refusal, solvers
from dse.study.result import Result
from dse.study.solver import Solver
from dse.study.study import Study
from dse.study.trial import TrialState
from tests.bruteforce import (
    Truth,
    assert_accounted,
    assert_right_explanation,
    assert_right_front,
    truth,
)
from tests.randomspaces import problem as random_problem

__all__ = ["check", "checks_of", "problems"]


def space(
    dimensions: dict[str, Any], metrics: dict[str, str], objectives: dict[str, str], **more: Any
) -> Problem:
    """A problem whose metrics have no unit."""
    return load(
        {
            "dse": 1,
            "name": "conformance",
            "dimensions": dimensions,
            "metrics": {name: {"expr": expr, "unit": 1} for name, expr in metrics.items()},
            "objectives": objectives,
            **more,
        }
    )


FIVE = {"a": {"range": [-2, 2]}, "flag": [False, True]}

SMALL: dict[str, Callable[[], Problem]] = {
    "one design": lambda: space({"a": [3]}, {"x": "a"}, {"x": "minimize"}),
    "one objective": lambda: space(FIVE, {"x": "a ** 2 + (1 if flag else 0)"}, {"x": "minimize"}),
    "ties everywhere": lambda: space(FIVE, {"x": "0 * a", "y": "abs(a)"}, {"x": "minimize", "y": "maximize"}),
    "four objectives": lambda: space(
        {"a": {"range": [0, 4]}, "b": {"range": [0, 4]}},
        {"w": "a", "x": "b", "y": "(a - b) ** 2", "z": "a * b"},
        {"w": "minimize", "x": "maximize", "y": "minimize", "z": "maximize"},
    ),
    "conditional dimensions": lambda: space(
        {"a": {"range": [0, 3]}, "b": {"choices": [5, 1, 2], "when": "a > 1", "otherwise": 1},
         "c": {"choices": ["u", "v"], "when": "b == 2"}},
        {"x": "a * b + (1 if c == 'v' else 0)", "y": "a - b"},
        {"x": "maximize", "y": "minimize"},
    ),
    "rules": lambda: space(
        FIVE, {"x": "a"}, {"x": "minimize"}, rules={"odd": {"check": "a % 2 == 1", "because": "{a} is even"}}
    ),
    "NaN objective": lambda: space(FIVE, {"x": "sqrt(a)", "y": "a"}, {"x": "minimize", "y": "minimize"}),
    "worst infinity": lambda: space(FIVE, {"x": "1 / abs(a)"}, {"x": "minimize"}),
    "best infinity": lambda: space(FIVE, {"x": "1 / abs(a)"}, {"x": "maximize"}),
    "NaN in a constraint": lambda: space(
        FIVE, {"x": "a", "y": "log(a)"}, {"x": "minimize"}, constraints={"y": "<= 1"}
    ),
    "nothing feasible": lambda: space(
        FIVE, {"x": "a", "y": "-a"}, {"x": "minimize"}, constraints={"x": ">= 1", "y": ">= 1"}
    ),
    "nothing legal": lambda: space(
        FIVE, {"x": "a"}, {"x": "minimize"}, rules={"never": {"check": "a > 5", "because": "{a} is small"}}
    ),
    "every design fails": lambda: space(FIVE, {"x": "a / 0 - a / 0"}, {"x": "minimize"}),
    "strict and equal": lambda: space(
        FIVE, {"x": "a", "y": "a ** 2"}, {"x": "minimize"}, constraints={"x": "< 2", "y": "== 4"}
    ),
    "teams": lambda: space(
        FIVE, {"x": "a", "y": "0 if flag else 1"}, {"x": "minimize", "y": "minimize"},
        teams={"low": {"a": [-2, -1]}, "set": {"where": "flag and a != 0"}, "either": "low | set", "both": "low & set"},
    ),
}  # fmt: skip
SMALL |= {f"random {seed}": lambda seed=seed: random_problem(seed, 30) for seed in range(25)}  # type: ignore[misc]


@cache
def problems() -> dict[str, Problem]:
    """Small problems, each with a difficulty of its own."""
    return {name: make() for name, make in SMALL.items()}


def teams(problem: Problem) -> Iterator[Team]:
    yield problem.everything
    yield from problem.teams.values()


@cache
def right(name: str, team: Team) -> Truth:
    return truth(problems()[name], team)


def study(name: str, problem: Problem, team: Team | None = None, **options: Any) -> Study | None:
    """A study with the solver called ``name``; None when it refuses the problem, politely."""
    own = team or problem.everything
    reason = None if name == "auto" else refusal(load_solver(name), problem, own)
    if reason is None:
        return Study(problem, team=own, solver=name, **options)
    assert_sentence(reason)
    with pytest.raises(SolverRefused, match=re.escape(f"solver {name} cannot do this: {reason}")):
        Study(problem, team=own, solver=name, **options)
    return None


def run(
    name: str, problem: Problem, team: Team | None = None, n_trials: int = 8, **options: Any
) -> Result | None:
    """The result of a search, which has a budget if the solver samples."""
    own = study(name, problem, team, **options)
    if own is None:
        return None
    return own.run(n_trials=n_trials if load_solver(name).promise == "sampling" else None)


def assert_sentence(text: str) -> None:
    """A reason is for people: one line, words, no representation of an object."""
    assert re.fullmatch(r"[^\n]{8,300}", text), text
    assert " " in text
    assert not re.search(r"<[\w.]+ object|Traceback|Error:", text), text


def canonical(result: Result) -> str:
    return result.to_json(run=False)


def front(result: Result) -> str:
    return json.dumps(result.to_dict()["front"], allow_nan=False)


# -- checks of every solver --------------------------------------------------------------------------------


def declares_itself(name: str) -> None:
    """A name, a title, a promise and what it needs."""
    solver = load_solver(name)
    assert isinstance(solver, Solver)
    assert solver.name == name
    assert_sentence(solver.title)
    assert solver.promise in ("exact", "sampling", "as chosen")
    assert solver.needs <= {"bulk", "bounds", "trials"}
    assert solver.needs or solver.promise == "as chosen"


def refuses_in_a_sentence(name: str) -> None:
    """A continuous and a huge problem are done or refused with a reason."""
    continuous = space({"a": {"range": [0.5, 1.5]}}, {"x": "a"}, {"x": "minimize"})
    huge = space({f"d{at}": {"range": [1, 1000]} for at in range(60)}, {"x": "d0"}, {"x": "minimize"})
    for problem in (continuous, huge):
        study(name, problem)


def accounts_for_every_design(name: str) -> None:
    """The parts of the accounting sum to the size of the space, for every team."""
    for problem in problems().values():
        for team in teams(problem):
            result = run(name, problem, team)
            if result is not None:
                assert_accounted(result)
                assert load_solver(name).promise in (result.promise, "as chosen")
                assert result.team == team.name


def gives_the_same_twice(name: str) -> None:
    """The same problem, settings and seed: the same bytes, however many workers."""
    for problem in (load("camera"), problems()["conditional dimensions"]):
        results = [run(name, problem, n_trials=12, seed=3, workers=workers) for workers in (1, 1, 2)]
        assert len({None if result is None else canonical(result) for result in results}) == 1


# -- checks of exact solvers -------------------------------------------------------------------------------


def finds_the_exact_front(name: str) -> None:
    """The front of brute force, with its ties; and what is said when there is none."""
    done = 0
    for label, problem in problems().items():
        for team in teams(problem):
            result = run(name, problem, team, ties=True)
            if result is not None:
                assert result.status == "complete"
                assert_right_front(result, right(label, team))
                assert_right_explanation(result, right(label, team))
                assert [point.tied for point in result.front] == [
                    tied for _, tied in right(label, team).front
                ]
                done += 1
    assert done, "a solver that does none of these problems cannot be checked"


def agrees_with_exhaustive(name: str) -> None:
    """The same bytes as the front of ``exhaustive``, on the camera and its teams."""
    problem = load("camera")
    for team in teams(problem):
        result, reference = run(name, problem, team), run("exhaustive", problem, team)
        if result is not None:
            assert reference is not None
            assert front(result) == front(reference)


# -- checks of sampling solvers ----------------------------------------------------------------------------


def tries_legal_designs_once(name: str) -> None:
    """No design twice, none illegal or outside the team; every trial is what the scalar judge says."""
    for problem in problems().values():
        for team in teams(problem):
            own = study(name, problem, team, seed=1)
            if own is None:
                continue
            own.run(n_trials=10)
            indices = [trial.index for trial in own.trials]
            assert len(set(indices)) == len(indices) <= 10
            for trial in own.trials:
                assert member(problem, team, trial.design)
                assert broken_rule(problem, trial.design) is None
                verdict = judge(problem, trial.design)
                assert trial.state.value == verdict.state.value
                if trial.state is not TrialState.FAILED:
                    assert (trial.objectives, trial.violations) == (verdict.objectives, verdict.violations)


def exhausts_small_spaces(name: str) -> None:
    """With trials to spare, every legal design is tried, the search says so, and its front is the exact one."""
    for label, problem in problems().items():
        for team in teams(problem):
            own = study(name, problem, team)
            if own is None:
                continue
            result = own.run(n_trials=1000)
            expected = right(label, team)
            assert result.status == "exhausted"
            assert sorted(t.index for t in own.trials if t.index is not None) == sorted(expected.verdicts)
            assert_right_front(result, expected)
            assert_accounted(result)


def goes_on_where_it_stopped(name: str) -> None:
    """Twelve trials in pieces are the twelve of one run."""
    problem = load("camera")
    whole = study(name, problem, seed=2, batch=4)
    parts = study(name, problem, seed=2, batch=4)
    if whole is None or parts is None:
        return
    whole.run(n_trials=12)
    for n in (3, 4, 9, 12):
        parts.run(n_trials=n)
    assert [(t.number, t.index) for t in parts.trials] == [(t.number, t.index) for t in whole.trials]


CHECKS: dict[str, tuple[Callable[[str], None], ...]] = {
    "every": (declares_itself, refuses_in_a_sentence, accounts_for_every_design, gives_the_same_twice),
    "exact": (finds_the_exact_front, agrees_with_exhaustive),
    # What is chosen for the kit's problems, which are small and computed, is exact.
    "as chosen": (finds_the_exact_front, agrees_with_exhaustive),
    "sampling": (tries_legal_designs_once, exhausts_small_spaces, goes_on_where_it_stopped),
}


def checks_of(name: str) -> tuple[Callable[[str], None], ...]:
    """The checks for the solver called ``name``, by what it promises."""
    assert name in solvers(), f"{name} is not among the installed solvers: {', '.join(solvers())}"
    return CHECKS["every"] + CHECKS[load_solver(name).promise]


def check(name: str) -> None:
    """Run the solver called ``name`` through the whole kit."""
    for one in checks_of(name):
        one(name)
