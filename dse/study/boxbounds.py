"""Bounds of a problem's conditions and numbers over one box of designs, for checking what a search claims.

A box is a run of places on each dimension of a team's part of the space. A node whose own dimensions have few
combinations within the box is evaluated on all of them with the bulk evaluator, and its bounds are exact; other nodes
follow from their arguments by :mod:`dse.study.intervals`. By induction over the graph every value that the evaluators
compute for a design of the box lies within the bounds: an exact bound holds by enumeration, another because the
operation's rule holds for all arguments within theirs. Dependence between arguments only makes bounds wide.

This shares no code with the bounds that a search prunes with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bulk import Bulk, BulkEvaluator
from dse.expressions import Kind, Node, Table
from dse.problem import Problem, Team
from dse.study.intervals import (
    ANY,
    ANYTHING,
    NOTHING,
    OPERATIONS,
    Bounds,
    Truth,
    chosen,
    compared,
    either,
    same,
)

__all__ = ["Box", "BoxBounds"]

Box: TypeAlias = tuple[tuple[int, int], ...]
"""Per dimension the first place and the one behind the last."""

_AXES = 24  # dimensions of one array, at most
_CELLS = 1 << 16  # values of one node that are computed at once, over several boxes
_BOXES = 256  # boxes at once


class _Group(NamedTuple):
    """Nodes that are evaluated together: on the grid of ``dimensions``, in ``order``; of ``roots`` bounds are taken."""

    dimensions: list[int]
    order: list[int]
    roots: list[int]


class _Plan(NamedTuple):
    """How some nodes are bounded over boxes of one shape: by enumeration, and the ``rest`` by their arguments.

    ``most`` is the largest number of combinations that is enumerated.
    """

    groups: list[_Group]
    rest: list[tuple[int, Callable[..., Any], tuple[int, ...]]]
    most: int


class BoxBounds:
    """Bounds the nodes ``roots`` of a problem over boxes of a team's part of the space.

    Constraint number j is, besides, the node ``len(graph.nodes) + j``: whether it holds; undefined where a side of it
    is no number.
    """

    def __init__(self, problem: Problem, team: Team, roots: Iterable[int]) -> None:
        self.problem = problem
        self.hull = [np.asarray(axis, dtype=np.intp) for axis in team.hull(problem.sizes)]
        self._count = len(problem.graph.nodes)
        bounds = [constraint.bound for constraint in problem.constraints]
        self._nodes = [
            *problem.graph.nodes,
            *(
                Node(
                    "bound",
                    (b.lhs,) if b.op == "holds" else (b.lhs, b.rhs),
                    b.op,
                    problem.graph[b.lhs].type,
                    problem.graph[b.lhs].support | problem.graph[b.rhs].support,
                )
                for b in bounds
            ),
        ]
        asked = [*roots, *(n for b in bounds for n in (b.lhs, b.rhs))]
        self._evaluator = BulkEvaluator(problem, asked)
        place = {name: at for at, name in enumerate(problem.names)}
        self.support = [tuple(sorted(place[name] for name in node.support)) for node in self._nodes]
        self._plans: dict[tuple[Any, ...], _Plan] = {}

    def constraint(self, number: int) -> int:
        """The node that says whether a constraint holds."""
        return self._count + number

    def bounds(self, roots: Sequence[int], boxes: Sequence[Box], limit: int) -> list[dict[int, Bounds]]:
        """Bounds of ``roots`` over each box; nodes of up to ``limit`` combinations are enumerated."""
        used = sorted({at for root in roots for at in self.support[root]})
        shapes: dict[tuple[int, ...], list[int]] = {}
        for number, box in enumerate(boxes):
            shapes.setdefault(tuple(box[at][1] - box[at][0] for at in used), []).append(number)
        found: list[dict[int, Bounds]] = [{} for _ in boxes]
        for shape, numbers in shapes.items():
            plan = self._plans.get((*roots, limit, shape))
            if plan is None:
                plan = self._planned(roots, dict(zip(used, shape, strict=True)), limit)
                self._plans[*roots, limit, shape] = plan
            step = max(1, min(_BOXES, _CELLS // plan.most))
            for first in range(0, len(numbers), step):
                own = numbers[first : first + step]
                for number, bounds in zip(own, self._bounded(plan, [boxes[n] for n in own]), strict=True):
                    found[number] = {root: bounds[root] for root in roots}
        return found

    def _bounded(self, plan: _Plan, boxes: Sequence[Box]) -> list[dict[int, Any]]:
        """Bounds of all nodes of a plan, for boxes of its shape."""
        found: list[dict[int, Any]] = [{} for _ in boxes]
        for group in plan.groups:
            values = self.evaluate(group.order, group.dimensions, boxes)
            for root in group.roots:
                for known, bounds in zip(found, _reduced(values[root], len(boxes)), strict=True):
                    known[root] = bounds
        for known in found:
            for number, function, args in plan.rest:
                known[number] = function(*[known[arg] for arg in args])
        return found

    def evaluate(
        self, order: Iterable[int], dimensions: Sequence[int], boxes: Sequence[Box]
    ) -> dict[int, Bulk]:
        """The values of nodes, in order of evaluation: an axis for the boxes, and one for each dimension given.

        The boxes have the same shape. Dimensions that are not given must have one place, or no influence.
        """
        rank = [1] * len(dimensions)
        low = np.array([[ends[0] for ends in box] for box in boxes], dtype=np.intp).T
        places = [own.reshape(-1, *rank) for own in low]
        for axis, at in enumerate(dimensions):
            shape = [1, *rank]
            shape[axis + 1] = -1
            places[at] = places[at] + np.arange(boxes[0][at][1] - boxes[0][at][0]).reshape(shape)
        return self.values(order, places)

    def values(self, order: Iterable[int], places: Sequence[NDArray[np.intp]]) -> dict[int, Bulk]:
        """The values of nodes, in order of evaluation, for designs given by places that broadcast."""
        digits = {
            name: hull[column]
            for name, hull, column in zip(self.problem.names, self.hull, places, strict=True)
        }
        values = self._evaluator.evaluate(digits, [number for number in order if number < self._count], {})
        for number in order:
            if number >= self._count:
                values[number] = _bound_holds(self._nodes[number], values)
        return values

    # -- planning -----------------------------------------------------------------------------------

    def _planned(self, roots: Sequence[int], widths: Mapping[int, int], limit: int) -> _Plan:
        """What to enumerate: the largest sub-expressions of at most ``limit`` combinations, and any dimension."""
        small: dict[int, frozenset[int]] = {}
        rest: set[int] = set()
        seen: set[int] = set()
        stack, most = list(roots), 1
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            free = frozenset(at for at in self.support[number] if widths[at] > 1)
            own = math.prod(widths[at] for at in free)
            if own <= limit or self._nodes[number].op == "dimension":
                small[number] = free
                most = max(most, own)
            else:
                rest.add(number)
                stack.extend(self._nodes[number].args)
        above = [
            (number, self._rule(self._nodes[number]), self._nodes[number].args) for number in sorted(rest)
        ]
        return _Plan(self._grouped(small), above, most)

    def _grouped(self, small: Mapping[int, frozenset[int]]) -> list[_Group]:
        """Nodes in as few groups as keep each group's arrays from having too many axes."""
        groups: list[tuple[set[int], list[int]]] = []
        for number in sorted(small, key=lambda n: (-len(small[n]), n)):
            free = small[number]
            group = next((g for g in groups if len(g[0] | free) <= _AXES), None)
            if group is None:
                groups.append((set(free), [number]))
            else:
                group[0].update(free)
                group[1].append(number)
        return [_Group(sorted(dimensions), self._order(roots), roots) for dimensions, roots in groups]

    def _order(self, roots: Iterable[int]) -> list[int]:
        """The nodes that ``roots`` need, in order of evaluation."""
        roots = list(roots)
        own = [n for n in roots if n < self._count]
        own += [arg for n in roots if n >= self._count for arg in self._nodes[n].args]
        return [*self.problem.graph.needed(own), *sorted(n for n in roots if n >= self._count)]

    def _rule(self, node: Node) -> Callable[..., Any]:
        """What bounds a node by its arguments; a text or a list of texts is not bounded: None."""
        kind = node.type.kind
        if node.op == "cell":
            return partial(_cell, self.problem.graph.tables[node.data[0]], node.data[1])
        if node.op == "bound":
            return partial(_bound_of, node.data)
        if node.op in ("lt", "le", "eq", "ne"):
            of = self._nodes[node.args[0]].type.kind
            compare = {Kind.NUMBER: compared, Kind.BOOL: _agreed}.get(of)
            return partial(compare, node.op) if compare else partial(_constant, ANY)
        if node.op == "where" and kind in _WHERE:
            return _WHERE[kind]
        if kind in (Kind.NUMBER, Kind.BOOL) and node.op in OPERATIONS:
            return OPERATIONS[node.op]
        unknown = {Kind.NUMBER: ANYTHING, Kind.BOOL: ANY}.get(kind)
        return partial(_constant, None if node.op == "position" else unknown)


