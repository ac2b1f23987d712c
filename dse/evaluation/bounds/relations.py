"""Values of a dimension that another value makes unnecessary: whatever the rest of a design, the other is as good.

A value is *replaced* by another when it is proven that every feasible design with it stays feasible with the other one, and
no objective gets worse. The front then loses none of its vectors when designs with the value are left out, though it may
lose ties. The proof compares a design with its replacement, node by node: equal, at most, at least, or unknown. Leaves
are compared exactly over all their other dimensions; operations pass the comparison on where they are monotone, which
correctly rounded ones are also in floating point.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bounds.intervals import Range
from dse.evaluation.bounds.leaves import tabulate
from dse.evaluation.bounds.program import Program
from dse.expressions import Kind, Node
from dse.problem import Bound, Problem

__all__ = ["replaced_values"]

EQUAL, LESS, MORE, UNKNOWN = 0, 1, 2, 3
"""What the replacement's value is: equal; at most as large (of conditions: false more often); at least; not known."""

_FLIPPED = {EQUAL: EQUAL, LESS: MORE, MORE: LESS, UNKNOWN: UNKNOWN}
_VALUES = 64
"""Values of a dimension up to which each pair is compared."""

_SAME = ("alias", "floor", "ceil", "sqrt")


class _Leaf(NamedTuple):
    """A tabulated node: its values, which are no value, and which combinations may be legal; the compared dimension first."""

    values: NDArray[Any]
    undefined: NDArray[np.bool_]
    legal: NDArray[np.bool_]


class _Compared:
    """Compares designs of one value of a dimension with those of another."""

    def __init__(self, problem: Problem, program: Program, dimension: int) -> None:
        self.problem = problem
        self.program = program
        self.graph = problem.graph
        self.dimension = dimension
        self.name = problem.names[dimension]
        self.size = program.grid.sizes[dimension]
        self.leaves = self._leaves()

    def _leaves(self) -> dict[int, _Leaf]:
        """Each leaf that depends on the dimension."""
        grid = self.program.grid
        own = [n for n in self.program.leaves if self.name in self.graph[n].support]
        found = {}
        for number, (values, undefined) in tabulate(self.problem, grid, own, digits=False).items():
            names = [name for name in self.problem.names if name in self.graph[number].support]
            bad = np.zeros(values.shape, dtype=np.bool_) if undefined is None else undefined != 0
            if values.dtype == np.float64:
                bad = bad | np.isnan(values)
            held = self.program.held(self.graph[number].support, digits=False)
            at = names.index(self.name)
            found[number] = _Leaf(*(np.moveaxis(array, at, 0) for array in (values, bad, held)))
        return found

    def relation(self, old: int, new: int) -> dict[int, int]:
        """What each node is at place ``new`` compared with ``old``, in all designs."""
        found: dict[int, int] = {}
        for number in self.program.computed:
            node = self.graph[number]
            for arg in node.args:
                if arg not in found and arg in self.program.leaves:
                    found[arg] = self._leaf(arg, old, new)
            found[number] = self._operation(node, [found[arg] for arg in node.args])
        return found

    def of_leaf(self, number: int, old: int, new: int) -> int:
        """What a leaf is at place ``new`` compared with ``old``."""
        return self._leaf(number, old, new)

    def _leaf(self, number: int, old: int, new: int) -> int:
        if self.name not in self.graph[number].support:
            return EQUAL
        if number not in self.leaves:
            return UNKNOWN
        leaf = self.leaves[number]
        legal = leaf.legal[
            old
        ]  # of a design with the old value; that its replacement is legal too is proven apart
        a, b = leaf.values[old][legal], leaf.values[new][legal]
        bad_a, bad_b = leaf.undefined[old][legal], leaf.undefined[new][legal]
        if (a == b)[~bad_a].all() and (bad_a == bad_b).all():
            return EQUAL
        if (bad_a | bad_b).any() or self.graph[number].type.kind not in (Kind.NUMBER, Kind.BOOL):
            return UNKNOWN
        return LESS if (b <= a).all() else MORE if (b >= a).all() else UNKNOWN

    def _operation(self, node: Node, args: list[int]) -> int:
        if all(arg == EQUAL for arg in args):
            return EQUAL
        ranges = [self.program.ranges[arg] for arg in node.args]
        if UNKNOWN in args[:1] or (UNKNOWN in args and node.op != "where") or not all(r.sure for r in ranges):
            return UNKNOWN
        if node.op in _SAME:
            return args[0] if node.op != "sqrt" or ranges[0].lo >= 0.0 else UNKNOWN
        if node.op in ("neg", "not"):
            return _FLIPPED[args[0]]
        if node.op in ("add", "min", "max", "and", "or"):
            return _both(*args)
        if node.op == "sub":
            return _both(args[0], _FLIPPED[args[1]])
        if node.op in ("lt", "le"):  # true more often when the first gets smaller
            return _both(_FLIPPED[args[0]], args[1])
        if node.op == "mul":
            return _both(*(_scaled(args[at], ranges[1 - at]) for at in (0, 1)))
        if node.op == "div" and (ranges[1].lo > 0.0 or ranges[1].hi < 0.0):
            return _both(_scaled(args[0], ranges[1]), _FLIPPED[_scaled(args[1], ranges[0])])
        if node.op == "where" and node.type.kind is Kind.NUMBER:
            return _chosen(args, ranges)
        return UNKNOWN


