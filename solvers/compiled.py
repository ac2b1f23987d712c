"""Exhaustive search by compiled loops: pieces over threads, taken into the tally in order.

Three rounds: what is outside or illegal is counted; the legal designs are judged; and if none of them is feasible, near
misses are looked for. A piece is a range of the combinations of the outer loops, a fraction of a second long. Whatever
the pieces, the threads and the moments at which buffers fill, the tally ends the same.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dse.evaluation import Judge, Outcomes
from dse.evaluation.compiled import OUTSIDE, Grid, Memory, Nest, Work, empty_sets, set_slot
from dse.study.front import Archive
from dse.study.solver import ExactSearch
from dse.study.tally import Records, Swept, Tally

from .starting import start

__all__ = ["explore"]

_SECONDS = 0.03  # that a piece is to take, more or less
_ROOM = 8192  # designs that a buffer holds before it is taken over
_USUAL = (
    64  # feasible designs of a sample that show which costs are usual; if there are fewer, all designs do
)
_LEAST_ROOM = 256  # designs that the buffer for the front holds at first
_TRAITS = 1_000_000  # values of a dimension of which it is noted which lead to feasible designs
_FAILURES = 5  # of the lowest positions are kept
_LARGEST = np.iinfo(np.int64).max

Positions: TypeAlias = NDArray[np.int64]


def explore(search: ExactSearch, nest: Nest) -> None:
    """Account for every design of ``search`` in its tally, from its state on."""
    mark = [
        str(nest.problem.digest),
        *(work.length for work in (nest.counting, nest.searching) if work),
        *nest.order,
    ]
    if search.state is not None and search.state.get("loops") != mark:
        search.restart({})
    _Rounds(search, nest, mark).run()


class _Rounds:
    """The rounds of a search, from the one that its state names."""

    def __init__(self, search: ExactSearch, nest: Nest, mark: list[Any]) -> None:
        self.search = search
        self.nest = nest
        self.mark = mark

    def run(self) -> None:
        state = self.search.state or {}
        first, done = int(state.get("round", 0)), int(state.get("done", 0))
        nest, tally = self.nest, self.search.tally
        tally.idle, tally.weight = nest.searching.idle, nest.searching.idle_weight
        workers: tuple[type[_Worker], ...] = (_Counting, _Searching, _Missing)
        for number in range(first, len(workers)):
            work = (nest.counting, nest.searching, None)[number]
            if workers[number] is _Missing and not tally.feasible and tally.evaluated > tally.failed:
                work = nest.missing()
            if work is not None:
                self._round(number, work, workers[number], done if number == first else 0)
        self.search.tick(self._state(len(workers), 0), 1.0)

    def _state(self, number: int, done: int) -> dict[str, Any]:
        return {"loops": self.mark, "round": number, "done": done}

    def _round(self, number: int, work: Work, worker: type[_Worker], start: int) -> None:
        """Do the pieces of one round; the first and last take little of the time."""
        base, share = ((0.0, 0.01), (0.01, 0.89), (0.9, 0.1))[number]
        common = _Common(self.search.tally, self.nest)
        make = lambda: worker(self.nest, work, common)  # noqa: E731
        outer = tuple(work.order[: work.split])
        with _pieces(make, work.length, start, self.search.workers) as done:
            for following, take in done:
                take(self.search.tally)
                if worker is _Searching:
                    self.search.tally.swept = Swept(outer, following)
                self.search.tick(self._state(number, following), base + share * following / work.length)


@contextmanager
def _pieces(
    make: Callable[[], _Worker], length: int, start: int, workers: int
) -> Iterator[Iterator[tuple[int, Callable[[Tally], None]]]]:
    """Where each piece ends and what it found, in order. How long pieces are follows from how long they took."""
    free = [make() for _ in range(max(1, workers))]
    pace = _Pace(_SECONDS)

    def piece(first: int, stop: int) -> Callable[[Tally], None]:
        worker = free.pop()
        began = time.perf_counter()
        try:
            return worker.piece(first, stop)
        finally:
            pace.took(stop - first, time.perf_counter() - began)
            free.append(worker)

    def alone() -> Iterator[tuple[int, Callable[[Tally], None]]]:
        at = start
        while at < length:
            stop = min(at + pace.turns, length)
            yield stop, piece(at, stop)
            at = stop

    if workers <= 1:
        yield alone()
        return
    pool = ThreadPoolExecutor(workers)

    def together() -> Iterator[tuple[int, Callable[[Tally], None]]]:
        at = start
        waiting: deque[tuple[int, Future[Callable[[Tally], None]]]] = deque()
        while at < length or waiting:
            while at < length and len(waiting) < workers + 1:
                stop = min(at + pace.turns, length)
                waiting.append((stop, pool.submit(piece, at, stop)))
                at = stop
            done, future = waiting.popleft()
            yield done, future.result()

    try:
        yield together()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Pace:
    """How many turns of the outer loops a piece takes, so that it lasts about ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.turns = 1

    def took(self, turns: int, seconds: float) -> None:
        """Learn from a piece."""
        wanted = turns * self.seconds / max(seconds, 1e-6)
        self.turns = max(1, int(min(wanted, 4.0 * self.turns)))


