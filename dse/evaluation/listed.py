"""Lists of designs in the order of their indices: each node once for every run of designs that it cannot tell apart.

A node depends on some dimensions; the last of them is its depth. Along an ordered list, designs that agree up to that
depth stand together, so the node is computed for the first of each such run and repeated only where a deeper node
reads it. On the legal designs of a large space that is several times faster than computing every node for every
design, and the values are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bulk import Bulk, BulkEvaluator
from dse.problem import Problem

__all__ = ["Listed"]


class Listed:
    """Evaluates nodes of one problem for ordered lists of designs.

    Args:
        problem: the problem.
        roots: the nodes that are asked for.
    """

    def __init__(self, problem: Problem, roots: Iterable[int]) -> None:
        self.roots = tuple(roots)
        self._bulk = BulkEvaluator(problem, self.roots)
        self._names = [dimension.name for dimension in problem.dimensions]
        at = {name: number for number, name in enumerate(self._names)}
        graph = problem.graph
        self._depth = {
            number: max((at[name] for name in graph[number].support), default=-1)
            for number in self._bulk.order
        }
        by_depth: dict[int, list[int]] = {}
        for number in self._bulk.order:
            by_depth.setdefault(self._depth[number], []).append(number)
        self._levels = sorted(by_depth.items())
        read: dict[int, set[int]] = {}  # depth -> nodes of lower depth that its nodes read
        for depth, nodes in self._levels:
            read[depth] = {arg for node in nodes for arg in graph[node].args if self._depth[arg] < depth}
        self._read = read

    def evaluate(self, columns: Sequence[NDArray[Any]]) -> dict[int, Bulk]:
        """The values of the roots, arrays (n,) or single values where a root depends on no dimension.

        Args:
            columns: for each dimension the value numbers (n,) of designs in ascending order of index.
        """
        n = len(columns[0])
        changed = np.zeros(n, dtype=np.bool_)
        changed[:1] = True
        values: dict[int, Bulk] = {}
        upto = -1
        runs: dict[int, NDArray[np.intp]] = {}  # depth -> the run that each design is in
        for depth, nodes in self._levels:
            while upto < depth:
                upto += 1
                column = columns[upto]
                changed[1:] |= column[1:] != column[:-1]
            starts = np.flatnonzero(changed)
            runs[depth] = np.cumsum(changed, dtype=np.intp) - 1
            own = {self._names[depth]: columns[depth][starts]} if depth >= 0 else {}
            near: dict[int, Bulk] = {}
            index: dict[int, NDArray[np.intp]] = {}
            for arg in self._read[depth]:
                near[arg] = _repeated(values[arg], self._depth[arg], starts, runs, index)
            with np.errstate(all="ignore"):
                for node in nodes:
                    near[node] = values[node] = self._bulk.compute(node, own, near)
        index = {}
        return {root: _repeated(values[root], self._depth[root], None, runs, index) for root in self.roots}


def _repeated(
    value: Bulk,
    depth: int,
    starts: NDArray[np.intp] | None,
    runs: Mapping[int, NDArray[np.intp]],
    index: dict[int, NDArray[Any]],
) -> Bulk:
    """The value of a node of lower depth at the designs ``starts``, or at all; ``index`` keeps what finds it."""
    if not value.values.ndim:
        return value
    if depth not in index:
        index[depth] = runs[depth] if starts is None else runs[depth][starts]
    at = index[depth]
    undefined = value.undefined
    if undefined is not None and undefined.ndim:
        undefined = undefined.take(at)
    return Bulk(value.values.take(at), undefined)
