"""Trials that are handed out: runs leave them alone, and what holds them is recorded."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from dse.errors import InputError
from dse.study.identity import Coder
from dse.study.storage import Storage
from dse.study.study import Study
from dse.study.trial import Trial, TrialState
from dse.study.verify import verify
from tests.study.problems import camera, tiny


def asked(study: Study) -> Trial:
    trial = study.ask()
    assert trial is not None
    return trial


def test_a_run_leaves_a_handed_out_trial_to_its_holder() -> None:
    study = Study(camera(), solver="optuna", batch=4)
    first, second = asked(study), asked(study)
    assert study.run(n_trials=12).n_trials == 12
    assert [t.number for t in study.trials if t.state is TrialState.RUNNING] == [0, 1]
    assert len({t.index for t in study.trials}) == 14
    assert study.tell(second).state is not TrialState.RUNNING
    assert study.tell(first).number == 0
    assert study.result.n_trials == 14
    with pytest.raises(InputError, match="trial 0 is not running"):
        study.tell(first)


def test_a_space_is_not_exhausted_while_a_trial_is_handed_out() -> None:
    study = Study(tiny(), solver="optuna")
    trial = asked(study)
    assert (study.run(n_trials=10).status, study.result.n_trials) == ("stopped", 3)
    study.tell(trial)
    assert (study.run(n_trials=10).status, study.result.n_trials) == ("exhausted", 4)


def test_a_run_in_a_folder_writes_finished_trials_only_and_closing_brings_them_up_to_date(
    tmp_path: Path,
) -> None:
    with Study("camera", solver="optuna", folder=tmp_path) as study:
        trial = asked(study)
        study.run(n_trials=5)
        assert "RUNNING" not in (tmp_path / "trials.csv").read_text()
        study.tell(trial)
    assert json.loads((tmp_path / "result.json").read_text())["n_trials"] == 6
    verify(tmp_path)


def test_a_handed_out_trial_has_a_lease(tmp_path: Path) -> None:
    study = Study(camera(), solver="optuna", folder=tmp_path)
    before = time.time()
    trial = asked(study)
    leases = Storage(Coder(camera()), tmp_path).leases()
    assert list(leases) == [trial.number]
    host, process, nonce = leases[trial.number].owner.rsplit(":", 2)
    assert (bool(host), int(process), len(nonce)) == (True, os.getpid(), 8)
    assert before <= leases[trial.number].since <= time.time()
    study.tell(trial)
    assert Storage(Coder(camera()), tmp_path).leases() == {}
    lost = asked(study)
    study.close()
    with pytest.raises(InputError, match="is not running"):
        study.tell(lost)
    assert asked(study).number == lost.number
    study.close()
