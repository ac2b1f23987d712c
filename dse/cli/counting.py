"""Exact counts of legal designs, team by team, with progress on a terminal."""

from __future__ import annotations

import time
from dataclasses import dataclass

from dse.cli.progress import progress_bar
from dse.errors import InputError
from dse.evaluation import Blocks
from dse.problem import Problem

__all__ = ["WHOLE", "legal_counts"]

WHOLE = "all"
"""What the whole space is called beside the teams."""

_LIMIT = 2**62  # positions of blocks are 64-bit integers


@dataclass(frozen=True, slots=True)
class _Counted:
    done: int
    share: float
    unit: str = "designs"


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
    legal, last = 0, time.monotonic()
    with progress_bar(f"counting {team}") as report:
        for number in range(len(blocks)):
            legal += len(blocks.judge(number).positions)
            if report is not None and time.monotonic() - last > 0.1:
                last = time.monotonic()
                share = (number + 1) / len(blocks)
                report(_Counted(int(blocks.total * share), share))
    return legal
