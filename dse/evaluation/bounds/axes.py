"""The axes along which boxes are cut: a long dimension is cut into digits, the most significant first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.hull import Hull
from dse.problem import Problem, Team

__all__ = ["Axis", "Grid"]

_WHOLE = 8
"""A dimension of at most so many values is one axis."""

_DIGIT = 4
"""The values of a digit of a longer dimension, about."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One digit of a dimension: its place on the team's hull is the sum of digit * stride over its axes."""

    dimension: int
    size: int
    stride: int


class Grid:
    """The hull of a team as digit axes. ``axes`` holds those of every dimension, in order of the dimensions.

    ``hull`` are the value numbers per dimension; ``own`` the numbers of a dimension's axes, most significant first. A
    dimension of one value has none, unless all are such.
    """

    def __init__(self, problem: Problem, team: Team) -> None:
        self.problem = problem
        hull = Hull(problem, team)
        self.hull, self.sizes, self.total = hull.axes, hull.sizes, hull.total
        self.axes: list[Axis] = []
        self.own: list[tuple[int, ...]] = []
        for dimension, size in enumerate(self.sizes):
            first = len(self.axes)
            if size > 1 or (dimension == 0 and self.total == 1):
                self.axes += [Axis(dimension, s, stride) for s, stride in digits(size)]
            self.own.append(tuple(range(first, len(self.axes))))

    def axes_of(self, names: Iterable[str]) -> tuple[int, ...]:
        """The numbers of the axes of the named dimensions, ascending."""
        place = {name: at for at, name in enumerate(self.problem.names)}
        return tuple(axis for at in sorted(place[name] for name in names) for axis in self.own[at])

    def combinations(self, names: Iterable[str]) -> int:
        """How many combinations of values the named dimensions have."""
        sizes = dict(zip(self.problem.names, self.sizes, strict=True))
        return math.prod(sizes[name] for name in names)

    def places(self, columns: Mapping[int, NDArray[np.intp]], count: int) -> list[NDArray[np.int64]]:
        """Per dimension the places on the hull (count,) of digit columns; axes that are not given are at 0."""
        found = []
        for own in self.own:
            place = np.zeros(count, dtype=np.int64)
            for axis in own:
                if axis in columns:
                    place += columns[axis].astype(np.int64) * self.axes[axis].stride
            found.append(place)
        return found

    def digits(self, places: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
        """The digits (n,) along an axis of designs given by their places (dimensions, n)."""
        own = self.axes[axis]
        found: NDArray[np.int64] = places[own.dimension] // own.stride
        return found if axis == self.own[own.dimension][0] else found % own.size

    def places_of(self, position: int) -> tuple[int, ...]:
        """The places on the hull, per dimension, of the design at a position; the first dimension is slowest."""
        places = []
        for size in reversed(self.sizes):
            position, place = divmod(position, size)
            places.append(place)
        return tuple(reversed(places))

    def spread(self, values: NDArray[np.generic], dimensions: Sequence[int]) -> NDArray[np.generic]:
        """An array with one axis per dimension as one with an axis per digit; absent places repeat the last value."""
        shape: list[int] = []
        for at, dimension in enumerate(dimensions):
            own = [self.axes[axis] for axis in self.own[dimension]]
            full = math.prod(axis.size for axis in own)
            if full > values.shape[at]:
                index = np.minimum(np.arange(full), values.shape[at] - 1)
                values = np.take(values, index, axis=at)
            shape += [axis.size for axis in own]
        return values.reshape(shape)


def digits(size: int) -> list[tuple[int, int]]:
    """(size, stride) of each digit of a dimension of ``size`` values, most significant first."""
    if size <= _WHOLE:
        return [(size, 1)]
    count = max(2, round(math.log(size, _DIGIT)))
    base = math.ceil(size ** (1 / count))
    found: list[tuple[int, int]] = []
    stride, rest = 1, size
    while rest > 1:
        own = min(base, rest) if rest > _WHOLE or not found else rest
        found.append((own, stride))
        stride *= own
        rest = -(-rest // own)
    return found[::-1]
