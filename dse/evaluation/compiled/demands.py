"""What is asked of every design, in the order of precedence: membership, rules, numbers, constraints, objectives.

Ranges answer some of it for all designs at once: what is left is what loops must compute.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from dse.evaluation.bulk import Array
from dse.evaluation.compiled.facts import Facts
from dse.problem import Bound, Box, Problem, Team

__all__ = ["OUTSIDE", "Condition", "Demands", "Requirement", "Side"]

OUTSIDE = -1


@dataclass(frozen=True, slots=True)
class Side:
    """One box of a union: which places of a dimension it allows, and the conditions that must hold."""

    allowed: tuple[tuple[int, Array], ...]
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold: a ``node`` that is true and defined, or one of the ``sides``.

    ``line`` is where a design that breaks it counts: OUTSIDE, or the number of a rule.
    """

    line: int
    support: int
    node: int = -1
    sides: tuple[Side, ...] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a feasible design meets; ``line`` is that of the funnel. Without a bound: objective ``node`` is finite.

    ``first`` is that of the constraint.
    """

    line: int
    support: int
    bound: Bound | None = None
    objective: int = -1
    first: bool = False


class Demands:
    """The demands on the designs of a team's part of a space.

    ``conditions`` of membership and rules in order of precedence; ``fallible`` roots, which can be no number;
    ``unbounded`` objectives, which can be at their best infinity; ``requirements`` that some design may miss.
    """

    def __init__(self, facts: Facts, problem: Problem, team: Team) -> None:
        self.facts = facts
        self.problem = problem
        self.conditions = [c for c in self._conditions(team) if not self._certain(c)]
        objectives = problem.objectives
        bounds = [c.bound for c in problem.constraints]
        roots = [o.node for o in objectives] + [n for b in bounds for n in (b.lhs, b.rhs)]
        self.fallible = [n for n in dict.fromkeys(roots) if not facts.ranges[n].sure]
        self.unbounded: list[int] = []
        self.requirements: list[Requirement] = []
        for at, bound in enumerate(bounds):
            support = facts.supports[bound.lhs] | facts.supports[bound.rhs]
            if self._missable(bound):
                first = problem.constraints[at].first
                self.requirements.append(Requirement(at, support, bound, first=first))
        for at, objective in enumerate(objectives):
            found = facts.ranges[objective.node]
            best, worst = (found.low, -found.high) if objective.sign > 0 else (-found.high, found.low)
            if best == -math.inf:
                self.unbounded.append(at)
            if worst == -math.inf:
                line = len(bounds) + at
                self.requirements.append(Requirement(line, facts.supports[objective.node], objective=at))

    def _missable(self, bound: Bound) -> bool:
        """Whether some design may break a bound, by the ranges of its sides."""
        lhs, rhs = (self.facts.ranges[n] for n in (bound.lhs, bound.rhs))
        if bound.op == "holds":
            return lhs.low < 1.0
        sure = {
            "<=": lhs.high <= rhs.low, "<": lhs.high < rhs.low,
            ">=": lhs.low >= rhs.high, ">": lhs.low > rhs.high,
            "==": lhs.low == lhs.high == rhs.low == rhs.high,
        }  # fmt: skip
        return not sure[bound.op]

    @property
    def used(self) -> int:
        """All dimensions that anything depends on."""
        facts = self.facts
        masks = [c.support for c in self.conditions] + [r.support for r in self.requirements]
        masks += [facts.supports[o.node] for o in self.problem.objectives]
        masks += [facts.supports[n] for n in self.fallible]
        return reduce(or_, masks, 0)

    @property
    def roots(self) -> list[int]:
        """The nodes of objectives and bounds."""
        bounds = [n for c in self.problem.constraints for n in (c.bound.lhs, c.bound.rhs)]
        return list(dict.fromkeys([o.node for o in self.problem.objectives] + bounds))

    # -- conditions -------------------------------------------------------------------------------

    def _conditions(self, team: Team) -> Iterator[Condition]:
        if len(team.boxes) == 1:
            for conjunct in team.boxes[0].where:
                yield from self._parts(OUTSIDE, conjunct.node)
        else:
            yield self._union(team.boxes)
        for at, rule in enumerate(self.problem.rules):
            yield from self._parts(at, rule.check)

    def _parts(self, line: int, node: int) -> Iterator[Condition]:
        """``a and b`` holds where both do; so they are asked one by one."""
        pending = [node]
        while pending:
            part = pending.pop()
            found = self.facts.graph[part]
            if found.op in ("and", "alias"):
                pending += reversed(found.args)
            else:
                yield Condition(line, self.facts.supports[part], part)

    def _union(self, boxes: tuple[Box, ...]) -> Condition:
        support, sides = 0, []
        for box in boxes:
            allowed = []
            for bit, at in enumerate(self.facts.axes):
                own, hull = box.allowed[at], self.facts.hull[at]
                if own is not None and len(own) < len(hull):
                    allowed.append((bit, np.isin(hull, own)))
                    support |= 1 << bit
            nodes = tuple(conjunct.node for conjunct in box.where)
            for node in nodes:
                support |= self.facts.supports[node]
            sides.append(Side(tuple(allowed), nodes))
        return Condition(OUTSIDE, support, sides=tuple(sides))

    def _certain(self, condition: Condition) -> bool:
        if condition.sides:
            return any(not side.allowed and not side.nodes for side in condition.sides)
        found = self.facts.ranges[condition.node]
        return found.sure and found.low > 0.0
