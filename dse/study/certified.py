"""Checking the certificate of a study: its coverage, its sums, the front that its judged boxes give, and its boxes."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.errors import VerificationFailed
from dse.evaluation import BulkEvaluator
from dse.evaluation.verdict import Judge, condition_holds, inside, spread
from dse.problem import Problem, Team
from dse.study.boxbounds import Box
from dse.study.certificate import CERTIFICATE, JUDGED, OUTSIDE, RULES, header_of, reason_of
from dse.study.dominance import covered
from dse.study.proofs import Findings
from dse.study.replay import Certificate, Closed, Replay, Tree
from dse.study.reproof import Front, Reprover
from dse.study.result import FrontPoint, design_text

__all__ = ["BOXES", "check_certificate"]

BOXES = 10_000
"""Boxes that are proved again, unless told otherwise."""

_TOGETHER = 4_096  # boxes of one code that are proved together
_NAMED = 5  # boxes of one kind of finding that are named


@dataclass(frozen=True)
class Claim:
    """What a certificate must bear out: the stored result."""

    problem: Problem
    team: Team
    stored: Mapping[str, Any]
    points: Sequence[FrontPoint]
    epsilon: float
    top: int
    objective: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Places per dimension."""
        return tuple(len(axis) for axis in self.team.hull(self.problem.sizes))

    @property
    def front(self) -> Front:
        """What discarded designs must be worse than."""
        signs = [o.sign for o in self.problem.objectives]
        names = [o.name for o in self.problem.objectives]
        vectors = np.array(
            [[p.objectives[n] * s + 0.0 for n, s in zip(names, signs, strict=True)] for p in self.points]
        ).reshape(-1, len(names))
        if not self.top:
            return Front(vectors, self.epsilon)
        best = self.best
        worst = best[-1][0] if len(best) == self.top else math.inf
        return Front(vectors, self.epsilon, self.objective, worst)

    @property
    def best(self) -> list[tuple[float, int]]:
        """The listed best designs: value (minimized) and index, in order."""
        objective = self.problem.objectives[self.objective]
        listed = self.stored.get("best", [])
        return [(float(p["objectives"][objective.name]) * objective.sign + 0.0, p["index"]) for p in listed]


def check_certificate(folder: Path, claim: Claim, boxes: int, seed: int, found: Findings) -> None:
    """Check the certificate that a result names, if it names one.

    Args:
        boxes: how many are proved again: all, or a sample drawn with ``seed``.
    """
    facts = claim.stored.get("certificate")
    if not isinstance(facts, Mapping):
        return
    if facts.get("file") is None:
        found.check(f"there is no certificate to check: {facts.get('why')}", [])
        return
    try:
        certificate = Certificate.read(folder / CERTIFICATE)
        _check_header(certificate, claim)
        if certificate.sha256 != facts.get("sha256"):
            raise VerificationFailed(f"{CERTIFICATE} is not the file that result.json names (sha256 differs)")
        replay = Replay(certificate, claim.sizes, _codes(claim.problem))
        judged = Judged(claim, replay.tree)
        chosen = _chosen(certificate.n_boxes, boxes, seed)
        sample: list[tuple[NDArray[np.int64], Closed]] = []
        for closed in replay:
            judged.add(closed)
            sample += _sampled(closed, chosen)
    except VerificationFailed as error:
        found.check("", [str(error)])
        return
    total = math.prod(claim.sizes)
    found.check(
        f"the {replay.boxes:,} boxes of the certificate are disjoint and cover all {total:,} designs of the search",
        []
        if replay.boxes == facts.get("boxes")
        else ["the certificate has another number of boxes than result.json"],
    )
    found.check("they sum to the accounting, reason by reason", _wrong_sums(claim, replay.designs))
    found.check(f"the front is that of the {judged.boxes:,} judged boxes", judged.wrong())
    _reprove(claim, replay.tree, sample, replay.boxes, found)


def _codes(problem: Problem) -> int:
    return RULES + len(problem.rules) + len(problem.constraints)


def _check_header(certificate: Certificate, claim: Claim) -> None:
    """Make sure that a certificate is of this search."""
    header, name = certificate.header, certificate.path.name
    expected = header_of(claim.problem, claim.team, certificate.axes, claim.epsilon)
    if header.get("problem") != expected["problem"]:
        raise VerificationFailed(
            f"{name} is of another problem (digest {str(header.get('problem'))[:12]}, "
            f"this one's is {claim.problem.digest[:12]})"
        )
    for key in ("team", "boxes"):
        if header.get(key) != expected[key]:
            raise VerificationFailed(
                f"{name} is of another team ({header.get('team')}, this study's is {claim.team.name})"
            )
    for key, value in expected.items():
        if header.get(key) != value:
            raise VerificationFailed(f"{name}: {key} is {header.get(key)}, but must be {value}")


def _wrong_sums(claim: Claim, designs: Mapping[int, int]) -> list[str]:
    """Where the certificate and the accounting differ."""
    problem, accounting = claim.problem, claim.stored["accounting"]
    illegal: dict[str, int] = {}
    pruned: dict[str, int] = {}
    for code, count in designs.items():
        if RULES <= code < RULES + len(problem.rules):
            name = problem.rules[code - RULES].name
            illegal[name] = illegal.get(name, 0) + count
        elif code not in (OUTSIDE, JUDGED):
            name = reason_of(problem, code)
            pruned[name] = pruned.get(name, 0) + count
    outside = problem.size - math.prod(claim.sizes) + designs.get(OUTSIDE, 0)
    pairs = [("outside", outside, accounting["outside"])]
    pairs.append(("evaluated", designs.get(JUDGED, 0), accounting["evaluated"]))
    for word, own, stored in (
        ("illegal", illegal, accounting["illegal_by"]),
        ("pruned", pruned, accounting["pruned_by"]),
    ):
        pairs += [(f"{word} ({name})", own.get(name, 0), stored.get(name, 0)) for name in {**own, **stored}]
    return [
        f"the certificate has {own:,} designs {what}, but the accounting {stored:,}"
        for what, own, stored in pairs
        if own != stored
    ]


