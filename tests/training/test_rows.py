"""Rows of measured training runs: plans, models, clusters and times in the space's own names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dse.spaces.training.measured.hardware import Cluster, cluster_of, hardware_of
from dse.spaces.training.measured.row import Row
from dse.spaces.training.rows import REQUIRED, Rows, read_rows
from dse.spaces.training.validation import PUBLISHED
from tests.training.measured_tables import MOE, ROW, write_table

Read = Callable[..., Rows]


CRAY = "GPU 'Cray-1' is not in the catalogue; known: v100-sxm2-32, a100-sxm-40, a100-sxm-80, a10g, l4, l40s, t4, h100-sxm, ..."


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads a table of rows that differ from :data:`ROW`."""
    return lambda *rows: read_rows(write_table(tmp_path / "runs.csv", rows or [{}]))


@pytest.fixture(scope="module")
def published() -> Rows:
    return read_rows(PUBLISHED)


def one(rows: Rows) -> Row:
    (row,) = rows.rows
    return row


def test_a_plan_in_the_names_of_the_space(read: Read) -> None:
    row = one(read({}))
    assert (row.kind, row.hardware, row.framework) == ("exact", "a100-sxm-80", "megatron")
    assert row.plans == (
        {
            "framework": "megatron", "tp": 4.0, "pp": 1.0, "cp": 1.0, "ep": 1.0, "dp": 16.0, "micro_batch": 4.0,
            "sequence_parallel": False, "schedule": "1f1b", "chunks": 1.0, "cp_kind": "ring", "expert_tp": False,
            "dispatch": "dropless", "sharding": "ddp", "shard_group": 0.0, "optimizer": "adam", "attention": "flash3",
            "runtime": "megatron", "placement": "tp-cp-dp-pp", "overlap_dp": False, "overlap_tp": False,
            "edges": "even", "recompute": "full", "recompute_block": 1.0, "format": "bf16",
        },
    )  # fmt: skip
    assert row.jobs == ({"n_gpus": 64.0, "global_batch": 512.0, "seq_len": 2048.0},)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"pp": "4", "dp": "4"}, {"schedule": "1f1b", "chunks": 1.0}),
        ({"pp": "4", "dp": "4", "vpp": "3"}, {"schedule": "interleaved", "chunks": 3.0}),
        ({"pp": "1", "vpp": "3"}, {"schedule": "1f1b", "chunks": 1.0}),
        ({"pp": "4", "dp": "4", "layers": "126", "vpp": "1"}, {"edges": "both"}),
        ({"pp": "4", "dp": "4", "layers": "127", "vpp": "1"}, {"edges": "loss"}),
        ({"seq_parallel": "yes"}, {"sequence_parallel": True}),
        ({"seq_parallel": "yes", "tp": "1", "dp": "64"}, {"sequence_parallel": False}),
        ({"zero_stage": "1", "sharding": "DDP+distributed optimizer"}, {"sharding": "distributed-optimizer"}),
        (
            {"zero_stage": "3", "sharding": "Megatron-FSDP group=64"},
            {"sharding": "megatron-fsdp", "shard_group": 0.0},
        ),
        (
            {"zero_stage": "3", "sharding": "FSDP FULL_SHARD"},
            {"sharding": "fsdp2", "framework": "torchtitan"},
        ),
        ({"zero_stage": "2", "sharding": "FSDP SHARD_GRAD_OP"}, {"sharding": "fsdp2-resident"}),
        (
            {"zero_stage": "3", "sharding": "FSDP FULL_SHARD", "precision": "bf16 (PURE)"},
            {"sharding": "fsdp-half"},
        ),
        ({"precision": "fp16"}, {"sharding": "ddp-half"}),
        ({"zero_stage": "3", "sharding": "FSDP2 group=8"}, {"sharding": "hsdp", "shard_group": 8.0}),
        ({"zero_stage": "3", "sharding": "FSDP2 group=16"}, {"sharding": "fsdp2", "shard_group": 0.0}),
        ({"zero_stage": "0", "sharding": "DDP (Megatron-DeepSpeed)"}, {"sharding": "zero0"}),
        ({"zero_stage": "3", "sharding": "ZeRO-3"}, {"sharding": "zero3", "framework": "deepspeed"}),
        (
            {"framework": "InternEvo", "zero_stage": "1", "sharding": "ZeRO-1 over 8 ranks"},
            {
                "sharding": "zero1-broadcast",
                "shard_group": 8.0,
                "runtime": "internevo",
                "attention": "flash",
                "overlap_dp": True,
                "overlap_tp": False,
            },
        ),
        ({"zero_stage": "", "sharding": "distributed-optimizer"}, {"sharding": "distributed-optimizer"}),
        ({"zero_stage": "", "sharding": "zero3"}, {"sharding": "zero3", "runtime": "deepspeed"}),
        ({"zero_stage": "", "sharding": "HSDP group=8"}, {"sharding": "hsdp", "shard_group": 8.0}),
        ({"zero_stage": "", "sharding": ""}, {"sharding": "distributed-optimizer", "overlap_dp": True}),
        ({"zero_stage": "3", "sharding": "", "framework": "deepspeed"}, {"sharding": "zero3"}),
        ({"zero_stage": "", "sharding": "", "framework": "torchtitan"}, {"sharding": "fsdp2"}),
        ({"zero_stage": "1"}, {"sharding": "distributed-optimizer"}),
        ({"zero_stage": "3", "sharding": "FSDP", "framework": "megatron"}, {"sharding": "megatron-fsdp"}),
        (
            {"zero_stage": "3", "sharding": "FSDP", "framework": "llm-foundry"},
            {"sharding": "fsdp2", "runtime": "fsdp", "framework": "torchtitan"},
        ),
        ({"framework": "deepspeed"}, {"sharding": "zero0", "framework": "deepspeed"}),
        ({"recompute": "selective"}, {"recompute": "attention"}),
        ({"precision": "bf16 (PURE: params/grads/reduce bf16)"}, {"format": "bf16"}),
        ({"precision": "amp_fp8"}, {"format": "fp8"}),
        ({"precision": "FP8-CS"}, {"format": "fp8"}),
        ({"precision": "FP8-MX"}, {"format": "mxfp8"}),
        ({"precision": "NVFP4"}, {"format": "nvfp4"}),
        ({"precision": "fp16"}, {"format": "fp16", "attention": "unfused"}),
        ({"precision": "fp16", "notes": "FlashAttention"}, {"attention": "flash"}),
        ({**MOE, "notes": "tokendrop; x"}, {"dispatch": "capacity", "ep": 8.0}),
    ],
)
def test_what_cells_say_of_the_plan(
    read: Read, cells: Mapping[str, str], expected: Mapping[str, Any]
) -> None:
    (plan,) = one(read(cells)).plans
    assert {name: plan[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("cells", "kind", "reason"),
    [
        ({}, "exact", ""),
        (MOE, "mixture", ""),
        ({"recompute": "unspecified"}, "bounds", "recomputation unspecified"),
        ({"micro_batch": ""}, "bounds", "micro batch unspecified"),
        ({"tp": "", "pp": "", "dp": ""}, "bounds", "layout unspecified"),
        ({"precision": "unspecified (bf16 or fp8)"}, "bounds", "precision unspecified"),
        ({"flag": "odd"}, "flagged", "odd"),
        ({"dp": "8"}, "skipped", "layout does not multiply to the GPU count"),
        (
            {"global_batch": "500"},
            "skipped",
            "global batch is no multiple of micro-batch times data parallel ranks",
        ),
        ({"tp": "2.5"}, "skipped", "layout does not multiply to the GPU count"),
        ({"micro_batch": "0"}, "skipped", "layout has a count that is not a whole number above 0"),
        ({"layers": ""}, "skipped", "architecture not stated (layers)"),
        ({"layers": "0"}, "skipped", "architecture has counts that cannot be (layers)"),
        (
            {"hidden": "-4", "heads": "1e300"},
            "skipped",
            "architecture has counts that cannot be (hidden, heads)",
        ),
        ({"seq_len": "1e9"}, "skipped", "sequence length 1e+09 is no whole number up to 2^24"),
        ({"moe": "E=2;topk=4"}, "skipped", "mixture of experts not understood (E=2;topk=4)"),
        ({**MOE, "moe": "E=8;topk=2;moe_ffn="}, "mixture", ""),
        ({"moe": "hybrid mamba"}, "skipped", "hybrid Mamba architecture"),
        ({"moe": "E=lots"}, "skipped", "mixture of experts not understood (E=lots)"),
        ({"model": "Llama3 8B LoRA"}, "skipped", "LoRA, adapter, quantized or inference run"),
        ({"system": "Cray-1"}, "skipped", CRAY),
        ({"system": "h1000"}, "skipped", "GPU 'h1000' is not in the catalogue; did you mean 'h100-sxm'?"),
        ({"system": ""}, "skipped", "GPU not stated"),
        (
            {"sharding": "zero9"},
            "skipped",
            (
                "sharding 'zero9' is none of ddp, distributed-optimizer, megatron-fsdp, zero0, zero1, zero2, zero3, fsdp2, "
                "fsdp2-resident and hsdp"
            ),
        ),
        (
            {"sharding": "ZeRO-3", "zero_stage": "1"},
            "skipped",
            "sharding 'ZeRO-3' is ZeRO stage 3, but zero_stage is 1",
        ),
        ({"sharding": "", "zero_stage": "2"}, "skipped", "zero_stage 2 is none of megatron's"),
        ({"seq_parallel": "yse"}, "skipped", "seq_parallel 'yse' is neither yes nor no"),
        ({"overlap_dp": "maybe"}, "skipped", "overlap_dp 'maybe' is neither yes nor no"),
        ({"attention": "flash9"}, "skipped", "attention 'flash9' is none of flash3, flash and unfused"),
        (
            {"pp": "4", "dp": "4", "vpp": "2", "schedule": "gpipe"},
            "skipped",
            "schedule 'gpipe' with vpp 2: interleaved is what has more than 1",
        ),
        ({"n_gpus": ""}, "skipped", "GPU count not stated"),
        ({"seq_len": ""}, "skipped", "sequence length not stated"),
        ({"seq_len": "0"}, "skipped", "sequence length not stated"),
        ({"precision": "int3"}, "skipped", "precision 'int3' is none of bf16, fp16, fp8, mxfp8 and nvfp4"),
        (
            {"recompute": "some"},
            "skipped",
            "recompute 'some' is none of none, full, selective, attention and mlp",
        ),
        (
            {"metric": "loss"},
            "skipped",
            (
                "metric 'loss' is no time or rate of a training step; accepted: iter_s, tokens_s_gpu, tokens_s, "
                "tflops_per_gpu, mfu, hfu"
            ),
        ),
        ({"value": ""}, "skipped", "no value"),
        ({"value": "-1"}, "skipped", "value is not above 0"),
        ({"metric": "mfu"}, "skipped", "metric 'mfu' needs peak_tflops_used, which is empty"),
    ],
)
def test_kinds_of_rows_and_why(read: Read, cells: Mapping[str, str], kind: str, reason: str) -> None:
    row = one(read(cells))
    assert (row.kind, row.reason) == (kind, reason)
    assert bool(row.plans) == (kind != "skipped")


def test_an_open_plan_has_legal_ends(published: Rows) -> None:
    """Every plan that is tried for a row multiplies to the GPU count and divides the batch."""
    opened = [row for row in published.rows if row.kind == "bounds"]
    assert len(opened) > 50
    for row in opened:
        assert len(row.plans) == len(row.jobs) > 1
        for plan, job in zip(row.plans, row.jobs, strict=True):
            tp, pp, cp, dp, size = (float(plan[name]) for name in ("tp", "pp", "cp", "dp", "micro_batch"))
            assert tp * pp * cp * dp == job["n_gpus"]
            assert job["global_batch"] % (dp * size) == 0
            assert row.model is not None
            assert row.model["heads"] % tp == 0


def test_unspecified_recomputation_has_both_ends(read: Read) -> None:
    assert [plan["recompute"] for plan in one(read({"recompute": ""})).plans] == ["none", "full"]


def test_hardware_flops_are_those_of_the_paper(published: Rows) -> None:
    """Narayanan 2021 eq. 3 turns the published TFLOP/s of GPT-145.6B into seconds, with V = 51200."""
    row = next(row for row in published.rows if row.cells["model"] == "GPT-145.6B" and row.kind == "exact")
    batch, s, layers, h, vocab, gpus = 2304, 2048, 80, 12288, 51200, 1536
    flops = 96 * batch * s * layers * h**2 * (1 + s / (6 * h) + vocab / (16 * layers * h))
    assert row.target is not None
    assert row.target.seconds == pytest.approx(flops / (float(row.cells["value"]) * 1e12 * gpus), rel=1e-12)


def test_rates_convert_by_tokens_and_model_flops(read: Read) -> None:
    tokens = 512 * 2048
    rates = {
        "iter_s": (10.0, 10.0),
        "tokens_s_gpu": (tokens / 640, 10.0),
        "tokens_s": (tokens / 10, 10.0),
    }
    for metric, (value, seconds) in rates.items():
        target = one(read({"metric": metric, "value": repr(value)})).target
        assert target is not None
        assert target.seconds == pytest.approx(seconds)
    forward = 2 * (36 * (4 * 4096**2 + 8 * 4096**2 + 2 * 2048 * 4096) + 4096 * 51200)
    target = one(read({"metric": "tflops_per_gpu", "value": "150"})).target
    assert target is not None
    assert target.seconds == pytest.approx(3 * forward * tokens / (150e12 * 64))


def test_seconds_return_to_the_unit_of_value(published: Rows) -> None:
    for row in published.rows:
        if row.target:
            again = row.target.in_unit(row.target.seconds)
            # a row may print a second, rounded figure; value itself is what counts
            assert again == pytest.approx(row.target.value, rel=1e-9)
            assert row.target.in_unit(2 * row.target.seconds) == pytest.approx(
                again / 2 if row.target.is_rate else again * 2
            )


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (
            {},
            {
                "gated": 0,
                "layernorm": 1,
                "tied": 1,
                "qkv_bias": 1,
                "positions": 2048,
                "dropout": 0,
                "norms": 2,
            },
        ),
        ({"precision": "fp16"}, {"dropout": 1}),
        ({"activation": "swiglu", "model": "Llama"}, {"gated": 1, "layernorm": 0, "tied": 0, "positions": 0}),
        ({"activation": "relu2"}, {"gated": 0, "layernorm": 1, "tied": 0, "mlp_bias": 0}),
        ({"model": "MPT-7b"}, {"layernorm": 0, "qkv_bias": 0, "tied": 1, "positions": 2048}),
        ({"kv_heads": ""}, {"kv_heads": 32}),
        (
            MOE,
            {"experts": 128, "top_k": 8, "expert_ffn": 768, "moe_layers": 48, "qk_norm": 1, "shared_ffn": 0},
        ),
        (
            {**MOE, "model": "GPT-OSS 20B", "moe": "E=32;topk=4"},
            {"expert_ffn": 6144, "sinks": 1, "window_layers": 24},
        ),
        (
            {
                **MOE,
                "model": "x",
                "head_dim": "",
                "moe": "E=256;topk=8;moe_ffn=2048;shared=1;dense_first=3;MLA",
            },
            {"mla": 1, "moe_layers": 45, "shared_ffn": 2048, "kv_lora": 512, "head_dim": 192},
        ),
    ],
)
def test_architectures(read: Read, cells: Mapping[str, str], expected: Mapping[str, float]) -> None:
    model = one(read(cells)).model
    assert model is not None
    assert {name: model[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("system", "name"),
    [
        ("A100-80GB SXM (Selene)", "a100-sxm-80"),
        ("A100-40GB (DGX-A100)", "a100-sxm-40"),
        ("A800-80GB", "a100-sxm-80"),
        ("V100-32GB (DGX-2)", "v100-sxm2-32"),
        ("H100", "h100-sxm"),
        ("B200", "b200-sxm"),
        ("GB200 (NVL72)", "gb200-nvl72"),
        ("GB300 (NVL72)", "gb300-nvl72"),
        ("TPU v5p", "tpu-v5p"),
        ("h100-pcie", "h100-pcie"),
        ("H800", "h100-sxm"),
        ("L4", "l4"),
        ("L40S", "l40s"),
        ("A100 PCIe 80GB", "a100-pcie-80"),
        ("A100 PCIe 40GB", ""),
        ("a pile of cards", ""),
        ("h1000", ""),
        ("xh100", ""),
        ("H100 NVL", ""),
        ("V100-16GB", ""),
        ("h200-sxm", "h200-sxm"),
        ("orin-agx-64", "orin-agx-64"),
    ],
)
def test_systems(system: str, name: str) -> None:
    assert hardware_of(system) == name


@pytest.mark.parametrize(
    ("system", "notes", "expected"),
    [
        ("A100-80GB", "inter-node RoCE 1600 Gb/s", Cluster(0.0, 25e9, 0.0)),
        ("A100-80GB", "inter-node 4x100Gb RoCE", Cluster(0.0, 6.25e9, 0.0)),
        ("A100-80GB", "Selene: 8 HDR 200Gb/s HCAs per 8-GPU node", Cluster(0.0, 25e9, 0.0)),
        ("A100-80GB", "8x200 Gb/s HDR IB per node", Cluster(0.0, 25e9, 0.0)),
        ("A100-80GB", "intra-node 150 GB/s and inter-node 800 Gb/s per node", Cluster(0.0, 12.5e9, 150e9)),
        ("V100-32GB (4/node NVLink, Jean-Zay OmniPath)", "", Cluster(4.0, 12.5e9, 0.0)),
        ("V100-32GB (DGX-2)", "", Cluster(16.0, 6.25e9, 0.0)),
        ("GB200 (NVL72)", "", Cluster(64.0, 0.0, 0.0)),
        ("A800-80GB", "", Cluster(0.0, 0.0, 200e9)),
        ("H800", "", Cluster(0.0, 0.0, 200e9)),
        ("H100", "", Cluster()),
    ],
)
def test_clusters(system: str, notes: str, expected: Cluster) -> None:
    """Gb/s of a node become B/s for each of its GPUs."""
    assert cluster_of(system, notes) == expected


def test_the_published_table_is_mostly_scored(published: Rows) -> None:
    counts = published.counts()
    assert counts["exact"] > 400
    assert counts["skipped"] == 0
    banned = ("vtrain", "aiconfigurator", "vidur", "infersim", "golden")
    assert not [
        row for row in published.rows if any(word in row.cells["source"].casefold() for word in banned)
    ]
    assert all(row.cells["source_locator"] for row in published.rows)
    assert PUBLISHED.stat().st_size < 300_000


def hardware_table() -> dict[str, dict[str, Any]]:
    chip = {"link": 300e9, "bf16": 312e12, "fp16": 312e12, "generation": "ampere", "fp4": None}
    volta = {"link": 150e9, "bf16": 0.0, "fp16": 125e12, "generation": "volta", "fp4": 1.0}
    return {"a100-sxm-80": chip, "v100-sxm2-32": volta}


def test_arrays_for_the_cost_model(read: Read) -> None:
    rows = read(
        {"recompute": ""},
        {"system": "V100-32GB", "precision": "fp16", "sharding": "ZeRO-3", "zero_stage": "3"},
        {"system": "A800-80GB", "notes": "inter-node RoCE 1600 Gb/s"},
        {"value": ""},
    )
    cases = rows.cases(("exact", "bounds"))
    assert cases.row.tolist() == [0, 0, 1, 2]
    assert cases.seconds.tolist() == [10.0] * 4
    shardings = {"ddp": {"resident": 18.0, "whole": True}, "zero3": {"resident": 0.0, "whole": False}}
    efficiency = {"ampere": {"gemm": 0.8}, "volta": {"gemm": 0.6}}
    g = cases.namespace({"sharding": shardings}, hardware_table(), efficiency, cluster={"rack": 0.0})
    assert g.model.layers.tolist() == [36.0] * 4
    assert g.sharding.resident.tolist() == [18.0, 18.0, 0.0, 18.0]
    assert g.sharding.whole.dtype == bool
    assert g.recompute.tolist() == ["none", "full", "full", "full"]
    assert g.efficiency.gemm.tolist() == [0.8, 0.8, 0.6, 0.8]
    assert g.hardware.link.tolist() == [300e9, 300e9, 150e9, 200e9]
    assert g.hardware.bf16.tolist() == [312e12, 312e12, 125e12, 312e12]  # fp16 runs take the fp16 rate
    assert np.isnan(g.hardware.fp4[0])
    assert g.cluster.nic.tolist() == [0.0, 0.0, 0.0, 25e9]
    assert (g.cluster.rack, g.attention_share, g.n_gpus.tolist()) == (0.0, 1.0, [64.0] * 4)
    other = g.replaced(n_gpus=1.0)
    assert (other.n_gpus, g.n_gpus.tolist()) == (1.0, [64.0] * 4)
    with pytest.raises(AttributeError, match="no 'nothing' among"):
        _ = g.nothing
    with pytest.raises(KeyError, match="no row 'zero3' among ddp"):
        cases.namespace({"sharding": {"ddp": {}}}, hardware_table())


def test_no_cases_at_all(read: Read) -> None:
    cases = read({"value": ""}).cases()
    assert len(cases) == 0
    assert cases.namespace({}, hardware_table()).n_gpus.shape == (0,)


def test_numbers_may_be_written_differently(read: Read) -> None:
    first, second, third = read({"tp": "4"}, {"tp": "4.0"}, {"tp": "2", "dp": "32"}).rows
    assert first.configuration == second.configuration != third.configuration
    assert first.plan != third.plan
    assert first.plan_sweep == third.plan_sweep


def test_the_catalogue_helps_where_a_row_only_names_its_model(read: Read) -> None:
    nothing = dict.fromkeys(("layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab"), "")
    rows = read(
        {**nothing, "model": "LLAMA3_70B"}, {**nothing, "model": "GPT-9"}, {"model": "LLAMA3_70B"}
    ).rows
    known, unknown, stated = rows
    assert known.model is not None
    assert stated.model is not None
    assert (known.model["layers"], known.model["kv_heads"], stated.model["layers"]) == (80, 8, 36)
    assert unknown.reason == "architecture not stated (layers, hidden, ffn, heads, vocab)"


def test_row_of_the_tests_is_complete() -> None:
    assert set(REQUIRED) <= set(ROW)
    assert math.prod(int(ROW[name]) for name in ("tp", "pp", "cp", "dp")) == int(ROW["n_gpus"])
