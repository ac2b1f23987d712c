"""Which vectors dominate which: exact, vectorized, in memory linear in the number of rows.

Every objective is minimized. A row is *dominated* when another row is at most as large in every objective
and smaller in one; so equal rows never dominate each other. Infinities are ordinary values here, NaN is refused.

Inside, vectors are kept as columns, shape (k, n), since every step compares one objective at a time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["checked", "covered", "front_of_sorted", "groups", "nondominated", "thin"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_SAMPLE = 1024  # rows looked at to find the guards that discard most of a large set
_GUARDS = 24
_FEW = 8  # that many vectors are compared one by one
_LEAF = 48  # that many sorted rows are compared all with all
_PAIRS = 1 << 15  # so many comparisons are done at once


def checked(values: ArrayLike, k: int | None = None) -> Floats:
    """``values`` as a float64 array of shape (n, k) in which -0.0 has become 0.0.

    Raises:
        ValueError: another shape, no objective, or a NaN.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] < 1 or (k is not None and array.shape[1] != k):
        raise ValueError(f"values must have shape (n, {k or 'k >= 1'}), but got {array.shape}")
    array = array + 0.0
    if np.isnan(array).any():
        row = int(np.flatnonzero(np.isnan(array).any(axis=1))[0])
        raise ValueError(f"values must not be NaN, but row {row} is {array[row].tolist()}")
    return array


def nondominated(values: ArrayLike) -> Mask:
    """Which rows no other row dominates. All duplicates of a non-dominated row are kept.

    Args:
        values: objective vectors to minimize, shape (n, k), k >= 1; infinities are allowed.

    Returns:
        A mask of shape (n,).

    Raises:
        ValueError: the shape is another, or a value is NaN.
    """
    columns = np.ascontiguousarray(checked(values).T)
    mask = np.zeros(columns.shape[1], dtype=np.bool_)
    rows = thin(columns)
    columns = columns[:, rows]
    order, starts = groups(columns)
    distinct = np.zeros(starts.size, dtype=np.bool_)
    distinct[front_of_sorted(columns[:, order[starts]])] = True
    mask[rows[order]] = np.repeat(distinct, np.diff(np.append(starts, order.size)))
    return mask


def thin(columns: Floats) -> Ints:
    """Indices of the rows that remain when rows dominated by a few good ones are dropped.

    Linear in n. Only dominated rows go, so the front of the rest is the front of all.
    """
    n = columns.shape[1]
    rows = np.arange(n, dtype=np.int64)
    if n <= 4 * _SAMPLE:
        return rows
    sample = columns[:, :: -(-n // _SAMPLE)]
    order, starts = groups(sample)
    sample = sample[:, order[starts]]
    for guard in _strongest(sample[:, front_of_sorted(sample)]).T:
        beaten = np.flatnonzero(_at_least(columns, guard))
        beaten = beaten[(columns[:, beaten] != guard[:, None]).any(axis=0)]
        if beaten.size:
            keep = np.ones(rows.size, dtype=np.bool_)
            keep[beaten] = False
            rows, columns = rows[keep], columns[:, keep]
    return rows


def groups(columns: Floats, then: Ints | None = None) -> tuple[Ints, Ints]:
    """The lexicographic order of the rows (ties by ``then``), and where in it each distinct row starts."""
    keys = columns[::-1] if then is None else [then, *columns[::-1]]
    order = np.lexsort(keys).astype(np.int64, copy=False)
    ordered = columns[:, order]
    first = np.ones(order.size, dtype=np.bool_)
    first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    return order, np.flatnonzero(first).astype(np.int64, copy=False)


def front_of_sorted(columns: Floats) -> Ints:
    """Ascending indices of the non-dominated among distinct, lexicographically sorted rows.

    Only earlier rows can dominate later ones. With three and more objectives: the front of the first half
    thins the second half (in all but the first objective, which is sorted), then the rest is solved alike.
    """
    k, n = columns.shape
    if k == 1:
        return np.arange(min(n, 1), dtype=np.int64)
    if k == 2:
        best = np.minimum.accumulate(columns[1])
        keep = np.ones(n, dtype=np.bool_)
        keep[1:] = columns[1, 1:] < best[:-1]
        return np.flatnonzero(keep).astype(np.int64, copy=False)
    if n <= _LEAF:
        tail = columns[1:]
        pairs = (tail[:, :, None] <= tail[:, None, :]).all(axis=0)
        return np.flatnonzero(~np.triu(pairs, 1).any(axis=0)).astype(np.int64, copy=False)
    half = n // 2
    first = front_of_sorted(columns[:, :half])
    rest = half + np.flatnonzero(~covered(columns[1:, first], columns[1:, half:]))
    second = rest[front_of_sorted(columns[:, rest])]
    return np.concatenate([first, second])


def covered(front: Floats, columns: Floats) -> Mask:
    """Which rows have a row of ``front`` that is at most as large in every objective.

    Args:
        front: shape (k, t), any vectors.
        columns: shape (k, n).

    Returns:
        A mask of shape (n,). Divide and conquer over the objectives: about n log(t)^(k-2) steps.
    """
    k, t = front.shape
    n = columns.shape[1]
    if not t or not n:
        return np.zeros(n, dtype=np.bool_)
    mask: Mask = np.zeros(n, dtype=np.bool_)
    if k == 1:
        mask |= columns[0] >= front[0].min()
    elif t <= _FEW:
        for vector in front.T:
            mask |= _at_least(columns, vector)
    elif k == 2:
        order = np.argsort(front[0], kind="stable")
        best = np.minimum.accumulate(front[1, order])
        place = np.searchsorted(front[0, order], columns[0], side="right")
        mask |= (place > 0) & (best[np.maximum(place - 1, 0)] <= columns[1])
    elif t * n <= _PAIRS:
        mask |= (front[:, :, None] <= columns[:, None, :]).all(axis=0).any(axis=0)
    else:
        return _covered_by_halves(front, columns)
    return mask


def _covered_by_halves(front: Floats, columns: Floats) -> Mask:
    """Split both sets at a value of the first objective; across the split that objective is decided."""
    mask = np.zeros(columns.shape[1], dtype=np.bool_)
    if front[0].max() <= columns[0].min():
        return covered(front[1:], columns[1:])
    if front[0].min() > columns[0].max():
        return mask
    both = np.concatenate([front[0], columns[0]])
    pivot = np.partition(both, both.size // 2)[both.size // 2]
    if pivot == both.max():
        pivot = both[both < pivot].max()
    front_low, low = front[0] <= pivot, np.flatnonzero(columns[0] <= pivot)
    high = np.flatnonzero(columns[0] > pivot)
    mask[low] = covered(front[:, front_low], columns[:, low])
    mask[high] = covered(front[1:, front_low], columns[1:, high])
    high = high[~mask[high]]
    mask[high] = covered(front[:, ~front_low], columns[:, high])
    return mask


def _at_least(columns: Floats, vector: Floats) -> Mask:
    """Which rows are at least as large as ``vector`` in every objective."""
    mask: Mask = columns[0] >= vector[0]
    for column, bound in zip(columns[1:], vector[1:], strict=True):
        mask &= column >= bound
    return mask


def _strongest(front: Floats, count: int = _GUARDS) -> Floats:
    """The vectors of a front with the smallest sum of ranks, at most ``count``, best first."""
    ranks = np.argsort(np.argsort(front, axis=1, kind="stable"), axis=1, kind="stable").sum(axis=0)
    return front[:, np.argsort(ranks, kind="stable")[:count]]
