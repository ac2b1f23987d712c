"""A file that extends a space: what it leaves out is left out of teams, its errors are at its lines, tools stay."""

from __future__ import annotations

from pathlib import Path

import pytest

import dse
from dse.cli.agreement import find_validation
from dse.errors import SpaceError
from dse.study.exports import exporter
from dse.study.study import search

BASE = """\
dse: 1
name: base
inputs: {limit: 8 ms}
dimensions: {a: [1, 2, 4], mode: [fast, slow, idle]}
metrics: {time: {expr: a * 1 ms, unit: ms}}
objectives: {time: minimize}
constraints: {time: <= limit}
teams: {some: {mode: [fast, idle]}, one: {mode: slow}}
"""


def extended(tmp_path: Path, text: str) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    path = tmp_path / "own.yaml"
    path.write_text(f"dse: 1\nextends: base.yaml\n{text}\n")
    return path


def test_teams_lose_the_values_that_an_extending_file_leaves_out(tmp_path: Path) -> None:
    problem = dse.load(extended(tmp_path, "dimensions: {mode: [slow, fast]}"))
    assert [problem.teams[name].boxes[0].allowed[1] for name in ("some", "one")] == [(1,), (0,)]


def test_a_team_that_is_left_nothing_is_an_error_at_the_extending_files_line(tmp_path: Path) -> None:
    path = extended(tmp_path, "dimensions: {mode: [idle, fast]}")
    with pytest.raises(SpaceError) as caught:
        dse.load(path)
    (found,) = caught.value.diagnostics
    assert str(found).startswith(
        f"{path}:3:14: dimensions.mode: leaves team 'one' no value of mode (it has slow at "
    )
    own = extended(tmp_path, "teams: {mine: {mode: [fast, lazy]}}")
    with pytest.raises(
        SpaceError, match=r"own\.yaml:3:.*mode has no value 'lazy'"
    ):  # its own mistakes remain
        dse.load(own)


def test_what_does_not_fit_the_extended_space_is_told_at_the_own_line(tmp_path: Path) -> None:
    path = extended(tmp_path, "inputs: {limit: 8 GB}\ndimensions: {b: [1, 2]}\nlets: {c: d + 1}")
    with pytest.raises(SpaceError) as caught:
        dse.load(path)
    told = [str(diagnostic) for diagnostic in caught.value.diagnostics]
    assert [line.split(": ")[0] for line in told] == [f"{path}:3:10", f"{path}:5:11"], told
    assert "inputs.limit: does not fit" in told[0]
    assert "base.yaml:7:24: constraints.time: cannot compare time" in told[0]
    path = extended(tmp_path, "dimensions: {a: [x, y]}")
    with pytest.raises(SpaceError, match=r"own\.yaml:3:14: dimensions\.a: does not fit .*base\.yaml:5:"):
        dse.load(path)


def test_exporters_and_measurements_are_those_of_the_extended_space(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        "dse: 1\nname: mine\nextends: serving\ndimensions: {hardware: {table: gpus, choices: [h100-sxm]}}\n"
    )
    problem = dse.load(path)
    assert problem.extends == ("serving",)
    assert exporter(problem, "vllm") is exporter(dse.load("serving"), "vllm")
    validation = find_validation("serving")
    assert find_validation(str(path)) is validation
    search(problem, solver="optuna", n_trials=1, folder=tmp_path / "run")
    assert find_validation(str(tmp_path / "run")) is validation
