"""What one rank keeps: parameters by how each is divided, and the persistent bytes of training them.

Counts are plain numbers of parameters. The pipeline stage is given by its index, 0 to PP - 1 or LAST. Layers before the
mixture of experts come first in the model (DeepSeek-V3), so leading stages may hold dense layers only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import maximum, minimum, where
from dse.spaces.catalog import architecture

from . import layout
from .layout import Given, yes

__all__ = [
    "LAST", "ZERO", "Held", "Place", "Stage", "State", "held", "host_bytes", "kept_bytes", "largest_unit", "persistent",
    "place", "replicas", "stage", "state_bytes", "vocabulary_rows",
]  # fmt: skip


LAST = -1
"""The index of the last stage, however many there are."""

ZERO = {0: (16, 0), 1: (4, 12), 2: (2, 14), 3: (0, 16)}
"""Bytes kept whole and bytes divided, for each parameter, by ZeRO stage, as the paper counts them: fp16 weights 2 and
gradients 2, fp32 master weights and two moments 12 (Rajbhandari 1910.02054 section 5). Frameworks keep more."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stage stands in the pipeline: whether it is the first, whether the last, and its index."""

    first: Any
    last: Any
    index: Any


def place(g: Given, index: Any) -> Place:
    """The place of stage ``index``, 0 to PP - 1, or -1 for the last."""
    if isinstance(index, int) and index == LAST:
        return Place(g.pp < 2, True, g.pp - 1)
    return Place(index < 1, index > g.pp - 2, index)


@dataclass(frozen=True, slots=True)
class Stage:
    """Layers of one pipeline stage's rank; ``embedding``, ``head`` and ``loss`` are 0 or 1.

    ``head`` says whether the rank keeps a matrix for the logits beside the embedding; with tied embeddings it
    does so only where it has no embedding. With DualPipe a rank serves two stages, from both ends.
    """

    dense: Any
    moe: Any
    embedding: Any
    head: Any
    loss: Any


@dataclass(frozen=True, slots=True)
class Held:
    """Parameters of one rank: ``dense`` share their state over DP x CP, ``experts`` over expert data parallelism."""

    split: Any
    kv: Any
    whole: Any
    vocabulary: Any
    experts: Any

    @property
    def dense(self) -> Any:
        """All but the routed experts."""
        return self.split + self.kv + self.whole + self.vocabulary

    @property
    def total(self) -> Any:
        """All parameters of the rank."""
        return self.dense + self.experts


@dataclass(frozen=True, slots=True)
class State:
    """Bytes that last from step to step on one rank."""

    weights: Any
    gradients: Any
    optimizer_state: Any


def _one(g: Given, at: Place) -> tuple[Any, Any]:
    """Dense and MoE layers of one stage."""
    m = g.model
    first, last = layout.first_layers(g), layout.last_layers(g)
    count = where(at.first, first, where(at.last, last, layout.middle_layers(g)))
    inner = first + (at.index - 1) * layout.middle_layers(g)
    before = where(at.first, 0, where(at.last, m.layers - last, inner))
    dense = minimum(maximum(m.layers - m.moe_layers - before, 0), count)
    return dense, count - dense


def stage(g: Given, index: Any) -> Stage:
    """What the rank of a stage works on."""
    at = place(g, index)
    dense, moe = _one(g, at)
    other_dense, other_moe = _one(g, Place(at.last, at.first, g.pp - 1 - at.index))
    two = g.schedule.dual
    ends = two * yes(at.first | at.last)
    embedding = maximum(yes(at.first), ends)
    loss = maximum(yes(at.last), ends)
    return Stage(
        dense=dense + two * other_dense,
        moe=moe + two * other_moe,
        embedding=embedding,
        head=loss * (1 - g.model.tied * embedding),
        loss=loss,
    )


def vocabulary_rows(g: Given) -> Any:
    """Rows of the embedding on one tensor parallel rank, with padding (Megatron)."""
    return architecture.padded_vocab(g.model, g.tp) / g.tp