# -- the judged boxes ------------------------------------------------------------------------------


@dataclass
class Judged:
    """Judges one design of every judged box again, in bulk, and collects what the front must be."""

    claim: Claim
    tree: Tree
    boxes: int = 0
    found: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        problem, team = self.claim.problem, self.claim.team
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
        self.front = self.claim.front
        self.columns = np.ascontiguousarray(self.front.vectors.T)
        self.ties = {tuple(vector): [0, -1] for vector in self.front.vectors.tolist()}
        self.best: list[tuple[float, int]] = []  # a heap of (-value, -index)

    def add(self, closed: Closed) -> None:
        """Take in the judged boxes of a frame."""
        rows = np.flatnonzero(closed.codes == JUDGED)
        if not len(rows):
            return
        n, problem = len(rows), self.claim.problem
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
        legal = inside(problem, self.claim.team, digits, values, n)
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
        if self.claim.top:
            self._list(vectors[:, self.claim.objective], good, places, spans)

    def _text(self, digits: Mapping[str, NDArray[np.intp]], row: int) -> str:
        problem = self.claim.problem
        return design_text(problem, problem.design_at([int(digits[name][row]) for name in problem.names]))

    def _complain(self, sentence: str) -> None:
        if len(self.found) < _NAMED:
            self.found.append(sentence)

    def _index(self, places: Sequence[int]) -> int:
        return self.claim.problem.index_of(
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
            if len(self.best) == self.claim.top and value > -self.best[0][0]:
                return
            low = [int(column[row]) for column in places]
            runs = [
                range(a, min(a + span, size))
                for a, span, size in zip(low, spans, self.tree.sizes, strict=True)
            ]
            for own in islice(product(*runs), self.claim.top):  # in the order of their indices
                entry = (-value, -self._index(own))
                if len(self.best) < self.claim.top:
                    heapq.heappush(self.best, entry)
                elif entry > self.best[0]:
                    heapq.heapreplace(self.best, entry)

    def wrong(self) -> list[str]:
        """What does not hold, when all boxes were taken in."""
        wrong = list(self.found)
        if not self.claim.epsilon:
            vectors = self.front.vectors.tolist()
            for point, vector in zip(self.claim.points, vectors, strict=True):
                ties, index = self.ties[tuple(vector)]
                if (ties, index) != (point.ties, point.index) and len(wrong) < _NAMED:
                    seen = f"{ties:,} with lowest index {index}" if ties else "none"
                    wrong.append(
                        f"front point {point.index} stands for {point.ties:,} designs, but the certificate judged {seen}"
                    )
        best = sorted((-value, -index) for value, index in self.best)
        if self.claim.top and best != self.claim.best:
            wrong.append("the best designs are not those that the certificate judged")
        return wrong


# -- proving boxes again ---------------------------------------------------------------------------


def _chosen(count: int, limit: int, seed: int) -> NDArray[np.int64]:
    """The numbers of the boxes that are proved again, ascending."""
    if count <= limit:
        return np.arange(count)
    return np.array(sorted(random.Random(seed).sample(range(count), limit)), dtype=np.int64)


def _sampled(closed: Closed, chosen: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], Closed]]:
    """Those boxes of a frame that were chosen, with their numbers."""
    first, last = np.searchsorted(chosen, [closed.first, closed.first + len(closed.codes)])
    rows = chosen[first:last] - closed.first
    if not len(rows):
        return []
    return [(chosen[first:last], Closed(closed.first, closed.codes[rows], closed.digits[rows]))]


def _boxes(tree: Tree, closed: Closed) -> Iterator[Box]:
    """The places of the boxes of a frame."""
    ends = []
    for at, (span, size) in enumerate(zip(tree.spans[closed.depth], tree.sizes, strict=True)):
        low = tree.places(closed.digits, at)
        ends.append(list(zip(low.tolist(), np.minimum(low + span, size).tolist(), strict=True)))
    return zip(*ends, strict=True)


def _reprove(
    claim: Claim,
    tree: Tree,
    sample: Sequence[tuple[NDArray[np.int64], Closed]],
    count: int,
    found: Findings,
) -> None:
    reprover = Reprover(claim.problem, claim.team, claim.front, tree)
    by_code: dict[int, tuple[list[int], list[Box]]] = {}
    tried = proved = 0
    wrong: dict[int, str] = {}

    def prove(code: int) -> None:
        nonlocal tried, proved
        own, boxes = by_code.pop(code)
        for number, finding in zip(own, reprover.prove(code, boxes, own), strict=True):
            tried += 1
            proved += finding.proved
            if finding.wrong:
                wrong[number] = f"box {number} of the certificate is wrong: {finding.wrong}"

    for numbers, closed in sample:
        for number, code, box in zip(
            numbers.tolist(), closed.codes.tolist(), _boxes(tree, closed), strict=True
        ):
            own, boxes = by_code.setdefault(code, ([], []))
            own.append(number)
            boxes.append(box)
            if len(boxes) == _TOGETHER:
                prove(code)
    for code in list(by_code):
        prove(code)
    left = tried - proved - len(wrong)
    rest = f"; {left:,} could not be within the effort" if left else ""
    found.check(f"{proved:,} of {count:,} boxes re-proved{rest}", [wrong[at] for at in sorted(wrong)])
