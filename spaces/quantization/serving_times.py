"""Seconds of a prefill and of a decode step: the one place where quantization meets the serving model."""

from __future__ import annotations

from typing import Any

from dse.expressions.tracer import maximum, quantity, where
from dse.spaces.catalog import architecture

__all__ = ["serving_times"]


def serving_times(g: Any) -> tuple[Any, Any]:
    """Seconds of the prefill of ``g.batch`` prompts, and of one decode step in the middle of the output."""
    m, chip = g.model, g.hardware
    matrices = architecture.active_parameters(m, 0)
    read = quantity(g.weight_bits / 8.0 * matrices / g.tp, "B")
    half = maximum(chip.bf16, chip.fp16)
    int8 = chip.int8 * quantity("1 flop") / quantity("1 op")
    peak = where(g.fp4 > 0, chip.fp4, where(g.fp8 > 0, chip.fp8, where(g.int8 > 0, int8, half)))
    context = g.prompt_len + g.output_len / 2.0
    cache = quantity(g.batch * architecture.kv_cache_bytes(m, context, g.kv_bits / 8.0) / g.tp, "B")

    def seconds(tokens: Any, cached: Any) -> Any:
        flops = quantity(2.0 * matrices * tokens / g.tp, "flop")
        return maximum(flops / (0.7 * peak), (read + cached) / (0.8 * chip.bandwidth))

    return seconds(g.batch * g.prompt_len, 0.0 * cache), seconds(g.batch, cache)
