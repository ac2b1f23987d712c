"""The exact solvers against brute force and against each other: fronts, accounts, checkpoints, processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings

from dse.evaluation.sweep import Sweep
from dse.problem import Problem, Team
from dse.problem.library import load
from dse.solvers.auto import Auto
from dse.solvers.branching import gap, misses, searching
from dse.solvers.exhaustive import Exhaustive
from dse.solvers.pareto import Pareto
from dse.study import sweeping
from dse.study.diagnosis import exact_result
from dse.study.exact import run_exact
from dse.study.result import Result
from dse.study.solver import ExactSolver
from tests.bruteforce import (
    assert_accounted,
    assert_right_counts,
    assert_right_explanation,
    assert_right_front,
    truth,
)
from tests.randomspaces import problem, spaces

BOTH = [Exhaustive, Pareto]


def solve(found: Problem, solver: type[ExactSolver], team: Team | None = None, **options: Any) -> Result:
    own = team or found.everything
    return exact_result(found, own, solver.name, run_exact(found, own, solver(), **options))


def front_bytes(result: Result) -> str:
    return json.dumps(result.to_dict()["front"], indent=1, allow_nan=False)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and pieces so small that a small problem takes many."""
    monkeypatch.setattr(sweeping, "Sweep", partial(Sweep, batch=5, block=7, piece=4))
    for module in (searching, misses, gap):
        monkeypatch.setattr(module, "CHILDREN", 6)


def teams(found: Problem) -> Iterator[Team]:
    yield found.everything
    yield from found.teams.values()


def assert_both_right(found: Problem, team: Team) -> None:
    right = truth(found, team)
    results = [solve(found, solver, team, ties=True, top=3) for solver in BOTH]
    for result in results:
        assert_accounted(result)
        assert_right_front(result, right)
        assert_right_explanation(result, right)
        assert [point.tied for point in result.front] == [indices for _, indices in right.front]
        best = sorted((costs[0], index) for index, costs in right.costs.items())[:3]
        assert [point.index for point in result.best] == [index for _, index in best]
    assert_right_counts(results[0], right)
    assert front_bytes(results[0]) == front_bytes(results[1])


@settings(max_examples=100)
@given(spaces(designs=30))
def test_drawn_problems(data: dict[str, Any]) -> None:
    found = load(data)
    for team in teams(found):
        assert_both_right(found, team)


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_three_hundred_random_problems(first: int) -> None:
    for seed in range(first, first + 50):
        found = problem(seed, 40)
        for team in teams(found):
            assert_both_right(found, team)


@pytest.mark.usefixtures("small_pieces")
def test_random_problems_in_small_pieces() -> None:
    for seed in range(60):
        found = problem(seed, 40)
        for team in teams(found):
            assert_both_right(found, team)


def test_larger_random_problems() -> None:
    for seed in range(2000, 2004):
        found = problem(seed, 2000)
        for team in teams(found):
            assert_both_right(found, team)


@pytest.mark.parametrize("team", [None, "ml", "systems", "mlsys", "ml | systems", "ml & systems"])
def test_camera(team: str | None) -> None:
    found = load("camera")
    assert_both_right(found, found.team(team))


# -- stopping and going on ----------------------------------------------------------------------------


def canonical(result: Result) -> str:
    return result.to_json(run=False)


def interrupted(found: Problem, team: Team, solver: type[ExactSolver], after: int) -> tuple[str, list[bytes]]:
    """Stop after every ``after`` pieces and go on from the checkpoint, until the end."""
    saved: list[bytes] = []
    checkpoint = None
    while True:
        ticks = iter(range(after))

        def stop(ticks: Iterator[int] = ticks) -> bool:
            return next(ticks, None) is None

        run = run_exact(
            found, team, solver(), checkpoint=checkpoint, save=saved.append, stop=stop, top=2, ties=True,
            keep=9, seed=3,
        )  # fmt: skip
        checkpoint = saved[-1]
        if run.status == "complete":
            return canonical(exact_result(found, team, solver.name, run, seed=3)), saved
        stopped = exact_result(found, team, solver.name, run, seed=3)
        assert stopped.status == "stopped"
        assert_accounted(stopped)
        assert len(saved) < 2000


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("solver", BOTH)
def test_a_stopped_run_goes_on_to_the_same_result(solver: type[ExactSolver]) -> None:
    stops = 0
    for seed in range(40):
        found = replace(problem(seed, 60))  # nothing is prepared for it yet, in pieces of another size
        for team in (found.everything, *list(found.teams.values())[:1]):
            run = run_exact(found, team, solver(), top=2, ties=True, keep=9, seed=3)
            undisturbed = canonical(exact_result(found, team, solver.name, run, seed=3))
            resumed, saved = interrupted(found, team, solver, after=1)
            stops += len(saved) - 1
            assert resumed == undisturbed
    assert stops > 30


