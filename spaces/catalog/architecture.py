"""Counts of a transformer's parameters, cached bytes and arithmetic, from the columns of ``models.csv``.

Every function takes a model ``m`` (a row of the catalogue, a traced input or any object with the same
attributes) and returns a plain count: values, bytes or operations, as a float, an array or a symbol alike.
Flags are numbers, 0 or 1. Weight matrices follow the table of Megatron's theoretical memory usage, which
for multi-head attention, ungated MLPs and tied embeddings is Narayanan 2021 (2104.04473) Eq. 2.
"""

from __future__ import annotations

from typing import Any

from dse.expressions.tracer import minimum, where

__all__ = [
    "active_parameters", "attention_flops", "attention_parameters", "attention_span", "embedding_parameters",
    "expert_flops", "expert_parameters", "final_norm_parameters", "forward_flops", "head_parameters",
    "kv_bytes_per_token", "kv_cache_bytes", "layer_flops", "mlp_flops", "mlp_parameters", "moe_flops",
    "norm_parameters", "padded_vocab", "parameters", "query_dim", "router_parameters", "shared_parameters",
    "value_dim", "vector_parameters",
]  # fmt: skip


def query_dim(m: Any) -> Any:
    """Width of one query and key head: with latent attention (MLA), its plain and its rotated part."""
    return where(m.mla > 0, m.nope_dim + m.rope_dim, m.head_dim)


def value_dim(m: Any) -> Any:
    """Width of one value head."""
    return where(m.mla > 0, m.value_dim, m.head_dim)


def attention_parameters(m: Any) -> Any:
    """Matrices of one layer's attention: h d (a + 2k) + a d h; biases are in :func:`vector_parameters`.

    MLA: queries through ``q_lora`` (or straight from the hidden state when it is 0), keys and values
    through ``kv_lora``, one rotated key shared by all heads, and the output projection
    (DeepSeek-V2, 2405.04434, section 2.1).
    """
    queries = m.heads * (m.nope_dim + m.rope_dim)
    latent = (
        where(m.q_lora > 0, m.q_lora * (m.hidden + queries), m.hidden * queries)
        + m.hidden * (m.kv_lora + m.rope_dim)
        + m.kv_lora * m.heads * (m.nope_dim + m.value_dim)
        + m.heads * m.value_dim * m.hidden
    )
    plain = m.hidden * m.head_dim * (2 * m.heads + 2 * m.kv_heads)
    return where(m.mla > 0, latent, plain)


def _mlp(m: Any, width: Any, bias: Any) -> Any:
    """An MLP of the given width: two matrices, three when gated, and one bias for each if it has them."""
    return (2 + m.gated) * m.hidden * width + bias * ((1 + m.gated) * width + m.hidden)


def mlp_parameters(m: Any) -> Any:
    """The MLP of one dense layer with its biases: g h f."""
    return _mlp(m, m.ffn, m.mlp_bias)


def expert_parameters(m: Any) -> Any:
    """One routed expert with its biases: g h f_e; 0 for a dense model."""
    return where(m.experts > 0, _mlp(m, m.expert_ffn, m.expert_bias), 0)


def shared_parameters(m: Any) -> Any:
    """The shared experts of one layer together, and the gate before them if there is one."""
    return _mlp(m, m.shared_ffn, 0) + m.shared_gate * m.hidden


def router_parameters(m: Any) -> Any:
    """The router of one layer: one row, and one bias if it has them, for each expert."""
    return m.experts * (m.hidden + m.router_bias)


def norm_parameters(m: Any) -> Any:
    """The norms of one layer that are as wide as the hidden state: weights, and biases of a LayerNorm."""
    return m.norms * m.hidden * (1 + m.layernorm)


def vector_parameters(m: Any) -> Any:
    """What one layer has beside matrices: norms, biases of the attention, and one sink per head.

    The biases of an MLP, an expert or a router are counted with it.
    """
    heads = m.heads + 2 * m.kv_heads
    return (
        norm_parameters(m)
        + m.qk_norm * 2 * m.head_dim
        + m.qkv_bias * heads * m.head_dim
        + m.out_bias * m.hidden
        + m.sinks * m.heads
        + m.mla * (m.q_lora + m.kv_lora)
    )


def embedding_parameters(m: Any, vocab: Any = None) -> Any:
    """Token embedding, learned positions and the norm after them.

    ``vocab`` replaces the model's own number of rows, for a padded one.
    """
    rows = m.vocab if vocab is None else vocab
    return (rows + m.positions) * m.hidden + m.embedding_norm * m.hidden * (1 + m.layernorm)


def head_parameters(m: Any, vocab: Any = None) -> Any:
    """The output projection; 0 when it is tied to the embedding."""
    rows = m.vocab if vocab is None else vocab
    return (1 - m.tied) * rows * m.hidden


def final_norm_parameters(m: Any) -> Any:
    """The norm before the output projection."""
    return m.hidden * (1 + m.layernorm)


