"""The record of a study: what is read back, one writer, damage that is named, and the manifest."""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dse.errors import StudyError
from dse.problem import Design
from dse.study.files import Lock, csv_text, write_atomic
from dse.study.identity import Coder
from dse.study.manifest import MANIFEST, Manifest
from dse.study.storage import DATABASE, Storage
from dse.study.trial import Trial, TrialState
from tests.study.problems import tiny

DESIGNS: list[Design] = [{"a": 1.0, "b": False}, {"a": 2.0, "b": True}]


def opened(folder: Path | None) -> Storage:
    storage = Storage(Coder(tiny()), folder)
    storage.acquire()
    storage.prepare()
    return storage


@pytest.fixture(params=["folder", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    made = opened(tmp_path / "study" if request.param == "folder" else None)
    yield made
    made.release()


def test_trials_go_from_waiting_to_running_to_finished(storage: Storage) -> None:
    storage.propose(0, 0, DESIGNS)
    assert storage.trials() == []
    assert [t.index for t in storage.proposed()] == [0, 3]
    storage.begin(1)
    assert [(t.number, t.state) for t in storage.trials()] == [(1, TrialState.RUNNING)]
    storage.give_back()
    assert storage.trials() == []
    done = replace(storage.proposed()[1], state=TrialState.COMPLETE)
    storage.finish([done])
    storage.give_back()
    assert storage.trials() == [done]


def test_every_value_is_read_back_to_the_bit(storage: Storage) -> None:
    storage.propose(3, 0, DESIGNS)
    trial = Trial(
        0,
        DESIGNS[0],
        0,
        TrialState.INFEASIBLE,
        3,
        (0.1 + 0.2, -math.inf),
        (5e-324, math.inf),
        {"a": 1e308, "é": 'texts, with "quotes"', "flag": True, "none": None},
        "a reason\nof two lines",
    )
    storage.finish([trial])
    assert storage.trials() == [trial]


def test_facts_and_the_checkpoint_are_kept(storage: Storage) -> None:
    assert storage.fact("n_trials") is None
    assert storage.checkpoint() is None
    storage.set_facts({"n_trials": 5, "exhausted": True})
    storage.set_facts({"n_trials": 6})
    storage.save_checkpoint(b"\x00one")
    storage.save_checkpoint(b"\x00two")
    assert (storage.fact("n_trials"), storage.fact("exhausted"), storage.checkpoint()) == (
        6,
        True,
        b"\x00two",
    )


def test_one_writes_and_others_may_read(tmp_path: Path) -> None:
    writer, other = opened(tmp_path), Storage(Coder(tiny()), tmp_path)
    writer.propose(0, 0, DESIGNS)
    writer.begin(0)
    assert len(other.trials()) == 1
    with pytest.raises(StudyError, match=r"is in use: another search is writing to it"):
        other.acquire()
    with pytest.raises(StudyError, match="must be acquired"):
        other.begin(1)
    writer.begin(1)
    writer.release()
    other.acquire()
    assert len(other.trials()) == 2
    other.release()


def test_a_synchronized_write_ahead_log_is_used(tmp_path: Path) -> None:
    storage = opened(tmp_path)
    assert storage._read("PRAGMA journal_mode") == [("wal",)]
    assert storage._read("PRAGMA synchronous") == [(2,)]
    storage.release()


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be looked at" * 50, b"SQLite format 3\0" + b"x" * 9000]
)
def test_a_damaged_log_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / DATABASE).write_bytes(content)
    storage = Storage(Coder(tiny()), tmp_path)
    with pytest.raises(StudyError, match=rf"{DATABASE}: the trial log cannot be used: "):
        storage.trials()
    storage.acquire()
    with pytest.raises(StudyError, match=rf"{DATABASE}: the trial log cannot be used: "):
        storage.prepare()
    storage.release()


@pytest.mark.parametrize(
    ("column", "value"), [("design", "{"), ("design", '{"a": 7}'), ("state", "DONE"), ("metrics", "[")]
)
def test_a_damaged_trial_is_named(tmp_path: Path, column: str, value: str) -> None:
    storage = opened(tmp_path)
    storage.propose(0, 0, DESIGNS)
    storage.begin(1)
    storage.release()
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database, database:
        database.execute(f"UPDATE trials SET {column} = ? WHERE number = 1", (value,))
    with pytest.raises(StudyError, match=rf"{DATABASE}: trial 1 is damaged: "):
        Storage(Coder(tiny()), tmp_path).trials()


def test_a_log_whose_tables_were_not_made_yet_is_empty(tmp_path: Path) -> None:
    (tmp_path / DATABASE).touch()
    storage = Storage(Coder(tiny()), tmp_path)
    assert storage.trials() == []
    assert storage.fact("n_trials") is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StudyError, match="cannot"):
        Storage(Coder(tiny()), tmp_path / "study").acquire()


