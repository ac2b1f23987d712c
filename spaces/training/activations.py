"""Bytes that a micro-batch leaves behind for its backward pass, layer by layer.

Korthikanti 2022 (2205.05198) section 4 and Table 2, with grouped queries, gated MLPs, experts and fused attention
(which keeps a statistic for each row instead of s x s scores). For GPT-3's layer the terms add up to
s b h (34 + 5 a s / h).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import maximum, minimum, where
from dse.spaces.catalog import architecture

from . import layout, state
from .layout import Given, yes

__all__ = [
    "Kept",
    "activation_bytes",
    "dense_layer",
    "embedding_mask",
    "exchanged",
    "in_flight",
    "logits",
    "moe_layer",
    "working_set",
]


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes of one layer of one micro-batch: ``kept`` until the backward pass, or computed ``again`` before it."""

    kept: Any
    again: Any

    def __add__(self, other: Kept) -> Kept:
        return Kept(self.kept + other.kept, self.again + other.again)

    @property
    def whole(self) -> Any:
        """Bytes without recomputation."""
        return self.kept + self.again


def _term(size: Any, recomputed: Any = 0.0) -> Kept:
    return Kept(size * (1 - recomputed), size * recomputed)


def _replicated(g: Given) -> Any:
    """The part of the tokens whose norms and residuals a rank computes: 1/TP with sequence parallelism."""
    return where(g.sequence_parallel, 1 / g.tp, 1.0)


def _saved(g: Given) -> Any:
    """Bytes of a value kept as the input of a matrix multiplication: 2, or 1 in 8-bit formats."""
    return 2 - g.format.eight


def _either(first: Any, second: Any) -> Any:
    """1 where one of two 0/1 flags is 1."""
    return first + second - first * second


def _attention(g: Given) -> Kept:
    """Everything of a layer but its MLP, bytes per token."""
    m, r, again = g.model, _replicated(g), g.recompute
    h = m.hidden
    keys = where(m.mla > 0, m.heads / g.tp, maximum(m.kv_heads / g.tp, 1))
    query, value = architecture.query_dim(m), architecture.value_dim(m)
    latent = m.mla * 4 * (m.q_lora + m.kv_lora + m.rope_dim)
    scores = (2 + 3 * m.dropout) * g.seq_len
    core = m.heads / g.tp * where(g.attention.flash > 0, 4.0, scores)
    return (
        _term(r * h * m.norms * (2 + g.runtime.norm_copy))  # inputs of the norms
        + _term(r * h * 2 * _saved(g), again.elementwise)  # their outputs: inputs of two multiplications
        + _term(r * h * 2 * m.dropout)  # two dropout masks
        + _term(2 * m.heads / g.tp * query + 2 * keys * (query + value) + r * latent)  # queries, keys, values
        + _term(2 * m.heads / g.tp * value)  # the output of attention
        + _term(core, again.attention)  # softmax statistics, or scores
    )


def _mlp(g: Given, width: Any) -> Kept:
    """Inside an MLP of ``width`` values on this rank, bytes per token: before and after the activation function."""
    m, again = g.model, g.recompute
    return (
        _term(2 * (1 + m.gated) * width, again.mlp)
        + _term(2 * m.gated * g.runtime.eager * width, _either(again.mlp, again.elementwise))
        + _term(_saved(g) * width, _either(again.mlp, again.elementwise))
    )


def _expert_tokens(g: Given) -> Any:
    """Copies of a token that the experts of a rank work on: top_k, times the imbalance or the capacity factor."""
    return g.model.top_k * layout.expert_load(g)


def _of_layer(g: Given, inside: Kept) -> Kept:
    """A layer of one micro-batch in bytes; with full recomputation its input is kept, 2 s b h."""
    tokens = layout.tokens(g)
    layer = _attention(g) + inside
    full = g.recompute.full > 0
    start = 2 * _replicated(g) * g.model.hidden / g.recompute_block
    return Kept(
        tokens * where(full, start, layer.kept),
        tokens * where(full, g.recompute_block * layer.whole, layer.again),
    )


