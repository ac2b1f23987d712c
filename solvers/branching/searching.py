"""The search itself: batches of boxes, expanded depth first, every discarded design counted."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bounds import Boxes
from dse.evaluation.positions import as_integer
from dse.problem import Problem, Team
from dse.study.dominance import covered
from dse.study.solver import ExactSearch
from dse.study.tally import BEATEN, Tally

from .begun import Begun
from .expanding import DOMINATED, FIRST, INFINITE, OPEN, OUTSIDE, Expanded, Tree, Wanted
from .guard import Guard
from .judging import Points
from .ordering import improved_order, sampled_order
from .seeding import Seeding

__all__ = ["Batch", "Plan", "Search", "Settings"]

CHILDREN = 65_536
"""Children looked at in one step: arrays of that many numbers stay in a processor's cache."""

_STACK = 500_000_000
"""About twice the bytes that all boxes which wait may take, of a deep search."""

_IMPROVED = 12, 120
"""Rounds of local search, and designs of the front whose neighbours are tried in each."""

_LONG = 20_000_000
"""Estimated boxes from which a search is long."""

_IMPROVED_LONG = 20, 400
_MOVES = 100
"""More local search, and moves of axes tried, for a long search."""

_ROUND = 2
"""Steps of a round; they share a guard and can be done at once."""


@dataclass(frozen=True)
class Batch:
    """Boxes that wait: ``rows`` (depth, n) of batch ``number``, from its row ``start`` on.

    ``held`` are those that hold a design which the search began with, where that matters.
    """

    number: int
    start: int
    rows: NDArray[np.uint8]
    held: NDArray[np.intp]

    def cut(self, n: int) -> tuple[Batch, Batch]:
        """The first ``n`` boxes and the rest."""
        return (
            Batch(self.number, self.start, self.rows[:, :n], self.held[self.held < n]),
            Batch(self.number, self.start + n, self.rows[:, n:], self.held[self.held >= n] - n),
        )

    def pack(self) -> list[Any]:
        """As JSON values."""
        packed = base64.b64encode(zlib.compress(self.rows.tobytes(), 1)).decode()
        return [self.number, self.start, list(self.rows.shape), packed, self.held.tolist()]

    @classmethod
    def unpack(cls, data: list[Any]) -> Batch:
        """What :meth:`pack` gave."""
        number, start, shape, packed, held = data
        rows = np.frombuffer(zlib.decompress(base64.b64decode(packed)), dtype=np.uint8).reshape(shape)
        return cls(number, start, rows, np.array(held, dtype=np.intp))

    @classmethod
    def root(cls, *, held: bool = False) -> Batch:
        """The box of all designs."""
        return cls(0, 0, np.zeros((0, 1), dtype=np.uint8), np.zeros(int(held), dtype=np.intp))


class Settings(NamedTuple):
    """What is asked of a search: ``seed`` of what is random, ``epsilon``, and the ``top`` designs of an objective."""

    seed: int
    epsilon: float
    top: int
    objective: int


class Plan:
    """What the search of a problem needs, and does not change while it runs.

    It follows from the problem, team, seed and settings alone: ``start`` are feasible designs, ``begun`` follows them
    down, ``tree`` has the order, ``estimate`` is how many boxes the search is likely to look at. Where those are many, more
    work goes into good designs and a good order first.
    """

    def __init__(
        self,
        problem: Problem,
        team: Team,
        settings: Settings,
        *,
        poll: Callable[[], None],
        seeded: Callable[[Boxes, Seeding], None],
    ) -> None:
        """``poll`` is called now and then, and may raise to stop; ``seeded`` once, when there may be designs."""
        self._poll = poll
        self.boxes = Boxes(problem, team)
        self.points = Points(self.boxes)
        self.epsilon = settings.epsilon
        rng = np.random.default_rng(settings.seed)
        seeding = Seeding(
            self.boxes, self.points, rng, top=settings.top, objective=settings.objective, poll=poll
        )
        seeded(self.boxes, seeding)
        seeding.improve(*_IMPROVED)
        order, self.estimate = self._ordered(seeding, rng, moves=0)
        if self.estimate >= _LONG:
            seeding.improve(*_IMPROVED_LONG)
            order, self.estimate = self._ordered(seeding, rng, moves=_MOVES)
        self.start = seeding.seeds()
        self.tree = Tree(self.boxes, order)
        self.begun = Begun(self.tree, self.start.places)
        del self._poll

    def _ordered(self, seeding: Seeding, rng: np.random.Generator, *, moves: int) -> tuple[list[int], float]:
        guard = Guard(seeding.seeds().values, self.epsilon)
        order = sampled_order(self.boxes, guard, rng, self._poll)
        return improved_order(self.boxes, order, guard, rng, moves=moves, poll=self._poll)


