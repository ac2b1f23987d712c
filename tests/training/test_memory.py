"""Memory of training plans against published formulas, and what must hold for any plan."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dse.spaces.catalog import architecture
from dse.spaces.training import activations, layout, memory, state
from tests.training.memory_plans import GIB, RECOMPUTES, SCHEDULES, SHARDINGS, gpt, model, plan

STAGES = {
    "deepspeed": ("zero0", "zero1", "zero2", "zero3"),
    "megatron": ("ddp", "distributed-optimizer", "megatron-fsdp"),
}

PAPER: dict[str, tuple[SimpleNamespace, dict[str, Any], float, float, float]] = {
    "22B": (gpt(48, 6144, 64), {"tp": 8, "micro_batch": 4.0}, 59.25, 9.5625, 45.5625),
    "175B": (gpt(96, 12288, 96), {"tp": 8, "pp": 8, "chunks": 3}, 66.84375, 12.3515625, 45.5625),
    "530B": (gpt(105, 20480, 128), {"tp": 8, "pp": 35, "chunks": 3}, 114.0234375, 23.076171875, 31.640625),
    "1T": (gpt(128, 25600, 160), {"tp": 8, "pp": 64}, 131.25, 26.5625, 32.958984375),
}
"""Korthikanti 2022 (2205.05198) Fig. 1: activations without and with its two techniques, parameters and optimizer, GiB."""


@pytest.mark.parametrize("name", PAPER)
def test_activations_of_the_first_stage_are_those_of_the_paper(name: str) -> None:
    m, plan_, plain, both, _ = PAPER[name]
    batch: dict[str, Any] = {"global_batch": 640.0}
    assert activations.activation_bytes(plan(m, flash=0, **plan_, **batch)) / GIB == pytest.approx(
        plain, rel=1e-9
    )
    g = plan(m, flash=0, recompute="attention", sequence_parallel=True, **plan_, **batch)
    assert activations.activation_bytes(g) / GIB == pytest.approx(both, rel=1e-9)


@pytest.mark.parametrize("name", PAPER)
def test_matrices_and_their_optimizer_take_18_bytes_a_parameter(name: str) -> None:
    m, plan_, *_, kept = PAPER[name]
    g = plan(m, sharding="ddp", **plan_)
    matrices = state.held(g, 0).split + state.held(g, 0).kv
    assert state.kept_bytes(matrices, layout.shard_ranks(g), 18, 0) / GIB == pytest.approx(kept, rel=1e-9)


@pytest.mark.parametrize(
    ("stage", "gigabytes", "tolerance"), [(0, 120, 0), (1, 31.4, 2e-3), (2, 16.6, 3e-3), (3, 1.875, 0)]
)
def test_zero_stages_of_the_paper(stage: int, gigabytes: float, tolerance: float) -> None:
    """Rajbhandari 2020 Fig. 1: 7.5 B parameters on 64 ranks."""
    assert state.kept_bytes(7.5e9, 64, *state.ZERO[stage]) / 1e9 == pytest.approx(
        gigabytes, rel=max(tolerance, 1e-12)
    )


def test_zero_2_of_deepspeed_keeps_a_copy_of_the_gradients_in_fp32() -> None:
    g = plan(gpt(4, 512, 8), sharding="zero2", dp=8)
    parameters = state.held(g, 0).total
    assert state.state_bytes(g, 0) == parameters * (2 + 18 / 8)


def llama(**columns: float) -> SimpleNamespace:
    """Llama-3-8B."""
    return model(
        **{
            "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "ffn": 14336, "gated": 1,
            "vocab": 128256, **columns,
        }
    )  # fmt: skip


def mixtral() -> SimpleNamespace:
    """Mixtral 8x7B."""
    return llama(vocab=32000, ffn=0, experts=8, top_k=2, expert_ffn=14336, moe_layers=32)


def test_recomputing_attention_saves_almost_nothing_with_flash_attention() -> None:
    none, attention = (
        activations.activation_bytes(plan(llama(), recompute=kind)) for kind in ("none", "attention")
    )
    assert 0.99 * none < attention < none
    none, attention = (
        activations.activation_bytes(plan(llama(), recompute=kind, flash=0)) for kind in ("none", "attention")
    )
    assert attention < 0.7 * none


def test_a_norm_keeps_2sbh_bytes() -> None:
    two, four = (activations.dense_layer(plan(llama(norms=norms))).kept for norms in (2, 4))
    assert four - two == 2 * (2 * 2048 * 1 * 4096)


def test_memory_holds_all_experts_and_activations_those_used() -> None:
    g = plan(mixtral(), sharding="ddp")
    assert state.held(g, 0).total == pytest.approx(architecture.parameters(g.model))
    assert state.state_bytes(g, 0) > 18 * 46e9
    one, two = (
        activations.moe_layer(plan(SimpleNamespace(**{**vars(mixtral()), "top_k": k}))).kept
        for k in (1.0, 2.0)
    )
    assert two - one == 2048 * (4 * 4096 + 6 * 14336)


def test_zero_3_gathers_a_layer_even_on_one_rank_and_two_layers() -> None:
    g = plan(llama(layers=2, vocab=1000), sharding="zero3")
    layer = architecture.attention_parameters(g.model) + architecture.mlp_parameters(g.model)
    assert memory.stage_memory(g, 0)["gathered_weights"] >= 4 * layer
    assert memory.stage_memory(g, 0)["buckets"] > 0


def test_context_parallelism_divides_the_sequence() -> None:
    one, two = (memory.stage_memory(plan(llama(), cp=cp, seq_len=8192.0), 0) for cp in (1, 2))
    assert two["activations"] == one["activations"] / 2
    assert two["logits"] == one["logits"] / 2


def test_full_recomputation_keeps_the_inputs_of_blocks_and_works_on_one() -> None:
    tokens = 2048 * 4096
    one, four = (plan(llama(), recompute="full", recompute_block=block) for block in (1, 4))
    assert activations.activation_bytes(one) == 32 * 2 * tokens
    assert activations.activation_bytes(four) == 8 * 2 * tokens
    whole = activations.dense_layer(plan(llama())).kept
    assert activations.dense_layer(four).again == 4 * whole


@pytest.mark.parametrize(
    ("schedule", "chunks", "index", "expected"),
    [
        ("gpipe", 1, 0, 64), ("gpipe", 1, 7, 64), ("1f1b", 1, 0, 8), ("1f1b", 1, 7, 1), ("1f1b", 1, state.LAST, 1),
        ("1f1b", 4, 0, 8 + 7 / 4), ("1f1b", 4, state.LAST, 25 / 4), ("zb-h1", 1, 7, 8), ("dualpipe", 1, 3, 4.5),
    ],
)  # fmt: skip
def test_micro_batches_in_flight(schedule: str, chunks: int, index: int, expected: float) -> None:
    g = plan(llama(), pp=8, schedule=schedule, chunks=chunks)
    assert activations.in_flight(g, index) == expected


def test_no_more_micro_batches_are_in_flight_than_there_are() -> None:
    for schedule in SCHEDULES:
        g = plan(llama(), pp=8, schedule=schedule, global_batch=2.0)
        assert all(activations.in_flight(g, index) <= 2 for index in range(8))


def test_tied_embedding_is_copied_to_the_last_stage() -> None:
    g = plan(llama(tied=1), pp=4)
    assert state.held(g, 0).vocabulary == state.held(g, 3).vocabulary == 128256 * 4096
    assert state.replicas(g)["tied_embedding"] == 128256 * 4096
    assert state.replicas(plan(llama(tied=1)))["tied_embedding"] == 0


def test_offload_moves_the_optimizer_to_the_host() -> None:
    here, away = (plan(llama(), dp=8, offload=offload) for offload in (0, 1))
    moved = state.state_bytes(here, 0) - state.state_bytes(away, 0)
    assert (
        moved == pytest.approx(state.host_bytes(away, 0)) == memory.stage_memory(here, 0)["optimizer_state"]
    )
    assert memory.stage_memory(away, 0)["optimizer_state"] == 0


POWERS = [1, 2, 4, 8]


@st.composite
def models(draw: st.DrawFn) -> SimpleNamespace:
    """Small models of every kind: grouped queries, biases, tied embeddings, experts, latent attention."""

    def flag() -> float:
        return draw(st.integers(0, 1))

    layers, kv_heads = draw(st.sampled_from([8, 16])), draw(st.sampled_from([1, 2, 8]))
    columns: dict[str, float] = {
        "layers": layers, "hidden": draw(st.sampled_from([64, 192])), "heads": 8, "kv_heads": kv_heads, "head_dim": 16,
        "ffn": draw(st.sampled_from([64, 160])), "gated": flag(), "vocab": draw(st.integers(1, 3000)), "tied": flag(),
        "layernorm": flag(), "norms": draw(st.sampled_from([2, 4])), "qk_norm": flag(), "qkv_bias": flag(),
        "out_bias": flag(), "mlp_bias": flag(), "positions": 128 * flag(), "embedding_norm": flag(), "sinks": flag(),
    }  # fmt: skip
    if flag():
        columns |= {
            "experts": 8, "top_k": 2, "expert_ffn": 32, "shared_ffn": 32 * flag(), "moe_layers": layers - draw(st.integers(0, 3)),
            "router_bias": flag(), "expert_bias": flag(), "shared_gate": flag(),
        }  # fmt: skip
    if flag():
        columns |= {
            "mla": 1, "kv_heads": 8, "qkv_bias": 0, "qk_norm": 0, "q_lora": 32 * flag(), "kv_lora": 16, "rope_dim": 8,
            "nope_dim": 16, "value_dim": 16,
        }  # fmt: skip
    return model(**columns)


@st.composite
def plans(draw: st.DrawFn, shardings: tuple[str, ...] = tuple(SHARDINGS)) -> dict[str, Any]:
    """The arguments of a plan whose stages divide the layers."""
    m = draw(models())
    tp, pp = draw(st.sampled_from(POWERS)), draw(st.sampled_from(POWERS))
    wide = tp > 1
    values: dict[str, Any] = {
        "m": m, "tp": tp, "pp": pp, "cp": draw(st.sampled_from([1, 2])), "dp": draw(st.sampled_from([1, 2, 8])),
        "sequence_parallel": wide and draw(st.booleans()), "sharding": draw(st.sampled_from(shardings)),
        "recompute": draw(st.sampled_from(list(RECOMPUTES))), "flash": draw(st.integers(0, 1)),
    }  # fmt: skip
    values["schedule"] = draw(st.sampled_from(list(SCHEDULES))) if pp > 1 else "1f1b"
    if m.experts:
        values["expert_tp"] = wide and draw(st.booleans())
        values["ep"] = draw(st.sampled_from(POWERS))
        n_gpus = tp * pp * values["cp"] * values["dp"]
        assume(n_gpus % (pp * values["ep"] * (tp if values["expert_tp"] else 1)) == 0)
    return values


@settings(max_examples=60, deadline=None)
@given(plans())
def test_parameters_of_all_ranks_less_named_replicas_are_the_model(values: dict[str, Any]) -> None:
    g = plan(**values)
    expert_ranks = g.ep * layout.expert_tp(g)
    everywhere = 0.0
    for index in range(g.pp):
        own = state.held(g, index)
        everywhere += g.tp * own.dense + expert_ranks * own.experts
    assert everywhere - sum(state.replicas(g).values()) == architecture.parameters(g.model)
    assert all(count >= 0 for count in state.replicas(g).values())


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(list(STAGES)), st.data())
def test_state_never_grows_with_the_zero_stage(framework: str, data: st.DataObject) -> None:
    values = data.draw(plans())
    steps = [plan(**{**values, "sharding": name}) for name in STAGES[framework]]
    transient = ("gathered_weights", "buckets")
    for lower, higher in itertools.pairwise(steps):
        for index in {0, lower.pp - 1}:
            assert state.state_bytes(higher, index) <= state.state_bytes(lower, index) * (1 + 1e-12)
            low, high = memory.stage_memory(lower, index), memory.stage_memory(higher, index)
            named = sum(max(high[name] - low[name], 0) for name in transient)
            around = 1 + higher.runtime.fragmentation + higher.runtime.cache
            assert sum(high.values()) <= sum(low.values()) + named * around + 1


@settings(max_examples=40, deadline=None)
@given(plans())
def test_lines_sum_to_the_peak_of_the_worst_stage(values: dict[str, Any]) -> None:
    g = plan(**values)
    lines = memory.memory(g)
    assert tuple(lines) == memory.LINES
    assert all(size >= 0 for size in lines.values())
    every = [sum(memory.stage_memory(g, index, cache=0).values()) for index in range(g.pp)]
    assert sum(lines.values()) == pytest.approx(memory.peak(g))
    assert memory.peak(g) == pytest.approx(max(every))
    for index in range(g.pp):
        own = memory.stage_memory(g, index)
        kept = own["weights"] + own["gradients"] + own["optimizer_state"]
        assert kept == pytest.approx(state.state_bytes(g, index))
    assert memory.allocated(g, 0) <= memory.reserved(g, 0) <= memory.device(g, 0)
    assert memory.allocated(g, 0) <= every[0] <= memory.device(g, 0)


def test_arrays_give_what_numbers_give() -> None:
    tp, micro = np.array([1, 2, 4, 8]), np.array([1.0, 2.0, 4.0, 8.0])
    alone = [
        memory.memory(plan(llama(), tp=t, pp=2, n_gpus=64.0, global_batch=256.0, micro_batch=b))
        for t, b in zip(tp, micro, strict=True)
    ]
    g = plan(llama(), pp=2, n_gpus=64.0, global_batch=256.0)
    g.tp, g.micro_batch = tp, micro
    for name, sizes in memory.memory(g).items():
        assert np.broadcast_to(sizes, 4) == pytest.approx([lines[name] for lines in alone]), name
