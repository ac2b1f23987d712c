"""Designs within a share of the best: counted exactly by every solver, listed, kept, and the same after a stop."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from dse import search
from dse.errors import InputError, SolverRefused, StudyError, VerificationFailed
from dse.problem import Problem
from dse.problem.library import load
from dse.study import running, within
from dse.study.result import Near, Result
from dse.study.study import Study
from dse.study.verify import verify
from tests.bruteforce import truth
from tests.randomspaces import problem as random_problem
from tests.solvers.narrowing import narrowed

FEW = 11
"""Best designs that a search keeps: of more near ones, all are looked for once more."""


def space(**more: Any) -> dict[str, Any]:
    return {
        "dse": 1, "name": "near",
        "dimensions": {"a": {"range": [1, 30]}, "b": {"range": [1, 30]}, "c": {"range": [1, 5]}, "idle": [1, 2, 3]},
        "rules": {"odd": {"check": "(a + b) % 3 != 0", "because": "no"}},
        "metrics": {"t": {"expr": "(a - 11) ** 2 + (b - 7) ** 2 + a * b / 50 + c / 8 + 40", "unit": 1}},
        "objectives": {"t": "minimize"},
        **more,
    }  # fmt: skip


def right(problem: Problem, share: float) -> list[tuple[float, int]]:
    """(cost, index) of all designs near the best, by the definition."""
    costs = sorted((cost, index) for index, (cost,) in truth(problem).costs.items())
    bound = costs[0][0] + share * abs(costs[0][0])
    return [(cost, index) for cost, index in costs if cost <= bound]


def near_of(result: Result) -> Near:
    assert result.near is not None
    return result.near


def check(problem: Problem, share: float, **settings: Any) -> int:
    expected = right(problem, share)
    result = search(problem, within=share, **settings)
    near = near_of(result)
    assert (near.count, near.counted) == (len(expected), "exact")
    assert len(near.listed) == min(10, len(expected) - 1)
    kept = {index: cost for cost, index in expected}
    assert set(near.listed) < set(kept)
    assert result.front[0].index not in near.listed
    assert [kept[index] for index in near.listed] == sorted(kept[index] for index in near.listed)
    values = {trait.dimension: set(trait.values) for trait in near.shared}
    for dimension, at in zip(problem.dimensions, range(len(problem.names)), strict=True):
        seen = {dimension.label(problem.digits_of(index)[at]) for index in kept}
        assert values.get(dimension.name, seen) == seen
    return len(expected)


@pytest.mark.parametrize("share", [0.001, 0.02, 0.06, 0.5, 0.99])
@pytest.mark.parametrize("solver", ["exhaustive", "pareto"])
def test_the_count_is_exact(solver: str, share: float) -> None:
    check(load(space()), share, solver=solver)


@pytest.mark.parametrize("solver", ["exhaustive", "pareto"])
def test_the_largest_may_be_the_best(solver: str) -> None:
    metrics = {"t": {"expr": "1000 - (a - 11) ** 2 - b - c / 8", "unit": 1}}
    check(load(space(metrics=metrics, objectives={"t": "maximize"})), 0.06, solver=solver)


def test_random_problems_of_one_objective() -> None:
    counted = 0
    for seed in range(250):
        problem = random_problem(seed, 60, 1)
        if truth(problem).costs:
            with narrowed(8, 5) if seed % 2 else narrowed(None, None):
                counted += check(problem, 0.3, solver="pareto", top=11) > 11
            check(problem, 0.3, solver="exhaustive", top=11)
    assert counted >= 10


def test_compiled_loops_count_the_same() -> None:
    pytest.importorskip("llvmlite")
    check(load(space()), 0.5, solver="exhaustive", options={"jit": "on"})


def test_alternatives_differ_from_one_another() -> None:
    problem = load(space(error={"t": 0.5}))
    result = search(problem)
    near = near_of(result)
    assert len(near.listed) == 5
    best = result.front[0].design
    points = {point.index: point for point in result.best}
    differing = {
        frozenset(name for name, value in points[index].design.items() if value != best[name])
        for index in near.listed
    }
    assert len(differing) == 5


def test_the_declared_error_is_the_default_and_0_turns_it_off() -> None:
    problem = load(space(error={"t": "6 percent"}))
    assert near_of(search(problem)).share == 0.06
    assert near_of(search(problem, within="2%")).share == 0.02
    plain = search(problem, within=0)
    assert (plain.near, plain.best) == (None, ())
    assert search(load(space())).near is None
    two = space(objectives={"t": "minimize", "u": "minimize"}, error={"t": "6 percent"})
    two["metrics"] = {**two["metrics"], "u": {"expr": "a", "unit": 1}}
    assert search(load(two)).near is None
    with pytest.raises(
        InputError, match="within must have one best design to go by, but near has the objectives t, u"
    ):
        search(load(two), within=0.1)


def test_only_exact_solvers_count() -> None:
    problem = load(space(error={"t": "6 percent"}))
    assert search(problem, solver="optuna", n_trials=5, options={"sampler": "random"}).near is None
    with pytest.raises(
        SolverRefused, match="samples, so it cannot count the designs near the best; exhaustive, pareto"
    ):
        search(problem, solver="optuna", n_trials=5, within=0.06)
    assert search(problem, solver="pareto", options={"epsilon": 0.1}).near is None
    with pytest.raises(InputError, match="which a search with epsilon may miss"):
        search(problem, solver="pareto", options={"epsilon": 0.1}, within=0.06)


@pytest.mark.parametrize("share", [1, -0.1, "6 ms", "six", True])
def test_what_is_no_share(share: Any) -> None:
    with pytest.raises(InputError, match=r"within must be a share below 1, such as '6 percent' or 0\.06"):
        search(load(space()), within=share)


@pytest.mark.parametrize("solver", ["exhaustive", "pareto"])
def test_too_many_are_not_counted(monkeypatch: pytest.MonkeyPatch, solver: str) -> None:
    monkeypatch.setattr(within, "MOST", 100)
    found = near_of(search(load(space()), within=0.9, solver=solver, top=FEW))
    assert (found.count, found.counted, found.shared) == (100, "more", ())
    assert len(found.listed) == 10


# -- kept in a folder -----------------------------------------------------------------------------------


def outputs(folder: Path) -> dict[str, Any]:
    data = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    del data["run"]
    return {"result": data, "front": (folder / "front.csv").read_bytes()}


def test_workers_and_resuming_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = load(space(error={"t": "50 percent"}))
    for at, workers in enumerate((1, 2)):
        search(problem, solver="pareto", folder=tmp_path / str(at), workers=workers, top=FEW)
    assert outputs(tmp_path / "0") == outputs(tmp_path / "1")
    with monkeypatch.context() as patch:
        patch.setattr(running, "near_best", lambda *_, **__: None)  # killed before they were counted
        search(problem, solver="pareto", folder=tmp_path / "2", top=FEW)
    assert outputs(tmp_path / "2")["result"]["near"] is None
    study = Study.open(tmp_path / "2", problem)
    study.run()
    assert outputs(tmp_path / "2") == outputs(tmp_path / "0")
    again = Study.open(tmp_path / "2", problem).result
    assert again.near == search(problem, solver="pareto", top=FEW).near
    assert near_of(again).count > FEW
    assert "result.json is what the record gives" in verify(tmp_path / "2", problem=problem).checks
    with pytest.raises(StudyError, match=r"within is 0\.5 there, but 0\.1 was asked for"):
        Study(problem, solver="pareto", folder=tmp_path / "2", within=0.1, top=FEW)


def test_counting_that_was_stopped_is_taken_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = load(space(error={"t": "50 percent"}))
    full = near_of(search(problem, top=FEW))
    real = within.near_best
    with monkeypatch.context() as patch:
        patch.setattr(running, "near_best", lambda *a, **k: real(*a, **{**k, "stop": lambda: True}))
        stopped = near_of(search(problem, folder=tmp_path / "run", solver="pareto", top=FEW))
    assert stopped.counted == "least"
    assert stopped.count < full.count
    study = Study.open(tmp_path / "run", problem)
    assert near_of(study.run()) == full


def test_verify_looks_at_the_designs_that_are_listed(tmp_path: Path) -> None:
    problem = load(space(error={"t": "50 percent"}))
    search(problem, folder=tmp_path, solver="pareto")
    assert "the designs near the best are" in verify(tmp_path, problem=problem).checks
    database = sqlite3.connect(tmp_path / "study.sqlite")
    ((text,),) = database.execute("SELECT value FROM facts WHERE name = 'near'").fetchall()
    near = json.loads(text)
    for change in ({"bound": near["bound"] * 2}, {"count": 3}, {"listed": [0, *near["listed"][1:]]}):
        database.execute("UPDATE facts SET value = ? WHERE name = 'near'", (json.dumps({**near, **change}),))
        database.commit()
        path = tmp_path / "result.json"
        stored = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**stored, "near": {**near, **change}}), encoding="utf-8")
        with pytest.raises(VerificationFailed, match="near the best"):
            verify(tmp_path, problem=problem)
    database.close()
