"""Ctrl-C at any instant of a sampling search loses no trial and changes none, in memory as in a folder."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dse.errors import Interrupted
from dse.study import evaluating, proposing
from dse.study.progress import Interrupts, interruptible
from dse.study.storage import Storage
from dse.study.study import Study
from tests.study.problems import camera

N = 30


def interrupting(function: Callable[..., Any], at: int, *, after: bool) -> Callable[..., Any]:
    """The function, with Ctrl-C pressed before or after its call number ``at``."""
    calls = 0

    def wrapped(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at and not after:
            os.kill(os.getpid(), signal.SIGINT)
        found = function(*given, **named)
        if calls == at and after:
            os.kill(os.getpid(), signal.SIGINT)
        return found

    return wrapped


PLACES: list[tuple[Any, str, int]] = [
    (evaluating, "evaluated", 1),
    (evaluating, "evaluated", 7),
    (Storage, "propose", 2),
    (Storage, "finish", 2),
    (proposing.Batch, "fill", 2),
]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(("owner", "name", "at"), PLACES)
def test_an_interrupted_search_goes_on_as_if_nothing_happened(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    at: int,
    *,
    after: bool,
    kept: bool,
) -> None:
    settings: dict[str, Any] = {"solver": "optuna", "options": {"sampler": "nsga2"}, "batch": 6}
    whole = Study(camera(), **settings)
    whole.run(n_trials=N)
    study = Study(camera(), folder=tmp_path / "run" if kept else None, **settings)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, interrupting(getattr(owner, name), at, after=after))
        with pytest.raises(Interrupted, match=r"interrupted after \d+ trials"):
            study.run(n_trials=N)
    assert len(study.finished) < N
    study.run(n_trials=N)
    assert study.trials == whole.trials
    assert study.result == whole.result


def test_what_changes_nothing_is_broken_off_and_the_rest_is_not() -> None:
    done = []
    with interruptible() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.breakable():
            os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.asked
    with interruptible() as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        done.append("held back")
        with pytest.raises(KeyboardInterrupt), interrupts.breakable():
            done.append("not begun")
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert done == ["held back"]
    assert not Interrupts().asked
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupted_program_is_killed_and_its_trial_run_again(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = tmp_path / "measure.sh"
    script.write_text(
        f'if [ "$1" = 3 ] && [ ! -e {mark} ]; then touch {mark}; kill -INT {os.getpid()}; sleep 30; fi\n'
        'echo "{\\"time\\": $1}"\n'
    )
    (tmp_path / "space.yaml").write_text(
        "dse: 1\nname: t\ndimensions: {a: [1, 2, 3, 4]}\nmeasure: {command: [sh, ./measure.sh, '{a}']}\n"
        "metrics: {time: {unit: ms, measured: true}}\nobjectives: {time: minimize}\n"
    )
    study = Study(tmp_path / "space.yaml")
    with pytest.raises(Interrupted):
        study.run(n_trials=4)
    assert mark.exists()
    assert len(study.finished) < 4
    assert study.run(n_trials=4).n_trials == 4
    assert sorted(t.objectives[0] for t in study.finished) == [0.001, 0.002, 0.003, 0.004]
