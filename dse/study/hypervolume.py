"""The hypervolume of a front: how much of the space below a reference point it dominates.

All objectives are minimized. The volumes are sums of products of positive numbers, added with one rounding
at each level, so nothing cancels. The result does not depend on the order or repetition of the vectors.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from math import fsum, inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dse.study.dominance import checked, nondominated

__all__ = ["hypervolume", "normalized_hypervolume"]

Vector = tuple[float, ...]


def hypervolume(values: ArrayLike, reference: ArrayLike) -> float:
    """The volume between the vectors and ``reference``.

    Vectors that are not below the reference in every objective add nothing. One that is, and is -inf
    somewhere, makes the volume inf; so does a volume or distance past the largest double. Sweeps for one to three objectives; with more, slices along the last
    objective, which is exact but slow beyond some hundred vectors.

    Args:
        values: objective vectors, shape (n, k), k >= 1; n may be 0.
        reference: a finite point, shape (k,).

    Raises:
        ValueError: wrong shapes, a NaN, or a reference that is not finite.
    """
    rows = checked(values)
    corner = _point("reference", reference, rows.shape[1])
    rows = rows[(rows < corner).all(axis=1)]
    if not rows.size:
        return 0.0
    with np.errstate(over="ignore"):
        if np.isinf(corner - rows).any():
            return inf
    rows = np.unique(rows[nondominated(rows)], axis=0)
    try:
        return _volume([tuple(row) for row in rows.tolist()], tuple(corner.tolist()))
    except OverflowError:  # of fsum
        return inf


def normalized_hypervolume(values: ArrayLike, ideal: ArrayLike, reference: ArrayLike) -> float:
    """The hypervolume as a share, 0 to 1, of the box from ``ideal`` to ``reference``.

    Values below the ideal count as the ideal.

    Args:
        values: objective vectors, shape (n, k), k >= 1.
        ideal: the best value of each objective, finite, shape (k,).
        reference: finite and above the ideal in every objective, shape (k,).

    Raises:
        ValueError: wrong shapes, a NaN, points that are not finite, or an ideal not below the reference.
    """
    rows = checked(values)
    best = _point("ideal", ideal, rows.shape[1])
    corner = _point("reference", reference, rows.shape[1])
    with np.errstate(over="ignore"):
        span = corner - best
    if not (best < corner).all() or not np.isfinite(span).all():
        raise ValueError(
            f"ideal must be below reference, but got ideal {best.tolist()} and reference {corner.tolist()}"
        )
    inside = np.clip(rows, best, corner)
    return min(1.0, hypervolume((inside - best) / span, np.ones(rows.shape[1])))


def _point(name: str, point: ArrayLike, k: int) -> NDArray[np.float64]:
    array = np.asarray(point, dtype=np.float64)
    if array.shape != (k,) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be {k} finite numbers, but got {array.tolist()}")
    return array


def _volume(front: list[Vector], corner: Vector) -> float:
    """The volume of distinct vectors below ``corner``, none of which dominates another."""
    if len(corner) == 1:
        return corner[0] - min(front)[0]
    if len(corner) == 2:
        return _area(front, corner)
    if len(corner) == 3:
        return _solid(front, corner)
    return _slices(front, corner)


def _area(front: list[Vector], corner: Vector) -> float:
    """Two objectives: one rectangle a step of the staircase."""
    steps = sorted(front)
    ends = [*(x for x, _ in steps[1:]), corner[0]]
    return fsum((end - x) * (corner[1] - y) for (x, y), end in zip(steps, ends, strict=True))


def _solid(front: list[Vector], corner: Vector) -> float:
    """Three objectives: sweep along the third, and give each vector the area it adds to the staircase."""
    xs: list[float] = []  # ascending
    ys: list[float] = []  # descending
    volumes: list[float] = []
    for x, y, z in sorted(front, key=lambda point: (point[2], point)):
        start = stop = bisect_left(xs, x)
        # The new area is cut into strips below the old steps that the vector replaces.
        strips: list[float] = []
        from_x, ceiling = x, ys[start - 1] if start else corner[1]
        while stop < len(xs) and ys[stop] >= y:
            strips.append((xs[stop] - from_x) * (ceiling - y))
            from_x, ceiling = xs[stop], ys[stop]
            stop += 1
        strips.append(((xs[stop] if stop < len(xs) else corner[0]) - from_x) * (ceiling - y))
        xs[start:stop], ys[start:stop] = [x], [y]
        volumes.append(fsum(strips) * (corner[2] - z))
    return fsum(volumes)


def _slices(front: list[Vector], corner: Vector) -> float:
    """More objectives: between two neighbouring values of the last one, the volume of the others is constant."""
    levels = sorted({point[-1] for point in front})
    volumes: list[float] = []
    below: list[Vector] = []
    ordered = sorted(front, key=lambda point: (point[-1], point))
    taken = 0
    for level, following in pairwise([*levels, corner[-1]]):
        while taken < len(ordered) and ordered[taken][-1] == level:
            below.append(ordered[taken][:-1])
            taken += 1
        rows = np.array(below)
        rows = np.unique(rows[nondominated(rows)], axis=0)
        below = [tuple(row) for row in rows.tolist()]
        volumes.append(_volume(below, corner[:-1]) * (following - level))
    return fsum(volumes)
