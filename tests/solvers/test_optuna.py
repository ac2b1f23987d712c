"""Optuna's samplers: the camera's front, no repeats, conditional and continuous dimensions, options, silence."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest

from dse.errors import InputError
from dse.problem import Interval, Problem
from dse.study.registry import load_solver
from dse.study.study import Study, search
from dse.study.trial import Trial, TrialState
from tests.study.problems import Build, camera, legal_verdicts, tiny

ROOT = Path(__file__).resolve().parents[2]
FRONT = {(0.919, 0.008), (0.909, 0.00575)}
SAMPLERS = ["tpe", "nsga2", "random"]


def trials_until(
    problem: Problem, found: Callable[[tuple[Trial, ...]], bool], most: int, **settings: Any
) -> tuple[Trial, ...]:
    """The trials of a study that is run on until ``found``, or for ``most`` trials."""
    study = Study(problem, solver="optuna", **settings)
    for n in range(10, most + 1, 10):
        study.run(n_trials=n)
        if found(study.trials):
            break
    return study.trials


def test_tpe_finds_the_camera_front_within_150_trials_on_19_of_20_seeds() -> None:
    problem = camera()

    def found(trials: tuple[Trial, ...]) -> bool:
        return {t.objectives for t in trials if t.state is TrialState.COMPLETE} >= FRONT

    hits = 0
    for seed in range(20):
        trials = trials_until(problem, found, 150, seed=seed)
        assert len({t.index for t in trials}) == len(trials)
        hits += found(trials)
    assert hits >= 19


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_legal_design_is_tried_once_and_then_the_study_is_exhausted(sampler: str) -> None:
    problem = camera()
    study = Study(problem, solver="optuna", team="ml | systems", options={"sampler": sampler})
    result = study.run(n_trials=1000)
    legal = legal_verdicts(problem, "ml | systems")
    assert result.status == "exhausted"
    assert sorted(problem.digits_of(t.index or 0) for t in study.trials) == sorted(legal)
    assert result.funnel.exact
    assert result.accounting.unvisited == 0


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_space_of_four_designs_ends_at_four(sampler: str) -> None:
    result = search(tiny(), solver="optuna", n_trials=1000, options={"sampler": sampler})
    assert (result.status, result.n_trials, result.best_point.objectives) == ("exhausted", 4, {"cost": 1.0})


def test_better_than_random_on_one_objective_over_many_numbers() -> None:
    build = Build()
    for name in "abcd":
        build.dimension(name, [float(v) for v in range(64)])
    build.metric(
        "cost", " + ".join(f"({n} - {c}) ** 2" for n, c in zip("abcd", (50, 10, 33, 60), strict=True))
    )
    problem = build.minimize("cost").problem()

    def best(sampler: str, seed: int) -> float:
        study = Study(problem, solver="optuna", seed=seed, options={"sampler": sampler})
        return study.run(n_trials=120).best_point.objectives["cost"]

    tpe, random = (sorted(best(sampler, seed) for seed in range(5)) for sampler in ("tpe", "random"))
    assert tpe[2] < random[2] / 2


def conditional() -> Problem:
    build = Build().dimension("kind", ["flat", "tree"])
    build.dimension("depth", [1, 2, 4, 8, 16], when="kind == 'tree'")
    build.dimension("leaves", [float(v) for v in range(2, 30)], when="kind == 'tree' and depth > 1")
    build.dimension("width", [8, 16, 32, 64], otherwise=2)
    build.metric("cost", "abs(leaves - 17) + abs(depth - 8) + 64 / width").minimize("cost")
    return build.problem("conditional")


@pytest.mark.parametrize(
    "options", [{}, {"multivariate": False}, {"sampler": "nsga2"}, {"sampler": "random"}]
)
def test_only_active_dimensions_are_suggested(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = conditional()
    suggested: list[dict[str, Any]] = []
    original = optuna.trial.create_trial

    def spy(**given: Any) -> Any:
        suggested.append(given["params"])
        return original(**given)

    monkeypatch.setattr(optuna.trial, "create_trial", spy)
    study = Study(problem, solver="optuna", options=options)
    result = study.run(n_trials=60)
    legal = legal_verdicts(problem)
    assert all(problem.digits_of(t.index or 0) in legal for t in study.trials)
    assert len({t.index for t in study.trials}) == 60
    told = options.get("sampler") != "random"  # which is not told the history
    assert {len(params) for params in suggested} == ({2, 3, 4} if told else set())
    assert result.best_point.objectives["cost"] <= 6


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_continuous_dimensions(sampler: str) -> None:
    build = Build().dimension("rate", Interval(1e-5, 1.0, log=True)).dimension("share", Interval(0.0, 1.0))
    build.dimension("depth", [1, 2, 3]).rule("deep", "depth > 1 or share < 0.5")
    build.metric("loss", "abs(log(rate) + 5) + (share - 0.3) ** 2 + depth").minimize("loss")
    build.constrain("loss", "loss <= 4")
    study = Study(build.problem(), solver="optuna", options={"sampler": sampler})
    result = study.run(n_trials=60)
    assert result.n_trials == 60
    assert all(t.index is None for t in study.trials)
    assert len({tuple(t.design.values()) for t in study.trials}) == 60
    assert all(1e-5 <= float(t.design["rate"]) <= 1.0 for t in study.trials)
    assert result.best_point.objectives["loss"] < 2.5
    assert result.accounting.total == result.accounting.evaluated == 60


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_infinite_and_failed_designs_do_no_harm(sampler: str) -> None:
    build = Build().dimension("a", [float(v) for v in range(-5, 6)]).dimension("b", [0, 1, 2, 3])
    build.metric("one", "1 / a").metric("two", "where(b > 2.5, 0 / (b - 3), a * b)")
    problem = build.minimize("one").maximize("two").problem()
    study = Study(problem, solver="optuna", options={"sampler": sampler})
    study.run(n_trials=44)
    states = {t.state for t in study.trials}
    assert states == {TrialState.COMPLETE, TrialState.INFEASIBLE, TrialState.FAILED}
    assert any(math.isinf(v) for t in study.trials for v in t.objectives)


def test_a_team_sees_only_its_values() -> None:
    problem = camera()
    study = Study(problem, solver="optuna", team="ml", seed=3)
    study.run(n_trials=30)
    assert {t.design["engine"] for t in study.trials} == {"naive"}
    assert {t.design["hardware"] for t in study.trials} == {"cpu"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampler": "nsga3"}, r"sampler cannot be 'nsga3'; did you mean 'nsga2'\?"),
        ({"n_startup_trials": "many"}, "n_startup_trials is a whole number, but got 'many'"),
        ({"n_startup_trials": 2.5}, "n_startup_trials is a whole number, but got 2.5"),
        ({"n_ei_candidates": 0}, "n_ei_candidates must be at least 1, but got 0"),
        ({"multivariate": "perhaps"}, "multivariate is true or false, but got 'perhaps'"),
        ({"population_size": 1}, "population_size must be at least 2, but got 1"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    study = Study(tiny(), solver="optuna", options=options)
    with pytest.raises(InputError, match=message):
        study.run(n_trials=1)
    assert study.trials == ()


def test_an_unknown_option_is_refused_at_once() -> None:
    with pytest.raises(InputError, match=r"no option 'smapler'; did you mean 'sampler'\?"):
        Study(tiny(), solver="optuna", options={"smapler": "tpe"})


def test_options_are_read_from_text_too() -> None:
    texts = {"sampler": "TPE", "n_startup_trials": "3", "multivariate": "false"}
    values = {"sampler": "tpe", "n_startup_trials": 3, "multivariate": False}
    found = [
        search(camera(), solver="optuna", n_trials=20, options=options).to_dict()
        for options in (texts, values)
    ]
    assert found[0] == found[1]


def test_the_same_trials_in_another_process_and_nothing_is_printed(tmp_path: Path) -> None:
    program = (
        "from dse.study.study import Study\nfrom tests.study.problems import camera\n"
        "study = Study(camera(), solver='optuna', seed=4)\nstudy.run(n_trials=30)\n"
        "print([t.index for t in study.trials])"
    )
    outputs = []
    for hash_seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            cwd=ROOT,
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stderr == ""
        outputs.append(run.stdout)
    study = Study(camera(), solver="optuna", seed=4)
    study.run(n_trials=30)
    assert outputs == [f"{[t.index for t in study.trials]}\n"] * 2


def test_optuna_verbosity_is_left_as_it_was() -> None:
    before = optuna.logging.get_verbosity()
    search(tiny(), solver="optuna", n_trials=4)
    assert optuna.logging.get_verbosity() == before


def test_it_is_found_by_its_entry_point() -> None:
    solver = load_solver("optuna")
    assert (solver.promise, solver.needs) == ("sampling", frozenset({"trials"}))
