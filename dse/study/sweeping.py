"""Every legal design of a team as pieces of work for :func:`dse.study.exact.walk`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dse.evaluation.prepared import borrowed
from dse.evaluation.sweep import Sweep
from dse.problem import Problem, Team
from dse.study.gathering import Gathering
from dse.study.tally import Swept, Tally

__all__ = ["Sweeping", "sweeping"]


class Sweeping:
    """The pieces of a sweep, taken into tallies."""

    def __init__(self, problem: Problem, team: Team, sweep: Sweep | None = None) -> None:
        self.sweep = sweep or Sweep(problem, team)
        self._gathering = Gathering([objective.sign for objective in problem.objectives])

    def __len__(self) -> int:
        return len(self.sweep)

    def run(self, piece: int, tally: Tally) -> None:
        """Evaluate the legal designs of a piece, and account for the others."""
        outside, illegal = self.sweep.run(piece, lambda grid: self._gathering.take(grid, tally))
        tally.outside += outside
        tally.illegal = [a + b for a, b in zip(tally.illegal, illegal, strict=True)]

    def swept(self, pieces: int) -> Swept:
        """What the first ``pieces`` pieces hold."""
        return Swept(*self.sweep.swept(pieces))


@contextmanager
def sweeping(problem: Problem, team: Team) -> Iterator[Sweeping]:
    """The pieces of a problem that may have been swept before; what was prepared then is used again."""
    with borrowed(problem, ("sweep", team.boxes), lambda: Sweep(problem, team)) as sweep:
        yield Sweeping(problem, team, sweep)
