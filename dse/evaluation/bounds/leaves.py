"""Exact tables of sub-expressions over their own few dimensions, and their extremes over boxes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bounds.axes import Grid
from dse.evaluation.bulk import BulkEvaluator
from dse.expressions import Kind
from dse.problem import Problem

if TYPE_CHECKING:
    from dse.evaluation.bounds.boxes import Frame

__all__ = ["LIMIT", "Table", "tabulate"]

Array = NDArray[Any]

LIMIT = 65_536
"""Combinations of a sub-expression's dimensions up to which it is tabulated."""


class Table:
    """One extreme of a sub-expression for every combination of the digits that it depends on.

    ``axes`` are the numbers of its axes, ascending, one per axis of ``values``. ``reduce`` is the extreme:
    minimum, maximum, or (for truth values) whether any is true.
    """

    __slots__ = ("_known", "_reduced", "axes", "reduce", "values")

    def __init__(self, axes: tuple[int, ...], values: Array, reduce: np.ufunc) -> None:
        self.axes = axes
        self.values = values
        self.reduce = reduce
        self._reduced: dict[frozenset[int], Array] = {frozenset(axes): values}
        self._known: dict[tuple[frozenset[int], int | None], tuple[tuple[int, ...], Array]] = {}

    def read(self, frame: Frame) -> Array:
        """The extremes over each box and child of a frame; an array that broadcasts to theirs."""
        keys, values = self.over(frame.prefix, frame.child)
        return values.take(frame.place(keys), axis=0) if keys else values

    def over(self, prefix: frozenset[int], child: int | None) -> tuple[tuple[int, ...], Array]:
        """The extremes for each combination of the digits of ``prefix`` and each of ``child``.

        Returns:
            The axes of ``prefix`` that matter, ascending, and an array (combinations of them, digits of ``child``);
            the second size is 1 when ``child`` is None or does not matter.
        """
        keys = prefix.intersection(self.axes)
        if child not in self.axes:
            child = None
        found = self._known.get((keys, child))
        if found is None:
            kept = [axis for axis in self.axes if axis in keys]
            if child is None:
                values, width = self._over(keys), 1
            else:
                values = self._over(keys | {child})
                place = sum(axis < child for axis in kept)
                values = np.moveaxis(values, place, -1)
                width = values.shape[-1]
            rows = math.prod(values.shape) // max(width, 1)
            found = (tuple(kept), np.ascontiguousarray(values).reshape(rows, width))
            self._known[keys, child] = found
        return found

    def _over(self, kept: frozenset[int]) -> Array:
        """The extremes for each combination of the digits of ``kept``, from the smallest table that has them."""
        found = self._reduced.get(kept)
        if found is None:
            known = dict(self._reduced)  # other threads may add to it
            whole = min((axes for axes in known if axes > kept), key=lambda axes: known[axes].size)
            own = [axis for axis in self.axes if axis in whole]
            gone = tuple(at for at, axis in enumerate(own) if axis not in kept)
            found = self._reduced[kept] = np.asarray(self.reduce.reduce(known[whole], axis=gone))
        return found


def tabulate(problem: Problem, grid: Grid, nodes: Iterable[int]) -> dict[int, tuple[Array, Array | None]]:
    """The values and undefined codes of ``nodes`` over their own axes, one array axis per digit axis.

    Nodes of equal support are evaluated together, each over all combinations of the hull's values.
    """
    groups: dict[frozenset[str], list[int]] = {}
    for node in nodes:
        groups.setdefault(problem.graph[node].support, []).append(node)
    found: dict[int, tuple[Array, Array | None]] = {}
    for support, members in groups.items():
        inside = [at for at, name in enumerate(problem.names) if name in support]
        dimensions = [d for d in inside if grid.own[d]]
        shape = tuple(grid.sizes[d] for d in dimensions)
        digits = {problem.names[d]: grid.hull[d][0] for d in inside}
        digits |= {
            problem.names[d]: grid.hull[d].reshape((1,) * at + (-1,) + (1,) * (len(dimensions) - at - 1))
            for at, d in enumerate(dimensions)
        }
        values = BulkEvaluator(problem, members).evaluate(digits)
        for node in members:
            array, undefined = values[node]
            found[node] = (
                grid.spread(np.broadcast_to(array, shape), dimensions),
                None if undefined is None else grid.spread(np.broadcast_to(undefined, shape), dimensions),
            )
    return found


def sides(
    kind: Kind, values: Array, undefined: Array | None, held: Array
) -> dict[str, tuple[Array, np.ufunc]]:
    """The extremes of tabulated values: ``lo`` and ``hi`` of numbers, ``true`` and ``false`` of truth values.

    A value that is NaN or undefined counts for neither, nor does a number where ``held`` is false.
    """
    if kind is Kind.BOOL:
        defined = np.ones(values.shape, dtype=np.bool_) if undefined is None else undefined == 0
        return {"true": (values & defined, np.logical_or), "false": (~values & defined, np.logical_or)}
    bad = np.isnan(values) | ~held
    if undefined is not None:
        bad |= undefined != 0
    if not bad.any():
        return {"lo": (values, np.minimum), "hi": (values, np.maximum)}
    return {
        "lo": (np.where(bad, np.inf, values), np.minimum),
        "hi": (np.where(bad, -np.inf, values), np.maximum),
    }
