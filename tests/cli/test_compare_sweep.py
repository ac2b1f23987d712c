"""``dse compare``, ``sweep`` and ``plot`` of a space."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Dse = Callable[..., Any]
Snapshot = Callable[[str, str], None]


def test_the_camera_teams(dse: Dse, snapshot: Snapshot) -> None:
    ran = dse("compare", "camera", "--solver", "exhaustive")
    assert (ran.code, ran.err) == (0, "")
    snapshot("compare_camera", ran.out)


def test_why_and_what_would_help(dse: Dse) -> None:
    out = " ".join(dse("compare", "camera").out.split())
    ml, systems = out.split("systems: no feasible design")
    assert "ml: no feasible design among 120 legal designs" in ml
    assert "lowest latency of a design that meets the rest is 57 ms, 47 ms over <= 10 ms" in ml
    assert "unlocked by freeing engine and hardware: 8 feasible designs" in ml
    assert "accuracy 89.8 %, 0.2 % under >= 90 %" in systems
    assert "unlocked by freeing distill: 1 feasible design" in systems
    assert "unlocked by freeing format: 1 feasible design" in systems
    assert "all 8 feasible designs share: detector = Det-L;" in systems


def test_out_writes_tables_and_plots(dse: Dse, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    ran = dse("compare", "camera", "--out", folder)
    assert ran.code == 0
    written = {"comparison.json", "front.csv", "front.html", "front.png", "front.svg", "teams.csv"}
    assert {path.name for path in folder.iterdir()} == written
    assert all(f"wrote {folder / name}" in ran.err for name in written)
    teams = list(csv.DictReader(io.StringIO((folder / "teams.csv").read_text(encoding="utf-8"))))
    assert [(t["team"], t["legal"], t["feasible"]) for t in teams] == [
        ("ml", "120", "0"),
        ("systems", "7", "0"),
        ("mlsys", "312", "8"),
    ]
    assert teams[2]["best accuracy [percent]"] == "91.9"
    assert [(t["unlocked by"], t["nearest miss"]) for t in teams] == [
        ("engine + hardware", "accuracy 86.1 %, 3.9 % under >= 90 %"),
        ("format or distill", "accuracy 89.8 %, 0.2 % under >= 90 %"),
        ("", ""),
    ]


def test_every_front_csv_is_written_alike(dse: Dse, tmp_path: Path) -> None:
    assert dse("compare", "camera", "--team", "mlsys", "--out", tmp_path / "teams").code == 0
    assert dse("search", "camera", "--team", "mlsys", "--out", tmp_path / "run").code == 0
    searched = (tmp_path / "run" / "front.csv").read_text(encoding="utf-8").splitlines()
    compared = (tmp_path / "teams" / "front.csv").read_text(encoding="utf-8").splitlines()
    assert compared == [f"team,{searched[0]}", *(f"mlsys,{line}" for line in searched[1:])]
    assert dse("search", "camera", "--team", "mlsys", "--format", "csv").out.splitlines() == searched
    table = dse("compare", "camera", "--team", "mlsys", "--format", "csv").out
    assert table == (tmp_path / "teams" / "teams.csv").read_text(encoding="utf-8")


def test_teams_that_lose_designs_in_different_ways(dse: Dse, write: Callable[..., Path]) -> None:
    path = write(
        "dse: 1\nname: n\ndimensions: {a: [0, 1, 2, 3]}\n"
        "metrics: {m: {expr: 1 / a, unit: 1}, k: {expr: (a - 2) / (a - 2), unit: 1}}\n"
        "objectives: {m: minimize}\nconstraints: {k: '>= 0'}\n"
        "teams: {one: {a: [1]}, most: {a: [0, 1]}, rest: {a: [2, 3]}}\n"
    )
    rows = [line.split() for line in dse("compare", path).out.splitlines()]
    assert ["lost", "to", "m", "finite", "0", "1", "0"] in rows
    assert ["failed", "0", "0", "1"] in rows
    (one, most, rest) = csv.DictReader(io.StringIO(dse("compare", path, "--format", "csv").out))
    assert [row["lost to m finite"] for row in (one, most, rest)] == ["0", "1", "0"]


def test_compare_as_data(dse: Dse) -> None:
    found = json.loads(dse("compare", "camera", "--format", "json").out)
    unlocks = {
        team["team"]: {tuple(u["dimensions"]): u["feasible"] for u in team["unlocks"]}
        for team in found["teams"]
    }
    assert unlocks == {
        "ml": {("engine", "hardware"): 8},
        "systems": {("format",): 1, ("distill",): 1},
        "mlsys": {},
    }
    assert found["teams"][2]["best"] == {"accuracy": 0.919, "latency": 0.00575}
    assert dse("compare", "camera", "--format", "csv").out.count("\n") == 4


def test_chosen_and_combined_teams(dse: Dse) -> None:
    ran = dse("compare", "camera", "--team", "ml & systems", "--team", "ml | systems")
    assert ran.code == 1
    assert "ml & systems  ml | systems" in ran.out
    assert "did you mean 'mlsys'?" in dse("compare", "camera", "--team", "mlsis").err
    assert dse("compare", "camera", "--team", "ml", "--team", "ml").out.count("ml: ") == 1


def test_a_space_without_teams(dse: Dse, write: Callable[..., Path]) -> None:
    path = write(
        "dse: 1\nname: n\ndimensions: {a: [1]}\nmetrics: {m: {expr: a, unit: 1}}\nobjectives: {m: minimize}\n"
    )
    ran = dse("compare", path)
    assert ran.code == 2
    assert "no teams" in ran.err


def test_many_teams_wrap_into_blocks(dse: Dse, write: Callable[..., Path]) -> None:
    teams = "".join(f"  a_rather_long_team_{i}: {{a: {i}}}\n" for i in range(1, 9))
    path = write(
        f"dse: 1\nname: n\ndimensions: {{a: [{', '.join(map(str, range(1, 9)))}]}}\n"
        f"metrics: {{m: {{expr: a, unit: 1}}}}\nobjectives: {{m: minimize}}\nteams:\n{teams}"
    )
    out = dse("compare", path).out
    assert max(map(len, out.splitlines())) <= 80
    assert out.count("best m") == 3


SINGLE = """\
dse: 1
name: single
inputs: {n_gpus: 8, limit: 100 ms}
tables:
  parts:
    columns: {work: ms}
    rows: {small: [40], large: [200]}
