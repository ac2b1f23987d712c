"""What a team would have to be given, and how feasible designs leave it.

Every feasible design of the whole space says what it asks of a team: for each of the team's boxes, which
dimensions it needs at a value that the box excludes, and which conditions it breaks. A set of dimensions unlocks
the team when freeing them meets what one design asks. Designs are grouped by what they ask, in one pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation import Blocks, BulkEvaluator
from dse.evaluation.verdict import condition_holds, spread
from dse.expressions import render
from dse.problem import Box, Conjunct, Problem, Team

__all__ = ["Unlock", "Wishes", "survey"]

_Need = tuple[frozenset[str], tuple[Conjunct, ...]]


@dataclass(frozen=True, slots=True)
class Unlock:
    """A smallest set of dimensions that, freed to all values, gives a team ``feasible`` designs."""

    dimensions: tuple[str, ...]
    feasible: int


class Wishes:
    """What the feasible designs of the whole space ask of one team."""

    def __init__(self, problem: Problem, team: Team) -> None:
        self.problem = problem
        self.team = team
        self.asked: Counter[tuple[_Need, ...]] = Counter()
        self.atoms = [_atoms(problem, box) for box in team.boxes]

    def unlocks(self) -> tuple[Unlock, ...]:
        """All smallest sets of dimensions that unlock the team; none if nothing is feasible anywhere."""
        names = [n for n in self.problem.names if any(n in excluded or any(n in c.names for c in conditions)
                 for needs in self.asked for excluded, conditions in needs)]  # fmt: skip
        for size in range(1, len(names) + 1):
            found = []
            for chosen in combinations(names, size):
                freed = frozenset(chosen)
                count = sum(n for needs, n in self.asked.items() if any(_met(need, freed) for need in needs))
                if count:
                    found.append(Unlock(chosen, count))
            if found:
                return tuple(found)
        return ()

    def departures(self) -> tuple[str, ...]:
        """The restrictions of a team of one box that feasible designs break, one or more of them each.

        A restriction that every feasible design meets is left out.
        """
        if len(self.team.boxes) != 1:
            return ()
        broken: dict[str, None] = {}
        texts = dict(self.atoms[0])
        for needs in self.asked:
            excluded, conditions = needs[0]
            for key, text in texts.items():
                if (isinstance(key, str) and key in excluded) or key in conditions:
                    broken[text] = None
        return tuple(text for text in texts.values() if text in broken)


def _met(need: _Need, freed: frozenset[str]) -> bool:
    excluded, conditions = need
    return excluded <= freed and all(condition.names & freed for condition in conditions)


def _atoms(problem: Problem, box: Box) -> list[tuple[str | Conjunct, str]]:
    """A box's restrictions, each with how to say that a design breaks it."""
    atoms: list[tuple[str | Conjunct, str]] = []
    for dimension, allowed in zip(problem.dimensions, box.allowed, strict=True):
        if allowed is None or len(allowed) == len(dimension.values):
            continue
        left = [at for at in range(len(dimension.values)) if at not in allowed]
        shown = [dimension.label(at) for at in allowed]
        if len(left) == 1:
            atoms.append((dimension.name, f"{dimension.name} = {dimension.label(left[0])}"))
        else:
            atoms.append((dimension.name, f"{dimension.name} other than {', '.join(shown)}"))
    for conjunct in box.where:
        node = problem.graph[conjunct.node]
        negated = render(problem.graph, node.args[0]) if node.op == "not" else f"not ({conjunct.text})"
        atoms.append((conjunct, negated))
    return atoms


def survey(problem: Problem, teams: Sequence[Team]) -> list[Wishes]:
    """What the feasible designs of the whole space ask of each team, in one pass over the space."""
    wishes = [Wishes(problem, team) for team in teams]
    conditions = [c.node for team in teams for box in team.boxes for c in box.where]
    blocks = Blocks(problem, problem.everything)
    evaluator = BulkEvaluator(problem, conditions)
    for number in range(len(blocks)):
        judged = blocks.judge(number)
        if judged.outcomes is None or not judged.outcomes.feasible.any():
            continue
        positions = judged.positions[judged.outcomes.feasible]
        digits = blocks.digit_arrays(positions)
        values = evaluator.evaluate(digits)
        n = len(positions)
        held = {node: condition_holds(spread(values[node], n)) for node in conditions}
        for wish in wishes:
            _group(wish, digits, held, n)
    return wishes


def _group(wish: Wishes, digits: dict[str, NDArray[Any]], held: dict[int, NDArray[Any]], n: int) -> None:
    """Count the designs by what they ask: one column of truth values per restriction, then distinct rows."""
    columns: list[NDArray[Any]] = []
    meanings: list[tuple[int, str | Conjunct]] = []
    for at, box in enumerate(wish.team.boxes):
        for name, allowed in zip(wish.problem.names, box.allowed, strict=True):
            if allowed is not None:
                columns.append(~np.isin(digits[name], allowed))
                meanings.append((at, name))
        for conjunct in box.where:
            columns.append(~held[conjunct.node])
            meanings.append((at, conjunct))
    table = np.column_stack(columns) if columns else np.zeros((n, 0), dtype=np.bool_)
    rows, counts = np.unique(table, axis=0, return_counts=True) if columns else (table[:1], np.array([n]))
    for row, count in zip(rows, counts, strict=True):
        needs = []
        for at in range(len(wish.team.boxes)):
            broken = [meaning for (box, meaning), bad in zip(meanings, row, strict=True) if bad and box == at]
            excluded = frozenset(m for m in broken if isinstance(m, str))
            needs.append((excluded, tuple(m for m in broken if not isinstance(m, str))))
        wish.asked[tuple(needs)] += int(count)
