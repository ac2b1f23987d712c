"""Proving again, one box at a time, what a certificate says of it.

What has to be shown of a closed box: *outside*, the team may choose none of its designs; *rule i*, each of them is
outside or breaks it; *constraint j*, each is outside, illegal, or breaks it (or a side of it is no number);
*infinite* and *dominated*, each is outside, illegal, infeasible or failed, or a design of the front is better.

Bounds over the box show it at once as a rule. Otherwise a box of few combinations is decided design by design, and a
larger one is cut along the axes of the search tree into parts that are shown one after the other. A design that
contradicts the code is confirmed by the scalar evaluator. A box that takes too many parts is left open.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation import State, judge
from dse.evaluation.bulk import Bulk
from dse.evaluation.scalar import Undefined, evaluate_nodes
from dse.evaluation.verdict import Judge, bound_broken, broken_rule, condition_holds, inside, member
from dse.problem import Design, Problem, Team
from dse.study.boxbounds import Box, BoxBounds
from dse.study.certificate import DOMINATED, INFINITE, JUDGED, OUTSIDE, RULES
from dse.study.replay import Tree
from dse.study.result import design_text
from dse.study.stated import Front

__all__ = ["Finding", "Reprover"]

FEW = 2_048
"""Combinations of a sub-expression's own dimensions that are enumerated at first."""

MANY = 65_536
"""The same when that was not enough; and designs of a box that are decided one by one."""

PARTS = 384
"""Parts that one box may be cut into before it is left open; :data:`ALL_PARTS`, all boxes together."""

ALL_PARTS = 20_000
"""Parts beyond which the boxes that follow may be cut a few times only."""

_LEAST = 8  # parts that any box may be cut into
_DRAWN = 4_096  # designs of a box that was left open, looked at for one that contradicts it


_HOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
    "holds": lambda condition, _: condition,
}


class Finding(NamedTuple):
    """What became of a box: ``proved``; or a design that shows it ``wrong``, in a sentence; or neither."""

    proved: bool
    wrong: str = ""


PROVED, LEFT_OPEN = Finding(True), Finding(False)


