"""Running the trials of a sampling search: batch after batch, logged before and after.

A batch is a function of the seed, its number and the finished trials, and is logged before any of it is run. So
neither the number of workers, nor the order in which trials end, nor a kill and a resume changes what is tried.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

from dse.errors import InputError, nearest
from dse.problem import Problem, Team
from dse.problem.code import import_function
from dse.study.legal import LegalDesigns
from dse.study.measure import Failed, Measurer, check_measurement, read_metrics
from dse.study.proposing import propose_batch
from dse.study.sampled import evaluated
from dse.study.solver import SamplingSolver
from dse.study.storage import Storage
from dse.study.trial import Trial, TrialState
from dse.study.worker import ProcessRunner

__all__ = ["TrialRun"]


class TrialRun:
    """The trials of one study, mirrored in memory. The storage must be acquired.

    Attributes:
        waiting: what was proposed and is not begun.
        exhausted: every legal design was tried.
        dry: no legal design was found that is not tried yet, in a space too large to be sure.
    """

    def __init__(
        self,
        problem: Problem,
        team: Team,
        solver: SamplingSolver,
        storage: Storage,
        legal: LegalDesigns,
        *,
        seed: int,
        batch: int,
        options: Mapping[str, Any],
    ) -> None:
        self.problem = problem
        self.team = team
        self.solver = solver
        self.storage = storage
        self.legal = legal
        self.seed = seed
        self.batch = batch
        self.options = options
        storage.give_back()
        proposed = storage.proposed()
        self._proposed = len(proposed)
        self._batches = proposed[-1].batch + 1 if proposed else 0
        self.waiting = deque(t for t in proposed if t.state is TrialState.RUNNING)
        self._running: dict[int, Trial] = {}
        self._finished = {t.number: t for t in proposed if t.state is not TrialState.RUNNING}
        self.exhausted = bool(storage.fact("exhausted"))
        self.dry = False

    @property
    def finished(self) -> list[Trial]:
        """The finished trials, in order of their numbers."""
        return [self._finished[number] for number in sorted(self._finished)]

    @property
    def done(self) -> int:
        """How many trials are finished."""
        return len(self._finished)

    @property
    def running(self) -> list[Trial]:
        """The trials that were begun and are not finished."""
        return list(self._running.values())

    # -- one trial at a time ------------------------------------------------------------------------

    def next(self) -> Trial | None:
        """Begin the next trial; None when every legal design was tried (or none was found)."""
        if not self.waiting and not self._propose():
            return None
        trial = self.waiting.popleft()
        self.storage.begin(trial.number)
        self._running[trial.number] = trial
        return trial

    def tell(self, number: int, metrics: Mapping[str, Any] | None, failed: str) -> Trial:
        """Log what became of a running trial: its measured metrics in their declared units, or why there are none.

        Raises:
            InputError: the trial is not running, or a metric is missing, unknown or not a number.
        """
        if number not in self._running:
            raise InputError(f"trial {number} is not running, so its result cannot be told")
        known = [name for name, metric in self.problem.metrics.items() if metric.measured]
        for name in metrics or {}:
            if name not in known:
                raise InputError(f"{name!r} is no measured metric{nearest(name, known)}")
        trial = self._running[number]
        if failed:
            done = replace(trial, state=TrialState.FAILED, reason=failed)
        else:
            try:
                done = evaluated(self.problem, trial, read_metrics(self.problem, metrics or {}))
            except Failed as error:
                raise InputError(f"trial {number}: {error}") from None
        self.record(done)
        return done

    def record(self, *trials: Trial) -> None:
        """Log finished trials."""
        self.storage.finish(trials)
        for trial in trials:
            self._running.pop(trial.number, None)
            self._finished[trial.number] = trial

    def give_back(self) -> None:
        """What was begun and is not finished waits again."""
        if self._running:
            self.storage.give_back()
            self.waiting = deque(sorted([*self._running.values(), *self.waiting], key=lambda t: t.number))
            self._running.clear()

    def _propose(self) -> bool:
        """Log the next batch; False when there is nothing left to propose."""
        if self.exhausted:
            return False
        designs = propose_batch(
            self.problem,
            self.team,
            self.solver,
            legal=self.legal,
            history=[*self.finished, *self._running.values()],
            number=self._batches,
            wanted=self.batch,
            seed=self.seed,
            options=self.options,
        )
        if not designs:
            self.dry = self.legal.count is None
            if not self._running and not self.dry:
                self.exhausted = True
                self.storage.set_facts({"exhausted": True})
            return False
        self.storage.propose(self._batches, self._proposed, designs)
        coder = self.legal.coder
        for at, design in enumerate(designs):
            index = coder.index(coder.key(design))
            self.waiting.append(Trial(self._proposed + at, design, index, TrialState.RUNNING, self._batches))
        self._proposed += len(designs)
        self._batches += 1
        return True

    # -- many ---------------------------------------------------------------------------------------

    def run(
        self,
        n_trials: int | None,
        deadline: float | None = None,
        workers: int = 1,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Run until ``n_trials`` are finished, those of earlier runs counted, or nothing is left to try.

        Args:
            deadline: a time of :func:`time.monotonic` after which no trial is begun.
            progress: called with the number of finished trials.
        """
        runner = _runner_of(self.problem, workers)
        try:
            while not _past(deadline):
                left = None if n_trials is None else n_trials - len(self._finished)
                if left is not None and left <= 0:
                    return
                if not self.waiting and not self._propose():
                    return
                limit = len(self.waiting) if left is None else left
                runner.run(self, limit, deadline, progress)
        finally:
            runner.close()
            self.give_back()


