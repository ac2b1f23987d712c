"""``dse explain``: the tree, the verdict, and what is filled in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Dse = Callable[..., Any]

BEST = "detector=Det-L format=int8-QAT pruning=structured distill=true engine=optimized hardware=npu".split()


def changed(**values: str) -> list[str]:
    """The best design with other values."""
    return [f"{name}={values.get(name, value)}" for name, _, value in (word.partition("=") for word in BEST)]


def test_a_feasible_design(dse: Dse, snapshot: Callable[[str, str], None]) -> None:
    ran = dse("explain", "camera", *BEST)
    assert (ran.code, ran.err) == (0, "")
    assert "max: compute 5.25 ms > transfer 2.34375 ms  (compute wins)" in ran.out
    snapshot("explain_feasible", ran.out)


def test_an_infeasible_design(dse: Dse, snapshot: Callable[[str, str], None]) -> None:
    ran = dse(
        "explain", "camera", *changed(engine="naive", hardware="cpu", pruning="unstructured", format="fp32")
    )
    assert ran.code == 1
    assert "latency <= max_latency: 304.5 ms is 294.5 ms over 10 ms, NOT met" in ran.out
    snapshot("explain_infeasible", ran.out)


def test_an_illegal_design(dse: Dse, snapshot: Callable[[str, str], None]) -> None:
    ran = dse("explain", "camera", *changed(format="fp16", engine="naive"))
    assert ran.code == 1
    assert ran.out.endswith("illegal: npu cannot run fp16; the naive engine does not run on npu\n")
    snapshot("explain_illegal", ran.out)


def test_an_index_is_the_same_design(dse: Dse) -> None:
    assert dse("explain", "camera", "--index", "327").out == dse("explain", "camera", *BEST).out
    assert dse("explain", "camera", "--index", "480").code == 2
    assert dse("explain", "camera", "--index", "1", "distill=true").code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (changed(format="int8-QTA"), "dimension 'format' has no value 'int8-QTA'; did you mean 'int8-QAT'?"),
        ([*BEST, "detectr=Det-L"], "unknown dimension 'detectr'; did you mean 'detector'?"),
        (BEST[:4], "no value for engine, hardware; add for example engine=naive hardware=cpu"),
        (["Det-L"], "expected name=value, but got 'Det-L'"),
        (changed(distill="yes"), "no value 'yes'"),
    ],
)
def test_mistakes(dse: Dse, words: list[str], said: str) -> None:
    ran = dse("explain", "camera", *words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_a_team_fills_in_what_it_fixes(dse: Dse) -> None:
    words = [word for word in BEST if not word.startswith(("engine", "hardware"))]
    ran = dse("explain", "camera", *words, "--team", "ml")
    assert ran.code == 1
    assert "latency = 57 ms" in ran.out
    assert "engine=naive hardware=cpu" in ran.out
    outside = dse("explain", "camera", *BEST, "--team", "ml")
    assert outside.code == 1
    assert "outside: team ml may not choose this design" in outside.err


def test_an_inactive_dimension_is_filled_in(dse: Dse, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    dse("new", "mine", "-o", path)
    words = "model=large chip=new precision=fp8 batch=128".split()
    ran = dse("explain", path, *words, "speculate=false")
    assert ran.code == 0
    assert "proposed=2" in ran.out
    assert "if: speculate is false  (0 taken)" in ran.out
    ran = dse("explain", path, *words, "speculate=true")
    assert ran.code == 2
    assert "no value for proposed" in ran.err
    illegal = dse("explain", path, *words, "speculate=false", "proposed=8")
    assert illegal.code == 1
    assert "inactive" in illegal.out


def test_as_data(dse: Dse) -> None:
    found = json.loads(dse("explain", "camera", *BEST, "--format", "json").out)
    assert (found["index"], found["state"], found["design"]["distill"]) == (327, "COMPLETE", True)
    latency = next(step for step in found["metrics"] if step["name"] == "latency")
    assert (latency["value"], latency["shown"]) == (0.00575, "5.75 ms")
    assert latency["parts"][0]["winner"] == "compute"
    assert [c["met"] for c in found["constraints"]] == [True, True, True]
    illegal = json.loads(dse("explain", "camera", *changed(format="fp16"), "--format", "json").out)
    assert illegal["state"] == "ILLEGAL"
    assert illegal["broken"][0]["because"] == "npu cannot run fp16"


def test_a_value_within_a_continuous_dimension(dse: Dse, write: Callable[..., Path]) -> None:
    path = write(
        "dse: 1\nname: c\ndimensions: {t: {range: [0.5, 1.5], unit: ms}, n: [1, 2]}\n"
        "metrics: {m: {expr: t * n, unit: ms}}\nobjectives: {m: minimize}\n"
    )
    ran = dse("explain", path, "t=1250 us", "n=2")
    assert ran.code == 0, ran.err
    assert "m = 2.5 ms" in ran.out
    for wrong, said in (
        ("t=2 ms", "from 0.5 ms to 1.5 ms"),
        ("t=1", "needs a quantity in ms"),
        ("t=1 GB", "needs a quantity in ms"),
    ):
        assert said in dse("explain", path, wrong, "n=2").err


MEASURED = """\
dse: 1
name: measured
dimensions: {a: [1, 2]}
metrics: {t: {unit: ms, measured: true}, u: {unit: 1, measured: true}, both: {expr: t * u * a, unit: ms}}
objectives: {both: minimize}
constraints:
  t: "<= 5 ms"
  quick: {check: both <= 50 ms, because: "{both} is too slow for {a}"}
measure: {command: [touch, ran]}
"""


def test_a_measured_design(dse: Dse, tmp_path: Path) -> None:
    path = tmp_path / "measured.yaml"
    path.write_text(MEASURED, encoding="utf-8")
    left_open = dse("explain", path, "a=2")
    assert left_open.code == 1
    assert "undecided: t, u must be measured" in left_open.out
    assert "t: not measured\n" in left_open.out
    assert "t <= 5 ms: no value (not measured: t)\n" in left_open.out
    fine = dse("explain", path, "a=2", "--measured", "t=2 ms", "--measured", "u=3")
    assert fine.code == 0
    assert "both = 12 ms" in fine.out
    assert "t = 2 ms  (measured)\n" in fine.out
    slow = dse("explain", path, "a=2", "--measured", "t=0.01 s", "--measured", "u=3")
    assert slow.code == 1
    assert "t <= 5 ms: 10 ms is 5 ms over 5 ms, NOT met" in slow.out
    assert "NOT met: 60 ms is too slow for 2" in slow.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--measured", "t=2 GB", "--measured", "u=3"], "t is in ms"),
        (["--measured", "t=2 ms"], "no value for u"),
        (["--measured", "v=2 ms"], "'v' is no measured metric"),
        (["--measured", "both=2 ms"], "'both' is no measured metric"),
        (["--measured", "t"], "expected name=value"),
    ],
)
def test_measured_mistakes(dse: Dse, tmp_path: Path, words: list[str], said: str) -> None:
    path = tmp_path / "measured.yaml"
    path.write_text(MEASURED, encoding="utf-8")
    ran = dse("explain", path, "a=2", *words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
