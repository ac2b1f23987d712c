"""A branch and bound for tests, small and by brute force, that leaves a certificate: an independent one to verify.

Axes are cut and ordered at random, batches expanded in any order and in any pieces. What a box is closed for is found
by looking at every one of its designs with the scalar evaluator.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dse.evaluation import State, judge, member
from dse.evaluation.scalar import Undefined, evaluate_nodes
from dse.problem import Problem, Team
from dse.study.certificate import (
    ABSENT,
    DOMINATED,
    INFINITE,
    JUDGED,
    OPEN,
    OUTSIDE,
    RULES,
    Axis,
    Recorder,
    reason_of,
)
from dse.study.result import FrontPoint
from dse.study.stated import Stated

__all__ = ["Branching", "Facts", "certify"]


@dataclass(frozen=True)
class Facts:
    """What is known of one design: membership, rules broken, constraints broken or no number, minimized costs."""

    member: bool
    rules: tuple[bool, ...]
    constraints: tuple[bool, ...]
    costs: tuple[float, ...] | None  # None: no number
    feasible: bool
    index: int

    @property
    def legal(self) -> bool:
        return self.member and not any(self.rules)


def facts_of(problem: Problem, team: Team) -> dict[tuple[int, ...], Facts]:
    """Of every design of the team's hull, by its places."""
    hull = team.hull(problem.sizes)
    found = {}
    for places in product(*(range(len(axis)) for axis in hull)):
        digits = [axis[at] for axis, at in zip(hull, places, strict=True)]
        design = problem.design_at(digits)
        bounds = [c.bound for c in problem.constraints]
        nodes = [r.check for r in problem.rules] + [o.node for o in problem.objectives]
        values = evaluate_nodes(problem, design, [*nodes, *(n for b in bounds for n in (b.lhs, b.rhs))])
        costs = [values[o.node] for o in problem.objectives]
        numbers = all(isinstance(v, float) and v == v for v in costs)
        found[places] = Facts(
            member(problem, team, design),
            tuple(values[r.check] is not True for r in problem.rules),
            tuple(_broken(b, values) for b in bounds),
            tuple(v * o.sign for v, o in zip(costs, problem.objectives, strict=True)) if numbers else None,  # type: ignore[operator]
            judge(problem, design).state is State.FEASIBLE,
            problem.index_of(digits),
        )
    return found


def _broken(bound: Any, values: Mapping[int, Any]) -> bool:
    a, b = values[bound.lhs], values[bound.rhs]
    if any(isinstance(side, Undefined) or side != side for side in (a, b)):
        return True
    if bound.op == "holds":
        return a is not True
    return not {"<=": a <= b, "<": a < b, ">=": a >= b, ">": a > b, "==": a == b}[bound.op]


