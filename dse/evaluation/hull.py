"""The box around a team: its designs are numbered by *positions*, in the order of their indices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.positions import Numbering, Positions
from dse.evaluation.prepared import prepared
from dse.problem import Problem, Team

__all__ = ["Hull"]


class Hull:
    """The value numbers that any box of a team allows, per dimension.

    A *place* is where a value stands among those of its dimension that are allowed; a *position* counts the designs
    of the box, the first dimension slowest.

    Args:
        dimensions: those that are counted, slowest first; default: all, in their order.
    """

    def __init__(self, problem: Problem, team: Team, dimensions: Sequence[int] | None = None) -> None:
        self.problem = problem
        self.team = team
        self.dimensions = tuple(range(len(problem.dimensions)) if dimensions is None else dimensions)
        hull = team.hull(problem.sizes)
        self.names = [problem.names[d] for d in self.dimensions]
        self.axes: list[NDArray[np.intp]] = [_array(problem, hull[d]) for d in self.dimensions]
        self.sizes = [len(axis) for axis in self.axes]
        self.total = math.prod(self.sizes)
        self.numbering = Numbering(self.sizes)

    def digits_of(self, position: int | bytes) -> tuple[int, ...]:
        """The value numbers of the design at a position."""
        if isinstance(position, bytes):
            places = self.places(np.array([position]))
            return tuple(int(axis[place[0]]) for axis, place in zip(self.axes, places, strict=True))
        digits = []
        for axis in reversed(self.axes):
            position, at = divmod(int(position), len(axis))
            digits.append(int(axis[at]))
        return tuple(reversed(digits))

    def places(self, positions: Positions) -> list[NDArray[np.intp]]:
        """The places, per dimension, of the designs at ``positions`` (n,)."""
        return self.numbering.places(positions)

    def digit_arrays(self, positions: Positions) -> dict[str, NDArray[np.intp]]:
        """The value numbers, per dimension, of the designs at ``positions`` (n,)."""
        places = self.places(positions)
        return {name: axis[at] for name, axis, at in zip(self.names, self.axes, places, strict=True)}


def _array(problem: Problem, axis: Sequence[int]) -> NDArray[np.intp]:
    if isinstance(axis, range):  # all values; a long dimension is listed once
        return prepared(problem, ("axis", axis), lambda: np.arange(axis.start, axis.stop, dtype=np.intp))
    return np.asarray(axis, dtype=np.intp)
