"""What is made of a problem once: used again, lent to one at a time, and dropped when it is large and long unused."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dse.evaluation.prepared import borrowed, prepared
from dse.problem import Problem
from dse.problem.library import load
from dse.solvers.pareto import Pareto
from dse.study.exact import run_exact


class Large:
    """Something that can be seen to be gone."""


@pytest.fixture
def problem() -> Problem:
    return load("camera")


def test_what_is_made_once_is_used_again(problem: Problem) -> None:
    for most in (None, 3):
        made = [prepared(problem, ("kind", most, at), Large, most=most) for at in range(3)]
        assert [prepared(problem, ("kind", most, at), Large, most=most) for at in range(3)] == made
    small = [prepared(problem, ("small", at), Large) for at in range(100)]
    assert [prepared(problem, ("small", at), Large) for at in range(100)] == small


def test_of_what_is_large_the_last_used_are_kept(problem: Problem) -> None:
    other, small = prepared(problem, ("other", 0), Large, most=1), prepared(problem, "small", Large)
    gone = {at: weakref.ref(prepared(problem, ("kind", at), Large, most=3)) for at in range(3)}
    prepared(problem, ("kind", 0), Large, most=3)
    for at in (3, 4):
        gone[at] = weakref.ref(prepared(problem, ("kind", at), Large, most=3))
    gc.collect()
    assert [at for at, there in gone.items() if there() is not None] == [0, 3, 4]
    assert prepared(problem, ("other", 0), Large, most=1) is other
    assert prepared(problem, "small", Large) is small


def test_what_is_lent_is_held_alone_and_kept_for_a_few(problem: Problem) -> None:
    with borrowed(problem, ("sweep", 0), Large) as one, borrowed(problem, ("sweep", 0), Large) as two:
        assert one is not two
    with borrowed(problem, ("sweep", 0), Large) as again:
        assert again in (one, two)
    del one, two, again
    gone = []
    for at in range(10):
        with borrowed(problem, ("sweep", at), Large) as own:
            gone.append(weakref.ref(own))
    del own
    gc.collect()
    assert 1 <= sum(there() is not None for there in gone) <= 4
    with pytest.raises(KeyError), borrowed(problem, ("sweep", 9), Large):
        raise KeyError
    with borrowed(problem, ("sweep", 9), Large) as fresh:
        assert fresh is not gone[9]()


def test_threads_may_ask_at_once(problem: Problem) -> None:
    def ask(at: int) -> Any:
        with borrowed(problem, ("lent", at % 7), Large):
            return prepared(problem, ("asked", at % 9), lambda: at % 9, most=2)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(5000))) == [at % 9 for at in range(5000)]


def test_searches_of_many_settings_leave_few_plans_behind() -> None:
    axis = {"range": [1, 4]}
    problem = load(
        {
            "dse": 1, "name": "few", "dimensions": {"a": axis, "b": axis},
            "metrics": {"x": {"expr": "a * b", "unit": 1}}, "objectives": {"x": "minimize"},
        }
    )  # fmt: skip
    for seed in range(9):
        run_exact(problem, problem.everything, Pareto(), seed=seed)
    assert sum(key[0] == "branching" for key in problem.__dict__["_prepared"] if isinstance(key, tuple)) <= 4
