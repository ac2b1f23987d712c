"""Rows of measured inference runs: GPUs, engines, models, formats, lengths and times in the space's own names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from dse.errors import SpaceError
from dse.spaces.measured.gpus import hardware_of
from dse.spaces.serving.measured import engine
from dse.spaces.serving.measured.engine import engine_of
from dse.spaces.serving.measured.formats import activations_of, cache_of, stored_of
from dse.spaces.serving.rows import REQUIRED, Rows, read_rows
from dse.spaces.serving.validation import PUBLISHED
from tests.serving.measured_tables import CEILING, ROW, SHAPE, SINGLE, write_table

Read = Callable[..., Rows]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads a table of rows that differ from :data:`ROW`."""
    return lambda *rows: read_rows(write_table(tmp_path / "runs.csv", rows or [{}]))


def test_a_row_in_the_names_of_the_space(read: Read) -> None:
    (row,) = read({}).rows
    assert (row.kind, row.phase, row.hardware, row.engine) == (
        "exact",
        "generate",
        "a100-sxm-80",
        "tensorrt-llm",
    )
    (run,) = row.runs
    told = {
        name: run.plan[name] for name in ("tp", "pp", "ep", "batch", "weights", "activations", "kv", "graphs")
    }
    assert told == {
        "tp": 1.0, "pp": 1.0, "ep": 1.0, "batch": 16.0, "weights": "fp16", "activations": "fp16", "kv": "bf16", "graphs": True,
    }  # fmt: skip
    assert run.job == {"batch": 16.0, "prompt": 128.0, "output": 64.0, "past": 0.0, "n_gpus": 1.0}
    assert run.target.seconds == 2.0
    assert run.target.in_unit(4.0) == 256.0
    assert row.model is not None
    assert (row.model["layers"], row.model["gated"], row.model["kv_heads"]) == (32, 1, 32)


TIMES: tuple[tuple[Mapping[str, str], str, float], ...] = (
    ({"metric": "out_tokens_s_gpu", "n_gpus": "2", "tp": "2"}, "generate", 1.0),
    ({"metric": "latency_ms_total", "value": "1500"}, "generate", 1.5),
    ({"metric": "latency_ms_total", "value": "1500", "notes": "prefill + decode"}, "generate", 1.5),
    (
        {"metric": "out_tokens_s_total", "notes": "decode-phase tokens/s (prefill excluded)"},
        "decode",
        16 / 512,
    ),
    (SINGLE, "generate", 0.64),
    ({**SINGLE, "notes": "generated tokens / wall time incl. prefill; eager decode"}, "generate", 0.64),
    ({**SINGLE, "notes": "single-stream generation speed"}, "decode", 0.01),
    ({**SINGLE, "notes": "average speed generating 1024 tokens"}, "decode", 0.01),
    ({**SINGLE, "notes": "times the forward pass for one token"}, "decode", 0.01),
    ({"metric": "tpot_ms", "value": "20"}, "decode", 0.02),
    ({"metric": "ttft_ms", "value": "20", "output_len": "1"}, "prefill", 0.02),
    ({"metric": "prefill_tokens_s", "value": "4096", "output_len": "0"}, "prefill", 0.5),
    ({"metric": "prefill_tokens_s_gpu", "value": "1024", "n_gpus": "2", "tp": "2"}, "prefill", 1.0),
    ({"batching": "dynamic"}, "generate", 2.0),
    ({"batching": "static (persistent batch)"}, "generate", 2.0),
    ({**CEILING, "value": "4000"}, "ceiling", 1 / 4000),
    (
        {**CEILING, "value": "4000", "metric": "out_tokens_s_gpu", "n_gpus": "2", "tp": "2"},
        "ceiling",
        1 / 8000,
    ),
)


def test_what_was_timed_follows_from_the_figure_and_the_notes(read: Read) -> None:
    rows = read(*(cells for cells, *_ in TIMES)).rows
    for row, (cells, phase, seconds) in zip(rows, TIMES, strict=True):
        assert (row.phase, row.reason) == (phase, ""), cells
        target = row.runs[0].target
        assert target.seconds == pytest.approx(seconds), cells
        assert target.in_unit(seconds) == pytest.approx(float(row.cells["value"])), cells
        assert row.kind == ("ceiling" if phase == "ceiling" else "exact"), cells


