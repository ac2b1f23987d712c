"""What ``dse search`` and ``dse explain`` say of the best design beside its values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Dse = Callable[..., Any]
Write = Callable[[str], Path]

SPACE = """\
dse: 1
name: parts
dimensions: {tp: [1, 2, 4, 8], pp: [1, 2]}
metrics:
  compute: {expr: "8 s / tp", unit: s}
  wire: {expr: "0.1 s * (tp - 1)", unit: ms}
  fixed: {expr: "0.5 s / pp", unit: s}
  bubble: {expr: "0 s", unit: s}
  talk: {unit: s, parts: [wire, fixed]}
  time: {unit: s, parts: [compute, talk, bubble], about: one optimizer step}
  mfu: {expr: "1 s / time", unit: percent, record: 50 percent}
objectives: {time: minimize}
"""

BEST = """\
WARNING: the mfu predicted, 51.28 %, is beyond the best that was measured, 50 %:
  treat it as the model's error
best design (minimize time)
  tp=8 pp=2
  time     1.95 s  one optimizer step
  mfu   51.2821 %
  time 1.95 s, bound by compute (51 %)
    compute     1 s  51 %  <- bound
    talk     0.95 s  49 %
      wire   700 ms  36 %
      fixed  0.25 s  13 %
    zero: bubble
"""


def test_the_best_design_is_taken_apart(dse: Dse, write: Write) -> None:
    space = write(SPACE)
    assert BEST in dse("search", space).out
    data = json.loads(dse("search", space, "--format", "json").out)
    (time,) = data["breakdown"]
    assert (time["metric"], time["bound"], time["zero"]) == ("time", "compute", ["bubble"])
    assert [part["metric"] for part in time["parts"][1]["parts"]] == ["wire", "fixed"]
    (beyond,) = data["beyond_record"]
    assert beyond.pop("value") == pytest.approx(1 / 1.95)
    assert beyond == {"metric": "mfu", "record": 0.5, "designs": 1, "index": 7}


def test_resume_says_the_same(dse: Dse, write: Write, tmp_path: Path) -> None:
    said = dse("search", write(SPACE), "--out", tmp_path / "run").out
    assert dse("resume", tmp_path / "run").out == said
    assert dse("verify", tmp_path / "run").code == 0


def test_explain(dse: Dse, write: Write) -> None:
    space = write(SPACE)
    out = dse("explain", space, "tp=8", "pp=2").out
    assert BEST[BEST.index("  time 1.95 s, bound") :].replace("\n  ", "\n")[2:] in out
    assert "WARNING: the mfu predicted, 51.28 %" in out
    data = json.loads(dse("explain", space, "tp=8", "pp=2", "--format", "json").out)
    assert data["breakdown"][0]["bound"] == "compute"
    assert data["beyond_record"][0]["metric"] == "mfu"
    assert "WARNING" not in dse("explain", space, "tp=4", "pp=2").out


def test_several_objectives_are_not_taken_apart(dse: Dse, write: Write) -> None:
    space = write(SPACE.replace("{time: minimize}", "{time: minimize, wire: minimize}"))
    out = dse("search", space).out
    assert "bound by" not in out
    told = " ".join(out.split())
    assert "WARNING: the mfu of 1 of 4 designs, at the furthest predicted, 51.28 %, is beyond" in told


def test_designs_near_the_best(dse: Dse, write: Write, tmp_path: Path) -> None:
    space = write(SPACE + "error: {time: 15 percent}\n")
    out = dse("search", space, "--out", tmp_path / "run").out
    assert "within 15 % of the best (the error of its prediction), time <= 2.2425 s:" in out
    assert "   time  what differs from the best design\n" in out
    assert "  2.2 s  pp=1\n" in out
    assert dse("resume", tmp_path / "run").out == out
    assert dse("verify", tmp_path / "run").code == 0
    rows = dse("search", space, "--format", "csv").out.splitlines()
    assert rows[0].startswith("index,tp,pp,compute [s]")
    assert [row[:5] for row in rows[1:]] == ["7,8,2", "6,8,1"]
    near = json.loads(dse("search", space, "--format", "json").out)["near"]
    assert (near["share"], near["count"], near["counted"], near["listed"]) == (0.15, 2, "exact", [6])
    assert "of the best" not in dse("search", space, "--within", "0").out
    assert (
        "within 1 % of the best, time <= 1.9695 s: no other design"
        in dse("search", space, "--within", "1%").out
    )
    ranked = dse("search", space, "--top", "2").out
    assert "best 2 designs by time" in ranked
    assert "2 designs, the best among them" in ranked
    assert "what differs" not in ranked
    refused = dse("search", space, "--within", "many")
    assert (refused.code, refused.out) == (2, "")
    assert "within must be a share below 1, such as '6 percent' or 0.06, but got 'many'" in refused.err


def test_inactive_dimensions_are_left_out_of_the_best_design(dse: Dse, write: Write) -> None:
    chunks = ', chunks: {choices: [1, 2], when: "pp > 2"}}\nmetrics:'
    found = dse("search", write(SPACE.replace("}\nmetrics:", chunks))).out
    assert "  tp=8 pp=2\n    (1 inactive dimension left out)\n" in found


def test_long_formulas_are_printed_when_asked_for(dse: Dse, monkeypatch: pytest.MonkeyPatch) -> None:
    from dse.cli.commands import explain

    design = (
        "detector=Det-L",
        "format=int8-QAT",
        "pruning=none",
        "distill=true",
        "engine=optimized",
        "hardware=npu",
    )
    whole = dse("explain", "camera", *design).out
    monkeypatch.setattr(explain, "LONG", 5)
    short = dse("explain", "camera", *design)
    assert "detector.accuracy" in whole
    assert "detector.accuracy" not in short.out
    assert "--full prints them" in short.err
    assert dse("explain", "camera", *design, "--full").out == whole


def test_dimensions_are_fixed_for_one_search(dse: Dse, write: Write, tmp_path: Path) -> None:
    space = write(SPACE)
    ran = dse("search", space, "--fix", "tp=1,2", "--fix", "pp=2", "--out", tmp_path / "run")
    assert "only tp=1,2 & pp=2" in ran.out
    assert "  tp=2 pp=2\n" in ran.out
    assert dse("resume", tmp_path / "run").out == ran.out
    assert dse("verify", tmp_path / "run").code == 0
    assert "unknown dimension 'tpp'; did you mean 'tp'?" in dse("search", space, "--fix", "tpp=1").err
    assert "no value '3'" in dse("search", space, "--fix", "tp=3").err


def test_the_rows_that_an_input_may_name_are_listed(dse: Dse) -> None:
    rows = dse("show", "training", "--rows", "model").out
    assert "llama-3.1-405b" in rows
    (first, *_) = json.loads(dse("show", "camera", "--rows", "hardware", "--format", "json").out)
    assert first == {"hardware": "cpu", "bandwidth": 8.0, "engines": ["naive", "optimized"]}
    assert (
        "'models' has no table of rows; did you mean 'model'?"
        in dse("show", "training", "--rows", "models").err
    )


def test_inputs_may_be_given_as_numbers_from_python() -> None:
    from dse.errors import InputError
    from dse.problem.library import load

    assert load("training", {"n_gpus": 64, "redesign": True}).inputs["n_gpus"].value == 64.0
    with pytest.raises(InputError, match="must be a text, number or truth value"):
        load("training", {"n_gpus": [64]})