@pytest.mark.usefixtures("small_pieces")
def test_a_finished_checkpoint_is_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = load("camera")
    saved: list[bytes] = []
    first = run_exact(found, found.everything, Exhaustive(), save=saved.append)
    monkeypatch.setattr(Sweep, "run", None)
    again = run_exact(found, found.everything, Exhaustive(), checkpoint=saved[-1])
    assert again.status == "complete"
    results = [exact_result(found, found.everything, "exhaustive", run) for run in (first, again)]
    assert canonical(results[0]) == canonical(results[1])


@pytest.mark.usefixtures("small_pieces")
def test_pareto_goes_on_explaining_where_it_stopped() -> None:
    """A resume while it explains why nothing is feasible goes on with that, and ends the same."""
    found = load("camera", {"max_latency": "1 us"})
    ticks: list[float] = []
    saved: list[bytes] = []
    first = run_exact(found, found.everything, Pareto(), progress=ticks.append)
    assert not first.tally.feasible
    explaining = ticks.count(0.999)
    assert explaining > 4
    seen = iter(range(len(ticks) - explaining + 2))
    stopped = run_exact(
        found, found.everything, Pareto(), save=saved.append, stop=lambda: next(seen, None) is None
    )
    assert stopped.status == "stopped"
    rest: list[float] = []
    again = run_exact(found, found.everything, Pareto(), checkpoint=saved[-1], progress=rest.append)
    assert 0 < len(rest) < explaining
    results = [exact_result(found, found.everything, "pareto", run) for run in (first, again)]
    assert canonical(results[0]) == canonical(results[1])


# -- options --------------------------------------------------------------------------------------------


def grid(n: int = 90, constraint: str = ">= 4") -> Problem:
    """``n`` cubed designs, many of them tied."""
    return load(
        {
            "dse": 1,
            "name": "grid",
            "dimensions": {name: {"range": [1, n]} for name in "xyz"},
            "rules": {"odd": {"check": "(x + y) % 2 == 1", "because": "{x} + {y} is even"}},
            "metrics": {
                "cost": {"expr": "floor((x - 20) ** 2 / 9) + y", "unit": 1},
                "worth": {"expr": "y + floor(z / 7)", "unit": 1},
            },
            "objectives": {"cost": "minimize", "worth": "maximize"},
            "constraints": {"worth": constraint, "cost": "<= 50"},
        }
    )


@pytest.mark.parametrize("solver", BOTH)
@pytest.mark.parametrize("constraint", [">= 4", ">= 1000"])
def test_two_processes_give_what_one_gives(solver: type[ExactSolver], constraint: str) -> None:
    found = grid(constraint=constraint)
    assert found.size > 2 * 250_000
    alone, together = (
        solve(found, solver, workers=workers, keep=500, top=5, ties=False, seed=1) for workers in (1, 2)
    )
    assert canonical(alone) == canonical(together)
    assert alone.kept is not None
    assert together.kept is not None
    assert (alone.kept.digits == together.kept.digits).all()
    assert alone.feasible == (constraint == ">= 4")


def test_kept_designs_are_a_sample_that_depends_on_the_seed_alone(small_pieces: None) -> None:
    found = load("camera")
    everything = solve(found, Exhaustive, keep=1000).kept
    assert everything is not None
    assert everything.complete
    assert len(everything.digits) == everything.seen == 312
    samples = [solve(found, Exhaustive, keep=40, seed=seed).kept for seed in (0, 0, 1)]
    rows = [sample.digits.tolist() for sample in samples if sample is not None]
    assert rows[0] == rows[1] != rows[2]
    assert len(rows[0]) == 40
    assert all(sample is not None and not sample.complete and sample.seen == 312 for sample in samples)
    whole = everything.digits.tolist()
    assert all(row in whole for row in rows[0])
    for sample in samples:
        assert sample is not None
        at = [whole.index(row) for row in sample.digits.tolist()]
        assert (everything.objectives[at] == sample.objectives).all()
        assert (everything.violations[at] == sample.violations).all()
        assert (everything.feasible[at] == sample.feasible).all()
    assert int(everything.feasible.sum()) == 8


def test_a_sample_is_uniform() -> None:
    """Of 729,000 positions, each third holds about a third of the sample."""
    kept = solve(grid(), Exhaustive, keep=3000).kept
    assert kept is not None
    shares = [((kept.digits[:, 0] >= low) & (kept.digits[:, 0] < low + 30)).mean() for low in (0, 30, 60)]
    assert all(abs(share - 1 / 3) < 0.04 for share in shares)


