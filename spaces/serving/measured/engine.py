"""Engines of measured runs: whose row of ``engines.csv`` a text means."""

from __future__ import annotations

import csv
import re
from functools import cache
from importlib.resources import files

__all__ = ["DEFAULT", "engine_of", "is_eager", "known_engines"]

DEFAULT = "default"
"""The row of engines that have none of their own."""

_ENGINES = (
    (r"tensorrt[- ]?llm|trt[- ]?llm|trtllm", "tensorrt-llm"),
    (r"sglang", "sglang"),
    (r"turbomind|lmdeploy", "turbomind"),
    (r"vllm", "vllm"),
    (r"faster ?transformer", "fastertransformer"),
    (r"llama\.cpp", "llama.cpp"),
    (r"exllama ?v?2", "exllamav2"),
    (r"gpt-fast", "gpt-fast"),
    (r"litgpt", "litgpt"),
    (r"tinychat", "tinychat"),
    (r"llm-awq", "llm-awq"),
    (r"mlc[- ]llm", "mlc-llm"),
    (r"megatron", "megatron"),
    (r"deepspeed", "deepspeed"),
    (r"eval_speed", "eval-speed"),
    (r"transformers|hugging ?face|\bhf\b", "huggingface"),
)
"""The word that says which engine it is, and its row. ``eval_speed`` times the modules of a model, not its generation."""


def engine_of(text: str) -> tuple[str, bool]:
    """The row of an engine, and whether it is its own; an engine without one has the pooled ``default``.

    A row of a version (``vllm-2023``) goes before that of the engine.
    """
    folded = text.casefold()
    if "presumed" in folded:
        return DEFAULT, False
    rows = known_engines()
    name = next((row for word, row in _ENGINES if re.search(word, folded)), "")
    version = re.sub(r"[^a-z0-9.]+", "-", folded).strip("-")
    for one in (version, name):
        if one and (one in rows or not rows):
            return one if rows else name or DEFAULT, True
    return DEFAULT, False


def is_eager(text: str) -> bool:
    """Whether a row's engine or notes say that kernels are launched one by one, without graph capture."""
    return bool(re.search(r"\beager\b", text.casefold()))


@cache
def known_engines() -> tuple[str, ...]:
    """The engines that the space knows."""
    try:
        text = files("dse.spaces.serving").joinpath("engines.csv").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    return tuple(next(iter(row.values())) for row in csv.DictReader(text.splitlines()))