def test_tokens_in_the_cache_before_are_counted_once(read: Read) -> None:
    """A column that repeats what the notes say of the cache is no prompt of its own."""
    held = "decode of 32 tokens with 4096 tokens already in the KV cache"
    decode, prefill = read(
        {**SINGLE, "input_len": "4096", "notes": held},
        {"metric": "prefill_tokens_s", "notes": "prompt appended to a KV cache already holding 4096 tokens"},
    ).rows
    assert [decode.runs[0].job[name] for name in ("past", "prompt")] == [4096, 0]
    assert [prefill.runs[0].job[name] for name in ("past", "prompt")] == [4096, 128]


FORMATS = {
    "fp16": ("fp16", "fp16", math.nan, True),
    "BF16": ("bf16", "bf16", math.nan, True),
    "fp8": ("fp8", "fp8", math.nan, False),
    "fp8 (128x128 blocks)": ("fp8-block", "fp8", math.nan, False),
    "GPTQ-Int4": ("int4-g128", "fp16", math.nan, False),
    "AWQ int4": ("int4-awq", "fp16", math.nan, False),
    "GPTQ g128": ("int4-g128", "fp16", math.nan, False),
    "int4 g32 (weight-only)": ("int4-g32", "fp16", math.nan, False),
    "int8 (weight-only)": ("int8", "fp16", math.nan, False),
    "GPTQ-Int8": ("int8", "fp16", math.nan, False),
    "W8A8": ("int8", "int8", math.nan, False),
    "bnb nf4-dq": ("nf4-dq", "fp16", math.nan, False),
    "EXL2 2.5 bpw": ("exl2-2.5", "fp16", 2.5, True),
    "EXL2 4.1 bpw": ("exl2-4", "fp16", 4.1, True),
    "Q4_K_M (4.8944 bpw, 4.58 GiB)": ("q4_k_m", "fp16", 4.8944, True),
    "IQ1_S": ("iq1_s", "fp16", math.nan, True),
    "Q8_0 (GGUF 7.54 GiB)": ("q8_0", "fp16", 7.54 * 2**30 * 8 / 7e9, True),
    "MXFP4 (GGUF 11.27 GiB)": ("mxfp4", "fp16", 11.27 * 2**30 * 8 / 7e9, True),
    "AQLM 2-bit": ("aqlm-2", "fp16", math.nan, False),
    "QuIP# 2-bit": ("quip-2", "fp16", math.nan, False),
    "fp16/bf16 (not stated)": ("bf16", "bf16", math.nan, True),
}
"""Texts: the format, that of the activations, bits of a weight of a model of 7e9, and whether the head is stored so."""


def test_formats_and_their_stated_bits() -> None:
    for text, (name, activations, bits, whole) in FORMATS.items():
        stored, reason = stored_of(text, "")
        assert stored is not None, (text, reason)
        assert (stored.format, activations_of(stored, text), stored.whole) == (name, activations, whole), text
        assert stored.stated(7e9) == pytest.approx(bits, nan_ok=True), text
    assert stored_of("int4-g12", "")[1].startswith("weights' format 'int4-g12' is not in the catalogue")
    assert stored_of("", "")[1] == "weights' format not stated"
    assert [cache_of(text)[0] for text in ("fp16 (default)", "", "bf16/fp16", "fp8", "INT8", "fp4")] == [
        "bf16", "bf16", "bf16", "fp8", "int8", "",
    ]  # fmt: skip


def test_stated_bits_go_before_those_of_the_format(read: Read) -> None:
    """A file's size holds for the output projection too; GPTQ leaves it in 16 bits."""
    rows = read({"weights_precision": "Q4_K_M (4.9 bpw, 4 GiB)"}, {"weights_precision": "GPTQ-Int4"}, CEILING)
    cases = rows.cases(("exact", "ceiling"))
    table = {name: {"bits_per_weight": 4.5} for name in ("q4_k_m", "int4-g128", "fp16", "bf16")}
    chips = {"a100-sxm-80": {"generation": "ampere", "memory": 85e9}}
    g = cases.namespace(
        dict.fromkeys(("weights", "activations", "kv"), table), chips, engines={"default": {"launch": 1.0}}
    )
    assert g.weights.bits_per_weight.tolist() == [4.9, 4.5, 4.5]
    assert g.weights.whole.tolist() == [1.0, 0.0, 1.0]
    assert g.kind_generate.tolist() == [1.0, 1.0, 0.0]
    assert g.kind_ceiling.tolist() == [0.0, 0.0, 1.0]
    assert g.engine.launch.tolist() == [1.0] * 3
    assert (g.prompt.tolist(), g.output_len.tolist()) == ([128.0] * 3, [64.0] * 3)


