"""Exhaustive search by compiled loops: pieces over threads, taken into the tally in order.

Three rounds: what is outside or illegal is counted; the legal designs are judged; and if none of them is feasible, near
misses are looked for. A piece is a range of the combinations of the outer loops, a fraction of a second long. Whatever
the pieces, the threads and the moments at which buffers fill, the tally ends the same.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from dse.evaluation.compiled import Nest, Work
from dse.study.solver import ExactSearch
from dse.study.tally import Swept, Tally

from .working import Common, Counting, Missing, Searching, Worker

__all__ = ["explore"]

_SECONDS = 0.03  # that a piece is to take, more or less
_LONGEST = 0.15  # that a piece may take where turns are slow
_DESIGNS = 2**25  # in a piece, at most


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
        workers: tuple[type[Worker], ...] = (Counting, Searching, Missing)
        for number in range(first, len(workers)):
            work = (nest.counting, nest.searching, None)[number]
            if workers[number] is Missing and not tally.feasible and tally.evaluated > tally.failed:
                work = nest.missing()
            if work is not None:
                self._round(number, work, workers[number], done if number == first else 0)
        self.search.tick(self._state(len(workers), 0), 1.0)

    @cached_property
    def common(self) -> Common:
        """The front that threads share."""
        return Common(self.search.tally, self.nest)

    def _state(self, number: int, done: int) -> dict[str, Any]:
        return {"loops": self.mark, "round": number, "done": done}

    def _round(self, number: int, work: Work, worker: type[Worker], start: int) -> None:
        """Do the pieces of one round; the first and last take little of the time."""
        base, share = ((0.0, 0.01), (0.01, 0.89), (0.9, 0.1))[number]
        common = self.common if worker is Searching else None
        outer = tuple(work.order[: work.split])
        threads = [worker(self.nest, work, common) for _ in range(max(1, self.search.workers))]
        with _pieces(threads, work.length, start, work.inner) as done:
            for following, take in done:
                take(self.search.tally)
                if worker is Searching:
                    self.search.tally.swept = Swept(outer, following)
                self.search.tick(self._state(number, following), base + share * following / work.length)


@contextmanager
def _pieces(
    workers: list[Worker], length: int, start: int, inner: int
) -> Iterator[Iterator[tuple[int, Callable[[Tally], None]]]]:
    """Where each piece ends and what it found, in order. How long pieces are follows from how long they took."""
    free = list(workers)
    pace = _Pace(_SECONDS, inner)

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

    if len(workers) == 1:
        yield alone()
        return
    pool = ThreadPoolExecutor(len(workers))

    def together() -> Iterator[tuple[int, Callable[[Tally], None]]]:
        at = start
        waiting: deque[tuple[int, Future[Callable[[Tally], None]]]] = deque()
        while at < length or waiting:
            while at < length and len(waiting) <= len(workers):
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
    """How many turns of the outer loops a piece takes, so that it lasts about ``seconds``.

    Where rules leave little the next turns look as fast as the last, and may be a thousand times slower; so no piece has
    more turns than the slowest so far allow, nor more designs than a moment's work.
    """

    def __init__(self, seconds: float, designs: int) -> None:
        self.seconds = seconds
        self.most = max(1, _DESIGNS // designs)
        self.slowest = 0.0
        self.turns = 1

    def took(self, turns: int, seconds: float) -> None:
        """Learn from a piece."""
        each = max(seconds, 1e-6) / turns
        self.slowest = max(self.slowest, each)
        wanted = min(self.seconds / each, 4.0 * self.turns, _LONGEST / self.slowest, self.most)
        self.turns = max(1, int(wanted))
