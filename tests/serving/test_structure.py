"""What must hold of any plan: rooflines, what is read and kept, chunks as one prefill, FLOPs by name, one model for all uses."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import given as over
from hypothesis import strategies as st

from dse.spaces.catalog import architecture
from dse.spaces.serving import cost, load, memory, step
from tests.serving.plans import given, metrics, numbers, plan, space
from tests.training.legal_plans import drawn, efficiencies, traced

MODELS = ("llama-3.1-8b", "llama-2-70b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-20b", "qwen3-30b-a3b")
CHIPS = ("h100-sxm", "a100-sxm-80", "l40s", "gb200-nvl72")
BATCHES = np.arange(1.0, 513.0)
CONTEXTS = np.concatenate([np.arange(1.0, 300.0), np.arange(300.0, 140_000.0, 997.0)])
LENGTHS = st.integers(64, 32_768)


def drawing(examples: int) -> settings:
    """This many examples, always the same."""
    return settings(
        max_examples=examples, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
    )


def peak(g: Any) -> Any:
    return g.hardware.fp8 if g.activations.fp8 else max(g.hardware.bf16, g.hardware.fp16)


def rises(values: Any) -> bool:
    """Never less than the one before, to rounding."""
    return bool(np.all(values[1:] >= values[:-1] * (1 - 1e-12)))


# -- rooflines ---------------------------------------------------------------------------------------


@drawing(12)
@over(
    st.sampled_from(MODELS),
    st.sampled_from(CHIPS),
    st.sampled_from([1, 2, 4]),
    LENGTHS,
    st.sampled_from(
        [
            (engine, weights)
            for engine in ("vllm", "tensorrt-llm", "llama.cpp", "huggingface")
            for weights in ("bf16", "fp8", "int4-g128")
        ]
    ),
)
def test_no_step_is_faster_than_the_datasheet(
    model: str, chip: str, tp: int, context: int, kernels: tuple[str, str]
) -> None:
    engine, weights = kernels
    fp8 = "fp8" if weights == "fp8" and not chip.startswith("a100") else "bf16"
    problem = space(model=model, engine=engine)
    g = given(problem, hardware=chip, tp=tp, weights=weights, activations=fp8, batch=BATCHES)
    found = load.decode(g, BATCHES, context)
    work = found.work
    assert np.all(found.seconds > work.flops / peak(g))
    assert np.all(found.seconds > work.bytes / g.hardware.bandwidth)
    m = g.model
    looked_up = architecture.embedding_parameters(m) * (1 - m.tied) * 2.0 / tp
    routed = m.moe_layers * (m.experts - m.top_k) * architecture.expert_parameters(m) / tp
    once = memory.weight_bytes(g, m) - looked_up - routed * g.weights.bits_per_weight / 8
    assert np.all(work.bytes > 0.99 * once)  # norms are not read as matrices
    assert np.all(found.seconds > 0.99 * once / g.hardware.bandwidth)


def test_one_token_of_8_billion_parameters_takes_what_reading_them_takes() -> None:
    """16 bits over an H100's 3.35 TB/s are 4.776 ms of 8.0e9 parameters, 4.48 ms without the rows only looked up."""
    g = given(space(), batch=1.0)
    assert 8.0e9 * 2 / g.hardware.bandwidth == pytest.approx(4.776e-3, rel=1e-4)
    assert 4.776e-3 < load.decode(g, 1.0, 0.0).seconds < 2.0 * 4.776e-3  # vLLM, with what its host takes
    fast = given(space(engine="gpt-fast"), batch=1.0)
    assert 4.776e-3 < load.decode(fast, 1.0, 0.0).seconds < 1.6 * 4.776e-3


@drawing(10)
@over(
    st.sampled_from(MODELS), st.sampled_from(CHIPS), st.sampled_from([1, 4, 8]), LENGTHS, st.integers(1, 512)
)
def test_larger_batches_take_longer_and_yield_more(
    model: str, chip: str, tp: int, context: int, batch: int
) -> None:
    g = given(space(model=model), hardware=chip, tp=tp)
    seconds = load.decode(g, BATCHES, context).seconds
    assert rises(seconds)
    assert rises(BATCHES / seconds)
    assert rises(load.decode(g, float(batch), CONTEXTS).seconds)
    assert rises(load.prefill(g, 1.0, CONTEXTS[16:], 0.0).seconds)  # of fewer tokens, all have logits


# -- what is read and kept ------------------------------------------------------------------------------------------


