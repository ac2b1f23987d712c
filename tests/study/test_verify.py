"""Verification: a good result passes, and every kind of tampering is named."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dse.errors import StudyError, VerificationFailed
from dse.problem import Interval
from dse.study import study as module
from dse.study.study import Study, search
from dse.study.tally import Tally
from dse.study.verify import verify
from tests.study.problems import Build, camera

SOLVERS = ["optuna", "exhaustive", "pareto"]


_RUNS: dict[tuple[str, str | None], Path] = {}


@pytest.fixture(scope="module", autouse=True)
def runs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One run of each kind, which the tests copy."""
    for solver in SOLVERS:
        for team in (None, "systems"):
            folder = tmp_path_factory.mktemp("run") / solver
            Study("camera", folder=folder, solver=solver, team=team, seed=1).run()
            _RUNS[solver, team] = folder


def ran(folder: Path, solver: str = "optuna", team: str | None = None) -> Path:
    return Path(shutil.copytree(_RUNS[solver, team], folder / "run"))


def change_result(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "result.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def change_log(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "study.sqlite")) as database, database:
        assert database.execute(statement).rowcount > 0


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("team", [None, "systems"])
def test_a_good_result_passes(tmp_path: Path, solver: str, team: str | None) -> None:
    checks = verify(ran(tmp_path, solver, team=team)).checks
    front = 0 if team else 2
    assert f"{front} of {front} front points evaluated again" in checks
    assert "result.json is what the record gives" in checks
    assert any("evaluated again" in check and "front" not in check for check in checks)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["front"][0]["objectives"].update(latency=0.007), "front point 319: its objectives are"),
        (lambda r: r["front"][0]["metrics"].update(memory=1.0), "front point 319: memory is 38000000.0, but 1.0 is stored"),
        (lambda r: r["front"][0].update(index=320), "front point 320: its design has index 319"),
        (lambda r: r["front"][0]["design"].update(hardware="cpu"), "it is infeasible"),
        (lambda r: r["front"][0]["design"].update(format="fp32"), "it is illegal"),
        (lambda r: r["front"][0]["design"].update(format="fp3"), "the front is damaged: InputError: dimension 'format'"),
        (lambda r: r["front"][0].pop("ties"), "the front is damaged: KeyError: 'ties'"),
        (lambda r: r["front"].append(r["front"][0]), "two front points have the same objectives"),
        (lambda r: r["front"].pop(), "front is not what the record gives"),
        (lambda r: r["accounting"].update(illegal=1), r"the accounting sums to \d+, but its total is 480"),
        (lambda r: r["accounting"].update(total=481, outside=1), "total is 481, but the space has 480 designs"),
        (lambda r: r["accounting"].update(evaluated=-1), "the accounting is damaged"),
        (lambda r: r["accounting"]["illegal_by"].update(supported=1), "illegal_by sums to"),
        (lambda r: r.update(seed=2), "seed is 2, but the manifest says 1"),
        (lambda r: r.update(team="ml"), "team is 'ml', but the manifest says 'all'"),
        (lambda r: r["funnel"].update(feasible=100), "funnel is not what the record gives"),
        (lambda r: r.update(more=1), "more is not what the record gives"),
    ],
)  # fmt: skip
def test_a_changed_result_is_named(
    tmp_path: Path, solver: str, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    folder = ran(tmp_path, solver)
    change_result(folder, change)
    with pytest.raises(VerificationFailed, match=message):
        verify(folder)


def test_the_run_section_may_differ(tmp_path: Path) -> None:
    folder = ran(tmp_path)
    change_result(folder, lambda r: r.update(run={}))
    verify(folder)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE trials SET objectives = '[0.99, 0.001]' WHERE number = 7", "trial 7: objectives must be"),
        ("UPDATE trials SET state = 'FAILED' WHERE number = 7", "trial 7: state must be"),
        ("DELETE FROM trials WHERE number = 7", "n_trials is not what the record gives"),
        (
            "UPDATE trials SET design = (SELECT design FROM trials WHERE number = 1) WHERE number = 7",
            "was tried twice",
        ),
        (
            "UPDATE trials SET design = 'x' WHERE number = 7",
            "the record cannot be read: .*trial 7 is damaged",
        ),
    ],
)
def test_a_changed_log_is_named(tmp_path: Path, statement: str, message: str) -> None:
    folder = ran(tmp_path)
    change_log(folder, statement)
    with pytest.raises(VerificationFailed, match=message):
        verify(folder)


@pytest.mark.parametrize("table", ["front.csv", "trials.csv", "designs.csv"])
def test_a_changed_table_is_named(tmp_path: Path, table: str) -> None:
    folder = ran(tmp_path, "exhaustive" if table == "designs.csv" else "optuna")
    text = (folder / table).read_text()
    (folder / table).write_text(text.replace("Det-L", "Det-M", 1))
    with pytest.raises(VerificationFailed, match=f"{table} is not what"):
        verify(folder)
    (folder / table).unlink()
    with pytest.raises(VerificationFailed, match=f"{table} cannot be read: No such file"):
        verify(folder)


