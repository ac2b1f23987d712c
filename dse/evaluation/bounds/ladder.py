"""The extremes of a long dimension that ascends: its digits say where to look, so no table is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bounds.axes import Grid

if TYPE_CHECKING:
    from dse.evaluation.bounds.boxes import Frame

__all__ = ["Ladder"]


class Ladder:
    """One extreme, ``lo`` or ``hi``, of the values (m,) of a dimension, ascending on the hull."""

    __slots__ = ("axes", "high", "values")

    def __init__(self, grid: Grid, dimension: int, values: NDArray[np.float64], side: str) -> None:
        self.axes = [(axis, grid.axes[axis].stride) for axis in grid.own[dimension]]
        self.values = values
        self.high = side == "hi"

    def read(self, frame: Frame) -> NDArray[Any]:
        """The extremes over each box and child; absent places count as the last one."""
        place: NDArray[Any] = np.zeros((1, 1), dtype=np.intp)
        free = len(self.values)
        for axis, stride in self.axes:  # the most significant digits are fixed first
            if axis in frame.columns:
                place = place + frame.columns[axis].reshape(-1, 1) * stride
            elif axis == frame.child:
                place = place + np.arange(frame.width) * stride
            else:
                break
            free = stride
        if self.high:
            place = place + (free - 1)
        return self.values.take(place, mode="clip")
