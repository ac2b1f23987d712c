"""Seconds of computing: the kernels of one layer, the head with the loss, and the optimizer step.

A matrix multiplication takes FLOPs / (dense peak x share reached), and longer by 1 + half / size for each of its
dimensions: tile and wave quantisation, smoothed. Elementwise kernels are bound by memory. A pass through a layer
takes no less than the launches of its kernels. The shares, and the half, are fitted for each generation of GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import maximum, minimum, quantity, where
from dse.spaces.catalog import architecture

from .layout import Given, alike, expert_load, expert_tp, tokens, yes

__all__ = ["Head", "Layer", "half_rate", "head", "layer", "optimizer_step"]

UNFUSED_FORWARD, UNFUSED_BACKWARD = 12.0, 15.0
"""Bytes of memory traffic for each attention score without a fused kernel, counted operand by operand: the products write and
read it in 2, masked softmax and dropout with its mask read and write it in between, and the same for gradients."""

NORM_VALUES = 10.0
"""Values of width h that two norms (2 each) and two residual additions (3 each) read and write for each token, forward."""

ADAM_BYTES = 34.0
"""Bytes that Adam moves for each parameter: gradient, master weight and two moments in, the last three and a
16-bit weight out, and the gradient once more for its norm."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Seconds of one transformer layer of one micro-batch, by kind of kernel; forward unless it says otherwise.

    ``floor`` is the least that a pass takes: the launches of its kernels.
    """

    attention: Any
    mlp: Any
    core: Any
    core_backward: Any
    elementwise: Any
    floor: Any

    @property
    def matmul(self) -> Any:
        """The matrix multiplications with weights."""
        return self.attention + self.mlp

    @property
    def forward(self) -> Any:
        """The forward pass."""
        return maximum(self.matmul + self.core + self.elementwise, self.floor)

    @property
    def input_grad(self) -> Any:
        """Gradients of the inputs: as many FLOPs as forward; elementwise kernels read one operand more."""
        return maximum(self.matmul + self.core_backward + 1.5 * self.elementwise, self.floor)

    @property
    def weight_grad(self) -> Any:
        """Gradients of the weights."""
        return maximum(self.matmul, 0.25 * self.floor)

    def cores(self, g: Given) -> Any:
        """All passes between the projections, with what is recomputed; launches that take longer are theirs."""
        r, others = g.recompute, self.matmul + self.elementwise
        forward = maximum(self.core, self.floor - others)
        backward = maximum(self.core_backward, self.floor - others - 0.5 * self.elementwise)
        return (1.0 + r.full) * forward + r.attention * self.core + backward

    def recomputed(self, g: Given) -> Any:
        """What is computed again before the backward pass."""
        r = g.recompute
        some = r.attention * self.core + r.elementwise * self.elementwise + r.mlp * self.mlp
        return where(r.full > 0, self.forward, some)


@dataclass(frozen=True, slots=True)
class Head:
    """Seconds of the head and the loss of one micro-batch on the last stage."""

    forward: Any
    input_grad: Any
    weight_grad: Any

    @property
    def total(self) -> Any:
        """All three passes."""
        return self.forward + self.input_grad + self.weight_grad


def half_rate(g: Given) -> Any:
    """Dense peak in 16 bits, FLOP/s: fp16 where the plan computes in it, as on GPUs that have no bf16."""
    return where(g.format.half > 0, g.hardware.fp16, g.hardware.bf16)


def _rate(g: Given) -> Any:
    """FLOP/s that a large matrix multiplication reaches in the plan's format."""
    e, chip = g.efficiency, g.hardware
    narrow = where(g.format.four > 0, chip.fp4, chip.fp8) * e.fp8
    return where(g.format.eight > 0, narrow, half_rate(g) * e.gemm)


def _matmul(g: Given, flops: Any, rate: Any, *sizes: Any) -> Any:
    """Seconds of a multiplication: FLOPs / rate x prod (1 + half / size)."""
    longer: Any = 1.0
    for size in sizes:
        longer = longer * (1.0 + g.efficiency.gemm_half / size)
    return quantity(flops * longer, "flop") / rate


def _memory_rate(g: Given) -> Any:
    return g.hardware.bandwidth * g.efficiency.memory


def _dense(g: Given) -> tuple[Any, Any]:
    """Seconds of the attention's projections and of a dense MLP: 2 x tokens x weights / TP FLOPs each.

    Ranks beyond the KV heads compute replicas of them.
    """
    m, t, rate = g.model, tokens(g), _rate(g)
    width = m.heads * architecture.value_dim(m) / g.tp
    weights = (architecture.attention_parameters(m) + alike(g)) / g.tp
    attention = _matmul(g, 2.0 * t * weights, rate, t, m.hidden, width)
    wide = m.ffn / g.tp
    mlp = _matmul(g, 2.0 * t * architecture.mlp_parameters(m) / g.tp, rate, t, m.hidden, maximum(wide, 1.0))
    return attention, mlp


