"""Running the trials of a sampling search: batch after batch, logged before and after.

A batch is a function of the seed, its number and the finished trials, and is logged before any of it is run. So
neither the number of workers, nor the order in which trials end, nor a kill and a resume changes what is tried.
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dse.errors import InputError, nearest
from dse.problem import Problem, Team
from dse.study.evaluating import Budget, runner_of
from dse.study.identity import Key
from dse.study.legal import LegalDesigns
from dse.study.metrics import Failed, quote, read_metrics, reason_of
from dse.study.progress import Interrupts
from dse.study.proposing import Batch, propose_batch
from dse.study.sampled import evaluated
from dse.study.solver import SamplingSolver
from dse.study.storage import Storage, new_owner
from dse.study.trial import Trial, TrialState

__all__ = ["TrialRun"]


class TrialRun:
    """The trials of one study, mirrored in memory. The storage must be acquired.

    What is recorded comes first, what is remembered after it; whoever breaks a call off in its middle makes a new
    object from the same storage.

    Args:
        holder: the owner of the trials that :meth:`next` hands out. Those it still has are handed out; all others
            that are RUNNING had a run that ended, and wait again.

    Attributes:
        waiting: what was proposed and is not begun, by number, in order.
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
        holder: str = "",
    ) -> None:
        self.problem = problem
        self.team = team
        self.solver = solver
        self.storage = storage
        self.legal = legal
        self.seed = seed
        self.batch = batch
        self.options = options
        self.holder = holder or new_owner()
        self._runner = new_owner()
        storage.give_back(self.holder)
        held = storage.leases().keys()
        proposed = storage.proposed()
        open_ = {t.number: t for t in proposed if t.state is TrialState.RUNNING}
        self._proposed = len(proposed)
        self._batches = proposed[-1].batch + 1 if proposed else 0
        self.waiting = {number: trial for number, trial in open_.items() if number not in held}
        self._handed = {number: trial for number, trial in open_.items() if number in held}
        self._running: dict[int, Trial] = {}
        self._finished = [t for t in proposed if t.state is not TrialState.RUNNING]
        self._taken: set[Key] = {legal.coder.key(t.design) for t in proposed}
        self.exhausted = bool(storage.fact("exhausted"))

    @property
    def finished(self) -> list[Trial]:
        """The finished trials, in order of their numbers."""
        return list(self._finished)

    @property
    def done(self) -> int:
        """How many trials are finished."""
        return len(self._finished)

    @property
    def running(self) -> list[Trial]:
        """The trials that were begun or handed out, and are not finished."""
        return [*self._handed.values(), *self._running.values()]

    # -- one trial at a time ------------------------------------------------------------------------

    def next(self) -> Trial | None:
        """Hand out the next trial; None when every legal design was tried (or none was found).

        It stays handed out, whatever is run meanwhile, until it is told.
        """
        if not self.waiting and not self._log(self._next_batch()):
            return None
        return self._begin(self.holder, self._handed)

    def begin(self) -> Trial:
        """Begin the next waiting trial, for a run."""
        return self._begin(self._runner, self._running)

    def _begin(self, owner: str, those: dict[int, Trial]) -> Trial:
        trial = next(iter(self.waiting.values()))
        self.storage.begin(trial.number, owner)
        those[trial.number] = self.waiting.pop(trial.number)
        return trial

    def tell(self, number: int, metrics: Mapping[str, Any] | None, failed: str) -> Trial:
        """Log what became of a trial that was handed out: its measured metrics in their declared units, or why there
        are none.

        Raises:
            InputError: the trial is not running, or a metric is missing, unknown or not a number.
        """
        if number not in self._handed:
            raise InputError(f"trial {number} is not running, so its result cannot be told")
        if not isinstance(metrics, Mapping | None):
            raise InputError(
                f"trial {number}: metrics must be a mapping of names to values, but got {quote(metrics)}"
            )
        if not isinstance(failed, str):
            raise InputError(f"trial {number}: failed must be a text that says why, but got {quote(failed)}")
        known = [name for name, metric in self.problem.metrics.items() if metric.measured]
        for name in metrics or {}:
            if name not in known:
                raise InputError(f"{name!r} is no measured metric{nearest(str(name), known)}")
        trial = self._handed[number]
        if failed:
            done = replace(trial, state=TrialState.FAILED, reason=reason_of(failed))
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
            for those in (self.waiting, self._handed, self._running):
                those.pop(trial.number, None)
            insort(self._finished, trial, key=_number)

    def give_back(self) -> None:
        """What a run began and did not finish waits again; what was handed out does not."""
        if self._running:
            self.storage.give_back(self.holder)
            self.waiting = dict(sorted({**self._running, **self.waiting}.items()))
            self._running = {}

    # -- batches ------------------------------------------------------------------------------------

    def _next_batch(self) -> Batch | None:
        """What is to be tried next; None when that is known to be nothing. Logs nothing."""
        if self.exhausted:
            return None
        return propose_batch(
            self.problem,
            self.team,
            self.solver,
            legal=self.legal,
            history=tuple(self._finished),
            taken=self._taken,
            number=self._batches,
            wanted=self.batch,
            seed=self.seed,
            options=self.options,
        )

    def _log(self, batch: Batch | None) -> bool:
        """Log the next batch; False when there is nothing left to propose."""
        if batch is None:
            return False
        if not batch.keys:
            if self.legal.count is None:
                self.storage.set_facts({"dry": True})
            elif not self._handed:
                self.storage.set_facts({"exhausted": True})
                self.exhausted = True
            return False
        coder = self.legal.coder
        trials = [
            Trial(self._proposed + at, coder.design(key), coder.index(key), TrialState.RUNNING, self._batches)
            for at, key in enumerate(batch.keys)
        ]
        facts = {"dry": False} if self.storage.fact("dry") else {}
        facts |= {} if batch.uniform else {"skewed": True}
        self.storage.propose(self._batches, self._proposed, [trial.design for trial in trials], facts)
        self.waiting |= {trial.number: trial for trial in trials}
        self._proposed += len(trials)
        self._batches += 1
        return True

    # -- many ---------------------------------------------------------------------------------------

    def run(
        self,
        n_trials: int | None,
        deadline: float | None = None,
        workers: int = 1,
        progress: Callable[[int], None] | None = None,
        interrupts: Interrupts | None = None,
    ) -> None:
        """Run until ``n_trials`` are finished, those of earlier runs counted, or nothing is left to try.

        Args:
            n_trials: is stored, for the runs that go on with the study.
            deadline: a time of :func:`time.monotonic` after which no trial is begun.
            progress: called with the number of finished trials.
            interrupts: asked between trials whether Ctrl-C was pressed; it breaks off a measurement and the solver's
                proposing, with KeyboardInterrupt.
        """
        interrupts = interrupts or Interrupts()
        runner = runner_of(self.problem, workers)
        try:
            if n_trials is not None:
                self.storage.set_facts({"n_trials": n_trials})
            while not interrupts.asked and not (deadline is not None and time.monotonic() >= deadline):
                left = None if n_trials is None else n_trials - len(self._finished)
                if left is not None and left <= 0:
                    return
                if not self.waiting:
                    with interrupts.breakable():
                        batch = self._next_batch()
                    if not self._log(batch):
                        return
                limit = len(self.waiting) if left is None else min(left, len(self.waiting))
                runner.run(self, Budget(limit, deadline, progress, interrupts))
        finally:
            runner.close()
            self.give_back()


def _number(trial: Trial) -> int:
    return trial.number
