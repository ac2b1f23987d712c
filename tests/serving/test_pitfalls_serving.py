"""Where public tools went wrong, the space is right: one test for each kind of mistake that concerns serving."""

from __future__ import annotations

import math
import random
from functools import cache
from pathlib import Path

import pytest

from dse.cli.designing import complete
from dse.errors import InputError
from dse.evaluation import State, Verdict, evaluate_nodes, judge
from dse.problem import Problem
from dse.problem.library import load

KINDS = {
    "KV heads": "serving/test_pitfalls_serving.py::test_decoding_reads_the_cache_of_the_kv_heads",
    "head_dim": "serving/test_pitfalls_serving.py::test_the_cache_has_the_width_of_a_head",
    "MLA KV cache": "serving/test_pitfalls_serving.py::test_latent_attention_caches_one_latent_on_every_rank",
    "TP and kv heads": "serving/test_pitfalls_serving.py::test_kv_heads_divide_or_are_replicated",
    "sliding windows": "serving/test_pitfalls_serving.py::test_a_window_caps_the_cache_of_its_own_layers",
    "block formats": "serving/test_pitfalls_serving.py::test_weights_take_the_bytes_of_their_blocks",
    "GLU and GQA parameters": "serving/test_pitfalls_serving.py::test_decoding_reads_the_cache_of_the_kv_heads",
    "MoE": "serving/test_pitfalls_serving.py::test_all_experts_take_memory_and_the_chosen_ones_time",
    "FLOPs": "catalog/test_counts.py::test_the_look_up_in_the_embedding_costs_nothing",
    "peaks": "serving/test_pitfalls_serving.py::test_peaks_are_dense_and_of_the_format_in_use",
    "unknown hardware": "serving/test_pitfalls_serving.py::test_unknown_hardware_is_an_error",
    "link speed": "catalog/test_tables.py::test_links_are_bytes_per_second_in_one_direction",
    "no room": "serving/test_pitfalls_serving.py::test_a_model_without_room_is_no_result",
    "TPOT": "serving/test_pitfalls_serving.py::test_time_per_output_token_leaves_out_the_first",
    "bytes": "serving/test_pitfalls_serving.py::test_a_model_without_room_is_no_result",
    "silence": "serving/test_pitfalls_serving.py::test_every_design_has_a_verdict",
}
"""The test of each kind; the others concern training alone."""

