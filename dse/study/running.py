"""One run of a study: its budget, its progress and Ctrl-C."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from dse.problem import Problem, Team
from dse.study.certificate import LIMIT, Recorder
from dse.study.driver import TrialRun
from dse.study.exact import ExactRun, run_exact
from dse.study.manifest import Manifest
from dse.study.progress import Clock, Progress, interruptible
from dse.study.result import Result
from dse.study.solver import ExactSolver
from dse.study.storage import Storage
from dse.study.within import near_best

__all__ = ["SAVED_EVERY", "TRIALS", "Run", "box_size"]

TRIALS = 100
"""Trials of a sampling search that was given neither ``n_trials`` nor ``timeout``."""

SAVED_EVERY = 2.0
"""Seconds between the checkpoints of an exact search."""


def box_size(problem: Problem, team: Team) -> int:
    """How many designs the box around a team has."""
    return math.prod(len(axis) for axis in team.hull(problem.sizes))


@dataclass
class Run:
    """What one run may take. ``interrupted`` says, where Ctrl-C ended it, how far it was."""

    clock: Clock
    n_trials: int | None = None
    timeout: float | None = None
    workers: int = 1
    progress: Callable[[Progress], None] | None = None
    interrupted: str = ""

    def trials(self, trials: TrialRun, storage: Storage) -> None:
        """Run trials up to the budget: the one given, or else what the study was last given."""
        target = self.n_trials if self.n_trials is not None else storage.fact("n_trials")
        if target is None and self.timeout is None:
            target = TRIALS
        deadline = None if self.timeout is None else self.clock.began + self.timeout
        with interruptible() as interrupts:
            try:
                trials.run(
                    target, deadline, self.workers, lambda done: self._report_trials(done, target), interrupts
                )
                broken = interrupts.asked and not trials.exhausted and trials.done != target
            except KeyboardInterrupt:
                broken = True
        if broken:
            self.interrupted = f"interrupted after {trials.done:,} trials"

    def _report_trials(self, done: int, target: int | None) -> None:
        if self.progress is not None:
            elapsed = self.clock.elapsed
            share = done / max(target, 1) if target is not None else elapsed / max(self.timeout or 0.0, 1e-9)
            self.progress(Progress(done, target, min(share, 1.0), "trials", elapsed, done))

    def designs(
        self,
        problem: Problem,
        team: Team,
        solver: ExactSolver,
        storage: Storage,
        manifest: Manifest,
    ) -> ExactRun:
        """Run an exact solver from its last checkpoint to the end or the timeout."""
        total, share, evaluated = box_size(problem, team), 0.0, 0
        recorder = None
        if storage.folder is not None and manifest.certificate != "never":
            limit = None if manifest.certificate == "always" else LIMIT
            recorder = Recorder(storage.folder, problem, team, limit)

        def report(done: float) -> None:
            nonlocal share
            share = done
            if self.progress is not None:
                elapsed = self.clock.elapsed
                self.progress(Progress(round(done * total), total, done, "designs", elapsed, evaluated))

        def count(number: int) -> None:
            nonlocal evaluated
            evaluated = number

        names = [o.name for o in problem.objectives]
        with interruptible() as interrupts:
            run = run_exact(
                problem,
                team,
                solver,
                keep=manifest.keep,
                top=manifest.top,
                objective=0 if manifest.objective is None else names.index(manifest.objective),
                ties=manifest.ties,
                seed=manifest.seed,
                workers=self.workers,
                checkpoint=storage.checkpoint(),
                save=storage.save_checkpoint if storage.folder is not None else None,
                every=SAVED_EVERY,
                progress=report,
                evaluated=count,
                stop=lambda: (
                    interrupts.asked or (self.timeout is not None and self.clock.elapsed >= self.timeout)
                ),
                certificate=recorder,
                options=manifest.options,
            )
        if interrupts.asked and run.status == "stopped":
            self.interrupted = f"interrupted at {share:.1%} of the space"
        return run

    def near_best(
        self, result: Result, team: Team, solver: ExactSolver, storage: Storage, manifest: Manifest
    ) -> Result:
        """The result with what is near the best design, counted if that is wanted and was not done."""
        done = result.near is not None and result.near.counted != "least"
        if not manifest.within or done or self.interrupted:
            return result

        def report(share: float) -> None:
            if self.progress is not None:
                total = result.accounting.total
                self.progress(Progress(round(share * total), total, share, "designs", self.clock.elapsed))

        with interruptible() as interrupts:
            near = near_best(
                result.problem,
                team,
                solver,
                result,
                manifest.within,
                kept=manifest.top,
                listed=manifest.listed,
                seed=manifest.seed,
                workers=self.workers,
                options=manifest.options,
                stop=lambda: (
                    interrupts.asked or (self.timeout is not None and self.clock.elapsed >= self.timeout)
                ),
                progress=report,
            )
        if near is None:
            return result
        if interrupts.asked and near.counted == "least":
            self.interrupted = "interrupted while the designs near the best were counted"
        storage.set_facts({"near": near.to_dict()})
        return replace(result, near=near)
