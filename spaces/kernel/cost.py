"""The cost of a fused feed-forward block, as the metrics of space.yaml."""

from __future__ import annotations

from typing import Any

from dse.expressions.tracer import quantity

from .block import block, fused, parameters
from .fusion import Machine, times
from .grouping import eager, fused_edges, one_kernel

__all__ = ["cost"]


def cost(
    model: Any, hardware: Any, numbers: Any, peak: Any, launch_time: Any, **names: Any
) -> dict[str, Any]:
    """Every metric of a design (see space.yaml for their meaning)."""
    graph = block(names["tokens"], model.hidden, model.ffn, numbers.width, quantity("1 flop"))
    machine = Machine(peak, hardware.bandwidth, launch_time)
    stock = Machine(peak, hardware.bandwidth, names["launch"])
    found = times(graph, fused(names), machine)
    apart = times(graph, fused_edges(graph, eager(graph)), stock)
    least = times(graph, fused_edges(graph, one_kernel(graph)), machine)
    tokens = quantity(names["tokens"], "token")
    return {
        "time": found.total,
        "computing": found.computing,
        "moving": found.moving,
        "launching": found.launching,
        "token_time": found.total / tokens,
        "throughput": tokens / found.total,
        "kernels": found.kernels,
        "work": found.flop,
        "traffic": found.traffic,
        "intensity": found.flop / found.traffic,
        "ridge": peak / hardware.bandwidth,
        "attained": found.flop / found.total,
        "roofline_share": (least.computing + least.moving) / found.total,
        "launch_share": found.launching / found.total,
        "lower_bound": least.total,
        "speedup": apart.total / found.total,
        "parameters": parameters(model.hidden, model.ffn),
        **{f"{first}_kernel": seconds for first, seconds in found.each.items()},
    }
