"""``dse export`` and ``dse explain --plan``: plans for other programs, and plans that exist."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.training.standin import DESIGN
from tests.training.standin import write as write_space

Dse = Callable[..., Any]


@pytest.fixture
def space(tmp_path: Path) -> Path:
    """The stand-in as a file."""
    return write_space(tmp_path)


def words(**changed: str) -> list[str]:
    design = {**DESIGN, **changed}
    return [f"{name}={value}" for name, value in design.items()]


@pytest.fixture
def line(dse: Dse, space: Path, tmp_path: Path) -> Path:
    """A launch line."""
    path = tmp_path / "launch.sh"
    assert dse("export", space, *words(), "--to", "megatron", "-o", path).code == 0
    return path


def test_a_design_of_a_space(dse: Dse, space: Path, line: Path) -> None:
    ran = dse("export", space, *words(), "--to", "megatron")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == line.read_text(encoding="utf-8")
    assert "--tensor-model-parallel-size 4" in ran.out


def test_a_run(dse: Dse, space: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert dse("search", space, "--set", "framework=megatron", "--out", run).code == 0
    ran = dse("export", run, "--to", "json")
    assert ran.code == 0
    best = json.loads((run / "result.json").read_text(encoding="utf-8"))["front"][0]["design"]
    design = json.loads(ran.out)["design"]
    assert design["tp"] == f"{best['tp']:g}"
    assert design["sharding"] == best["sharding"]
    assert dse("export", run, "--to", "megatron").code == 0
    assert "note" not in ran.err
    beyond = dse("export", run, "--to", "json", "--point", "2").err
    assert "has 1 design on its front, so --point is from 1 to 1, but got 2; of one objective" in beyond
    assert dse("export", run, "--to", "json", "--point", "1").out == ran.out
    assert dse("export", run, "tp=1", "--to", "json").code == 2


def test_the_best_designs_that_a_run_was_asked_for(dse: Dse, space: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert dse("search", space, "--top", "3", "--out", run).code == 0
    assert (
        "design 1 of the 3 among its best; --point N takes the Nth" in dse("export", run, "--to", "json").err
    )
    third = dse("export", run, "--to", "json", "--point", "3")
    best = json.loads((run / "result.json").read_text(encoding="utf-8"))["best"]
    assert json.loads(third.out)["design"]["sharding"] == best[2]["design"]["sharding"]
    beyond = dse("export", run, "--to", "json", "--point", "4").err
    assert "has 3 designs among its best, so --point is from 1 to 3" in beyond


def test_what_is_not_active_needs_no_value(dse: Dse, space: Path) -> None:
    ran = dse("export", space, "tp=1", "pp=1", "--to", "json")
    assert ran.code == 2
    asked = ran.err.partition("no value for ")[2].partition(";")[0].split(", ")
    assert (
        asked == "cp sharding micro_batch recompute format optimizer placement overlap_dp overlap_tp".split()
    )
    proposed = ran.err.partition("for example ")[2].split()
    assert len(proposed) == len(asked)
    ran = dse("export", space, "tp=1", "pp=1", *proposed, "--to", "json")
    assert ran.code == 0
    assert json.loads(ran.out)["design"]["chunks"] == "1"
    asked = dse("export", space, "tp=1", "pp=2", *proposed, "--to", "json").err
    assert "no value for schedule, edges; add for example schedule=gpipe edges=even" in asked


def test_what_starts_a_configuration_is_written_beside_it(dse: Dse, space: Path, tmp_path: Path) -> None:
    plan = words(sharding="zero1")
    path = tmp_path / "ds.json"
    ran = dse("export", space, *plan, "--set", "framework=deepspeed", "--to", "deepspeed", "-o", path)
    assert ran.err.splitlines() == [f"wrote {path}", f"wrote {path.with_suffix('.sh')}"]
    ran = dse("explain", space, "--plan", path.with_suffix(".sh"))
    assert ran.code == 0
    told = " ".join(ran.out.split())
    assert "model=llama-3.1-8b hardware=h100-sxm" in told
    assert "sharding=zero1" in told
    ran = dse("explain", space, "--plan", path)
    assert ran.code == 0
    both = " ".join(ran.out.split())
    assert "starts it and is read too" in both
    assert "model=llama-3.1-8b" in both
    assert "tp=4 sequence_parallel=true pp=2" in both
    script = path.with_suffix(".sh").read_text(encoding="utf-8")
    ran = dse("explain", space, "--plan", path, "--set", "n_gpus=128")
    assert (ran.code, ran.out) == (2, "")
    assert "on 8 data parallel ranks, but 128 GPUs and tp=4 x pp=2 x cp=1 leave 16" in ran.err
    assert dse("explain", space, "--plan", path, "--set", "n_gpus=128", "tp=8").code == 0
    path.with_suffix(".sh").write_text(script.replace("--num_nodes 8", "--num_nodes $N"), encoding="utf-8")
    assert (
        "--num-nodes $?: its value is not in the file; add --set n_gpus=N"
        in dse("explain", space, "--plan", path).err
    )
    assert dse("explain", space, "--plan", path, "--set", "n_gpus=64").code == 0
    path.with_suffix(".sh").write_text("deepspeed train.py\n", encoding="utf-8")
    alone = ["--set", "model=llama-3.1-8b", "--set", "seq_len=8192"]
    ran = dse("explain", space, "--plan", path)
    assert "does not say model and seq_len and n_gpus" in ran.err
    assert f"or give {path.with_suffix('.sh')}, if that starts it" in ran.err
    ran = dse("explain", space, "--plan", path, *alone, "--set", "n_gpus=64")
    assert (ran.code, ran.out) == (2, "")
    assert "on 8 data parallel ranks, but 64 GPUs and tp=1 x pp=1 x cp=1 leave 64" in ran.err
    ran = dse("explain", space, "--plan", path, *alone, "--set", "n_gpus=64", "tp=4")
    assert "tp=4 x pp=1 x cp=1 leave 16" in ran.err
    ran = dse("explain", space, "--plan", path, *alone, "--set", "n_gpus=64", "tp=4", "pp=2")
    assert ran.code == 0
    assert "has no place for tp, pp and cp, which are 1 unless" in " ".join(ran.out.split())
    told = dse("export", space, *plan, "--to", "deepspeed").err
    assert "with --output FILE, a script that starts it is written beside FILE" in told
    ran = dse("export", space, *plan, "--to", "deepspeed", "-o", path.with_suffix(".sh"))
    assert (ran.code, "both the configuration and the script" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ["training", "--to", "megatrom"],
            "unknown target 'megatrom' for space 'training'; did you mean 'megatron'?",
        ),
        (
            ["camera", "--to", "megatron"],
            "space 'camera' has no exporters; spaces with exporters: serving, training",
        ),
        (["nowhere", "--to", "megatron"], "there is no space 'nowhere'"),
        (["training"], "Missing option '--to'"),
        (["training", "--to", "json", "--point", "1"], "--point chooses from the front of a run"),
        (["training", "--to", "json", "tp=3"], "dimension 'tp' has no value '3'"),
    ],
)
def test_mistakes_of_export(dse: Dse, space: Path, given: list[str], said: str) -> None:
    ran = dse("export", *(space if word == "training" else word for word in given))
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""


def test_what_cannot_be_exported(dse: Dse, space: Path, tmp_path: Path) -> None:
    ran = dse("export", space, *words(pp="8", schedule="interleaved", chunks="3"), "--to", "megatron")
    assert ran.code == 2
    assert "the design is illegal: layers are not divisible" in ran.err
    ran = dse("export", space, *words(sharding="ddp"), "--to", "deepspeed")
    assert "deepspeed cannot express sharding=ddp: it knows zero0, zero1, zero2, zero3" in ran.err
    ran = dse("export", space, *words(), "--to", "json", "-o", tmp_path / "no" / "where.json")
    assert "there is no folder" in ran.err


def test_a_known_plan(dse: Dse, space: Path, line: Path) -> None:
    ran = dse("explain", space, "--plan", line)
    assert ran.code == 0
    assert ran.err == ""
    assert "inputs: framework=megatron seq_len=8192 n_gpus=64" in ran.out
    assert "iteration_time = 2.56087 s" in ran.out
    assert "a search with the same inputs, with format=bf16 dispatch=dropless" in ran.out
    assert "within the model's error of 10 %: the two cannot be told apart" in " ".join(ran.out.split())


def test_a_poor_plan_is_told_by_how_much(dse: Dse, space: Path, line: Path) -> None:
    ran = dse("explain", space, "--plan", line, "recompute=full", "recompute_block=1", "--format", "json")
    assert ran.code == 0
    search = json.loads(ran.out)["search"]
    assert search["ratio"] > 1.3
    assert search["within_error"] is False
    assert "recompute" in search["differs"]
    assert search["best"]["format"] == "bf16"
    told = " ".join(dse("explain", space, "--plan", line, "recompute=full", "recompute_block=1").out.split())
    assert "recompute: none instead of full" in told
    assert "more than the model's error of 10 %" in told


def test_the_best_plan_is_told_to_be_it(dse: Dse, space: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    dse("search", space, "--set", "framework=megatron", "--out", run)
    best = tmp_path / "best.json"
    assert dse("export", run, "--to", "json", "-o", best).code == 0
    assert "the plan is the best: iteration_time" in dse("explain", space, "--plan", best).out


def test_settings_stand_in_place_of_the_file(dse: Dse, space: Path, line: Path) -> None:
    ran = dse("explain", space, "--plan", line, "--set", "n_gpus=128")
    assert ran.code == 0
    told = " ".join(ran.out.split())
    assert "note: n_gpus is 128 by --set, instead of 64 (" in told
    assert "8 nodes of 8 GPUs)" in told
    assert "n_gpus=64" not in told
    assert "iteration_time = 1.42271 s" in told


def test_a_value_that_the_space_does_not_have(dse: Dse, space: Path, line: Path) -> None:
    text = line.read_text(encoding="utf-8").replace("--micro-batch-size 1", "--micro-batch-size 16")
    line.write_text(
        text.replace("--nnodes 8", "--nnodes 1").replace("--global-batch-size 128", "--global-batch-size 32")
    )
    ran = dse("explain", space, "--plan", line)
    assert ran.code == 2
    told = " ".join(ran.err.split())
    assert "--micro-batch-size 16: the space has no micro_batch=16; the nearest are 12" in told
    wider = told.partition("--set '")[2].partition("'")[0]
    ran = dse("explain", space, "--plan", line, "--set", wider)
    assert (ran.code, ran.err) == (0, "")
    assert "micro_batch=16" in ran.out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "plan.txt: found an empty file, expected a plan"),
        (b"\xff\xfe\x00", "found byte 0 that is not UTF-8, expected a plan as text"),
        (b"{", "this is no JSON"),
        (
            b"pretrain_gpt.py --num-layers 32 --hidden-size 10 --num-attention-heads 3",
            "10 is not divisible by 3",
        ),
    ],
)
def test_files_that_are_no_plan(dse: Dse, space: Path, tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "plan.txt"
    path.write_bytes(content)
    ran = dse("explain", space, "--plan", path)
    assert ran.code == 2
    assert said in ran.err


def test_a_plan_is_a_regular_file_of_some_size(dse: Dse, space: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    large = tmp_path / "large.sh"
    with large.open("wb") as stream:
        stream.truncate(10**10)
    for path, said in (
        ("/dev/zero", "/dev/zero: found a device or a pipe"),
        (tmp_path / "pipe", "found a device or a pipe"),
        ("/dev/null", "/dev/null: found an empty file, expected a plan"),
        (tmp_path, "found a folder, expected a plan"),
        (large, "found more than 1,048,576 bytes"),
    ):
        ran = dse("explain", space, "--plan", path)
        assert (ran.code, ran.out) == (2, "")
        assert said in ran.err


def test_what_the_file_leaves_open_must_be_given(dse: Dse, space: Path, line: Path) -> None:
    text = line.read_text(encoding="utf-8").replace("torchrun", "python #").replace("hardware=h100-sxm", "")
    line.write_text(
        text.replace(
            "python #", '"${ALL[@]}" "${MODEL_ARGS[@]}" "${PARALLEL_ARGS[@]}" "${TRAINING_ARGS[@]}" #'
        )
    )
    ran = dse("explain", space, "--plan", line)
    assert (ran.code, ran.out) == (2, "")
    assert "does not say n_gpus; add --set n_gpus=..." in ran.err
    ran = dse("explain", space, "--plan", line, "--set", "n_gpus=64")
    assert ran.code == 0
    told = " ".join(ran.out.split())
    assert "hardware is h100-sxm, which the file does not say" in told
    assert "arguments from outside the file, in line" in told


def test_mistakes_of_plan(dse: Dse, space: Path, line: Path, tmp_path: Path) -> None:
    assert "found no file, expected a plan" in dse("explain", space, "--plan", tmp_path / "none.sh").err
    assert "--plan goes with neither" in dse("explain", space, "--plan", line, "--index", "1").err
    assert "has no exporters" in dse("explain", "camera", "--plan", line).err
    assert "unknown dimension 'tq'" in dse("explain", space, "--plan", line, "tq=1").err
