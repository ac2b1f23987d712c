"""GPTQ: columns are rounded one after another, and the error of each is made up for in those that follow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError

from .rounding import SCALE_BITS, Array, Quantized, grouped, rounded, scales_of

__all__ = ["gptq", "inverse_factor"]

BLOCK = 128
"""Columns whose updates of the rest are applied together (Frantar 2022, section 3.3, step 2)."""

WIDEST = 16_384
"""Inputs of a matrix: the Hessian has as many rows and columns."""

SHRINK = 0.5
"""By how much the range of a group is cut at most; the reference code's ``maxshrink`` is 0.8."""

_SMALL = 32
_ROWS = 32  # rows whose scales are searched together: they stay in the cache


def gptq(
    matrix: Array,
    activations: Array,
    bits: int,
    group: int = 0,
    *,
    zero: bool = True,
    order: bool = True,
    steps: int = 24,
    damping: float = 0.01,
) -> Quantized:
    """GPTQ (Frantar 2022, 2210.17323, Algorithm 1).

    Each column q = round(w) leaves the error (w - q) / U_jj, where U^T U is the inverse of H = 2 X^T X + damping; the
    later columns j' take error x U_jj' off. Scales are those of the original weights of each group (``--static-groups``
    of the reference code), so that ``order`` (``--act-order``) leaves the groups where they are. They are searched from
    the full range down, as by its ``--mse``, for the least error of the group with H_jj as weights: then the weights of
    inputs with outliers, whose errors no other input can make up for, come to lie near codes.

    Args:
        matrix: (outputs, inputs).
        activations: (tokens, inputs) to calibrate on.
        bits: of a code.
        group: weights that share a scale and zero point; 0 a row.
        zero: whether rounding is asymmetric.
        order: whether columns are taken by decreasing H_jj instead of from the left.
        steps: scales that are tried for each group; 1 takes the full range.
        damping: added to the diagonal of H, as a share of its mean (section 3.3, step 3).

    Raises:
        InputError: a group that does not divide the row, or more inputs than :data:`WIDEST`.
    """
    if matrix.shape[1] > WIDEST:
        raise InputError(
            f"GPTQ of {matrix.shape[1]:,} inputs: expected at most {WIDEST:,}, whose Hessian takes 2 GB"
        )
    if group < 0:
        raise InputError(f"GPTQ with a group of {group}: expected 0 (a row) or more")
    hessian = 2.0 * (activations.T @ activations).astype(np.float64)
    diagonal = np.diagonal(hessian).copy()
    dead = diagonal == 0
    hessian[dead, dead] = 1.0
    hessian[np.diag_indices_from(hessian)] += damping * diagonal.mean() if diagonal.any() else 1.0
    groups = grouped(matrix, group)
    importance = grouped(diagonal[None, :].astype(matrix.dtype), group)
    scale, shift = _searched(groups, importance, bits, zero=zero, steps=steps)
    sequence = np.argsort(-diagonal, kind="stable") if order else np.arange(matrix.shape[1])
    factor = inverse_factor(hessian[np.ix_(sequence, sequence)]).astype(np.float32)
    of_column = sequence // groups.shape[-1]
    # transposed, (inputs, outputs), so that a column lies in one piece
    left = np.where(dead, 0.0, matrix).T[sequence].astype(np.float32)
    scales, shifts = (np.ascontiguousarray(a[:, :, 0].T, dtype=np.float32) for a in (scale, shift))

    def quantize(column: Array, at: int) -> Array:
        g = of_column[at]
        return rounded(column, scales[g], shifts[g], bits, zero=zero)

    weights = np.empty_like(matrix)
    weights[:, sequence] = _in_turn(left, factor, quantize).T
    stored = matrix.size * bits + scale.size * (SCALE_BITS + (bits if zero else 0))
    return Quantized(weights, stored)


def _in_turn(left: Array, factor: Array, quantize: Callable[[Array, int], Array]) -> Array:
    """The columns (inputs, outputs) rounded one after another; ``left`` is used up. Errors reach the next few columns at
    once, the rest of their block every :data:`_SMALL` columns, and all others after the block.
    """
    found = np.empty_like(left)
    columns = len(left)
    for start in range(0, columns, BLOCK):
        stop = min(start + BLOCK, columns)
        errors = np.empty((stop - start, left.shape[1]), dtype=np.float32)
        for at in range(start, stop):
            found[at] = quantize(left[at], at)
            errors[at - start] = (left[at] - found[at]) / factor[at, at]
            edge = min(-(-(at + 1) // _SMALL) * _SMALL, stop)
            left[at + 1 : edge] -= factor[at, at + 1 : edge, None] * errors[at - start]
            if at + 1 == edge < stop:
                first = max(start, edge - _SMALL)
                left[edge:stop] -= factor[first:edge, edge:stop].T @ errors[first - start : edge - start]
        left[stop:] -= factor[start:stop, stop:].T @ errors
    return found


def _searched(groups: Array, importance: Array, bits: int, *, zero: bool, steps: int) -> tuple[Array, Array]:
    """Scale and zero point of each group that lose least, the range shrunk by up to half or, of many bits, by eight steps;
    ``importance`` is (1, groups, group).
    """
    parts = [
        _searched_rows(groups[at : at + _ROWS], importance, bits, zero=zero, steps=steps)
        for at in range(0, len(groups), _ROWS)
    ]
    return np.concatenate([scale for scale, _ in parts]), np.concatenate([shift for _, shift in parts])


def _searched_rows(
    groups: Array, importance: Array, bits: int, *, zero: bool, steps: int
) -> tuple[Array, Array]:
    best_scale, best_shift = scales_of(groups, bits, zero=zero)
    least = np.full_like(best_scale, np.inf)
    for step in range(steps if steps > 1 else 0):
        share = 1.0 - min(SHRINK, 8.0 / 2.0**bits) * step / steps
        scale, shift = scales_of(groups * share, bits, zero=zero)
        error = rounded(groups, scale, shift, bits, zero=zero)
        error -= groups
        error *= error
        error *= importance
        lost = error.sum(axis=-1, keepdims=True)
        better = lost < least
        best_scale, best_shift = np.where(better, scale, best_scale), np.where(better, shift, best_shift)
        least = np.minimum(least, lost)
    return best_scale, best_shift


def inverse_factor(hessian: NDArray[np.float64]) -> NDArray[np.float64]:
    """The upper triangular U with U^T U = H^-1.

    With the order of rows and columns reversed, H = R R^T where R is upper triangular; then U = R^-1. Cholesky fails on
    a matrix that is not positive definite, which damping rules out.
    """
    upper = np.linalg.cholesky(hessian[::-1, ::-1])[::-1, ::-1]
    return _inverse(np.ascontiguousarray(upper))


def _inverse(upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse of an upper triangular matrix, by halves."""
    size = len(upper)
    if size <= 64:
        return np.triu(np.linalg.inv(upper))
    half = size // 2
    found = np.zeros_like(upper)
    found[:half, :half] = _inverse(upper[:half, :half])
    found[half:, half:] = _inverse(upper[half:, half:])
    found[:half, half:] = -found[:half, :half] @ (upper[:half, half:] @ found[half:, half:])
    return found
