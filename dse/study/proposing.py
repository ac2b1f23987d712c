"""One batch of a sampling study: what a solver offers, what of it is admitted, and what fills it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dse.errors import StudyError
from dse.evaluation import evaluate_nodes
from dse.problem import Design, Problem, Team
from dse.study.identity import Key
from dse.study.legal import LegalDesigns
from dse.study.solver import Admission, Proposals, SamplingSolver
from dse.study.trial import Trial, TrialState

__all__ = ["Batch", "derived_seed", "propose_batch"]


def derived_seed(seed: int, batch: int, purpose: int = 0) -> int:
    """The random seed of one batch; ``purpose`` separates independent uses of it. Of 32 bits."""
    return int(np.random.SeedSequence((abs(seed), int(seed < 0), batch, purpose)).generate_state(1)[0])


class Batch:
    """The designs admitted to one batch. :meth:`admit` is what the solver calls."""

    def __init__(self, solver: str, legal: LegalDesigns, taken: set[Key], wanted: int) -> None:
        self.solver = solver
        self.legal = legal
        self.taken = taken
        self.wanted = wanted
        self.keys: list[Key] = []

    def admit(self, design: Design) -> Admission:
        """Take a proposal in, or say why not. The violation of an illegal one is the number of rules it breaks.

        Raises:
            StudyError: the proposal is no design of the problem, or no more are wanted.
        """
        if len(self.keys) >= self.wanted:
            raise StudyError(f"solver {self.solver} must propose at most {self.wanted} designs in this batch")
        key = self.legal.coder.key(design)
        if key in self.taken:
            return Admission(accepted=False, why="repeated")
        design = self.legal.coder.design(key)
        if not self.legal.member(key, design):
            return Admission(accepted=False, why="outside", violation=1.0)
        checks = [rule.check for rule in self.legal.problem.rules]
        values = evaluate_nodes(self.legal.problem, design, checks)
        broken = sum(values[check] is not True for check in checks)
        if broken:
            return Admission(accepted=False, why="illegal", violation=float(broken))
        self._take(key)
        return Admission(accepted=True)

    def fill(self, rng: np.random.Generator) -> None:
        """Add unseen legal designs, uniformly drawn, until there are enough or none is left."""
        while len(self.keys) < self.wanted:
            key = self.legal.draw(rng, self.taken)
            if key is None:
                return
            self._take(key)

    def _take(self, key: Key) -> None:
        self.taken.add(key)
        self.keys.append(key)


def propose_batch(
    problem: Problem,
    team: Team,
    solver: SamplingSolver,
    *,
    legal: LegalDesigns,
    history: Sequence[Trial],
    number: int,
    wanted: int,
    seed: int,
    options: Mapping[str, Any],
) -> list[Design]:
    """The designs of batch ``number``: a function of the arguments alone.

    Args:
        legal: the team's legal designs.
        history: the finished trials, in order of their numbers; those not finished may be among them.
        wanted: how many designs; fewer are returned when fewer are left.
    """
    taken = {legal.coder.key(trial.design) for trial in history}
    batch = Batch(solver.name, legal, taken, wanted)
    finished = [trial for trial in history if trial.state is not TrialState.RUNNING]
    if len(taken) != legal.count:
        solver.propose(
            Proposals(
                problem=problem,
                team=team,
                history=finished,
                wanted=wanted,
                random_seed=derived_seed(seed, number),
                admit=batch.admit,
                options=options,
            )
        )
        batch.fill(np.random.default_rng(derived_seed(seed, number, 1)))
    return [legal.coder.design(key) for key in batch.keys]
