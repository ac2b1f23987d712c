"""Bits that a stored weight takes with everything that belongs to it: scales, zero points and super-blocks.

The columns of ``formats.csv``: a format stores ``bits`` for a weight; a ``group`` of weights shares ``scale_bits`` and
``zero_bits``, and a ``block`` of weights shares ``block_bits`` more (0: none, or one for a whole channel or tensor, which
is not counted). ``bits_per_weight`` is their sum, but for ``mixed`` formats the published mean over a model's tensors,
which are of several widths. ``compute`` is what multiplies such weights with activations of the same format; with other
activations, weights are widened to those. ``activations`` says whether activations come in the format, and ``kv_bits``
are the bits of a cached value (missing: no engine caches so). ``whole`` formats also store the output projection so, the others
leave it in 16 bits; ``unpacking`` ones take a kernel of its own to widen weights where none is fused.
"""

from __future__ import annotations

from typing import Any

from dse.expressions.tracer import where

from .catalog import Row

__all__ = ["bits_per_weight", "block_bytes", "main_bits", "weight_bytes"]


def bits_per_weight(
    bits: Any, group: Any = 0, scale_bits: Any = 0, zero_bits: Any = 0, *, block: Any = 0, block_bits: Any = 0
) -> Any:
    """Bits of one weight: b + (scale + zero point)/group + (super-block)/block.

    Args:
        bits: bits of the weight itself.
        group: weights that share a scale and a zero point; 0 when a whole channel or tensor does.
        scale_bits: bits of a group's scale.
        zero_bits: bits of a group's zero point, or of its least value.
        block: weights of a super-block, of several groups; 0 for none.
        block_bits: bits that a super-block has beside its groups, such as the scale of its scales.
    """
    return (
        bits
        + where(group > 0, (scale_bits + zero_bits) / where(group > 0, group, 1), 0)
        + where(block > 0, block_bits / where(block > 0, block, 1), 0)
    )


def main_bits(f: Any) -> Any:
    """:func:`bits_per_weight` of a row's own layout; of a mixed format, that of most of its tensors."""
    return bits_per_weight(f.bits, f.group, f.scale_bits, f.zero_bits, block=f.block, block_bits=f.block_bits)


def block_bytes(f: Row) -> float:
    """Bytes of one block in memory: of its super-block, or of one group; of one weight where it has neither."""
    weights: float = f.block or f.group or 1
    size: float = main_bits(f) * weights / 8
    return size


def weight_bytes(f: Any, weights: Any) -> Any:
    """Bytes that ``weights`` values take in the format."""
    return weights * f.bits_per_weight / 8
