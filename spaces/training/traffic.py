"""Seconds of communication of a plan: what tensor, context, expert and data parallelism send, and the pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import maximum, minimum, where

from . import layout, state
from .communication import all_gather, all_reduce, all_to_all, group, ring_latency, send
from .layout import Given, yes

__all__ = ["Data", "boundary", "context_parallel", "data_parallel", "expert_parallel", "tensor_parallel"]


@dataclass(frozen=True, slots=True)
class Data:
    """Seconds of gradients and weights of one rank: ``once`` a step, and ``each`` micro-batch."""

    once: Any
    each: Any


def context_apart(g: Given) -> Any:
    """How many GPUs apart the neighbours of a context parallel group stand, by the plan's placement."""
    o = g.placement
    return g.tp * where(o.dp_before_cp > 0, layout.dp(g), 1.0) * where(o.pp_before_cp > 0, g.pp, 1.0)


def data_apart(g: Given) -> Any:
    """How many GPUs apart the neighbours of a data parallel group stand."""
    o = g.placement
    return g.tp * where(o.dp_before_cp > 0, 1.0, g.cp) * where(o.pp_before_dp > 0, g.pp, 1.0)


def stages_apart(g: Given) -> Any:
    """How many GPUs apart two neighbouring pipeline stages stand."""
    o = g.placement
    return g.tp * where(o.pp_before_cp > 0, 1.0, g.cp) * where(o.pp_before_dp > 0, 1.0, layout.dp(g))


def tensor_parallel(g: Given) -> Any:
    """Seconds of one forward pass of a layer: two all-reduces of tokens x h activations (Shoeybi 1909.08053
    section 3), or two all-gathers and two reduce-scatters with sequence parallelism (Korthikanti 4.2.2).
    """
    to, size = group(g, g.tp, 1.0), 2.0 * layout.tokens(g) * g.model.hidden
    return where(g.sequence_parallel, 4.0 * all_gather(to, size), 2.0 * all_reduce(to, size))


def context_parallel(g: Given) -> Any:
    """Seconds of one forward pass of a layer: keys and values around a ring (Liu 2310.01889), or the
    all-to-alls of queries, keys, values and outputs (Ulysses, 2309.14509).
    """
    m, to = g.model, group(g, g.cp, context_apart(g))
    token = 2.0 * g.micro_batch * g.seq_len * m.head_dim
    keys = 2.0 * maximum(m.kv_heads / g.tp, 1.0)
    heads = 2.0 * m.heads / g.tp + keys
    return where(g.cp_kind.ulysses > 0, all_to_all(to, heads * token / g.cp), all_gather(to, keys * token))


def expert_parallel(g: Given) -> Any:
    """Seconds of one forward pass, averaged over layers: dispatch and combine of tokens x top_k x h in 2 bytes."""
    m, to = g.model, group(g, g.ep, layout.expert_tp(g))
    copies = layout.tokens(g) / g.tp * layout.expert_tp(g) * m.top_k * g.expert_imbalance
    return 2.0 * m.moe_layers / m.layers * all_to_all(to, 2.0 * copies * m.hidden)


def boundary(g: Given) -> Any:
    """Seconds to hand one micro-batch to the next stage: s b h in 2 bytes, divided over TP (Narayanan 4.1)."""
    return send(g, 2.0 * layout.tokens(g) * g.model.hidden / g.tp, stages_apart(g))


def data_parallel(g: Given, layers: Any) -> Data:
    """Seconds of the gradients and weights of the stage with most parameters; ``layers`` are on it.

    Bytes per parameter and number of collectives are those of the sharding: ``once`` a step, ``each`` micro-batch.
    Shards of a group smaller than all ranks are reduced across groups as well (HSDP).
    """
    s = g.sharding
    first, last = state.held(g, 0), state.held(g, state.LAST)
    dense, experts = maximum(first.dense, last.dense), maximum(first.experts, last.experts)
    ranks, every = layout.shard_ranks(g), g.n_gpus / (g.tp * g.pp)
    inner = minimum(context_apart(g), data_apart(g))
    near, far = group(g, ranks, inner), group(g, every / ranks, inner * ranks)
    expert_ranks = layout.expert_shard_ranks(g)
    spread = group(g, expert_ranks, maximum(every / expert_ranks, 1.0) * inner)
    own = yes(g.model.moe_layers > 0)
    once = (
        all_gather(near, s.once * dense)
        + s.once_calls * layers * ring_latency(near)
        + all_reduce(far, s.replica * dense / ranks)
        + own * all_gather(spread, s.once * experts)
    )
    gathered = all_gather(near, s.each * dense) + own * all_gather(spread, s.each * experts)
    return Data(once, yes(s.each > 0) * gathered + s.each_calls * layers * ring_latency(near))
