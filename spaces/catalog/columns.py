"""The columns of the catalogue's tables with their units, as a space's table declares them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["COLUMNS", "MODEL_COUNTS"]

MODEL_COUNTS = tuple(
    "layers hidden heads kv_heads head_dim ffn gated vocab tied layernorm norms qk_norm qkv_bias out_bias mlp_bias"
    " positions embedding_norm context experts top_k expert_ffn shared_ffn moe_layers router_bias sinks expert_bias"
    " shared_gate group_limit mla q_lora kv_lora rope_dim nope_dim value_dim window window_layers dropout".split()
)
"""The numbers that describe a model; 0 or 1 for no or yes."""

_HARDWARE = {
    **dict.fromkeys(("title", "vendor", "kind", "generation"), "text"),
    **dict.fromkeys(("bf16", "fp16", "fp8", "fp4"), "flop/s"),
    "int8": "op/s",
    **dict.fromkeys(("tf32", "fp32"), "flop/s"),
    "memory": "B",
    "memory_type": "text",
    "bandwidth": "B/s",
    "link": "B/s",
    "link_type": "text",
    "node": "1",
    "nic": "B/s",
    "tdp": "W",
    "idle": "W",
    "price": "USD/h",
    **dict.fromkeys(("price_source", "checked", "source", "notes"), "text"),
}

_CLUSTERS = {
    "hardware": "text",
    "node": "1",
    "nic": "B/s",
    **dict.fromkeys(("rack", "rack_slowdown", "fabric_slowdown", "in_network"), "1"),
    **dict.fromkeys(("link_latency", "nic_latency", "fabric_latency"), "s"),
    **dict.fromkeys(("checked", "source"), "text"),
}

_MODELS = {**dict.fromkeys(MODEL_COUNTS, "1"), "source": "text"}

_FORMATS = {
    **dict.fromkeys(
        ("bits", "bits_per_weight", "group", "scale_bits", "zero_bits", "block", "block_bits"), "1"
    ),
    **dict.fromkeys(("kind", "compute"), "text"),
    **dict.fromkeys(("integer", "float", "activations", "kv_bits", "mixed", "whole", "unpacking"), "1"),
    "source": "text",
}

COLUMNS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"hardware": _HARDWARE, "models": _MODELS, "clusters": _CLUSTERS, "formats": _FORMATS}
)
"""The columns of ``<name>.csv`` beside the first, which names the row."""
