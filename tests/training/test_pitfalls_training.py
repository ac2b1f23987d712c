"""Where public tools went wrong, the space is right: one test for each kind of mistake that concerns training."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from dse.evaluation import State, judge
from dse.problem.library import load
from dse.spaces.catalog import architecture
from dse.spaces.training import activations, compute, flops, layout, memory, state
from tests.training.legal_plans import CASES, drawn, names, namespace, plan_of, space, traced

KINDS = {
    "KV heads": "catalog/test_counts.py::test_grouped_queries_cache_the_key_value_heads",
    "head_dim": "catalog/test_counts.py::test_attention_uses_the_given_head_width",
    "MLA KV cache": "catalog/test_counts.py::test_latent_attention_counts_its_own_matrices",
    "TP and kv heads": "training/test_pitfalls_training.py::test_tp_and_kv_heads",
    "sliding windows": "training/test_pitfalls_training.py::test_a_window_caps_the_attention_of_its_own_layers",
    "GLU and GQA parameters": "catalog/test_counts.py::test_a_gated_mlp_has_three_matrices",
    "MoE": "training/test_pitfalls_training.py::test_experts_take_memory_and_the_chosen_ones_time",
    "FLOPs": "training/test_pitfalls_training.py::test_flops_use_the_real_widths",
    "attention convention": "training/test_pitfalls_training.py::test_mfu_names_how_attention_is_counted",
    "recompute": "training/test_pitfalls_training.py::test_recomputing_fused_attention_saves_almost_nothing",
    "layer norm": "training/test_memory.py::test_a_norm_keeps_2sbh_bytes",
    "ZeRO-2": "training/test_pitfalls_training.py::test_bytes_of_zero_2",
    "ZeRO-3": "training/test_pitfalls_training.py::test_zero_3_gathers_layers",
    "ZeRO with PP": "training/test_pitfalls_training.py::test_zero_with_pipelines",
    "interleaving": "training/test_structure.py::test_its_neighbours_are_illegal_with_a_reason",
    "divisibility": "training/test_pitfalls_training.py::test_sequences_divide_over_tensor_parallel_ranks",
    "peaks": "training/test_pitfalls_training.py::test_utilization_is_of_the_dense_peak_in_use",
    "unknown hardware": "training/test_space.py::test_unknown_names_list_the_nearest",
    "link speed": "catalog/test_tables.py::test_links_are_bytes_per_second_in_one_direction",
    "no room": "training/test_pitfalls_training.py::test_a_plan_without_room_is_told_apart",
    "bytes": "training/test_pitfalls_training.py::test_memory_is_in_gib_and_what_a_gpu_has_in_bytes",
    "silence": "training/test_pitfalls_training.py::test_every_design_has_a_verdict",
    "batch": "training/test_pitfalls_training.py::test_all_plans_share_the_global_batch",
}
"""The test of each kind; block formats and time per output token concern inference alone."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_test(kind: str) -> None:
    file, _, test = KINDS[kind].partition("::")
    text = Path(__file__).parents[1].joinpath(file).read_text(encoding="utf-8")
    assert f"def {test}(" in text


def numbers(problem: Any, **values: Any) -> Any:
    return namespace(problem, names(problem, plan_of(problem, **values)))


def test_tp_and_kv_heads() -> None:
    row = "tables.models.llama-3.2-3b"
    problem = load("training", {"model": "llama-3.2-3b", f"{row}.kv_heads": "6", "framework": "any"})
    assert judge(problem, plan_of(problem, tp=2)).rule is None
    verdict = judge(problem, plan_of(problem, tp=4))  # 24 heads, 6 KV heads
    assert verdict.state is State.ILLEGAL
    assert "TP 4 neither divides the KV heads nor is a multiple of them" in verdict.reason
    problem = space(model="llama-3.2-3b")
    verdict = judge(problem, plan_of(problem, tp=16))
    assert verdict.reason == "TP 16 does not divide 24 attention heads"
    problem = space(model="qwen3-32b")  # 64 heads, 8 KV heads: 16 ranks hold them twice
    assert judge(problem, plan_of(problem, tp=16)).rule is None
    g = numbers(problem, tp=16)
    assert state.replicas(g)["kv_heads"] == 64 * 2 * 8 * 128 * 5120
    assert flops.extra_flops(g)["replication"] > 0
    eight, sixteen = (compute.layer(numbers(problem, tp=tp)).attention for tp in (8, 16))
    assert sixteen > eight / 2