def test_ranks_divide_weights_exactly_and_the_cache_by_its_heads() -> None:
    for model in MODELS:
        problem = space(model=model)
        alone = given(problem)
        m = alone.model
        for tp in (2, 4, 8, 16):
            g = given(problem, tp=tp)
            assert memory.weight_bytes(g, m) * tp == memory.weight_bytes(alone, m)
            share = 1.0 if m.mla else max(1.0, m.kv_heads / tp) / m.kv_heads
            whole = memory.cache_bytes(alone, m, 3.0, 5000.0)
            assert memory.cache_bytes(g, m, 3.0, 5000.0) == pytest.approx(share * whole, rel=1e-15), (
                model,
                tp,
            )


def test_a_step_reads_the_experts_that_tokens_draw() -> None:
    """E (1 - (1 - k/E)^tokens) distinct ones of each layer, as many as drawing k of them for every token gives."""
    rng = np.random.default_rng(7)
    for model in ("mixtral-8x7b", "gpt-oss-20b", "qwen3-30b-a3b"):
        g = given(space(model=model))
        m = g.model
        experts, k = int(m.experts), int(m.top_k)
        one = architecture.expert_parameters(m) * g.weights.bits_per_weight / 8
        for tokens in (1, 4, 32, 256, 4096):
            draws = [
                np.unique(rng.random((tokens, experts)).argpartition(k, axis=1)[:, :k]).size
                for _ in range(4000 // tokens + 3)
            ]
            values = tokens * m.top_k * (2 * m.hidden + (2 + m.gated) * m.expert_ffn) * 2.0
            read = step._experts(g, float(tokens)).bytes / m.moe_layers - values
            assert read / one == pytest.approx(np.mean(draws), rel=0.03), (model, tokens)
        assert read / one == pytest.approx(m.experts, rel=1e-6)
        first = step._experts(g, 1.0).bytes / m.moe_layers - values / tokens
        assert first / one == pytest.approx(m.top_k, rel=1e-9)


def test_a_window_bounds_what_its_layers_read() -> None:
    g = given(space(model="gpt-oss-20b"))
    m = g.model
    near, far, further = (step._cores(g, 1.0, 1.0, past).bytes for past in (20_000.0, 40_000.0, 60_000.0))
    token = 2 * m.kv_heads * m.head_dim * 2.0
    assert far - near == further - far == 20_000 * (m.layers - m.window_layers) * token
    below = [step._cores(g, 1.0, 1.0, past).bytes for past in (10.0, 60.0)]
    assert below[1] - below[0] == 50 * m.layers * token
    for past, queries in ((0, 50), (0, 128), (0, 1000), (100, 60), (100, 500), (128, 7), (5000, 300)):
        seen = past + 1 + np.arange(queries)  # keys of each token, itself among them
        keys = (m.layers - m.window_layers) * seen.sum() + m.window_layers * np.minimum(seen, m.window).sum()
        flops = 4 * m.heads * m.head_dim * keys
        assert step._cores(g, 1.0, float(queries), float(past)).flops == pytest.approx(flops, rel=1e-12)


def test_the_cache_is_kept_in_whole_pages() -> None:
    for block in (1, 16, 128):
        for prompt in (1, 100, 128, 1000):
            g = given(space(kv_block=block, prompt_len=prompt, output_len=3), batch=1.0)
            tokens = memory.cached_tokens(g)
            assert tokens % block == 0
            assert prompt + 1.5 <= tokens < prompt + 1.5 + block


# -- chunks, prefixes and FLOPs -----------------------------------------------------------------------------------


@drawing(12)
@over(st.sampled_from(MODELS), st.integers(512, 16_384), st.integers(2, 40), st.sampled_from([0, 100, 5000]))
def test_chunks_do_the_attention_of_one_prefill_and_take_longer(
    model: str, prompt: int, chunks: int, past: int
) -> None:
    g = given(space(model=model))
    size = prompt / chunks
    if size <= 16.0:  # of so few tokens, all have logits
        return
    whole = step._cores(g, 1.0, float(prompt), float(past)).flops
    parts = [step._cores(g, 1.0, size, past + size * at).flops for at in range(chunks)]
    assert math.fsum(parts) == pytest.approx(whole, rel=1e-9)
    problem = space(model=model, prompt_len=prompt)
    cut, uncut = (load.times(given(problem, chunk=chunk), 0.0) for chunk in (float(math.ceil(size)), 0.0))
    assert cut.prefill > uncut.prefill
    assert cut.prefill == pytest.approx(cut.prefilling.seconds * cut.chunks, rel=1e-15)
    mean = sum(
        load.prefill(g, 1.0, prompt / cut.chunks, prompt / cut.chunks * at).seconds
        for at in range(int(cut.chunks))
    )
    assert cut.prefill == pytest.approx(
        mean, rel=0.02
    )  # one chunk in the middle of the prompt stands for all


def test_a_cached_prefix_is_not_computed() -> None:
    shares = [0.0, 0.25, 0.5, 0.9, 0.999, 1.0]
    found = [metrics(space(prompt_len=8192), prefix_hit=share) for share in shares]
    assert not rises(np.array([one["ttft"] for one in found]))
    assert rises(np.array([one["ttft"] for one in found[::-1]]))
    g = given(space())
    assert found[-1]["ttft"] == pytest.approx(load.prefill(g, 1.0, 1.0, 8191.0).seconds, rel=1e-12)
    assert found[0]["ttft"] == pytest.approx(load.prefill(g, 1.0, 8192.0, 0.0).seconds, rel=1e-12)
    assert found[0]["decode_step"] == found[-1]["decode_step"]  # the cache is read all the same


@drawing(10)
@over(st.sampled_from([*MODELS, "llama-3.1-405b", "qwen3-4b"]), LENGTHS)
def test_a_prefill_does_the_flops_of_a_forward_pass(model: str, prompt: int) -> None:
    """But for logits, which only the last token gets, and the router, which is left out (under 1 %)."""
    g = given(space(model=model))
    m = g.model
    head = 2 * m.hidden * m.vocab
    found = load.prefill(g, 1.0, float(prompt), 0.0).work.flops - head
    expected = prompt * (architecture.forward_flops(m, prompt) - head)
    router = 2 * m.moe_layers * m.hidden * m.experts * prompt
    pairs = prompt * m.layers * m.heads * (architecture.query_dim(m) + architecture.value_dim(m))
    assert (
        abs(found - (expected - router)) <= 1.01 * pairs + 1e-3 * expected
    )  # the token itself: half a key more
    assert router < 0.01 * expected


# -- one model for all uses -----------------------------------------------------------------------------------------

CASES: dict[str, dict[str, str]] = {
    "dense": {"model": "llama-3.1-70b", "engine": "tensorrt-llm", "n_gpus": "16", "request_rate": "3 1/s"},
    "mixture": {"model": "mixtral-8x7b", "n_gpus": "16", "prompt_cv": "1", "output_cv": "0.5"},
    "latent": {"model": "deepseek-v3", "n_gpus": "64", "acceptance": "0.7", "prefix_hit": "0.3"},
    "windows": {"model": "gpt-oss-20b", "request_rate": "20 1/s", "max_context": "32768"},
}


@drawing(5)
@over(st.sampled_from(list(CASES)), st.integers(0, 2**20))
def test_the_graph_and_the_formulas_agree_and_parts_add_up(case: str, seed: int) -> None:
    problem = space(**CASES[case])
    shares = efficiencies(problem)
    for design in drawn(problem, 10, seed, hardware=("h100-sxm", "a100-sxm-80", "mi300x", "gb200-nvl72")):
        graph = traced(problem, design)
        plain = cost.cost(shares, **numbers(problem, design))
        assert set(plain) == set(problem.metrics)
        for name, value in plain.items():
            if isinstance(graph[name], (int, float)) and not math.isnan(value):
                assert graph[name] == pytest.approx(value, rel=1e-12, abs=1e-300), name
        for name, metric in problem.metrics.items():
            if metric.parts:
                assert sum(graph[part] for part in metric.parts) == pytest.approx(graph[name], rel=1e-12)
                assert all(graph[part] >= 0 for part in metric.parts)
        assert graph["request_time"] == pytest.approx(graph["ttft"] + 255 * graph["tpot"], rel=1e-12)
        assert 0 < graph["prefill_roofline"] < 1
        assert 0 < graph["decode_roofline"] < 1


def test_arrays_are_plans_side_by_side() -> None:
    batches = np.array([1.0, 7.0, 64.0, 512.0])
    many = metrics(space(), batch=batches)
    for at, batch in enumerate(batches):
        for name, value in metrics(space(), batch=batch).items():
            assert np.broadcast_to(many[name], 4)[at] == value, name


def test_a_plan_is_a_design_of_the_space() -> None:
    problem = space()
    found = problem.design_at(problem.digits(plan()))
    assert SimpleNamespace(**found) == SimpleNamespace(**plan())
