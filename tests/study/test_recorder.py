"""Writing a certificate: limits, full disks, marks and kills; and what a study does with it."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dse.cli import main
from dse.errors import InputError, StudyError, VerificationFailed
from dse.problem import Problem
from dse.study import running
from dse.study.certificate import CERTIFICATE, CERTIFICATE_DRAFT, DOMINATED, OPEN, Axis, Recorder
from dse.study.study import Study, search
from dse.study.verify import verify
from tests.randomspaces import problem as random_problem
from tests.study.problems import Build

AXES = [Axis(0, 3, 1), Axis(1, 2, 1)]
FIRST = np.array([[OPEN, DOMINATED, OPEN]], dtype=np.uint8)
SECOND = np.array([[4, 4], [3, 4]], dtype=np.uint8)


def small() -> Problem:
    build = Build().dimension("a", [1.0, 2.0, 3.0]).dimension("b", [1.0, 2.0])
    return build.metric("cost", "a * b").minimize("cost").problem()


def recorder(folder: Path, limit: int | None = 1_000_000) -> Recorder:
    return Recorder(folder, small(), small().everything, limit)


def written(folder: Path) -> bytes:
    made = recorder(folder)
    made.begin(AXES)
    made.frame(0, 0, FIRST)
    made.frame(1, 0, SECOND)
    made.finish()
    return (folder / CERTIFICATE).read_bytes()


def test_a_certificate_takes_its_place_when_it_is_finished(tmp_path: Path) -> None:
    made = recorder(tmp_path)
    made.begin(AXES)
    made.frame(0, 0, FIRST)
    made.frame(1, 0, SECOND)
    assert made.boxes == 5
    assert [path.name for path in tmp_path.iterdir()] == [CERTIFICATE_DRAFT]
    facts = made.finish()
    assert facts is not None
    assert facts is made.finish()
    assert (facts["file"], facts["boxes"]) == (CERTIFICATE, 5)
    assert [path.name for path in tmp_path.iterdir()] == [CERTIFICATE]


def test_what_is_begun_again_is_forgotten(tmp_path: Path) -> None:
    right = written(tmp_path)
    made = recorder(tmp_path)
    made.begin(AXES[:1])
    made.frame(0, 0, FIRST)
    made.begin(AXES)
    assert not (tmp_path / CERTIFICATE).exists()
    made.frame(0, 0, FIRST)
    made.frame(1, 0, SECOND)
    made.finish()
    assert (tmp_path / CERTIFICATE).read_bytes() == right


@pytest.mark.parametrize("more", [False, True])
def test_a_mark_is_gone_on_from(tmp_path: Path, more: bool) -> None:
    right = written(tmp_path)
    (tmp_path / CERTIFICATE).unlink()
    made = recorder(tmp_path)
    made.begin(AXES)
    made.frame(0, 0, FIRST)
    mark = json.loads(json.dumps(made.mark()))
    if more:  # what came after the checkpoint
        made.frame(1, 0, SECOND[:1])
        made.mark()
    again = recorder(tmp_path)
    again.restore(mark)
    again.frame(1, 0, SECOND)
    facts = again.finish()
    assert facts is not None
    assert facts["boxes"] == 5
    assert (tmp_path / CERTIFICATE).read_bytes() == right


def test_a_kill_between_the_last_byte_and_the_last_checkpoint_is_survived(tmp_path: Path) -> None:
    made = recorder(tmp_path)
    made.begin(AXES)
    made.frame(0, 0, FIRST)
    mark = made.mark()
    made.frame(1, 0, SECOND)
    made.finish()
    right = (tmp_path / CERTIFICATE).read_bytes()
    again = recorder(tmp_path)
    again.restore(mark)
    again.frame(1, 0, SECOND)
    again.finish()
    assert (tmp_path / CERTIFICATE).read_bytes() == right


def test_what_is_gone_or_changed_cannot_be_gone_on_from(tmp_path: Path) -> None:
    made = recorder(tmp_path)
    made.begin(AXES)
    made.frame(0, 0, FIRST)
    mark = made.mark()
    draft = tmp_path / CERTIFICATE_DRAFT
    data = draft.read_bytes()
    draft.write_bytes(data[:-1])
    with pytest.raises(StudyError, match="is not what the search had written"):
        recorder(tmp_path).restore(mark)
    draft.write_bytes(data[:-1] + b"\x09")
    with pytest.raises(StudyError, match="is not what the search had written"):
        recorder(tmp_path).restore(mark)
    draft.unlink()
    with pytest.raises(StudyError, match="cannot be gone on with: No such file"):
        recorder(tmp_path).restore(mark)


def test_beyond_the_limit_boxes_are_only_counted(tmp_path: Path) -> None:
    made = recorder(tmp_path, limit=4)
    made.begin(AXES)
    made.frame(0, 0, FIRST)
    assert made.mark()["boxes"] == 1
    made.frame(1, 0, SECOND)
    assert list(tmp_path.iterdir()) == []
    again = recorder(tmp_path, limit=4)
    again.restore(made.mark())
    again.frame(2, 0, SECOND)
    assert again.finish() == {
        "file": None,
        "boxes": 9,
        "why": "it would have more than 4 boxes, and was not asked for at any size",
    }
    assert list(tmp_path.iterdir()) == []


def test_many_reasons_take_two_bytes(tmp_path: Path) -> None:
    build = Build().dimension("a", [1.0, 2.0])
    for at in range(260):
        build.rule(f"r{at}", "a > 0")
    problem = build.metric("cost", "a").minimize("cost").problem()
    made = Recorder(tmp_path, problem, problem.everything)
    made.begin([Axis(0, 2, 1)])
    made.frame(0, 0, np.array([[262, 3]], dtype=np.uint16))
    made.finish()
    assert (tmp_path / CERTIFICATE).read_bytes()[-52 - 4 :][:4] == b"\x06\x01\x03\x00"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_without_disk_space_the_certificate_is_given_up(tmp_path: Path) -> None:
    made = recorder(tmp_path)
    (tmp_path / CERTIFICATE_DRAFT).symlink_to("/dev/full")
    made.begin(AXES)
    made.frame(0, 0, FIRST)
    made.frame(1, 0, SECOND)
    assert made.finish() == {
        "file": None,
        "boxes": 5,
        "why": "certificate.bin cannot be written: No space left on device",
    }
    assert list(tmp_path.iterdir()) == []


# -- studies ---------------------------------------------------------------------------------------


def wide() -> Problem:
    """A few thousand boxes."""
    build = Build()
    for name in "abcdef":
        build.dimension(name, [float(v) for v in range(7)])
    build.rule("odd", "a + b + f > 3")
    build.metric("cost", "abs(a * b - c * d) + e * f / 3 + sqrt(a)").metric(
        "other", "b * d - a + e / (c + 0.5)"
    )
    build.minimize("cost").maximize("other").constrain("cost", "cost >= 2")
    return build.problem("wide")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wide") / "run"
    Study(wide(), solver="pareto", folder=folder).run()
    return folder


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / "run"))


def outputs(folder: Path) -> dict[str, bytes]:
    found = {name: (folder / name).read_bytes() for name in ("front.csv", CERTIFICATE)}
    result = json.loads((folder / "result.json").read_text())
    del result["run"]
    return {**found, "result": json.dumps(result).encode()}


def test_a_study_keeps_its_certificate_and_verify_proves_it_again(copy: Path) -> None:
    result = json.loads((copy / "result.json").read_text())
    boxes = result["certificate"]["boxes"]
    assert result["certificate"]["file"] == CERTIFICATE
    assert boxes > 1000
    checks = verify(copy, problem=wide()).checks
    assert (
        f"the {boxes:,} boxes of the certificate are disjoint and cover all 117,649 designs of the search"
        in checks
    )
    assert "they sum to the accounting, reason by reason" in checks
    assert checks[-1] == f"{boxes:,} of {boxes:,} boxes re-proved"
    assert verify(copy, problem=wide(), boxes=50).checks[-1] == f"50 of {boxes:,} boxes re-proved"
    assert (copy / CERTIFICATE).stat().st_size <= 16 * boxes


def test_one_or_two_workers_leave_the_same_certificate(run: Path, tmp_path: Path) -> None:
    Study(wide(), solver="pareto", folder=tmp_path / "run", workers=2).run()
    assert outputs(tmp_path / "run") == outputs(run)


def test_a_stopped_search_has_none_and_goes_on_to_the_same(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SAVED_EVERY", 0.0)
    from dse.solvers.branching import searching

    monkeypatch.setattr(searching, "CHILDREN", 512)
    folder = tmp_path / "run"
    stops = 0
    for _ in range(200):
        result = Study(wide(), solver="pareto", folder=folder).run(timeout=1e-9)
        if result.status == "complete":
            break
        stops += 1
        assert result.certificate is not None
        assert (result.certificate["file"], result.certificate["why"]) == (None, "the search is not finished")
        assert (folder / CERTIFICATE_DRAFT).exists()
        assert verify(folder, problem=wide()).checks[-1] == (
            "there is no certificate to check: the search is not finished"
        )
    assert stops > 3
    Study(wide(), solver="pareto", folder=tmp_path / "straight").run()
    assert outputs(folder) == outputs(tmp_path / "straight")
    assert not (folder / CERTIFICATE_DRAFT).exists()
    verify(folder, problem=wide())


def test_a_certificate_that_was_lost_on_the_way_does_not_stop_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dse.solvers.branching import searching

    monkeypatch.setattr(searching, "CHILDREN", 512)
    folder = tmp_path / "run"
    Study(wide(), solver="pareto", folder=folder).run(timeout=1e-9)
    (folder / CERTIFICATE_DRAFT).unlink()
    result = Study(wide(), solver="pareto", folder=folder).run()
    assert result.certificate is not None
    assert result.certificate["file"] is None
    assert ".certificate.bin.tmp cannot be gone on with: No such file" in result.certificate["why"]
    assert verify(folder, problem=wide()).checks[-1].startswith("there is no certificate to check: ")


def test_a_full_disk_costs_the_certificate_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Path
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        patch.setattr("dse.study.files.os", _Os())  # the tables find room
        result = Study(wide(), solver="pareto", folder=tmp_path / "run").run()
    assert result.status == "complete"
    assert result.certificate == {
        "file": None,
        "boxes": json.loads((run / "result.json").read_text())["certificate"]["boxes"],
        "why": "certificate.bin cannot be written: No space left on device",
    }
    assert (tmp_path / "run" / "front.csv").read_bytes() == (run / "front.csv").read_bytes()
    assert not list((tmp_path / "run").glob("*certificate*"))
    verify(tmp_path / "run", problem=wide())


class _Os:
    """The module ``os``, on another disk."""

    def __getattr__(self, name: str) -> Any:
        return (lambda _: None) if name == "fsync" else getattr(os, name)


def test_the_certificate_makes_room_for_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dse.study.storage import Storage

    save, tried = Storage.save_checkpoint, 0

    def crowded(self: Storage, data: bytes) -> None:
        nonlocal tried
        tried += 1
        if list(tmp_path.glob("run/*certificate*")):
            raise StudyError("database or disk is full")
        save(self, data)

    monkeypatch.setattr(Storage, "save_checkpoint", crowded)
    result = Study(wide(), solver="pareto", folder=tmp_path / "run").run()
    assert tried == 2
    assert result.certificate is not None
    assert result.certificate["why"] == "it was removed to make room: database or disk is full"
    verify(tmp_path / "run", problem=wide())


def test_a_full_disk_without_a_certificate_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dse.study.storage import Storage

    def full(self: Storage, data: bytes) -> None:
        raise StudyError("database or disk is full")

    monkeypatch.setattr(Storage, "save_checkpoint", full)
    for solver, wanted in (("exhaustive", "auto"), ("pareto", "never"), ("pareto", "auto")):
        with pytest.raises(StudyError, match="disk is full"):
            Study(small(), solver=solver, folder=tmp_path / solver / wanted, certificate=wanted).run()  # type: ignore[arg-type]


def test_a_certificate_can_be_refused_or_insisted_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LIMIT", 3)
    never = Study(wide(), solver="pareto", folder=tmp_path / "never", certificate="never").run()
    assert never.certificate is None
    auto = Study(wide(), solver="pareto", folder=tmp_path / "auto").run()
    assert auto.certificate is not None
    assert auto.certificate["why"] == "it would have more than 3 boxes, and was not asked for at any size"
    always = Study(wide(), solver="pareto", folder=tmp_path / "always", certificate="always").run()
    assert always.certificate is not None
    assert always.certificate["file"] == CERTIFICATE
    assert auto.certificate["boxes"] == always.certificate["boxes"]
    assert not list((tmp_path / "never").glob("*certificate*"))
    with pytest.raises(StudyError, match="certificate is always there, but auto was asked for"):
        Study(wide(), solver="pareto", folder=tmp_path / "always")
    Study.open(tmp_path / "always", wide()).run()
    for name in ("never", "auto", "always"):
        verify(tmp_path / name, problem=wide())


def test_a_solver_that_discards_nothing_has_none(tmp_path: Path) -> None:
    assert Study(small(), solver="exhaustive", folder=tmp_path / "a").run().certificate is None
    asked = Study(small(), solver="exhaustive", folder=tmp_path / "b", certificate="always").run()
    assert asked.certificate == {"file": None, "boxes": 0, "why": "the solver discards no boxes"}
    verify(tmp_path / "b", problem=small())


def test_a_certificate_needs_a_folder() -> None:
    assert search(small(), solver="pareto").certificate is None
    with pytest.raises(InputError, match="is kept in the folder of a search, and this one has none"):
        search(small(), solver="pareto", certificate="always")
    with pytest.raises(InputError, match="certificate must be auto, always or never, but got 'often'"):
        search(small(), solver="pareto", certificate="often")  # type: ignore[arg-type]


def change(folder: Path, edit: Callable[[bytes], bytes]) -> None:
    path = folder / CERTIFICATE
    path.write_bytes(edit(path.read_bytes()))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda f: (f / CERTIFICATE).unlink(), "- certificate.bin is missing"),
        (lambda f: change(f, lambda data: data[:-1]), "certificate.bin is damaged: its checksum"),
        (lambda f: (f / CERTIFICATE).write_bytes(b""), "certificate.bin is no certificate"),
        (lambda f: f.joinpath(CERTIFICATE).write_bytes(written(f / "other")), "is of another problem"),
    ],
)
def test_a_certificate_that_is_not_what_it_was_is_named(
    copy: Path, edit: Callable[[Path], object], message: str
) -> None:
    (copy / "other").mkdir()
    edit(copy)
    with pytest.raises(VerificationFailed, match=message):
        verify(copy, problem=wide())


def test_the_command_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words], standalone_mode=False)
        out, err = capfd.readouterr()
        return code or 0, out, err

    folder = tmp_path / "run"
    assert run("search", "camera", "--solver", "pareto", "--out", folder)[0] == 0
    _, out, _ = run("verify", folder, "--boxes", 3)
    assert "3 of " in out
    assert " boxes re-proved" in out
    monkeypatch.setattr(running, "LIMIT", 2)
    _, _, err = run("search", "camera", "--solver", "pareto", "--out", tmp_path / "b")
    assert "no certificate: it would have more than 2 boxes" in err
    with pytest.raises(InputError, match="give --out FOLDER as well"):
        run("search", "camera", "--solver", "pareto", "--certificate", "always")


# -- random problems with the solver -----------------------------------------------------------------


@pytest.mark.parametrize("first", range(0, 90, 30))
def test_certificates_of_the_solver_pass(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + 30):
        draw = random.Random(seed)
        problem = random_problem(seed, 400)
        team = draw.choice([problem.everything, *problem.teams.values()])
        folder = tmp_path / str(seed)
        top = draw.choice([0, 0, 4])
        objective = draw.choice([o.name for o in problem.objectives]) if top else None
        options = {"epsilon": 0.05} if draw.random() < 0.3 else {}
        Study(
            problem, team=team, solver="pareto", folder=folder, top=top, objective=objective, options=options
        ).run()
        checks = verify(folder, problem=problem).checks
        assert "could not be" not in checks[-1], (seed, checks[-1])
        assert "re-proved" in checks[-1] or not problem.size, seed
