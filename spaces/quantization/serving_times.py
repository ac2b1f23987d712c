"""Seconds of a prefill and of a decode step: the one place where quantization meets the serving model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dse.expressions.tracer import where
from dse.spaces.serving import load, memory

__all__ = ["as_served", "serving_memory", "serving_times"]


def as_served(g: Any, low: Any, high: Any, share: Any, *, unit: Any, kv_bits: Any) -> Any:
    """What the formulas of serving are given: one instance of ``g.tp`` GPUs that serves full batches without a queue.

    Args:
        g: inputs: model, hardware, efficiency, engine, batch, prompt_len, output_len, tp.
        low: row of the catalogue's formats that weights are stored as.
        high: the row that a ``share`` of the weights is stored as instead.
        share: 0 for one format.
        unit: half, int8, fp8 or fp4: what multiplies matrices.
        kv_bits: bits of a cached value with its scales.
    """
    fp8, int8, fp4 = (where(unit == name, 1.0, 0.0) for name in ("fp8", "int8", "fp4"))
    return SimpleNamespace(
        **vars(g),
        weights=SimpleNamespace(
            bits_per_weight=low.bits_per_weight + share * (high.bits_per_weight - low.bits_per_weight),
            whole=low.whole,
            unpacking=low.unpacking,
        ),
        activations=SimpleNamespace(bits=16.0 - 8.0 * (fp8 + int8) - 12.0 * fp4, fp8=fp8, int8=int8, fp4=fp4),
        kv=SimpleNamespace(bits=kv_bits),
        pp=1.0, ep=1.0, attention_dp=1.0, chunk=0.0, draft=g.model, draft_length=0.0, graphs=True, kv_block=16.0, expert_imbalance=1.0,
        output_cv=0.0, max_context=0.0,
    )  # fmt: skip


def serving_times(served: Any) -> tuple[Any, Any]:
    """Seconds of the prefill of one prompt, and of one decode step of the batch in the middle of the output."""
    context = served.prompt_len + 0.5 * served.output_len
    return load.prefill(served, 1.0, served.prompt_len, 0.0).seconds, load.decode(
        served, served.batch, context
    ).seconds


def serving_memory(served: Any) -> dict[str, Any]:
    """Bytes of each GPU: weights, the cache of the batch, and activations with logits."""
    lines = memory.memory(served)
    return {"weights": lines["weights_memory"], "kv_cache": lines["kv_cache"], "working": lines["working"]}