def dense_layer(g: Given) -> Kept:
    """Bytes of one dense layer of one micro-batch."""
    return _of_layer(g, _mlp(g, g.model.ffn / g.tp))


def moe_layer(g: Given) -> Kept:
    """Bytes of one MoE layer of one micro-batch.

    The experts' part is that of top_k MLPs, with the permuted inputs and outputs 2 x 2 top_k s b h (Megatron);
    expert TP gathers the tokens of its ranks, so their copies are not divided by it.
    """
    m, copies = g.model, _expert_tokens(g)
    shared_tokens = layout.expert_tp(g) / g.tp
    inside = (
        _term(_replicated(g) * 8 * m.experts)  # router: fp32 logits and probabilities
        + _term(4 * copies * m.hidden * shared_tokens, g.recompute.mlp)
        + _mlp(g, (copies * m.expert_ffn + m.shared_ffn) / g.tp)
    )
    return _of_layer(g, inside)


def in_flight(g: Given, index: Any) -> Any:
    """Micro-batches whose activations a stage keeps at once, in units of its layers; never more than m.

    GPipe m; 1F1B p - i; interleaved (2 (p - i - 1) + (v - 1) p + 1) / v (Korthikanti 4.2.3); ZB-H1 p (Qi
    2401.10241); DualPipe (p + 1) / 2 for each of the two stages of a rank.
    """
    m, s = layout.micro_batches(g), g.schedule
    after = 0 if isinstance(index, int) and index == state.LAST else g.pp - 1 - index
    left = where(s.level > 0, g.pp, after + 1)
    chunks = 2 * after + (g.chunks - 1) * g.pp + 1
    waiting = where(g.chunks > 1, chunks / g.chunks, left)
    capped = where(s.keeps_all > 0, m, minimum(waiting, m))
    return where(s.dual > 0, minimum(g.pp + 1, m) / 2, capped)


def logits(g: Given) -> Any:
    """Bytes of the logits of a micro-batch while the loss is computed, and of the inputs of norm and head.

    The logits in 2 bytes, and in 4 for the loss, whose gradient takes their place.
    """
    m, tokens = g.model, layout.tokens(g)
    rows = architecture.padded_vocab(m, g.tp) / g.tp
    batches = where(g.schedule.keeps_all > 0, layout.micro_batches(g), 1)
    return batches * tokens * (g.runtime.logit_bytes * rows + 4 * _replicated(g) * m.hidden)


def embedding_mask(g: Given) -> Any:
    """Bytes of the dropout mask after the embedding, for one micro-batch."""
    return layout.tokens(g) * g.model.dropout * _replicated(g) * g.model.hidden


def working_set(g: Given) -> Any:
    """Bytes of one layer's backward pass: gradients of its residual and inside its MLP, and its gathered input."""
    m = g.model
    inside = where(m.moe_layers > 0, _expert_tokens(g) * m.expert_ffn + m.shared_ffn, 0)
    wide = maximum(where(m.layers > m.moe_layers, m.ffn, 0), inside)
    gathered = yes(g.sequence_parallel) * 2 * m.hidden
    return layout.tokens(g) * (4 * _replicated(g) * m.hidden + gathered + 2 * (2 + m.gated) * wide / g.tp)


def exchanged(g: Given) -> Any:
    """Bytes of what is under way: an activation and a gradient between stages, keys and values between CP ranks."""
    m, tokens = g.model, layout.tokens(g)
    boundary = 2 * yes(g.pp > 1) * 2 * _replicated(g) * m.hidden
    keys = 2 * yes(g.cp > 1) * 4 * maximum(m.kv_heads / g.tp, 1) * m.head_dim
    return tokens * (boundary + keys)


def activation_bytes(g: Given, index: Any = 0) -> Any:
    """Bytes of the layers' activations in flight on a stage (Korthikanti Fig. 1 counts these alone)."""
    s = state.stage(g, index)
    return in_flight(g, index) * (s.dense * dense_layer(g).kept + s.moe * moe_layer(g).kept)
