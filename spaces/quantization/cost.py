"""The cost model of quantization: what a scheme of published quality costs in memory, latency and throughput."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dse.expressions.tracer import quantity
from dse.spaces.catalog import architecture

from .serving_times import as_served, serving_memory, serving_times

__all__ = ["cost"]


def cost(
    storage: Any,
    formats: Any,
    losses: Any,
    efficiency: Any,
    *,
    units: Any,
    baselines: Any,
    series: Any,
    published: Any,
    scheme: Any,
    **names: Any,
) -> dict[str, Any]:
    """Every metric of a design (see space.yaml for their meaning).

    ``throughput`` is that of full batches: while a sequence makes its output, the prompts of those that follow are
    prefilled in turn with the steps.
    """
    g = SimpleNamespace(**names, efficiency=efficiency[names["hardware"].generation])
    kept = storage[scheme]
    low, high = formats[kept.lower], formats[kept.upper]
    served = as_served(g, low, high, kept.share, unit=units[scheme], kv_bits=formats[kept.cache].kv_bits)
    lines = serving_memory(served)
    prefill, decode = serving_times(served)
    made = quantity(g.batch * g.output_len, "token")
    return {
        "quality_loss": losses[series, published, scheme],
        "bits_per_weight": lines["weights"] * g.tp * 8.0 / quantity(architecture.parameters(g.model), "B"),
        "memory": lines["weights"] + lines["kv_cache"] + lines["working"],
        **lines,
        "decode_latency": decode,
        "prefill_latency": prefill,
        "throughput": made / (g.output_len * decode + g.batch * prefill) / g.tp,
        "own_baseline": baselines[series, published],
        "interpolated": kept.interpolated,
    }
