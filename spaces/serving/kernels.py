"""Work of single kernels of inference: operations, bytes, and the seconds that a roofline with efficiencies gives them.

A kernel takes the longer of FLOPs / (peak x share) and bytes / (bandwidth x share), as the fourth root of the sum of their
fourth powers, plus its launch (Williams, Waterman and Patterson 2009, CACM 52:4, with the ridge rounded off). The shares are
fitted for each generation of GPUs and for each engine; nothing is fitted for a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import ceil, maximum, minimum, quantity, sqrt, where
from dse.spaces.catalog.architecture import query_dim, value_dim

__all__ = ["Given", "Work", "attention", "elementwise", "matmul", "matmul_rate", "one", "seconds_zero"]

Given = Any
"""A namespace of what the formulas are given: model, hardware, efficiency, engine, weights, activations, kv, and sizes."""

ACTIVATION_BYTES = 2.0
"""Bytes of an activation between kernels: 16 bits in every engine, also where matrices multiply in 8 bits."""
UNPACKED = 12.0
"""Bits from which on a weight takes no arithmetic to unpack; below, it takes more the fewer there are."""
ABSORBED = 16.0
"""New tokens of a sequence up to which latent attention multiplies with the latent itself; of more, keys and values of all
heads are computed from it (a step that verifies a draft is as a decode step)."""
REACHABLE = 0.97
"""No kernel reaches more of a datasheet's rate."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a kernel or a sum of kernels does: ``flops`` (flop), ``bytes`` (B), ``compute`` and ``memory`` (s, each alone at
    its efficiency), and ``seconds`` that it takes.
    """

    flops: Any
    bytes: Any
    compute: Any
    memory: Any
    seconds: Any

    def __add__(self, other: Work) -> Work:
        return Work(
            self.flops + other.flops,
            self.bytes + other.bytes,
            self.compute + other.compute,
            self.memory + other.memory,
            self.seconds + other.seconds,
        )

    def times(self, count: Any) -> Work:
        """The same work ``count`` times."""
        return Work(
            self.flops * count,
            self.bytes * count,
            self.compute * count,
            self.memory * count,
            self.seconds * count,
        )


def seconds_zero(g: Given) -> Any:
    """No seconds, of the shape of the others."""
    return 0.0 * g.efficiency.kernel


def one(g: Given) -> Any:
    """The number 1, traced where the model is: a unit attached to it stays."""
    return g.model.layers / g.model.layers


def reached(share: Any) -> Any:
    """A share of a datasheet's rate; the product of an engine's and a GPU's is no more than can be reached."""
    return minimum(share, REACHABLE)


def _roofline(g: Given, done: tuple[Any, Any], compute: Any, memory: Any, kernels: float) -> Work:
    """A kernel of ``done`` (flop, B): a smooth maximum of both times, a fifth above the longer where they are equal."""
    flops, moved = done
    together = sqrt(sqrt(compute * compute * compute * compute + memory * memory * memory * memory))
    return Work(flops, moved, compute, memory, together + kernels * g.efficiency.kernel)


def matmul_rate(g: Given) -> Any:
    """Dense peak, flop/s, of the format in which matrices multiply: that of the activations."""
    a, chip = g.activations, g.hardware
    half = maximum(chip.bf16, chip.fp16) * where(chip.kind == "consumer", 1.0 + g.engine.half_accumulate, 1.0)
    eight = chip.int8 * (quantity(one(g), "flop") / quantity(one(g), "op"))
    return where(a.fp4 > 0, chip.fp4, where(a.fp8 > 0, chip.fp8, where(a.int8 > 0, eight, half)))


def _share(g: Given, rows: Any) -> Any:
    """Share of the peak that a multiplication of this many rows reaches: short ones fill part of a tile only, the
    shortest run as products with a vector.
    """
    a, e = g.activations, g.efficiency
    narrow = where(a.fp4 + a.fp8 + a.int8 > 0, e.narrow, 1.0)
    # rows of an expert are a mean, and no whole number: only real tiles are rounded up
    whole = where(g.engine.tile > 1.0, ceil(rows / g.engine.tile) * g.engine.tile, rows)
    tiles = whole + e.gemm_half
    worked = where(rows <= g.engine.vector_rows, minimum(e.vector * rows, tiles), tiles)
    return reached(e.gemm * narrow * g.engine.compute) * rows / worked