class _Computing:
    """Evaluates the cost model here; what is waiting is logged at once."""

    def run(
        self, trials: TrialRun, limit: int, deadline: float | None, progress: Callable[[int], None] | None
    ) -> None:
        done: list[Trial] = []
        while trials.waiting and len(done) < limit and not _past(deadline):
            done.append(evaluated(trials.problem, trials.waiting.popleft()))
        trials.record(*done)
        if progress is not None:
            progress(trials.done)

    def close(self) -> None:
        """Nothing runs on."""


class _Measuring:
    """Measures one design per worker at a time; each is logged when it begins and when it ends."""

    def __init__(self, problem: Problem, workers: int) -> None:
        self.problem = problem
        measurement = check_measurement(problem)
        if measurement.function and workers > 1:
            import_function(measurement.function, measurement.folder)  # a mistake is found before any trial
        self.measurers: list[Measurer] = []
        self.workers = workers
        self.pool = ThreadPoolExecutor(workers) if workers > 1 else None
        self.local = threading.local()
        if self.pool is None:
            self.local.measurer = self._measurer()

    def _measurer(self) -> Measurer:
        measurement = check_measurement(self.problem)
        remote = measurement.function and self.pool is not None
        runner = ProcessRunner(measurement.function, measurement.folder) if remote else None
        measurer = Measurer(self.problem, runner)
        self.measurers.append(measurer)
        return measurer

    def measure(self, trial: Trial) -> Trial:
        """``trial``, finished."""
        if not hasattr(self.local, "measurer"):
            self.local.measurer = self._measurer()
        try:
            measured = self.local.measurer.measure(trial.design)
        except Failed as failed:
            return replace(trial, state=TrialState.FAILED, reason=str(failed))
        return evaluated(self.problem, trial, measured)

    def run(
        self, trials: TrialRun, limit: int, deadline: float | None, progress: Callable[[int], None] | None
    ) -> None:
        begun = 0
        pending: set[Future[Trial]] = set()
        while pending or (trials.waiting and begun < limit and not _past(deadline)):
            if trials.waiting and begun < limit and len(pending) < self.workers and not _past(deadline):
                trial = trials.next()
                assert trial is not None
                begun += 1
                if self.pool is not None:
                    pending.add(self.pool.submit(self.measure, trial))
                    continue
                ended = [self.measure(trial)]
            else:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                ended = [future.result() for future in done]
            trials.record(*ended)
            if progress is not None:
                progress(trials.done)

    def close(self) -> None:
        """Kill what is running."""
        for measurer in self.measurers:
            measurer.close()
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)


def _runner_of(problem: Problem, workers: int) -> _Computing | _Measuring:
    # A measured metric that nothing depends on, and that nothing measures, just stays unknown.
    declared = any(metric.measured for metric in problem.metrics.values())
    measured = problem.measured or (declared and problem.measurement is not None)
    return _Measuring(problem, workers) if measured else _Computing()


def _past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline
