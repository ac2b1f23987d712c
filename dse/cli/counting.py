"""Exact counts of legal designs, team by team, with progress on a terminal."""

from __future__ import annotations

import time

from dse.cli.progress import progress_bar
from dse.errors import InputError
from dse.evaluation import Blocks
from dse.problem import Problem
from dse.study.progress import Progress

__all__ = ["WHOLE", "legal_counts"]

WHOLE = "all"
"""What the whole space is called beside the teams."""

_LIMIT = 2**62  # positions of blocks are 64-bit integers


def legal_counts(problem: Problem) -> dict[str, int]:
    """The number of legal designs of the whole space (``all``) and of each team; no metric is evaluated.

    Raises:
        InputError: a dimension is continuous, or there are more designs than can be enumerated.
    """
    return {
        name: _legal(problem, name) for name in (WHOLE, *(name for name in problem.teams if name != WHOLE))
    }


def _legal(problem: Problem, team: str) -> int:
    blocks = Blocks(problem, problem.team(team), metrics=False)
    if blocks.total > _LIMIT:
        raise InputError(f"{team}: {blocks.total:.3g} designs are too many to count one by one")
    legal, began = 0, time.monotonic()
    last = began
    with progress_bar(f"counting {team}") as report:
        for number in range(len(blocks)):
            legal += len(blocks.judge(number).positions)
            if report is not None and time.monotonic() - last > 0.1:
                last = time.monotonic()
                share = (number + 1) / len(blocks)
                report(Progress(int(blocks.total * share), blocks.total, share, "designs", last - began))
    return legal
