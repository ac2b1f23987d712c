"""GPTQ: columns are rounded one after another, and the error of each is made up for in those that follow."""

from __future__ import annotations

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

_SMALL = 64
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
    hessian = 2.0 * (activations.T @ activations).astype(np.float64)
    diagonal = np.diagonal(hessian).copy()
    dead = diagonal == 0
    hessian[dead, dead] = 1.0
    hessian[np.diag_indices_from(hessian)] += damping * diagonal.mean() if diagonal.any() else 1.0
    groups = grouped(matrix, group)
    weights_of = grouped(np.broadcast_to(diagonal, (1, len(diagonal))).astype(matrix.dtype), group)
    scale, shift = _searched(groups, weights_of, bits, zero=zero, steps=steps)
    width = groups.shape[-1]
    sequence = np.argsort(-diagonal, kind="stable") if order else np.arange(matrix.shape[1])
    factor = inverse_factor(hessian[np.ix_(sequence, sequence)]).astype(np.float32)
    of_column = sequence // width
    left = (
        np.where(dead, 0.0, matrix).T[sequence].astype(np.float32)
    )  # (inputs, outputs): a column lies in one piece
    scales = np.ascontiguousarray(scale[:, :, 0].T, dtype=np.float32)
    shifts = np.ascontiguousarray(shift[:, :, 0].T, dtype=np.float32)
    found = np.empty_like(left)
    columns = left.shape[0]
    for start in range(0, columns, BLOCK):
        stop = min(start + BLOCK, columns)
        errors = np.empty((stop - start, left.shape[1]), dtype=np.float32)
        for at in range(start, stop):
            g = of_column[at]
            found[at] = rounded(left[at], scales[g], shifts[g], bits, zero=zero)
            errors[at - start] = (left[at] - found[at]) / factor[at, at]
            edge = min(
                -(-(at + 1) // _SMALL) * _SMALL, stop
            )  # near columns at once, the others of the block later
            left[at + 1 : edge] -= factor[at, at + 1 : edge, None] * errors[at - start]
            if at + 1 == edge < stop:
                first = max(start, edge - _SMALL)
                left[edge:stop] -= factor[first:edge, edge:stop].T @ errors[first - start : edge - start]
        left[stop:] -= factor[start:stop, stop:].T @ errors
    weights = np.empty_like(matrix)
    weights[:, sequence] = found.T
    stored = matrix.size * bits + scale.size * (SCALE_BITS + (bits if zero else 0))
    return Quantized(weights, stored)


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
    if size <= _SMALL:
        return np.triu(np.linalg.inv(upper))
    half = size // 2
    found = np.zeros_like(upper)
    found[:half, :half] = _inverse(upper[:half, :half])
    found[half:, half:] = _inverse(upper[half:, half:])
    found[:half, half:] = -found[:half, :half] @ (upper[:half, half:] @ found[half:, half:])
    return found
