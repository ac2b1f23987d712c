"""Where a plan puts things: ranks, micro-batches, and the layers of each pipeline stage.

Every function takes the namespace of what is given (inputs, model, hardware and one plan) and works on traced
symbols, numbers and NumPy arrays alike.
"""

from __future__ import annotations

from typing import Any

from dse.expressions.tracer import ceil, maximum, minimum, where

__all__ = [
    "Given",
    "alike",
    "dp",
    "expert_load",
    "expert_shard_ranks",
    "expert_tp",
    "first_layers",
    "last_layers",
    "micro_batches",
    "middle_layers",
    "model_ranks",
    "shard_ranks",
    "stage_units",
    "tokens",
    "yes",
]

Given = Any
"""What a formula is given: attributes named after the space's inputs and dimensions."""


def yes(flag: Any) -> Any:
    """1 where the flag holds, else 0."""
    return where(flag, 1.0, 0.0)


def model_ranks(g: Given) -> Any:
    """GPUs that hold one copy of the model: TP x PP x CP."""
    return g.tp * g.pp * g.cp


def dp(g: Given) -> Any:
    """Data parallel size: n_gpus = TP x PP x CP x DP; EP does not multiply it (Megatron parallel state)."""
    return g.n_gpus / model_ranks(g)


def micro_batches(g: Given) -> Any:
    """Micro-batches m of one step on each data parallel rank."""
    return g.global_batch / (dp(g) * g.micro_batch)


def tokens(g: Given) -> Any:
    """Tokens of one micro-batch on one context parallel rank."""
    return g.micro_batch * (g.seq_len / g.cp)


def shard_ranks(g: Given) -> Any:
    """Ranks N over which sharded state of the dense parameters is divided: DP x CP, or the group of HSDP."""
    every = g.n_gpus / (g.tp * g.pp)
    return where(g.shard_group > 0, minimum(maximum(g.shard_group, 1), every), every)


def expert_tp(g: Given) -> Any:
    """Tensor parallel size of the experts: TP or 1."""
    return where(g.expert_tp, g.tp, 1)


def expert_load(g: Given) -> Any:
    """Tokens of the fullest rank's experts over the mean: the imbalance, or the capacity that each is padded to.

    What is beyond the capacity is dropped (GShard 2006.16668; Megatron with --moe-pad-expert-input-to-capacity).
    """
    return where(g.dispatch.dropless > 0, g.expert_imbalance, g.capacity_factor)


def alike(g: Given) -> Any:
    """Weights of a layer's KV heads that all tensor parallel ranks together multiply with beyond the model's own: ranks
    beyond the KV heads hold replicas of them. The heads of MLA are split as the queries are.
    """
    m = g.model
    return (1.0 - m.mla) * 2.0 * m.hidden * m.head_dim * maximum(g.tp - m.kv_heads, 0.0)


def expert_shard_ranks(g: Given) -> Any:
    """Ranks over which expert gradients and states are divided: EDP = n_gpus / (PP x EP x ETP)."""
    return g.n_gpus / (g.pp * g.ep * expert_tp(g))


def stage_units(g: Given) -> Any:
    """Layers of a full stage, where the embedding and the loss may count as one layer each (Megatron)."""
    return ceil((g.model.layers + g.edges.embedding + g.edges.loss) / g.pp)


def middle_layers(g: Given) -> Any:
    """Transformer layers of a stage between the first and the last."""
    return minimum(stage_units(g), g.model.layers)


def first_layers(g: Given) -> Any:
    """Transformer layers of the first stage."""
    return minimum(stage_units(g) - g.edges.embedding, g.model.layers)


def last_layers(g: Given) -> Any:
    """Transformer layers of the last stage."""
    return minimum(stage_units(g) - g.edges.loss, g.model.layers)
