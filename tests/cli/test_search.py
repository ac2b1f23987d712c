"""``dse search``: the front, the account of all designs, and the explanation when nothing is feasible."""

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


def test_the_front(dse: Dse, snapshot: Snapshot) -> None:
    ran = dse("search", "camera", "--solver", "exhaustive")
    assert (ran.code, ran.err) == (0, "")
    snapshot("search_camera", ran.out)


@pytest.mark.parametrize("team", ["ml", "systems"])
def test_nothing_feasible_is_explained(dse: Dse, snapshot: Snapshot, team: str) -> None:
    ran = dse("search", "camera", "--team", team, "--solver", "exhaustive")
    assert (ran.code, ran.err) == (1, "")
    snapshot(f"search_{team}", ran.out)


def test_auto_says_what_it_picked(dse: Dse) -> None:
    out = " ".join(dse("search", "camera").out.split())
    assert "auto chose exhaustive: " in out or "auto chose pareto: " in out


def test_the_best_designs_of_one_objective(dse: Dse) -> None:
    ran = dse("search", "camera", "--top", "3", "--objective", "latency", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert [(row["accuracy [percent]"], row["latency [ms]"]) for row in rows] == [
        ("90.3", "5.75"),
        ("90.9", "5.75"),
        ("90.4", "8.0"),
    ]
    table = dse("search", "camera", "--top", "3").out
    assert "best 3 designs by accuracy" in table
    assert "91.3 %" in table


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--objective", "latency"], "give --top K as well"),
        (["--top", "2", "--objective", "latncy"], "unknown objective 'latncy'; did you mean 'latency'?"),
        (["--team", "mlsy"], "unknown team 'mlsy'; did you mean 'mlsys'?"),
        (["--solver", "exhastive"], "did you mean 'exhaustive'?"),
        (["--solver", "optuna", "--option", "sampla=tpe"], "sampla"),
    ],
)
def test_mistakes(dse: Dse, words: list[str], said: str) -> None:
    ran = dse("search", "camera", *words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_csv_is_clean(dse: Dse) -> None:
    ran = dse("search", "camera", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert [(row["index"], row["pruning"], row["distill"], row["latency [ms]"]) for row in rows] == [
        ("319", "none", "true", "8.0"),
        ("327", "structured", "true", "5.75"),
    ]
    nothing = dse("search", "camera", "--team", "ml", "--format", "csv")
    assert nothing.code == 1
    assert nothing.out.count("\n") == 1  # the header alone
    assert "nearest miss" in nothing.err


def test_json_is_the_result(dse: Dse) -> None:
    found = json.loads(dse("search", "camera", "--format", "json").out)
    assert found["accounting"]["total"] == 480
    assert [point["index"] for point in found["front"]] == [319, 327]
    assert (
        sum(found["accounting"][part] for part in ("outside", "illegal", "evaluated", "pruned", "unvisited"))
        == 480
    )


def test_json_says_what_would_help(dse: Dse) -> None:
    found = json.loads(dse("search", "camera", "--team", "systems", "--format", "json").out)
    assert {tuple(u["dimensions"]): u["feasible"] for u in found["unlocks"]} == {
        ("format",): 1,
        ("distill",): 1,
    }
    assert found["departures"]
    (systems,) = json.loads(dse("compare", "camera", "--team", "systems", "--format", "json").out)["teams"]
    assert {key: found[key] for key in ("unlocks", "departures")} == {
        key: systems[key] for key in ("unlocks", "departures")
    }


BECAUSE = """\
dse: 1
name: because
dimensions: {size: [3, 5], pace: {choices: [20, 40], unit: ms}, kind: [plain, odd]}
metrics: {time: {expr: size * pace, unit: ms}}
objectives: {time: minimize}
constraints:
  fits: {check: size <= 2, because: "{size} of {kind} in {pace} take {time}"}
  even: {check: "kind == 'odd'", because: "{kind} is not odd"}
"""


def test_a_constraints_sentence_is_the_same_everywhere(dse: Dse, write: Callable[..., Path]) -> None:
    path = write(BECAUSE)
    words = "size=3 pace='20 ms' kind=plain"
    found = " ".join(dse("search", path, "--set", "constraints.even.check=size <= 1").out.split())
    assert "size <= 2: 1 over <= 2 (3 of plain in 20 ms take 60 ms); " in found
    assert "size <= 1: 2 over <= 1 (plain is not odd)" in found
    assert words in found
    assert "Template" not in found
    taken = " ".join(dse("explain", path, "size=3", "pace=20 ms", "kind=plain").out.split())
    assert "NOT met: 3 of plain in 20 ms take 60 ms" in taken
    assert "kind == 'odd': does not hold: plain is not odd" in taken


def test_a_condition_that_does_not_hold_has_its_sentence(dse: Dse, write: Callable[..., Path]) -> None:
    path = write(
        BECAUSE.replace("[plain, odd]", "[plain, dull]").replace(
            "kind == 'odd'", "kind not in ['plain', 'dull']"
        )
    )
    found = " ".join(dse("search", path, "--set", "constraints.fits.check=size <= 4").out.split())
    assert "does not hold (plain is not odd)" in found


def test_designs_that_fail_or_are_infinitely_far_off(dse: Dse, write: Callable[..., Path]) -> None:
    path = write(
        "dse: 1\nname: far\ndimensions: {a: [0, 1], n: {range: [1, 9]}}\n"
        "metrics: {m: {expr: n / (a - 1), unit: 1}, k: {expr: a / a, unit: 1}}\n"
        "objectives: {m: maximize, k: maximize}\nconstraints: {k: '<= 0', m: '<= 2'}\n"
        "teams: {fails: {a: 0}, far: {a: 1}}\n"
    )
    fails = dse("search", path, "--team", "fails").out
    assert "every design fails" in fails
    assert "failed designs, 5 of 9" in fails
    far = dse(
        "search",
        path,
        "--team",
        "far",
        "--set",
        "metrics.m.expr=n / (1 - a)",
        "--set",
        "objectives.m=minimize",
    ).out
    assert "no design comes near: each is infinitely far off, or fails" in far


def test_the_ranking_is_named_after_resuming(dse: Dse, tmp_path: Path) -> None:
    words = ["--top", "2", "--objective", "latency"]
    searched = dse("search", "camera", *words, "--out", tmp_path / "run")
    assert "best 2 designs by latency" in searched.out
    assert dse("resume", tmp_path / "run").out == searched.out


CODED = """\
dse: 1
name: coded
dimensions: {a: [1, 2]}
metrics: {m: {unit: 1}}
objectives: {m: minimize}
cost: ./cost.py:cost
"""


@pytest.mark.parametrize("command", ["resume", "verify", "plot"])
def test_code_of_a_run_can_be_refused(
    dse: Dse, write: Callable[..., Path], tmp_path: Path, command: str
) -> None:
    path, ran = write(CODED), tmp_path / "ran"
    write(f"open({str(ran)!r}, 'w').close()\ndef cost(a):\n    return {{'m': a * 2}}\n", "cost.py")
    run = tmp_path / "run"
    assert dse("search", path, "--out", run).code == 0
    ran.unlink()
    refused = dse(command, run, "--no-code")
    assert (refused.code, refused.out) == (2, "")
    assert "needs code (./cost.py:cost), which may not be imported" in refused.err
    assert not ran.exists()
    output = ["-o", tmp_path / "x.svg"] if command == "plot" else []
    assert dse(command, run, *output).code == 0
    assert ran.exists()
    assert dse("search", "camera", "--out", tmp_path / "camera").code == 0
    assert dse(command, tmp_path / "camera", "--no-code", *output).code == 0


def test_settings_change_the_answer_and_are_shown(dse: Dse) -> None:
    ran = dse("search", "camera", "--set", "max_latency=5 ms")
    assert ran.code == 1
    assert "with max_latency = 5 ms" in ran.out
    variant = dse("search", "camera", "--team", "systems", "--set", "tables.formats.int8-PTQ.loss=1 percent")
    assert variant.code == 0
    assert "90.8 %" in variant.out
    assert "8 ms" in variant.out
    fp16 = dse("search", "camera", "--team", "systems", "--set", "tables.rates.npu.fp16=1000 Gop/s")
    assert fp16.code == 1


def test_sampling(dse: Dse) -> None:
    ran = dse(
        "search", "camera", "--solver", "optuna", "--sampler", "random", "--n-trials", "40", "--seed", "3"
    )
    assert ran.code in (0, 1)
    assert "40 trials" in " ".join(ran.out.split())
    assert "share:" not in ran.out
    assert (
        ran.out
        == dse(
            "search", "camera", "--solver", "optuna", "--sampler", "random", "--n-trials", "40", "--seed", "3"
        ).out
    )


def test_a_run_is_kept_resumed_verified_and_drawn(dse: Dse, tmp_path: Path) -> None:
    run = tmp_path / "run"
    searched = dse("search", "camera", "--out", run)
    assert searched.code == 0
    assert searched.err == f"kept in {run}; check with dse verify {run}\n"
    assert (run / "manifest.json").is_file()
    assert (run / "front.csv").is_file()
    resumed = dse("resume", run)
    assert resumed.code == 0
    assert resumed.out == searched.out
    verified = dse("verify", run)
    assert verified.code == 0, verified.err
    assert verified.out.startswith(f"verified: {run} (camera)")
    assert "2 of 2 front points evaluated again" in verified.out
    drawn = dse("plot", run, "-o", tmp_path / "front.svg")
    assert drawn.code == 0
    assert (tmp_path / "front.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
    assert dse("search", run).code == 2
    assert dse("plot", run, "--team", "ml").code == 2


def test_a_result_that_does_not_hold(dse: Dse, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert dse("search", "camera", "--out", run).code == 0
    path = run / "result.json"
    path.write_text(path.read_text(encoding="utf-8").replace("0.919", "0.929"), encoding="utf-8")
    ran = dse("verify", run)
    assert (ran.code, ran.out) == (4, "")
    assert "front point 319: its objectives are" in ran.err


def test_another_search_does_not_fit_into_the_folder(dse: Dse, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert dse("search", "camera", "--out", run).code == 0
    other = dse("search", "camera", "--team", "ml", "--out", run)
    assert other.code == 2
    assert "team" in other.err


@pytest.mark.parametrize("command", ["resume", "verify"])
def test_what_is_no_run(dse: Dse, tmp_path: Path, command: str) -> None:
    ran = dse(command, tmp_path)
    assert ran.code == 2
    assert "has no manifest.json" in ran.err
    assert "does not exist" in dse(command, tmp_path / "nothing").err
