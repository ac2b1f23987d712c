"""Running an exact solver: pieces over processes, checkpoints, and the result of its tally."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from dse.errors import StudyError
from dse.problem import Problem, Team
from dse.study.certificate import Recorder
from dse.study.gap import Standing
from dse.study.solver import ExactSearch, ExactSolver, State
from dse.study.tally import Swept, Tally
from dse.study.watchdog import end_with_parent

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["ExactRun", "Pieces", "run_exact", "walk"]


@dataclass(frozen=True)
class ExactRun:
    """The tally of a run, whether it accounts for every design, and what the result says of its certificate."""

    tally: Tally
    status: Literal["complete", "stopped"]
    certificate: Mapping[str, Any] | None = None
    standing: Standing | None = None

    @classmethod
    def unpack(cls, problem: Problem, checkpoint: bytes) -> tuple[ExactRun, dict[str, Any]]:
        """The run that a checkpoint is of, as far as it came, and what else was saved."""
        tally, extra = Tally.unpack(problem, checkpoint)
        known = extra.get("standing")
        standing = None if known is None else Standing.from_dict(known, len(problem.objectives))
        facts = extra.get("certificate", {}).get("facts")
        return cls(tally, "complete" if extra["complete"] else "stopped", facts, standing), extra


class _Stop(Exception):
    """Raised inside a solver when it is asked to stop; its tally and state are consistent then."""


def run_exact(
    problem: Problem,
    team: Team,
    solver: ExactSolver,
    *,
    keep: int = 100_000,
    top: int = 0,
    objective: int = 0,
    ties: bool = False,
    seed: int = 0,
    workers: int = 1,
    checkpoint: bytes | None = None,
    save: Callable[[bytes], None] | None = None,
    every: float = 2.0,
    progress: Callable[[float], None] | None = None,
    evaluated: Callable[[int], None] | None = None,
    stop: Callable[[], bool] | None = None,
    certificate: Recorder | None = None,
    options: Mapping[str, Any] | None = None,
) -> ExactRun:
    """Run ``solver`` until every design of ``team`` is accounted for, or ``stop()`` is true.

    Args:
        checkpoint: what an earlier run last saved; the run goes on from there.
        save: called with a checkpoint at most every ``every`` seconds, and when the run stops or ends.
        progress: called with the share of the space accounted for.
        evaluated: called before it with the number of designs that were evaluated.
        certificate: takes down the boxes that are discarded; goes on from the checkpoint, too.
        options: the solver's own.
    """
    state: Mapping[str, Any] | None = None
    earlier: Standing | None = None
    tally = Tally(problem, keep=keep, top=top, objective=objective, ties=ties, seed=seed)
    if checkpoint is not None:
        before, extra = ExactRun.unpack(problem, checkpoint)
        if before.status == "complete":
            return before
        tally, state, earlier = before.tally, extra["state"], before.standing
        if certificate is not None:
            _go_on(certificate, extra.get("certificate", {}).get("mark", {}))
    checkpoints = _Checkpoints(save, certificate, state)
    saved = time.monotonic()

    def on_tick(now: State, done: float) -> None:
        nonlocal saved
        checkpoints.state = now
        if save is not None and time.monotonic() - saved >= every:
            checkpoints.save(search.tally, complete=False)
            saved = time.monotonic()
        if evaluated is not None:
            evaluated(search.tally.evaluated)
        if progress is not None:
            progress(done)
        if stop is not None and done < 1.0 and stop():
            raise _Stop

    search = ExactSearch(problem, team, tally, state, workers, on_tick, certificate, options or {})
    status: Literal["complete", "stopped"] = "complete"
    try:
        if all(team.hull(problem.sizes)):  # a team may have no design at all
            solver.explore(search)
    except _Stop:
        status = "stopped"
    known = _standing(solver, search, earlier) if status == "stopped" else None
    facts = checkpoints.save(search.tally, complete=status == "complete", known=known)
    return ExactRun(search.tally, status, facts, known)


@dataclass
class _Checkpoints:
    """Saves where a search stands; ``state`` is what the solver last said of it."""

    keep: Callable[[bytes], None] | None
    certificate: Recorder | None
    state: State | None

    def save(
        self, tally: Tally, *, complete: bool, known: Standing | None = None
    ) -> Mapping[str, Any] | None:
        """Save a checkpoint, if that is wanted; what the result says of the certificate."""
        state = self.state() if callable(self.state) else self.state
        extra: dict[str, Any] = {"state": state, "complete": complete, "certificate": {}}
        if known is not None:
            extra["standing"] = known.to_dict()
        if self.certificate is not None:
            extra["certificate"] = self.certificate.standing(complete=complete)
        if self.keep is not None:
            try:
                self.keep(tally.pack(extra))
            except StudyError as error:
                if self.certificate is None or not self.certificate.begun or self.certificate.why:
                    raise
                self.certificate.abandon(f"it was removed to make room: {error}")
                extra["certificate"] = self.certificate.standing(complete=complete)
                self.keep(tally.pack(extra))
        facts: Mapping[str, Any] | None = extra["certificate"].get("facts")
        return facts


def _standing(solver: ExactSolver, search: ExactSearch, earlier: Standing | None) -> Standing | None:
    """What a stopped search knows beyond its tally, with what it knew when it was stopped before."""
    now = solver.standing(search)
    return earlier if now is None else now if earlier is None else now.joined(earlier)


def _go_on(certificate: Recorder, mark: Mapping[str, Any]) -> None:
    """Go on with the certificate of an earlier run; without it when what was written is gone."""
    try:
        certificate.restore(mark)
    except StudyError as error:
        certificate.abandon(str(error))


_RUN = 64  # pieces at most that a worker does before it sends its tally home


class Pieces(Protocol):
    """A search cut into numbered pieces that can be done anywhere: made in each process, then asked for pieces."""

    def __len__(self) -> int:
        """How many pieces there are."""
        ...

    def run(self, piece: int, tally: Tally) -> None:
        """Account for all designs of one piece in ``tally``."""
        ...


def walk(search: ExactSearch, make: Callable[[Problem, Team], Pieces], pieces: Pieces | None = None) -> None:
    """Do every piece that ``search.state`` has not, in order, over ``search.workers`` processes.

    ``make`` must be importable by name, so that other processes can call it; ``pieces`` are what it makes, if they are
    made already. Pieces may say which designs the first so many of them hold (``swept``); a search whose pieces were
    cut otherwise when it was stopped then begins again.
    """
    pieces = pieces or make(search.problem, search.team)
    count = len(pieces)
    start = int(search.state["next"]) if search.state else 0
    swept: Callable[[int], Swept] | None = getattr(pieces, "swept", None)
    if swept and start and search.tally.swept != swept(start):
        search.restart({**(search.state or {}), "next": 0})
        start = 0
    for following, tally in _tallies(search, make, pieces, start, count):
        if tally is not search.tally:
            search.tally.merge(tally)
        if swept:
            search.tally.swept = swept(following)
        search.tick({**(search.state or {}), "next": following}, following / count)


def _tallies(
    search: ExactSearch, make: Callable[[Problem, Team], Pieces], pieces: Pieces, start: int, count: int
) -> Iterator[tuple[int, Tally]]:
    """The number of the piece that follows what is done, and the tally that has it."""
    if search.workers > 1 and count - start >= 2:
        yield from _over_processes(search, make, start, count)
        return
    for piece in range(start, count):
        pieces.run(piece, search.tally)
        yield piece + 1, search.tally


def _over_processes(
    search: ExactSearch, make: Callable[[Problem, Team], Pieces], start: int, count: int
) -> Iterator[tuple[int, Tally]]:
    """The tallies of runs of pieces, in order, each with the number of the piece that follows.

    A run is long enough that sending its tally home costs little, and short enough to keep all workers busy.
    """
    from concurrent.futures import ProcessPoolExecutor  # most searches need no other process
    from multiprocessing import get_context

    length = max(1, min(_RUN, (count - start) // (4 * search.workers)))
    pool = ProcessPoolExecutor(
        search.workers,
        mp_context=get_context("spawn"),
        initializer=_prepare,
        initargs=(make, search.problem, search.team, search.tally.options),
    )
    waiting: deque[tuple[int, Future[Tally]]] = deque()
    try:
        for first in range(start, count, length):
            stop = min(first + length, count)
            waiting.append((stop, pool.submit(_pieces, first, stop)))
            if len(waiting) >= 2 * search.workers:
                done, future = waiting.popleft()
                yield done, future.result()
        while waiting:
            done, future = waiting.popleft()
            yield done, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_worker: dict[str, Any] = {}


def _prepare(
    make: Callable[[Problem, Team], Pieces], problem: Problem, team: Team, options: dict[str, Any]
) -> None:
    end_with_parent()
    _worker.update(pieces=make(problem, team), problem=problem, options=options)


def _pieces(first: int, stop: int) -> Tally:
    tally = Tally(_worker["problem"], **_worker["options"])
    for piece in range(first, stop):
        _worker["pieces"].run(piece, tally)
    return tally
