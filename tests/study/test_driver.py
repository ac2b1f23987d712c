"""What the driver promises of every sampling solver, with a solver that proposes a given list."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from dse.errors import StudyError
from dse.problem import Design, Measurement, Problem
from dse.study.driver import TrialRun
from dse.study.identity import Coder
from dse.study.legal import LegalDesigns
from dse.study.solver import Admission, Proposals, SamplingSolver
from dse.study.storage import Storage
from dse.study.trial import Trial, TrialState
from tests.study.problems import Build, camera, tiny


class Listed(SamplingSolver):
    """Offers the designs of a list that it has not seen, and remembers what it was told."""

    name = "listed"
    title = "a list"
    needs = frozenset({"trials"})

    def __init__(self, offers: list[Design]) -> None:
        self.offers = offers
        self.told: list[Admission] = []
        self.batches: list[tuple[int, int, int]] = []

    def propose(self, proposals: Proposals) -> None:
        self.batches.append((len(proposals.history), proposals.wanted, proposals.random_seed))
        accepted = 0
        for design in self.offers:
            if accepted == proposals.wanted:
                return
            admission = proposals.admit(design)
            self.told.append(admission)
            accepted += admission.accepted


def run_of(
    problem: Problem, solver: SamplingSolver, storage: Storage | None = None, **settings: Any
) -> TrialRun:
    coder = Coder(problem)
    team = problem.team(settings.pop("team", None))
    given: dict[str, Any] = {"seed": 0, "batch": 10, "options": {}, **settings}
    storage = storage or Storage(coder)
    storage.acquire()
    storage.prepare()
    return TrialRun(problem, team, solver, storage, LegalDesigns(problem, team, coder), **given)


def numbers(trials: list[Trial]) -> list[tuple[int, int | None, TrialState]]:
    return [(t.number, t.index, t.state) for t in trials]


def test_illegal_outside_and_repeated_proposals_are_told_and_are_no_trials() -> None:
    problem = camera()
    legal = problem.design_at(problem.digits_of(0))
    npu_fp32 = legal | {"hardware": "npu", "engine": "optimized"}
    both = npu_fp32 | {"engine": "naive"}
    other_team = legal | {"detector": "Det-M"}
    problem_team = "small"
    build_problem = problem
    object.__setattr__(build_problem, "teams", {**problem.teams, problem_team: _only(problem, "Det-S")})
    solver = Listed([legal, npu_fp32, both, other_team, legal])
    trials = run_of(problem, solver, team=problem_team)
    trials.run(1)
    assert [(a.accepted, a.why, a.violation) for a in solver.told] == [
        (True, "", 0.0),
        (False, "illegal", 1.0),
        (False, "illegal", 2.0),
        (False, "outside", 1.0),
        (False, "repeated", 0.0),
    ]
    assert trials.done == 1


def _only(problem: Problem, detector: str) -> Any:
    from dse.problem import Box, Team

    at = problem.dimensions[0].values.index(detector)
    return Team("small", (Box(((at,), *[None] * 5)),))


def test_what_a_solver_does_not_fill_is_drawn_and_a_small_space_ends_exhausted() -> None:
    trials = run_of(tiny(), Listed([{"a": 2.0, "b": True}]))
    trials.run(1000)
    assert trials.exhausted
    assert trials.finished[0].index == 3
    assert sorted(t.index or 0 for t in trials.finished) == [0, 1, 2, 3]


def test_nothing_is_proposed_after_the_end() -> None:
    solver = Listed([])
    trials = run_of(tiny(), solver)
    trials.run(1000)
    assert len(solver.batches) == 1
    trials.run(1000)
    assert len(solver.batches) == 1
    assert trials.next() is None


def test_a_solver_that_proposes_no_design_or_too_many_is_named() -> None:
    with pytest.raises(Exception, match="has no value"):
        run_of(tiny(), Listed([{"a": 9.0, "b": True}])).run(1)

    class Greedy(Listed):
        def propose(self, proposals: Proposals) -> None:
            for design in self.offers:
                proposals.admit(design)

    everything: list[Design] = [{"a": a, "b": b} for a in (1.0, 2.0) for b in (False, True)]
    with pytest.raises(StudyError, match="solver listed must propose at most 2"):
        run_of(tiny(), Greedy(everything), batch=2).run(1)


def test_batches_see_all_finished_trials_and_the_budget_does_not_change_them() -> None:
    solver, shorter = Listed([]), Listed([])
    problem = camera()
    trials = run_of(problem, solver)
    trials.run(25)
    assert [(seen, wanted) for seen, wanted, _ in solver.batches] == [(0, 10), (10, 10), (20, 10)]
    assert len({seed for *_, seed in solver.batches}) == 3
    stepwise = run_of(problem, shorter)
    for target in (3, 10, 11, 25):
        stepwise.run(target)
        assert stepwise.done == target
    assert numbers(stepwise.finished) == numbers(trials.finished)
    assert shorter.batches == solver.batches


def test_the_seed_matters() -> None:
    found = []
    for seed in (0, 1, -1):
        trials = run_of(camera(), Listed([]), seed=seed)
        trials.run(20)
        found.append([t.index for t in trials.finished])
    assert found[0] != found[1] != found[2] != found[0]


def test_running_trials_are_run_again_and_finished_ones_are_not(tmp_path: Path) -> None:
    problem = camera()
    first = run_of(problem, Listed([]), Storage(Coder(problem), tmp_path))
    first.run(7)
    begun = [first.next(), first.next()]
    first.storage.release()  # as if it were killed: two trials are RUNNING
    again = run_of(problem, Listed([]), Storage(Coder(problem), tmp_path))
    assert again.done == 7
    again.run(12)
    whole = run_of(problem, Listed([]))
    whole.run(12)
    assert numbers(again.finished) == numbers(whole.finished)
    assert [t.number for t in begun if t is not None] == [7, 8]
    assert [t.index for t in begun if t is not None] == [t.index for t in whole.finished[7:9]]


def measured(folder: Path, code: str, **settings: Any) -> Problem:
    (folder / "cost.py").write_text(code, encoding="utf-8")
    build = Build().dimension("x", [1, 2, 3, 4, 5, 6, 7, 8]).measured("time", "ms").minimize("time")
    build.constrain("time", "time <= 7 ms")
    return build.problem("measured", Measurement(function="./cost.py:cost", folder=str(folder), **settings))


SLOW = "import time\ndef cost(design):\n    time.sleep(0.002 * (9 - design['x']))\n    return {'time': design['x']}\n"


def test_one_and_two_workers_make_the_same_trials(tmp_path: Path) -> None:
    problem = measured(tmp_path, SLOW)
    found = []
    for workers in (1, 2):
        trials = run_of(problem, Listed([]), batch=4)
        trials.run(6, workers=workers)
        found.append(trials.finished)
    assert found[0] == found[1]
    assert [t.number for t in found[0]] == list(range(6))
    assert {t.state for t in found[0]} == {TrialState.COMPLETE, TrialState.INFEASIBLE} or all(
        t.objectives[0] <= 0.007 for t in found[0]
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failing_measurement_is_a_failed_trial(tmp_path: Path, workers: int) -> None:
    code = "def cost(design):\n    if design['x'] > 4: raise ValueError('too big')\n    return {'time': 1}\n"
    trials = run_of(measured(tmp_path, code), Listed([]))
    trials.run(8, workers=workers)
    failed = [t for t in trials.finished if t.state is TrialState.FAILED]
    assert len(failed) == 4
    assert {t.reason for t in failed} == {"the measurement raised ValueError: too big"}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_measuring_process_that_dies_is_a_failed_trial_and_is_replaced(
    tmp_path: Path, workers: int
) -> None:
    code = "import os\ndef cost(design):\n    if design['x'] == 3: os._exit(9)\n    return {'time': design['x']}\n"
    trials = run_of(measured(tmp_path, code), Listed([]))
    trials.run(8, workers=workers)
    failed = {t.design["x"]: t.reason for t in trials.finished if t.state is TrialState.FAILED}
    assert failed == {3.0: "the measuring process ended with exit code 9 while measuring"}
    assert trials.done == 8


def test_a_deadline_stops_between_trials(tmp_path: Path) -> None:
    problem = measured(
        tmp_path, "import time\ndef cost(design):\n    time.sleep(1)\n    return {'time': 1}\n"
    )
    trials = run_of(problem, Listed([]))
    trials.run(None, deadline=time.monotonic() + 3)
    assert 1 <= trials.done <= 4
    assert not trials.running
    trials.run(None, deadline=time.monotonic() - 1)
    assert trials.done <= 4


def test_a_mistake_in_the_function_is_found_before_any_trial(tmp_path: Path) -> None:
    for workers in (1, 2):
        trials = run_of(measured(tmp_path, "def price(design): ..."), Listed([]))
        with pytest.raises(Exception, match="has no function 'cost'"):
            trials.run(1, workers=workers)
        assert trials.done == 0


def test_a_measured_metric_that_nothing_needs_stays_unknown() -> None:
    build = Build().dimension("a", [1, 2]).metric("cost", "a").measured("power", "W").minimize("cost")
    trials = run_of(build.problem(), Listed([]))
    trials.run(2)
    assert [t.metrics for t in trials.finished] == [
        {"cost": t.design["a"], "power": None} for t in trials.finished
    ]


# -- solvers that know no end ----------------------------------------------------------------------


class Naive(Listed):
    """Offers one design until enough are accepted, and catches whatever it can."""

    def propose(self, proposals: Proposals) -> None:
        accepted = calls = 0
        while accepted < proposals.wanted:
            calls += 1
            assert calls < 10_000
            try:
                admission = proposals.admit(self.offers[0])
            except Exception:  # noqa: BLE001 - as a stranger may write it
                continue
            self.told.append(admission)
            accepted += admission.accepted


def test_a_solver_that_proposes_without_end_is_ended() -> None:
    solver = Naive([camera().design_at((0,) * 6)])
    trials = run_of(camera(), solver)
    trials.run(20)
    assert trials.done == 20
    assert [a.accepted for a in solver.told] == [True, *[False] * 200]
    assert trials.finished[0].index == 0


def test_a_batch_that_is_broken_off_takes_no_design() -> None:
    class Broken(Listed):
        def propose(self, proposals: Proposals) -> None:
            super().propose(proposals)
            if self.offers:
                raise RuntimeError("a bug")

    solver = Broken([{"a": 1.0, "b": True}, {"a": 2.0, "b": True}])
    trials = run_of(tiny(), solver)
    with pytest.raises(RuntimeError):
        trials.run(4)
    solver.offers = []
    trials.run(10)
    assert sorted(t.index or 0 for t in trials.finished) == [0, 1, 2, 3]


# -- what a trial costs ----------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["random", "nsga2"])
def test_the_work_of_a_trial_does_not_grow_with_their_number(
    monkeypatch: pytest.MonkeyPatch, sampler: str
) -> None:
    from dse.solvers import optuna as plugin

    build = Build()
    for name in "abcd":
        build.dimension(name, [float(v) for v in range(16)])
    problem = build.metric("cost", "a * b - c + d").minimize("cost").problem()
    calls = {"keys": 0, "amounts": 0}
    key, amounts = Coder.key, plugin._amounts

    def counted_key(self: Coder, design: Any) -> Any:
        calls["keys"] += 1
        return key(self, design)

    def counted_amounts(problem: Problem, trial: Trial) -> dict[str, float]:
        calls["amounts"] += 1
        found: dict[str, float] = amounts(problem, trial)
        return found

    monkeypatch.setattr(Coder, "key", counted_key)
    monkeypatch.setattr(plugin, "_amounts", counted_amounts)
    n = 300
    run_of(problem, plugin.Optuna(), options={"sampler": sampler}).run(n)
    assert calls["keys"] < 3 * n
    assert calls["amounts"] == (0 if sampler == "random" else n - 10)


# -- metrics that nothing needs --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spare", "value"),
    [("", None), ("'power': None", None), ("'power': float('nan')", None), ("'power': '8 MB'", None),
     ("'power': 'much'", None), ("'power': 3", 3.0), ("'power': float('inf')", float("inf"))],
)  # fmt: skip
def test_a_measured_metric_that_nothing_needs_fails_no_design(
    tmp_path: Path, spare: str, value: float | None
) -> None:
    (tmp_path / "cost.py").write_text(f"def cost(design):\n    return {{'time': design['x'], {spare}}}\n")
    build = Build().dimension("x", [1, 2]).measured("time", "ms").measured("power", "W").minimize("time")
    build.metric("energy", "time * power", "J")
    problem = build.problem("t", Measurement(function="./cost.py:cost", folder=str(tmp_path), repeats=2))
    trials = run_of(problem, Listed([]))
    trials.run(2)
    assert {t.state for t in trials.finished} == {TrialState.COMPLETE}
    assert [t.metrics["power"] for t in trials.finished] == [value] * 2
    assert [t.metrics["energy"] is None for t in trials.finished] == [value is None] * 2


def test_a_measurement_that_nothing_needs_fails_no_design(tmp_path: Path) -> None:
    (tmp_path / "cost.py").write_text("def cost(design):\n    raise ValueError('no power meter')\n")
    build = Build().dimension("x", [1, 2]).metric("cost", "x").measured("power", "W").minimize("cost")
    problem = build.problem("t", Measurement(function="./cost.py:cost", folder=str(tmp_path)))
    trials = run_of(problem, Listed([]))
    trials.run(2)
    assert {t.state for t in trials.finished} == {TrialState.COMPLETE}


def test_what_is_told_of_a_metric_that_nothing_needs_must_still_make_sense() -> None:
    build = Build().dimension("x", [1, 2]).measured("time", "ms").measured("power", "W").minimize("time")
    trials = run_of(build.problem(), Listed([]))
    trial = trials.next()
    assert trial is not None
    with pytest.raises(Exception, match="trial 0: power is in W"):
        trials.tell(trial.number, {"time": 1, "power": "8 MB"}, "")
    assert trials.tell(trial.number, {"time": 1}, "").metrics["power"] is None
