"""GPTQ: columns are rounded one after another, and the error of each is made up for in those that follow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError

from .rounding import SCALE_BITS, Array, Quantized, asymmetric, grouped, rounded, scales_of, symmetric

__all__ = ["gptq", "gptq_searched", "inverse_factor"]

BLOCK = 128
"""Columns whose updates of the rest are applied together (Frantar 2022, section 3.3, step 2)."""

WIDEST = 16_384
"""Inputs of a matrix: the Hessian has as many rows and columns."""

WIDE, NARROW, STEPS = 1.2, 0.4, 48
"""Ranges of a group that are searched, in shares of its own; the reference code searches from 1 to 0.2."""

_SMALL = 32
_ROWS = 32  # rows whose scales are searched together: they stay in the cache


def gptq(
    matrix: Array,
    activations: Array,
    bits: int,
    group: int = 0,
    *,
    order: bool = False,
    damping: float = 0.01,
) -> Quantized:
    """GPTQ as published (Frantar 2022, 2210.17323, Algorithm 1): asymmetric, each group's scale from its full range.

    Each column q = round(w) leaves the error (w - q) / U_jj, where U^T U is the inverse of H = 2 X^T X + damping; the
    later columns j' take error x U_jj' off. Scales are those of the original weights of each group (``--static-groups``
    of the reference code), so that ``order`` (``--act-order``) leaves the groups where they are.

    Args:
        matrix: (outputs, inputs).
        activations: (tokens, inputs) to calibrate on.
        bits: of a code.
        group: weights that share a scale and zero point; 0 a row.
        order: whether columns are taken by decreasing H_jj instead of from the left.
        damping: added to the diagonal of H, as a share of its mean (section 3.3, step 3).

    Raises:
        InputError: a group that does not divide the row, or more inputs than :data:`WIDEST`.
    """
    sequence, factor = _curvature(matrix, activations, group, order=order, damping=damping)
    scale, shift = scales_of(grouped(matrix, group), bits, zero=True)
    return _with_scales(matrix, (scale, shift), bits, sequence, factor)


def gptq_searched(
    matrix: Array,
    activations: Array,
    bits: int,
    group: int = 0,
    *,
    steps: int = STEPS,
    damping: float = 0.001,
) -> Quantized:
    """GPTQ by activation order with searched scales; no row of it loses more than plain rounding does on ``activations``.

    Beside :func:`gptq`, the range of each group is stretched and shrunk, as by ``--mse`` of the reference code, for the
    least sum of (w - q)^2 / U_jj^2: what a column's error costs after later ones made up for it (Frantar 2022, eq. 2).
    The weights of inputs with outliers, which nothing can make up for, then come to lie near codes. Damping is less than
    in :func:`gptq`, since a mean that a few outliers make is large for all other inputs. Rows that plain rounding,
    symmetric or asymmetric, does better on ``activations`` are taken from that; both have such codes.

    Args:
        matrix: (outputs, inputs).
        activations: (tokens, inputs) to calibrate on.
        bits: of a code.
        group: weights that share a scale and zero point; 0 a row.
        steps: ranges that are tried for each group.
        damping: as of :func:`gptq`.

    Raises:
        InputError: as :func:`gptq`.
    """
    sequence, factor = _curvature(matrix, activations, group, order=True, damping=damping)
    importance = np.empty(matrix.shape[1])
    importance[sequence] = 1.0 / np.diagonal(factor).astype(np.float64) ** 2
    shares = grouped((importance / importance.mean())[None, :].astype(matrix.dtype), group)[0]
    found = _with_scales(
        matrix, _searched(grouped(matrix, group), shares, bits, steps), bits, sequence, factor
    )
    best, least = found.weights, _lost(matrix, found.weights, activations)
    for plain in (asymmetric, symmetric):
        weights = plain(matrix, bits, group).weights
        lost = _lost(matrix, weights, activations)
        best = np.where((lost < least)[:, None], weights, best)
        least = np.minimum(least, lost)
    return Quantized(best, found.stored_bits)


def _lost(matrix: Array, weights: Array, activations: Array) -> NDArray[np.float64]:
    """What each row (output) loses on the activations."""
    found: NDArray[np.float64] = np.square(activations @ (weights - matrix).T, dtype=np.float64).sum(axis=0)
    return found


def _curvature(
    matrix: Array, activations: Array, group: int, *, order: bool, damping: float
) -> tuple[NDArray[np.intp], Array]:
    """The sequence of columns, and U of the Hessian in this sequence."""
    if matrix.shape[1] > WIDEST:
        raise InputError(
            f"GPTQ of {matrix.shape[1]:,} inputs: expected at most {WIDEST:,}, whose Hessian takes 2 GB"
        )
    if group < 0:
        raise InputError(f"GPTQ with a group of {group}: expected 0 (a row) or more")
    hessian = 2.0 * (activations.T @ activations).astype(np.float64)
    diagonal = np.diagonal(hessian).copy()
    hessian[np.diag_indices_from(hessian)] += damping * diagonal.mean() if diagonal.any() else 1.0
    sequence = np.argsort(-diagonal, kind="stable") if order else np.arange(matrix.shape[1])
    return sequence, inverse_factor(hessian[np.ix_(sequence, sequence)]).astype(np.float32)


def _with_scales(
    matrix: Array, scales: tuple[Array, Array], bits: int, sequence: NDArray[np.intp], factor: Array
) -> Quantized:
    """The columns in turn, with scales and zero points (rows, groups, 1) as given."""
    scale, shift = (np.ascontiguousarray(a[:, :, 0].T, dtype=np.float32) for a in scales)
    of_column = sequence // (matrix.shape[1] // len(scale))

    def quantize(column: Array, at: int) -> Array:
        g = of_column[at]
        return rounded(column, scale[g], shift[g], bits, zero=True)

    weights = np.empty_like(matrix)
    # transposed, (inputs, outputs), so that a column lies in one piece
    weights[:, sequence] = _in_turn(matrix.T[sequence].astype(np.float32), factor, quantize).T
    return Quantized(weights, matrix.size * bits + scale.size * (SCALE_BITS + bits))


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


def _searched(groups: Array, importance: Array, bits: int, steps: int) -> tuple[Array, Array]:
    """Scale and zero point (rows, groups, 1) of each group that lose least, its range from :data:`WIDE` times down to
    :data:`NARROW`; ``importance`` is (groups, group).
    """
    parts = [
        _searched_rows(groups[at : at + _ROWS], importance, bits, steps)
        for at in range(0, len(groups), _ROWS)
    ]
    return np.concatenate([scale for scale, _ in parts]), np.concatenate([shift for _, shift in parts])


def _searched_rows(groups: Array, importance: Array, bits: int, steps: int) -> tuple[Array, Array]:
    ends = np.stack([groups.min(axis=-1), groups.max(axis=-1)], axis=-1)
    best_scale, best_shift = scales_of(ends, bits, zero=True)
    least = np.full_like(best_scale, np.inf)
    for share in np.linspace(WIDE, NARROW, steps).astype(groups.dtype):
        scale, shift = scales_of(ends * share, bits, zero=True)
        exact = groups / scale
        error = np.rint(exact)
        np.clip(error, -shift, 2**bits - 1 - shift, out=error)
        error -= exact
        error *= error
        lost = np.einsum("rgi,gi->rg", error, importance)[:, :, None] * scale * scale
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