def _with_experts(m: Any, experts: Any) -> Any:
    """All parameters but the token embedding and positions, with this many routed experts in a MoE layer."""
    mixture = experts * expert_parameters(m) + shared_parameters(m) + router_parameters(m)
    return (
        m.layers * (attention_parameters(m) + vector_parameters(m))
        + (m.layers - m.moe_layers) * mlp_parameters(m)
        + m.moe_layers * mixture
        + final_norm_parameters(m)
        + head_parameters(m)
    )


def parameters(m: Any) -> Any:
    """All parameters of the model; extra layers for predicting further tokens are not part of it."""
    return embedding_parameters(m) + _with_experts(m, m.experts)


def active_parameters(m: Any, embedding: Any = 1) -> Any:
    """The parameters that one token uses: ``top_k`` of the routed experts, and everything else.

    Two conventions are in use: with the token embedding (``embedding`` 1; Mixtral, Qwen3) or without the
    rows that are only looked up (0; GPT-OSS), which keeps a tied output projection.
    """
    looked_up = m.positions * m.hidden + (1 - m.tied) * m.vocab * m.hidden
    return embedding_parameters(m) + _with_experts(m, m.top_k) - (1 - embedding) * looked_up


def padded_vocab(m: Any, tp: Any = 1, multiple: Any = 128) -> Any:
    """Rows of the embedding that divide over ``tp`` ranks: ceil(V / (128 t)) 128 t (Megatron)."""
    unit = multiple * tp
    return (m.vocab + unit - 1) // unit * unit


def kv_bytes_per_token(m: Any, bytes_per_value: Any) -> Any:
    """Bytes that one more token adds to the cache of all layers while no window is full.

    2 L k d for keys and values of ``kv_heads`` heads; L (kv_lora + rope_dim) for MLA, whose heads share one
    latent (DeepSeek-V2, 2405.04434, Table 1).
    """
    return m.layers * _kv_values(m) * bytes_per_value


def kv_cache_bytes(m: Any, tokens: Any, bytes_per_value: Any) -> Any:
    """Bytes of the cache of one sequence; a windowed layer keeps at most its window."""
    kept = (m.layers - m.window_layers) * tokens + m.window_layers * minimum(tokens, m.window)
    return kept * _kv_values(m) * bytes_per_value


def _kv_values(m: Any) -> Any:
    """Values that one token has in the cache of one layer."""
    return where(m.mla > 0, m.kv_lora + m.rope_dim, 2 * m.kv_heads * m.head_dim)


def attention_span(seq_len: Any, window: Any, causal: Any, attention_share: Any = 1) -> Any:
    """Keys that a query is counted against, on average.

    Args:
        seq_len: tokens of a sequence.
        window: keys that a query may see; as many as ``seq_len`` for no window.
        causal: 0 counts every key of the window (PaLM appendix B, Korthikanti appendix A), 1 only those at
            or before the query, half of a whole sequence (Megatron).
        attention_share: for packed documents, the sum of their squared lengths over ``seq_len`` squared;
            the mean is then that of equal documents of ``seq_len * attention_share`` tokens.
    """
    length = seq_len * attention_share
    seen = minimum(length, window)
    return seen * (1 - causal * seen / (2 * length))


def attention_flops(m: Any, seq_len: Any, causal: Any = 1, attention_share: Any = 1) -> Any:
    """Operations per token of the attention cores of all layers (scores and weighted values).

    4 L s a d over whole sequences when ``causal`` is 0, half of that when it is 1. Of MLA, with the widths of
    its expanded heads.
    """
    whole = attention_span(seq_len, seq_len, causal, attention_share)
    windowed = attention_span(seq_len, m.window, causal, attention_share)
    keys = (m.layers - m.window_layers) * whole + m.window_layers * windowed
    return 2 * keys * m.heads * (query_dim(m) + value_dim(m))


def layer_flops(m: Any) -> Any:
    """Operations per token of the attention projections of one layer."""
    return 2 * attention_parameters(m)


def mlp_flops(m: Any) -> Any:
    """Operations per token of the MLP of one dense layer."""
    return 2 * _mlp(m, m.ffn, 0)


def expert_flops(m: Any) -> Any:
    """Operations per token of one routed expert."""
    return 2 * _mlp(m, m.expert_ffn, 0)


def moe_flops(m: Any) -> Any:
    """Operations per token of one MoE layer: ``top_k`` routed experts, the shared ones and the router."""
    shared = _mlp(m, m.shared_ffn, 0) + m.shared_gate * m.hidden
    return m.top_k * expert_flops(m) + 2 * shared + 2 * m.hidden * m.experts


def forward_flops(m: Any, seq_len: Any, causal: Any = 1, attention_share: Any = 1) -> Any:
    """Operations of a forward pass per token: 2 for each value of the matrices used, and the attention.

    The look-up in the embedding counts as nothing, the output projection as 2 h V. Korthikanti 2022
    (2205.05198) appendix A is the case of ``causal`` 0, multi-head attention and f = 4h.
    """
    return (
        m.layers * layer_flops(m)
        + (m.layers - m.moe_layers) * mlp_flops(m)
        + m.moe_layers * moe_flops(m)
        + attention_flops(m, seq_len, causal, attention_share)
        + 2 * m.hidden * m.vocab
    )
