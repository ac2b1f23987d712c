"""Block formats of llama.cpp: Q8_0, Q4_0, and the super-blocks Q4_K and Q6_K.

Source: ggml/src/ggml-quants.c, the functions ``quantize_row_..._ref`` and what they call; sizes from ggml-common.h.
"""

from __future__ import annotations

import numpy as np

from .rounding import Array, Quantized, grouped

__all__ = ["q4_0", "q4_k", "q6_k", "q8_0"]

_BLOCK, _SUPER = 32, 256


def _half(values: Array) -> Array:
    found: Array = values.astype(np.float16).astype(values.dtype)
    return found


def _safe(values: Array) -> Array:
    """The values, 1 where they are 0, to divide by."""
    found: Array = np.where(values == 0, 1.0, values).astype(values.dtype)
    return found


def _divided(values: Array, scale: Array) -> Array:
    """Values over scales, 0 where the scale is."""
    found: Array = np.where(scale == 0, 0.0, values / _safe(scale)).astype(values.dtype)
    return found


def q8_0(matrix: Array) -> Quantized:
    """Blocks of 32 with d = absmax / 127: 34 bytes (block_q8_0).

    Raises:
        InputError: 32 does not divide the row.
    """
    blocks = grouped(matrix, _BLOCK)
    scale = np.abs(blocks).max(axis=-1, keepdims=True) / 127.0
    codes = np.rint(_divided(blocks, scale))
    return Quantized((codes * _half(scale)).reshape(matrix.shape), matrix.size / _BLOCK * 34 * 8)


def q4_0(matrix: Array) -> Quantized:
    """Blocks of 32 with d = m / -8, m the value of largest size with its sign: 18 bytes (block_q4_0).

    Raises:
        InputError: 32 does not divide the row.
    """
    blocks = grouped(matrix, _BLOCK)
    at = np.abs(blocks).argmax(axis=-1, keepdims=True)
    scale = np.take_along_axis(blocks, at, axis=-1) / -8.0
    codes = np.minimum(np.floor(_divided(blocks, scale) + 8.5), 15.0) - 8.0
    return Quantized((codes * _half(scale)).reshape(matrix.shape), matrix.size / _BLOCK * 18 * 8)


def q4_k(matrix: Array) -> Quantized:
    """Super-blocks of 256: eight blocks of 32 with a scale and a minimum of 6 bits each, and fp16 scales of both: 144
    bytes (block_q4_K). Scale and minimum are searched as ``make_qkx2_quants`` does: 21 steps, weights |x| + rms.

    Raises:
        InputError: 256 does not divide the row.
    """
    blocks = grouped(matrix, _SUPER).reshape(-1, 8, _BLOCK)
    scale, least = _scale_and_minimum(blocks)
    d = scale.max(axis=1, keepdims=True) / 63.0
    dmin = least.max(axis=1, keepdims=True) / 63.0
    scale = np.clip(np.rint(_divided(scale, d)), 0, 63) * _half(d)
    least = np.clip(np.rint(_divided(least, dmin)), 0, 63) * _half(dmin)
    codes = np.clip(np.rint(_divided(blocks + least, scale)), 0, 15)
    return Quantized((codes * scale - least).reshape(matrix.shape), matrix.size / _SUPER * 144 * 8)


def _scale_and_minimum(blocks: Array) -> tuple[Array, Array]:
    """Of blocks (..., 32): the scale s and the minimum m, not negative, of codes s q - m, both (..., 1)."""
    weight = np.abs(blocks) + np.sqrt(np.square(blocks).mean(axis=-1, keepdims=True))
    low = np.minimum(blocks.min(axis=-1, keepdims=True), 0.0)
    width = blocks.max(axis=-1, keepdims=True) - low
    scale, best_low = width / 15.0, low
    total, first = weight.sum(axis=-1, keepdims=True), (weight * blocks).sum(axis=-1, keepdims=True)

    def error(s: Array, m: Array, codes: Array) -> Array:
        found: Array = (weight * np.square(s * codes + m - blocks)).sum(axis=-1, keepdims=True)
        return found

    least = error(scale, low, np.clip(np.rint(_divided(blocks - low, scale)), 0, 15))
    for step in range(21):
        codes = np.clip(np.rint(_divided((blocks - low) * (14.0 + 0.1 * step), width)), 0, 15)
        one = (weight * codes).sum(axis=-1, keepdims=True)
        two = (weight * codes * codes).sum(axis=-1, keepdims=True)
        mixed = (weight * codes * blocks).sum(axis=-1, keepdims=True)
        determinant = total * two - one * one
        s = (total * mixed - first * one) / _safe(determinant)
        m = (two * first - one * mixed) / _safe(determinant)
        s, m = np.where(m > 0, mixed / _safe(two), s), np.minimum(m, 0.0)
        found = error(s, m, codes)
        better = (determinant > 0) & (found < least)
        scale, best_low = np.where(better, s, scale), np.where(better, m, best_low)
        least = np.where(better, found, least)
    return scale, -best_low


def q6_k(matrix: Array) -> Quantized:
    """Super-blocks of 256: sixteen blocks of 16 with a scale of 8 bits each, and an fp16 scale of these: 210 bytes
    (block_q6_K). Scales are searched as ``make_qx_quants`` does: 19 steps, weights x^2.

    Raises:
        InputError: 256 does not divide the row.
    """
    blocks = grouped(matrix, _SUPER).reshape(-1, 16, 16)
    scale = _searched_scale(blocks)
    at = np.abs(scale).argmax(axis=1, keepdims=True)
    d = _half(np.take_along_axis(scale, at, axis=1) / -128.0)
    scale = np.clip(np.rint(_divided(scale, d)), -128, 127) * d
    codes = np.clip(np.rint(_divided(blocks, scale)), -32, 31)
    return Quantized((codes * scale).reshape(matrix.shape), matrix.size / _SUPER * 210 * 8)


def _searched_scale(blocks: Array) -> Array:
    """Of blocks (..., 16): the scale (..., 1) of codes from -32 to 31 that loses least."""
    weight = np.square(blocks)
    at = np.abs(blocks).argmax(axis=-1, keepdims=True)
    largest = np.take_along_axis(blocks, at, axis=-1)
    scale, best = np.zeros_like(largest), np.full_like(largest, -1.0)
    for step in range(-9, 10):
        codes = np.clip(np.rint(_divided(blocks * -(32.0 + 0.1 * step), largest)), -32, 31)
        mixed = (weight * blocks * codes).sum(axis=-1, keepdims=True)
        two = (weight * codes * codes).sum(axis=-1, keepdims=True)
        gain = mixed * mixed / _safe(two)
        better = (two > 0) & (gain > best)
        scale, best = np.where(better, mixed / _safe(two), scale), np.where(better, gain, best)
    return scale