def test_a_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StudyError, match="cannot make the folder"):
        Storage(Coder(tiny()), tmp_path / "file" / "study").acquire()


def test_a_lock_is_free_when_its_holder_is_gone(tmp_path: Path) -> None:
    first, second = Lock(tmp_path / "lock"), Lock(tmp_path / "lock")
    first.acquire()
    first.acquire()
    with pytest.raises(StudyError, match="in use"):
        second.acquire()
    del first
    second.acquire()
    assert second.held
    second.release()
    assert not second.held


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_atomic(path, "old\n")
    write_atomic(path, "né\n")
    assert path.read_bytes() == "né\n".encode()
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    with pytest.raises(StudyError, match=r"cannot write .*b\.txt"):
        write_atomic(tmp_path / "none" / "b.txt", "x")


def test_csv_has_no_python_words_in_it() -> None:
    rows: list[dict[str, object]] = [{"a": True, "b": None, "c": 0.1}, {"a": False, "c": "x, y"}]
    assert csv_text(["a", "b", "c"], rows) == 'a,b,c\ntrue,,0.1\nfalse,,"x, y"\n'


# -- the manifest ----------------------------------------------------------------------------------


def manifest(**settings: object) -> Manifest:
    problem = tiny()
    given = {"requested": "auto", "solver": "optuna", "seed": 1, "batch": 10} | settings
    return Manifest.of(problem, problem.everything, **given)


def test_a_manifest_is_read_back(tmp_path: Path) -> None:
    made = manifest(options={"sampler": "tpe"}, objective="cost", note="why")
    made.write(tmp_path)
    assert Manifest.read(tmp_path) == made


def test_a_missing_manifest_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="holds no study"):
        Manifest.read(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-30], r"manifest\.json:\d+:\d+: the manifest is damaged"),
        (lambda _: "", r"manifest\.json:1:1: the manifest is damaged"),
        (lambda _: "[]", "expected an object"),
        (lambda text: text.replace('"format": 1', '"format": 2'), "reads studies of format 1, but found 2"),
        (lambda text: text.replace('"seed": 1', '"seed": "one"'), "seed cannot be 'one'"),
        (lambda text: text.replace('"seed": 1', '"seeds": 1'), "seed is missing; unknown key 'seeds'"),
        (lambda text: text.replace('"overrides": []', '"overrides": ["x"]'), "overrides must be pairs"),
        (lambda _: "[" * 100_000, "cannot be read|damaged"),
    ],
)
def test_a_damaged_manifest_is_named(tmp_path: Path, change: object, message: str) -> None:
    made = manifest()
    made.write(tmp_path)
    path = tmp_path / MANIFEST
    assert callable(change)
    path.write_text(change(path.read_text()), encoding="utf-8")
    with pytest.raises(StudyError, match=message):
        Manifest.read(tmp_path)


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match=r"manifest\.json: the manifest cannot be read"):
        Manifest.read(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": 2}, "seed is 1 there, but 2 was asked for"),
        ({"requested": "pareto"}, "solver is auto there, but pareto was asked for"),
        ({"batch": 5, "keep": 7}, "batch size is 10 there, but 5 was asked for; keep is 100000 there, but 7"),
        ({"options": {"sampler": "nsga2"}}, "options is none there, but sampler=nsga2 was asked for"),
    ],
)
def test_another_study_is_refused_with_what_differs(settings: dict[str, object], message: str) -> None:
    with pytest.raises(StudyError, match=f"runs/1 holds another study: {message}"):
        manifest().check_same(manifest(**settings), Path("runs/1"))


def test_another_problem_is_refused_with_what_differs() -> None:
    mine = manifest()
    for other, message in [
        (replace(mine, problem="camera", digest="x"), "the problem is test there, but camera was asked for"),
        (replace(mine, inputs={"limit": 2.0}, digest="x"), "input limit is None there, but 2 was asked for"),
        (
            replace(mine, overrides=(("tables.a.b", "1 ms"),), digest="x"),
            "nothing was set there, but tables.a.b=1 ms",
        ),
        (replace(mine, digest="x"), "the space test has changed since"),
    ]:
        with pytest.raises(StudyError, match=message):
            replace(mine, problem="test").check_same(
                replace(other, problem=other.problem.replace("tiny", "test")), Path("r")
            )


def test_a_solver_that_auto_chose_is_no_difference() -> None:
    manifest(solver="optuna", note="why").check_same(manifest(solver="", note=""), Path("runs/1"))


def test_a_problem_built_in_a_program_cannot_be_loaded_again(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"was built in a program.*Study\(problem, folder=\.\.\.\)"):
        manifest().load_problem(tmp_path)


def test_the_manifest_is_plain_json(tmp_path: Path) -> None:
    manifest().write(tmp_path)
    data = json.loads((tmp_path / MANIFEST).read_text())
    assert data["problem"] == "tiny"
    assert data["digest"] == tiny().digest