def _both(a: int, b: int) -> int:
    """The comparison of a result that grows with both."""
    if a == EQUAL or a == b:
        return b
    return a if b == EQUAL else UNKNOWN


def _scaled(relation: int, factor: Range) -> int:
    """The comparison after a factor of known sign."""
    if relation == EQUAL or factor.lo >= 0.0:
        return relation
    return _FLIPPED[relation] if factor.hi <= 0.0 else UNKNOWN


def _chosen(args: list[int], ranges: list[Range]) -> int:
    condition, yes, no = args
    found = _both(yes, no)
    if condition == EQUAL or found == UNKNOWN:
        return found
    # A condition that is true more often moves designs from the second arm to the first.
    _, first, second = ranges
    moved = UNKNOWN
    if first.hi <= second.lo:
        moved = LESS
    elif first.lo >= second.hi:
        moved = MORE
    return _both(found, moved if condition == MORE else _FLIPPED[moved])


def replaced_values(
    problem: Problem, program: Program, masks: list[list[tuple[int, NDArray[np.bool_]]]], where: list[int]
) -> dict[int, dict[int, int]]:
    """Per dimension the places on the hull that are replaced, and by which place.

    Args:
        masks: of each box of the team, the dimensions on which it is narrower than the hull, and which places it allows.
        where: the nodes of the boxes' conditions.
    """
    roots = [r.check for r in problem.rules] + where
    found: dict[int, dict[int, int]] = {}
    for dimension, size in enumerate(program.grid.sizes):
        if not 1 < size <= _VALUES:
            continue
        compared = _Compared(problem, program, dimension)
        narrow = [mask for box in masks for d, mask in box if d == dimension]
        kept = list(range(size))
        for old in range(size):
            for new in kept:
                if new == old or any(mask[old] and not mask[new] for mask in narrow):
                    continue
                if _as_good(problem, compared, roots, old, new):
                    found.setdefault(dimension, {})[old] = new
                    kept.remove(old)
                    break
    return found


def _as_good(problem: Problem, compared: _Compared, conditions: list[int], old: int, new: int) -> bool:
    relations = compared.relation(old, new)

    def of(node: int) -> int:
        return relations[node] if node in relations else compared.of_leaf(node, old, new)

    if any(of(node) not in (EQUAL, MORE) for node in conditions):
        return False
    for objective in problem.objectives:
        if of(objective.node) not in (EQUAL, LESS if objective.sign > 0 else MORE):
            return False
    return all(_still_met(constraint.bound, of) for constraint in problem.constraints)


def _still_met(bound: Bound, of: Any) -> bool:
    if bound.op == "holds":
        return of(bound.lhs) in (EQUAL, MORE)
    lhs, rhs = of(bound.lhs), of(bound.rhs)
    if bound.op == "==":
        return bool(lhs == rhs == EQUAL)
    if bound.op in (">=", ">"):
        lhs, rhs = rhs, lhs
    return lhs in (EQUAL, LESS) and rhs in (EQUAL, MORE)
