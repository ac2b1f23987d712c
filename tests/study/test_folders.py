"""The folder of a study: what may be in it, what must be in it, and what a program finds when it tells nonsense."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dse.errors import InputError, StudyError, VerificationFailed
from dse.study.identity import Coder
from dse.study.storage import Storage
from dse.study.study import Study, search
from dse.study.verify import verify
from tests.study.problems import tiny
from tests.study.test_study import measured


@pytest.mark.parametrize("name", ["front.csv", "result.json", "notes.txt", "src"])
def test_a_folder_with_other_files_in_it_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(StudyError, match=rf"is not empty and holds no study \(it has {name}\)"):
        search(tiny(), folder=tmp_path)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(name, "mine")]


@pytest.mark.parametrize("left", [[".lock"], [".lock", ".manifest.json.tmp", ".study.sqlite.tmp"]])
def test_what_a_search_left_that_was_killed_before_it_began_is_no_hindrance(
    tmp_path: Path, left: list[str]
) -> None:
    for name in left:
        (tmp_path / name).write_text("")
    assert search(tiny(), folder=tmp_path).feasible
    verify(tmp_path, problem=tiny())


def test_a_search_that_was_killed_between_its_log_and_its_manifest_can_be_begun_again(tmp_path: Path) -> None:
    Storage(Coder(tiny()), tmp_path).create({"seed": 7})
    assert search(tiny(), folder=tmp_path).feasible
    verify(tmp_path, problem=tiny())


@pytest.mark.parametrize("solver", ["optuna", "exhaustive"])
def test_a_study_without_its_log_is_refused(tmp_path: Path, solver: str) -> None:
    search("camera", solver=solver, folder=tmp_path, n_trials=5 if solver == "optuna" else None)
    for path in tmp_path.glob("study.sqlite*"):
        path.unlink()
    with pytest.raises(StudyError, match=r"study\.sqlite is missing"):
        Study.open(tmp_path)
    with pytest.raises(StudyError, match=r"study\.sqlite is missing"):
        Study("camera", solver=solver, folder=tmp_path)
    with pytest.raises(VerificationFailed, match=r"study\.sqlite is missing"):
        verify(tmp_path)
    (tmp_path / "study.sqlite").touch()
    with pytest.raises(StudyError, match=r"study\.sqlite is damaged"):
        Study.open(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("seed", 5, "seed is 5, but the study was begun with 0"),
        ("batch", 3, "batch is 3, but the study was begun with 10"),
        ("top", 2, "top is 2, but the study was begun with 0"),
        ("keep", 2, "keep is 2, but the study was begun with 100000"),
        ("options", {"sampler": "tpe"}, "options is sampler=tpe, but the study was begun with none"),
        ("team", "zz", "team is zz, but the study was begun with"),
        ("solver", "exhaustive", "solver is exhaustive, but the study was begun with optuna"),
        ("note", "proved", "note is proved"),
        ("boxes", [], "boxes is not what it was"),
        ("digest", "0" * 64, "digest is not what it was"),
        ("inputs", {"max_latency": 1.0}, "inputs is not what it was"),
    ],
)
def test_settings_that_were_edited_are_named(tmp_path: Path, key: str, value: Any, message: str) -> None:
    search("camera", solver="optuna", folder=tmp_path, n_trials=5)
    path = tmp_path / "manifest.json"
    data = json.loads(path.read_text())
    data[key] = value
    path.write_text(json.dumps(data))
    with pytest.raises(StudyError, match=rf"manifest\.json was changed since the study was begun: {message}"):
        Study.open(tmp_path)
    with pytest.raises(VerificationFailed, match=message):
        verify(tmp_path, problem=tiny())


def test_a_search_in_which_everything_fails_says_so_first(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(
        "dse: 1\nname: t\ndimensions: {a: {range: [1, 30]}}\nmeasure: {command: [sh, -c, 'exit 3']}\n"
        "metrics: {time: {unit: ms, measured: true}}\nobjectives: {time: minimize}\n"
    )
    note = search(tmp_path / "space.yaml", n_trials=3, folder=tmp_path / "run").note
    assert note.startswith("every design failed: sh ended with exit code 3; ")
    verify(tmp_path / "run")


@pytest.mark.parametrize(
    ("metrics", "failed"),
    [([1], ""), ("fast", ""), (7, ""), ({"time": 10**400}, ""), ({3: 1}, ""), (None, 5)],
)
def test_what_cannot_be_told_is_named_and_changes_nothing(metrics: Any, failed: Any) -> None:
    study = Study(measured())
    trial = study.ask()
    assert trial is not None
    with pytest.raises(InputError):
        study.tell(trial, metrics, failed=failed)
    for wrong in ("x", None, 1.5):
        with pytest.raises(InputError, match="a trial or its number must be told"):
            study.tell(wrong, {})  # type: ignore[arg-type]
    assert study.tell(trial, failed="\ud800").reason == "\\ud800"


def test_a_study_that_is_asked_and_told_is_finished_where_it_is(tmp_path: Path) -> None:
    problem = measured()
    with Study(problem, folder=tmp_path) as study:
        study.ask()
        with pytest.raises(StudyError, match="a program asks and tells this study; finish it there"):
            verify(tmp_path, problem=problem)
        with pytest.raises(InputError, match=r"a program asks and tells this study; finish .* there"):
            Study.open(tmp_path, problem).run()
    assert {"front.csv", "trials.csv", "result.json"} <= {p.name for p in tmp_path.iterdir()}
    verify(tmp_path, problem=problem)
