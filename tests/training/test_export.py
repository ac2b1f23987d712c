"""Plans for frameworks: every argument is one of theirs, what they cannot express is refused."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dse.errors import InputError
from dse.spaces.training.export import KEPT, TARGETS, read_plan
from dse.spaces.training.export.names import (
    DEEPSPEED,
    DEEPSPEED_LAUNCHER,
    MEGATRON,
    MEGATRON_COSTLY,
    MEGATRON_GONE,
    MEGATRON_MANY,
    MEGATRON_SWITCHES,
    MEGATRON_VALUES,
    TORCHRUN,
    TORCHTITAN,
)
from dse.study.exports import Plan
from tests.training.standin import plan, problem

Changes = Mapping[str, str]

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-05,
    "rope_theta": 500000.0,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0},
    "tie_word_embeddings": False,
}

PLANS: dict[str, tuple[Changes, Changes]] = {
    "dense": ({}, {}),
    "one GPU": (
        {"tp": "1", "pp": "1", "sequence_parallel": "false", "sharding": "ddp", "overlap_dp": "false"},
        {"n_gpus": "1", "model": "llama-3.2-1b"},
    ),
    "uneven edges": (
        {"tp": "8", "pp": "16", "edges": "both", "recompute": "full", "recompute_block": "2"},
        {"model": "llama-3.1-405b", "n_gpus": "16384", "global_batch": "2048"},
    ),
    "interleaved": (
        {
            "tp": "8",
            "pp": "16",
            "edges": "both",
            "schedule": "interleaved",
            "chunks": "2",
            "overlap_tp": "true",
        },
        {"model": "llama-3.1-405b", "n_gpus": "16384", "global_batch": "2048"},
    ),
    "interleaved with a remainder": (
        {"tp": "8", "pp": "4", "schedule": "interleaved", "chunks": "4"},
        {"n_gpus": "64", "global_batch": "12"},
    ),
    "experts": (
        {"tp": "2", "pp": "4", "ep": "8", "schedule": "interleaved", "chunks": "2", "recompute": "selective"},
        {"model": "mixtral-8x7b", "seq_len": "4096"},
    ),
    "experts with a capacity": (
        {"tp": "2", "pp": "4", "ep": "4", "expert_tp": "true", "dispatch": "capacity", "recompute": "mlp"},
        {"model": "mixtral-8x7b", "capacity_factor": "1.5", "attention_share": "0.4"},
    ),
    "latent attention": (
        {
            "tp": "1",
            "sequence_parallel": "false",
            "pp": "1",
            "ep": "32",
            "expert_tp": "true",
            "recompute": "mlp",
        },
        {"model": "deepseek-v3"},
    ),
    "sinks and windows": ({"tp": "4", "pp": "4", "ep": "4"}, {"model": "gpt-oss-120b"}),
    "context parallel": (
        {"cp": "8", "cp_kind": "ring", "pp": "1", "placement": "tp-cp-pp-dp"},
        {"seq_len": "131072", "n_gpus": "256"},
    ),
    "Ulysses": ({"tp": "2", "pp": "1", "cp": "2", "cp_kind": "ulysses", "sharding": "megatron-fsdp"}, {}),
    "fp8": ({"format": "fp8", "recompute": "attention", "micro_batch": "2"}, {"hardware": "h200-sxm"}),
    "offloaded": ({"optimizer": "adam-offload"}, {"memory_fixed": "2.5 GB"}),
    "biases": ({"tp": "8", "pp": "8", "sharding": "ddp"}, {"model": "gpt-3-175b", "seq_len": "2048"}),
    "biases before attention": ({"tp": "4"}, {"model": "qwen2.5-7b"}),
    "norms of queries and keys": ({"tp": "4"}, {"model": "qwen3-8b"}),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_launch_line_is_read_back_unchanged(name: str) -> None:
    design, inputs = PLANS[name]
    given = plan(dict(design), **inputs)
    text = TARGETS["megatron"](given).text
    known = read_plan(text, "launch.sh", problem())
    back = plan(dict(known.design), **known.inputs)
    assert back.design == given.design
    assert {**back.inputs, "framework": "any"} == given.inputs
    assert TARGETS["megatron"](back).text == text


@pytest.mark.parametrize("name", PLANS)
def test_json_is_read_back_unchanged(name: str) -> None:
    design, inputs = PLANS[name]
    given = plan(dict(design), **inputs)
    known = read_plan(TARGETS["json"](given).text, "plan.json", problem())
    back = plan(dict(known.design), **known.inputs)
    assert (back.design, back.inputs) == (given.design, given.inputs)


@pytest.mark.parametrize("name", PLANS)
def test_megatron_knows_every_argument(name: str) -> None:
    design, inputs = PLANS[name]
    words = TARGETS["megatron"](plan(dict(design), **inputs)).text.split()
    flags = [word[2:] for word in words if word.startswith("--")]
    assert flags
    assert [flag for flag in flags if flag not in MEGATRON | TORCHRUN] == []


def test_the_tables_of_arguments_do_not_overlap() -> None:
    tables = [MEGATRON_SWITCHES, MEGATRON_VALUES, MEGATRON_MANY, set(MEGATRON_COSTLY), set(MEGATRON_GONE)]
    assert sum(map(len, tables)) == len(frozenset().union(*tables))
    assert frozenset().union(*tables) < MEGATRON
    assert set(MEGATRON_GONE.values()) <= MEGATRON
    assert set(KEPT) <= set(problem().names)


TITAN: dict[str, tuple[Changes, Changes]] = {
    "dense": ({"sharding": "fsdp2"}, {}),
    "interleaved": (
        {
            "sharding": "fsdp2-resident",
            "tp": "8",
            "pp": "16",
            "edges": "both",
            "schedule": "interleaved",
            "chunks": "2",
        },
        {"model": "llama-3.1-405b", "n_gpus": "16384", "global_batch": "2048"},
    ),
    "groups": ({"sharding": "hsdp", "shard_group": "8", "tp": "2", "pp": "1", "cp": "2"}, {}),
    "groups of context parallel ranks": (
        {
            "sharding": "hsdp",
            "shard_group": "8",
            "tp": "1",
            "sequence_parallel": "false",
            "pp": "1",
            "cp": "8",
        },
        {},
    ),
    "fp8": ({"sharding": "fsdp2", "format": "fp8", "overlap_tp": "true", "recompute": "full", "tp": "8"}, {}),
    "experts": (
        {
            "sharding": "fsdp2",
            "tp": "1",
            "sequence_parallel": "false",
            "pp": "1",
            "ep": "8",
            "recompute": "selective",
        },
        {"model": "deepseek-v3", "global_batch": "64"},
    ),
    "plain": ({"sharding": "ddp", "tp": "1", "pp": "1", "sequence_parallel": "false"}, {}),
}


@pytest.mark.parametrize("name", TITAN)
def test_a_job_of_torchtitan_is_read_back_unchanged(name: str) -> None:
    design, inputs = TITAN[name]
    given = plan(dict(design), **inputs)
    text = TARGETS["torchtitan"](given).text
    config = tomllib.loads(text)
    assert [f"{s}.{k}" for s, keys in config.items() for k in keys if k not in TORCHTITAN[s]] == []
    parallel = config["parallelism"]
    degrees = [value for key, value in parallel.items() if key.endswith("_degree") and "expert" not in key]
    product = 1
    for degree in degrees:
        product *= degree
    assert product == given.inputs["n_gpus"]
    known = read_plan(text, "job.toml", problem())
    back = plan(dict(known.design), **known.inputs)
    assert back.design == given.design
    assert {**back.inputs, "framework": "any"} == given.inputs


DEEP: dict[str, tuple[Changes, Changes]] = {
    "ZeRO 3": (
        {"sharding": "zero3", "tp": "1", "sequence_parallel": "false", "pp": "1", "recompute": "full"},
        {},
    ),
    "ZeRO 2, offloaded": (
        {
            "sharding": "zero2",
            "tp": "1",
            "sequence_parallel": "false",
            "pp": "1",
            "optimizer": "adam-offload",
        },
        {},
    ),
    "pipeline": ({"sharding": "zero1", "micro_batch": "2"}, {}),
    "experts": (
        {"sharding": "zero2", "pp": "1", "ep": "8", "expert_tp": "true", "dispatch": "capacity"},
        {"model": "mixtral-8x7b", "seq_len": "4096"},
    ),
    "Ulysses": (
        {
            "sharding": "zero3",
            "tp": "1",
            "sequence_parallel": "false",
            "pp": "1",
            "cp": "8",
            "cp_kind": "ulysses",
        },
        {},
    ),
}


@pytest.mark.parametrize("name", DEEP)
def test_deepspeed_s_batch_is_exact_and_its_keys_are_known(name: str) -> None:
    design, inputs = DEEP[name]
    given = plan(dict(design), **inputs)
    written = TARGETS["deepspeed"](given)
    config = json.loads(written.text)
    assert [key for key in config if key not in DEEPSPEED[""]] == []
    for section in set(DEEPSPEED) & set(config):
        assert [key for key in config[section] if key not in DEEPSPEED[section]] == []
    ranks = int(design.get("tp", "4")) * int(design.get("pp", "2")) * int(design.get("cp", "1"))
    replicas = 64 // ranks
    product = config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"] * replicas
    assert config["train_batch_size"] == product == 128
    assert written.starter is not None
    script = written.starter("ds_config.json")
    flags = [word[2:] for word in script.split() if word.startswith("--")]
    assert [flag for flag in flags if flag not in MEGATRON | DEEPSPEED_LAUNCHER] == []
    if ranks == 1:
        known = read_plan(written.text, "ds_config.json", problem())
        assert plan(dict(known.design), **known.inputs).design == given.design
        assert known.inputs == {"framework": "deepspeed", "global_batch": "128"}
        assert known.needs == ("model", "seq_len", "n_gpus")


@pytest.mark.parametrize("name", DEEP)
def test_a_script_that_starts_deepspeed_is_read_back_unchanged(name: str, tmp_path: Path) -> None:
    design, inputs = DEEP[name]
    given = plan(dict(design), **inputs)
    written = TARGETS["deepspeed"](given)
    assert written.starter is not None
    (tmp_path / "my config.json").write_text(written.text, encoding="utf-8")
    known = read_plan(written.starter("my config.json"), str(tmp_path / "my config.sh"), problem())
    back = plan(dict(known.design), **known.inputs)
    assert back.design == given.design
    assert {**back.inputs, "framework": "any"} == given.inputs
    assert (known.needs, known.assumed) == ((), ())
    assert known.ignored == tuple(
        text
        for text in known.ignored
        if text.split()[0][2:] in ("num-key-value-heads", "topk", "train-iters")
        or text == "--no-position-embedding"
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("--zero-stage 1", "--zero-stage 2", "--zero-stage 2: "),
        ("--micro-batch-size 2", "--micro-batch-size 1", "--micro-batch-size 1: "),
        ("--num_nodes 8", "--num_nodes 4", "train_batch_size 128 is not micro-batch x accumulation steps"),
        ("--num_nodes 8 --num_gpus 8", "--num_nodes 1 --num_gpus 6", "tp x pp x cp = 8 does not divide"),
        ("ds.json", "other.json", "there is no such file"),
    ],
)
def test_a_script_and_its_configuration_must_agree(old: str, new: str, said: str, tmp_path: Path) -> None:
    written = TARGETS["deepspeed"](plan(dict(DEEP["pipeline"][0])))
    assert written.starter is not None
    (tmp_path / "ds.json").write_text(written.text, encoding="utf-8")
    script = written.starter("ds.json")
    assert old in script
    with pytest.raises(InputError) as caught:
        read_plan(script.replace(old, new), str(tmp_path / "ds.sh"), problem())
    assert said in str(caught.value)


REFUSED: list[tuple[str, Changes, Changes, str]] = [
    ("megatron", {"schedule": "dualpipe"}, {}, "schedule=dualpipe"),
    ("megatron", {"schedule": "zb-h1"}, {}, "schedule=zb-h1"),
    ("megatron", {"schedule": "gpipe"}, {}, "schedule=gpipe"),
    ("megatron", {"sharding": "zero2"}, {}, "sharding=zero2"),
    ("megatron", {"placement": "tp-pp-cp-dp"}, {}, "placement=tp-pp-cp-dp"),
    ("megatron", {"recompute": "selective"}, {}, "recompute=selective"),
    ("megatron", {"sharding": "ddp", "optimizer": "adam-offload"}, {}, "optimizer=adam-offload"),
    ("megatron", {"sequence_parallel": "false", "overlap_tp": "true"}, {}, "overlap_tp=true"),
    ("megatron", {"sequence_parallel": "false"}, {"model": "mixtral-8x7b"}, "sequence_parallel=false"),
    ("megatron", {"tp": "16"}, {}, "tp=16: 8 key-value heads are not divisible by 16"),
    ("megatron", {"tp": "64", "pp": "1"}, {}, "tp=64: 32 attention heads are not divisible by 64"),
    (
        "megatron",
        {"pp": "2", "edges": "embedding"},
        {},
        "pp=2: 33 layers (with embedding) are not divisible by pp = 2",
    ),
    (
        "megatron",
        {"schedule": "interleaved", "chunks": "3"},
        {},
        "chunks=3: 32 layers are not divisible by pp x chunks",
    ),
    (
        "megatron",
        {"schedule": "interleaved", "chunks": "2", "pp": "8"},
        {"global_batch": "2"},
        "chunks=2: 1 micro",
    ),
    (
        "megatron",
        {"cp": "4", "pp": "1"},
        {"seq_len": "1028"},
        "cp=4: a sequence of 1028 tokens is not divisible by 2 x cp",
    ),
    ("megatron", {}, {"seq_len": "1026"}, "sequence_parallel=true: 1026 tokens"),
    ("megatron", {"ep": "16"}, {"model": "mixtral-8x7b"}, "ep=16: 8 experts are not divisible by 16"),
    ("megatron", {"ep": "2"}, {}, "ep=2: the model has no experts"),
    ("megatron", {}, {"n_gpus": "12"}, "n_gpus=12: 12 GPUs are not divisible by tp x pp x cp = 8"),
    ("megatron", {}, {"global_batch": "100"}, "global_batch=100"),
    ("megatron", {}, {"model": "bloom-176b"}, "the model: it has a norm behind the embedding"),
    ("megatron", {"cp": "16", "cp_kind": "ulysses", "pp": "1"}, {}, "cp=16: 8 heads on a rank"),
    ("deepspeed", {"sharding": "zero2"}, {}, "sharding=zero2: with pipeline parallelism"),
    ("deepspeed", {"sharding": "zero1", "schedule": "interleaved"}, {}, "schedule=interleaved"),
    ("deepspeed", {"sharding": "zero1", "ep": "2"}, {"model": "mixtral-8x7b"}, "pp=2: experts run without"),
    ("deepspeed", {"sharding": "fsdp2"}, {}, "sharding=fsdp2: it knows zero0, zero1, zero2, zero3"),
    ("deepspeed", {"sharding": "zero1", "format": "fp8"}, {}, "format=fp8"),
    ("deepspeed", {"sharding": "zero0", "optimizer": "adam-offload"}, {}, "optimizer=adam-offload"),
    ("deepspeed", {"sharding": "zero1", "cp": "2", "cp_kind": "ring"}, {}, "cp_kind=ring"),
    (
        "deepspeed",
        {"sharding": "zero1", "edges": "loss"},
        {"model": "megatron-22b", "seq_len": "2048"},
        "pp=2: 49 layers",
    ),
    ("torchtitan", {"sharding": "fsdp2", "sequence_parallel": "false"}, {}, "sequence_parallel=false"),
    ("torchtitan", {"sharding": "fsdp2", "overlap_dp": "false"}, {}, "overlap_dp=false"),
    ("torchtitan", {"sharding": "fsdp2", "recompute": "attention"}, {}, "recompute=attention"),
    ("torchtitan", {"sharding": "ddp"}, {}, "sharding=ddp"),
    ("torchtitan", {"sharding": "fsdp2", "schedule": "zb-h1"}, {}, "schedule=zb-h1"),
    ("torchtitan", {"sharding": "fsdp2", "cp": "2", "cp_kind": "ulysses"}, {}, "cp_kind=ulysses"),
    (
        "torchtitan",
        {"sharding": "fsdp2"},
        {"model": "gpt-3-175b", "seq_len": "2048"},
        "model=gpt-3-175b: layernorm=1",
    ),
    ("torchtitan", {"sharding": "hsdp", "shard_group": "0"}, {}, "shard_group=0"),
    ("torchtitan", {"sharding": "fsdp2", "pp": "1"}, {"model": "deepseek-v3"}, "expert_tp=false"),
    ("torchtitan", {"sharding": "fsdp2", "dispatch": "capacity"}, {}, "dispatch=capacity"),
    (
        "torchtitan",
        {"sharding": "fsdp2", "recompute": "full", "recompute_block": "2"},
        {},
        "recompute_block=2",
    ),
]


@pytest.mark.parametrize(
    ("target", "design", "inputs", "said"), REFUSED, ids=[f"{r[0]} {r[3][:24]}" for r in REFUSED]
)
def test_what_a_framework_cannot_express_is_named(
    target: str, design: Changes, inputs: Changes, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        TARGETS[target](plan(dict(design), **inputs))
    assert f"{target} cannot express {said}" in str(caught.value)


def test_a_plan_without_a_model_is_refused() -> None:
    given = plan()
    with pytest.raises(InputError, match="the plan has no model"):
        TARGETS["megatron"](Plan(given.space, given.design, given.inputs))


def titan(**inputs: str) -> tuple[str, dict[str, str]]:
    """A job, and what is read of it."""
    given = plan({"sharding": "fsdp2", "tp": "1", "sequence_parallel": "false", "pp": "1"}, **inputs)
    text = TARGETS["torchtitan"](given).text
    known = read_plan(text, "job.toml", problem())
    assert plan(dict(known.design), **known.inputs).design == given.design
    return text, dict(known.inputs)


@pytest.mark.parametrize(
    ("model", "name", "flavor"),
    [
        ("llama-3.1-8b", "llama3", "8B"),
        ("llama-3.1-405b", "llama3", "405B"),
        ("qwen3-0.6b", "qwen3", "0.6B"),
        ("qwen3-1.7b", "qwen3", "1.7B"),
        ("qwen3-4b", "qwen3", "4B"),
        ("qwen3-8b", "qwen3", "8B"),
        ("qwen3-14b", "qwen3", "14B"),
        ("qwen3-32b", "qwen3", "32B"),
        ("qwen3-30b-a3b", "qwen3", "30B-A3B"),
        ("qwen3-235b-a22b", "qwen3", "235B-A22B"),
        ("deepseek-v3", "deepseek_v3", "671B"),
        ("gpt-oss-20b", "gpt_oss", "20b"),
        ("gpt-oss-120b", "gpt_oss", "120b"),
    ],
)
def test_what_torchtitan_ships_is_named(model: str, name: str, flavor: str) -> None:
    text, read = titan(model=model)
    assert tomllib.loads(text)["model"] == {"name": name, "flavor": flavor}
    assert "placeholder" not in text
    assert read["model"] == model
    bare = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    assert read_plan(bare, "job.toml", problem()).inputs["model"] == model


def test_an_unknown_flavor_says_what_to_register() -> None:
    text, read = titan(model="llama-2-7b", seq_len="4096")
    assert tomllib.loads(text)["model"] == {"name": "llama3", "flavor": "llama-2-7b"}
    lines = text.splitlines()
    for size in (
        "n_layers=32",
        "dim=4096",
        "n_heads=32",
        "n_kv_heads=32",
        "hidden_dim=11008",
        "vocab_size=32000",
    ):
        assert f"#   {size}" in lines
    assert "they do not have" not in text
    assert read["model"] == "llama-2-7b"
    assert "they do not have: qkv_bias=1" in titan(model="qwen2.5-7b")[0]
    mixed = titan(model="mixtral-8x7b")[0]
    assert "#   num_experts=8" in mixed
    assert "#   qk_norm=False" in mixed


def test_a_model_from_a_file_is_a_flavor_too(tmp_path: Path) -> None:
    path = tmp_path / "mine" / "config.json"
    path.parent.mkdir()
    config = {**LLAMA, "num_hidden_layers": 24}
    path.write_text(json.dumps(config), encoding="utf-8")
    text, read = titan(model=str(path))
    assert tomllib.loads(text)["model"] == {"name": "llama3", "flavor": "mine"}
    assert read["model"] == str(path)
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert tomllib.loads(titan(model=str(path), seq_len="4096")[0])["model"] == {
        "name": "llama3",
        "flavor": "8B",
    }
    with pytest.raises(InputError, match=r"model\.flavor: 'mine' of 'llama3' is not"):
        read_plan(text, "job.toml", problem())


def test_rotations_and_norms_are_those_of_the_file(tmp_path: Path) -> None:
    assert (
        "# Put your model's own rotary-base, rope scaling, norm-epsilon here."
        in TARGETS["megatron"](plan()).text
    )
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    text = TARGETS["megatron"](plan(model=str(path))).text
    for argument in (
        "--rotary-base 500000",
        "--use-rope-scaling",
        "--rope-scaling-factor 8",
        "--norm-epsilon 1e-05",
    ):
        assert f"  {argument}\n" in text
    assert "Put your model's own" not in text
    known = read_plan(text, "launch.sh", problem())
    assert known.inputs["model"] == str(path)
    path.write_text(
        json.dumps({**LLAMA, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}), encoding="utf-8"
    )
    assert (
        "# Put your model's own rope scaling (yarn) here." in TARGETS["megatron"](plan(model=str(path))).text
    )


def test_names_of_files_and_in_them_stay_text(tmp_path: Path) -> None:
    """A folder or a downloaded config.json may have any name in it: none is run, and paths are read back."""
    folder = tmp_path / "$(touch ran) `touch ran`\ntouch ran\n\u2028\x85\x7f 50% %20"
    folder.mkdir()
    path = folder / "config.json"
    scaling = {"rope_type": "yarn\ntouch ran\n", "factor": 4.0}
    path.write_text(json.dumps({**LLAMA, "num_hidden_layers": 24, "rope_scaling": scaling}), encoding="utf-8")
    for name in ("torchrun", "deepspeed"):
        (tmp_path / name).write_text("#!/bin/bash\n")
        (tmp_path / name).chmod(0o755)
    deep = {"tp": "1", "sequence_parallel": "false", "pp": "1", "sharding": "zero2"}
    megatron = TARGETS["megatron"](plan(model=str(path))).text
    deepspeed = TARGETS["deepspeed"](plan(deep, model=str(path))).starter
    assert deepspeed is not None
    for script in (megatron, deepspeed("ds.json")):
        done = subprocess.run(
            ["bash", "-c", script],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
            cwd=tmp_path,
            capture_output=True,
            check=True,
            timeout=20,
        )
        assert not done.stderr
        assert not (tmp_path / "ran").exists()
    assert read_plan(megatron, "launch.sh", problem()).inputs["model"] == str(path)
    text, read = titan(model=str(path))
    assert tomllib.loads(text)["model"]["name"] == "llama3"
    assert read["model"] == str(path)
