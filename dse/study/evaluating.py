"""Evaluating the waiting trials of a study: computing them here, or measuring them with several workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from dse.problem import Problem
from dse.problem.code import import_function
from dse.study.measure import Failed, Measurer, check_measurement, needed_metrics
from dse.study.progress import Interrupts
from dse.study.sampled import evaluated
from dse.study.trial import Trial, TrialState
from dse.study.worker import ProcessRunner

__all__ = ["Budget", "Trials", "is_measured", "runner_of"]


@dataclass(frozen=True, slots=True)
class Budget:
    """How many trials may be begun, until when, and who is told and asked between them."""

    limit: int
    deadline: float | None
    progress: Callable[[int], None] | None
    interrupts: Interrupts

    @property
    def open(self) -> bool:
        """Whether another trial may be begun now."""
        past = self.deadline is not None and time.monotonic() >= self.deadline
        return not past and not self.interrupts.asked


class Trials(Protocol):
    """What is evaluated: the waiting trials of a study, and its log."""

    problem: Problem
    waiting: dict[int, Trial]

    @property
    def done(self) -> int:
        """How many trials are finished."""
        ...

    def begin(self) -> Trial:
        """Log that the next waiting trial is running."""
        ...

    def record(self, *trials: Trial) -> None:
        """Log finished trials."""
        ...


class Computing:
    """Evaluates the cost model here; what is waiting is logged at once."""

    def run(self, trials: Trials, budget: Budget) -> None:
        """Evaluate waiting trials."""
        done: list[Trial] = []
        for trial in islice(trials.waiting.values(), budget.limit):
            if not budget.open:
                break
            done.append(evaluated(trials.problem, trial))
        _record(trials, done, budget)

    def close(self) -> None:
        """Nothing runs on."""


class Measuring:
    """Measures one design per worker at a time; each is logged when it begins and when it ends.

    One worker calls a Python function in this process, in this thread; everything else runs in processes of its own,
    waited for by threads, so that Ctrl-C meets no one who is just starting one.
    """

    def __init__(self, problem: Problem, workers: int) -> None:
        self.problem = problem
        measurement = check_measurement(problem)
        if measurement.function and workers > 1:
            import_function(measurement.function, measurement.folder)  # a mistake is found before any trial
        self.measurers: list[Measurer] = []
        self.workers = workers
        self.pool = ThreadPoolExecutor(workers) if workers > 1 or measurement.command else None
        self.local = threading.local()
        self.lock = threading.Lock()
        self.closed = False
        self.needed = needed_metrics(problem)
        if self.pool is None:
            self.local.measurer = self._measurer()

    def _measurer(self) -> Measurer:
        measurement = check_measurement(self.problem)
        remote = measurement.function and self.pool is not None
        runner = ProcessRunner(measurement.function, measurement.folder) if remote else None
        measurer = Measurer(self.problem, runner)
        with self.lock:
            self.measurers.append(measurer)
            if self.closed:
                measurer.close()
        return measurer

    def measure(self, trial: Trial) -> Trial:
        """``trial``, finished."""
        if not hasattr(self.local, "measurer"):
            self.local.measurer = self._measurer()
        try:
            measured = self.local.measurer.measure(trial.design)
        except Failed as failed:
            if not self.needed:
                return evaluated(self.problem, trial)
            return replace(trial, state=TrialState.FAILED, reason=str(failed))
        return evaluated(self.problem, trial, measured)

    def run(self, trials: Trials, budget: Budget) -> None:
        """Measure waiting trials; Ctrl-C breaks off those that are under way.

        Raises:
            KeyboardInterrupt: the trials that are under way are not recorded.
        """
        begun = 0
        pending: set[Future[Trial]] = set()
        while True:
            while trials.waiting and begun < budget.limit and len(pending) < self.workers and budget.open:
                trial = trials.begin()
                begun += 1
                if self.pool is None:
                    with budget.interrupts.breakable():
                        ended = self.measure(trial)
                    _record(trials, [ended], budget)
                else:
                    pending.add(self.pool.submit(self.measure, trial))
            if not pending:
                return
            with budget.interrupts.breakable():
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
            _record(trials, (future.result() for future in done), budget)

    def close(self) -> None:
        """Kill what is running."""
        with self.lock:
            self.closed = True
            for measurer in self.measurers:
                measurer.close()
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)


def _record(trials: Trials, ended: Iterable[Trial], budget: Budget) -> None:
    trials.record(*ended)
    if budget.progress is not None:
        budget.progress(trials.done)


def is_measured(problem: Problem) -> bool:
    """Whether trials must be measured. A metric that nothing depends on, and that nothing measures, stays unknown."""
    declared = any(metric.measured for metric in problem.metrics.values())
    return problem.measured or (declared and problem.measurement is not None)


def runner_of(problem: Problem, workers: int) -> Computing | Measuring:
    """What evaluates the trials of a problem.

    Raises:
        InputError: they must be measured, and nothing can measure them.
    """
    return Measuring(problem, workers) if is_measured(problem) else Computing()
