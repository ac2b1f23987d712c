"""Exact counts of legal designs, team by team, with progress on a terminal."""

from __future__ import annotations

import time

from dse.cli.progress import progress_bar
from dse.errors import InputError
from dse.evaluation import Blocks
from dse.problem import Problem, Team
from dse.study.progress import Progress

__all__ = ["legal_counts"]

_LIMIT = 2**62  # positions of blocks are 64-bit integers


def legal_counts(problem: Problem) -> dict[str, int]:
    """The number of legal designs of the whole space and of each team; no metric is evaluated.

    The whole space is called ``all``, or ``whole space`` where a team has that name.

    Raises:
        InputError: a dimension is continuous, or there are more designs than can be enumerated.
    """
    whole = problem.everything
    teams = {whole.name if whole.name not in problem.teams else "whole space": whole, **problem.teams}
    return {name: _legal(problem, name, team) for name, team in teams.items()}


def _legal(problem: Problem, name: str, team: Team) -> int:
    blocks = Blocks(problem, team, metrics=False)
    if blocks.total > _LIMIT:
        raise InputError(f"{name}: {blocks.total:.3g} designs are too many to count one by one")
    legal, began = 0, time.monotonic()
    last = began
    with progress_bar(f"counting {name}") as report:
        for number in range(len(blocks)):
            legal += len(blocks.judge(number).positions)
            if report is not None and time.monotonic() - last > 0.1:
                last = time.monotonic()
                share = (number + 1) / len(blocks)
                report(Progress(int(blocks.total * share), blocks.total, share, "designs", last - began))
    return legal
