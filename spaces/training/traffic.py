"""Seconds of communication of a plan: what tensor, context, expert and data parallelism send, and the pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import maximum, minimum, where
from dse.spaces.catalog import architecture

from . import layout, state
from .communication import (
    all_gather,
    all_reduce,
    all_to_all,
    group,
    node_size,
    on_one_node,
    placed,
    ring_latency,
    send,
)
from .layout import Given, yes

__all__ = [
    "Data",
    "boundary",
    "context_parallel",
    "data_parallel",
    "expert_parallel",
    "most_held",
    "tensor_parallel",
]


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


def _together(g: Given) -> Any:
    """How many of the DP x CP ranks that hold the same dense parameters share a node."""
    return on_one_node(g, g.cp, context_apart(g)) * on_one_node(g, layout.dp(g), data_apart(g))


def most_held(g: Given) -> tuple[Any, Any]:
    """Dense parameters, and those of experts, of the stage that holds most: the first, the last, or one between."""
    first, second, last = state.held(g, 0), state.held(g, 1), state.held(g, state.LAST)
    return maximum(first.dense, second.dense, last.dense), maximum(
        first.experts, second.experts, last.experts
    )


def tensor_parallel(g: Given) -> Any:
    """Seconds of one forward pass of a layer: two all-reduces of tokens x h activations (Shoeybi 1909.08053
    section 3), or two all-gathers and two reduce-scatters with sequence parallelism (Korthikanti 4.2.2).

    Half of it is the MLP's. Routed experts have traffic of their own: only shared ones take part, and experts without
    sequence parallelism.
    """
    m, to, size = g.model, group(g, g.tp, 1.0), 2.0 * layout.tokens(g) * g.model.hidden
    absent = yes(g.sequence_parallel) * yes(m.shared_ffn < 1) * m.moe_layers / m.layers
    return (1.0 - 0.5 * absent) * where(
        g.sequence_parallel, 4.0 * all_gather(to, size), 2.0 * all_reduce(to, size)
    )


def context_parallel(g: Given) -> Any:
    """Seconds of one forward pass of a layer: keys and values around a ring (Liu 2310.01889), or the
    all-to-alls of queries, keys, values and outputs (Ulysses, 2309.14509).
    """
    m, to = g.model, group(g, g.cp, context_apart(g))
    token = 2.0 * g.micro_batch * g.seq_len * (architecture.query_dim(m) + architecture.value_dim(m))
    keys = maximum(m.kv_heads / g.tp, 1.0)
    heads = m.heads / g.tp + keys
    return where(g.cp_kind.ulysses > 0, all_to_all(to, heads * token / g.cp), all_gather(to, keys * token))


def expert_parallel(g: Given) -> Any:
    """Seconds of one forward pass, averaged over layers: dispatch and combine of tokens x top_k x h in 2 bytes.

    Each rank sends the tokens that are its own with sequence parallelism; expert TP then gathers those of its ranks.
    Where routing is limited to some groups of experts, a token is sent to so many nodes (DeepSeek-V3, 2412.19437,
    section 3.2.2).
    """
    m, etp = g.model, layout.expert_tp(g)
    size = 2.0 * layout.tokens(g) / g.tp * m.top_k * layout.expert_load(g) * m.hidden
    sent = where(m.group_limit > 0, minimum(m.group_limit / maximum(m.top_k, 1.0), 1.0), 1.0)
    gathered = yes(g.sequence_parallel) * all_gather(group(g, etp, 1.0), size * etp)
    here = minimum(node_size(g), _together(g) * g.tp)  # ranks of one stage on a node
    to = placed(g, g.ep, minimum(maximum(here / etp, 1.0), g.ep), g.ep * etp)
    return 2.0 * m.moe_layers / m.layers * (all_to_all(to, size, sent) + gathered)


def boundary(g: Given) -> Any:
    """Seconds to hand one micro-batch to the next stage: s b h in 2 bytes, divided over TP (Narayanan 4.1)."""
    return send(g, 2.0 * layout.tokens(g) * g.model.hidden / g.tp, stages_apart(g))


def data_parallel(g: Given, layers: Any) -> Data:
    """Seconds of the gradients and weights of the stage with most parameters; ``layers`` are on it.

    Bytes per parameter and number of collectives are those of the sharding: ``once`` a step, ``each`` micro-batch.
    Shards of a group smaller than all ranks are reduced across groups as well (HSDP).
    """
    s = g.sharding
    dense, experts = most_held(g)
    ranks, every = layout.shard_ranks(g), g.n_gpus / (g.tp * g.pp)
    between, around = context_apart(g), data_apart(g)
    reach, together = maximum(g.cp * between, layout.dp(g) * around), _together(g)
    near = placed(
        g, ranks, minimum(together, ranks), where(ranks < every, minimum(between, around) * ranks, reach)
    )
    far = placed(g, every / ranks, maximum(together / ranks, 1.0), reach)
    # the ranks that share experts stand apart by those between which the experts are divided
    expert_ranks = layout.expert_shard_ranks(g)
    alone = minimum(maximum(together * expert_ranks / every, 1.0), expert_ranks)
    spread = placed(g, expert_ranks, alone, reach)
    own = yes(g.model.moe_layers > 0)
    once = (
        yes(s.once > 0) * all_gather(near, s.once * dense)
        + s.once_calls * layers * ring_latency(near)
        + all_reduce(far, s.replica * dense / ranks)
        + own * yes(s.once > 0) * all_gather(spread, s.once * experts)
    )
    gathered = all_gather(near, s.each * dense) + own * all_gather(spread, s.each * experts)
    return Data(once, yes(s.each > 0) * gathered + s.each_calls * layers * ring_latency(near))
