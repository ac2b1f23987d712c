"""Studies: ask and tell, run and resume, folders, refusals, and what users of Optuna and Vizier expect."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dse.errors import DseError, InputError, Interrupted, SolverRefused, StudyError
from dse.problem import Box, Interval, Problem, Team
from dse.problem.library import load
from dse.study.manifest import Manifest
from dse.study.progress import Progress
from dse.study.result import NoFeasibleDesign
from dse.study.running import TRIALS
from dse.study.storage import Storage
from dse.study.study import Study, search
from dse.study.trial import TrialState
from dse.study.verify import verify
from tests.study.problems import Build, camera, tiny

ROOT = Path(__file__).resolve().parents[2]
EXACT = ["exhaustive", "pareto"]


def outputs(folder: Path) -> dict[str, object]:
    """The canonical outputs of a study."""
    found: dict[str, object] = {path.name: path.read_bytes() for path in folder.glob("*.csv")}
    result = json.loads((folder / "result.json").read_text())
    result.pop("run")
    return found | {"result.json": json.dumps(result)}


def measured() -> Problem:
    build = Build().dimension("tile", [8, 16, 32]).dimension("fused", [False, True])
    build.measured("time", "ms").measured("error", "percent").metric("cost", "time * tile", "s")
    return build.minimize("time").constrain("error", "error <= 5 percent").problem("kernel")


# -- searching -------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [*EXACT, "auto"])
def test_exact_solvers_find_the_front(solver: str) -> None:
    result = search(camera(), solver=solver)
    assert [(p.index, p.ties) for p in result.front] == [(319, 1), (327, 1)]
    assert (result.status, result.promise) == ("complete", "exact")
    assert result.note == (
        "auto chose exhaustive: 480 designs can all be evaluated" if solver == "auto" else ""
    )


def test_auto_follows_the_budget_and_the_promise() -> None:
    assert search(camera(), n_trials=20).solver == "optuna"
    assert search(camera(), n_trials=20, team="ml & systems").solver == "exhaustive"
    assert search(camera(), promise="sampling").solver == "optuna"
    assert search(camera(), n_trials=None, promise="exact").promise == "exact"


def test_a_study_takes_what_load_takes() -> None:
    assert search("camera").front[0].objectives == {"accuracy": 0.919, "latency": 0.008}


def test_progress_is_reported_and_ends_at_one() -> None:
    cases: list[tuple[dict[str, Any], str, int]] = [
        ({"solver": "exhaustive"}, "designs", 480),
        ({"solver": "optuna", "n_trials": 25}, "trials", 25),
    ]
    for settings, unit, total in cases:
        seen: list[Progress] = []
        search(camera(), progress=seen.append, **settings)
        assert [p.share for p in seen] == sorted(p.share for p in seen)
        assert (seen[-1].share, seen[-1].done, seen[-1].total, seen[-1].unit) == (1.0, total, total, unit)
    seen = []
    result = search(camera(), solver="exhaustive", progress=seen.append)
    assert (
        seen[-1].evaluated == result.accounting.evaluated < 480
    )  # those that break a rule are done at no speed


def test_n_trials_counts_all_trials_of_the_study() -> None:
    study = Study(camera(), solver="optuna")
    assert study.run(n_trials=7).n_trials == 7
    assert study.run(n_trials=5).n_trials == 7
    assert study.run().n_trials == 7
    assert study.run(n_trials=12).n_trials == 12
    assert [t.number for t in study.trials] == list(range(12))


def test_a_sampling_search_without_a_budget_has_a_default() -> None:
    assert search(camera(), solver="optuna", options={"sampler": "random"}).n_trials == TRIALS


def test_a_timeout_stops_a_sampling_and_an_exact_search() -> None:
    began = time.monotonic()
    result = search(camera(), solver="optuna", timeout=0.3, options={"sampler": "random"})
    assert 0 < result.n_trials < 312
    assert time.monotonic() - began < 5
    build = Build()
    for name in "abcdefg":
        build.dimension(name, [float(v) for v in range(10)])
    problem = build.metric("cost", "a + b * c - d * e + f * g").minimize("cost").problem()
    result = search(problem, solver="exhaustive", timeout=0.0)
    assert result.status == "stopped"
    assert result.accounting.unvisited > 0


def test_a_result_that_is_not_feasible_has_reasons() -> None:
    problem = camera()
    sampled = search(problem, team="systems", solver="optuna", n_trials=50)
    exact = search(problem, team="systems", solver="exhaustive")
    assert sampled.status == "exhausted"
    assert sampled.nearest_miss == exact.nearest_miss
    assert sampled.relaxations == exact.relaxations
    assert sampled.accounting == exact.accounting
    assert sampled.funnel == exact.funnel


def test_an_exhausted_sampling_search_equals_an_exact_one() -> None:
    sampled = search(camera(), solver="optuna", n_trials=500, top=3, objective="latency").to_dict()
    exact = search(camera(), solver="exhaustive", top=3, objective="latency").to_dict()
    for key in exact.keys() - {"promise", "solver", "status", "note"}:
        assert sampled[key] == exact[key], key
    assert [p["index"] for p in sampled["best"]] == [p["index"] for p in exact["best"]]


# -- what users of other tools expect --------------------------------------------------------------


@pytest.mark.parametrize("solver", ["optuna", "exhaustive"])
def test_the_best_trial_of_one_objective(solver: str) -> None:
    study = Study(tiny(), solver=solver)
    study.run(n_trials=10 if solver == "optuna" else None)
    best = study.best_trial
    assert best.design == {"a": 1.0, "b": False}
    assert best.objectives == (1.0,)
    assert best.state is TrialState.COMPLETE
    assert [p.index for p in study.pareto_front] == [0]


def test_several_objectives_have_no_best_trial() -> None:
    study = Study(camera())
    study.run()
    with pytest.raises(DseError, match="has accuracy, latency; use pareto_front"):
        _ = study.best_trial


def test_no_feasible_design_carries_the_nearest_miss() -> None:
    build = (
        Build().dimension("a", [1, 2]).metric("cost", "a").minimize("cost").constrain("cost", "cost <= 0.5")
    )
    study = Study(build.problem(), solver="optuna")
    study.run(n_trials=2)
    with pytest.raises(NoFeasibleDesign) as caught:
        _ = study.best_trial
    assert caught.value.nearest_miss is not None
    assert caught.value.nearest_miss.violations == {"cost": 0.5}


def test_frames() -> None:
    study = Study(camera(), solver="optuna")
    study.run(n_trials=12)
    frame = study.to_frame()
    assert len(frame) == 12
    assert list(frame.columns[:4]) == ["number", "batch", "state", "index"]
    assert "latency [ms]" in frame.columns
    study = Study(camera(), solver="exhaustive", keep=100)
    study.run()
    assert len(study.to_frame()) == 100
    assert set(study.to_frame()["state"]) <= {"COMPLETE", "INFEASIBLE", "FAILED"}


# -- ask and tell ----------------------------------------------------------------------------------


def test_ask_and_tell_until_every_design_was_tried() -> None:
    study = Study(measured(), batch=2)
    asked = []
    while (trial := study.ask()) is not None:
        assert trial.state is TrialState.RUNNING
        asked.append(trial.index)
        tile = float(trial.design["tile"])
        done = study.tell(trial, {"time": f"{tile} us", "error": 8 if trial.design["fused"] else 5})
        assert done.state is (TrialState.INFEASIBLE if trial.design["fused"] else TrialState.COMPLETE)
    assert sorted(i for i in asked if i is not None) == list(range(6))
    assert study.best_trial.objectives == (8e-6,)
    assert study.best_trial.metrics == {"time": 8e-6, "error": 0.05, "cost": 6.4e-5}
    assert study.result.status == "exhausted"
    assert study.result.note == "auto chose optuna: its cost is measured one design at a time, not computed"


def test_trials_may_be_asked_for_ahead_and_told_in_any_order() -> None:
    study = Study(camera(), solver="optuna", batch=3)
    asked = [study.ask() for _ in range(8)]
    numbers = [t.number for t in asked if t is not None]
    assert numbers == list(range(8))
    assert len({t.index for t in asked if t is not None}) == 8
    assert [t.state for t in study.trials] == [TrialState.RUNNING] * 8
    for number in reversed(numbers):
        study.tell(number)
    assert study.result.n_trials == 8


def test_a_failed_trial_is_told_as_such() -> None:
    study = Study(measured())
    trial = study.ask()
    assert trial is not None
    done = study.tell(trial, failed="the board caught fire")
    assert (done.state, done.reason) == (TrialState.FAILED, "the board caught fire")
    assert study.result.failures[0][0] == "the board caught fire"


def test_what_cannot_be_told_is_refused() -> None:
    study = Study(measured())
    with pytest.raises(InputError, match="trial 0 is not running"):
        study.tell(0, {"time": 1, "error": 1})
    trial = study.ask()
    assert trial is not None
    for metrics, message in [
        ({"time": 1}, "trial 0: the measurement returned no error"),
        (None, "trial 0: the measurement returned no time"),
        ({"time": 1, "error": 1, "tmie": 2}, "'tmie' is no measured metric; did you mean 'time'"),
        ({"time": 1, "error": 1, "cost": 2}, "'cost' is no measured metric"),
        ({"time": "1 MB", "error": 1}, "time is in ms"),
    ]:
        with pytest.raises(InputError, match=message):
            study.tell(trial, metrics)
    study.tell(trial, {"time": 1, "error": 1})
    with pytest.raises(InputError, match="trial 0 is not running"):
        study.tell(trial, {"time": 1, "error": 1})


def test_ask_chooses_a_solver_that_hands_out_trials_and_an_exact_one_refuses() -> None:
    study = Study(camera())
    assert study.ask() is not None
    assert study.result.note == (
        "auto chose optuna: ask and tell need a sampling solver, so whatever is run later is a sample and proves nothing"
    )
    with pytest.raises(SolverRefused, match="solver exhaustive hands out no trials; optuna can"):
        Study(camera(), solver="exhaustive").ask()


def test_ask_then_run_completes_the_rest(tmp_path: Path) -> None:
    whole = Study(camera(), solver="optuna", folder=tmp_path / "whole")
    whole.run(n_trials=20)
    with Study(camera(), solver="optuna", folder=tmp_path / "asked") as study:
        for _ in range(5):
            trial = study.ask()
            assert trial is not None
            study.tell(trial)
        lost = study.ask()
        assert lost is not None
        with pytest.raises(StudyError, match="is in use"):
            Study(camera(), solver="optuna", folder=tmp_path / "asked").run(n_trials=20)
    Study(camera(), solver="optuna", folder=tmp_path / "asked").run(n_trials=20)
    assert outputs(tmp_path / "asked") == outputs(tmp_path / "whole")


# -- folders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [{"solver": "optuna"}, {"solver": "exhaustive", "keep": 50}, {"solver": "pareto"}, {}]
)
def test_the_same_study_gives_the_same_bytes(tmp_path: Path, settings: dict[str, Any]) -> None:
    for name in ("one", "two"):
        Study(camera(), folder=tmp_path / name, seed=5, **settings).run()
    assert outputs(tmp_path / "one") == outputs(tmp_path / "two")
    table = "trials.csv" if settings.get("solver") == "optuna" else "designs.csv"
    assert set(outputs(tmp_path / "one")) == {"front.csv", "result.json", table}


def test_a_study_goes_on_where_it_was_and_ends_the_same(tmp_path: Path) -> None:
    Study("camera", solver="optuna", folder=tmp_path / "whole").run(n_trials=45)
    Study("camera", solver="optuna", folder=tmp_path / "parts").run(n_trials=13)
    assert Study.open(tmp_path / "parts").result.n_trials == 13
    assert Study.open(tmp_path / "parts").run(n_trials=45).n_trials == 45
    assert outputs(tmp_path / "parts") == outputs(tmp_path / "whole")
    assert Study.open(tmp_path / "parts").run().n_trials == 45
    assert outputs(tmp_path / "parts") == outputs(tmp_path / "whole")


def test_open_reads_without_running(tmp_path: Path) -> None:
    every: list[dict[str, Any]] = [{"solver": "optuna"}, {"solver": "exhaustive"}, {"team": "ml | systems"}]
    for settings in every:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        result = Study("camera", folder=folder, top=2, objective="latency", **settings).run()
        before = outputs(folder)
        opened = Study.open(folder)
        assert opened.result.to_dict() == result.to_dict()
        assert opened.result.kept is not None
        assert outputs(folder) == before


def test_settings_and_inputs_come_back(tmp_path: Path) -> None:
    problem = load("camera", {"max_latency": "60 ms", "tables.formats.int8-PTQ.loss": "1 percent"})
    problem = problem.with_inputs({"min_accuracy": "85 percent"})
    result = Study(problem, team="ml", folder=tmp_path, seed=9).run()
    opened = Study.open(tmp_path)
    assert opened.problem.digest == problem.digest
    assert opened.result.to_dict() == result.to_dict()
    assert opened.team.name == "ml"


def test_a_moved_folder_is_the_same_study(tmp_path: Path) -> None:
    Study("camera", folder=tmp_path / "here").run()
    (tmp_path / "here").rename(tmp_path / "there")
    assert Study.open(tmp_path / "there").run().feasible


def test_a_changed_space_is_refused(tmp_path: Path) -> None:
    space = tmp_path / "space.yaml"
    text = "dse: 1\nname: t\ndimensions: {a: [1, 2, 3]}\nmetrics: {cost: {expr: a * 2, unit: 1}}\nobjectives: {cost: minimize}\n"
    space.write_text(text)
    Study(space, folder=tmp_path / "run").run()
    assert Study.open(tmp_path / "run").result.feasible
    space.write_text(text.replace("a * 2", "a * 3"))
    with pytest.raises(StudyError, match=r"space\.yaml is no longer what .*run was made of"):
        Study.open(tmp_path / "run")
    with pytest.raises(StudyError, match="holds another study: the space t has changed since"):
        Study(space, folder=tmp_path / "run")
    space.write_text("dse: 1")
    with pytest.raises(StudyError, match="cannot be loaded again: "):
        Study.open(tmp_path / "run")


def test_another_study_in_the_folder_is_refused(tmp_path: Path) -> None:
    Study(camera(), folder=tmp_path, solver="optuna").run(n_trials=3)
    others: list[tuple[dict[str, Any], str]] = [
        ({"solver": "exhaustive"}, "solver is optuna there, but exhaustive was asked for"),
        ({"solver": "optuna", "seed": 1}, "seed is 0 there, but 1 was asked for"),
        ({"solver": "optuna", "team": "ml"}, "team is all there, but ml was asked for"),
        ({"solver": "optuna", "options": {"sampler": "nsga2"}}, "options is none there, but sampler=nsga2"),
    ]
    for settings, message in others:
        with pytest.raises(StudyError, match=message):
            Study(camera(), folder=tmp_path, **settings)
    with pytest.raises(StudyError, match=r"input max_latency is 0.01 there, but 0.02 was asked for"):
        Study(camera().with_inputs({"max_latency": "20 ms"}), folder=tmp_path, solver="optuna")
    with pytest.raises(StudyError, match="the problem is camera there, but tiny was asked for"):
        Study(tiny(), folder=tmp_path, solver="optuna")


def test_a_folder_that_is_no_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"holds no study: there is no manifest\.json"):
        Study.open(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StudyError, match="is a file, but a study is kept in a folder"):
        Study(tiny(), folder=tmp_path / "file")
    (tmp_path / "study.sqlite").touch()
    with pytest.raises(StudyError, match=r"has a study\.sqlite but no manifest\.json"):
        Study(tiny(), folder=tmp_path)


def test_nothing_was_run_yet(tmp_path: Path) -> None:
    for solver in ("auto", "exhaustive"):
        with pytest.raises(StudyError, match="was not run yet"):
            _ = Study(camera(), solver=solver).result
    assert Study(camera(), solver="optuna", folder=tmp_path / "new").result.n_trials == 0
    assert not (tmp_path / "new").exists()


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    Study(camera(), folder=tmp_path, solver="optuna").run(n_trials=3)
    for path in tmp_path.glob("study.sqlite*"):
        path.unlink()
    (tmp_path / "study.sqlite").write_bytes(b"garbage" * 1000)
    with pytest.raises(StudyError, match=r"study\.sqlite: the trial log cannot be used"):
        Study(camera(), folder=tmp_path, solver="optuna")


def test_a_second_process_is_refused_politely(tmp_path: Path) -> None:
    with Study(camera(), folder=tmp_path, solver="optuna") as study:
        assert study.ask() is not None
        program = (
            "import sys\nfrom dse.errors import DseError\nfrom dse.study.study import Study\n"
            "from tests.study.problems import camera\n"
            "try:\n    Study(camera(), folder=sys.argv[1], solver='optuna').run(n_trials=3)\n"
            "except DseError as error:\n    print(type(error).__name__, error)"
        )
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        run = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    assert run.stdout.startswith(f"StudyError {tmp_path} is in use")


# -- refusals --------------------------------------------------------------------------------------


def test_a_solver_that_cannot_do_the_problem_names_those_that_can() -> None:
    build = Build().dimension("a", Interval(0.0, 1.0)).metric("cost", "a").minimize("cost")
    problem = build.problem()
    with pytest.raises(
        SolverRefused, match=r"solver exhaustive cannot do this: dimension 'a' is continuous.*; optuna can$"
    ):
        Study(problem, solver="exhaustive")
    with pytest.raises(SolverRefused, match=r"no installed solver can$"):
        Study(problem, solver="pareto", promise="exact")
    with pytest.raises(SolverRefused, match=r"no installed solver can$"):
        search(problem, promise="exact")


def test_an_exact_promise_is_not_made_by_sampling() -> None:
    with pytest.raises(
        SolverRefused, match=r"solver optuna samples, .* exact front; exhaustive, pareto can$"
    ):
        Study(camera(), solver="optuna", promise="exact")
    with pytest.raises(SolverRefused, match=r"cannot list all ties; exhaustive, pareto can$"):
        Study(camera(), solver="optuna", ties=True)
    assert search(camera(), ties=True, n_trials=None).front[0].tied == (319,)


def test_a_budget_of_trials_is_for_solvers_that_sample() -> None:
    with pytest.raises(
        SolverRefused, match="all of 480 designs, so n_trials cannot limit it to 5; optuna can; timeout can"
    ):
        search(camera(), solver="exhaustive", n_trials=5)


def test_a_refused_search_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    refused: list[tuple[Problem, dict[str, Any], dict[str, Any]]] = [
        (camera(), {"solver": "exhaustive"}, {"n_trials": 5}),
        (camera(), {"solver": "optuna", "options": {"sampler": "nsga3"}}, {"n_trials": 5}),
        (measured(), {}, {"n_trials": 5}),
    ]
    for problem, settings, budget in refused:
        with pytest.raises(DseError):
            Study(problem, folder=folder, **settings).run(**budget)
        assert not folder.exists()
    folder.mkdir()
    with pytest.raises(SolverRefused):
        Study(camera(), folder=folder, solver="exhaustive").ask()
    with pytest.raises(SolverRefused):
        Study(camera(), folder=folder, solver="exhaustive").run(n_trials=5)
    assert not list(folder.iterdir())
    assert Study(camera(), folder=folder, solver="optuna").run(n_trials=5).n_trials == 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, "workers must be at least 1, but got 0"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"keep": -1}, "keep must be at least 0"),
        ({"top": -1}, "top must be at least 0"),
        ({"objective": "latncy"}, "unknown objective 'latncy'; did you mean 'latency'"),
        ({"team": "sytems"}, "unknown team 'sytems'; did you mean 'systems'"),
        ({"solver": "optnua"}, "unknown solver 'optnua'; did you mean 'optuna'"),
        ({"solver": "pareto", "options": {"x": 1}}, "solver pareto has no option 'x'; known: epsilon"),
        ({"n_trials": -1}, "n_trials must be at least 0"),
        ({"timeout": -1.0}, "timeout must be at least 0"),
        ({"timeout": float("nan")}, "timeout must be at least 0"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        search(camera(), **settings)


def test_a_measured_problem_that_nothing_measures(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing measures time, error"):
        search(measured(), folder=tmp_path / "run")


# -- interruption ----------------------------------------------------------------------------------


def test_an_interrupted_sampling_search_keeps_its_state(tmp_path: Path) -> None:
    Study("camera", folder=tmp_path / "whole", solver="optuna").run(n_trials=40)

    def interrupt(progress: Progress) -> None:
        if progress.done == 20:
            os.kill(os.getpid(), signal.SIGINT)

    study = Study("camera", folder=tmp_path / "cut", solver="optuna")
    with pytest.raises(Interrupted, match="interrupted after 20 trials; go on with dse resume"):
        study.run(n_trials=40, progress=interrupt)
    assert json.loads((tmp_path / "cut" / "result.json").read_text())["n_trials"] == 20
    Study.open(tmp_path / "cut").run()
    assert outputs(tmp_path / "cut") == outputs(tmp_path / "whole")


@pytest.mark.parametrize("solver", EXACT)
def test_an_interrupted_exact_search_keeps_its_state(tmp_path: Path, solver: str) -> None:
    build = Build()
    for name in "abcdefg":
        build.dimension(name, [float(v) for v in range(8)])
    build.metric("cost", "a + b * c - d * e + f * g").metric("other", "b * d - a").minimize("cost").minimize(
        "other"
    )
    problem = build.constrain("cost", "cost >= -30").problem()
    Study(problem, folder=tmp_path / "whole", solver=solver, keep=100).run()

    def interrupt(progress: Progress) -> None:
        if 0 < progress.share < 1:
            os.kill(os.getpid(), signal.SIGINT)

    study = Study(problem, folder=tmp_path / "cut", solver=solver, keep=100)
    with pytest.raises(Interrupted, match=r"interrupted at .*% of the space; go on with dse resume"):
        study.run(progress=interrupt)
    assert study.result.status == "stopped"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    study = Study(problem, folder=tmp_path / "cut", solver=solver, keep=100)
    assert study.run().status == "complete"
    assert outputs(tmp_path / "cut") == outputs(tmp_path / "whole")


def test_an_interrupted_measurement_is_killed_and_run_again(tmp_path: Path) -> None:
    (tmp_path / "cost.py").write_text(
        "import os, signal, time\nfrom pathlib import Path\nmark = Path(__file__).with_name('mark')\n"
        "def measure(design):\n"
        "    if design['a'] == 3 and not mark.exists():\n"
        "        mark.touch()\n        os.kill(os.getppid(), signal.SIGINT)\n        time.sleep(5)\n"
        "    return {'time': design['a']}\n"
    )
    (tmp_path / "space.yaml").write_text(
        "dse: 1\nname: t\ndimensions: {a: [1, 2, 3, 4]}\nmeasure: ./cost.py:measure\n"
        "metrics: {time: {unit: ms, measured: true}}\nobjectives: {time: minimize}\n"
    )
    began = time.monotonic()
    study = Study(tmp_path / "space.yaml", folder=tmp_path / "run")
    with pytest.raises(Interrupted):
        study.run(n_trials=4)
    assert time.monotonic() - began < 4
    result = Study.open(tmp_path / "run").run()
    assert (result.n_trials, result.best_point.objectives) == (4, {"time": 0.001})


def test_workers_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "cost.py").write_text(
        "import time\ndef measure(design):\n    time.sleep(0.002 * (design['a'] % 3))\n"
        "    return {'time': abs(design['a'] - 20) + design['b']}\n"
    )
    (tmp_path / "space.yaml").write_text(
        "dse: 1\nname: t\ndimensions: {a: {range: [1, 40]}, b: [0, 1, 2]}\nmeasure: ./cost.py:measure\n"
        "metrics: {time: {unit: ms, measured: true}}\nobjectives: {time: minimize}\n"
    )
    for workers in (1, 2):
        Study(tmp_path / "space.yaml", folder=tmp_path / str(workers), workers=workers, batch=5).run(
            n_trials=32
        )
    assert outputs(tmp_path / "1") == outputs(tmp_path / "2")


# -- teams -----------------------------------------------------------------------------------------


def test_a_team_made_in_a_program_is_reopened_as_it_was(tmp_path: Path) -> None:
    problem = load("camera")
    declared = problem.team("systems")
    fours = Box((None, (1, 3), None, None, None, None), declared.boxes[0].where)
    for name in ("mine", "ml", "all"):  # unknown, another's, everything's
        team = Team(name, (fours, declared.boxes[0]))
        for solver in ("exhaustive", "optuna"):
            folder = tmp_path / f"{name}-{solver}"
            result = Study("camera", team=team, solver=solver, folder=folder).run()
            opened = Study.open(folder)
            assert opened.team.boxes == team.boxes
            assert opened.result.to_dict() == result.to_dict()
            verify(folder)
    with pytest.raises(StudyError, match="team ml may choose other designs there"):
        Study("camera", team="ml", solver="optuna", folder=tmp_path / "ml-optuna")
    with pytest.raises(StudyError, match="team all may choose other designs there"):
        Study("camera", solver="optuna", folder=tmp_path / "all-optuna")


@pytest.mark.parametrize(
    "change",
    [
        lambda box: box["allowed"].pop(),
        lambda box: box["allowed"].__setitem__(0, [99]),
        lambda box: box["where"][0].update(node=0),
        lambda box: box["where"][0].update(node=10**6),
        lambda box: box.pop("where"),
    ],
)
def test_boxes_that_do_not_fit_the_space_are_named(tmp_path: Path, change: Any) -> None:
    Study("camera", team="systems", folder=tmp_path).run()
    path = tmp_path / "manifest.json"
    data = json.loads(path.read_text())
    change(data["boxes"][0])
    path.write_text(json.dumps(data))
    with pytest.raises(
        StudyError, match=r"manifest\.json: .* the boxes of team systems do not fit the space"
    ):
        Manifest.read(tmp_path).team_of(load("camera"), tmp_path)
    with pytest.raises(StudyError, match=r"manifest\.json was changed .*: boxes is not what it was"):
        Study.open(tmp_path)


def test_a_team_with_nothing_to_choose_ends_before_any_solver_runs() -> None:
    build = Build().dimension("rate", Interval(0.0, 1.0)).dimension("kind", ["x", "y"])
    build.metric("cost", "rate").minimize("cost").team("left", kind="x").team("right", kind="y")
    empty = Team("empty", (Box((None, ())),))
    for team in ("left & right", empty):
        result = search(build.problem(), team=team, n_trials=5)
        assert (result.status, result.n_trials, result.feasible) == ("exhausted", 0, False)
    large = Build()
    for name in "abcdefgh":
        large.dimension(name, [float(v) for v in range(16)])
    large.metric("cost", "a").minimize("cost").team("left", a=1.0).team("right", a=2.0)
    result = search(large.problem(), team="left & right", solver="optuna", n_trials=5)
    assert (result.status, result.accounting.outside) == ("exhausted", 16**8)


# -- what is not asked for -------------------------------------------------------------------------


def test_a_refused_search_never_takes_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(*_: object) -> None:
        raise AssertionError("the folder was taken before the search was refused")

    monkeypatch.setattr(Manifest, "write", taken)
    monkeypatch.setattr(Storage, "acquire", taken)
    with pytest.raises(SolverRefused, match="n_trials cannot limit it"):
        Study(camera(), folder=tmp_path, solver="exhaustive").run(n_trials=5)
    with pytest.raises(SolverRefused, match="hands out no trials"):
        Study(camera(), folder=tmp_path, solver="exhaustive").ask()
    with pytest.raises(InputError, match="nothing measures time, error"):
        Study(measured(), folder=tmp_path).run(n_trials=5)


def test_code_that_may_not_run_does_not(tmp_path: Path) -> None:
    (tmp_path / "cost.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
        "def cost(a): return {'cost': a * 2}\ndef measure(design): return {'time': design['a']}\n"
    )
    (tmp_path / "cost.yaml").write_text(
        "dse: 1\nname: t\ndimensions: {a: [1, 2]}\ncost: ./cost.py:cost\n"
        "metrics: {cost: {unit: 1}}\nobjectives: {cost: minimize}\n"
    )
    (tmp_path / "measure.yaml").write_text(
        "dse: 1\nname: t\ndimensions: {a: [1, 2]}\nmeasure: ./cost.py:measure\n"
        "metrics: {time: {unit: ms, measured: true}}\nobjectives: {time: minimize}\n"
    )
    for name in ("cost", "measure"):
        Study(tmp_path / f"{name}.yaml", folder=tmp_path / name).run()
        verify(tmp_path / name)
    (tmp_path / "ran").unlink()
    sys.modules = {k: m for k, m in sys.modules.items() if "_dse_code_" not in k}
    with pytest.raises(
        InputError, match=r"cost\.yaml needs code \(.*cost\.py:cost\), which may not be imported"
    ):
        Study.open(tmp_path / "cost", code=False)
    with pytest.raises(InputError, match="may not be imported"):
        verify(tmp_path / "cost", code=False)
    assert Study.open(tmp_path / "measure", code=False).result.n_trials == 2
    verify(tmp_path / "measure", code=False)
    with pytest.raises(SolverRefused, match=r"run code \(measure .*cost\.py:measure\), which was refused"):
        Study.open(tmp_path / "measure", code=False).run(n_trials=4)
    assert not (tmp_path / "ran").exists()


def test_search_takes_what_a_study_takes() -> None:
    own = inspect.signature(search).parameters
    run = inspect.signature(Study.run).parameters
    expected = {**inspect.signature(Study.__init__).parameters, **run}
    assert {n: (p.default, p.annotation) for n, p in own.items()} == {
        n: (p.default, p.annotation) for n, p in expected.items() if n != "self"
    }
