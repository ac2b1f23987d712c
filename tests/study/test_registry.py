"""Plugins: found by entry points, loaded one by one, and a broken one is named instead of fatal."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from dse.errors import InputError
from dse.problem import Problem, Team
from dse.study import registry
from dse.study.registry import able, load_solver, refusal, reports, solvers, spaces
from dse.study.solver import Proposals, SamplingSolver
from tests.study.problems import Build, camera


class Picky(SamplingSolver):
    """Refuses every problem."""

    name = "picky"
    title = "refuses"
    needs = frozenset({"trials"})

    def refuse(self, problem: Problem, team: Team) -> str | None:
        return "it is too dull"

    def propose(self, proposals: Proposals) -> None:
        raise NotImplementedError


class Unfinished(SamplingSolver):
    """Declares nothing."""

    def propose(self, proposals: Proposals) -> None:
        raise NotImplementedError


def broken() -> None:
    raise RuntimeError("boom")


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few plugins beside the shipped ones, as a third party would install them."""
    here = sys.modules[__name__]
    monkeypatch.setitem(sys.modules, "third_party", here)
    from dse.problem.plugins import entry_points as shipped

    def entry_points(group: str) -> dict[str, EntryPoint]:
        names = {"picky": "Picky", "unfinished": "Unfinished", "function": "broken", "gone": "Nothing"}
        more = {name: EntryPoint(name, f"third_party:{value}", group) for name, value in names.items()}
        more["absent"] = EntryPoint("absent", "no_such_package.at_all:Solver", group)
        return {**shipped(group), **more}

    monkeypatch.setattr(registry, "entry_points", entry_points)


def test_the_shipped_plugins_are_found() -> None:
    assert {"auto", "exhaustive", "optuna", "pareto"} <= set(solvers())
    assert "front" in reports()
    assert Path(spaces()["camera"]).name == "space.yaml"
    assert "nothing" not in spaces()


@pytest.mark.usefixtures("plugins")
def test_broken_plugins_are_left_out_and_named_when_asked_for() -> None:
    assert "picky" in solvers()
    assert not {"unfinished", "function", "gone", "absent"} & set(solvers())
    for name, message in [
        ("unfinished", r"solver 'unfinished' .* must declare name, title, needs"),
        ("function", r"plugin 'function' \(third_party:broken\) must be a class derived from"),
        ("gone", r"solver 'gone' cannot be loaded: AttributeError"),
        ("absent", r"solver 'absent' cannot be loaded: ModuleNotFoundError"),
    ]:
        with pytest.raises(InputError, match=message):
            load_solver(name)
    assert "gone" not in reports()


def test_an_unknown_solver_has_the_nearest_name() -> None:
    with pytest.raises(InputError, match=r"unknown solver 'exaustive'; did you mean 'exhaustive'\?"):
        load_solver("exaustive")


@pytest.mark.usefixtures("plugins")
def test_who_can_do_a_problem_and_who_refuses() -> None:
    problem = camera()
    assert able(problem, problem.everything) == ["exhaustive", "optuna", "pareto"]
    assert able(problem, problem.everything, "sampling") == ["optuna"]
    assert able(problem, problem.everything, "exact") == ["exhaustive", "pareto"]
    assert refusal(load_solver("picky"), problem, problem.everything) == "it is too dull"


def test_bulk_solvers_cannot_do_what_is_measured_or_continuous() -> None:
    measured = Build().dimension("a", [1, 2]).measured("time", "ms").minimize("time").problem()
    assert able(measured, measured.everything) == ["optuna"]
    reason = refusal(load_solver("pareto"), measured, measured.everything)
    assert reason == "its cost is measured one design at a time, not computed"