def test_a_window_caps_the_attention_of_its_own_layers() -> None:
    problem = space(model="gpt-oss-20b", seq_len="16384")
    g = numbers(problem)
    capped = compute.layer(g).core
    m = names(problem, plan_of(problem))["model"]
    assert (m.window, m.window_layers, m.layers) == (128, 12, 24)
    g.model._model.window, g.model._model.window_layers = 0, 0
    whole = compute.layer(g).core
    # half of the layers see all that came before, the others 128 tokens and fewer at the beginning
    seen = 128 * (1 - 128 / (2 * 16384))
    assert capped / whole == pytest.approx(0.5 + 0.5 * seen / (16384 / 2), rel=1e-12)


def test_experts_take_memory_and_the_chosen_ones_time() -> None:
    problem = space(model="mixtral-8x7b", n_gpus="64", global_batch="64", seq_len="2048")
    g = numbers(problem, sharding="ddp")
    assert state.held(g, 0).total == pytest.approx(architecture.parameters(g.model))
    used = architecture.active_parameters(g.model, 0)
    attention = architecture.attention_flops(g.model, 2048) / 2
    assert flops.model_flops(g) == pytest.approx(6 * (used + attention) * 64 * 2048, rel=1e-3)
    dense = compute.layer(g).mlp
    # one token in a quarter of the experts: a quarter of the time of all, but for smaller matrices
    assert dense < 0.5 * 2 * 2048 * 8 * architecture.expert_parameters(g.model) / 989.4e12 / g.efficiency.gemm


def test_flops_use_the_real_widths() -> None:
    problem = space(model="qwen3-4b", n_gpus="1", global_batch="1", seq_len="4096")
    h, layers, heads, kv_heads, width, ffn, vocab = 2560, 36, 32, 8, 128, 9728, 151936
    weights = layers * (h * width * (2 * heads + 2 * kv_heads) + 3 * h * ffn) + h * vocab  # no embedding
    core = layers * 2 * 4096 * heads * width  # causal
    assert flops.model_flops(numbers(problem)) == 3 * 4096 * (2 * weights + core)


def test_mfu_names_how_attention_is_counted() -> None:
    found = {}
    for convention in ("causal", "full"):
        problem = space(model="llama-3-8b", attention_flops=convention)
        assert problem.inputs["attention_flops"].value == convention
        assert "attention_flops" in problem.metrics["mfu"].about
        found[convention] = traced(problem, plan_of(problem))
    assert found["full"]["mfu"] > found["causal"]["mfu"]
    assert found["full"]["iteration_time"] == found["causal"]["iteration_time"]


def test_recomputing_fused_attention_saves_almost_nothing() -> None:
    for attention, least in (("flash3", 0.97), ("unfused", 0.0)):
        problem = space(model="llama-3-8b", attention=attention)
        none, core = (traced(problem, plan_of(problem, recompute=kind)) for kind in ("none", "attention"))
        kept = core["activations"] / none["activations"]
        assert least < kept < (1 if least else 0.7)
        assert core["recompute_time"] > 0


def test_bytes_of_zero_2() -> None:
    assert state.ZERO[2] == (2, 14)
    problem = space(model="llama-3-8b", n_gpus="8", global_batch="8", framework="deepspeed")
    g = numbers(problem, sharding="zero2")
    assert state.state_bytes(g, 0) == pytest.approx((2 + 18 / 8) * state.held(g, 0).total, rel=1e-14)


def test_zero_3_gathers_layers() -> None:
    problem = space(model="llama-3-8b", n_gpus="8", global_batch="8", framework="deepspeed")
    lines = memory.memory(numbers(problem, sharding="zero3"))
    layer = 218_112_000  # two norms and the matrices of a layer
    assert lines["gathered_weights"] >= 4 * layer
    assert lines["buckets"] > 0
    plain = memory.memory(numbers(problem, sharding="zero2"))
    assert plain["gathered_weights"] == 0