def _mixture(g: Given) -> Any:
    """Seconds of the routed and the shared experts of one MoE layer, and of its router.

    The tokens of EP x expert TP ranks meet at each expert; the fullest rank sets the pace. With sequence parallelism
    the router sees a rank's own tokens.
    """
    m, t, rate, etp = g.model, tokens(g), _rate(g), expert_tp(g)
    rows = maximum(t / g.tp * etp * m.top_k * g.ep / maximum(m.experts, 1.0), 1.0)
    flops = 2.0 * t * m.top_k * architecture.expert_parameters(m) / g.tp * expert_load(g)
    routed = _matmul(g, flops, rate, rows, m.hidden, maximum(m.expert_ffn, 1.0) / etp)
    router = architecture.router_parameters(m) / where(g.sequence_parallel, g.tp, 1.0)
    beside = architecture.shared_parameters(m) / g.tp + router
    return routed + _matmul(g, 2.0 * t * beside, rate, t, m.hidden)


def _attention_core(g: Given) -> tuple[Any, Any]:
    """Seconds between the projections of one layer, forward and backward.

    FlashAttention does the causal half of the products, c = 2, or those within a window (Dao 2307.08691), and 2.5
    times as much backward. Kernels written for Ampere reach half of the share on later chips (Shah 2407.08608,
    Fig. 1). Unfused attention does all products, c = 4, and moves each score through memory.
    """
    m, e, chip = g.model, g.efficiency, g.hardware
    width = m.heads * (architecture.query_dim(m) + architecture.value_dim(m)) / 2.0 / g.tp
    spans, some = g.seq_len * g.attention_share * g.length_imbalance, m.window_layers / m.layers
    seen = minimum(where(m.window > 0, m.window, spans), spans)
    # causal: half of a whole sequence, and of a window all but the part before the sequence begins
    pairs = tokens(g) * (spans * 0.5 * (1.0 - some) + seen * (1.0 - 0.5 * seen / spans) * some)
    scores = tokens(g) * spans
    later = (chip.generation == "hopper") | (chip.generation == "blackwell")
    share = e.attention * where(later, g.attention.later, 1.0)
    flash = quantity(4.0 * pairs * width, "flop") / (half_rate(g) * share)
    products = _matmul(g, 4.0 * scores * width, half_rate(g) * e.gemm, g.seq_len, architecture.value_dim(m))
    moved = quantity(scores * m.heads / g.tp, "B") / _memory_rate(g)
    fused = g.attention.flash > 0
    return (
        where(fused, flash, products + UNFUSED_FORWARD * moved),
        where(fused, 2.5 * flash, 2.0 * products + UNFUSED_BACKWARD * moved),
    )


def _elementwise(g: Given) -> Any:
    """Seconds of norms, residuals, activation function, rotation, casts and routing of one layer, forward.

    Only sequence parallelism divides norms and residuals over TP. Eight-bit formats read each input of a
    multiplication in 2 bytes and write it twice in 1, for the product and the transposed one.
    """
    m = g.model
    whole = where(g.sequence_parallel, g.tp, 1.0)
    share = m.moe_layers / m.layers
    wide = (1.0 - share) * m.ffn + share * (m.top_k * m.expert_ffn + m.shared_ffn)
    passes = where(m.gated > 0, g.runtime.glu_passes, 2.0)
    turned = yes(m.positions < 1) * m.gated * g.runtime.rope_passes
    values = (
        NORM_VALUES * m.hidden / whole + (passes * wide + turned * (m.heads + m.kv_heads) * m.head_dim) / g.tp
    )
    inputs = 2.0 * m.hidden / whole + (m.heads * m.head_dim + wide) / g.tp
    # routed copies are put in the order of ranks, and back; with EP also in the order of experts: read and written
    copies = share * m.top_k * m.hidden * expert_tp(g) / g.tp * where(g.ep > 1, 8.0, 4.0)
    moved = 2.0 * (values + copies) + 4.0 * g.format.eight * inputs
    return quantity(tokens(g) * moved, "B") / _memory_rate(g)


def layer(g: Given) -> Layer:
    """One transformer layer of one micro-batch on one rank, averaged over dense and MoE layers."""
    m = g.model
    attention, dense = _dense(g)
    share = m.moe_layers / m.layers
    mlp = (1.0 - share) * dense + share * where(m.moe_layers > 0, _mixture(g), dense)
    core, core_backward = _attention_core(g)
    return Layer(
        attention, mlp, core, core_backward, _elementwise(g), g.attention.kernels * g.efficiency.launch
    )


def head(g: Given) -> Head:
    """The head in 16 bits, 2 x tokens x h x V / TP FLOPs, and the loss: 20 bytes of traffic for each logit."""
    m, t = g.model, tokens(g)
    columns = architecture.padded_vocab(m, g.tp) / g.tp
    rate = half_rate(g) * g.efficiency.gemm
    product = _matmul(g, 2.0 * t * m.hidden * columns, rate, t, m.hidden, columns)
    loss = quantity(20.0 * t * columns, "B") / _memory_rate(g)
    return Head(product + loss, product + 0.5 * loss, product)


def optimizer_step(g: Given, parameters: Any) -> Any:
    """Seconds of Adam on the ``parameters`` that one rank updates, on the GPU or in the host's memory."""
    rate = where(g.optimizer.offload > 0, g.host_bandwidth, _memory_rate(g))
    return quantity(ADAM_BYTES * parameters, "B") / rate
