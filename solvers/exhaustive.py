"""Exhaustive search: every legal design is evaluated, block after block, in memory that does not grow."""

from __future__ import annotations

import math

from dse.evaluation import Blocks
from dse.problem import Problem, Team
from dse.study.exact import walk
from dse.study.registry import unlisted
from dse.study.solver import ExactSearch, ExactSolver
from dse.study.tally import Tally

__all__ = ["Exhaustive", "refusal"]

POSITION_LIMIT = 2**62


def refusal(problem: Problem, team: Team) -> str | None:
    """Why a problem cannot be enumerated; None when it can."""
    reason = unlisted(problem)
    if reason is not None:
        return reason
    size = math.prod(len(axis) for axis in team.hull(problem.sizes))
    if size > POSITION_LIMIT:
        return f"the team's part of the space has {size:.3g} designs; at most {POSITION_LIMIT:.3g} can be numbered"
    return None


class _Enumeration:
    """The blocks of a team's part of the space, as pieces of work."""

    def __init__(self, problem: Problem, team: Team) -> None:
        self.blocks = Blocks(problem, team)

    def __len__(self) -> int:
        return len(self.blocks)

    def run(self, piece: int, tally: Tally) -> None:
        judged = self.blocks.judge(piece)
        tally.outside += judged.outside
        tally.illegal = [a + int(b) for a, b in zip(tally.illegal, judged.illegal, strict=True)]
        if judged.outcomes is not None and len(judged.positions):
            tally.add(judged.positions, judged.outcomes, self.blocks.digit_arrays(judged.positions))


class Exhaustive(ExactSolver):
    """Evaluates every legal design."""

    name = "exhaustive"
    title = "every legal design, streamed in blocks"
    needs = frozenset({"bulk"})

    def refuse(self, problem: Problem, team: Team) -> str | None:
        """Refuse what cannot be enumerated."""
        return refusal(problem, team)

    def explore(self, search: ExactSearch) -> None:
        """Evaluate block after block."""
        walk(search, _Enumeration)
