"""Published figures of large models, from the training space itself: parameters, memory of papers, budgets."""

from __future__ import annotations

from typing import Any

import pytest

from dse.spaces.catalog import architecture, hardware, training_days, training_flops, training_state
from dse.spaces.training import activations, layout, state
from tests.training.legal_plans import names, namespace, plan_of, space, traced

GIB, GB, TB = 2.0**30, 1e9, 1e12

PARAMETERS = {
    "llama-2-7b": 6.738415616e9,
    "llama-2-70b": 68.976648192e9,
    "llama-3-8b": 8.030261248e9,
    "llama-3.1-405b": 405.853388800e9,
    "llama-3.2-1b": 1.235814400e9,
    "qwen3-4b": 4.022468096e9,
}
"""Of the published checkpoints."""


@pytest.mark.parametrize("model", PARAMETERS)
def test_parameters(model: str) -> None:
    problem = space(model=model)
    assert traced(problem, plan_of(problem))["parameters"] == PARAMETERS[model]


CACHED = {
    "llama-2-7b": 524288,
    "llama-3-8b": 131072,
    "llama-3-70b": 327680,
    "llama-3.1-405b": 516096,
    "qwen3-4b": 147456,
}


@pytest.mark.parametrize("model", CACHED)
def test_cached_bytes_of_a_token_in_bf16(model: str) -> None:
    row = space(model=model).inputs["model"]
    assert row.value == model
    problem = space(model=model)
    assert architecture.kv_bytes_per_token(names(problem, plan_of(problem))["model"], 2) == CACHED[model]


@pytest.mark.parametrize(
    ("stage", "gigabytes", "tolerance"),
    [(0, 120, 1e-12), (1, 31.4, 2e-3), (2, 16.6, 3e-3), (3, 1.875, 1e-12)],
)
def test_zero_of_7_5_billion_parameters_on_64_ranks(stage: int, gigabytes: float, tolerance: float) -> None:
    """Rajbhandari 2020 (1910.02054) Fig. 1."""
    assert state.kept_bytes(7.5e9, 64, *state.ZERO[stage]) / GB == pytest.approx(gigabytes, rel=tolerance)


KORTHIKANTI: dict[str, tuple[dict[str, Any], float, float, float]] = {
    "megatron-22b": ({"tp": 8, "micro_batch": 4}, 59.25, 9.5625, 45.5625),
    "megatron-175b": ({"tp": 8, "pp": 8, "schedule": "interleaved", "chunks": 3}, 66.84375, 12.3515625, 45.5625),
    "megatron-530b": ({"tp": 8, "pp": 35, "schedule": "interleaved", "chunks": 3}, 114.0234375, 23.076171875, 31.640625),
    "megatron-1t": ({"tp": 8, "pp": 64}, 131.25, 26.5625, 32.958984375),
}  # fmt: skip
"""Korthikanti 2022 (2205.05198) Fig. 1: activations of the layers with TP alone; with sequence parallelism and selective
recomputation; matrices and their optimizer at 18 bytes a parameter, all in GiB of a rank of the first stage.
"""


@pytest.mark.parametrize("model", KORTHIKANTI)
def test_memory_of_the_first_stage(model: str) -> None:
    values, plain, both, kept = KORTHIKANTI[model]
    ranks = values["tp"] * values.get("pp", 1)
    row = f"tables.models.{model}"  # the paper counts matrices alone, 12 L h^2
    problem = space(
        model=model, n_gpus=str(ranks), global_batch="2240", seq_len="2048", attention="unfused",
        **{f"{row}.qkv_bias": "0", f"{row}.mlp_bias": "0"},
    )  # fmt: skip

    def given(**more: Any) -> Any:
        return namespace(problem, names(problem, plan_of(problem, sharding="ddp", **values, **more)))

    assert activations.activation_bytes(given()) / GIB == pytest.approx(plain, rel=1e-6)
    g = given(sequence_parallel=True, recompute="attention")
    assert activations.activation_bytes(g) / GIB == pytest.approx(both, rel=1e-6)
    matrices = state.held(g, 0).split + state.held(g, 0).kv
    bytes_ = state.kept_bytes(matrices, layout.shard_ranks(g), g.sharding.resident, g.sharding.sharded)
    assert bytes_ / GIB == pytest.approx(kept, rel=1e-6)


def test_budgets() -> None:
    """T1 to T6: FLOPs are 6 x parameters x tokens."""
    gpt, llama = training_flops(175e9, 300e9), training_flops(405e9, 15.6e12)
    assert gpt == pytest.approx(3.15e23, rel=1e-3)
    assert llama == pytest.approx(3.79e25, rel=2e-3)
    peak = hardware("h100-sxm").bf16
    assert training_days(llama, 16384, peak, 0.40) == pytest.approx(67.7, rel=2e-3)
    assert training_state(405e9) / TB == pytest.approx(6.48, rel=1e-3)
    assert training_days(training_flops(70e9, 15e12), 2048, peak, 0.45) == pytest.approx(79.97, rel=2e-3)
    assert training_state(7e9) / GB == pytest.approx(112, rel=1e-6)


def test_days_of_the_space_are_those_of_the_budget() -> None:
    """A plan's days follow from its MFU as a budget's do, but for what 6 P T leaves out: attention and the embedding."""
    problem = space(model="llama-3.1-405b", n_gpus="16384", global_batch="2048", token_budget="15.6 Ttoken")
    design = plan_of(problem, tp=8, pp=16, edges="both", sequence_parallel=True, overlap_dp=True)
    found = traced(problem, design)
    flops = training_flops(architecture.parameters(names(problem, design)["model"]), 15.6e12)
    days = training_days(flops, 16384, hardware("h100-sxm").bf16, found["mfu"])
    assert found["days"] / 86400 == pytest.approx(days, rel=0.05)
    assert found["dollars"] == pytest.approx(found["days"] * 16384 * hardware("h100-sxm").price, rel=1e-9)


def test_a_data_parallel_rank_holds_the_whole_state() -> None:
    problem = space(model="llama-2-7b", n_gpus="64", global_batch="64", seq_len="4096")
    parameters = PARAMETERS["llama-2-7b"]
    found = traced(problem, plan_of(problem, sharding="ddp"))
    kept = found["weights"] + found["gradients"] + found["optimizer_state"]
    assert kept == pytest.approx(18 * parameters, rel=1e-12)  # 16, and gradients in fp32
    alone = traced(problem, plan_of(problem, sharding="distributed-optimizer"))
    kept = alone["weights"] + alone["gradients"] + alone["optimizer_state"]
    assert kept == pytest.approx((6 + 12 / 64) * parameters, rel=1e-12)
