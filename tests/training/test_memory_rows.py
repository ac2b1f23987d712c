"""What a table of measured memory says of the runtime, the peak that was measured, and Megatron-LM's test models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from dse.spaces.training.measured.given import load_given
from dse.spaces.training.measured.memory_rows import GIB, MemoryRow, read_memory_rows
from dse.spaces.training.measured.memory_scores import score_memory
from dse.spaces.training.measured.predictions import predict_memory
from tests.training.measured_tables import MEMORY, write_table

LORA = {
    "source": "LitGPT resource tables", "system": "A100-40GB SXM", "n_gpus": "1", "model": "Llama 2 7 B", "layers": "32",
    "hidden": "4096", "ffn": "11008", "heads": "32", "kv_heads": "32", "head_dim": "128", "vocab": "32000",
    "seq_len": "dataset max (e.g. 1304 tokens for Llama 2)", "global_batch": "128", "micro_batch": "1", "tp": "1",
    "cp": "", "ep": "", "vpp": "", "dp": "1", "sharding": "none", "recompute": "unspecified", "precision": "bf16-true",
    "activation": "", "metric": "peak_mem_gb", "value": "21.3", "capacity_gb": "40",
    "notes": "Finetuning with LoRA on 1 GPU; trainable params 4,194,304",
}  # fmt: skip
"""Lightning-AI/litgpt, tutorials/resource-tables.md."""


def rows_of(path: Path, changes: list[Mapping[str, str]]) -> tuple[MemoryRow, ...]:
    rows: tuple[MemoryRow, ...] = read_memory_rows(write_table(path / "m.csv", changes, MEMORY)).rows
    return rows


@pytest.mark.parametrize(
    ("cells", "target", "unit"),
    [
        ({"source": "LitGPT resource tables", "metric": "peak_mem_gb"}, "allocated", 1e9),
        ({"source": "InternEvo GPU memory test", "metric": "peak_mem_gb"}, "device", GIB),
        ({"source": "NVIDIA DGX Cloud Benchmarking recipes", "metric": "peak_mem_gib"}, "reserved", GIB),
        ({"metric": "max_reserved_gb"}, "reserved", 1e9),
        ({"metric": "peak_mem_gib", "notes": "torch.cuda max_memory_allocated"}, "allocated", GIB),
    ],
)
def test_which_peak_a_source_prints(
    tmp_path: Path, cells: Mapping[str, str], target: str, unit: float
) -> None:
    (row,) = rows_of(tmp_path, [cells])
    assert (row.target, row.unit) == (target, unit)


@pytest.mark.parametrize(
    ("cells", "plan"),
    [
        ({"source": "LitGPT resource tables"}, {"runtime": "fsdp"}),
        ({"source": "InternEvo GPU memory test"}, {"runtime": "internevo"}),
        ({"model": "gpt/gpt3_7b_tp4_pp1_memory_speed"}, {"runtime": "megatron-unfused"}),
        ({"model": "gpt/gpt3_15b_8t_release"}, {"runtime": "megatron"}),
        ({"sharding": "DDP", "precision": "fp16"}, {"sharding": "ddp-half"}),
        (
            {
                "source": "NVIDIA DGX Cloud Benchmarking recipes",
                "sharding": "DDP+distributed optimizer",
                "zero_stage": "1",
            },
            {"sharding": "distributed-optimizer-bf16"},
        ),
    ],
)
def test_plans(tmp_path: Path, cells: Mapping[str, str], plan: Mapping[str, object]) -> None:
    (row,) = rows_of(tmp_path, [cells])
    assert row.run is not None
    assert {name: row.run.plans[0][name] for name in plan} == plan


DEFAULT_VOCABULARY = "GPT-2 BPE 50257 padded (test data) unless tokenizer differs"


@pytest.mark.parametrize(
    ("cells", "model"),
    [
        ({"model": "gpt/gpt3_7b_x_memory_speed"}, {"vocab": 131072, "dropout": 1, "layernorm": 1}),
        ({"model": "gpt/gpt3_7b_x_memory_speed", "vocab": "131073"}, {"vocab": 131073}),
        ({"model": "gpt/gpt3_15b_8t_release"}, {"vocab": 256000, "dropout": 0, "mlp_bias": 0}),
        ({"model": "gpt/gpt3_mcore_te"}, {"vocab": 50257, "dropout": 1, "positions": 2048}),
        ({"model": "gpt/gpt3_mcore_te", "activation": "swiglu"}, {"dropout": 0, "layernorm": 0}),
    ],
)
def test_models_of_megatron_tests(
    tmp_path: Path, cells: Mapping[str, str], model: Mapping[str, float]
) -> None:
    (row,) = rows_of(tmp_path, [{"vocab": DEFAULT_VOCABULARY, **cells}])
    assert row.run is not None
    assert row.run.model is not None
    assert {name: row.run.model[name] for name in model} == model


@pytest.mark.parametrize(("name", "divided"), [("moe/x_8experts", True), ("moe/x_etp1_ep4", False)])
def test_experts_are_divided_as_layers_are_unless_the_name_says_so(
    tmp_path: Path, name: str, divided: bool
) -> None:
    cells = {
        "model": name, "moe": "E=8;topk=2;moe_ffn=2048", "n_gpus": "8", "tp": "2", "ep": "4", "dp": "4",
        "global_batch": "32",
    }  # fmt: skip
    (row,) = rows_of(tmp_path, [cells])
    assert row.kind == "mixture"
    assert row.run is not None
    assert row.run.plans[0]["expert_tp"] is divided


def test_a_frozen_base_model_is_predicted_and_so_is_what_did_not_fit(tmp_path: Path) -> None:
    oom = {**LORA, "metric": "oom", "value": "OOM", "micro_batch": "4"}
    quantized = {**LORA, "precision": "bf16-true + bnb.nf4", "value": "14.14"}
    rows = rows_of(tmp_path, [LORA, {**LORA, "micro_batch": "2", "value": "29.07"}, oom, quantized])
    found = predict_memory(rows, load_given())
    assert [row.kind for row in rows] == ["exact", "exact", "oom", "skipped"]
    for at in (0, 1):
        assert found[at][0] == pytest.approx(rows[at].value * 1e9, rel=0.05)
    assert score_memory(rows, found).oom == ((2, True),)
