"""Published parameter counts and cache sizes, to the last digit, and the formulas behind them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dse.errors import InputError
from dse.evaluation import evaluate_nodes
from dse.problem.library import load
from dse.spaces.catalog import Row, model, names
from dse.spaces.catalog import architecture as arch
from dse.spaces.catalog.columns import COLUMNS, MODEL_COUNTS

EXACT = {
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_620_634_112,
    "deepseek-v3": 671_026_419_200,
    "bloom-176b": 176_247_271_424,
    "opt-13b": 12_853_473_280,
    "llama-7b": 6_738_415_616,
    "llama-13b": 13_015_864_320,
    "llama-30b": 32_528_943_616,
    "llama-65b": 65_285_660_672,
    "codellama-34b": 33_743_970_304,
    "openllama-3b": 3_426_473_600,
    "tinyllama-1.1b": 1_100_048_384,
    "mistral-7b": 7_241_732_096,
    "mistral-large-2407": 122_610_069_504,
    "internlm2-7b": 7_737_708_544,
    "phi-4": 14_659_507_200,
    "falcon-7b": 6_921_720_704,
    "falcon-40b": 41_303_293_952,
    "qwen1.5-7b": 7_721_324_544,
    "qwen2-0.5b": 494_032_768,
    "qwen2-1.5b": 1_543_714_304,
    "qwen2-7b": 7_615_616_512,
    "qwen2-72b": 72_706_203_648,
    "qwen3-coder-30b-a3b": 30_532_122_624,
    "gemma-3-4b": 3_880_099_328,
}
"""Values in the published checkpoints (DeepSeek-V3: without the extra layer for predicting further tokens)."""

ROUNDED = {
    "gpt-3-175b": (174.6e9, 0.1e9),
    "gpt-6.7b": (6.7e9, 0.05e9),
    "gpt-20b": (20e9, 0.5e9),
    "gpt-j-6b": (6.05e9, 0.005e9),
    "internlm-20b": (20.1e9, 0.05e9),
    "qwen2-57b-a14b": (57.41e9, 0.005e9),
    "glm-4.7-flash": (29.94e9, 0.005e9),
    "gpt-oss-20b": (20.91e9, 0.01e9),
    "gpt-oss-120b": (116.83e9, 0.01e9),
    "megatron-1.7b": (1.7e9, 0.05e9),
    "megatron-3.6b": (3.6e9, 0.05e9),
    "megatron-7.5b": (7.5e9, 0.05e9),
    "megatron-18.4b": (18.4e9, 0.06e9),
    "megatron-39.1b": (39.1e9, 0.05e9),
    "megatron-76.1b": (76.1e9, 0.06e9),
    "megatron-145.6b": (145.6e9, 0.05e9),
    "megatron-310.1b": (310.1e9, 0.05e9),
    "megatron-529.6b": (529.6e9, 0.05e9),
    "megatron-1008b": (1008e9, 0.5e9),
    "megatron-22b": (22e9, 0.5e9),
    "megatron-175b": (175e9, 0.5e9),
    "megatron-530b": (530e9, 0.5e9),
    "megatron-1t": (1.0e12, 0.01e12),
}
"""As rounded in the paper or model card."""


@pytest.mark.parametrize("name", EXACT)
def test_parameters_are_those_of_the_checkpoint(name: str) -> None:
    assert arch.parameters(model(name)) == EXACT[name]


@pytest.mark.parametrize("name", ROUNDED)
def test_parameters_are_those_of_the_paper(name: str) -> None:
    value, half = ROUNDED[name]
    assert arch.parameters(model(name)) == pytest.approx(value, abs=half)


def test_every_model_has_a_published_count() -> None:
    assert set(names("models")) == {*EXACT, *ROUNDED}


@pytest.mark.parametrize(
    ("name", "embedding", "billions"),
    [
        ("mixtral-8x7b", 1, 12.88),
        ("mixtral-8x22b", 1, 39.15),
        ("qwen3-30b-a3b", 1, 3.35),
        ("qwen3-235b-a22b", 1, 22.19),
        ("deepseek-v3", 1, 37.55),
        ("deepseek-v3", 0, 36.63),
        ("gpt-oss-20b", 0, 3.61),
        ("gpt-oss-120b", 0, 5.13),
    ],
)
def test_active_parameters_of_a_mixture_by_convention(name: str, embedding: int, billions: float) -> None:
    assert arch.active_parameters(model(name), embedding) / 1e9 == pytest.approx(billions, abs=5e-3)


def test_every_parameter_of_a_dense_model_is_active() -> None:
    for name in ("llama-3-8b", "gpt-3-175b", "qwen3-4b"):
        m = model(name)
        assert arch.active_parameters(m) == arch.parameters(m)
    # A tied projection is used, though its matrix is the embedding's.
    tied = model("llama-3.2-1b")
    assert arch.active_parameters(tied, embedding=0) == arch.parameters(tied)


@pytest.mark.parametrize("name", [name for name in ROUNDED if name.startswith("megatron")])
def test_gpt_counts_are_equation_2_of_narayanan(name: str) -> None:
    m = model(name)
    h, layers, vocab, s = m.hidden, m.layers, m.vocab, m.context
    equation = 12 * layers * h**2 * (1 + 13 / (12 * h) + (vocab + s) / (12 * layers * h))
    assert arch.parameters(m) - arch.final_norm_parameters(m) == pytest.approx(equation, rel=1e-14)


@pytest.mark.parametrize(
    ("name", "bytes_per_token"),
    [
        ("llama-2-7b", 524_288),
        ("llama-3-8b", 131_072),
        ("llama-3-70b", 327_680),
        ("llama-3.1-405b", 516_096),
        ("qwen3-4b", 147_456),  # by its head_dim of 128, not 2560 / 32
        ("deepseek-v3", 61 * (512 + 64) * 2),  # one latent a layer, not keys and values of 128 heads
    ],
)
def test_cached_bytes_per_token_in_bf16(name: str, bytes_per_token: int) -> None:
    assert arch.kv_bytes_per_token(model(name), 2) == bytes_per_token


def test_grouped_queries_cache_the_key_value_heads() -> None:
    grouped = model("llama-2-70b")
    every = grouped.replace(kv_heads=grouped.heads)
    assert arch.kv_bytes_per_token(every, 2) == 8 * arch.kv_bytes_per_token(grouped, 2)
    # The k and v projections shrink too: 69 billion parameters, not 78.
    assert arch.parameters(every) - arch.parameters(grouped) == 80 * 2 * 8192 * 128 * (64 - 8)


def test_a_window_caps_the_cache_of_its_own_layers_only() -> None:
    m = model("gpt-oss-120b")
    per_layer = 2 * 8 * 64 * 2
    assert arch.kv_cache_bytes(m, 100, 2) == 36 * 100 * per_layer
    assert arch.kv_cache_bytes(m, 100_000, 2) == (18 * 100_000 + 18 * 128) * per_layer
    dense = model("llama-3-8b")
    assert arch.kv_cache_bytes(dense, 8192, 2) == 8192 * arch.kv_bytes_per_token(dense, 2)


def test_a_gated_mlp_has_three_matrices() -> None:
    m = model("llama-2-70b")
    assert arch.mlp_parameters(m) == 3 * 8192 * 28672
    assert arch.mlp_parameters(m.replace(gated=0)) == 2 * 8192 * 28672
    assert arch.mlp_parameters(model("gpt-3-175b")) == 2 * 12288 * 49152 + 49152 + 12288


def test_a_mixture_has_the_memory_of_all_experts_and_the_work_of_a_few() -> None:
    m = model("mixtral-8x7b")
    more = m.replace(experts=16)
    grown = 32 * (8 * arch.expert_parameters(m) + 8 * 4096)
    assert arch.parameters(more) - arch.parameters(m) == grown
    assert arch.moe_flops(more) - arch.moe_flops(m) == 2 * 8 * 4096  # the router alone
    assert arch.moe_flops(m) == 2 * (2 * 3 * 4096 * 14336 + 8 * 4096)
    assert arch.expert_parameters(model("llama-3-8b")) == arch.router_parameters(model("llama-3-8b")) == 0


def test_latent_attention_counts_its_own_matrices() -> None:
    m = model("deepseek-v3")
    expected = 1536 * (7168 + 128 * 192) + 512 * 128 * 256 + 7168 * (512 + 64) + 128 * 128 * 7168
    assert arch.attention_parameters(m) == expected
    direct = m.replace(q_lora=0)
    assert arch.attention_parameters(direct) - expected == 7168 * 128 * 192 - 1536 * (7168 + 128 * 192)
    assert (arch.query_dim(m), arch.value_dim(m)) == (192, 128)


def test_attention_uses_the_given_head_width() -> None:
    m = model("qwen3-4b")
    assert arch.attention_parameters(m) == 2560 * 128 * (2 * 32 + 2 * 8)


def test_parts_add_up_to_the_whole() -> None:
    for name in names("models"):
        m = model(name)
        layer = arch.attention_parameters(m) + arch.vector_parameters(m)
        mixture = (
            m.experts * arch.expert_parameters(m) + arch.shared_parameters(m) + arch.router_parameters(m)
        )
        whole = (
            arch.embedding_parameters(m)
            + m.layers * layer
            + (m.layers - m.moe_layers) * arch.mlp_parameters(m)
            + m.moe_layers * mixture
            + arch.final_norm_parameters(m)
            + arch.head_parameters(m)
        )
        assert whole == arch.parameters(m)


@pytest.mark.parametrize(
    ("vocab", "tp", "padded"),
    [
        (50257, 1, 50304),
        (50257, 8, 51200),
        (51200, 8, 51200),
        (32000, 1, 32000),
        (128256, 16, 129024),
        (1, 64, 8192),
    ],
)
def test_the_vocabulary_is_padded_to_divide(vocab: int, tp: int, padded: int) -> None:
    m = model("gpt-3-175b").replace(vocab=vocab)
    assert arch.padded_vocab(m, tp) == padded
    assert arch.embedding_parameters(m, padded) - arch.embedding_parameters(m) == (padded - vocab) * 12288


def test_forward_flops_are_those_of_korthikanti_with_full_attention() -> None:
    m = model("megatron-175b")
    h, layers, vocab, s = 12288, 96, 51200, 2048
    training = 72 * layers * h**2 * (1 + s / (6 * h) + vocab / (12 * layers * h))  # of one token, 3 x forward
    assert 3 * arch.forward_flops(m, s, causal=0) == pytest.approx(training, rel=1e-14)


def test_the_attention_convention_is_a_named_choice() -> None:
    m = model("llama-3.1-405b")
    full, causal = (arch.attention_flops(m, 8192, causal=choice) for choice in (0, 1))
    assert full == 4 * 126 * 8192 * 128 * 128
    assert causal == full / 2
    difference = arch.forward_flops(m, 8192, causal=0) - arch.forward_flops(m, 8192, causal=1)
    assert difference == full - causal


def test_the_look_up_in_the_embedding_costs_nothing() -> None:
    m = model("llama-3-8b")
    weights = 32 * (arch.attention_parameters(m) + arch.mlp_parameters(m)) + arch.head_parameters(m)
    assert arch.forward_flops(m, 8192) - arch.attention_flops(m, 8192) == 2 * weights
    # A tied projection is the same work as one of its own.
    assert arch.forward_flops(m.replace(tied=1), 8192) == arch.forward_flops(m, 8192)


def test_packed_documents_attend_to_themselves_only() -> None:
    m = model("llama-3-8b")
    # Four documents of a quarter each: a quarter of the attention work of one whole sequence.
    assert arch.attention_flops(m, 8192, 1, 0.25) == arch.attention_flops(m, 2048, 1)
    windowed = model("gpt-oss-20b")
    assert arch.attention_flops(windowed, 8192, 1, 0.25) == arch.attention_flops(windowed, 2048, 1)


def test_a_window_caps_the_attention_work_of_its_layers() -> None:
    assert arch.attention_span(4096, 128, 0) == 128
    seen = sum(min(query + 1, 128) for query in range(4096)) / 4096
    assert arch.attention_span(4096, 128, 1) == pytest.approx(seen, rel=5e-3)
    assert arch.attention_span(64, 128, 1) == arch.attention_span(64, 64, 1) == 32


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "parameters": arch.parameters,
    "active": arch.active_parameters,
    "used": lambda m: arch.active_parameters(m, 0),
    "vectors": arch.vector_parameters,
    "padded": lambda m: arch.padded_vocab(m, 8),
    "cache": lambda m: arch.kv_bytes_per_token(m, 2),
    "cached": lambda m: arch.kv_cache_bytes(m, 3000, 2),
    "flops": lambda m: arch.forward_flops(m, 4096, 1, 0.5),
    "full": lambda m: arch.forward_flops(m, 4096, 0),
    "moe": arch.moe_flops,
    "widths": lambda m: arch.query_dim(m) + arch.value_dim(m),
}


class Columns:
    """All models at once: every column as an array."""

    def __init__(self, rows: list[Row]) -> None:
        for column in MODEL_COUNTS:
            setattr(self, column, np.array([getattr(row, column) for row in rows]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_arrays_and_symbols_agree(name: str) -> None:
    function = FUNCTIONS[name]
    rows = [model(row) for row in names("models")]
    one_by_one = [function(row) for row in rows]
    assert all(math.isfinite(value) for value in one_by_one)
    assert function(Columns(rows)).tolist() == one_by_one
    problem = load(
        {
            "dse": 1,
            "name": "counted",
            "tables": {"models": {"columns": dict(COLUMNS["models"]), "rows": _inline()}},
            "dimensions": {"model": {"table": "models"}},
            "metrics": {"x": {"unit": "1"}},
            "objectives": {"x": "minimize"},
        },
        cost=lambda model: {"x": function(model)},
    )
    node = problem.metrics["x"].node
    designs = [problem.design_at(problem.digits_of(index)) for index in range(problem.size)]
    assert [evaluate_nodes(problem, design, [node])[node] for design in designs] == one_by_one


def _inline() -> dict[str, list[Any]]:
    """The rows of models.csv as a space file would have them."""
    return {name: [getattr(model(name), column) for column in COLUMNS["models"]] for name in names("models")}


def test_replacing_a_column_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="model has no column 'kvheads'; did you mean 'kv_heads'"):
        model("llama-3-8b").replace(kvheads=8)