class Reprover:
    """Proves boxes of one certificate.

    Args:
        front: of the result that the certificate belongs to.
        tree: the certificate's axes, along which boxes are cut.
    """

    def __init__(self, problem: Problem, team: Team, front: Front, tree: Tree) -> None:
        self.problem = problem
        self.team = team
        self.front = front
        self.tree = tree
        self.judge = Judge(problem)
        self.checks = [rule.check for rule in problem.rules]
        self.conjuncts = [conjunct.node for box in team.boxes for conjunct in box.where]
        self.bounds = BoxBounds(problem, team, [*self.judge.roots, *self.checks, *self.conjuncts])
        self.limits = [self.bounds.constraint(at) for at in range(len(problem.constraints))]
        self.narrowed = frozenset(
            at
            for box in team.boxes
            for at, (allowed, hull) in enumerate(zip(box.allowed, self.bounds.hull, strict=True))
            if allowed is not None and len(allowed) < len(hull)
        )
        self._relevant: dict[int, frozenset[int]] = {}
        self._effort = ALL_PARTS

    def prove(self, code: int, boxes: Sequence[Box], numbers: Sequence[int]) -> list[Finding]:
        """Prove boxes of one code. Their ``numbers`` seed what is drawn at random."""
        if code == JUDGED:
            return [self._judged(box) for box in boxes]
        shown = self._bounded(code, boxes, FEW)
        return [
            PROVED if good else self._pieced(code, box, number)
            for good, box, number in zip(shown, boxes, numbers, strict=True)
        ]

    def _pieced(self, code: int, box: Box, number: int) -> Finding:
        """Prove one box whose quick bounds were too wide."""
        parts = [box]
        left = allowed = max(_LEAST, min(PARTS, self._effort))
        while parts:
            part = parts.pop()
            if self._combinations(code, part) <= MANY:
                if wrong := self._settled(code, part):
                    return Finding(False, wrong)
            elif not self._bounded(code, [part], MANY)[0] and not self._empty(code, part):
                if not left:
                    self._effort -= allowed
                    return Finding(False, self._drawn(code, box, number))
                left -= 1
                cut = self._cut(code, part)
                parts += [p for p, good in zip(cut, self._bounded(code, cut, FEW), strict=True) if not good]
        self._effort -= allowed - left
        return PROVED

    # -- by bounds ----------------------------------------------------------------------------------

    def _bounded(self, code: int, boxes: Sequence[Box], limit: int) -> list[bool]:
        """Of which boxes bounds alone show what the code says."""
        if code == OUTSIDE:
            found = self.bounds.bounds(self.conjuncts, boxes, limit)
            return [self._outside(box, own) for box, own in zip(boxes, found, strict=True)]
        if code >= RULES:
            node = [*self.checks, *self.limits][code - RULES]
            return [not own[node][0] for own in self.bounds.bounds([node], boxes, limit)]
        wanted = self.problem.objectives
        found = self.bounds.bounds([o.node for o in wanted], boxes, limit)
        never = [any(own[o.node][0] > own[o.node][1] for o in wanted) for own in found]
        low = np.array([[own[o.node][0] if o.sign > 0 else -own[o.node][1] for o in wanted] for own in found])
        shown = np.array(never) | (low == math.inf).any(axis=1)
        if code == DOMINATED:
            shown |= self.front.beats(low, self._first(boxes))
        return [bool(good) for good in shown]

    def _first(self, boxes: Sequence[Box]) -> list[NDArray[np.intp]]:
        """The value numbers of the first design of each box, a column per dimension."""
        lows = np.array([[low for low, _ in box] for box in boxes], dtype=np.intp).reshape(len(boxes), -1)
        return [hull[low] for hull, low in zip(self.bounds.hull, lows.T, strict=True)]

    def _outside(self, box: Box, found: Mapping[int, Any]) -> bool:
        """Whether the team may choose no design of a box, by the bounds of its conditions."""
        for part in self.team.boxes:
            apart = any(
                allowed is not None and not np.isin(hull[low:high], allowed).any()
                for allowed, hull, (low, high) in zip(part.allowed, self.bounds.hull, box, strict=True)
            )
            if not apart and all(found[conjunct.node][0] for conjunct in part.where):
                return False
        return True

    def _empty(self, code: int, box: Box) -> bool:
        """Whether a box has no design that the claim is about."""
        if code == OUTSIDE:
            return False
        nodes = [] if RULES <= code < RULES + len(self.checks) else list(self.checks)
        if code in (INFINITE, DOMINATED):
            nodes += self.limits
        (found,) = self.bounds.bounds([*nodes, *self.conjuncts], [box], FEW)
        return any(not found[node][0] for node in nodes) or self._outside(box, found)

    # -- design by design ---------------------------------------------------------------------------

    def relevant(self, code: int) -> frozenset[int]:
        """The dimensions that decide whether a design contradicts a code."""
        if code not in self._relevant:
            nodes = [*self.conjuncts]
            if RULES <= code < RULES + len(self.checks):
                nodes.append(self.checks[code - RULES])
            elif code != OUTSIDE:
                nodes += self.checks
                nodes += self.judge.roots if code < RULES else [self.limits[code - RULES - len(self.checks)]]
            support = self.bounds.support
            self._relevant[code] = self.narrowed.union(*(support[node] for node in nodes))
        return self._relevant[code]

    def _combinations(self, code: int, box: Box) -> int:
        return math.prod(box[at][1] - box[at][0] for at in self.relevant(code))

    def _settled(self, code: int, box: Box) -> str:
        """What shows a box of few combinations wrong; nothing if it holds."""
        free = sorted(at for at in self.relevant(code) if box[at][1] - box[at][0] > 1)
        shape = [box[at][1] - box[at][0] for at in free]
        n = math.prod(shape)
        values = {
            node: _flat(bulk, [1, *shape])
            for node, bulk in self.bounds.evaluate(self._order(code), free, [box]).items()
            if node in self._roots(code)
        }
        places = np.unravel_index(np.arange(n), shape) if free else ()
        columns = {at: places[axis] + box[at][0] for axis, at in enumerate(free)}
        low = [np.full(n, low) for low, _ in box]
        return self._contradicted(code, [columns.get(at, low[at]) for at in range(len(box))], values, n)

    def _roots(self, code: int) -> list[int]:
        roots = [*self.conjuncts]
        if RULES <= code < RULES + len(self.checks):
            return [*roots, self.checks[code - RULES]]
        return roots if code == OUTSIDE else [*roots, *self.checks, *self.judge.roots]

    def _order(self, code: int) -> list[int]:
        return self.problem.graph.needed(self._roots(code))

    def _contradicted(
        self, code: int, places: Sequence[NDArray[np.intp]], values: dict[int, Bulk], n: int
    ) -> str:
        """A sentence on the first of ``n`` designs that contradicts a code; nothing if there is none."""
        digits = {
            name: hull[column]
            for name, hull, column in zip(self.problem.names, self.bounds.hull, places, strict=True)
        }
        open_ = inside(self.problem, self.team, digits, values, n)
        if RULES <= code < RULES + len(self.checks):
            open_ &= condition_holds(values[self.checks[code - RULES]])
        elif code != OUTSIDE:
            for check in self.checks:
                open_ &= condition_holds(values[check])
            if code >= RULES:
                bound = self.problem.constraints[code - RULES - len(self.checks)].bound
                open_ &= ~bound_broken(bound, values) & _numbers([values[bound.lhs], values[bound.rhs]], n)
            else:
                outcomes = self.judge.outcomes(values, n)
                open_ &= outcomes.feasible
                if code == DOMINATED and open_.any():
                    at = np.flatnonzero(open_)
                    first = [column[at] for column in digits.values()]
                    open_[at[self.front.beats(outcomes.objectives[at], first)]] = False
        for row in np.flatnonzero(open_)[:1].tolist():
            numbers = [int(digits[name][row]) for name in self.problem.names]
            design = self.problem.design_at(numbers)
            doubt = "" if self._confirmed(code, design, numbers) else " (the scalar evaluator does not agree)"
            return self._sentence(code, design) + doubt
        return ""

    def _confirmed(self, code: int, design: Design, digits: Sequence[int]) -> bool:
        """Whether the scalar evaluator, too, says that a design of these digits contradicts a code."""
        if not member(self.problem, self.team, design):
            return False
        if RULES <= code < RULES + len(self.checks):
            node = self.checks[code - RULES]
            return evaluate_nodes(self.problem, design, [node])[node] is True
        if code == OUTSIDE:
            return True
        if broken_rule(self.problem, design) is not None:
            return False
        if code >= RULES:
            bound = self.problem.constraints[code - RULES - len(self.checks)].bound
            values = evaluate_nodes(self.problem, design, [bound.lhs, bound.rhs])
            sides = values[bound.lhs], values[bound.rhs]
            numbers = not any(isinstance(side, Undefined) or side != side for side in sides)
            return numbers and bool(_HOLDS[bound.op](*sides))
        verdict = judge(self.problem, design)
        if verdict.state is not State.FEASIBLE:
            return False
        costs, first = np.array([self._costs(verdict.objectives)]), [np.array([own]) for own in digits]
        return code == INFINITE or not self.front.beats(costs, first)[0]

    def _costs(self, objectives: Iterable[float]) -> list[float]:
        return [v * o.sign + 0.0 for v, o in zip(objectives, self.problem.objectives, strict=True)]

    def _sentence(self, code: int, design: Design) -> str:
        text, at = design_text(self.problem, design), code - RULES - len(self.checks)
        if code == OUTSIDE:
            return f"{self.team.name} may not choose its designs, but may choose {text}"
        if code == INFINITE:
            return f"an objective of its designs is infinite, but {text} is feasible"
        if code == DOMINATED:
            return f"the front is better than its designs, but not than {text}"
        if at < 0:
            return f"its designs break rule {self.problem.rules[code - RULES].name}, but {text} does not"
        return f"its designs break constraint {self.problem.constraints[at].text}, but {text} does not"

    def _drawn(self, code: int, box: Box, number: int) -> str:
        """What shows a box wrong, looked for at random."""
        random = np.random.default_rng(number)
        places = [random.integers(low, high, size=_DRAWN) for low, high in box]
        values = self.bounds.values(self._order(code), places)
        flat = {node: _flat(values[node], [_DRAWN]) for node in self._roots(code)}
        return self._contradicted(code, places, flat, _DRAWN)

    def _judged(self, box: Box) -> Finding:
        """A box whose designs were judged: they are legal, and none is better than the front."""
        hull = self.bounds.hull
        design = self.problem.design_at([int(axis[low]) for axis, (low, _) in zip(hull, box, strict=True)])
        text = design_text(self.problem, design)
        if not member(self.problem, self.team, design):
            return Finding(False, f"its designs were judged, but {self.team.name} may not choose {text}")
        verdict = judge(self.problem, design)
        if verdict.state is State.ILLEGAL:
            return Finding(False, f"its designs were judged, but {text} is illegal")
        if verdict.state is State.FEASIBLE and not self.front.covers(self._costs(verdict.objectives)):
            return Finding(False, f"its designs were judged, but {text} belongs on the front")
        return PROVED

    # -- cutting ------------------------------------------------------------------------------------

    def _cut(self, code: int, box: Box) -> list[Box]:
        """The box in parts along the first axis of the tree that is open and relevant."""
        relevant = self.relevant(code)
        for axis in self.tree.axes:
            low, high = box[axis.dimension]
            if high - low > axis.stride and axis.dimension in relevant:
                break
        at, count = axis.dimension, -(-(high - low) // axis.stride)
        step = axis.stride * (1 if count <= 8 else -(-count // 2))
        edges = [*range(low, high, step), high]
        return [(*box[:at], (a, b), *box[at + 1 :]) for a, b in pairwise(edges)]


def _flat(bulk: Bulk, shape: Sequence[int]) -> Bulk:
    """A value on a grid as one of shape (n,)."""
    undefined = bulk.undefined
    return Bulk(
        np.broadcast_to(bulk.values, shape).reshape(-1),
        None if undefined is None else np.broadcast_to(undefined, shape).reshape(-1),
    )


def _numbers(sides: Iterable[Bulk], n: int) -> NDArray[np.bool_]:
    """Where both sides of a bound are defined, and numbers."""
    good = np.ones(n, dtype=np.bool_)
    for side in sides:
        if side.undefined is not None:
            good &= side.undefined == 0
        if side.values.dtype == np.float64:
            good &= ~np.isnan(side.values)
    return good
