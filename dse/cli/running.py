"""Running searches for commands: progress on a terminal, and Ctrl-C that keeps what was found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dse.cli.loading import solver_options
from dse.cli.progress import progress_bar
from dse.errors import InputError, Interrupted
from dse.problem import Problem
from dse.study.certificate import Wanted
from dse.study.growing import Grown, grown_for
from dse.study.result import Result
from dse.study.study import Study
from dse.study.unlock import Unlock, can_survey, survey

__all__ = ["finish", "help_for", "run_search"]


def run_search(
    problem: Problem,
    *,
    team: str | None = None,
    solver: str = "auto",
    sampler: str | None = None,
    extra: Sequence[tuple[str, str]] = (),
    seed: int = 0,
    n_trials: int | None = None,
    timeout: float | None = None,
    workers: int = 1,
    out: Path | None = None,
    top: int | None = None,
    objective: str | None = None,
    ties: bool = False,
    within: str | float | None = 0,
    certificate: Wanted = "auto",
    epsilon: float | None = None,
    label: str = "searching",
) -> Result:
    """One search, as the command line's options describe it.

    Raises:
        InputError: ``objective`` without ``top``, or ``certificate`` always without ``out``.
        Interrupted: it was stopped with Ctrl-C; with ``out`` its state is kept.
    """
    if sampler is not None and solver == "auto":
        solver = "optuna"  # whose option it is
    if objective is not None and top is None:
        raise InputError("--objective chooses what --top ranks by; give --top K as well")
    if certificate == "always" and out is None:
        raise InputError("--certificate always writes to the folder of the search; give --out FOLDER as well")
    study = Study(
        problem,
        team=team,
        solver=solver,
        seed=seed,
        folder=out,
        workers=workers,
        top=top or 0,
        objective=objective,
        ties=ties,
        within=within,
        certificate=certificate,
        options={**solver_options(sampler, extra), **({} if epsilon is None else {"epsilon": epsilon})},
    )
    return finish(study, out, n_trials=n_trials, timeout=timeout, label=label)


def finish(
    study: Study,
    folder: Path | None,
    *,
    n_trials: int | None = None,
    timeout: float | None = None,
    label: str = "searching",
) -> Result:
    """Run a study to its end or its budget.

    Raises:
        Interrupted: it was stopped with Ctrl-C.
    """
    try:
        with progress_bar(label) as progress:
            return study.run(n_trials=n_trials, timeout=timeout, progress=progress)
    except (KeyboardInterrupt, Interrupted) as error:
        said = str(error) or "interrupted"
        kept = "; with --out FOLDER it could be resumed" if folder is None else ""
        told = Interrupted(f"{said}{kept}")
        if isinstance(error, Interrupted):  # the study came to rest
            told.result = study.result
        raise told from None


def help_for(result: Result) -> tuple[tuple[Unlock, ...], tuple[str, ...], tuple[Grown, ...]]:
    """What would help a search that found nothing.

    That is what would unlock a team and how feasible designs of the whole space leave it (empty for the whole space,
    after a sampling or stopped search, and where a pass over the space would take long); and how much of an input
    would do.
    """
    return *_unlocks(result), grown_for(result)


def _unlocks(result: Result) -> tuple[tuple[Unlock, ...], tuple[str, ...]]:
    problem = result.problem
    exact = result.promise == "exact" and result.status == "complete"
    if result.feasible or not result.accounting.outside or not exact or not can_survey(problem):
        return (), ()
    wishes = survey(problem, [problem.team(result.team)])[0]
    return wishes.unlocks(), wishes.departures()