def test_pareto_cuts_what_a_prefix_rules_out() -> None:
    early = load({**_early(), "constraints": {"first": "<= 3"}})
    result = solve(early, Pareto)
    beaten = result.accounting.pruned_by["dominated by the front"]
    assert result.accounting.pruned_by == {"constraint first": 7 * 20, "dominated by the front": beaten}
    assert result.accounting.evaluated + beaten == 3 * 20
    assert beaten > 50
    assert front_bytes(result) == front_bytes(solve(early, Exhaustive))


def _early() -> dict[str, Any]:
    return {
        "dse": 1, "name": "early", "dimensions": {"a": {"range": [1, 10]}, "b": {"range": [1, 20]}},
        "metrics": {"first": {"expr": "a", "unit": 1}, "x": {"expr": "a * b", "unit": 1}},
        "objectives": {"x": "minimize"},
    }  # fmt: skip


@pytest.mark.usefixtures("small_pieces")
def test_a_union_is_decided_only_when_all_its_dimensions_are() -> None:
    """The boxes of a union may narrow late dimensions, which the first prefixes do not have yet."""
    found = load(
        {
            "dse": 1, "name": "union", "dimensions": {name: {"range": [0, 3]} for name in "abcd"},
            "metrics": {"x": {"expr": "a + 2 * b + 3 * c + 4 * d", "unit": 1}}, "objectives": {"x": "minimize"},
            "rules": {"r": {"check": "a + b > 1", "because": "{a} and {b} are small"}},
            "constraints": {"x": ">= 9", "early": {"check": "a < 3"}},
            "teams": {"p": {"a": 1, "where": "b > 0"}, "q": {"d": [1, 3]}, "either": "p | q"},
        }
    )  # fmt: skip
    for team in teams(found):
        assert_both_right(found, team)


def test_a_condition_without_a_value_fails_a_design() -> None:
    found = load(
        {
            "dse": 1, "name": "hole", "dimensions": {"a": ["u", "v"], "b": {"range": [1, 3]}},
            "tables": {"t": {"keys": ["a"], "unit": "1", "rows": {"u": 1}}},
            "metrics": {"x": {"expr": "b", "unit": 1}}, "objectives": {"x": "minimize"},
            "constraints": {"c": {"check": "t[a] > 0 and t[a] < 5"}},
        }
    )  # fmt: skip
    for solver in BOTH:
        result = solve(found, solver)
        assert set(result.accounting.pruned_by) <= {"dominated by the front", "constraint c"}
        assert [(point.index, point.ties) for point in result.front] == [(0, 1)]
    result = solve(found, Exhaustive)
    assert (result.accounting.pruned, result.accounting.evaluated, result.funnel.failed) == (0, 6, 3)


# -- refusals and choices -------------------------------------------------------------------------------


def test_what_cannot_be_listed_is_refused_in_a_sentence() -> None:
    huge = {f"d{at}": {"range": [1, 1000]} for at in range(30)}
    metrics = {"x": {"expr": "d0", "unit": 1}}
    base: dict[str, Any] = {"dse": 1, "name": "x", "metrics": metrics, "objectives": {"x": "minimize"}}
    large = load({**base, "dimensions": huge})
    continuous = load({**base, "dimensions": {"d0": {"range": [0.5, 1.5]}}})
    measured = load(
        {
            **base, "dimensions": {"d0": [1, 2]}, "metrics": {"x": {"unit": 1, "measured": True}},
            "measure": {"command": ["true"]},
        }
    )  # fmt: skip
    for solver in (Exhaustive(), Pareto()):
        for found, word in ((large, "1e+90"), (continuous, "'d0' is continuous"), (measured, "measured")):
            reason = solver.refuse(found, found.everything)
            if found is large and isinstance(solver, Pareto):
                assert reason is None  # boxes are never listed, so any number of designs will do
                continue
            assert reason is not None
            assert word in reason
    narrow = large.everything.freed(frozenset(), large.names)
    assert narrow.boxes


@pytest.mark.parametrize(
    ("sizes", "trials", "chosen"),
    [
        ([10, 10], None, "exhaustive"),
        ([10, 10], 50, "optuna"),
        ([10, 10], 100, "exhaustive"),
        ([1000] * 3, None, "pareto"),
        ([1000] * 6, None, "optuna"),
    ],
)
def test_auto_counts_first_and_says_why(sizes: list[int], trials: int | None, chosen: str) -> None:
    found = load(
        {
            "dse": 1, "name": "x", "dimensions": {f"d{at}": {"range": [1, n]} for at, n in enumerate(sizes)},
            "metrics": {"x": {"expr": "d0", "unit": 1}}, "objectives": {"x": "minimize"},
        }
    )  # fmt: skip
    name, why = Auto().choose(found, found.everything, trials)
    assert name == chosen
    assert "designs" in why
