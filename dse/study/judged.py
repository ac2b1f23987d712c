"""Judging again what a certificate says was judged: the front that follows, its ties, and the best designs."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation import BulkEvaluator
from dse.evaluation.verdict import Judge, condition_holds, inside, spread
from dse.study.certificate import JUDGED
from dse.study.dominance import covered
from dse.study.replay import Closed, Tree
from dse.study.result import design_text
from dse.study.stated import Stated

__all__ = ["Judged"]

_NAMED = 5  # findings that are named


@dataclass
class Judged:
    """Judges one design of every judged box again, in bulk, and collects what the front must be."""

    stated: Stated
    tree: Tree
    boxes: int = 0
    found: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        problem, team = self.stated.problem, self.stated.team
        self.hull = [np.asarray(axis, dtype=np.intp) for axis in team.hull(problem.sizes)]
        self.judge = Judge(problem)
        self.checks = [rule.check for rule in problem.rules]
        self.roots = [*self.judge.roots, *self.checks]
        self.roots += [conjunct.node for box in team.boxes for conjunct in box.where]
        self.evaluator = BulkEvaluator(problem, self.roots)
        support = frozenset().union(*(problem.graph[root].support for root in self.roots))
        narrowed = {
            problem.names[at]
            for box in team.boxes
            for at, allowed in enumerate(box.allowed)
            if allowed is not None and len(allowed) < len(self.hull[at])
        }
        self.idle = [name not in support and name not in narrowed for name in problem.names]
        self.front = self.stated.front
        self.columns = np.ascontiguousarray(self.front.vectors.T)
        self.ties = {tuple(vector): [0, -1] for vector in self.front.vectors.tolist()}
        self.best: list[tuple[float, int]] = []  # a heap of (-value, -index)

    def add(self, closed: Closed) -> None:
        """Take in the judged boxes of a frame."""
        rows = np.flatnonzero(closed.codes == JUDGED)
        if not len(rows):
            return
        n, problem = len(rows), self.stated.problem
        self.boxes += n
        places = [self.tree.places(closed.digits[rows], at) for at in range(len(self.hull))]
        spans = self.tree.spans[closed.depth]
        counts = np.ones(n, dtype=object)
        for at, (low, size) in enumerate(zip(places, self.tree.sizes, strict=True)):
            if spans[at] > 1:
                own = np.minimum(size - low, spans[at])
                counts = counts * own
                if not self.idle[at] and (own > 1).any():
                    self._complain(f"a judged box leaves {problem.names[at]} open, which it depends on")
        digits = {name: axis[low] for name, axis, low in zip(problem.names, self.hull, places, strict=True)}
        values = {
            root: spread(bulk, n)
            for root, bulk in self.evaluator.evaluate(digits).items()
            if root in self.roots
        }
        legal = inside(problem, self.stated.team, digits, values, n)
        for check in self.checks:
            legal &= condition_holds(values[check])
        outcomes = self.judge.outcomes(values, n)
        for row in np.flatnonzero(~legal)[:1].tolist():
            self._complain(f"a judged box has a design that is outside or illegal: {self._text(digits, row)}")
        good = np.flatnonzero(outcomes.feasible)
        vectors = outcomes.objectives[good]
        below = covered(self.columns, np.ascontiguousarray(vectors.T))
        for row in good[~below][:1].tolist():
            self._complain(
                f"a judged design belongs on the front and is not there: {self._text(digits, row)}"
            )
        self._tie(vectors, good, counts, places)
        if self.stated.top:
            self._list(vectors[:, self.stated.objective], good, places, spans)

    def _text(self, digits: Mapping[str, NDArray[np.intp]], row: int) -> str:
        problem = self.stated.problem
        return design_text(problem, problem.design_at([int(digits[name][row]) for name in problem.names]))

    def _complain(self, sentence: str) -> None:
        if len(self.found) < _NAMED:
            self.found.append(sentence)

    def _index(self, places: Sequence[int]) -> int:
        return self.stated.problem.index_of(
            [int(axis[low]) for axis, low in zip(self.hull, places, strict=True)]
        )

    def _tie(
        self,
        vectors: NDArray[np.float64],
        rows: NDArray[np.intp],
        counts: NDArray[Any],
        places: Sequence[NDArray[np.int64]],
    ) -> None:
        """Count the designs that attain a vector of the front, and keep the lowest index."""
        likely = np.ones(len(vectors), dtype=np.bool_)
        for column, own in zip(self.columns, vectors.T, strict=True):
            likely &= np.isin(own, column)
        for at in np.flatnonzero(likely).tolist():
            known = self.ties.get(tuple(vectors[at].tolist()))
            if known is not None:
                row = int(rows[at])
                index = self._index([int(low[row]) for low in places])
                known[0] += int(counts[row])
                known[1] = index if known[1] < 0 else min(known[1], index)

    def _list(
        self,
        values: NDArray[np.float64],
        rows: NDArray[np.intp],
        places: Sequence[NDArray[np.int64]],
        spans: Sequence[int],
    ) -> None:
        """Keep the best designs by value, then index."""
        for at in np.argsort(values, kind="stable").tolist():
            value, row = float(values[at]), int(rows[at])
            if len(self.best) == self.stated.top and value > -self.best[0][0]:
                return
            low = [int(column[row]) for column in places]
            runs = [
                range(a, min(a + span, size))
                for a, span, size in zip(low, spans, self.tree.sizes, strict=True)
            ]
            for own in islice(product(*runs), self.stated.top):  # in the order of their indices
                entry = (-value, -self._index(own))
                if len(self.best) < self.stated.top:
                    heapq.heappush(self.best, entry)
                elif entry > self.best[0]:
                    heapq.heapreplace(self.best, entry)

    def wrong(self) -> list[str]:
        """What does not hold, when all boxes were taken in."""
        wrong = list(self.found)
        if not self.stated.epsilon:
            vectors = self.front.vectors.tolist()
            for point, vector in zip(self.stated.points, vectors, strict=True):
                ties, index = self.ties[tuple(vector)]
                if (ties, index) != (point.ties, point.index) and len(wrong) < _NAMED:
                    seen = f"{ties:,} with lowest index {index}" if ties else "none"
                    wrong.append(
                        f"front point {point.index} stands for {point.ties:,} designs, but the certificate judged {seen}"
                    )
        best = sorted((-value, -index) for value, index in self.best)
        if self.stated.top and best != self.stated.best:
            wrong.append("the best designs are not those that the certificate judged")
        return wrong