def test_an_exact_front_with_a_hole_is_seen_by_the_kept_designs(tmp_path: Path) -> None:
    folder = ran(tmp_path, "exhaustive")
    study = Study.open(folder)
    checkpoint = study._storage.checkpoint()
    assert checkpoint is not None
    tally, extra = Tally.unpack(study.problem, checkpoint)
    vectors, positions, ties = tally.archive.to_arrays()
    holed = type(tally.archive)(2)
    holed.add(vectors[1:], positions[1:])
    assert ties.tolist() == [1, 1]
    tally.archive = holed
    study._storage.acquire()
    study._storage.save_checkpoint(tally.pack(extra))
    study._storage.release()
    study._result = None
    study._claim.to_run(None)
    _ = study.result
    study._write()
    study.close()
    with pytest.raises(
        VerificationFailed, match="a design that all may choose belongs on the front and is not there"
    ) as caught:
        verify(folder)
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize("top", [2, 5, 60, 700])
def test_designs_that_tie_with_the_last_of_the_best_are_rightly_discarded(tmp_path: Path, top: int) -> None:
    build = Build()
    for name, size in {"a": 40, "unused": 2, "b": 40, "c": 5}.items():
        build.dimension(name, [float(v) for v in range(size)])
    build.metric("m", "where(a + b + c > 0, 1 + floor((a + b) / 20), 0)").metric("n", "a - b")
    problem = build.minimize("m").minimize("n").rule("first", "a + c > 0.5").problem()
    Study(problem, solver="pareto", top=top, folder=tmp_path, certificate="always").run()
    assert any(line.endswith(" boxes re-proved") for line in verify(tmp_path, problem=problem).checks)


def test_all_findings_are_listed_up_to_a_number(tmp_path: Path) -> None:
    folder = ran(tmp_path)
    change_log(folder, "UPDATE trials SET objectives = '[0.5, 0.5]' WHERE state != 'FAILED'")
    with pytest.raises(VerificationFailed, match=r"- and \d+ more$") as caught:
        verify(folder)
    assert len(str(caught.value).splitlines()) == 22


def test_a_sample_is_evaluated_again_where_there_are_many(tmp_path: Path) -> None:
    folder = ran(tmp_path)
    assert "20 of 100 trials evaluated again" in verify(folder, designs=20).checks


@pytest.mark.parametrize(
    ("text", "message"), [("{", r"result\.json:1:2: damaged"), ("[]", "expected an object")]
)
def test_a_damaged_result_is_named(tmp_path: Path, text: str, message: str) -> None:
    folder = ran(tmp_path)
    (folder / "result.json").write_text(text)
    with pytest.raises(VerificationFailed, match=message):
        verify(folder)


def test_what_is_not_finished_cannot_be_verified(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="holds no study"):
        verify(tmp_path)
    folder = ran(tmp_path)
    (folder / "result.json").unlink()
    with pytest.raises(StudyError, match="has no result yet; finish it with dse resume"):
        verify(folder)


def test_a_changed_space_fails(tmp_path: Path) -> None:
    space = tmp_path / "space.yaml"
    text = "dse: 1\nname: t\ndimensions: {a: [1, 2, 3]}\nmetrics: {cost: {expr: a * 2, unit: 1}}\nobjectives: {cost: minimize}\n"
    space.write_text(text)
    Study(space, folder=tmp_path / "run").run()
    verify(tmp_path / "run")
    space.write_text(text.replace("a * 2", "a * 3"))
    with pytest.raises(VerificationFailed, match="is no longer what"):
        verify(tmp_path / "run")


def test_a_problem_built_in_a_program_is_verified_with_it(tmp_path: Path) -> None:
    Study(camera(), folder=tmp_path).run()
    with pytest.raises(VerificationFailed, match="was built in a program"):
        verify(tmp_path)
    assert verify(tmp_path, problem=camera()).problem == camera()


def test_what_was_measured_is_trusted_and_what_follows_is_checked(tmp_path: Path) -> None:
    (tmp_path / "cost.py").write_text(
        "def measure(design):\n"
        "    if design['a'] == 3: raise ValueError('three')\n    return {'time': design['a']}\n"
    )
    (tmp_path / "space.yaml").write_text(
        "dse: 1\nname: t\ndimensions: {a: [1, 2, 3, 4]}\nmeasure: ./cost.py:measure\n"
        "metrics: {time: {unit: ms, measured: true}, twice: {expr: time * 2, unit: ms}}\n"
        "objectives: {twice: minimize}\n"
    )
    Study(tmp_path / "space.yaml", folder=tmp_path / "run").run(n_trials=4)
    (tmp_path / "cost.py").write_text("raise RuntimeError")
    checks = verify(tmp_path / "run").checks
    assert "3 of 4 trials evaluated again" in checks
    assert "1 of 1 front points evaluated again" in checks
    change_log(tmp_path / "run", "UPDATE trials SET objectives = '[0.001]' WHERE state = 'COMPLETE'")
    with pytest.raises(
        VerificationFailed, match=r"objectives must be \(0\.00\d,\), but \(0\.001,\) is logged"
    ):
        verify(tmp_path / "run")


