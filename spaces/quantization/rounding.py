"""Rounding to integers with a scale for a tensor, a row or a group of a row; the measures of what it loses.

Weights are (outputs, inputs) and multiply activations (tokens, inputs) as X W^T, so groups and rows run along inputs.
Scales are kept as fp16, as engines store them, unless ``exact``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError

__all__ = [
    "Array",
    "Quantized",
    "absmax_sqnr",
    "asymmetric",
    "grouped",
    "output_error",
    "rounded_rows",
    "scales_of",
    "sqnr",
    "symmetric",
]

Array: TypeAlias = NDArray[np.floating[Any]]

SCALE_BITS = 16


def _same(activations: Array) -> Array:
    return activations


@dataclass(frozen=True, slots=True)
class Quantized:
    """A quantized matrix.

    ``weights`` (outputs, inputs) are the dequantized values that are multiplied with ``inputs(activations)``: the
    activations as the method has them, rounded or scaled. ``stored_bits`` counts codes, scales and zero points.
    """

    weights: Array
    stored_bits: float
    inputs: Callable[[Array], Array] = _same

    @property
    def bits_per_weight(self) -> float:
        """Stored bits over the number of weights."""
        return self.stored_bits / self.weights.size

    def output(self, activations: Array) -> Array:
        """The product with (tokens, inputs) activations: (tokens, outputs)."""
        return self.inputs(activations) @ self.weights.T


def grouped(matrix: Array, group: int) -> Array:
    """The matrix as (rows, groups, group); a group of 0 is the whole row, of -1 the whole tensor.

    Raises:
        InputError: the group does not divide the row.
    """
    rows, columns = matrix.shape
    if group == -1:
        return matrix.reshape(1, 1, -1)
    if group == 0:
        return matrix.reshape(rows, 1, columns)
    if group < 0 or columns % group:
        raise InputError(f"groups of {group} do not divide rows of {columns} weights")
    return matrix.reshape(rows, columns // group, group)


def _stored(scale: Array, exact: bool) -> Array:
    """The scale as it is kept; 1 where there is nothing to scale."""
    kept = scale if exact else np.minimum(scale, 65504.0).astype(np.float16).astype(scale.dtype)
    return np.where(kept > 0, kept, np.where(scale > 0, scale, 1.0)).astype(scale.dtype)


def scales_of(groups: Array, bits: float, *, zero: bool, exact: bool = False) -> tuple[Array, Array]:
    """Scale and zero point of each (..., group), both (..., 1).

    Symmetric: absmax / (2^(b-1) - 1), no zero point (Dettmers 2022, 2208.07339, eq. 1). Asymmetric (``zero``): from the
    least to the largest value, 0 included, in 2^b - 1 steps (Nagel 2021, 2106.08295, section 2.2).
    """
    if not zero:
        scale = _stored(np.abs(groups).max(axis=-1, keepdims=True) / (2 ** (bits - 1) - 1), exact)
        return scale, np.zeros_like(scale)
    low = np.minimum(groups.min(axis=-1, keepdims=True), 0.0)
    high = np.maximum(groups.max(axis=-1, keepdims=True), 0.0)
    levels = 2**bits - 1
    scale = _stored((high - low) / levels, exact)
    return scale, np.clip(np.rint(-low / scale), 0, levels)


def rounded(values: Array, scale: Array, shift: Array, bits: float, *, zero: bool) -> Array:
    """Values rounded to the nearest code and dequantized: s (clip(round(w / s) + z) - z)."""
    least, most = (0, 2**bits - 1) if zero else (1 - 2 ** (bits - 1), 2 ** (bits - 1) - 1)
    found: Array = values / scale  # in place from here: these are the largest arrays there are
    np.rint(found, out=found)
    np.clip(found, least - shift, most - shift, out=found)
    found *= scale
    return found


def _round(matrix: Array, bits: int, group: int, zero: bool, exact: bool) -> Quantized:
    least = 1 if zero else 2
    if not least <= bits <= 16:
        raise InputError(f"rounding to {bits} bits: expected from {least} to 16")
    groups = grouped(matrix, group)
    scale, shift = scales_of(groups, bits, zero=zero, exact=exact)
    values = rounded(groups, scale, shift, bits, zero=zero).reshape(matrix.shape)
    side = SCALE_BITS + (bits if zero else 0)
    return Quantized(values, matrix.size * bits + scale.size * side)


def symmetric(matrix: Array, bits: int, group: int = 0, *, exact: bool = False) -> Quantized:
    """Round to nearest, absmax: codes from -(2^(b-1) - 1) to 2^(b-1) - 1.

    Args:
        matrix: (outputs, inputs).
        bits: of a code, at least 2.
        group: weights that share a scale: 0 a row, -1 the tensor.
        exact: whether scales stay as computed instead of fp16.

    Raises:
        InputError: bits out of range, or a group that does not divide the row.
    """
    return _round(matrix, bits, group, False, exact)


def asymmetric(matrix: Array, bits: int, group: int = 0, *, exact: bool = False) -> Quantized:
    """Round to nearest between the least and the largest value, with a zero point of as many bits as a weight.

    Args and raises as :func:`symmetric`; ``bits`` may be 1.
    """
    return _round(matrix, bits, group, True, exact)


def rounded_rows(activations: Array, bits: int) -> Array:
    """Activations (tokens, inputs) rounded with one absmax scale a token, found while running."""
    return symmetric(activations, bits, 0, exact=True).weights


def sqnr(values: Array, quantized: Array) -> float:
    """Signal over quantization noise in dB: 10 log10(sum w^2 / sum (w - q)^2); inf where nothing is lost."""
    noise = float(np.square(values - quantized, dtype=np.float64).sum())
    signal = float(np.square(values, dtype=np.float64).sum())
    return float("inf") if noise == 0 else float(10.0 * np.log10(signal / noise))


def absmax_sqnr(bits: float, peak: Any) -> Any:
    """SQNR in dB of absmax rounding of a smooth distribution: 20 log10(2^(b-1) - 1) + 10.79 - 20 log10(A / sigma).

    The step is A / (2^(b-1) - 1) and the noise step^2 / 12 (10.79 dB); ``peak`` is A / sigma, of several groups the
    root of the mean of its squares.
    """
    return 20.0 * np.log10(2.0 ** (bits - 1) - 1.0) + 10.0 * np.log10(12.0) - 20.0 * np.log10(peak)


def output_error(activations: Array, weights: Array, quantized: Quantized) -> float:
    """||X W^T - Y||^2 / ||X W^T||^2, where Y is the quantized product: 0 where nothing is lost."""
    wanted = activations @ weights.T
    power = float(np.square(wanted, dtype=np.float64).sum())
    lost = float(np.square(wanted - quantized.output(activations), dtype=np.float64).sum())
    return lost / power if power else (0.0 if lost == 0 else float("inf"))
