"""One batch of a sampling study: what a solver offers, what of it is admitted, and what fills it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dse.errors import StudyError
from dse.evaluation import evaluate_nodes
from dse.problem import Design, Problem, Team
from dse.study.identity import Key
from dse.study.legal import LegalDesigns
from dse.study.solver import Admission, Proposals, SamplingSolver
from dse.study.trial import Trial

__all__ = ["PATIENCE", "Batch", "derived_seed", "propose_batch"]

PATIENCE = 100
"""Refused proposals in a row after which a solver has had its say."""


def derived_seed(seed: int, batch: int, purpose: int = 0) -> int:
    """The random seed of one batch; ``purpose`` separates independent uses of it. Of 32 bits."""
    return int(np.random.SeedSequence((abs(seed), int(seed < 0), batch, purpose)).generate_state(1)[0])


class _Enough(BaseException):
    """Ends a solver's proposing; no ``Exception``, so that its own handlers do not take it for theirs."""


class Batch:
    """The designs admitted to one batch. :meth:`admit` is what the solver calls.

    ``taken`` are the designs that were proposed before; those admitted are added to it. ``uniform`` says whether all
    that was drawn to fill the batch was drawn uniformly.
    """

    def __init__(self, solver: str, legal: LegalDesigns, taken: set[Key], wanted: int) -> None:
        self.solver = solver
        self.legal = legal
        self.taken = taken
        self.wanted = wanted
        self.keys: list[Key] = []
        self.uniform = True
        self._refused = 0  # in a row

    def admit(self, design: Design) -> Admission:
        """Take a proposal in, or say why not. The violation of an illegal one is the number of rules it breaks.

        After :data:`PATIENCE` refusals in a row, the next call ends the solver's proposing.

        Raises:
            StudyError: the proposal is no design of the problem, or no more are wanted.
        """
        if self._refused >= PATIENCE:
            raise _Enough
        if len(self.keys) >= self.wanted:
            raise StudyError(f"solver {self.solver} must propose at most {self.wanted} designs in this batch")
        admission = self._admission(design)
        self._refused = 0 if admission.accepted else self._refused + 1
        return admission

    def _admission(self, design: Design) -> Admission:
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
        """Add unseen legal designs, drawn at random, until there are enough or none is left."""
        while len(self.keys) < self.wanted:
            drawn = self.legal.draw(rng, self.taken)
            if drawn is None:
                return
            self.uniform &= drawn.uniform
            self._take(drawn.key)

    def give_up(self) -> None:
        """Nothing of the batch was taken."""
        self.taken.difference_update(self.keys)
        self.keys.clear()

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
    taken: set[Key],
    number: int,
    wanted: int,
    seed: int,
    options: Mapping[str, Any],
) -> Batch:
    """Batch ``number``: a function of the arguments alone.

    Args:
        legal: the team's legal designs.
        history: the finished trials, in order of their numbers.
        taken: all designs proposed so far; those of the batch are added.
        wanted: how many designs; the batch has fewer when fewer are left.
    """
    batch = Batch(solver.name, legal, taken, wanted)
    if len(taken) == legal.count:
        return batch
    proposals = Proposals(
        problem=problem,
        team=team,
        history=history,
        wanted=wanted,
        random_seed=derived_seed(seed, number),
        admit=batch.admit,
        options=options,
        patience=PATIENCE,
    )
    try:
        with suppress(_Enough):
            solver.propose(proposals)
        batch.fill(np.random.default_rng(derived_seed(seed, number, 1)))
    except BaseException:
        batch.give_up()
        raise
    return batch
