"""A study: one search of one problem, with its record, in a folder or in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dse.errors import InputError, Interrupted
from dse.problem import Problem, Team
from dse.problem.library import load
from dse.study.certificate import Wanted, check_wanted
from dse.study.choosing import Choice, Promise, check_settings
from dse.study.claim import Claim, read_manifest
from dse.study.driver import TrialRun
from dse.study.identity import Coder
from dse.study.legal import LegalDesigns
from dse.study.manifest import Manifest
from dse.study.metrics import quote
from dse.study.outputs import write_outputs
from dse.study.progress import Clock, Progress
from dse.study.record import Record
from dse.study.result import Result
from dse.study.running import Run
from dse.study.solver import ExactSolver, SamplingSolver
from dse.study.storage import Storage, new_owner
from dse.study.trial import Trial
from dse.study.within import asked_within

__all__ = ["BATCH", "Progress", "Study", "search"]

BATCH = 10
"""Trials that a sampling solver proposes at once, unless told otherwise."""


class Study(Record):
    """One search. Runs a solver, or hands out trials by :meth:`ask` and takes results by :meth:`tell`.

    Args:
        problem: a problem, or what :func:`dse.load` takes.
        team: whose part of the space is searched; teams combine, ``"ml & systems"``. Default: the whole space.
        solver: the name of a solver; ``auto`` counts first and picks one.
        seed: of everything random. The same problem, solver, settings, seed and version: the same outputs.
        folder: where the study is kept and can be resumed from. None keeps it in memory.
        workers: processes used; they never change what is found.
        keep: most evaluated designs that an exact search keeps; beyond, a seeded uniform sample.
        top: how many of the best designs to list, by ``objective`` (default: the first).
        ties: whether all designs of equal objectives on the front are listed; exact solvers only.
        within: of one objective, count the designs that are worse than the best by at most this share of it, such as
            ``"6 percent"``; exact solvers only. None: the error that the space declares, if it does; 0: none.
        batch: trials that a sampling solver proposes at once.
        options: the solver's own options.
        promise: ``"exact"`` refuses solvers that only sample.
        certificate: whether a solver that discards boxes of designs writes down why, for ``verify`` to prove again:
            ``"auto"`` up to a million boxes, ``"always"`` or ``"never"``. Only in a folder.
        code: whether Python code that the space names may be imported, and programs that measure be run.

    Raises:
        SolverRefused: the solver cannot do the problem, or cannot make the promise; names those that can.
        StudyError: the folder holds another study, or cannot be used.
        InputError: an unknown team, solver or objective, or a setting that makes no sense.
    """

    def __init__(
        self,
        problem: Problem | str | Path,
        *,
        team: str | Team | None = None,
        solver: str = "auto",
        seed: int = 0,
        folder: str | Path | None = None,
        workers: int = 1,
        keep: int = 100_000,
        top: int = 0,
        objective: str | None = None,
        ties: bool = False,
        within: str | float | None = None,
        batch: int | None = None,
        options: Mapping[str, Any] | None = None,
        promise: Promise | None = None,
        certificate: Wanted = "auto",
        code: bool = True,
    ) -> None:
        self.problem = problem if isinstance(problem, Problem) else load(problem, code=code)
        self.team = self.problem.team(team)
        self.folder = None if folder is None else Path(folder)
        self.workers = workers
        self.code = code
        check_settings(self.problem, workers=workers, keep=keep, top=top, batch=batch, objective=objective)
        check_wanted(certificate, kept=folder is not None)
        share, listed = asked_within(self.problem, within, top)
        asked = Manifest.of(
            self.problem,
            self.team,
            requested=solver,
            solver="" if solver == "auto" else solver,
            seed=int(seed),
            batch=batch or BATCH,
            options=dict(options or {}),
            keep=keep,
            top=top,
            objective=objective,
            ties=ties,
            certificate=certificate,
            within=share,
            listed=listed,
        )
        coder = Coder(self.problem)
        self._storage = Storage(coder, self.folder)
        self._claim = Claim(
            asked,
            Choice(self.problem, self.team, promise, ties, bool(share and within is not None), asked.options),
            self._storage,
        )
        self._legal = LegalDesigns(self.problem, self.team, coder)
        self._holder = new_owner()  # of the trials that are handed out
        self._trials = None
        self._result = None
        self._told = False  # trials were asked for or told since the outputs were written

    @classmethod
    def open(
        cls, folder: str | Path, problem: Problem | None = None, *, workers: int = 1, code: bool = True
    ) -> Study:
        """The study that is kept in ``folder``, to read or go on with. Reading changes nothing in the folder.

        Args:
            problem: the study's problem, if it cannot be loaded from its source again.
            code: whether Python code that the space names may be imported, and programs that measure be run.

        Raises:
            StudyError: there is none, it is damaged, or its problem is not what it was.
            InputError: its problem needs code that may not be imported.
        """
        folder = Path(folder)
        manifest = read_manifest(folder)
        if problem is None:
            problem = manifest.load_problem(folder, code=code)
        return cls(
            problem,
            team=manifest.team_of(problem, folder),
            solver=manifest.requested,
            seed=manifest.seed,
            folder=folder,
            workers=workers,
            keep=manifest.keep,
            top=manifest.top,
            objective=manifest.objective,
            ties=manifest.ties,
            within=manifest.within,
            batch=manifest.batch,
            options=manifest.options,
            certificate=manifest.certificate,
            code=code,
        )

    # -- running ------------------------------------------------------------------------------------

    def run(
        self,
        n_trials: int | None = None,
        timeout: float | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Result:
        """Search until the end or the budget, and write the outputs.

        Trials that were handed out by :meth:`ask` and not told stay handed out.

        Args:
            n_trials: stop a sampling search when the study has so many finished trials in all, those of earlier
                runs counted; default: what the study was last given, or ``100`` when there is no timeout either.
            timeout: seconds after which no trial is begun, and an exact search stops.
            progress: called now and then.

        Raises:
            SolverRefused: ``n_trials`` is too few for an exact solver.
            Interrupted: by Ctrl-C. What was found is kept, and the outputs are written.
            StudyError: another process writes to the folder.
        """
        if n_trials is not None and n_trials < 0:
            raise InputError(f"n_trials must be at least 0, but got {n_trials}")
        if timeout is not None and not timeout >= 0:
            raise InputError(f"timeout must be at least 0 seconds, but got {timeout}")
        held = self._storage.writable and self.folder is not None
        run = Run(Clock(self.workers), n_trials, timeout, self.workers, progress)
        try:
            solver = self._claim.to_run(n_trials, code=self.code)
            if isinstance(solver, SamplingSolver):
                self._run_trials(solver, run)
            elif isinstance(solver, ExactSolver):
                done = run.designs(self.problem, self.team, solver, self._storage, self._claim.manifest)
                facts = run.clock.facts(done.tally.evaluated, "designs")
                self._result = run.near_best(
                    self._exact(done, facts), self.team, solver, self._storage, self._claim.manifest
                )
            self._write()
            assert self._result is not None
            if run.interrupted:
                how = "" if self.folder is None else f"; go on with dse resume {self.folder}"
                raise Interrupted(f"{run.interrupted}{how}")
            return self._result
        finally:
            if not held:
                self.close()

    def _run_trials(self, solver: SamplingSolver, run: Run) -> None:
        self._result = None
        with self._driven(solver) as trials:
            before = trials.done
            run.trials(trials, self._storage)
            if run.interrupted:
                self._trials = None  # broken off anywhere; the record never is
        self._result = self._sampled(run.clock.facts(len(self.finished) - before, "trials"))

    def _write(self) -> None:
        if self.folder is not None:
            sampling = isinstance(self._claim.solver, SamplingSolver)
            write_outputs(self.folder, self.result, self.finished if sampling else None)
            self._storage.outputs_written()
            self._told = False

    # -- ask and tell -------------------------------------------------------------------------------

    def ask(self) -> Trial | None:
        """The next trial to run; None when every legal design was tried.

        Its design is in base units. The study's folder stays locked until :meth:`close`. A study of solver ``auto``
        samples from then on, whatever is run later; its note says so.

        Raises:
            SolverRefused: the solver is exact, so it hands out no trials.
        """
        with self._driven(self._claim.to_ask()) as trials:
            trial = trials.next()
            self._result, self._told = None, True  # it may be exhausted now
            return trial

    def tell(
        self, trial: Trial | int, metrics: Mapping[str, Any] | None = None, *, failed: str = ""
    ) -> Trial:
        """Record what became of a trial from :meth:`ask`, and return it finished.

        Args:
            trial: the trial, or its number.
            metrics: the measured metrics: numbers in the metric's declared unit, or texts such as ``"8 ms"``. None
                where the cost model computes everything.
            failed: why there are no metrics.

        Raises:
            InputError: the trial is not running, or a metric is missing, unknown or not a number.
        """
        number = trial.number if isinstance(trial, Trial) else trial
        if type(number) is not int:
            raise InputError(f"a trial or its number must be told, but got {quote(trial)}")
        solver = self._claim.solver
        if not self._storage.writable or not isinstance(solver, SamplingSolver):
            raise InputError(f"trial {number} is not running, so its result cannot be told")
        with self._driven(solver) as trials:
            done = trials.tell(number, metrics, failed)
            self._result, self._told = None, True
            return done

    @contextmanager
    def _driven(self, solver: SamplingSolver) -> Iterator[TrialRun]:
        """The trials of the study; whatever breaks off a change of them, they are read from the record again."""
        if self._trials is None:
            settled = self._claim.manifest
            self._trials = TrialRun(
                self.problem,
                self.team,
                solver,
                self._storage,
                self._legal,
                seed=settled.seed,
                batch=settled.batch,
                options=settled.options,
                holder=self._holder,
            )
        try:
            yield self._trials
        except BaseException:
            self._trials = None
            raise

    def close(self) -> None:
        """Let other processes write to the folder, whose outputs are brought up to date if trials were
        asked for or told.

        A trial that was asked for and not told is handed out again. Nothing is left behind in the folder of a search
        that was refused before its first trial.
        """
        if self.folder is None:
            return
        try:
            if self._told and self._storage.writable:
                self._write()
        finally:
            self._trials, self._told, self._holder = None, False, new_owner()
            self._claim.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def search(
    problem: Problem | str | Path,
    *,
    n_trials: int | None = None,
    timeout: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    team: str | Team | None = None,
    solver: str = "auto",
    seed: int = 0,
    folder: str | Path | None = None,
    workers: int = 1,
    keep: int = 100_000,
    top: int = 0,
    objective: str | None = None,
    ties: bool = False,
    within: str | float | None = None,
    batch: int | None = None,
    options: Mapping[str, Any] | None = None,
    promise: Promise | None = None,
    certificate: Wanted = "auto",
    code: bool = True,
) -> Result:
    """Search a problem and return the result: :class:`Study` with these settings, and one :meth:`Study.run`."""
    study = Study(
        problem,
        team=team,
        solver=solver,
        seed=seed,
        folder=folder,
        workers=workers,
        keep=keep,
        top=top,
        objective=objective,
        ties=ties,
        within=within,
        batch=batch,
        options=options,
        promise=promise,
        certificate=certificate,
        code=code,
    )
    return study.run(n_trials, timeout, progress)
