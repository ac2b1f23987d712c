"""What the threads of a compiled search do in each of its rounds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dse.evaluation import Judge, Outcomes
from dse.evaluation.compiled import OUTSIDE, Grid, Memory, Nest, Work, empty_sets, set_slot
from dse.study.front import Archive
from dse.study.tally import Records, Tally

from .starting import start

__all__ = ["Common", "Counting", "Missing", "Searching", "Worker"]

_ROOM = 8192  # designs that a buffer holds before it is taken over
_LEAST_ROOM = 256  # designs that the buffer for the front holds at first
_USUAL = 64  # feasible designs that show which costs are usual; if fewer are known, all designs do
_TRAITS = 1_000_000  # values of a dimension of which it is noted which lead to feasible designs
_FAILURES = 5  # of the lowest positions are kept
_LARGEST = np.iinfo(np.int64).max

Positions: TypeAlias = NDArray[np.int64]


class Common:
    """What the threads of a round share: a front of designs seen anywhere, which discards what it dominates."""

    def __init__(self, tally: Tally, nest: Nest) -> None:
        self.lock = threading.Lock()
        self.last = nest.last
        self.archive = Archive(tally.archive.k)
        values, positions, _ = tally.archive.to_arrays()
        seeds = start(nest)
        self.archive.add(values, positions)
        self.archive.add(seeds, np.zeros(len(seeds), dtype=np.int64))
        usual = seeds if len(seeds) >= _USUAL else nest.sample.outcomes.objectives
        self._usual = usual[np.isfinite(usual).all(axis=1)]
        self.grid = self._drawn()

    def _drawn(self) -> Grid:
        front = self.archive.to_arrays()[0]
        self._news, self._enough = 0, 256 + len(front) // 4
        return Grid.of(front, self.last, self._usual)

    def learn(self, values: NDArray[np.float64]) -> None:
        """Hear of feasible designs, and from time to time draw the grid anew."""
        with self.lock:
            self.archive.add(values, np.zeros(len(values), dtype=np.int64))
            self._news += len(values)
            if self._news >= self._enough:
                self.grid = self._drawn()


class Worker:
    """What one thread does in a round: it runs pieces, and collects what they find."""

    def __init__(self, nest: Nest, work: Work, common: Common | None) -> None:
        self.nest = nest
        self.work = work
        self.memory = Memory(work, self._buffers(), self.flush, _ROOM)
        self.found: list[Callable[[Tally], None]] = []

    def _buffers(self) -> dict[str, int]:
        return {}

    def piece(self, start: int, stop: int) -> Callable[[Tally], None]:
        """Do a range of the outer loops; the answer takes what it found into a tally."""
        self.found = []
        self.memory.run(start, stop)
        found = [*self.found, self.counted()]

        def all_of(tally: Tally) -> None:
            for take in found:
                take(tally)

        return all_of

    def flush(self) -> None:
        """Take buffers over. Called in the middle of a piece, too."""

    def counted(self) -> Callable[[Tally], None]:
        """What was counted in a piece."""
        return _nothing


def _nothing(tally: Tally) -> None:
    """What a piece adds that was handed over already."""


class Counting(Worker):
    """Counts what is outside or illegal."""

    def __init__(self, nest: Nest, work: Work, common: Common | None) -> None:
        super().__init__(nest, work, common)
        self.lines = [condition.line for condition in nest.demands.conditions]
        self.counts = np.zeros(len(self.lines), dtype=np.int64)
        self.memory.point("broken", self.counts)

    def counted(self) -> Callable[[Tally], None]:
        """What was counted in a piece."""
        counts = self.counts.tolist()
        self.counts[:] = 0

        def into(tally: Tally) -> None:
            for line, count in zip(self.lines, counts, strict=True):
                if line == OUTSIDE:
                    tally.outside += count
                else:
                    tally.illegal[line] += count

        return into


class Searching(Worker):
    """Judges legal designs."""

    def __init__(self, nest: Nest, work: Work, common: Common | None) -> None:
        super().__init__(nest, work, common)
        assert common is not None
        self.common = common
        self.top = nest.wanted.top
        self.best = Records(self.top, {})
        self.memory.set_number("best.cost", float("inf"))
        self.memory.set("best.position", _LARGEST)
        self.failures = Records(_FAILURES, {})
        self.memory.set("failures.below", _LARGEST)
        self.memory.guard(common.grid)
        self.least = min(_LEAST_ROOM, _ROOM)
        self.memory.set("front.room", self.least)
        self._heard: list[NDArray[np.float64]] = []  # of which the others have not been told

    def _buffers(self) -> dict[str, int]:
        return {"front": len(self.nest.problem.objectives) + 1, "best": 2, "failures": 1}

    def flush(self) -> None:
        """Take over candidates for the front and for the best, and the first failures; bring better guards."""
        rows = self.memory.take("front")
        if len(rows):
            values, positions = rows[:, 1:].copy().view(np.float64), rows[:, 0].copy()
            self.found.append(lambda tally: tally.archive.add(values, positions))
            self._heard.append(values)
        if len(rows) == self.least < _ROOM:  # guards are poor at first, and better ones soon found
            self.least = min(2 * self.least, _ROOM)
            self.memory.set("front.room", self.least)
        if len(rows) == self.least or sum(map(len, self._heard)) >= _LEAST_ROOM:
            self.common.learn(np.concatenate(self._heard))
            self._heard.clear()
        if not self.nest.wanted.ties:
            vectors, firsts, counts = self.memory.ties(self.nest.last)
            if len(vectors):
                tied = Archive.from_state({"values": vectors, "positions": firsts, "ties": counts})
                self.found.append(lambda tally: tally.archive.merge(tied))
        self.memory.guard(self.common.grid)
        if self.top:
            self._best()
        self._failures()

    def _best(self) -> None:
        rows = self.memory.take("best")
        if not len(rows):
            return
        costs = rows[:, 1].copy().view(np.float64)
        positions = rows[:, 0].copy()
        self.found.append(lambda tally: tally.best.add(costs, positions, {}))
        self.best.add(costs, positions, {})
        held = self.best.arrays()
        if len(held["keys"]) == self.top:
            self.memory.set_number("best.cost", float(held["keys"][-1]))
            self.memory.set("best.position", int(held["positions"][-1]))

    def _failures(self) -> None:
        rows = self.memory.take("failures")
        if not len(rows):
            return
        positions = (rows + _lowest(self.work.inner_strides, _FAILURES)).reshape(-1)
        self.failures.add(positions.astype(np.float64), positions, {})
        self.found.append(lambda tally: tally.failures.add(positions.astype(np.float64), positions, {}))
        held = self.failures.positions
        if len(held) == _FAILURES:
            self.memory.set("failures.below", int(held[-1]))

    def counted(self) -> Callable[[Tally], None]:
        """What was counted in a piece."""
        counts = self.memory.counts()
        seen = self.memory.seen(_TRAITS) if counts["feasible"] else {}

        def into(tally: Tally) -> None:
            failed, feasible = counts.get("failed", 0), counts["feasible"]
            tally.failed += failed
            tally.feasible += feasible
            tally.evaluated += failed + feasible
            for requirement in self.nest.demands.requirements:
                line = requirement.line
                tally.alone[line] += counts[f"alone.{line}"]
                tally.in_order[line] += counts[f"in_order.{line}"]
                tally.evaluated += counts[f"in_order.{line}"]
            if feasible:
                tally.relaxed.clear()
                _mark(tally, self.nest, seen)

        return into


class Missing(Worker):
    """Looks for near misses."""

    def __init__(self, nest: Nest, work: Work, common: Common | None) -> None:
        super().__init__(nest, work, common)
        self.judge = Judge(nest.problem)
        self.known = Tally(nest.problem)  # the near misses that this thread has seen
        self.sets = empty_sets()
        self.memory.point("near.sets", self.sets)
        self._limits()

    def _buffers(self) -> dict[str, int]:
        return {"near": 1}

    def _limits(self) -> None:
        near = self.known.nearest.arrays()
        empty = not len(near["keys"])
        self.memory.set_number("near.cost", float("inf") if empty else float(near["keys"][0]))
        self.memory.set("near.position", _LARGEST if empty else int(near["positions"][0]))
        self.memory.set(
            "near.fewest", next(iter(self.known.relaxed)).bit_count() if self.known.relaxed else 64
        )
        for mask, (nearness, position) in self.known.relaxed.items():
            self.sets[set_slot(mask)] = (mask, np.float64(nearness).view(np.int64), position)

    def flush(self) -> None:
        """Judge near misses; only nearer ones are handed over from now on."""
        positions = self.memory.take("near")[:, 0]
        if not len(positions):
            return
        outcomes: Outcomes = self.judge.evaluate(self.nest.facts.digits_of(positions), len(positions))
        self.known.add_misses(positions, outcomes)
        self.found.append(lambda tally: tally.add_misses(positions, outcomes))
        self._limits()


# -- designs that the loops do not tell apart ------------------------------------------------------------


def _lowest(strides: list[tuple[int, int]], most: int) -> Positions:
    """The lowest steps that some dimensions' places make, ascending; ``strides`` (stride, size) from the smallest."""
    steps = np.zeros(1, dtype=np.int64)
    for stride, size in strides:
        own = np.arange(min(size, -(-most // len(steps))), dtype=np.int64) * stride
        steps = (own[:, None] + steps[None, :]).reshape(-1)
        if len(steps) >= most:
            break
    return steps[:most]


def _mark(tally: Tally, nest: Nest, seen: dict[int, NDArray[np.bool_]]) -> None:
    """Note which values occur among feasible designs: those noted, and all of dimensions that decide nothing."""
    for at, (present, places) in enumerate(zip(tally.present, nest.facts.hull, strict=True)):
        if len(present):  # else it has more values than traits are noted of
            present[places[seen[at]] if at in seen else places] = True
