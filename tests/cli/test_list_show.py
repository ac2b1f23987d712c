"""``dse list``, ``show`` and ``schema``."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
METRIC = "metrics: {m: {expr: d0, unit: 1}}\nobjectives: {m: minimize}\n"
Dse = Callable[..., Any]


def test_list_has_the_camera(dse: Dse) -> None:
    assert re.search(
        r"^camera +480  Object detector on a surveillance camera$", dse("list").out, re.MULTILINE
    )
    (camera,) = [row for row in json.loads(dse("list", "--format", "json").out) if row["name"] == "camera"]
    assert camera["designs"] == 480
    assert camera["path"].endswith("space.yaml")
    assert next(csv.DictReader(io.StringIO(dse("list", "--format", "csv").out)))["name"]


def test_show(dse: Dse, snapshot: Callable[[str, str], None]) -> None:
    ran = dse("show", "camera", "--count")
    assert (ran.code, ran.err) == (0, "")
    snapshot("show_camera", ran.out)


def test_show_as_data(dse: Dse) -> None:
    shown = json.loads(dse("show", "camera", "--count", "--format", "json").out)
    assert shown["designs"] == 480
    assert shown["legal"] == {"all": 312, "ml": 120, "systems": 7, "mlsys": 312}
    assert [d["count"] for d in shown["dimensions"]] == [4, 5, 3, 2, 2, 2]
    assert shown["rules"][0]["because"] == "{hardware} cannot run {format}"
    rows = list(csv.DictReader(io.StringIO(dse("show", "camera", "--format", "csv").out)))
    assert {row["kind"] for row in rows} >= {
        "input",
        "dimension",
        "rule",
        "let",
        "metric",
        "objective",
        "constraint",
        "team",
    }


def test_settings_show_up(dse: Dse) -> None:
    shown = json.loads(dse("show", "camera", "--set", "max_latency=5 ms", "--format", "json").out)
    assert {"name": "max_latency", "value": "5 ms", "unit": "ms"} in shown["inputs"]


def test_a_huge_space_is_shown_with_its_exact_size(dse: Dse, write: Callable[..., Path]) -> None:
    dimensions = "\n".join(f"  d{i}: [0, 1]" for i in range(200))
    path = write(f"dse: 1\nname: huge\ndimensions:\n{dimensions}\n{METRIC}")
    ran = dse("show", path)
    assert ran.code == 0
    assert f"{2**200:,} (about 10^60) designs = 2^200" in " ".join(ran.out.split())
    counted = json.loads(dse("show", path, "--count", "--format", "json").out)
    assert counted["legal"] == {"all": 2**200}


def test_rules_that_couple_too_much_are_refused_politely(dse: Dse, write: Callable[..., Path]) -> None:
    dimensions = "\n".join(f"  d{i}: {{range: [1, 99]}}" for i in range(30))
    coupled = " + ".join(f"log(d{i} + 1.5) * {i + 1}" for i in range(30))
    path = write(
        f"dse: 1\nname: coupled\ndimensions:\n{dimensions}\n{METRIC}"
        f"rules: {{sum: {{check: '{coupled} < 1e3', because: too much}}}}\n"
    )
    refused = dse("show", path, "--count")
    assert refused.code == 2
    assert "all: the legal designs cannot be counted" in refused.err


def test_a_continuous_space_and_conditions(dse: Dse, write: Callable[..., Path]) -> None:
    path = write(
        "dse: 1\nname: c\ndimensions:\n  on: [false, true]\n"
        "  share: {range: [0.5, 1.5]}\n  n: {choices: [1, 2, 3, 4], when: on, otherwise: 2}\n"
        + METRIC.replace("d0", "n")
    )
    out = dse("show", path).out
    assert "a continuous space" in out
    assert "any from 0.5 to 1.5" in out
    assert "1, 2, 3, 4  (4)  when on, otherwise 2" in out
    assert dse("show", path, "--count").code == 2


def test_a_team_called_all_is_not_the_whole_space(dse: Dse, write: Callable[..., Path]) -> None:
    path = write(
        "dse: 1\nname: n\ndimensions: {d0: [1, 2, 3]}\n" + METRIC + "constraints: {m: '<= 1'}\n"
        "teams: {all: {d0: [2, 3]}, rest: {d0: 1}}\n"
    )
    shown = json.loads(dse("show", path, "--count", "--format", "json").out)
    assert shown["legal"] == {"whole space": 3, "all": 2, "rest": 1}
    found = dse("search", path, "--team", "all")
    assert found.code == 1
    assert "team all\n" in found.out
    assert "unlocked by freeing d0: 1 feasible design" in found.out
    assert "team all" not in dse("search", path).out


def test_schema_is_json_schema(dse: Dse) -> None:
    schema = json.loads(dse("schema").out)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert {"dimensions", "metrics", "teams"} <= set(schema["properties"])


def test_solvers(dse: Dse) -> None:
    out = dse("solvers").out
    assert all(f"\n{name} " in out for name in ("auto", "exhaustive", "optuna", "pareto"))
    found = {row["name"]: row["promise"] for row in json.loads(dse("solvers", "--format", "json").out)}
    assert (found["exhaustive"], found["pareto"], found["optuna"]) == ("exact", "exact", "sampling")
    assert dse("solvers", "--format", "csv").out.startswith("name,promise,needs,title\n")


def test_a_broken_plugin_is_named_and_the_others_still_work(tmp_path: Path) -> None:
    folder = tmp_path / "broken-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", encoding="utf-8")
    (folder / "entry_points.txt").write_text(
        "[dse.solvers]\nworse = no_such_module:Worse\n", encoding="utf-8"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words = [sys.executable, "-m", "dse", "solvers"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0
    assert "pareto" in done.stdout
    assert "worse" not in done.stdout
    assert done.stderr.startswith("broken plugin worse (no_such_module:Worse): ")


def test_an_input_that_names_a_row(
    dse: Dse, write: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = write(ROWS)
    assert "model  a  (a row of models)" in dse("show", space).out
    ran = dse("search", space, "--set", "model=c")
    assert (ran.code, ran.out) == (2, "")
    assert "--set model=c: input 'model' names a row of models, but got 'c'; known: a, b" in ran.err
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reading.py").write_text("def read(path):\n    return {'layers': 7}\n", encoding="utf-8")
    (tmp_path / "mine.json").touch()
    assert "n  14" in dse("search", space, "--set", "model=./mine.json").out
    for command in ("show", "check"):
        assert dse(command, space, "--set", "model=./mine.json").code == 0
        refused = dse(command, space, "--set", "model=./mine.json", "--no-code")
        assert (refused.code, refused.out) == (2, "")
        assert "'./mine.json' is read by ./reading.py:read, and no code may be run here" in refused.err
        assert dse(command, space, "--no-code").code == 0


ROWS = """\
dse: 1
name: rows
inputs: {model: {table: models, default: a}}
tables: {models: {columns: {layers: 1}, rows: {a: [1], b: [2]}, import: "./reading.py:read"}}
dimensions: {d: [2, 3]}
metrics: {n: {expr: "model.layers * d", unit: 1}}
objectives: {n: minimize}
"""
