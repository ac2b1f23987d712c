"""Plans for frameworks: every argument is one of theirs, what they cannot express is refused."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping

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
    flags = [word[2:] for word in written.notes[0].split() if word.startswith("--")]
    assert [flag for flag in flags if flag not in MEGATRON | DEEPSPEED_LAUNCHER] == []
    if ranks == 1:
        known = read_plan(written.text, "ds_config.json", problem())
        assert plan(dict(known.design), **known.inputs).design == given.design
        assert known.inputs == {"framework": "deepspeed", "n_gpus": "64", "global_batch": "128"}


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
    ("torchtitan", {"sharding": "fsdp2"}, {"model": "gpt-3-175b", "seq_len": "2048"}, "model=gpt-3-175b"),
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


def test_an_unknown_flavor_says_what_to_register() -> None:
    written = TARGETS["torchtitan"](plan({"sharding": "fsdp2"}, model="llama-2-7b", seq_len="4096"))
    assert 'flavor = "llama-2-7b"' in written.text
    assert "dim=4096, n_layers=32, n_heads=32, n_kv_heads=32" in written.notes[0]
