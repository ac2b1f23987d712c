"""Reading the header of a ``.safetensors`` file, and single tensors of it through a memory map.

Format: eight bytes of header length, the header in JSON (name: dtype, shape, data_offsets), then the data
(huggingface/safetensors README). Nothing of a file is run.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError

__all__ = ["Entry", "entries", "raw", "widened"]

HEADER_LIMIT = 100_000_000
"""Bytes of a header, as in the reference implementation."""

_WIDTH = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1}
_RAW: dict[str, type[Any]] = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16, "F8_E4M3": np.uint8, "F8_E5M2": np.uint8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor of a file: its dtype as written, shape, and where its bytes begin."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int

    @property
    def floating(self) -> bool:
        """Whether its values are floating-point numbers that can be read here."""
        return self.dtype in _WIDTH


def entries(path: Path, size: int) -> dict[str, Entry]:
    """The tensors of a file of ``size`` bytes, by name.

    Raises:
        InputError: the file is no such file, or shorter than its header says.
    """
    with path.open("rb") as file:
        first = file.read(8)
        length = int.from_bytes(first, "little")
        if len(first) < 8 or length > HEADER_LIMIT or not length:
            raise InputError(
                f"{path}: expected a .safetensors file, found no length of a header in its first 8 bytes"
            )
        if 8 + length > size:
            raise InputError(f"{path}: is truncated: its header has {length:,} bytes, the file {size:,}")
        text = file.read(length)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected a header in JSON, but {error}") from None
    if not isinstance(header, dict):
        raise InputError(f"{path}: expected a header of tensors by name, found a {type(header).__name__}")
    return {
        name: _entry(path, name, value, 8 + length, size)
        for name, value in header.items()
        if name != "__metadata__"
    }


def _entry(path: Path, name: str, value: object, base: int, size: int) -> Entry:
    where = f"{path}: tensor {name!r}"
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected dtype, shape and data_offsets")
    dtype, shape, offsets = (value.get(key) for key in ("dtype", "shape", "data_offsets"))
    numbers = [shape, offsets]
    if not isinstance(dtype, str) or not all(
        isinstance(n, list) and all(type(i) is int and i >= 0 for i in n) for n in numbers
    ):
        raise InputError(f"{where}: expected dtype, shape and data_offsets, found {str(value)[:100]}")
    assert isinstance(shape, list)
    assert isinstance(offsets, list)
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        raise InputError(f"{where}: expected data_offsets [begin, end], found {offsets}")
    if base + offsets[1] > size:
        raise InputError(
            f"{where}: is truncated: it ends at byte {base + offsets[1]:,}, the file at {size:,}"
        )
    needed = math.prod(shape) * _WIDTH.get(dtype, 0)
    if dtype in _WIDTH and offsets[1] - offsets[0] != needed:
        raise InputError(
            f"{where}: has {offsets[1] - offsets[0]:,} bytes, but {dtype} of shape {tuple(shape)} takes {needed:,}"
        )
    return Entry(name, dtype, tuple(shape), base + offsets[0])


def raw(path: Path, entry: Entry) -> NDArray[Any]:
    """The tensor as it lies in the file, mapped and not read; formats that NumPy lacks as their bits."""
    if not math.prod(entry.shape):
        return np.zeros(entry.shape, _RAW[entry.dtype])
    return np.memmap(path, _RAW[entry.dtype], mode="r", offset=entry.start, shape=entry.shape)


def widened(values: NDArray[Any], dtype: str) -> NDArray[np.float32]:
    """The values as float32; NaN of any format stays NaN."""
    if dtype == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    if dtype == "F8_E5M2":
        return (values.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
    if dtype == "F8_E4M3":
        found: NDArray[np.float32] = _E4M3[values]
        return found
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _e4m3_table() -> NDArray[np.float32]:
    code = np.arange(256)
    exponent, mantissa = (code >> 3) & 15, code & 7
    normal = np.ldexp(1.0 + mantissa / 8.0, exponent - 7)
    value = np.where(exponent == 0, np.ldexp(mantissa / 8.0, -6), normal)
    value = np.where((code & 127) == 127, np.nan, value)
    return np.where(code > 127, -value, value).astype(np.float32)


_E4M3 = _e4m3_table()