class _Common:
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
        self._news = 0
        self.grid = self._drawn()

    def _drawn(self) -> Grid:
        return Grid.of(self.archive.to_arrays()[0], self.last, self._usual)

    def sift(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which vectors nothing seen dominates; they are seen from now on."""
        with self.lock:
            keep = ~self.archive.dominates(values)
            found = int(np.count_nonzero(keep))
            if found:
                self.archive.add(values[keep], np.zeros(found, dtype=np.int64))
                self._news += found
                if self._news > 64 + len(self.archive) // 8:
                    self._news, self.grid = 0, self._drawn()
            return keep


class _Worker:
    """What one thread does in a round: it runs pieces, and collects what they find."""

    buffers: dict[str, int]

    def __init__(self, nest: Nest, work: Work, common: _Common) -> None:
        self.nest = nest
        self.work = work
        self.common = common
        self.memory = Memory(work, self._buffers(), self.flush, _ROOM)
        self.found: list[Callable[[Tally], None]] = []

    def _buffers(self) -> dict[str, int]:
        return {}

    def piece(self, start: int, stop: int) -> Callable[[Tally], None]:
        """Do a range of the outer loops; the answer takes what it found into a tally."""
        self.found = []
        try:
            self.memory.run(start, stop)
        except BaseException:
            self.memory.forget()
            raise
        found = [*self.found, self.take(stop - start)]

        def all_of(tally: Tally) -> None:
            for take in found:
                take(tally)

        return all_of

    def flush(self) -> None:
        """Take buffers over. Called in the middle of a piece, too."""

    def take(self, turns: int) -> Callable[[Tally], None]:
        """What was counted in a piece."""
        raise NotImplementedError


class _Counting(_Worker):
    """Counts what is outside or illegal."""

    def __init__(self, nest: Nest, work: Work, common: _Common) -> None:
        super().__init__(nest, work, common)
        self.lines = [condition.line for condition in nest.demands.conditions]
        self.counts = np.zeros(len(self.lines), dtype=np.int64)
        self.memory.point("broken", self.counts)

    def take(self, turns: int) -> Callable[[Tally], None]:
        counts = self.counts.tolist()
        self.counts[:] = 0

        def into(tally: Tally) -> None:
            for line, count in zip(self.lines, counts, strict=True):
                if line == OUTSIDE:
                    tally.outside += count
                else:
                    tally.illegal[line] += count

        return into


class _Searching(_Worker):
    """Judges legal designs."""

    def __init__(self, nest: Nest, work: Work, common: _Common) -> None:
        super().__init__(nest, work, common)
        self.top = nest.wanted.top
        self.best = Records(self.top, {})
        self.memory.set_number("best.cost", float("inf"))
        self.memory.set("best.position", _LARGEST)
        self.failures = Records(_FAILURES, {})
        self.memory.set("failures.below", _LARGEST)
        self.memory.guard(common.grid)
        self.least = min(_LEAST_ROOM, _ROOM)
        self.memory.set("front.room", self.least)

    def _buffers(self) -> dict[str, int]:
        return {"front": len(self.nest.problem.objectives) + 1, "best": 2, "failures": 1}

    def flush(self) -> None:
        rows = self.memory.take("front")
        if len(rows) == self.least < _ROOM:  # guards are poor at first, and better ones soon found
            self.least = min(2 * self.least, _ROOM)
            self.memory.set("front.room", self.least)
        if len(rows):
            values, positions = rows[:, 1:].view(np.float64), rows[:, 0].copy()
            keep = self.common.sift(values)
            if keep.any():
                self._front(values[keep], positions[keep])
        if not self.nest.wanted.ties:
            vectors, firsts, counts = self.memory.ties(self.nest.last)
            if len(vectors):
                tied = Archive.from_state({"values": vectors, "positions": firsts, "ties": counts})
                self.found.append(lambda tally: tally.archive.merge(tied))
        self.memory.guard(self.common.grid)
        if self.top:
            self._best()
        self._failures()

    def _front(self, values: NDArray[np.float64], positions: Positions) -> None:
        self.found.append(lambda tally: tally.archive.add(values, positions))

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

    def take(self, turns: int) -> Callable[[Tally], None]:
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


def _nothing(tally: Tally) -> None:
    """What a piece adds that was handed over already."""


class _Missing(_Worker):
    """Looks for near misses."""

    def __init__(self, nest: Nest, work: Work, common: _Common) -> None:
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
        positions = self.memory.take("near")[:, 0]
        if not len(positions):
            return
        outcomes: Outcomes = self.judge.evaluate(self.nest.facts.digits_of(positions), len(positions))
        self.known.add_misses(positions, outcomes)
        self.found.append(lambda tally: tally.add_misses(positions, outcomes))
        self._limits()

    def take(self, turns: int) -> Callable[[Tally], None]:
        return _nothing


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