def _latent(m: Any) -> Any:
    """Down projections of MLA, which every tensor parallel rank holds whole (Megatron)."""
    return m.mla * m.hidden * (m.q_lora + m.kv_lora + m.rope_dim)


def _kv(m: Any) -> Any:
    """Key and value projections of one layer with their biases; those of MLA are split as the queries are."""
    return (1 - m.mla) * 2 * m.kv_heads * m.head_dim * (m.hidden + m.qkv_bias)


def _split_biases(m: Any) -> Any:
    """Parts of a layer's vectors that belong to query heads and are split with them."""
    return m.heads * (m.qkv_bias * m.head_dim + m.sinks)


def _whole_vectors(m: Any) -> Any:
    """Norms and biases of one layer that every tensor parallel rank holds whole."""
    kv_bias = m.qkv_bias * 2 * m.kv_heads * m.head_dim
    return architecture.vector_parameters(m) - _split_biases(m) - kv_bias


def _layer_split(m: Any) -> Any:
    """Parameters of one layer's attention that tensor parallelism divides evenly."""
    kv_matrices = (1 - m.mla) * 2 * m.kv_heads * m.head_dim * m.hidden
    return architecture.attention_parameters(m) - kv_matrices - _latent(m) + _split_biases(m)


def _mlp_split(m: Any) -> Any:
    return architecture.mlp_parameters(m) - m.mlp_bias * m.hidden


def _shared_split(m: Any) -> Any:
    return architecture.shared_parameters(m) - m.shared_gate * m.hidden


def _router(m: Any) -> Any:
    """Router and gate of the shared experts, whole on every rank."""
    return architecture.router_parameters(m) + m.shared_gate * m.hidden


def _edge_vectors(m: Any) -> Any:
    """Learned positions and the norm after the embedding, whole on every rank."""
    return architecture.embedding_parameters(m) - m.vocab * m.hidden


def _experts_of_layer(g: Given) -> Any:
    """Parameters of the routed experts of one MoE layer on one rank: E / EP experts, their matrices over ETP."""
    m = g.model
    bias = m.expert_bias * m.hidden
    one = (architecture.expert_parameters(m) - bias) / layout.expert_tp(g) + bias
    return where(m.experts > 0, m.experts / g.ep * one, 0)


def held(g: Given, index: Any) -> Held:
    """Parameters on one rank of a stage."""
    m, s = g.model, stage(g, index)
    layers = s.dense + s.moe
    split = layers * _layer_split(m) + s.dense * _mlp_split(m) + s.moe * _shared_split(m)
    whole = layers * (_whole_vectors(m) + _latent(m)) + s.dense * m.mlp_bias * m.hidden + s.moe * _router(m)
    edges = s.embedding * _edge_vectors(m) + s.loss * architecture.final_norm_parameters(m)
    return Held(
        split=split / g.tp,
        kv=layers * _kv(m) / minimum(g.tp, m.kv_heads),
        whole=whole + edges,
        vocabulary=(s.embedding + s.head) * vocabulary_rows(g) * m.hidden,
        experts=s.moe * _experts_of_layer(g),
    )