def test_gpus_as_people_write_them() -> None:
    names = {
        "H100-80GB HBM3": "h100-sxm", "H100 PCIe 80GB": "h100-pcie", "H200-141GB HBM3": "h200-sxm", "A100": "a100-sxm-80",
        "A100-80GB (330W, hybrid cube mesh)": "a100-sxm-80", "A100-80GB PCIe": "a100-pcie-80", "A100-40GB": "a100-sxm-40",
        "MI250X (one GCD)": "mi250x-gcd", "3070 8GB": "rtx-3070", "3080 Ti 12GB": "rtx-3080-ti", "RTX 3090Ti": "rtx-3090-ti",
        "4070 Ti 12GB": "rtx-4070-ti", "RTX 4090": "rtx-4090", "RTX 6000 Ada 48GB": "rtx-6000-ada", "A40 48GB": "a40",
        "RTX A6000 48GB": "rtx-a6000", "Jetson Orin": "orin-agx-64", "M1 7\u2011Core GPU 8GB": "m1", "Apple M2 Ultra": "m2-ultra",
        "M3 Max 40\u2011Core GPU 64GB": "m3-max", "M1 Pro": "", "RTX 2080": "", "CPU": "",
    }  # fmt: skip
    assert {text: hardware_of(text) for text in names} == names


def test_engines_with_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ("default", "vllm", "vllm-2023", "fastertransformer", "turbomind", "tinychat", "huggingface")
    monkeypatch.setattr(engine, "known_engines", lambda: rows)
    names = {
        "vLLM": ("vllm", True), "vLLM 0.6.3": ("vllm", True), "vLLM (2023)": ("vllm-2023", True),
        "Triton (FasterTransformer backend presumed)": ("default", False), "TinyChat": ("tinychat", True), "llm-awq": ("default", False),
        "LMDeploy TurboMind v0.2.0": ("turbomind", True), "HF Transformers": ("huggingface", True),
        "HF Transformers (eval_speed.py)": ("default", False), "mlc-llm": ("default", False), "": ("default", False),
    }  # fmt: skip
    assert {text: engine_of(text) for text in names} == names


