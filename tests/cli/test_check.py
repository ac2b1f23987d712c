"""``dse check``: all errors at once, warnings, and no code run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Dse = Callable[..., Any]
Write = Callable[..., Path]

BROKEN = """\
dse: 1
name: broken
dimensons: {a: [1, 2]}
dimensions: {a: [1, 2], b: [1, 1]}
metrics: {m: {expr: max(a, b), unit: ms}}
"""

CODED = """\
dse: 1
name: coded
dimensions: {a: [1, 2]}
metrics: {m: {unit: 1}}
objectives: {m: minimize}
cost: ./cost.py:cost
"""

COST = """\
from pathlib import Path
Path(__file__).with_name("ran").touch()
def cost(a):
    return {"m": a * 2}
"""


def test_a_right_file(dse: Dse) -> None:
    ran = dse("check", "camera")
    said = "480 designs; 6 dimensions, 2 rules, 3 metrics, 2 objectives, 3 constraints, 3 teams"
    assert (ran.code, " ".join(ran.out.split()), ran.err) == (0, f"ok: camera: {said}", "")


def test_every_error_with_its_place(dse: Dse, write: Write) -> None:
    path = write(BROKEN)
    ran = dse("check", path)
    assert (ran.code, ran.out) == (2, "")
    lines = ran.err.splitlines()
    assert [line.split(": ")[0] for line in lines[:-1]] == [f"{path}:3:1", f"{path}:4:32", f"{path}:5:21"]
    assert "did you mean 'dimensions'?" in lines[0]
    assert "quote this expression" in lines[2]
    assert lines[-1] == "3 errors"


def test_errors_as_data(dse: Dse, write: Write) -> None:
    ran = dse("check", write(BROKEN), "--format", "json")
    assert (ran.code, ran.err) == (2, "")
    found = json.loads(ran.out)
    assert found["ok"] is False
    assert [(e["line"], e["column"], e["key"]) for e in found["errors"]] == [
        (3, 1, "dimensons"),
        (4, 32, "dimensions.b.choices.1"),
        (5, 21, "metrics.m.expr"),
    ]


def test_code_is_left_alone_unless_asked_for(dse: Dse, write: Write, tmp_path: Path) -> None:
    path = write(CODED)
    write(COST, "cost.py")
    ran = dse("check", path)
    assert ran.code == 0
    assert ran.err == "not checked: cost ./cost.py:cost: --code imports it\n"
    found = json.loads(dse("check", path, "--format", "json").out)
    assert (found["warnings"], found["not_checked"]) == ([], ["cost ./cost.py:cost: --code imports it"])
    assert dse("show", path).code == 0
    assert not (tmp_path / "ran").exists()

    refused = dse("check", path, "--no-code")
    assert refused.code == 2
    assert "--no-code" in refused.err
    assert not (tmp_path / "ran").exists()

    assert dse("check", path, "--code").err == ""
    assert (tmp_path / "ran").exists()


def test_what_only_designs_show(dse: Dse, write: Write) -> None:
    never = write(
        "dse: 1\nname: n\ndimensions: {a: [1, 2]}\nrules: {r: {check: a > 5, because: too small}}\n"
        "metrics: {m: {expr: a, unit: 1}}\nobjectives: {m: minimize}\n"
    )
    ran = dse("check", never)
    assert ran.code == 2
    assert "space.yaml:4:" in ran.err
    assert "no design meets" in ran.err
    corner = write(
        "dse: 1\nname: n\ndimensions: {a: [0, 1, 2]}\n"
        "metrics: {m: {expr: a / a, unit: 1}}\nobjectives: {m: minimize}\n"
    )
    ran = dse("check", corner)
    assert ran.code == 0
    assert "metrics.m: 1 legal design fails: m is NaN" in ran.err


def test_a_measuring_program_is_never_run_by_check(dse: Dse, write: Write, tmp_path: Path) -> None:
    path = write(
        "dse: 1\nname: m\ndimensions: {a: [1, 2]}\nmetrics: {t: {unit: ms, measured: true}}\n"
        "objectives: {t: minimize}\nmeasure: {command: [touch, ran]}\n"
    )
    ran = dse("check", path, "--code")
    assert (ran.code, ran.err) == (0, "not checked: measure touch ran: only a search runs it\n")
    assert not (tmp_path / "ran").exists()


def test_one_is_not_many(dse: Dse, write: Write) -> None:
    path = write(
        "dse: 1\nname: one\ndimensions: {a: [1]}\nmetrics: {m: {expr: a, unit: 1}}\nobjectives: {m: minimize}\n"
        "teams: {t: {}}\n"
    )
    for command in ("check", "show", "compare"):
        out = dse(command, path).out
        assert "1 designs" not in out
        assert "1 design" in out


def test_a_measuring_command_is_checked(dse: Dse, write: Write) -> None:
    path = write(
        "dse: 1\nname: m\ndimensions: {size: [1, 2]}\nmetrics: {t: {unit: ms, measured: true}}\n"
        "objectives: {t: minimize}\nmeasure: {command: [measure, '{sise}']}\n"
    )
    ran = dse("check", path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"{path}:")
    assert "measure.command" in ran.err
    assert "'sise'; did you mean 'size'?" in ran.err
    assert json.loads(dse("check", path, "--format", "json").out)["ok"] is False


def test_the_cost_of_an_installed_space_that_a_file_extends_is_checked_with_its_rows(
    dse: Dse, write: Write
) -> None:
    path = write(
        "dse: 1\nname: own\nextends: serving\ntables: {gpus: {rows: {mine: {bf16: 1 Tflop/s, fp16: 1 Tflop/s, fp8: 0 flop/s,"
        " fp32: 1 Tflop/s, memory: 64 GB, bandwidth: 2 TB/s, node: 8, link: 1 GB/s}}}}\n"
    )
    ran = dse("check", path)
    assert (
        "with hardware = mine designs fail, as they read kind, generation, of which gpus has no cell"
        in ran.err
    )
    assert "not checked" not in ran.err
