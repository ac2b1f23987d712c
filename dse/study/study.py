"""A study: one search of one problem, with its record, in a folder or in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dse.errors import DseError, InputError, Interrupted, SolverRefused, StudyError
from dse.problem import Problem, Team
from dse.problem.library import load
from dse.study.choosing import Choice, Promise, check_settings
from dse.study.diagnosis import exact_result
from dse.study.driver import TrialRun
from dse.study.exact import ExactRun
from dse.study.identity import Coder
from dse.study.legal import LegalDesigns
from dse.study.manifest import MANIFEST, Manifest
from dse.study.outputs import design_table, trial_columns, trial_rows, write_outputs
from dse.study.progress import Clock, Progress
from dse.study.result import FrontPoint, NoFeasibleDesign, Result
from dse.study.running import Run, box_size
from dse.study.sampled import evaluated, sampled_result
from dse.study.solver import ExactSolver, SamplingSolver, Solver
from dse.study.storage import DATABASE, Storage
from dse.study.tally import Tally
from dse.study.trial import Trial, TrialState

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BATCH", "Progress", "Study", "search"]

BATCH = 10
"""Trials that a sampling solver proposes at once, unless told otherwise."""


class Study:
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
        batch: trials that a sampling solver proposes at once.
        options: the solver's own options.
        promise: ``"exact"`` refuses solvers that only sample.

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
        batch: int | None = None,
        options: Mapping[str, Any] | None = None,
        promise: Promise | None = None,
    ) -> None:
        self.problem = problem if isinstance(problem, Problem) else load(problem)
        self.team = self.problem.team(team)
        self.folder = None if folder is None else Path(folder)
        self.workers = workers
        check_settings(self.problem, workers=workers, keep=keep, top=top, batch=batch, objective=objective)
        self._asked = Manifest.of(
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
        )
        self._choice = Choice(self.problem, self.team, promise, ties, self._asked.options)
        self._manifest: Manifest | None = self._stored()
        self._solver: Solver | None = None
        settled = self._manifest or self._asked
        if settled.solver:
            self._solver = self._choice.accepted(settled.solver)
        coder = Coder(self.problem)
        self._storage = Storage(coder, self.folder)
        self._legal = LegalDesigns(self.problem, self.team, coder)
        self._trials: TrialRun | None = None
        self._result: Result | None = None
        self._begun = False  # the folder's manifest was written by this object

    @classmethod
    def open(cls, folder: str | Path, problem: Problem | None = None, *, workers: int = 1) -> Study:
        """The study that is kept in ``folder``, to read or go on with.

        Args:
            problem: the study's problem, if it cannot be loaded from its source again.

        Raises:
            StudyError: there is none, it is damaged, or its problem is not what it was.
        """
        folder = Path(folder)
        manifest = Manifest.read(folder)
        if problem is None:
            problem = manifest.load_problem(folder)
        return cls(
            problem,
            team=None if manifest.team == problem.everything.name else manifest.team,
            solver=manifest.requested,
            seed=manifest.seed,
            folder=folder,
            workers=workers,
            keep=manifest.keep,
            top=manifest.top,
            objective=manifest.objective,
            ties=manifest.ties,
            batch=manifest.batch,
            options=manifest.options,
        )

    # -- what it is ---------------------------------------------------------------------------------

    def _stored(self) -> Manifest | None:
        """The manifest in the folder, if it is of this study."""
        if self.folder is None:
            return None
        if self.folder.exists() and not self.folder.is_dir():
            raise StudyError(f"{self.folder} is a file, but a study is kept in a folder")
        if not (self.folder / MANIFEST).exists():
            if (self.folder / DATABASE).exists():
                raise StudyError(f"{self.folder} has a {DATABASE} but no {MANIFEST}; give another folder")
            return None
        manifest = Manifest.read(self.folder)
        manifest.check_same(self._asked, self.folder)
        return manifest

    def _settle(self, n_trials: int | None, *, sampling: bool = False) -> Solver:
        """The solver, chosen if it is not yet; the storage is acquired and the manifest written."""
        if self._solver is None:
            name, reason = self._choice.automatic(n_trials, sampling=sampling)
            self._solver = self._choice.accepted(name)
            self._asked = replace(self._asked, solver=name, note=f"auto chose {name}: {reason}")
        if self._storage.writable and self._manifest is not None:
            return self._solver
        self._storage.acquire()
        try:
            if self._manifest is None:
                self._manifest = self._stored()  # another process may have begun the same study meanwhile
            if self._manifest is None:
                self._manifest = self._asked
                if self.folder is not None:
                    self._manifest.write(self.folder)
                    self._begun = True
            elif self._manifest.solver != self._solver.name:
                self._solver = self._choice.accepted(self._manifest.solver)
            self._storage.prepare()
        except DseError:
            self._storage.release()
            raise
        return self._solver

    # -- running ------------------------------------------------------------------------------------

    def run(
        self,
        n_trials: int | None = None,
        timeout: float | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Result:
        """Search until the end or the budget, and write the outputs.

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
            solver = self._settle(n_trials)
            if isinstance(solver, SamplingSolver):
                self._run_trials(solver, run)
            elif isinstance(solver, ExactSolver):
                self._run_exact(solver, run)
            assert self._result is not None
            self._write()
            if run.interrupted:
                how = "" if self.folder is None else f"; go on with dse resume {self.folder}"
                raise Interrupted(f"{run.interrupted}{how}")
            return self._result
        finally:
            if not held:
                self.close()

    def _run_trials(self, solver: SamplingSolver, run: Run) -> None:
        trials = self._open_trials(solver)
        before = trials.done
        run.trials(trials, self._storage)
        self._result = self._sampled(trials, run.clock.facts(trials.done - before, "trials"))

    def _run_exact(self, solver: ExactSolver, run: Run) -> None:
        assert self._manifest is not None
        size = box_size(self.problem, self.team)
        if run.n_trials is not None and run.n_trials < size:
            raise SolverRefused(
                f"solver {solver.name} accounts for all of {size:,} designs, so n_trials cannot limit it to "
                f"{run.n_trials:,}{self._choice.others('sampling')}; timeout can"
            )
        done = run.designs(self.problem, self.team, solver, self._storage, self._manifest)
        self._result = self._exact(done, run.clock.facts(done.tally.evaluated, "designs"))

    def _write(self) -> None:
        if self.folder is not None and self._result is not None:
            sampling = isinstance(self._solver, SamplingSolver)
            write_outputs(self.folder, self._result, list(self.trials) if sampling else None)

    # -- ask and tell -------------------------------------------------------------------------------

    def ask(self) -> Trial | None:
        """The next trial to run; None when every legal design was tried.

        Its design is in base units. The study's folder stays locked until :meth:`close`.

        Raises:
            SolverRefused: the solver is exact, so it hands out no trials.
        """
        solver = self._settle(None, sampling=True)
        if not isinstance(solver, SamplingSolver):
            self.close()
            raise SolverRefused(f"solver {solver.name} hands out no trials{self._choice.others('sampling')}")
        return self._open_trials(solver).next()

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
        number = trial if isinstance(trial, int) else trial.number
        if self._trials is None:
            raise InputError(f"trial {number} is not running, so its result cannot be told")
        self._result = None
        return self._trials.tell(number, metrics, failed)

    def _open_trials(self, solver: SamplingSolver) -> TrialRun:
        assert self._manifest is not None
        if self._trials is None:
            self._trials = TrialRun(
                self.problem,
                self.team,
                solver,
                self._storage,
                self._legal,
                seed=self._manifest.seed,
                batch=self._manifest.batch,
                options=self._manifest.options,
            )
        return self._trials

    def close(self) -> None:
        """Let other processes write to the folder. A trial that was asked for and not told is handed out again.

        Nothing is left behind in the folder of a search that was refused before its first trial.
        """
        if self.folder is not None:
            self._trials = None
            if self._storage.writable and self._begun and self._storage.empty:
                self._storage.discard()
                self._manifest, self._begun = None, False
            self._storage.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- what was found -----------------------------------------------------------------------------

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials so far, in order of their numbers; an exact search has none.

        Raises:
            StudyError: the log is damaged.
        """
        if self._trials is not None:
            return tuple(sorted([*self._trials.finished, *self._trials.running], key=lambda t: t.number))
        return tuple(self._storage.trials())

    @property
    def finished(self) -> tuple[Trial, ...]:
        """The finished trials, in order of their numbers."""
        return tuple(trial for trial in self.trials if trial.state is not TrialState.RUNNING)

    @property
    def result(self) -> Result:
        """What is known so far.

        Raises:
            StudyError: nothing was run yet, or the record is damaged.
        """
        if self._result is None:
            self._result = self._read_result()
        return self._result

    def _read_result(self) -> Result:
        if self._solver is None:
            raise StudyError("the study was not run yet")
        if isinstance(self._solver, SamplingSolver):
            return self._sampled(self._trials, {})
        checkpoint = self._storage.checkpoint()
        if checkpoint is None:
            raise StudyError("the study was not run yet, or was stopped before its first checkpoint")
        tally, extra = Tally.unpack(self.problem, checkpoint)
        return self._exact(ExactRun(tally, "complete" if extra["complete"] else "stopped"), {})

    def _exact(self, run: ExactRun, clock: Mapping[str, Any]) -> Result:
        settled = self._manifest or self._asked
        return exact_result(
            self.problem, self.team, settled.solver, run, seed=settled.seed, note=settled.note, clock=clock
        )

    def _sampled(self, trials: TrialRun | None, clock: Mapping[str, Any]) -> Result:
        settled = self._manifest or self._asked
        exhausted = trials.exhausted if trials is not None else bool(self._storage.fact("exhausted"))
        dry = "no legal design was found that is not tried yet" if trials is not None and trials.dry else ""
        return sampled_result(
            self.problem,
            self.team,
            settled.solver,
            self.finished,
            legal=self._legal,
            exhausted=exhausted,
            top=settled.top,
            objective=self._objective,
            seed=settled.seed,
            note="; ".join(note for note in (settled.note, dry) if note),
            clock=clock,
        )

    @property
    def _objective(self) -> int:
        names = [o.name for o in self.problem.objectives]
        return 0 if self._asked.objective is None else names.index(self._asked.objective)

    @property
    def pareto_front(self) -> tuple[FrontPoint, ...]:
        """The non-dominated feasible designs found."""
        return self.result.front

    @property
    def best_trial(self) -> Trial:
        """The feasible trial with the best objective; of equal ones, the design with the lowest index.

        Of an exact search, which has no trials, the best design as a trial of number 0.

        Raises:
            DseError: there are several objectives; use :attr:`pareto_front`.
            NoFeasibleDesign: there is none; carries the nearest miss.
        """
        result = self.result
        if len(self.problem.objectives) > 1:
            raise DseError(
                "best_trial must have one objective to go by, but this problem has "
                f"{', '.join(o.name for o in self.problem.objectives)}; use pareto_front"
            )
        if not result.front:
            raise NoFeasibleDesign(f"no feasible design was found for {self.team.name}", result.nearest_miss)
        point = result.front[0]
        for trial in self.finished:
            if trial.design == point.design:
                return trial
        return evaluated(self.problem, Trial(0, point.design, point.index, TrialState.RUNNING))

    def to_frame(self) -> pd.DataFrame:
        """All trials, or the kept designs of an exact search, as a table; numbers in the declared units."""
        import pandas as pd

        if isinstance(self._solver, SamplingSolver):
            return pd.DataFrame(trial_rows(self.problem, self.trials), columns=trial_columns(self.problem))
        kept = self.result.kept
        return pd.DataFrame({} if kept is None else design_table(self.problem, kept))


def search(
    problem: Problem | str | Path,
    *,
    n_trials: int | None = None,
    timeout: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> Result:
    """Search a problem and return the result: ``Study(problem, **settings).run(n_trials, timeout, progress)``."""
    return Study(problem, **settings).run(n_trials, timeout, progress)