def replicas(g: Given) -> dict[str, Any]:
    """Parameters held more than once, or for padding, by reason.

    Summed over the TP x PP ranks of one copy of the dense parameters and the PP x EP x ETP ranks of one copy
    of the experts. What the ranks hold, less these, is the model.
    """
    m, extra = g.model, g.tp - 1
    tied_copy = m.tied * yes(g.pp > 1) * (1 - g.schedule.dual)
    vectors = m.layers * _whole_vectors(m) + (m.layers - m.moe_layers) * m.mlp_bias * m.hidden
    vectors = vectors + _edge_vectors(m) + architecture.final_norm_parameters(m)
    expert_biases = m.moe_layers * m.experts * m.expert_bias * m.hidden * (layout.expert_tp(g) - 1)
    once = {
        "norms_and_biases": extra * vectors + expert_biases,
        "router": extra * m.moe_layers * _router(m),
        "latent_projections": extra * m.layers * _latent(m),
        "kv_heads": m.layers * _kv(m) * maximum(g.tp / m.kv_heads - 1, 0),
        "tied_embedding": tied_copy * m.vocab * m.hidden,
        "padding": (2 - m.tied + tied_copy) * (architecture.padded_vocab(m, g.tp) - m.vocab) * m.hidden,
    }
    twice: Any = architecture.parameters(m)
    for count in once.values():
        twice = twice + count
    return {**once, "dualpipe_copy": g.schedule.dual * twice}


def kept_bytes(parameters: Any, ranks: Any, resident: Any, sharded: Any) -> Any:
    """Bytes of training ``parameters``: ``resident`` for each on every rank, ``sharded`` divided over ``ranks``."""
    return parameters * (resident + sharded / ranks)


def _shared(g: Given, own: Held, resident: Any, sharded: Any) -> Any:
    dense = kept_bytes(own.dense, layout.shard_ranks(g), resident, sharded)
    return dense + kept_bytes(own.experts, layout.expert_shard_ranks(g), resident, sharded)


def persistent(g: Given, index: Any) -> State:
    """Weights, gradients and optimizer state of a rank, by the bytes per parameter of the plan's sharding.

    ZeRO stage 1 divides the optimizer state, 2 the gradients as well, 3 the weights (Rajbhandari 1910.02054
    section 5); the bytes are the framework's (Megatron 18, DeepSpeed 20). 8-bit formats change none of them: a
    weight and its transpose take as much as one in bf16 (Megatron with --fp8-param-gather).
    """
    s, own = g.sharding, held(g, index)
    one, two = yes(s.stage >= 1), yes(s.stage >= 2)
    optimizer_whole, optimizer_shard = s.optimizer * (1 - one), s.optimizer * one
    gradient_whole, gradient_shard = s.gradient * (1 - two), s.gradient * two
    return State(
        weights=_shared(
            g,
            own,
            s.resident - optimizer_whole - gradient_whole,
            s.sharded - optimizer_shard - gradient_shard,
        ),
        gradients=_shared(g, own, gradient_whole, gradient_shard),
        optimizer_state=(1 - g.optimizer.offload) * _shared(g, own, optimizer_whole, optimizer_shard),
    )


def state_bytes(g: Given, index: Any = 0) -> Any:
    """Bytes that last from step to step on one rank of a stage: resident + sharded / N per parameter."""
    s, own = g.sharding, held(g, index)
    away = g.optimizer.offload * s.optimizer
    one = yes(s.stage >= 1)
    return _shared(g, own, s.resident - away * (1 - one), s.sharded - away * one)


def host_bytes(g: Given, index: Any = 0) -> Any:
    """Bytes of optimizer state that a rank keeps in the host's memory when the plan offloads it."""
    s = g.sharding
    one = yes(s.stage >= 1)
    return g.optimizer.offload * _shared(g, held(g, index), s.optimizer * (1 - one), s.optimizer * one)


def largest_unit(g: Given, index: Any) -> Any:
    """Parameters of the largest unit that sharded weights are gathered by: a layer, the embedding or the head."""
    m, s = g.model, stage(g, index)
    attention = _layer_split(m) / g.tp + _kv(m) / minimum(g.tp, m.kv_heads) + _whole_vectors(m) + _latent(m)
    dense = yes(s.dense > 0) * (attention + _mlp_split(m) / g.tp)
    moe = yes(s.moe > 0) * (attention + _shared_split(m) / g.tp + _router(m) + _experts_of_layer(g))
    vocabulary = maximum(s.embedding, s.head) * vocabulary_rows(g) * m.hidden
    return maximum(dense, moe, vocabulary)
