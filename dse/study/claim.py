"""What a study is: asked for, perhaps found in its folder, and settled by the first run. The folder is taken last."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dse.errors import DseError, InputError, SolverRefused, StudyError
from dse.study.certificate import CERTIFICATE_DRAFT
from dse.study.choosing import Choice
from dse.study.database import DATABASE, DRAFT, LOCK, Database
from dse.study.evaluating import is_measured
from dse.study.manifest import MANIFEST, Manifest
from dse.study.measure import check_measurement
from dse.study.registry import load_solver
from dse.study.running import box_size
from dse.study.solver import ExactSolver, SamplingSolver, Solver
from dse.study.storage import Storage

__all__ = ["Claim", "read_manifest"]

_OURS = (
    LOCK, DRAFT, f".{MANIFEST}.tmp", DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", CERTIFICATE_DRAFT
)  # fmt: skip
"""What a search that was killed before it began may have left in its folder."""


def read_manifest(folder: Path) -> Manifest:
    """The manifest in a folder, which must be what the study was begun with.

    Raises:
        StudyError: there is none, it is damaged or was changed, or the record beside it is gone.
    """
    manifest = Manifest.read(folder)
    database = Database(folder)
    if not database.exists:
        raise StudyError(
            f"{folder / DATABASE} is missing: the record of the study is gone; give another folder"
        )
    recorded = database.settings
    if recorded is None:
        raise StudyError(f"{folder / DATABASE} is damaged: it does not say what the study was begun with")
    manifest.check_recorded(recorded, folder)
    return manifest


class Claim:
    """A study's settings and solver, and its hold on the folder.

    Args:
        asked: what was asked for.
        choice: which solvers may do it.
        storage: the record, in a folder or in memory.

    Raises:
        StudyError: the folder holds another study, or cannot be used.
        SolverRefused: the solver cannot do it.
    """

    def __init__(self, asked: Manifest, choice: Choice, storage: Storage) -> None:
        self.choice = choice
        self.storage = storage
        self._asked = asked.settled(load_solver(asked.solver)) if asked.solver else asked
        self._stored = self._found()
        self._begun = False  # the folder's manifest was written by this object
        self.solver: Solver | None = None
        if self.manifest.solver:
            self.solver = choice.accepted(self.manifest.solver)

    @property
    def manifest(self) -> Manifest:
        """The settings: those in the folder, or else what was asked for; its solver is empty until it is chosen."""
        return self._stored or self._asked

    def _found(self) -> Manifest | None:
        """The manifest in the folder, if it is of this study."""
        folder = self.storage.folder
        if folder is None:
            return None
        if folder.exists() and not folder.is_dir():
            raise StudyError(f"{folder} is a file, but a study is kept in a folder")
        if not (folder / MANIFEST).exists():
            self._check_unused(folder)
            return None
        manifest = read_manifest(folder)
        manifest.check_same(self._asked.settled(load_solver(manifest.solver)), folder)
        return manifest

    def _check_unused(self, folder: Path) -> None:
        """Make sure that a folder without a manifest has nothing in it that a study would be in the way of."""
        try:
            names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
        except OSError as error:
            raise StudyError(f"cannot read the folder {folder}: {error.strerror or error}") from error
        if DATABASE in names:
            begun = Database(
                folder
            )  # if it is ours and empty, its search was killed before it wrote a manifest
            if begun.settings is None or not begun.empty:
                raise StudyError(f"{folder} has a {DATABASE} but no {MANIFEST}; give another folder")
        others = [name for name in names if name not in _OURS]
        if others:
            raise StudyError(
                f"{folder} is not empty and holds no study (it has {others[0]}); give a new folder or an empty one"
            )

    # -- to run -------------------------------------------------------------------------------------

    def to_run(self, n_trials: int | None, *, code: bool = True) -> Solver:
        """The solver, with the folder taken for a run of at most ``n_trials``.

        Raises:
            SolverRefused: the budget is no budget for the solver, or no solver can; the folder is as it was.
            InputError: the problem must be measured, and nothing can measure it.
            StudyError: another process writes to the folder.
        """
        solver, asked = self._chosen(n_trials, sampling=False)
        problem, size = self.choice.problem, 0
        if isinstance(solver, ExactSolver):
            size = box_size(problem, self.choice.team)
        if n_trials is not None and n_trials < size:
            raise SolverRefused(
                f"solver {solver.name} accounts for all of {size:,} designs, so n_trials cannot limit it to "
                f"{n_trials:,}{self.choice.others('sampling')}; timeout can"
            )
        if isinstance(solver, SamplingSolver) and is_measured(problem):
            if problem.measurement is None and not self.storage.empty:
                where = self.storage.folder or "it"
                raise InputError(
                    f"nothing here measures {problem.name}: a program asks and tells this study; finish {where} there"
                )
            measurement = check_measurement(problem)
            if not code:
                what = measurement.function or " ".join(measurement.command)
                raise SolverRefused(f"trials of {problem.name} run code (measure {what}), which was refused")
        return self._take(solver, asked)

    def to_ask(self) -> SamplingSolver:
        """The solver, with the folder taken for handing out trials.

        Raises:
            SolverRefused: the solver is exact, so it hands out no trials; the folder is as it was.
            StudyError: another process writes to the folder.
        """
        solver, asked = self._chosen(None, sampling=True)
        if not isinstance(solver, SamplingSolver):
            raise SolverRefused(f"solver {solver.name} hands out no trials{self.choice.others('sampling')}")
        self._take(solver, asked)
        return solver

    def _chosen(self, n_trials: int | None, *, sampling: bool) -> tuple[Solver, Manifest]:
        """The solver, chosen if it is not yet, and the settings with it. Changes nothing."""
        if self.solver is not None:
            return self.solver, self.manifest
        name, reason = self.choice.automatic(n_trials, sampling=sampling)
        note = f"auto chose {name}: {reason}"
        solver = self.choice.accepted(name)
        return solver, replace(self.manifest, solver=name, note=note).settled(solver)

    def _take(self, solver: Solver, asked: Manifest) -> Solver:
        if self.storage.writable and self._stored is not None:
            return solver
        self.storage.acquire()
        try:
            self._stored = self._stored or self._found()  # another process may have begun it meanwhile
            if self._stored is None:
                if self.storage.folder is not None:
                    self.storage.create(asked.settings)
                    self._begun = True
                    asked.write(self.storage.folder)
                self._stored = asked
            elif self._stored.solver != solver.name:
                raise StudyError(
                    f"{self.storage.folder} was begun by another search meanwhile, with solver "
                    f"{self._stored.solver}; try again"
                )
            self.storage.prepare()
        except DseError:
            self.storage.release()
            raise
        self.solver = solver
        return solver

    def release(self) -> None:
        """Let other processes write to the folder; nothing is left behind of a search that tried nothing."""
        if self.storage.folder is None:
            return
        if self.storage.writable and self._begun and self.storage.empty:
            self.storage.discard()
            self._stored, self._begun = None, False
            if not self._asked.solver:
                self.solver = None
        self.storage.release()