def test_infinities_and_undefined_metrics_survive(tmp_path: Path) -> None:
    build = (
        Build().dimension("a", [0, 1, 2]).metric("cost", "a").metric("other", "0 / a").metric("more", "1 / a")
    )
    problem = build.minimize("cost").problem()
    for solver in ("exhaustive", "optuna"):
        Study(problem, folder=tmp_path / solver, solver=solver).run()
        verify(tmp_path / solver, problem=problem)


# -- runs that are not finished --------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_killed_run_is_unfinished_and_not_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, solver: str
) -> None:
    folder, sampling = tmp_path / "run", solver == "optuna"

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    study = Study("camera", folder=folder, solver=solver)
    study.run(n_trials=20 if sampling else None, timeout=None if sampling else 0.0)
    verify(folder)
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_outputs", killed)
        with pytest.raises(KeyboardInterrupt):
            Study.open(folder).run(n_trials=40 if sampling else None)
    changed = sampling or json.loads((folder / "result.json").read_text())["status"] == "stopped"
    if changed:
        with pytest.raises(StudyError, match=r"is unfinished: .*; dse resume ") as caught:
            verify(folder)
        assert caught.value.exit_code == 2
    Study.open(folder).run()
    verify(folder)


def rare(designs: int) -> Any:
    """A space with few legal designs, which cannot be counted: one dimension is an interval, of two numbers."""
    build = Build().dimension("on", [float(v) for v in range(200)])
    build.dimension("x", [float(v) for v in range(designs)])
    for at in range(12):
        build.dimension(f"d{at}", [float(v) for v in range(64)], when="on > 0.5")
    build.dimension("rate", Interval(1.0, 1.0 + 2.0**-52))
    build.rule("off", "on < 0.5")
    return build.metric("cost", "x").minimize("cost").problem()


def test_a_search_that_ran_dry_verifies_and_says_so(tmp_path: Path) -> None:
    problem = rare(2)
    result = Study(problem, solver="optuna", folder=tmp_path / "run").run(n_trials=50)
    assert 1 <= result.n_trials <= 4
    assert "many random draws found no legal design that was not tried already" in result.note
    assert "built one dimension at a time and not drawn evenly" in result.note
    verify(tmp_path / "run", problem=problem)
    again = Study(problem, solver="optuna", folder=tmp_path / "run").run(n_trials=50)
    assert again.note == result.note
    verify(tmp_path / "run", problem=problem)


def test_uniform_draws_are_not_noted(tmp_path: Path) -> None:
    build = Build().dimension("rate", Interval(0.0, 1.0)).metric("cost", "rate").minimize("cost")
    assert search(build.problem(), n_trials=12, options={"sampler": "random"}).note.count(";") == 0


# -- reading ---------------------------------------------------------------------------------------


def test_reading_changes_nothing_in_a_folder(tmp_path: Path) -> None:
    folder = ran(tmp_path)
    names = sorted(path.name for path in folder.iterdir())
    stamps = [path.stat().st_mtime_ns for path in (folder, *sorted(folder.iterdir()))]
    _ = Study.open(folder).result
    verify(folder)
    assert sorted(path.name for path in folder.iterdir()) == names
    assert [path.stat().st_mtime_ns for path in (folder, *sorted(folder.iterdir()))] == stamps


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("killed", [False, True])
def test_a_folder_that_cannot_be_written_to_can_be_read(killed: bool) -> None:
    """As another user, where this one may write anywhere."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        shutil.copytree(_RUNS["optuna", None], folder)
        if killed:  # what a killed writer leaves: a write-ahead log that holds all
            with closing(sqlite3.connect(folder / "study.sqlite")) as database:
                database.execute("PRAGMA journal_mode=WAL")
                with database:
                    database.execute("INSERT INTO facts VALUES ('more', '1')")
                shutil.copytree(folder, Path(place) / "killed")
            folder = Path(place) / "killed"
            assert (folder / "study.sqlite-wal").stat().st_size
        for path in [Path(place), folder, *folder.iterdir()]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        child = os.fork()
        if not child:
            code = 1
            try:
                if os.geteuid() == 0:
                    os.setresuid(65534, 65534, 65534)
                assert not os.access(folder, os.W_OK)
                verify(folder)
                code = 0
            except BaseException:  # noqa: BLE001 - the parent must hear of it
                traceback.print_exc()
            finally:
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        for path in [Path(place), folder]:
            path.chmod(0o755)
        assert os.waitstatus_to_exitcode(status) == 0