def matmul(g: Given, rows: Any, matrices: Any, values: Any, *, bits: Any, kernels: float = 1.0) -> Work:
    """Activations times stored weights.

    Args:
        rows: tokens that one matrix is multiplied with.
        matrices: weights that are read, in values.
        values: activations that are read and written, in values.
        bits: bits of one stored weight with its scales. Fewer than those of the activations are unpacked.
        kernels: launches.
    """
    flops = quantity(2.0 * rows * matrices, "flop")
    moved = quantity(matrices * bits / 8.0 + values * ACTIVATION_BYTES, "B")
    steps = g.efficiency.unpack * maximum(UNPACKED - bits, 0.0) / 8.0
    unpack = quantity(where(bits < g.activations.bits - 1.0, matrices, 0.0), "flop") * steps / g.hardware.fp32
    compute = flops / (matmul_rate(g) * _share(g, rows))
    memory = moved / (g.hardware.bandwidth * reached(g.efficiency.memory * g.engine.streaming)) + unpack
    return _roofline(g, (flops, moved), compute, memory, kernels)


def attention(g: Given, sequences: Any, queries: Any, keys: Any, cached: Any) -> Work:
    """The attention of one layer over cached keys and values.

    Args:
        sequences: sequences on this rank.
        queries: new tokens of each.
        keys: keys that a query sees, on average.
        cached: tokens of each sequence that are in the cache, the new ones included.

    Multi-head attention reads the KV heads of this rank once; an engine that copies them to every query head
    (``repeat_kv``) also writes and reads the copies. Latent attention (MLA) reads one latent, and multiplies with it.
    """
    m = g.model
    latent = m.kv_lora + m.rope_dim
    heads = m.heads / g.tp
    kv_heads = maximum(m.kv_heads / g.tp, 1.0)
    expanded = query_dim(m) + value_dim(m)
    absorbed = where(queries > ABSORBED, expanded, 2.0 * m.kv_lora + m.rope_dim)
    widths = where(m.mla > 0, absorbed, 2.0 * m.head_dim)
    flops = quantity(2.0 * sequences * queries * keys * heads * widths, "flop")
    stored = where(m.mla > 0, latent, 2.0 * kv_heads * m.head_dim) * g.kv.bits / 8.0
    group = where(m.mla > 0, 1.0, heads / kv_heads)
    copies = (
        1.0 + g.engine.repeats * g.engine.copies * where(group > 1.0, group, 0.0) + 2.0 * g.engine.appends
    )
    projected = sequences * queries * heads * (query_dim(m) + value_dim(m)) * ACTIVATION_BYTES
    moved = quantity(sequences * cached * stored * copies + projected, "B")
    rows = queries * where(m.mla > 0, heads, group)
    peak = maximum(g.hardware.bf16, g.hardware.fp16)
    share = (
        reached(g.efficiency.attention * g.engine.compute)
        * rows
        / minimum(g.efficiency.vector * rows, rows + g.efficiency.gemm_half)
    )
    compute = flops / (peak * share)
    memory = moved / (g.hardware.bandwidth * reached(g.efficiency.cache * g.engine.streaming))
    return _roofline(g, (flops, moved), compute, memory, 1.0)


def elementwise(g: Given, values: Any, kernels: float) -> Work:
    """Kernels that only move activations: ``values`` read and written together."""
    moved = quantity(values * ACTIVATION_BYTES, "B")
    memory = moved / (g.hardware.bandwidth * reached(g.efficiency.memory * g.engine.streaming))
    return _roofline(g, (quantity(0.0 * values, "flop"), moved), seconds_zero(g), memory, kernels)
