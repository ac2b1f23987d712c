"""Teams side by side."""

from __future__ import annotations

from typing import Any

import pytest

from dse.errors import InputError
from dse.problem import Problem
from dse.problem.library import load
from dse.solvers.exhaustive import Exhaustive
from dse.study.compare import Comparison, compare
from dse.study.diagnosis import exact_result
from dse.study.exact import run_exact
from dse.study.result import Result


class Solve:
    """Solves exhaustively, and remembers for which teams it was called."""

    def __init__(self) -> None:
        self.teams: list[str | None] = []

    def __call__(self, problem: Problem, team: str | None = None, **options: Any) -> Result:
        self.teams.append(team)
        own = problem.team(team)
        return exact_result(problem, own, "exhaustive", run_exact(problem, own, Exhaustive()))


def compared(problem: Problem, teams: list[str] | None = None) -> tuple[Comparison, list[str | None]]:
    solve = Solve()
    return compare(problem, teams, solve=solve), solve.teams


def test_all_teams_in_their_order_and_the_whole_space_once() -> None:
    comparison, solved = compared(load("camera"))
    assert [row.team for row in comparison.rows] == ["ml", "systems", "mlsys"]
    assert solved == ["ml", "systems", "mlsys"]  # mlsys is the whole space
    assert comparison.whole is comparison.rows[2].result
    assert comparison.feasible


def test_the_whole_space_is_searched_when_no_team_is_it() -> None:
    comparison, solved = compared(load("camera"), ["ml"])
    assert solved == ["ml", None]
    assert not comparison.feasible
    assert comparison.whole is not None
    assert comparison.whole.feasible
    (row,) = comparison.rows
    assert [unlock.dimensions for unlock in row.unlocks] == [("engine", "hardware")]


def test_combined_teams() -> None:
    comparison, _ = compared(load("camera"), ["ml | systems", "ml & systems"])
    union, both = comparison.rows
    # 120 of ml and 7 of systems, one of them in both: the naive engine on the CPU, without retraining
    assert both.result.accounting.evaluated == 3
    assert union.result.accounting.evaluated == 120 + 7 - 3
    assert not comparison.feasible
    assert [(u.dimensions, u.feasible) for u in union.unlocks] == [(("format",), 1), (("distill",), 1)]
    assert union.departures == ()


def test_nothing_unlocks_where_nothing_is_feasible() -> None:
    comparison, _ = compared(load("camera", {"max_latency": "1 us"}))
    assert not comparison.feasible
    assert all(row.unlocks == () and row.departures == () for row in comparison.rows)


def test_unlocks_need_few_designs_or_few_legal_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    known, _ = compared(load("camera"))
    monkeypatch.setattr("dse.study.unlock.SURVEY_LIMIT", 100)
    listed, _ = compared(load("camera"))
    assert any(row.unlocks for row in listed.rows)
    assert [(row.unlocks, row.departures) for row in listed.rows] == [
        (row.unlocks, row.departures) for row in known.rows
    ]
    monkeypatch.setattr("dse.study.unlock.LISTED_LIMIT", 100)
    comparison, _ = compared(load("camera"))
    assert comparison.note.endswith("every feasible design must be listed, and there are too many")
    assert all(row.unlocks == () for row in comparison.rows)


def test_unlocks_need_an_exact_search_of_everything() -> None:
    comparison = compare(load("camera"), solver="optuna", n_trials=60)
    assert comparison.whole is not None
    assert comparison.whole.feasible
    assert comparison.note.endswith("that takes an exact search of the whole space")


def test_unknown_teams_and_none() -> None:
    with pytest.raises(InputError, match="did you mean 'systems'"):
        compared(load("camera"), ["system"])
    small = load(
        {
            "dse": 1, "name": "small", "dimensions": {"a": [1, 2]},
            "metrics": {"x": {"expr": "a", "unit": 1}}, "objectives": {"x": "minimize"},
        }
    )  # fmt: skip
    with pytest.raises(InputError, match="small declares no teams"):
        compared(small)