@pytest.mark.parametrize(
    ("framework", "sharding", "said"),
    [
        ("deepspeed", "zero1", ""),
        ("deepspeed", "zero2", "DeepSpeed's zero2 does not work with pipeline parallelism"),
        ("deepspeed", "zero3", "DeepSpeed's zero3 does not work with pipeline parallelism"),
        ("any", "zero3", "DeepSpeed's zero3 does not work with pipeline parallelism"),
        ("torchtitan", "fsdp2", ""),
        ("torchtitan", "fsdp2-resident", ""),
        ("megatron", "distributed-optimizer", ""),
        ("megatron", "zero1", "megatron does not offer zero1"),
        ("torchtitan", "zero3", "torchtitan does not offer zero3"),
    ],
)
def test_zero_with_pipelines(framework: str, sharding: str, said: str) -> None:
    problem = space(model="llama-3-8b", n_gpus="64", global_batch="64", framework=framework)
    verdict = judge(problem, plan_of(problem, pp=4, sharding=sharding, overlap_dp=True))
    assert (verdict.rule is None) == (said == "")
    assert verdict.reason == said


def test_sequences_divide_over_tensor_parallel_ranks() -> None:
    problem = space(model="llama-3-8b", n_gpus="64", global_batch="64", seq_len="4100")
    assert judge(problem, plan_of(problem, tp=8)).rule is None
    verdict = judge(problem, plan_of(problem, tp=8, sequence_parallel=True))
    assert verdict.rule is not None
    assert verdict.rule.name == "sequence"
    assert "4100" in verdict.reason
    assert "TP 8" in verdict.reason


def test_utilization_is_of_the_dense_peak_in_use() -> None:
    for chip, form, peak in [
        ("h100-sxm", "bf16", 989.4e12), ("h200-sxm", "bf16", 989.4e12), ("h100-sxm", "fp8", 1978.9e12),
        ("b200-sxm", "bf16", 2250e12), ("b200-sxm", "nvfp4", 9000e12), ("v100-sxm2-32", "fp16", 125e12),
    ]:  # fmt: skip
        problem = space(model="llama-3-8b", hardware=chip, precision=form, n_gpus="8", global_batch="8")
        found = traced(problem, plan_of(problem, format=form))
        g = numbers(problem, format=form)
        rate = flops.model_flops(g) / found["iteration_time"] / 8
        assert found["mfu"] == pytest.approx(rate / peak, rel=1e-12)
        assert found["mfu"] < 1


def test_a_plan_without_room_is_told_apart() -> None:
    problem = space(model="llama-3.1-405b", n_gpus="8", global_batch="8", framework="megatron")
    verdict = judge(problem, plan_of(problem, tp=8, sequence_parallel=True))
    assert verdict.state is State.INFEASIBLE
    assert verdict.violations[0] > 0
    (constraint,) = problem.constraints
    assert constraint.because is not None
    assert "".join(map(str, constraint.because.parts)) == "the fullest GPU has no room"


def test_memory_is_in_gib_and_what_a_gpu_has_in_bytes() -> None:
    problem = space(model="llama-3-8b")
    assert problem.metrics["peak_memory"].unit.text == "GiB"
    assert numbers(problem).hardware.memory == 85_520_809_984
    design = plan_of(problem, tp=8)
    assert traced(problem, design)["weights"] == pytest.approx(
        2 * state.held(numbers(problem, tp=8), 0).total, rel=1e-12
    )


@pytest.mark.parametrize("case", CASES)
def test_every_design_has_a_verdict(case: str) -> None:
    """Legal or not: a result, or a sentence."""
    problem = space(**CASES[case])
    rng = random.Random(case)
    designs = [problem.design_at([rng.randrange(size) for size in problem.sizes]) for _ in range(60)]
    for design in [*designs, *drawn(problem, 20, 5)]:
        verdict = judge(problem, design)
        assert verdict.state is not State.FAILED
        if verdict.state is State.ILLEGAL:
            assert len(verdict.reason) > 10
            assert "{" not in verdict.reason
        else:
            assert 0 < verdict.objectives[0] < 1e9


@pytest.mark.parametrize("case", CASES)
def test_all_plans_share_the_global_batch(case: str) -> None:
    problem = space(**CASES[case])
    tokens = float(problem.inputs["global_batch"].value) * float(problem.inputs["seq_len"].value)
    for design in drawn(problem, 20, 7):
        g = namespace(problem, names(problem, design))
        assert layout.micro_batches(g) * layout.dp(g) * g.micro_batch * g.seq_len == tokens
        assert layout.micro_batches(g) % 1 == 0
        assert layout.dp(g) * g.tp * g.pp * g.cp == problem.inputs["n_gpus"].value
        assert activations.in_flight(g, 0) <= layout.micro_batches(g)
