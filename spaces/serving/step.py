"""One pass of a transformer over new tokens: a prefill, a chunk of one, or a decode step.

Work is that of one rank; ranks of one instance do the same at the same time. With pipeline stages the batch
is cut into as many micro-batches, each of which passes all stages: a pass takes all layers' time for one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import ceil, log2, maximum, minimum, quantity, where
from dse.spaces.catalog import architecture

from .kernels import ACTIVATION_BYTES, Given, Work, attention, elementwise, matmul, one, seconds_zero

__all__ = ["Pass", "forward_pass", "head_bits"]

NORM_VALUES = 10.0
"""Values of width h that two norms (2 each) and two residual additions (3 each) read and write for each token."""
LAYER_KERNELS = 4.0
"""Launches of a layer beside its matrix multiplications and attention: norms, rotation with cache write, activation."""
EXPERT_LAUNCHES = 0.12
COLLECTIVE_LAUNCHES = 0.2
UNPACKING_LAUNCHES = 0.3
"""Launches over those of a dense layer, about 25: of one expert where an engine loops over all of them (its matrices), of two
collectives, and of kernels that unpack the matrices of a layer. Rounded to what runs of Transformers and LitGPT say.
"""


@dataclass(frozen=True, slots=True)
class Pass:
    """Seconds of one pass by kind, and the work in it.

    ``linear`` the projections and MLPs, ``experts`` routed experts, ``attention`` cores, ``elementwise`` norms, activation
    and residuals, ``head`` logits and sampling, ``communication`` between ranks, ``waiting`` for launches of the host
    that kernels do not hide, ``bubble`` of stages for the last one, which has the head besides its layers, ``overhead`` of the
    engine for each step.
    """

    linear: Any
    experts: Any
    attention: Any
    elementwise: Any
    head: Any
    communication: Any
    waiting: Any
    bubble: Any
    overhead: Any
    work: Work

    @property
    def seconds(self) -> Any:
        """The whole pass."""
        return (
            self.linear + self.experts + self.attention + self.elementwise + self.head + self.communication
            + self.waiting + self.bubble + self.overhead
        )  # fmt: skip


def forward_pass(g: Given, sequences: Any, queries: Any, past: Any, micro_batches: Any = 1.0) -> Pass:
    """A pass over ``queries`` new tokens of each of ``sequences`` sequences that have ``past`` tokens in the cache.

    ``sequences`` are those of one micro-batch on one attention rank, and ``micro_batches`` are under way in as many stages: each
    moves on when the slowest is done. Only the last token of each gets logits, unless
    there are few (speculation verifies all of them).
    """
    m = g.model
    rows = sequences * queries
    linear = _projections(g, rows) + _dense_mlp(g, rows)
    experts = _experts(g, rows)
    core = _cores(g, sequences, queries, past)
    small = elementwise(g, rows * (NORM_VALUES * m.hidden + 3.0 * m.ffn / g.tp), LAYER_KERNELS).times(
        m.layers
    )
    head = _head(g, where(queries > 16.0, sequences, rows))
    communication = _communication(g, rows)
    work = linear + experts + core + small + head
    host = _launches(g)
    waiting = maximum(host - work.seconds - communication, seconds_zero(g))
    return Pass(
        linear.seconds,
        experts.seconds,
        core.seconds,
        small.seconds,
        head.seconds,
        communication,
        waiting,
        (micro_batches - 1.0) * head.seconds,
        g.engine.overhead + seconds_zero(g),
        work,
    )


def _launches(g: Given) -> Any:
    """Seconds in which the host launches the kernels of a pass one by one; a captured graph takes none of them. Collectives
    and separate kernels that unpack weights are launched too.
    """
    more = where(g.tp > 1.0, COLLECTIVE_LAUNCHES, 0.0) + UNPACKING_LAUNCHES * g.weights.unpacking
    captured = where(g.graphs, g.engine.captures, 0.0)
    looped = g.engine.loops * g.model.moe_layers * g.model.experts * EXPERT_LAUNCHES
    return (g.model.layers * (1.0 + more) + looped) * g.engine.launch * (1.0 - captured)


def head_bits(g: Given) -> Any:
    """Bits of a stored weight of the output projection: formats that are no mean over all tensors leave it in 16."""
    w = g.weights
    return where(w.whole > 0, w.bits_per_weight, maximum(w.bits_per_weight, 16.0))


def _projections(g: Given, rows: Any) -> Work:
    """Queries, keys and values, and the output, of all layers; KV heads fewer than ranks are copied."""
    m = g.model
    whole = architecture.attention_parameters(m)
    copied = where(m.mla > 0, 0.0, 2.0 * m.hidden * m.head_dim * (maximum(m.kv_heads, g.tp) - m.kv_heads))
    values = rows * (2.0 * m.hidden + 2.0 * m.heads * architecture.query_dim(m) / g.tp)
    one = matmul(g, rows, (whole + copied) / g.tp, values, bits=g.weights.bits_per_weight, kernels=2.0)
    return one.times(m.layers)


def _dense_mlp(g: Given, rows: Any) -> Work:
    """The MLPs of dense layers and the shared experts of the others."""
    m = g.model

    def mlp(matrices: Any, width: Any) -> Work:
        values = rows * (2.0 * m.hidden + (2.0 + m.gated) * width / g.tp)
        return matmul(g, rows, matrices / g.tp, values, bits=g.weights.bits_per_weight, kernels=2.0)

    dense = mlp(architecture.mlp_parameters(m), m.ffn).times(m.layers - m.moe_layers)
    shared = mlp(architecture.shared_parameters(m), m.shared_ffn)
    return dense + shared.times(where(m.shared_ffn > 0, m.moe_layers, 0.0))


def _experts(g: Given, rows: Any) -> Work:
    """Routed experts: a rank reads those that any token of the instance chose, E (1 - (1 - k/E)^tokens) of all
    (uniform routing), and multiplies each with its tokens. With EP a rank has whole ones, and the fullest
    ``expert_imbalance`` times the mean of tokens.
    """
    m = g.model
    experts = maximum(m.experts, 1.0)
    tokens = rows * g.attention_dp
    ranks = g.tp * g.attention_dp
    chosen = maximum(1.0 - (1.0 - minimum(m.top_k / experts, 0.999)) ** tokens, 1e-9)
    pairs = tokens * m.top_k / ranks * where(g.ep > 1.0, g.expert_imbalance, 1.0)
    mean = chosen * m.experts / ranks
    held = where(g.ep > 1.0, ceil(chosen * m.experts / g.ep) * g.ep / ranks, mean)
    distinct = where(tokens < g.engine.grouped_from, maximum(pairs, held), held)
    read = distinct * architecture.expert_parameters(m)
    rows_each = maximum(pairs / maximum(distinct, 1e-9), 1.0)
    values = pairs * (2.0 * m.hidden + (2.0 + m.gated) * m.expert_ffn)
    one = matmul(g, rows_each, read, values, bits=g.weights.bits_per_weight, kernels=16.0)
    routed = where(m.experts > 0, m.moe_layers, 0.0)
    return one.times(routed)


def _cores(g: Given, sequences: Any, queries: Any, past: Any) -> Work:
    """Attention of all layers; in a window, older keys are neither kept nor read.

    Of the new tokens, the first ``near`` see all keys before them, and the others a window of them.
    """
    m = g.model
    whole = attention(g, sequences, queries, past + (queries + 1.0) / 2.0, past + queries)
    window = where(m.window > 0, m.window, 1e9)
    near = minimum(maximum(window - past, 0.0), queries)
    keys = (near * (past + (near + 1.0) / 2.0) + (queries - near) * window) / queries
    kept = attention(g, sequences, queries, keys, minimum(past + queries, window + queries))
    return whole.times(m.layers - m.window_layers) + kept.times(m.window_layers)


def _head(g: Given, rows: Any) -> Work:
    """Logits of ``rows`` tokens, and picking one of each: the logits are written in 32 bits and read twice."""
    m = g.model
    matrix = m.hidden * m.vocab / g.tp
    logits = rows * m.vocab / g.tp
    values = rows * m.hidden + logits
    return matmul(g, rows, matrix, values, bits=head_bits(g)) + elementwise(g, 6.0 * logits, 3.0)


def _communication(g: Given, rows: Any) -> Any:
    """Seconds that ranks exchange activations: two all-reduces a layer for TP, for each layer of experts what
    :func:`_exchanged` says, and one send at each stage boundary.
    """
    m, e = g.model, g.efficiency
    size = quantity(rows * m.hidden * ACTIVATION_BYTES, "B")
    link, nic = _wires(g)
    share = 2.0 * (g.tp - 1.0) / g.tp
    reduced = (
        2.0
        * m.layers
        * where(g.tp > 1.0, share * size / link + e.link_latency * _hops(g.tp), seconds_zero(g))
    )
    wire = where(g.tp * g.attention_dp * g.pp > maximum(g.hardware.node, 1.0), nic, link)
    handed = (g.pp - 1.0) * (size / wire + e.link_latency)
    return reduced + _exchanged(g, size) + where(g.pp > 1.0, handed, seconds_zero(g))


def _wires(g: Given) -> tuple[Any, Any]:
    """Bandwidth of the links in a node and of a GPU's network card, as far as messages reach it."""
    least, share = quantity(one(g), "B/s"), g.efficiency.link
    return maximum(g.hardware.link * share, least), maximum(g.hardware.nic * share, least)


