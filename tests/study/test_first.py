"""Constraints that come first: of a design that breaks one nothing else is told, and any that meets it is nearer."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from dse import search
from dse.cli import main
from dse.evaluation import State, judge
from dse.evaluation.explain import explain
from dse.problem import Problem
from dse.problem.library import load
from dse.study.result import Result
from dse.study.study import Study
from dse.study.verify import verify

SPACE = """\
dse: 1
name: fits
inputs: {room: 10 GB, limit: 1 ms}
dimensions:
  batch: {range: [1, 8]}
  gpus: [1, 2]
  format: [wide, narrow]
metrics:
  memory: {unit: GB, parts: [weights, cache]}
  weights: {expr: "(8 GB if format == 'wide' else 6 GB) / gpus", unit: GB}
  cache: {expr: "batch * 1 GB * (1 + 0 / time * 1 ms)", unit: GB}
  time: {expr: "1 ms * (1 + 16 / batch / gpus)", unit: ms}
  speed: {expr: "batch / time", unit: 1/s}
objectives: {time: minimize, speed: maximize}
constraints:
  time: <= limit
  room: {check: memory <= room, because: "no room for {batch}", first: true}
  least: {check: batch * gpus >= 4}
"""

SEARCHES = [("exhaustive", {}), ("exhaustive", {"jit": "on"}), ("pareto", {}), ("optuna", {})]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "fits.yaml"
    path.write_text(SPACE)
    return path


def results(problem: Problem) -> list[Result]:
    """All solvers' results; the sampling one tries every design."""
    n = {"optuna": problem.size}
    return [search(problem, solver=name, options=o, n_trials=n.get(name)) for name, o in SEARCHES]


def nearest(problem: Problem, *, fits: bool) -> int:
    """The index of the nearest miss among designs that fit, or of the one that is nearest to fitting."""
    keys = []
    for index in range(problem.size):
        verdict = judge(problem, problem.design_at(problem.digits_of(index)))
        assert verdict.state is State.INFEASIBLE
        time, room, least = verdict.violations
        shares = (time / problem.inputs["limit"].value, least / 4.0)  # type: ignore[operator]
        if fits and room == 0.0:
            keys.append((sum(shares), 0.0, index))
        elif not fits:
            keys.append((room, sum(shares), index))
    return min(keys)[2]


def test_a_design_that_does_not_fit_is_never_the_nearest_miss_of_another_constraint(path: Path) -> None:
    problem = load(path, {"limit": "1.5 ms", "room": "7 GB"})
    wanted = nearest(problem, fits=True)
    for result in results(problem):
        miss = result.nearest_miss
        assert miss is not None
        assert (miss.index, set(miss.violations)) == (wanted, {"time"})
        assert isinstance(miss.metrics["speed"], float)
    unaware = load(path, {"limit": "1.5 ms", "room": "7 GB", "constraints.room.first": "false"})
    other = search(unaware).nearest_miss
    assert unaware != problem
    assert other is not None
    assert "room" in other.violations  # what the test would see if it did not come first


def test_where_nothing_fits_the_design_nearest_to_fitting_is_told_with_its_memory_alone(path: Path) -> None:
    problem = load(path, {"room": "1 GB"})
    wanted = nearest(problem, fits=False)
    for result in results(problem):
        miss = result.nearest_miss
        assert miss is not None
        assert (miss.index, miss.violations) == (wanted, {"room": 3e9})
        assert miss.nearness == 3.0
        told = {name for name, value in miss.metrics.items() if value is not None}
        assert told == {"memory", "weights", "cache"}
        assert all("room" not in r.constraints or r.constraints == ("room",) for r in result.relaxations)


def test_explaining_a_design_that_does_not_fit(path: Path) -> None:
    problem = load(path)
    design = problem.design_at(problem.digits({"batch": 8.0, "gpus": 1.0, "format": "wide"}))
    found = explain(problem, design)
    assert [step.name for step in found.metrics] == ["memory", "weights", "cache"]
    assert [margin.name for margin in found.margins] == ["room"]
    text = CliRunner().invoke(main, ["explain", str(path), "batch=8", "gpus=1", "format=wide"])
    assert text.exit_code == 1
    assert "time" not in text.output.replace("0 / time", "")
    assert "memory <= room: 16 GB is 6 GB over 10 GB, NOT met: no room for 8" in text.output
    data = json.loads(
        CliRunner()
        .invoke(main, ["explain", str(path), "batch=8", "gpus=1", "format=wide", "--format", "json"])
        .output
    )
    assert [metric["name"] for metric in data["metrics"]] == ["memory", "weights", "cache"]
    fits = explain(problem, problem.design_at(problem.digits({"batch": 1.0, "gpus": 1.0, "format": "wide"})))
    assert {step.name for step in fits.metrics} == set(problem.metrics)


@pytest.mark.parametrize(("solver", "name"), [("exhaustive", "designs.csv"), ("optuna", "trials.csv")])
def test_rows_of_designs_that_do_not_fit(path: Path, tmp_path: Path, solver: str, name: str) -> None:
    study = Study(load(path, {"limit": "20 ms"}), solver=solver, folder=tmp_path / "run")
    study.run(n_trials=32 if solver == "optuna" else None)
    rows = list(csv.DictReader((tmp_path / "run" / name).read_text().splitlines()))
    hidden = [row for row in rows if float(row["room violation [GB]"]) > 0]
    assert 0 < len(hidden) < len(rows) == 32
    told = ("time [ms]", "speed [1/s]", "time violation [ms]")
    assert not any(row[column] for row in hidden for column in told)
    assert all(row[column] for row in rows if row not in hidden for column in told)
    verify(tmp_path / "run")


def test_why_no_feasible_design_is_told_with_what_takes_the_room(path: Path) -> None:
    found = CliRunner().invoke(main, ["search", str(path), "--set", "room=1 GB", "--set", "limit=1 ms"])
    assert "nearest miss: memory 4 GB, 3 GB over <= 1 GB (no room for 1)" in found.output
    assert "weights  3 GB  75 %  <- bound" in found.output


def test_a_rule_that_no_design_meets_is_told_by_its_sentence(path: Path) -> None:
    rule = 'rules: {known: {check: "format == \'wide\' or gpus > 4", because: "{format} is not for {gpus}"}}\nmetrics:'
    path.write_text(SPACE.replace("metrics:", rule))
    found = CliRunner().invoke(main, ["search", str(path), "--set", "format=narrow"])
    assert "every design breaks a rule: narrow is not for {gpus}" in found.output
