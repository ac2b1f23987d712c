"""The cost model of quantization: what a scheme of published quality costs in memory, latency and throughput."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dse.expressions.tracer import quantity, where
from dse.spaces.catalog import architecture

from .serving_times import serving_times

__all__ = ["cost", "stored_bits"]


def stored_bits(low: Any, high: Any, share: Any) -> Any:
    """Bits per weight with scales and zero points; between two widths, that of a mix of both."""
    return low.bits_per_weight + share * (high.bits_per_weight - low.bits_per_weight)


def namespace(kept: Any, unit: Any, formats: Any, names: dict[str, Any]) -> SimpleNamespace:
    """What the formulas are given, from the inputs and dimensions of the space."""
    g = SimpleNamespace(**names)
    g.weight_bits = stored_bits(formats[kept.lower], formats[kept.upper], kept.share)
    g.head_bits = where(kept.whole > 0, g.weight_bits, 16.0)
    g.cache_bits = formats[kept.cache].kv_bits
    g.int8, g.fp8, g.fp4 = (where(unit == name, 1.0, 0.0) for name in ("int8", "fp8", "fp4"))
    g.kv_bits = g.cache_bits
    g.interpolated = kept.interpolated
    return g


def cost(
    storage: Any, units: Any, formats: Any, losses: Any, *, series: Any, published: Any, scheme: Any, **names: Any
) -> dict[str, Any]:
    """Every metric of a design (see space.yaml for their meaning)."""
    g = namespace(storage[scheme], units[scheme], formats, names)
    m = g.model
    total = architecture.parameters(m)
    ends = architecture.embedding_parameters(m) + architecture.head_parameters(m)
    bits = (total - ends) * g.weight_bits + ends * g.head_bits
    weights = quantity(bits / 8.0 / g.tp, "B")
    tokens = g.prompt_len + g.output_len
    cache = quantity(g.batch * architecture.kv_cache_bytes(m, tokens, g.kv_bits / 8.0) / g.tp, "B")
    prefill, decode = serving_times(g)
    made = quantity(1.0 * g.batch, "token")
    return {
        "quality_loss": losses[series, published, scheme],
        "bits_per_weight": bits / total,
        "memory": weights + cache,
        "weights": weights,
        "kv_cache": cache,
        "decode_latency": decode,
        "prefill_latency": prefill,
        "throughput": made * g.output_len / (prefill + g.output_len * decode) / g.tp,
        "interpolated": g.interpolated,
    }