def test_models_by_name_by_shape_and_by_parameters(read: Read) -> None:
    rows = read(
        {"model": "LLaMA v3.1 8B"},
        {"model": "Qwen2.5-7B-Instruct-Q8_0"},
        {"model": "something", **SHAPE, "params_B": "6.05"},
        {
            "model": "something",
            **SHAPE,
            "heads": "32",
            "kv_heads": "32",
            "head_dim": "128",
            "params_B": "6.05",
        },
        {"model": "something", **SHAPE, "ffn": "16000", "params_B": "8"},
        {"model": "something", **SHAPE, "ffn": "16000"},
        {"model": "something", **SHAPE, "params_B": "60", "ffn": "16000"},
        {"model": "Qwen2.5-7B", "layers": "27"},
        {"model": "hybrid_2b_perf"},
        {"model": "Mixtral 8x7B", "moe": "E=8;topk=2", "n_gpus": "2", "tp": "2"},
        {"model": "lama-3.1-8b"},
    ).rows
    told = [(row.model or {}).get("gated", row.reason) for row in rows]
    assert told[:6] == [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    assert rows[1].model is not None
    assert rows[1].model["qkv_bias"] == 1.0
    assert told[6] == "architecture has 7.8 G parameters, params_B says 60"
    assert told[7] == "architecture not stated (hidden, ffn, heads, vocab)"
    assert told[8] == "hybrid architecture (state space layers)"
    assert rows[9].model is not None
    assert rows[9].model["experts"] == 8
    assert str(told[10]).startswith(
        "model 'lama-3.1-8b' is not in the catalogue; did you mean 'llama-3.1-8b'?"
    )


SKIPPED: tuple[tuple[Mapping[str, str], str], ...] = (
    ({"gpu": "Cray-1"}, "GPU 'Cray-1' is not in the catalogue; known: v100"),
    ({"gpu": "l40z"}, "GPU 'l40z' is not in the catalogue; did you mean 'l40s'?"),
    ({"gpu": ""}, "GPU not stated"),
    ({"batch": "0"}, "batch 0 is not a whole number above 0"),
    ({"batch": "many"}, "batch not stated"),
    ({**SINGLE, "batch": "2"}, "batching is single, and batch 2"),
    ({"batching": "speculative"}, "batching 'speculative' is not known; known: static, single, in-flight"),
    ({"output_len": "0"}, "no output token"),
    ({"input_len": "0"}, "no prompt token"),
    ({"input_len": "-5"}, "lengths below 0"),
    ({"metric": "tpot_ms", "output_len": "1"}, "time per output token is not defined for one output token"),
    ({"input_len": "", "output_len": ""}, "lengths not stated (empty)"),
    ({**CEILING, "input_len": "ShareGPT mix"}, "lengths not stated (ShareGPT mix)"),
    ({**CEILING, "metric": "ttft_ms"}, "in-flight batching, and the figure is no rate of output tokens"),
    ({"metric": "tflops_per_gpu"}, "metric 'tflops_per_gpu' is no time or rate of inference"),
    ({"value": ""}, "no value"),
    ({"value": "-1"}, "value is not above 0"),
    ({"n_gpus": "2"}, "layout does not multiply to the GPU count"),
    ({"n_gpus": "", "tp": ""}, "GPU count not stated"),
    ({"n_gpus": "3", "tp": "3"}, "32 heads are not divisible by tp 3"),
    ({"n_gpus": "1.5", "tp": "1.5"}, "layout has a count that is not a whole number above 0"),
    ({"weights_precision": "int5"}, "weights' format 'int5' is not in the catalogue"),
    ({"kv_precision": "fp4"}, "cache format 'fp4' is not known"),
    ({"model": "Mixtral 8x7B"}, "the weights do not fit the memory of the GPUs"),
    ({"batch": "64", "input_len": "2048", "output_len": "2048"}, "the batch's cache does not fit the memory"),
)


def test_rows_that_cannot_be_predicted_say_why(read: Read) -> None:
    rows = read(*(cells for cells, _ in SKIPPED)).rows
    for row, (cells, reason) in zip(rows, SKIPPED, strict=True):
        assert row.kind == "skipped", cells
        assert row.reason.startswith(reason), (cells, row.reason)


def test_one_output_token_is_the_prefill_alone(read: Read) -> None:
    (row,) = read({"output_len": "1", "value": "8"}).rows
    assert (row.kind, row.runs[0].target.seconds) == ("exact", 2.0)


def test_lengths_that_are_not_stated_are_open_where_they_matter(read: Read) -> None:
    """The cache of 2,048 tokens of Llama 2 7B is 8 % of its weights in 16 bits, and a third in 4."""
    unstated = {**SINGLE, "input_len": "", "output_len": "", "notes": "generation speed"}
    wide, narrow, short, first = read(
        unstated,
        {**unstated, "weights_precision": "AWQ-Int4"},
        {**unstated, "weights_precision": "AWQ-Int4", "input_len": "short prompt"},
        {**unstated, "metric": "ttft_ms"},
    ).rows
    assert (wide.kind, wide.runs[0].job["prompt"]) == ("exact", 45)
    assert (narrow.kind, [run.job["prompt"] for run in narrow.runs]) == ("bounds", [1, 2048])
    assert (short.kind, short.runs[0].job["prompt"]) == ("exact", 11)
    assert (first.kind, first.reason) == ("skipped", "lengths not stated (empty)")
    assert wide.assumed["input_len"] == "1 to 2,048 tokens"


def test_rows_that_others_contradict_are_flagged(read: Read) -> None:
    """A prefill in 16 bits spares unpacking the weights, and cannot take twice as long as with quantized ones."""
    long = {"metric": "prefill_tokens_s", "input_len": "1024", "value": "700"}
    quantized = {**long, "weights_precision": "Q4_K_M", "value": "5900"}
    rows = read(
        long, quantized, {**long, "value": "3000"}, {**long, "batch": "8"}, {**quantized, "weights_precision": "fp8"},
        {"flag": "odd"},
    ).rows  # fmt: skip
    assert [row.kind for row in rows] == ["flagged", "exact", "exact", "exact", "exact", "flagged"]
    assert (
        rows[0].reason
        == "prefill in 16 bits takes more than 2 times that with quantized weights in the same table"
    )
    assert rows[5].reason == "odd"


def test_layouts(read: Read) -> None:
    split, doubtful, persistent = read(
        {"n_gpus": "2", "pp": "device_map split"},
        {"n_gpus": "8", "tp": "8", "notes": 'HF "tensor para = 8" is probably not true TP'},
        {"batching": "static (persistent batch)", "batch": "64", "output_len": "2048"},
    ).rows
    assert [split.runs[0].plan[name] for name in ("tp", "pp")] == [1, 2]
    assert (doubtful.kind, [run.plan["pp"] for run in doubtful.runs]) == ("bounds", [1, 8])
    assert (
        persistent.kind == "exact"
    )  # replaced when they end, its sequences have half their output on average


def test_columns_that_may_be_missing(tmp_path: Path) -> None:
    needed = [name for name in ROW if name not in REQUIRED]
    (row,) = read_rows(write_table(tmp_path / "mine.csv", [{}], without=needed)).rows
    assert (row.kind, row.phase, row.engine, row.cells["source"]) == ("skipped", "", "", "mine")
    assert row.reason == "GPU count not stated"
    needed = [name for name in needed if name != "tp"]
    (row,) = read_rows(write_table(tmp_path / "mine.csv", [{}], without=needed)).rows
    assert (row.kind, row.phase, row.assumed) == (
        "exact", "generate", {"engine": "default", "metric": "with the prefill"}
    )  # fmt: skip


FILES = (
    ("", "found an empty file, expected column names"),
    ("gpu,value\nA100,1\n", "expected also model, weights_precision, batch, input_len, output_len, metric"),
    ("{header}\n", "found no rows, expected at least one row"),
    ("{header},modle\n{cells},x\n", "found a column that is not read"),
    ("{header},notse\n{cells},x\n", "did you mean 'notes'?"),
    ("{header},tp\n{cells},nan\n", "mine.csv:2:9: tp: found 'nan', expected a number"),
)


def test_tables_that_cannot_be_read(tmp_path: Path) -> None:
    header, cells = ",".join(REQUIRED), "A100,LLaMA 7B,fp16,1,1,1,ttft_ms,1"
    for text, message in FILES[:3] + FILES[4:]:
        (tmp_path / "mine.csv").write_text(text.replace("{header}", header).replace("{cells}", cells))
        with pytest.raises(SpaceError) as error:
            read_rows(tmp_path / "mine.csv")
        assert message in str(error.value), text
    for name in ("batch", "input_len", "value"):
        changed = {**dict(zip(REQUIRED, cells.split(","), strict=True)), name: "inf"}
        with pytest.raises(SpaceError, match=rf"mine\.csv:2:{REQUIRED.index(name) + 1}: {name}: found 'inf'"):
            read_rows(write_table(tmp_path / "mine.csv", [{}], changed))


def test_published_rows_are_all_used() -> None:
    rows = read_rows(PUBLISHED)
    assert rows.counts()["skipped"] == 0
    assert rows.counts()["flagged"] == 2
    assert rows.counts()["exact"] > 600
    assert rows.counts()["ceiling"] > 250
    cases = rows.cases(("exact", "ceiling", "bounds"))
    assert np.isfinite(cases.seconds).all()
    assert (cases.seconds > 0).all()
    unread = ("InferSim", "Vidur", "aiconfigurator", "Megatron", "llama.cpp benches")
    assert not [row for row in rows.rows if row.cells["source"].startswith(unread)]


def test_single_tokens_without_the_prefill() -> None:
    found = {
        row.cells["source"] for row in read_rows(PUBLISHED).rows if row.kind == "exact" and row.decode_only
    }
    assert found == {"llama.cpp GPU benchmarks (XiongjieDai)", "exllamav2 README", "QuIP# README throughput"}
