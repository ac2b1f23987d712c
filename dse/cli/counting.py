"""Exact counts of legal designs, team by team, with progress on a terminal."""

from __future__ import annotations

import time

from dse.cli.progress import progress_bar
from dse.errors import InputError
from dse.evaluation.counting import LegalSpace, TooLarge
from dse.problem import Problem, Team
from dse.study.progress import Progress

__all__ = ["legal_counts"]


def legal_counts(problem: Problem) -> dict[str, int]:
    """The number of legal designs of the whole space and of each team; no metric is evaluated.

    Raises:
        InputError: a dimension is continuous, or the rules couple too many combinations to be counted.
    """
    whole = problem.everything
    return {name: _legal(problem, name, team) for name, team in {whole.name: whole, **problem.teams}.items()}


def _legal(problem: Problem, name: str, team: Team) -> int:
    began = time.monotonic()
    with progress_bar(f"counting {name}") as shown:

        def report(done: int, of: int) -> None:
            if shown is not None:
                shown(Progress(done, of, done / of, "combinations", time.monotonic() - began))

        try:
            return LegalSpace(problem, team, report=report).count
        except TooLarge as error:
            raise InputError(f"{name}: {error}") from None