@dataclass
class Branching:
    """One search. ``designs`` counts the designs of each code."""

    problem: Problem
    team: Team
    draw: random.Random
    epsilon: float
    top: int
    objective: int
    facts: dict[tuple[int, ...], Facts] = field(default_factory=dict)
    designs: Counter[int] = field(default_factory=Counter)
    lies: list[bool] = field(default_factory=list)  # whether those of a search that closes too much are true
    hidden: list[Facts] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.facts = facts_of(self.problem, self.team)
        self.sizes = [len(axis) for axis in self.team.hull(self.problem.sizes)]
        good = [f for f in self.facts.values() if f.member and f.feasible]
        self.vectors = {f.costs for f in good if f.costs is not None}
        self.front = [
            v for v in self.vectors if not any(w != v and all(x <= y for x, y in zip(w, v, strict=True)) for w in self.vectors)
        ]  # fmt: skip
        listed = sorted((f.costs[self.objective] + 0.0, f.index) for f in good if f.costs is not None)
        self.best = listed[: self.top]
        self.end = self.best[-1] if len(self.best) == self.top > 0 else (math.inf, 0)
        self.idle = {
            at
            for at in range(len(self.sizes))
            if all(
                box.allowed[at] is None or len(box.allowed[at] or ()) == self.sizes[at]
                for box in self.team.boxes
            )
            and self.problem.names[at] not in self._support()
        }

    def _support(self) -> frozenset[str]:
        problem = self.problem
        nodes = [r.check for r in problem.rules] + [o.node for o in problem.objectives]
        nodes += [n for c in problem.constraints for n in (c.bound.lhs, c.bound.rhs)]
        nodes += [c.node for box in self.team.boxes for c in box.where]
        return frozenset().union(*(problem.graph[n].support for n in nodes))

    def axes(self) -> list[Axis]:
        """A random order of random digits; a dimension's own stand in order."""
        left = [self.digits(at, size) for at, size in enumerate(self.sizes)]
        order = []
        while any(left):
            own = self.draw.choice([axes for axes in left if axes])
            order.append(own.pop(0))
        return order

    def digits(self, dimension: int, size: int) -> list[Axis]:
        found: list[Axis] = []
        stride = 1
        while stride < size or not found:
            own = self.draw.choice([2, 3, size, size + 1])
            found.insert(0, Axis(dimension, own, stride))
            stride *= own
        return found

    def places(self, digits: Sequence[int], axes: Sequence[Axis]) -> list[tuple[int, ...]]:
        """The designs under a node."""
        low = [0] * len(self.sizes)
        span = list(self.sizes)
        for axis in axes:
            span[axis.dimension] = max(span[axis.dimension], axis.size * axis.stride)
        for digit, axis in zip(digits, axes, strict=False):
            low[axis.dimension] += digit * axis.stride
            span[axis.dimension] = axis.stride
        runs = [range(a, min(a + s, size)) for a, s, size in zip(low, span, self.sizes, strict=True)]
        return list(product(*runs))

    def code(self, digits: Sequence[int], axes: Sequence[Axis]) -> int:
        places = self.places(digits, axes)
        facts = [self.facts[p] for p in places]
        if not facts:
            return ABSENT
        if not any(f.member for f in facts):
            return OUTSIDE
        last = self.last(digits, axes)
        if not last and self.draw.random() < 0.1:
            return OPEN  # bounds are not always tight
        for at in range(len(self.problem.rules)):
            if all(f.rules[at] for f in facts):
                return RULES + at
        legal = [f for f in facts if f.legal]
        for at in range(len(self.problem.constraints)):
            if all(f.constraints[at] for f in facts):
                code = RULES + len(self.problem.rules) + at
                # One design that was reached may as well be judged.
                return code if not last or not legal or self.draw.random() < 0.5 else JUDGED
        if any(
            all(f.costs is not None and f.costs[at] == math.inf for f in facts)
            for at in range(len(self.problem.objectives))
        ):
            return INFINITE if not last or self.draw.random() < 0.5 else JUDGED
        if self.dominated(facts):
            return DOMINATED
        return JUDGED if last else OPEN

    def last(self, digits: Sequence[int], axes: Sequence[Axis]) -> bool:
        """Whether the axes that are open influence nothing."""
        return all(axis.dimension in self.idle for axis in axes[len(digits) :])

    def right(self, code: int, digits: Sequence[int], axes: Sequence[Axis]) -> bool:
        """Whether a closed box may have a code: no design of it says otherwise."""
        places = self.places(digits, axes)
        facts = [f for f in (self.facts[p] for p in places) if f.member]
        if code == OUTSIDE:
            return not facts
        rule = code - RULES
        if 0 <= rule < len(self.problem.rules):
            return all(f.rules[rule] for f in facts)
        legal = [f for f in facts if f.legal]
        if code >= RULES:
            return all(f.constraints[rule - len(self.problem.rules)] for f in legal)
        good = [f for f in legal if f.feasible]
        if code == INFINITE:
            return not good
        if code == DOMINATED:
            return all(self.dominated([f]) for f in good)
        free = [at for at in range(len(self.sizes)) if len({p[at] for p in places}) > 1]
        judged = set(free) <= self.idle and len(legal) == len(places)
        return judged and not self.epsilon * len(
            good
        )  # with epsilon, what was judged may belong on the front

    def dominated(self, facts: Sequence[Facts]) -> bool:
        costs = [f.costs for f in facts if f.costs is not None]
        if not costs:
            return False
        low = [min(column) for column in zip(*costs, strict=True)]
        if self.top and (low[self.objective], min(f.index for f in facts)) <= self.end:
            return False
        reach = [x + self.epsilon * abs(x) if self.epsilon else x for x in low]
        return any(
            all(x <= y for x, y in zip(v, reach, strict=True)) and (bool(self.epsilon) or list(v) != low)
            for v in self.front
        )

    def run(self, recorder: Recorder) -> None:
        axes = self.axes()
        recorder.begin(axes, self.epsilon)
        batches: dict[int, list[tuple[int, tuple[int, ...]]]] = {
            0: [(0, ())]
        }  # rows that wait: number, digits
        frames = 0
        while batches:
            batch = self.draw.choice(list(batches))
            rows = batches.pop(batch)
            cut = self.draw.randint(1, len(rows))
            first, rest = rows[:cut], rows[cut:]
            if self.draw.random() < 0.3:
                first, rest = rows[-cut:], rows[:-cut]
            if rest:
                batches[batch] = rest
            size = axes[len(first[0][1])].size
            codes = np.array(
                [[self.code((*digits, own), axes) for own in range(size)] for _, digits in first],
                dtype=np.uint8,
            )
            recorder.frame(batch, first[0][0], codes)
            frames += 1
            fresh = [
                (*digits, own)
                for (_, digits), row in zip(first, codes.tolist(), strict=True)
                for own, code in enumerate(row)
                if code == OPEN
            ]
            if fresh:
                batches[frames] = list(enumerate(fresh))
            for (_, digits), row in zip(first, codes.tolist(), strict=True):
                for own, code in enumerate(row):
                    if code not in (OPEN, ABSENT):
                        self.designs[code] += len(self.places((*digits, own), axes))

    def claim(self, facts: Mapping[str, Any] | None) -> Stated:
        """The result that the certificate belongs to."""
        points = []
        for vector in sorted(self.front):
            own = sorted(
                f.index for f in self.facts.values() if f.member and f.feasible and f.costs == vector
            )
            points.append(self.point(own[0], vector, len(own)))
        objective = self.problem.objectives[self.objective]
        best = [
            {"index": index, "objectives": {objective.name: value * objective.sign}}
            for value, index in self.best
        ]
        stored = {"certificate": facts, "accounting": self.accounting(), "best": best}
        return Stated(self.problem, self.team, stored, points, self.epsilon, self.top, self.objective)

    def point(self, index: int, vector: Iterable[float], ties: int) -> FrontPoint:
        objectives = {o.name: v * o.sign for o, v in zip(self.problem.objectives, vector, strict=True)}
        return FrontPoint(index, self.problem.design_at(self.problem.digits_of(index)), objectives, {}, ties)

    def accounting(self) -> dict[str, Any]:
        illegal: Counter[str] = Counter()
        pruned: Counter[str] = Counter()
        for code, count in self.designs.items():
            if RULES <= code < RULES + len(self.problem.rules):
                illegal[self.problem.rules[code - RULES].name] += count
            elif code not in (OUTSIDE, JUDGED):
                pruned[reason_of(self.problem, code)] += count
        outside = self.problem.size - math.prod(self.sizes) + self.designs[OUTSIDE]
        return {
            "outside": outside,
            "evaluated": self.designs[JUDGED],
            "illegal_by": dict(illegal),
            "pruned_by": dict(pruned),
        }


def certify(
    problem: Problem,
    team: Team,
    folder: Path,
    draw: random.Random,
    *,
    epsilon: float = 0.0,
    top: int = 0,
    objective: int = 0,
) -> tuple[Branching, Stated]:
    """Search, leave ``certificate.bin`` in ``folder``, and return the search and what it claims."""
    branching = Branching(problem, team, draw, epsilon, top, objective)
    recorder = Recorder(folder, problem, team)
    branching.run(recorder)
    return branching, branching.claim(recorder.finish())
