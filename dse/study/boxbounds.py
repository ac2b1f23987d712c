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
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bulk import Bulk, BulkEvaluator
from dse.expressions import Kind, Node
from dse.problem import Problem, Team
from dse.study.intervals import (
    ANY,
    ANYTHING,
    NOTHING,
    OPERATIONS,
    Bounds,
    Number,
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


class _Group(NamedTuple):
    """Nodes that are evaluated together: on the grid of ``dimensions``, in ``order``; of ``roots`` bounds are taken."""

    dimensions: list[int]
    order: list[int]
    roots: list[int]


class _Plan(NamedTuple):
    """How some nodes are bounded over boxes of one shape: by enumeration, and the ``rest`` by their arguments."""

    groups: list[_Group]
    rest: list[int]


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

    def bounds(self, roots: Sequence[int], box: Box, limit: int) -> dict[int, Bounds]:
        """Bounds of ``roots`` over a box; nodes of up to ``limit`` combinations are enumerated."""
        used = sorted({at for root in roots for at in self.support[root]})
        shape = tuple((at, box[at][1] - box[at][0]) for at in used)
        plan = self._plans.get((*roots, limit, shape))
        if plan is None:
            plan = self._plans[*roots, limit, shape] = self._planned(roots, dict(shape), limit)
        known: dict[int, Any] = {}
        for group in plan.groups:
            values = self.evaluate(group.order, group.dimensions, box)
            for root in group.roots:
                known[root] = self._reduced(values[root])
        for number in plan.rest:
            known[number] = self._from_arguments(number, box, known)
        return {root: known[root] for root in roots}

    def evaluate(self, order: Iterable[int], dimensions: Sequence[int], box: Box) -> dict[int, Bulk]:
        """The values of nodes, in order of evaluation, on the grid of the given dimensions (one axis each).

        Dimensions that are not given must have one place, or no influence.
        """
        places: list[NDArray[np.intp]] = [np.array(low).reshape([1] * len(dimensions)) for low, _ in box]
        for axis, at in enumerate(dimensions):
            shape = [1] * len(dimensions)
            shape[axis] = -1
            places[at] = np.arange(*box[at]).reshape(shape)
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
        """What to enumerate: the largest sub-expressions of at most ``limit`` combinations."""
        small: dict[int, frozenset[int]] = {}
        rest: set[int] = set()
        seen: set[int] = set()
        stack = list(roots)
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            free = frozenset(at for at in self.support[number] if widths[at] > 1)
            if math.prod(widths[at] for at in free) <= limit:
                small[number] = free
            else:
                rest.add(number)
                stack.extend(self._nodes[number].args)
        return _Plan(self._grouped(small), sorted(rest))

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

    # -- bounds -------------------------------------------------------------------------------------

    @staticmethod
    def _reduced(bulk: Bulk) -> Any:
        """Exact bounds of enumerated values; of texts and positions, the distinct ones."""
        values, undefined = bulk
        bad = (
            None
            if undefined is None
            else np.broadcast_to(undefined != 0, np.broadcast(values, undefined).shape)
        )
        if values.dtype == np.float64:
            low, high = float(values.min()), float(values.max())
            if bad is None and low == low:
                return low, high, False
            good = np.broadcast_to(~np.isnan(values), values.shape if bad is None else bad.shape)
            if bad is not None:
                good = good & ~bad
            found = np.broadcast_to(values, good.shape)[good]
            return (float(found.min()), float(found.max()), True) if found.size else NOTHING
        if bad is not None:
            values = np.broadcast_to(values, bad.shape)[~bad]
        odd = bad is not None and bool(bad.any())
        if values.dtype == np.bool_:
            return bool(values.any()), not bool(values.all()), odd
        return np.unique(values), odd

    def _from_arguments(self, number: int, box: Box, known: Mapping[int, Any]) -> Any:
        """Bounds of a node from those of its arguments; of a text or a list of texts, None: it can be any."""
        node = self._nodes[number]
        kind = node.type.kind
        args = [known[arg] for arg in node.args]
        if node.op == "dimension":
            return self._axis(node, box)
        if node.op == "cell":
            return self._cell(node, args)
        if node.op == "bound":
            return _bound_of(node, args)
        if node.op in ("lt", "le", "eq", "ne"):
            return self._compared(node, args)
        if node.op == "where" and kind in _WHERE:
            return _WHERE[kind](*args)
        if kind in (Kind.NUMBER, Kind.BOOL) and node.op in OPERATIONS:
            return OPERATIONS[node.op](*args)
        return {Kind.NUMBER: ANYTHING, Kind.BOOL: ANY}.get(kind) if node.op != "position" else None

    def _axis(self, node: Node, box: Box) -> Any:
        """A dimension of more values than are enumerated with others."""
        at = self.problem.names.index(node.data)
        number = self.problem.dimensions[at].node
        return self._reduced(self.evaluate([number], [at], box)[number])

    def _compared(self, node: Node, args: Sequence[Any]) -> Truth:
        kind = self._nodes[node.args[0]].type.kind
        if kind is Kind.NUMBER:
            return compared(node.op, args[0], args[1])
        if kind is Kind.BOOL:
            equal = same(args[0], args[1])
            return equal if node.op == "eq" else (equal[1], equal[0], equal[2])
        return ANY

    def _cell(self, node: Node, args: Sequence[Any]) -> Any:
        """A cell whose positions are bounded one by one: any that can be together."""
        table = self.problem.graph.tables[node.data[0]]
        kind = table.columns[node.data[1]].type.kind
        if kind not in (Kind.NUMBER, Kind.BOOL):
            return None
        cells = np.array(
            [math.nan if cell is None else float(cell) for cell in table.columns[node.data[1]].cells]  # type: ignore[arg-type]
        ).reshape(table.shape)
        odd = any(arg is None or arg[1] for arg in args)
        axes = [
            np.arange(size) if arg is None else arg[0][arg[0] >= 0]
            for arg, size in zip(args, table.shape, strict=True)
        ]
        found = cells[np.ix_(*axes)]
        good = found[~np.isnan(found)]
        odd = odd or good.size < found.size
        if kind is Kind.BOOL:
            return bool((good == 1.0).any()), bool((good == 0.0).any()), odd
        return (float(good.min()), float(good.max()), odd) if good.size else NOTHING


_WHERE: Mapping[Kind, Callable[..., Bounds]] = {Kind.NUMBER: chosen, Kind.BOOL: either}


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


def _bound_of(node: Node, args: Sequence[Any]) -> Truth:
    if node.data == "holds":
        truth: Truth = args[0]
        return truth
    a: Number = args[0]
    b: Number = args[1]
    match node.data:
        case "<=":
            return compared("le", a, b)
        case "<":
            return compared("lt", a, b)
        case ">=":
            return compared("le", b, a)
        case ">":
            return compared("lt", b, a)
    return compared("eq", a, b)