GIVEN = {
    "hardware": "h100-sxm",
    "tp": "1",
    "pp": "1",
    "attention_dp": "1",
    "ep": "1",
    "weights": "bf16",
    "activations": "bf16",
    "kv": "bf16",
    "disaggregated": "false",
    "chunk": "0",
    "batch": "64",
}
TOKENS = 64 * (1024 + 256 / 2)
"""Tokens in the cache of 64 sequences, on average over their lives, by the default lengths."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_test(kind: str) -> None:
    file, _, test = KINDS[kind].partition("::")
    text = Path(__file__).parents[1].joinpath(file).read_text(encoding="utf-8")
    assert f"def {test}(" in text


@cache
def space(*settings: tuple[str, str]) -> Problem:
    """The space with its inputs set; each is loaded once."""
    return load("serving", settings)


def verdict(problem: Problem, **given: str) -> Verdict:
    return judge(problem, complete(problem, _active(problem, given), None))


def numbers(problem: Problem, **given: str) -> dict[str, float]:
    """Every metric of a design, in base units; nan where a figure of the hardware is missing."""
    nodes = {name: metric.node for name, metric in problem.metrics.items()}
    design = complete(problem, _active(problem, given), None)
    values = evaluate_nodes(problem, design, list(nodes.values()))
    found = {name: values[node] for name, node in nodes.items()}
    return {
        name: float(value) if isinstance(value, float | int) else math.nan for name, value in found.items()
    }


def _active(problem: Problem, given: dict[str, str]) -> dict[str, str]:
    """The values of a design; layouts of experts only where there are some."""
    row = problem.inputs["model"].value
    table = problem.graph.tables["models"]
    experts = table.columns["experts"].cells[table.positions[0][row]]
    left = {"attention_dp", "ep"} if not experts else set()
    return {name: value for name, value in (GIVEN | given).items() if name not in left}


def test_decoding_reads_the_cache_of_the_kv_heads() -> None:
    grouped = numbers(space(("model", "llama-2-70b")))
    every = numbers(space(("model", "llama-2-70b"), ("tables.models.llama-2-70b.kv_heads", "64")))
    assert grouped["kv_cache"] == TOKENS * 2 * 80 * 8 * 128 * 2
    assert every["kv_cache"] == 8 * grouped["kv_cache"]
    assert every["decode_attention"] > 4 * grouped["decode_attention"]
    assert grouped["parameters"] == 68_976_648_192  # three matrices in an MLP; not 78e9, with 64 KV heads


def test_the_cache_has_the_width_of_a_head() -> None:
    assert numbers(space(("model", "qwen3-4b")))["kv_cache"] == TOKENS * 147_456


def test_latent_attention_caches_one_latent_on_every_rank() -> None:
    problem = space(("model", "deepseek-v3"), ("n_gpus", "64"))
    latent = TOKENS * 61 * (512 + 64) * 2
    assert numbers(problem)["kv_cache"] == latent
    assert numbers(problem, tp="8")["kv_cache"] == latent
    assert numbers(problem, attention_dp="8", ep="8")["kv_cache"] == latent / 8


def test_kv_heads_divide_or_are_replicated() -> None:
    said = verdict(space(("model", "phi-4")), tp="4")  # 40 heads, 10 KV heads
    assert said.state is State.ILLEGAL
    assert "TP 4 neither divides the 10 KV heads nor is a multiple of them" in said.reason
    wide = space(("model", "qwen3-32b"), ("n_gpus", "16"))  # 64 heads, 8 KV heads
    rack = {"hardware": "gb200-nvl72"}
    assert verdict(wide, tp="16", **rack).state is not State.ILLEGAL
    eight, sixteen = (numbers(wide, tp=tp, **rack)["kv_cache"] for tp in ("8", "16"))
    assert sixteen == eight == TOKENS * 2 * 64 * 8 * 128 * 2 / 8


def test_a_window_caps_the_cache_of_its_own_layers() -> None:
    found = numbers(space(("model", "gpt-oss-20b"), ("prompt_len", "8192")))
    tokens = 8192 + 256 / 2
    assert found["kv_cache"] == 64 * (12 * tokens + 12 * 128) * 2 * 8 * 64 * 2


def test_weights_take_the_bytes_of_their_blocks() -> None:
    problem = space(("model", "llama-3.1-8b"), ("engine", "llama.cpp"))
    for name, bits in {"q8_0": 8.5, "q4_0": 4.5, "bf16": 16}.items():  # 34 and 18 bytes for 32 weights
        found = numbers(problem, weights=name, hardware="l40s")
        assert found["weights_memory"] == pytest.approx(8_030_261_248 * bits / 8, rel=1e-4), name


def test_all_experts_take_memory_and_the_chosen_ones_time() -> None:
    mixtral = ("model", "mixtral-8x7b")
    eight, sixteen = (
        numbers(space(mixtral)),
        numbers(space(mixtral, ("tables.models.mixtral-8x7b.experts", "16"))),
    )
    assert eight["weights_memory"] == pytest.approx(46_702_792_704 * 2, rel=1e-4)
    assert sixteen["weights_memory"] - eight["weights_memory"] == pytest.approx(
        32 * 8 * 3 * 4096 * 14336 * 2, rel=1e-2
    )
    # 64 tokens touch nearly all experts, so that twice as many take longer to read; their arithmetic is the same.
    assert sixteen["decode_experts"] > 1.7 * eight["decode_experts"]
    intensity = sixteen["decode_intensity"] / eight["decode_intensity"]
    assert intensity < 0.65
    active = numbers(space(("model", "llama-2-13b")))[
        "prefill_compute"
    ]  # 13e9 parameters, as Mixtral's active ones
    assert eight["prefill_compute"] == pytest.approx(active, rel=0.25)


def test_peaks_are_dense_and_of_the_format_in_use() -> None:
    problem = space(("model", "llama-3.1-8b"))
    assert numbers(problem)["ridge_point"] == pytest.approx(989.4e12 / 3.35e12)
    eight = {"weights": "fp8", "activations": "fp8"}
    assert numbers(problem, **eight)["ridge_point"] == pytest.approx(1978.9e12 / 3.35e12)
    assert numbers(problem, hardware="h200-sxm")["ridge_point"] == pytest.approx(989.4e12 / 4.8e12)
    assert numbers(problem, hardware="b200-sxm")["ridge_point"] == pytest.approx(2250e12 / 7.7e12)
    lacks = verdict(problem, hardware="a100-sxm-80", **eight)
    assert lacks.reason == "a100-sxm-80 cannot multiply in fp8"


def test_unknown_hardware_is_an_error() -> None:
    with pytest.raises(InputError, match=r"h100-sxn.*did you mean 'h100-sxm'"):
        verdict(space(("model", "llama-3.1-8b")), hardware="h100-sxn")


def test_a_model_without_room_is_no_result() -> None:
    problem = space(("model", "llama-3.1-405b"))
    said = verdict(problem)
    assert said.state is State.INFEASIBLE
    peak, usable = (
        numbers(problem)["peak_memory"],
        85_520_809_984 * 0.9 - 1.5 * 2**30,
    )  # what the GPU shows, not 80 GB
    assert said.violations[0] == pytest.approx(peak - usable)
    assert problem.metrics["peak_memory"].unit.text == "GiB"


@pytest.mark.parametrize("rate", ["0 1/s", "2 1/s"])
def test_time_per_output_token_leaves_out_the_first(rate: str) -> None:
    problem = space(("model", "llama-3.1-8b"), ("request_rate", rate))
    found = numbers(problem, **({"replicas": "1"} if rate[0] != "0" else {}))
    assert found["tpot"] == pytest.approx((found["request_time"] - found["ttft"]) / (256 - 1), rel=1e-12)
    assert found["user_speed"] == pytest.approx(1 / found["tpot"], rel=1e-12)
    assert "(output - 1)" in problem.metrics["tpot"].about


def test_every_design_has_a_verdict() -> None:
    """Legal or not: a result, or a sentence."""
    problem = space(("model", "mixtral-8x7b"), ("acceptance", "0.7"), ("request_rate", "1 1/s"))
    rng = random.Random(5)
    illegal = 0
    for _ in range(150):
        design = problem.design_at([rng.randrange(size) for size in problem.sizes])
        said = judge(problem, design)
        assert said.state is not State.FAILED
        if said.state is State.ILLEGAL:
            illegal += 1
            assert len(said.reason) > 10
            assert "{" not in said.reason
        else:
            assert all(0 < value < 1e9 for value in said.objectives)
    assert illegal
