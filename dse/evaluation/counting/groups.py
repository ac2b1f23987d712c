"""Groups of dimensions: every state in which the rest of the conditions can find them, and in how many ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bulk import Bulk

__all__ = ["Group", "Leaf", "States", "Weights", "grouped", "joined", "packed", "picked", "total_of", "ways"]

Weights = NDArray[Any]
"""Numbers of ways, as int64, or as Python integers where they could pass it."""

_EXACT = 2**62  # what stays below fits int64
_SPARSE = 2**17  # rows up to which arrays with a place for every key may be much longer than the rows
_DOUBLE = 2**53  # what stays below is exact in double precision


@dataclass(frozen=True, slots=True)
class Leaf:
    """The value numbers of one dimension, those of state i at ``starts[i]`` up to ``starts[i + 1]``."""

    dimension: int
    digits: NDArray[np.intp]
    starts: NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The legal choices for some dimensions (the bits of ``dims``), by what undecided conditions still read of them.

    Row i of the ``columns`` (node -> values (n,)) is a state, ``weights[i]`` the number of ways to be in it,
    ``total`` their sum. ``source`` is what the group was made of.
    """

    dims: int
    columns: Mapping[int, Bulk]
    weights: Weights
    total: int
    source: Leaf | tuple[Group, Group]

    def __len__(self) -> int:
        return len(self.weights)


class States(NamedTuple):
    """Different keys: a row that has each, the ways of all rows that have it, and the number of each row's key."""

    rows: NDArray[np.intp]
    ways: Weights
    place: NDArray[np.intp]


def picked(bulk: Bulk, rows: NDArray[np.intp]) -> Bulk:
    """Some rows of a column."""
    values = bulk.values if bulk.values.ndim else np.broadcast_to(bulk.values, 1)
    if not bulk.values.ndim:
        rows = np.zeros_like(rows)
    return Bulk(
        values[rows], None if bulk.undefined is None else np.broadcast_to(bulk.undefined, values.shape)[rows]
    )


def joined(parts: Sequence[Bulk]) -> Bulk:
    """Columns one below the other."""
    values = np.concatenate([part.values for part in parts])
    if all(part.undefined is None for part in parts):
        return Bulk(values)
    zeros = (np.zeros(len(part.values), np.uint8) for part in parts)
    return Bulk(
        values,
        np.concatenate(
            [z if p.undefined is None else p.undefined for p, z in zip(parts, zeros, strict=True)]
        ),
    )


def packed(columns: Iterable[Bulk], n: int) -> tuple[NDArray[np.int64], int]:
    """A number for each of ``n`` rows, the same where all columns are the same to the bit, and a bound on them."""
    key, radix = np.zeros(n, dtype=np.int64), 1
    for column in columns:
        for part in column:
            if part is None:
                continue
            codes, size = _codes(part)
            if radix * size >= _EXACT:
                key, radix = _ranked(key)
            key, radix = key * size + codes, radix * size
    return key, radix


def _codes(values: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    if not len(values):
        return np.zeros(0, dtype=np.int64), 1
    if values.dtype == np.bool_:
        return values.astype(np.int64), 2
    bits = values
    if values.dtype == np.float64:  # by its bits, so that 0.0 and -0.0 stay apart
        bits = np.ascontiguousarray(values).view(np.int64)
        with np.errstate(invalid="ignore"):
            whole = values.astype(np.int64)
        if np.array_equal(whole.astype(np.float64).view(np.int64), bits):
            bits = whole
    low, high = int(bits.min()), int(bits.max())
    if high - low < 4 * len(bits) + 64:
        return bits.astype(np.int64) - low, high - low + 1
    return _ranked(bits)


def _ranked(codes: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    distinct, ranks = np.unique(codes, return_inverse=True)
    return ranks.astype(np.int64), max(len(distinct), 1)


def grouped(key: NDArray[np.int64], radix: int, weights: Weights, total: int) -> States:
    """The different keys below ``radix``; ``total`` bounds the sum of all weights, which are positive."""
    if radix > 8 * min(len(key), _SPARSE) + len(key) + 4096:
        key, radix = _ranked(key)
    some = np.zeros(radix, dtype=np.intp)
    some[key] = np.arange(len(key), dtype=np.intp)
    if total < _DOUBLE:
        sums: Weights = np.bincount(key, weights, radix).astype(np.int64)
    else:
        sums = np.zeros(radix, dtype=np.int64 if total < _EXACT else np.object_)
        np.add.at(sums, key, weights)
    found = np.flatnonzero(sums)
    place = np.zeros(radix, dtype=np.intp)
    place[found] = np.arange(len(found), dtype=np.intp)
    return States(some[found], sums[found], place[key])


def ways(a: Weights, b: Weights, total: int) -> Weights:
    """Products of weights; ``total`` bounds their sum."""
    if total < _EXACT:
        return a * b
    product: Weights = a.astype(np.object_) * b.astype(np.object_)
    return product


def total_of(weights: Weights, bound: int) -> int:
    """The sum of weights; ``bound`` is one on it."""
    return int(weights.sum()) if bound < _EXACT else sum(map(int, weights))