dimensions: {part: {table: parts}, split: [1, 2, 4]}
metrics: {time: {expr: part.work * 8 / n_gpus / split + split * 5 ms, unit: ms}}
objectives: {time: minimize}
constraints: {time: "<= limit"}
"""


def test_sweep_of_one_objective(dse: Dse, write: Callable[..., Path], snapshot: Snapshot) -> None:
    ran = dse(
        "sweep", write(SINGLE), "--set", "n_gpus=1,8,16,32", "--set", "limit=61 ms", "--solver", "exhaustive"
    )
    assert (ran.code, ran.err) == (0, "")
    snapshot("sweep_single", ran.out)


def test_sweep_as_data(dse: Dse, write: Callable[..., Path]) -> None:
    path = write(SINGLE)
    words = ["--set", "n_gpus=8,16", "--set", "limit=10 ms,100 ms"]
    rows = list(csv.DictReader(io.StringIO(dse("sweep", path, *words, "--format", "csv").out)))
    assert [(r["n_gpus"], r["limit"], r["feasible"], r["best time [ms]"], r["split"]) for r in rows] == [
        ("8", "10 ms", "0", "", ""),
        ("8", "100 ms", "4", "30.0", "2"),
        ("16", "10 ms", "0", "", ""),
        ("16", "100 ms", "5", "20.0", "2"),
    ]
    found = json.loads(dse("sweep", path, *words, "--format", "json").out)
    assert found[1]["settings"] == {"n_gpus": "8", "limit": "100 ms"}
    assert found[1]["best"] == {"time": 0.03}


def test_sweep_of_several_objectives(dse: Dse) -> None:
    ran = dse("sweep", "camera", "--set", "max_latency=5 ms, 10 ms")
    assert ran.code == 0
    assert "10 ms    312         8         91.9 %       5.75 ms      2" in ran.out
    assert dse("sweep", "camera", "--set", "max_latency=1 ms,2 ms").code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to sweep"),
        (["--set", "max_latency=5 ms"], "nothing to sweep"),
        (["--set", "max_latency=5 ms,"], "is empty"),
        (["--set", "max_latency=5 ms", "--set", "max_latency=6 ms"], "set twice"),
        (["--set", "max_latency=5 ms,6"], "write 6 ms"),
    ],
)
def test_sweep_mistakes(dse: Dse, words: list[str], said: str) -> None:
    ran = dse("sweep", "camera", *words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_plot_of_a_space(dse: Dse, tmp_path: Path) -> None:
    assert dse("plot", "camera", "-o", tmp_path / "x.svg").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["x.svg"]
    assert "did you mean 'png'?" in dse("plot", "camera", "-o", tmp_path / "x.jpg").err
    assert dse("plot", "camera", "--team", "ml", "-o", tmp_path / "y.svg").code == 1


def test_the_axes_of_a_plot(dse: Dse, tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    words = ["--team", "mlsys", "-o", path]
    assert dse("plot", "camera", "--x", "memory", "--y", "accuracy", *words).code == 0
    text = path.read_text(encoding="utf-8")
    assert "memory [MB]" in text
    assert "latency [ms]" not in text
    assert "did you mean 'memory'?" in dse("plot", "camera", "--y", "memroy", *words).err


def test_a_plot_goes_into_a_folder(dse: Dse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"camera-front.png", "camera-front.svg", "camera-front.html"}
    ran = dse("plot", "camera", "-o", ".")
    assert (ran.code, ran.out) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == names
    (tmp_path / "sub").mkdir()
    assert dse("plot", "camera", "-o", tmp_path / "sub").code == 0
    assert {path.name for path in (tmp_path / "sub").iterdir()} == names
    assert "the name of the file is empty" in dse("plot", "camera", "-o", "").err
    ran = dse("plot", "camera", "-o", tmp_path / "camera-front.svg" / "x.svg")
    assert (ran.code, ran.out) == (2, "")
    assert f"cannot write to {tmp_path / 'camera-front.svg'}: it is a file" in ran.err


def test_a_plot_without_a_front_says_why(dse: Dse, tmp_path: Path) -> None:
    ran = dse("plot", "camera", "--team", "ml", "-o", tmp_path / "x.svg")
    assert ran.code == 1
    assert ran.out == dse("compare", "camera", "--team", "ml").out
    run = tmp_path / "run"
    searched = dse("search", "camera", "--team", "ml", "--out", run)
    ran = dse("plot", run, "-o", tmp_path / "y.svg")
    assert (ran.code, ran.out) == (1, searched.out)


def test_out_spares_what_is_not_its_own(dse: Dse, tmp_path: Path) -> None:
    (tmp_path / "front.csv").write_text("mine", encoding="utf-8")
    ran = dse("compare", "camera", "--out", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert f"{tmp_path} holds other files (front.csv); give another folder, or --force" in ran.err
    assert (tmp_path / "front.csv").read_text(encoding="utf-8") == "mine"
    assert dse("compare", "camera", "--out", tmp_path, "--force").code == 0
    assert dse("compare", "camera", "--out", tmp_path).code == 0  # its own by now
    marker = tmp_path / "comparison.json"
    marker.write_text(marker.read_text(encoding="utf-8").replace('"camera"', '"other"'), encoding="utf-8")
    assert "holds the results of 'other', not of 'camera'" in dse("compare", "camera", "--out", tmp_path).err


def test_out_is_made_sure_of_before_the_search(
    dse: Dse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unwanted(*words: object, **options: object) -> None:
        raise AssertionError

    monkeypatch.setattr("dse.study.compare.compare", unwanted)
    (tmp_path / "file").touch()
    assert "cannot write to" in dse("compare", "camera", "--out", tmp_path / "file" / "x").err
    assert "is a file, but a folder is needed" in dse("compare", "camera", "--out", tmp_path / "file").err
    assert "the name of the folder is empty" in dse("compare", "camera", "--out", "").err
    assert dse("compare", "camera", "--out", tmp_path / "a" / "b").code == 70
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("team", "said"),
    [
        ("(ml | systems) & mlsys", "parentheses are not supported in '(ml | systems) & mlsys'"),
        ("ml &", "a team is missing in 'ml &'"),
        ("| ml", "a team is missing in '| ml'"),
        ("", "a team is missing in ''"),
    ],
)
def test_combinations_that_cannot_be_read(dse: Dse, team: str, said: str) -> None:
    for command in ("search", "compare"):
        ran = dse(command, "camera", "--team", team)
        assert (ran.code, ran.out) == (2, "")
        assert said in ran.err


def test_a_setting_is_reported_as_it_was_given(dse: Dse) -> None:
    assert dse("show", "camera", "--set", "inputs.zz=5 ms").err.startswith("--set inputs.zz=5 ms: ")
    assert dse("show", "camera", "--set", "inputs.max_latency=5").err.startswith(
        "--set inputs.max_latency=5: "
    )


def test_a_sweep_is_written(dse: Dse, tmp_path: Path) -> None:
    words = ("sweep", "camera", "--set", "max_latency=6 ms,10 ms")
    folder = tmp_path / "swept"
    assert dse(*words, "--out", folder).code == 0
    assert dse(*words, "--out", folder).code == 0
    assert (folder / "sweep.csv").read_text(encoding="utf-8") == dse(*words, "--format", "csv").out
    found = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
    assert found["values"] == json.loads(dse(*words, "--format", "json").out)
    (tmp_path / "notes").touch()
    ran = dse(*words, "--out", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "holds other files (notes, swept)" in ran.err


def test_teams_stand_side_by_side_beside_long_constraints(dse: Dse) -> None:
    ran = dse(
        "compare", "serving", "--set", "hardware=t4", "--set", "model=llama-3.2-1b", "--format", "table"
    )
    heads = [line.split() for line in ran.out.splitlines()]
    assert ["ml", "systems", "mlsys"] in heads
    assert any(words[:3] == ["lost", "to", "memory"] for words in heads)


def test_values_that_are_kept_are_no_team(dse: Dse) -> None:
    ran = dse("search", "camera", "--fix", "distill=true")
    assert "only distill=true" in ran.out.splitlines()
    assert "team distill=true" not in ran.out
