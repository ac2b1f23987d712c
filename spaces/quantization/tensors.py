"""Matrices that a user gives: ``.npy`` files, and tensors of ``.safetensors`` files as ``file.safetensors:name``.

Files are mapped, and only the rows that are used are read (of a ``.npy`` file in Fortran order all columns). A matrix of more than :data:`LIMIT` values is not read whole:
rows are drawn by seed, which :attr:`Matrix.note` tells.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError, nearest

from . import safetensors

__all__ = ["LIMIT", "Matrix", "read_matrix"]

LIMIT = 2**24
"""Values of a matrix that are read; of a larger one so many in whole rows."""

WIDEST = 65_536
"""Values of a row."""

_MAGIC = b"\x93NUMPY"
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix in float32, where it is from, and what is to be said of it ("" where nothing)."""

    values: NDArray[np.float32]
    source: str
    note: str = ""


def read_matrix(text: str, *, rows: str = "outputs", seed: int = 0, limit: int = LIMIT) -> Matrix:
    """A matrix of floating-point numbers from a file.

    Args:
        text: the path of a ``.npy`` file, or ``file.safetensors`` with ``:tensor`` behind it (which may be left out
            where the file has one matrix only).
        rows: what its rows are, for messages: (outputs, inputs) weights or (tokens, inputs) activations.
        seed: draws the rows of a matrix with more than ``limit`` values.
        limit: values that are read.

    Raises:
        InputError: no such file or tensor, a file that is cut or no such file at all, integers, another number of
            dimensions, too wide, all zeros, or values that are no finite numbers; each with the place.
    """
    path, name = _split(text)
    size = _size(path)
    if path.suffix == ".npy":
        values, dtype, where = _mapped_npy(path, size), "", str(path)
    elif path.suffix == ".safetensors":
        entry = _entry(path, size, name)
        values, dtype, where = safetensors.raw(path, entry), entry.dtype, f"{path}: tensor {entry.name!r}"
    else:
        raise InputError(f"{path}: expected a .npy or .safetensors file, found {path.suffix or 'no ending'}")
    if values.ndim != 2:
        raise InputError(f"{where}: has shape {values.shape}, expected two dimensions ({rows}, inputs)")
    if not values.size:
        raise InputError(f"{where}: has shape {values.shape} and no values")
    if values.shape[1] > min(WIDEST, limit):
        raise InputError(
            f"{where}: has rows of {values.shape[1]:,} values, expected at most {min(WIDEST, limit):,}"
        )
    chosen, note = _drawn(values, seed, limit, rows)
    found = safetensors.widened(chosen, dtype)
    _check(found, where)
    return Matrix(found, where, f"{where}: {note}" if note else "")


def _split(text: str) -> tuple[Path, str]:
    """The path, and the tensor's name behind the file's ending."""
    head, mark, name = text.partition(".safetensors:")
    return (Path(head + ".safetensors"), name) if mark else (Path(text), "")


def _size(path: Path) -> int:
    try:
        found = os.stat(path)  # noqa: PTH116 - one call for kind and size
    except (OSError, ValueError) as error:
        names = [p.name for p in path.parent.glob(f"*{path.suffix}")] if path.parent.is_dir() else []
        hint = nearest(path.name, names)
        hint = hint if hint.startswith("; did you mean") else ""
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}{hint}") from None
    if not stat.S_ISREG(found.st_mode):
        raise InputError(
            f"{path}: expected a file, found {'a folder' if path.is_dir() else 'something else'}"
        )
    if not found.st_size:
        raise InputError(f"{path}: the file is empty")
    return found.st_size


def _mapped_npy(path: Path, size: int) -> NDArray[Any]:
    """The array of a ``.npy`` file, mapped. Pickled objects are refused unread."""
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise InputError(f"{path}: expected a .npy file, found no mark of NumPy in its first bytes")
        file.seek(0)
        try:
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, by_column, dtype = read(file)
        except (ValueError, EOFError, SyntaxError, RecursionError, MemoryError) as error:
            raise InputError(f"{path}: its header cannot be read: {error}") from None
        begin = file.tell()
    if any(count < 0 for count in shape):
        raise InputError(f"{path}: has shape {shape}, expected counts of 0 or more")
    if dtype.kind != "f" or dtype.itemsize > 8:
        what = "objects, which are not read" if dtype.hasobject else f"{dtype}"
        raise InputError(f"{path}: holds {what}, expected floating-point numbers (float16, float32, float64)")
    needed = begin + dtype.itemsize * int(np.prod(shape, dtype=object))
    if needed > size:
        raise InputError(
            f"{path}: is truncated: shape {shape} in {dtype} takes {needed:,} bytes, the file has {size:,}"
        )
    if 0 in shape:
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, mode="r", offset=begin, shape=shape, order="F" if by_column else "C")


def _entry(path: Path, size: int, name: str) -> safetensors.Entry:
    known = safetensors.entries(path, size)
    if name:
        if name not in known:
            raise InputError(f"{path}: has no tensor {name!r}{nearest(name, known)}")
        entry = known[name]
    else:
        matrices = [e for e in known.values() if e.floating and len(e.shape) == 2]
        if len(matrices) != 1:
            listed = ", ".join(e.name for e in matrices[:_SHOWN]) + (
                ", ..." if len(matrices) > _SHOWN else ""
            )
            raise InputError(
                f"{path}: has {len(matrices)} matrices, name one behind the file as in {path.name}:NAME; {listed or 'none'}"
            )
        entry = matrices[0]
    if not entry.floating:
        raise InputError(
            f"{path}: tensor {entry.name!r} holds {entry.dtype}, expected F64, F32, F16, BF16, F8_E4M3 or F8_E5M2"
        )
    return entry


def _drawn(values: NDArray[Any], seed: int, limit: int, rows: str) -> tuple[NDArray[Any], str]:
    if values.size <= limit:
        return np.asarray(values), ""
    count = max(1, limit // values.shape[1])
    chosen = np.sort(np.random.default_rng(seed).choice(values.shape[0], count, replace=False))
    note = f"{count:,} of its {values.shape[0]:,} rows ({rows}) were read, drawn with seed {seed}"
    if values.flags.c_contiguous:
        return np.asarray(values[chosen]), note
    # by column: the file is passed over once from its beginning, not once for each row
    note += "; it is stored by columns, so that all of it was passed over"
    return np.take(values.T, chosen, axis=1).T, note


def _check(values: NDArray[np.float32], where: str) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            f"{where}: {int(bad.sum()):,} values are NaN, infinite or beyond float32, the first in row {row}, column "
            f"{column}; expected finite numbers"
        )
    if not values.any():
        raise InputError(f"{where}: all values are 0, so that nothing can be lost")
