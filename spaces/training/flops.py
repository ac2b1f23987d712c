"""FLOPs of one training step: those of the model, and those that are executed beyond it, each by name.

Model FLOPs are three forward passes (Kaplan 2001.08361 Table 1; PaLM 2204.02311 App. B), equal for every plan. Causal
attention counts half of the products, full attention all of them; ``attention_flops`` says which.
"""

from __future__ import annotations

from typing import Any

from dse.expressions.tracer import maximum, where
from dse.spaces.catalog import architecture

from .compute import half_rate
from .layout import Given, alike

__all__ = ["causal_flops", "executed_flops", "extra_flops", "model_flops", "peak_rate"]


def _causal(g: Given) -> Any:
    return where(g.attention_flops == "causal", 1.0, 0.0)


def _tokens(g: Given) -> Any:
    return g.global_batch * g.seq_len


def _three_passes(g: Given, causal: Any) -> Any:
    return 3.0 * _tokens(g) * architecture.forward_flops(g.model, g.seq_len, causal, g.attention_share)


def model_flops(g: Given) -> Any:
    """FLOPs of one step without recomputation, padding or replicas: three forward passes."""
    return _three_passes(g, _causal(g))


def causal_flops(g: Given) -> Any:
    """Model FLOPs with half of the attention's products, as the best measured MFU counts them."""
    return _three_passes(g, 1.0)


def _attention(g: Given) -> Any:
    return architecture.attention_flops(g.model, g.seq_len, _causal(g), g.attention_share)


def extra_flops(g: Given) -> dict[str, Any]:
    """FLOPs that are executed beyond the model's, by reason.

    ``recompute`` is forward work done again; ``padding`` rows of the vocabulary that divide over TP and tokens that
    pad experts to their capacity; ``replication`` the KV heads that several TP ranks compute alike, and without
    sequence parallelism the router.
    """
    m, r, tokens = g.model, g.recompute, _tokens(g)
    layers, moe = m.layers, m.moe_layers
    shared = 2.0 * architecture.shared_parameters(m)
    mlp = (layers - moe) * architecture.mlp_flops(m) + moe * (m.top_k * architecture.expert_flops(m) + shared)
    every = architecture.forward_flops(m, g.seq_len, _causal(g), g.attention_share) - 2.0 * m.hidden * m.vocab
    again = where(r.full > 0, every, r.attention * _attention(g) + r.mlp * mlp)
    rows = architecture.padded_vocab(m, g.tp) - m.vocab
    full = where(g.dispatch.dropless > 0, 1.0, maximum(g.capacity_factor, 1.0))
    experts = moe * m.top_k * architecture.expert_flops(m) * (full - 1.0)
    heads = 2.0 * layers * alike(g)
    router = 2.0 * moe * architecture.router_parameters(m) * (where(g.sequence_parallel, 1.0, g.tp) - 1.0)
    return {
        "recompute": tokens * again,
        "padding": 3.0 * tokens * (2.0 * m.hidden * rows + experts),
        "replication": 3.0 * tokens * (heads + router),
    }


def executed_flops(g: Given) -> Any:
    """All FLOPs of one step: the model's and the extra ones."""
    extra = extra_flops(g)
    return model_flops(g) + extra["recompute"] + extra["padding"] + extra["replication"]


def peak_rate(g: Given) -> Any:
    """The dense peak of the format in use, FLOP/s: what MFU and HFU are shares of."""
    eight = where(g.format.four > 0, g.hardware.fp4, g.hardware.fp8)
    return where(g.format.eight > 0, eight, half_rate(g))
