"""The space: its tables are those of the figures, and its rules say what is not there or cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

import dse
from dse.evaluation import broken_rule, judge
from dse.evaluation.explain import explain
from dse.evaluation.sentence import sentence
from dse.problem import Design
from dse.spaces.catalog import architecture, catalog
from dse.spaces.quantization import published
from dse.spaces.quantization.figures import figures, series
from dse.spaces.quantization.quality import model_distance
from dse.study.legal import LegalDesigns

FOLDER = Path(published.__file__).parent


def design(method: str, bits: float, *, activations: float = 16, kv: float = 16, group: float = 0) -> Design:
    return {
        "method": method,
        "weight_bits": bits,
        "activation_bits": activations,
        "kv_bits": kv,
        "group": group,
    }


def why(asked: Design, **inputs: str) -> str:
    problem = dse.load("quantization", inputs)
    rule = broken_rule(problem, asked)
    return "" if rule is None else sentence(problem, rule.because, asked)


def test_the_tables_are_made_of_the_figures() -> None:
    for table in published.TABLES:
        made = published.text_of(table)
        if table in (
            "alike.csv",
            "counted.csv",
        ):  # these name the catalogue's models too, and it may have more
            assert set((FOLDER / table).read_text(encoding="utf-8").splitlines()) <= set(made.splitlines())
            continue
        assert made == (FOLDER / table).read_text(encoding="utf-8"), f"run {published.__name__}"
    assert dse.load("quantization").inputs["evidence"].choices == ("auto", *series())


def test_stored_formats_are_as_wide_as_the_figures_say() -> None:
    for figure in published.designs():
        stored = catalog.weight_format(published.storage_format(figure, figure.w_bits // 1))
        if figure.bits_per_weight is not None and not figure.interpolated:
            assert stored.bits_per_weight == pytest.approx(figure.bits_per_weight, abs=0.01)
        if not stored.mixed:
            assert stored.bits == figure.w_bits // 1


def test_every_published_difference_is_a_design_and_nothing_else_is() -> None:
    """Of three models in all their series: what is legal is what was published, each with its loss."""
    for model in ("llama-3-8b", "qwen3-8b", "mixtral-8x7b"):
        for name in {f.series.name for f in figures() if f.model == model}:
            settings = {"model": model, "evidence": name, "hardware": "b200-sxm", "tp": "8"}
            problem = dse.load("quantization", settings)
            known = {f.design: f for f in published.designs() if (f.series.name, f.model) == (name, model)}
            whole = {key: f for key, f in known.items() if not f.interpolated}
            assert LegalDesigns(problem, problem.everything).count == len(whole)
            for (method, bits, activations, kv, group), figure in whole.items():
                asked = design(method, bits, activations=activations, kv=kv, group=float(group))
                verdict = judge(problem, asked)
                assert verdict.reason == ""
                assert verdict.objectives[0] == pytest.approx(figure.loss, abs=1e-9)


def test_interpolated_designs_are_asked_for_and_marked() -> None:
    half = design("awq", 3.5, group=128)
    inputs = {"model": "llama-2-7b", "evidence": "awq-paper"}
    assert why(half, **inputs) == "3.5 bits lie between published widths, and interpolate is false"
    problem = dse.load("quantization", inputs | {"interpolate": "true"})
    assert broken_rule(problem, half) is None
    found = [p for p in dse.search(problem).front if p.design["weight_bits"] == 3.5]
    assert found
    assert all(p.metrics["interpolated"] == 1 for p in found)
    assert all(p.metrics["quality_loss"] == pytest.approx((0.13 * 0.77) ** 0.5) for p in found)


def test_what_is_not_published_is_told_with_the_nearest() -> None:
    assert why(design("awq", 4, group=128)) == (
        "llama.cpp-perplexity has no figure of awq-w4g128 for llama-3-8b; nearest: llama-2-7b awq, 4 bits, groups of 128 "
        "(awq-paper, autoround-11tasks) or awq, 4 bits (autoround-11tasks)"
    )
    assert why(design("awq", 5, group=128), model="llama-2-7b") == (
        "there is no awq with weights in 5 bits, activations in 16, KV cache in 16 and groups of 128 in any source; "
        "nearest: llama-2-7b awq, 4 bits, groups of 128 (awq-paper, autoround-11tasks) or awq, 4 bits (autoround-11tasks)"
    )
    assert why(design("none", 16), model="qwen3-14b") == (
        "nobody published figures of qwen3-14b; nearest in size: qwen3-8b; set figures to the one to take"
    )
    assert why(design("none", 16), model="phi-4", quality="perplexity") == (
        "nobody published perplexity of quantized phi-4: set quality to accuracy, perplexity or any"
    )


def test_the_nearest_is_the_nearest_model_that_has_the_method_and_its_nearest_width() -> None:
    """Of every method and width, by the figures themselves."""
    problem = dse.load("quantization", {"model": "llama-2-7b"})
    known = [f for f in published.designs() if not f.interpolated]
    for method in dict.fromkeys(figure.name for figure in known):
        models = {f.model for f in known if f.name == method}
        far = {other: other != "llama-2-7b" and model_distance("llama-2-7b", other) for other in models}
        for bits in (1, 3, 5, 16):
            asked = design(method, bits, activations=4, kv=4, group=16)  # which no method has
            rule = broken_rule(problem, asked)
            assert rule is not None
            told = sentence(problem, rule.because, asked).partition("nearest: ")[2]
            model = told.split(" ")[0]
            assert far[model] == min(far.values())
            widths = {f.w_bits for f in known if (f.name, f.model) == (method, model)}
            width = min(widths, key=lambda w: (abs(w - bits), -w))
            assert told.startswith(f"{model} {method}, {width:g} bits")
            for other in {
                f.series.name for f in known if f.design[:2] == (method, width) and f.model == model
            }:
                assert other in told


def test_where_there_is_no_scheme_only_that_is_told() -> None:
    problem = dse.load("quantization", {"model": "llama-2-7b", "engine": "tensorrt-llm"})
    told = explain(problem, design("awq", 5, group=128))
    assert [rule.name for rule in told.broken] == ["scheme"]


def test_only_what_looks_at_activations_or_trains_is_kept_from_those_who_serve() -> None:
    problem = dse.load("quantization", {"model": "qwen3-8b", "evidence": "autoround-fp8"})
    found = {p.design["method"] for p in dse.search(problem, team="systems").front}
    assert "fp8-block" in found
    assert "fp8-block+autoround" not in found
    rows = [line.split(",") for line in published.text_of("methods.csv").splitlines()[1:]]
    effort = {row[0]: row[2] for row in rows}
    for name, needed in effort.items():
        base, _, variant = name.partition("+")
        looks = base in ("gptq", "awq", "omniquant", "autoround", "smoothquant")
        looks = looks or any(part in variant for part in ("autoround", "imatrix", "gptq", "awq"))
        assert needed == ("training" if base == "qat" else "calibration" if looks else "none"), name


def test_what_the_hardware_lacks() -> None:
    fp8 = design("fp8-block", 8, activations=8)
    assert why(fp8, model="qwen3-8b", evidence="autoround-fp8", hardware="a100-sxm-80") == (
        "a100-sxm-80 cannot multiply in fp8"
    )
    fp4 = design("mxfp4+ocp", 4, activations=4, group=32)
    assert why(fp4, model="qwen3-8b", evidence="autoround-mxfp4") == "h100-sxm cannot multiply in fp4"
    int8 = design("smoothquant", 8, activations=8)
    assert why(int8, model="llama-3-8b", evidence="smoothquant-readme", hardware="m2-ultra") == (
        "m2-ultra cannot multiply in int8"
    )
    engine = design("q4_k_m", 4)
    assert (
        why(engine, engine="tensorrt-llm") == "tensorrt-llm does not run q4_k_m-w4, which is stored as q4_k_m"
    )


def test_memory_has_the_scales_and_what_stays_in_16_bits() -> None:
    problem = dse.load("quantization", {"model": "llama-2-7b", "evidence": "awq-paper"})
    model = catalog.model("llama-2-7b")
    ends = architecture.embedding_parameters(model) + architecture.head_parameters(model)
    rest = architecture.parameters(model) - ends
    for point in dse.search(problem).front:
        bits = point.design["weight_bits"]
        packed = {16: 16, 4: 4.15625, 3: 3.1484375}[int(float(bits))]
        assert point.metrics["weights"] == pytest.approx((rest * packed + ends * 16) / 8, rel=1e-4)
        assert point.metrics["bits_per_weight"] == pytest.approx(
            (rest * packed + ends * 16) / (rest + ends), rel=1e-4
        )


def test_fewer_bits_are_read_sooner_and_eight_bit_products_prefill_sooner() -> None:
    at = {"model": "llama-3-8b", "evidence": "smoothquant-readme"}
    plain, eight = sorted(
        dse.search(dse.load("quantization", at)).front, key=lambda p: p.objectives["quality_loss"]
    )
    assert eight.design["activation_bits"] == 8
    assert eight.metrics["prefill_latency"] < plain.metrics["prefill_latency"]  # type: ignore[operator]
    assert eight.metrics["decode_latency"] < plain.metrics["decode_latency"]  # type: ignore[operator]


def test_a_model_that_does_not_fit_is_given_more_gpus() -> None:
    at = {"model": "llama-3-70b", "evidence": "smoothquant-readme", "hardware": "l4"}
    result = dse.search(dse.load("quantization", at))
    assert not result.front
    assert result.nearest_miss is not None
    fitting = dse.search(dse.load("quantization", at | {"tp": "4"}))  # 73 GB in eight bits over 24 GB each
    assert {point.design["method"] for point in fitting.front} == {"smoothquant"}
    assert (
        why(design("smoothquant", 8, activations=8), **at, tp="3")
        == "TP 3 does not divide 64 attention heads"
    )
