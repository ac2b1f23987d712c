"""Bytes on the fullest GPU of an instance: weights, cache, and what a pass needs besides."""

from __future__ import annotations

from typing import Any

from dse.expressions.tracer import ceil, maximum, minimum, quantity, where
from dse.spaces.catalog import architecture

from .kernels import ACTIVATION_BYTES, Given
from .step import head_bits

__all__ = ["PASS_TOKENS", "cache_bytes", "cached_tokens", "memory", "peak", "weight_bytes"]

PASS_TOKENS = 8192.0
"""Tokens of prompts that engines take into one pass (vLLM's max_num_batched_tokens, TensorRT-LLM's max_num_tokens)."""
LOGIT_BYTES = 6.0
"""Bytes of a logit: 16 bits from the multiplication, and 32 for sampling."""


def weight_bytes(g: Given, m: Any) -> Any:
    """Bytes of model ``m``'s weights on one rank; experts are divided over all ranks of a stage (TP x attention DP)."""
    layer = architecture.attention_parameters(m) + architecture.vector_parameters(m)
    dense = m.layers * layer + (m.layers - m.moe_layers) * architecture.mlp_parameters(m)
    others = m.moe_layers * (architecture.shared_parameters(m) + architecture.router_parameters(m))
    routed = m.moe_layers * m.experts * architecture.expert_parameters(m) / (g.tp * g.attention_dp)
    ends = architecture.embedding_parameters(m) + architecture.head_parameters(m)
    bits = ((dense + others) / g.tp + routed) * g.weights.bits_per_weight / g.pp + ends / g.tp * head_bits(g)
    return quantity(bits / 8.0, "B")


def cached_tokens(g: Given) -> Any:
    """Tokens that one running sequence has in the cache, on average over its life, in whole blocks: its prompt and half of
    its output, more where outputs vary, as longer ones run longer (E[n^2] / 2 E[n]).
    """
    mean = g.prompt_len + 0.5 * g.output_len * (1.0 + g.output_cv * g.output_cv)
    return ceil(mean / g.kv_block) * g.kv_block


def cache_bytes(g: Given, m: Any, sequences: Any, tokens: Any) -> Any:
    """Bytes of the cache of ``sequences`` sequences on one rank and stage; KV heads fewer than ranks, and MLA's latent,
    are on every rank (DeepSeek-V2, 2405.04434, section 2.1).
    """
    whole = architecture.kv_cache_bytes(m, tokens, g.kv.bits / 8.0)
    share = where(m.mla > 0, 1.0, maximum(1.0 / g.tp, 1.0 / maximum(m.kv_heads, 1.0)))
    return quantity(sequences * whole * share / g.pp, "B")


def _working(g: Given) -> Any:
    """Activations of the longest pass: a chunk of prefill, the prompts that share a pass, or the decode batch, and its logits."""
    m = g.model
    sequences = maximum(g.batch / g.attention_dp, 1.0)
    whole = maximum(g.prompt_len, minimum(PASS_TOKENS, g.prompt_len * sequences))
    chunk = where(g.chunk > 0.0, minimum(g.chunk, g.prompt_len), whole)
    rows = maximum(chunk, sequences * (1.0 + g.draft_length))
    width = 4.0 * m.hidden + 2.0 * m.heads * architecture.query_dim(m) / g.tp + (2.0 + m.gated) * m.ffn / g.tp
    logits = sequences * (1.0 + g.draft_length) * m.vocab / g.tp * LOGIT_BYTES
    return quantity(rows * width * ACTIVATION_BYTES + logits, "B")


def memory(g: Given) -> dict[str, Any]:
    """The lines of memory, in B: ``weights_memory``, ``kv_cache``, ``draft`` (weights and cache of the draft model), ``working``."""
    m = g.model
    sequences = maximum(g.batch / g.attention_dp, 1.0)
    longest = maximum(g.max_context, g.prompt_len + g.output_len)
    cache = maximum(cache_bytes(g, m, sequences, cached_tokens(g)), cache_bytes(g, m, 1.0, longest))
    drafting = where(g.draft_length > 0.0, 1.0, 0.0)
    draft = weight_bytes(g, g.draft) + cache_bytes(g, g.draft, sequences, cached_tokens(g))
    return {
        "weights_memory": weight_bytes(g, m),
        "kv_cache": cache,
        "draft_memory": drafting * draft,
        "working": _working(g),
    }


def peak(g: Given) -> Any:
    """Bytes on the fullest GPU, without what is kept free."""
    lines = memory(g)
    return lines["weights_memory"] + lines["kv_cache"] + lines["draft_memory"] + lines["working"]