def _exchanged(g: Given, size: Any) -> Any:
    """Seconds in which tokens (``size`` B on a rank) reach their experts and return, where ranks have tokens of their own.

    With EP each token is sent to the ranks of its ``top_k`` experts; to other nodes no more than ``group_limit`` times, once for each that
    its router may choose (DeepSeek-V3, 2412.19437, section 3.2). Without, every rank has a part of all experts, gathers
    the tokens of all others and gives back its sums.
    """
    m = g.model
    link, nic = _wires(g)
    ranks = where(g.ep > 1.0, g.ep, g.attention_dp)
    outside = maximum(1.0 - maximum(g.hardware.node, 1.0) / (g.tp * g.attention_dp), 0.0)
    inside = (ranks - 1.0) / ranks - outside
    far = where(m.group_limit > 0, minimum(m.group_limit, m.top_k), m.top_k)
    copies, remote = minimum(where(g.ep > 1.0, m.top_k, ranks), ranks), where(g.ep > 1.0, far, ranks)
    across = where(outside > 0.0, remote * outside * size / nic, seconds_zero(g))
    once = copies * inside * size / link + across + g.efficiency.link_latency * _hops(ranks)
    apart = (g.attention_dp > 1.0) & (m.experts > 0)
    return 2.0 * m.moe_layers * where(apart, once, seconds_zero(g))


def _hops(ranks: Any) -> Any:
    """Latency of a collective over that between two ranks: nearly constant within a node."""
    return 0.8 + 0.2 * log2(ranks)
