"""Quantizers that look at activations: LLM.int8(), SmoothQuant and AWQ, alone and with GPTQ, which is in gptq.py."""

from __future__ import annotations

from functools import partial

import numpy as np

from .gptq import gptq
from .rounding import Array, Quantized, asymmetric, rounded_rows, symmetric

__all__ = ["awq", "awq_gptq", "awq_scales", "llm_int8", "smoothquant", "smoothing_scales"]

OUTLIER = 6.0
"""Size of an activation from which LLM.int8() keeps its column in 16 bits (Dettmers 2022, section 3.2)."""

_LEAST = 1e-5


def llm_int8(matrix: Array, activations: Array, threshold: float = OUTLIER) -> Quantized:
    """LLM.int8(): columns with an outlier are multiplied in 16 bits, the others in 8 with a scale for each row of both
    (Dettmers 2022, 2208.07339, eq. 8).

    Args:
        matrix: (outputs, inputs).
        activations: (tokens, inputs), from which the columns with outliers are known.
        threshold: the size of an outlier.
    """
    outlier = (np.abs(activations) >= threshold).any(axis=0)
    plain = symmetric(np.where(outlier, 0.0, matrix).astype(matrix.dtype), 8)
    kept = np.where(outlier, matrix.astype(np.float16), plain.weights).astype(matrix.dtype)

    def inputs(x: Array) -> Array:
        found: Array = np.where(outlier, x, rounded_rows(np.where(outlier, 0.0, x), 8)).astype(x.dtype)
        return found

    # columns with outliers are kept in 16 bits: eight more for each weight
    return Quantized(kept, plain.stored_bits + 8.0 * matrix.shape[0] * int(outlier.sum()), inputs)


def smoothing_scales(matrix: Array, activations: Array, alpha: float) -> Array:
    """s_j = max|X_j|^alpha / max|W_j|^(1 - alpha) for each input (Xiao 2022, 2211.10438, eq. 4); 1 where one is 0."""
    active = np.abs(activations).max(axis=0)
    weight = np.abs(matrix).max(axis=0)
    scales = np.maximum(active, _LEAST) ** alpha / np.maximum(weight, _LEAST) ** (1.0 - alpha)
    found: Array = np.where((active > 0) & (weight > 0), np.maximum(scales, _LEAST), 1.0).astype(matrix.dtype)
    return found


def _smoothed(x: Array, scales: Array, bits: int) -> Array:
    found: Array = rounded_rows(x / scales, bits) * scales
    return found


def smoothquant(matrix: Array, activations: Array, *, alpha: float = 0.5, bits: int = 8) -> Quantized:
    """SmoothQuant: Y = (X diag(s)^-1)(diag(s) W^T), then both rounded, a scale for each output and each token
    (Xiao 2022, 2211.10438, eq. 3).

    Args:
        matrix: (outputs, inputs).
        activations: (tokens, inputs) to calibrate the scales on.
        alpha: migration strength, 0 to 1: how much of the outliers moves into the weights.
        bits: of weights and activations.
    """
    scales = smoothing_scales(matrix, activations, alpha)
    plain = symmetric(matrix * scales, bits)
    return Quantized(plain.weights / scales, plain.stored_bits, partial(_smoothed, scales=scales, bits=bits))


def awq_scales(matrix: Array, activations: Array, bits: int, group: int = 128, *, steps: int = 20) -> Array:
    """The scale of each input that loses least: s = mean|X|^a, a in [0, 1) searched in ``steps`` steps, brought to a mean
    of about 1 (Lin 2023, 2306.00978, eq. 5). Args and raises as :func:`awq`.
    """
    mean = np.maximum(np.abs(activations).mean(axis=0), _LEAST)
    wanted = activations @ matrix.T
    best: Array = np.ones_like(mean)
    least = np.inf
    for step in range(steps):
        scales = mean ** (step / steps)
        scales = (scales / np.sqrt(scales.max() * scales.min())).astype(matrix.dtype)
        weights = asymmetric(matrix * scales, bits, group).weights / scales
        lost = float(np.square(wanted - activations @ weights.T).sum())
        if lost < least:
            best, least = scales, lost
    return best


def awq(matrix: Array, activations: Array, bits: int, group: int = 128, *, steps: int = 20) -> Quantized:
    """AWQ: inputs are scaled before asymmetric rounding and divided after it; the scales fold into the layer before and
    take no bits (Lin 2023, 2306.00978, eq. 4).

    Args:
        matrix: (outputs, inputs).
        activations: (tokens, inputs) to calibrate on.
        bits: of a code.
        group: weights that share a scale.
        steps: points of the search of :func:`awq_scales`.

    Raises:
        InputError: bits out of range, or a group that does not divide the row.
    """
    scales = awq_scales(matrix, activations, bits, group, steps=steps)
    found = asymmetric(matrix * scales, bits, group)
    return Quantized(found.weights / scales, found.stored_bits)


def awq_gptq(matrix: Array, activations: Array, bits: int, group: int = 128) -> Quantized:
    """GPTQ of the weights as AWQ scales them: the two combine (Lin 2023, 2306.00978, section 5.3). Args as :func:`awq`."""
    scales = awq_scales(matrix, activations, bits, group)
    found = gptq(matrix * scales, activations / scales, bits, group)
    return Quantized(found.weights / scales, found.stored_bits)
