"""Quantizers that look at activations: LLM.int8(), SmoothQuant and AWQ, alone and with GPTQ, which is in gptq.py."""

from __future__ import annotations

from functools import partial

import numpy as np

from .gptq import gptq
from .rounding import Array, Quantized, asymmetric, grouped, rounded, rounded_rows, scales_of, symmetric

__all__ = ["awq", "awq_gptq", "awq_scales", "llm_int8", "smoothquant", "smoothing_scales"]

OUTLIER = 6.0
"""Size of an activation from which LLM.int8() keeps its column in 16 bits (Dettmers 2022, section 3.2)."""

CLIP_TOKENS = 512
"""Tokens that AWQ's clipping is searched on, as in the reference code."""

_LEAST = 1e-5
_CLIP_STEPS = 20
_ROWS = 32  # rows whose clipping is searched together: they stay in the cache


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


def _clipped(matrix: Array, activations: Array, bits: int, group: int) -> Array:
    """The matrix with each group cut to the size that loses least of the group's own part of the output, from its largest
    weight down to half of it in ten steps (``auto_clip`` of the reference code), on at most :data:`CLIP_TOKENS` tokens.
    """
    groups = grouped(matrix, group)
    few = grouped(activations[:: max(1, len(activations) // CLIP_TOKENS)], group).transpose(1, 2, 0)
    # (groups, group, group or tokens), whichever is less: |e X|^2 is also e (X X^T) e^T
    parts = few @ few.transpose(0, 2, 1) if few.shape[1] <= few.shape[2] else np.ascontiguousarray(few)
    found = [_clipped_rows(groups[at : at + _ROWS], parts, bits) for at in range(0, len(groups), _ROWS)]
    return np.concatenate(found).reshape(matrix.shape)


def _clipped_rows(groups: Array, parts: Array, bits: int) -> Array:
    """Of (rows, groups, group) weights."""
    largest = np.abs(groups).max(axis=-1, keepdims=True)
    best, least = largest, np.full_like(largest, np.inf)
    for step in range(_CLIP_STEPS // 2):
        limit = (largest * (1.0 - step / _CLIP_STEPS)).astype(groups.dtype)
        cut = np.clip(groups, -limit, limit)
        error = rounded(cut, *scales_of(cut, bits, zero=True), bits, zero=True) - groups
        each = np.ascontiguousarray(error.transpose(1, 0, 2))
        output = each @ parts
        lost = np.einsum("gri,gri->rg", output, each if parts.shape[1] == parts.shape[2] else output)[
            :, :, None
        ]
        best = np.where(lost < least, limit, best)
        least = np.minimum(least, lost)
    return np.clip(groups, -best, best)


def awq(matrix: Array, activations: Array, bits: int, group: int = 128, *, clip: bool = True) -> Quantized:
    """AWQ: inputs are scaled before asymmetric rounding and divided after it; the scales fold into the layer before and
    take no bits (Lin 2023, 2306.00978, eq. 4).

    Args:
        matrix: (outputs, inputs).
        activations: (tokens, inputs) to calibrate on.
        bits: of a code.
        group: weights that share a scale.
        clip: whether groups are cut as well, as the reference code does in all layers but those of queries and keys.

    Raises:
        InputError: bits out of range, or a group that does not divide the row.
    """
    scales = awq_scales(matrix, activations, bits, group)
    scaled = matrix * scales
    found = asymmetric(_clipped(scaled, activations / scales, bits, group) if clip else scaled, bits, group)
    return Quantized(found.weights / scales, found.stored_bits)


def awq_gptq(matrix: Array, activations: Array, bits: int, group: int = 128) -> Quantized:
    """GPTQ as published of the weights as AWQ scales them: the two combine (Lin 2023, 2306.00978, section 5.3). Args as
    :func:`awq`.
    """
    scales = awq_scales(matrix, activations, bits, group)
    found = gptq(matrix * scales, activations / scales, bits, group)
    return Quantized(found.weights / scales, found.stored_bits)
