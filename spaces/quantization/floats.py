"""Rounding to small floating-point numbers: fp8 with a scale a row, blocks of four-bit floats, and NF4's sixteen values.

Formats: E4M3 and E5M2 (Micikevicius 2022, 2209.05433, Table 1: largest values 448 and 57344); E2M1 and E8M0 (OCP
Microscaling Formats 1.0, sections 5.3.3 and 5.4.1: values 0, 0.5, 1, 1.5, 2, 3, 4, 6).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .rounding import Array, Quantized, grouped

__all__ = ["E2M1", "E4M3", "E5M2", "FloatFormat", "fp8", "mxfp4", "nf4", "nvfp4", "to_float"]


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """Bits of the mantissa, the exponent of the least normal number, and the largest value."""

    name: str
    mantissa: int
    least_exponent: int
    largest: float


E4M3 = FloatFormat("e4m3", 3, -6, 448.0)
E5M2 = FloatFormat("e5m2", 2, -14, 57344.0)
E2M1 = FloatFormat("e2m1", 1, 0, 6.0)

MX_GROUP, NV_GROUP, NF_GROUP = 32, 16, 64

NF4 = np.array(
    [
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
        -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
        0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ]
)  # fmt: skip
"""The values of NF4: quantiles of a normal distribution, with an exact 0 (Dettmers 2023, 2305.14314, appendix E)."""


def to_float(values: Array, kind: FloatFormat) -> Array:
    """The nearest numbers of the format, ties to the even one; what is larger becomes the largest (saturating)."""
    _, exponent = np.frexp(values)
    step = np.ldexp(1.0, np.maximum(exponent - 1, kind.least_exponent) - kind.mantissa)
    found: Array = np.clip(np.rint(values / step) * step, -kind.largest, kind.largest).astype(values.dtype)
    return found


def _fp8_rows(matrix: Array, kind: FloatFormat) -> tuple[Array, int]:
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    scale = np.where(largest > 0, largest / kind.largest, 1.0)
    return to_float(matrix / scale, kind) * scale, scale.size


def fp8(matrix: Array, kind: FloatFormat = E4M3) -> Quantized:
    """Eight-bit floats with one fp32 scale a row, which puts the row's largest value on the format's largest
    (2209.05433, section 3).
    """
    values, scales = _fp8_rows(matrix, kind)
    return Quantized(values, matrix.size * 8.0 + scales * 32.0)


def _mx_blocks(matrix: Array) -> Array:
    blocks = grouped(matrix, MX_GROUP)
    largest = np.abs(blocks).max(axis=-1, keepdims=True)
    _, exponent = np.frexp(largest)
    scale = np.ldexp(1.0, np.clip(exponent - 1 - 2, -127, 127))
    found: Array = (to_float(blocks / scale, E2M1) * scale).reshape(matrix.shape).astype(matrix.dtype)
    return found


def mxfp4(matrix: Array) -> Quantized:
    """E2M1 in blocks of 32 with a power of two: 2^(floor(log2 max) - 2) (OCP MX 1.0, section 6.3).

    Raises:
        InputError: 32 does not divide the row.
    """
    bits = matrix.size * 4.0 + matrix.size / MX_GROUP * 8.0
    return Quantized(_mx_blocks(matrix), bits)


def _nv_blocks(matrix: Array) -> Array:
    blocks = grouped(matrix, NV_GROUP)
    whole = float(np.abs(matrix).max()) / (E2M1.largest * E4M3.largest) or 1.0
    largest = np.abs(blocks).max(axis=-1, keepdims=True)
    scale = to_float(largest / (E2M1.largest * whole), E4M3) * whole
    divisor = np.where(scale > 0, scale, 1.0)
    found: Array = (to_float(blocks / divisor, E2M1) * scale).reshape(matrix.shape).astype(matrix.dtype)
    return found


def nvfp4(matrix: Array) -> Quantized:
    """E2M1 in blocks of 16 with an E4M3 scale, and one fp32 scale of the tensor: max / (6 x 448)
    (NVIDIA 2025, 2509.25149, section 2 and appendix C).

    Raises:
        InputError: 16 does not divide the row.
    """
    bits = matrix.size * 4.0 + matrix.size / NV_GROUP * 8.0 + 32.0
    return Quantized(_nv_blocks(matrix), bits)


def nf4(matrix: Array) -> Quantized:
    """NF4: the nearest of sixteen values times the absmax of blocks of 64, kept in fp32 (2305.14314, section 3).

    Raises:
        InputError: 64 does not divide the row.
    """
    blocks = grouped(matrix, NF_GROUP)
    largest = np.abs(blocks).max(axis=-1, keepdims=True)
    scale = np.where(largest > 0, largest, 1.0)
    codes = np.searchsorted((NF4[1:] + NF4[:-1]) / 2.0, blocks / scale)
    values = (NF4[codes] * scale).reshape(matrix.shape).astype(matrix.dtype)
    return Quantized(values, matrix.size * 4.0 + matrix.size / NF_GROUP * 32.0)