_WHERE: Mapping[Kind, Callable[..., Bounds]] = {Kind.NUMBER: chosen, Kind.BOOL: either}


def _reduced(bulk: Bulk, n: int) -> Iterable[Any]:
    """Exact bounds of the enumerated values of ``n`` boxes; of texts and positions, the distinct ones."""
    values, undefined = bulk
    others = () if undefined is None else undefined.shape
    rank = max(len(values.shape), len(others), 1)
    shape = np.broadcast_shapes(values.shape, others, (n, *[1] * (rank - 1)))
    rows = np.broadcast_to(values, shape).reshape(n, -1)
    good: NDArray[np.bool_] | None = None
    if undefined is not None:
        good = np.broadcast_to(undefined == 0, shape).reshape(n, -1)
    if values.dtype == np.float64:
        low, high = rows.min(axis=1), rows.max(axis=1)
        if good is None and not np.isnan(low).any():
            return [(a, b, False) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        good = ~np.isnan(rows) if good is None else good & ~np.isnan(rows)
        low = np.where(good, rows, np.inf).min(axis=1)
        high = np.where(good, rows, -np.inf).max(axis=1)
        return _columns(low, high, ~good.all(axis=1))
    odd: NDArray[np.bool_] = np.zeros(n, dtype=np.bool_) if good is None else ~np.all(good, axis=1)
    if values.dtype == np.bool_:
        can, cannot = (rows, ~rows) if good is None else (rows & good, ~rows & good)
        return _columns(can.any(axis=1), cannot.any(axis=1), odd)
    distinct = [np.unique(row if good is None else row[good[at]]) for at, row in enumerate(rows)]
    return [(own, bool(bad)) for own, bad in zip(distinct, odd, strict=True)]


def _columns(*columns: Any) -> Iterable[Any]:
    """Row by row, as plain values."""
    lists: list[list[Any]] = [column.tolist() for column in columns]
    return zip(*lists, strict=True)


# -- rules for what is not enumerated ----------------------------------------------------------------


def _constant(bounds: Any, *args: Any) -> Any:
    return bounds


def _agreed(op: str, a: Truth, b: Truth) -> Truth:
    """``==`` or ``!=`` of truth values."""
    equal = same(a, b)
    return equal if op == "eq" else (equal[1], equal[0], equal[2])


def _cell(table: Table, column: str, *args: Any) -> Any:
    """A cell whose positions are bounded one by one: any that can be together."""
    kind = table.columns[column].type.kind
    if kind not in (Kind.NUMBER, Kind.BOOL):
        return None
    cells = np.array(
        [math.nan if cell is None else float(cell) for cell in table.columns[column].cells]  # type: ignore[arg-type]
    ).reshape(table.shape)
    axes = [
        np.arange(size) if arg is None else arg[0][arg[0] >= 0]
        for arg, size in zip(args, table.shape, strict=True)
    ]
    found = cells[np.ix_(*axes)]
    good = found[~np.isnan(found)]
    odd = any(arg is None or arg[1] for arg in args) or good.size < found.size
    if kind is Kind.BOOL:
        return bool((good == 1.0).any()), bool((good == 0.0).any()), odd
    return (float(good.min()), float(good.max()), odd) if good.size else NOTHING


# -- constraints as conditions ---------------------------------------------------------------------


def _bound_holds(node: Node, values: Mapping[int, Bulk]) -> Bulk:
    """Where a bound holds; undefined where a side is not a number."""
    sides = [values[arg] for arg in node.args]
    bad: NDArray[np.bool_] = np.zeros((), dtype=np.bool_)
    for side in sides:
        if side.undefined is not None:
            bad = bad | (side.undefined != 0)
        if side.values.dtype == np.float64:
            bad = bad | np.isnan(side.values)
    if node.data == "holds":
        holds = sides[0].values
    else:
        function = {
            "<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater, "==": np.equal
        }[node.data]  # fmt: skip
        with np.errstate(invalid="ignore"):
            holds = function(sides[0].values, sides[1].values)
    return Bulk(holds, bad.astype(np.uint8) if bad.any() else None)


def _bound_of(op: str, a: Any, b: Any = None) -> Truth:
    match op:
        case "holds":
            truth: Truth = a
            return truth
        case "<=":
            return compared("le", a, b)
        case "<":
            return compared("lt", a, b)
        case ">=":
            return compared("le", b, a)
        case ">":
            return compared("lt", b, a)
    return compared("eq", a, b)
