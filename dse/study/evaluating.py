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
from dse.study.measure import (
    Failed,
    Measurer,
    Runner,
    check_measurement,
    given_inputs,
    needed_metrics,
    runner_for,
)
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

    The user's code runs in processes of its own, waited for by threads, so that Ctrl-C meets no one who is just
    starting one, and a crash ends no more than a trial.

    Raises:
        InputError: nothing measures, or the function that should cannot be had or refuses the inputs.
    """

    def __init__(self, problem: Problem, workers: int) -> None:
        self.problem = problem
        self.measurement = check_measurement(problem)
        self.needed = needed_metrics(problem)
        self.workers = workers
        self.measurers: list[Measurer] = []
        self.spare: list[Measurer] = []
        self.local = threading.local()
        self.lock = threading.Lock()
        self.closed = False
        runner = runner_for(self.measurement)
        if isinstance(runner, ProcessRunner):
            try:
                runner.check(given_inputs(problem))  # a mistake is found before any trial
            except BaseException:
                runner.close()
                raise
        self.spare.append(self._measurer(runner))
        self.pool = ThreadPoolExecutor(workers)

    def _measurer(self, runner: Runner | None = None) -> Measurer:
        measurer = Measurer(self.problem, runner)
        with self.lock:
            self.measurers.append(measurer)
            if self.closed:
                measurer.close()
        return measurer

    def _own(self) -> Measurer:
        """The measurer of this thread."""
        if not hasattr(self.local, "measurer"):
            with self.lock:
                spare = self.spare.pop() if self.spare else None
            self.local.measurer = spare or self._measurer()
        found: Measurer = self.local.measurer
        return found

    def measure(self, trial: Trial) -> Trial:
        """``trial``, finished."""
        try:
            measured = self._own().measure(trial.design)
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
                pending.add(self.pool.submit(self.measure, trials.begin()))
                begun += 1
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