class Search:
    """A search under way: its stack of batches, and the guard made of the best vectors found so far."""

    def __init__(self, search: ExactSearch, plan: Plan) -> None:
        self.search = search
        self.plan = plan
        self.tree = plan.tree
        self.problem = search.problem
        self.total = plan.boxes.grid.total
        self._spare(search.tally)
        self._start = plan.start.values
        held = plan.epsilon > 0.0 and len(plan.start.values) > 0
        self.stack = [Batch.root(held=held)]
        self.batches = 1
        self.done = 0
        self.boxes = 0
        self.worst = plan.start.worst
        if "stack" in (search.state or {}):
            self._resume(search.state or {})
        self.guard = self._guard()

    def _spare(self, tally: Tally) -> None:
        """Let one design stand for all that differ in idle dimensions alone."""
        grid = self.plan.boxes.grid
        tally.idle = tuple(sorted({grid.axes[axis].dimension for axis in self.plan.boxes.idle}))
        tally.weight = math.prod(grid.sizes[d] for d in tally.idle)
        for d in tally.idle:
            if len(tally.present[d]):
                tally.present[d][grid.hull[d]] = True

    # -- state ----------------------------------------------------------------------------------------

    def state(self) -> Mapping[str, Any]:
        """Where the search stands, as JSON values; the tally holds the rest."""
        return {
            "stack": [batch.pack() for batch in self.stack],
            "batches": self.batches,
            "done": self.done,
            "boxes": self.boxes,
            "worst": self.worst.tolist(),
        }

    def _resume(self, state: Mapping[str, Any]) -> None:
        self.stack = [Batch.unpack(data) for data in state["stack"]]
        self.batches, self.done, self.boxes = state["batches"], state["done"], state["boxes"]
        self.worst = np.array(state["worst"])

    def _guard(self) -> Guard:
        """The guard of the front found so far and of what the search began with."""
        archive = self.search.tally.archive
        self._start = self._start[~archive.dominates(self._start, or_equal=True)]
        found = archive.to_arrays()[0]
        found = found[~covered(self._start.T, np.ascontiguousarray(found.T))]
        return Guard(np.concatenate([self._start, found]), self.plan.epsilon)

    # -- running --------------------------------------------------------------------------------------

    def run(self) -> None:
        """Search until nothing waits."""
        if self.search.certificate is not None and "stack" not in (self.search.state or {}):
            order = [self.tree.grid.axes[axis] for axis in self.tree.order]
            self.search.certificate.begin(order, self.plan.epsilon)
        with ThreadPoolExecutor(self.search.workers) as pool:
            while self.stack:
                steps = list(self._steps())
                expand = partial(self._expand, guard=self.guard, wanted=self._wanted())
                if len(steps) > 1 and self.search.workers > 1:
                    found = list(pool.map(expand, steps))
                else:
                    found = [expand(step) for step in steps]
                self._take(steps, found)
                self.search.tick(self.state, self.done / self.total)

    def _expand(self, step: Batch, *, guard: Guard, wanted: Wanted | None) -> Expanded:
        found = self.tree.expand(step.rows, guard, wanted=wanted)
        return self.plan.begun.reopened(step.rows, step.held, found)

    def _wanted(self) -> Wanted | None:
        """What keeps a box that may hold one of the best designs of one objective, when those are to be listed."""
        tally = self.search.tally
        if not tally.best.limit:
            return None
        best, ends = tally.best.arrays(), []
        if len(best["keys"]) == tally.best.limit:
            ends.append((float(best["keys"][-1]), as_integer(best["positions"][-1])))
        if self.plan.start.best is not None:
            ends.append(self.plan.start.best)
        key, position = min(ends, default=(math.inf, None))
        objective = tally.objective

        def wanted(lows: NDArray[np.float64], columns: Mapping[int, NDArray[np.intp]]) -> NDArray[np.bool_]:
            found: NDArray[np.bool_] = lows[objective] < key
            equal = (
                np.flatnonzero(lows[objective] == key) if position is not None else np.empty(0, dtype=np.intp)
            )
            if equal.size:
                own = {axis: column[equal] for axis, column in columns.items()}
                lowest = self.plan.points.positions(self.tree.grid.places(own, equal.size))
                found[equal] = lowest <= position
            return found

        return wanted

    def _steps(self) -> Iterator[Batch]:
        """The batches of the next round, taken off the stack: parts of its top, of one depth."""
        depth = len(self.stack[-1].rows)
        most = max(1, min(CHILDREN, _STACK // self.tree.depth**2) // self.tree.width(depth))
        for _ in range(_ROUND):
            if not self.stack or len(self.stack[-1].rows) != depth:
                return
            batch = self.stack.pop()
            if batch.rows.shape[1] > most:
                batch, rest = batch.cut(most)
                self.stack.append(rest)
            yield batch

    def _take(self, steps: list[Batch], found: list[Expanded]) -> None:
        """Account for what a round found, in order, whoever found it."""
        fresh = False
        waiting: list[Batch] = []
        for step, expanded in zip(steps, found, strict=True):
            self.boxes += expanded.codes.size
            if len(expanded.rows) == self.tree.depth and expanded.rows.shape[1]:
                fresh |= self._judge(expanded)
            for code, count in self.tree.counts(step.rows, expanded.codes).items():
                self._account(code, count)
            if self.search.certificate is not None:
                self.search.certificate.frame(step.number, step.start, expanded.codes)
            if len(expanded.rows) < self.tree.depth and expanded.rows.shape[1]:
                held = self.plan.begun.held(expanded.rows) if step.held.size else step.held
                waiting.append(Batch(self.batches, 0, expanded.rows, held))
            self.batches += 1
        self.stack += reversed(waiting)
        if fresh:
            self.guard = self._guard()

    def _judge(self, expanded: Expanded) -> bool:
        """Judge the designs that were reached, and give them their codes; whether a new vector was among them."""
        points = self.plan.points
        codes, places, digits, outcomes = points.judged(self.tree.places(expanded.rows))
        flat = expanded.codes.reshape(-1)
        flat[np.flatnonzero(flat == OPEN)] = codes
        if outcomes is None:
            return False
        self.search.tally.add(points.positions(places), outcomes, digits)
        found = outcomes.objectives[outcomes.feasible]
        self.worst = np.maximum(self.worst, found.max(axis=0, initial=-np.inf))
        return not self.guard.holds(found)

    def _account(self, code: int, count: int) -> None:
        """Count the designs of a closed box."""
        tally: Tally = self.search.tally
        self.done += count
        if code == OUTSIDE:
            tally.outside += count
        elif code == DOMINATED:
            tally.prune(BEATEN, count)
        elif code == INFINITE:
            tally.prune("objective not finite", count)
        elif FIRST <= code < self.tree.first_constraint:
            tally.illegal[code - FIRST] += count
        elif code >= self.tree.first_constraint:
            name = self.problem.constraints[code - self.tree.first_constraint].name
            tally.prune(f"constraint {name}", count)
