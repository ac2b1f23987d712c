"""What a team would have to be given, and how feasible designs leave it.

Every feasible design of the whole space says what it asks of a team: for each of the team's boxes, which
dimensions it needs at a value that the box excludes, and which conditions it breaks. A set of dimensions unlocks
the team when freeing them meets what one design asks. Designs are grouped by what they ask, in one pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation import Blocks, BulkEvaluator
from dse.evaluation.verdict import condition_holds, spread
from dse.expressions import render
from dse.problem import Box, Problem, Team
from dse.study.listing import Listing, few_legal

__all__ = ["SURVEY_LIMIT", "Needs", "Unlock", "can_survey", "survey"]

SURVEY_LIMIT = 50_000_000
"""Designs of the whole space up to which every one is looked at."""

LISTED_LIMIT = 2_000_000
"""Legal designs of a larger space up to which they are listed."""


@dataclass(frozen=True, slots=True)
class Unlock:
    """A smallest set of dimensions that, freed to all values, gives a team ``feasible`` designs."""

    dimensions: tuple[str, ...]
    feasible: int


@dataclass(frozen=True, slots=True)
class _Need:
    """What a design asks of one box: every dimension of ``excluded``, and of each condition one of its names."""

    excluded: frozenset[str]
    conditions: frozenset[frozenset[str]]

    def smallest(self) -> Iterable[frozenset[str]]:
        """Sets that meet the need, every smallest one among them."""
        open_conditions = [sorted(names) for names in self.conditions if not names & self.excluded]
        return {self.excluded | set(chosen) for chosen in product(*open_conditions)}


class Needs:
    """What the feasible designs of the whole space ask of one team: per box, with how many ask the same."""

    def __init__(self, problem: Problem, team: Team) -> None:
        self.problem = problem
        self.team = team
        self.asked: Counter[tuple[_Need, ...]] = Counter()
        self.restrictions = [_restrictions(problem, box) for box in team.boxes]
        self.broken: set[int] = set()

    def unlocks(self) -> tuple[Unlock, ...]:
        """All smallest sets of dimensions that unlock the team; none if nothing is feasible anywhere."""
        found: Counter[frozenset[str]] = Counter()
        best = len(self.problem.names) + 1
        for asked, count in self.asked.items():
            sets = {freed for need in asked if len(need.excluded) <= best for freed in need.smallest()}
            size = min(map(len, sets), default=best + 1)
            if size < best:
                found.clear()
                best = size
            # No set of this size meets a need but one of the need's own, so each design is counted exactly.
            found.update({freed: count for freed in sets if len(freed) == best})
        order = {name: at for at, name in enumerate(self.problem.names)}
        named = sorted((sorted(map(order.__getitem__, freed)), count) for freed, count in found.items())
        return tuple(Unlock(tuple(self.problem.names[at] for at in places), n) for places, n in named)

    def departures(self) -> tuple[str, ...]:
        """The restrictions of a team of one box that feasible designs break, one or more of them each.

        A restriction that every feasible design meets is left out.
        """
        if len(self.team.boxes) != 1:
            return ()
        return tuple(text for at, text in enumerate(self.restrictions[0]) if at in self.broken)


def _restrictions(problem: Problem, box: Box) -> list[str]:
    """How to say that a design breaks each of a box's restrictions: dimensions first, then conditions."""
    texts = []
    for dimension, allowed in zip(problem.dimensions, box.allowed, strict=True):
        if allowed is None:
            continue
        left = [at for at in range(len(dimension.values)) if at not in allowed]
        if len(left) == 1:
            texts.append(f"{dimension.name} = {dimension.label(left[0])}")
        else:
            texts.append(f"{dimension.name} other than {', '.join(dimension.label(at) for at in allowed)}")
    graph = problem.graph
    for conjunct in box.where:
        node = graph[conjunct.node]
        texts.append(render(graph, node.args[0]) if node.op == "not" else f"not ({conjunct.text})")
    return texts


def survey(problem: Problem, teams: Sequence[Team]) -> list[Needs]:
    """What the feasible designs of the whole space ask of each team, in one pass over the space."""
    all_needs = [Needs(problem, team) for team in teams]
    conditions = [c.node for team in teams for box in team.boxes for c in box.where]
    evaluator = BulkEvaluator(problem, conditions)
    for digits in _feasible(problem):
        n = len(digits[problem.names[0]])
        values = evaluator.evaluate(digits)
        held = {node: condition_holds(spread(values[node], n)) for node in conditions}
        for needs in all_needs:
            _group(needs, digits, held, n)
    return all_needs


def can_survey(problem: Problem) -> bool:
    """Whether the space has few enough designs, or legal ones, for :func:`survey`."""
    return problem.size <= SURVEY_LIMIT or few_legal(problem, problem.everything, LISTED_LIMIT) is not None


def _feasible(problem: Problem) -> Iterator[dict[str, NDArray[Any]]]:
    """The value numbers (n,), per dimension, of the feasible designs of the whole space, in parts."""
    if problem.size > SURVEY_LIMIT:
        listing = Listing(problem, problem.everything)
        for piece in range(len(listing)):
            found = listing.judged(piece)
            if found is not None and found[1].feasible.any():
                yield {name: column[found[1].feasible] for name, column in found[0].items()}
        return
    blocks = Blocks(problem, problem.everything)
    for number in range(len(blocks)):
        judged = blocks.judge(number)
        if judged.outcomes is not None and judged.outcomes.feasible.any():
            yield blocks.digit_arrays(judged.positions[judged.outcomes.feasible])


def _group(needs: Needs, digits: dict[str, NDArray[Any]], held: dict[int, NDArray[Any]], n: int) -> None:
    """Count the designs by what they ask: one column of truth values per restriction, then distinct rows."""
    columns: list[NDArray[Any]] = []
    spans: list[tuple[int, list[str | frozenset[str]]]] = []
    for box in needs.team.boxes:
        meanings: list[str | frozenset[str]] = []
        start = len(columns)
        for name, allowed in zip(needs.problem.names, box.allowed, strict=True):
            if allowed is not None:
                columns.append(~np.isin(digits[name], allowed))
                meanings.append(name)
        for conjunct in box.where:
            columns.append(~held[conjunct.node])
            meanings.append(conjunct.names)
        spans.append((start, meanings))
    if not columns:
        needs.asked[tuple(_Need(frozenset(), frozenset()) for _ in spans)] += n
        return
    rows, counts = np.unique(np.column_stack(columns), axis=0, return_counts=True)
    needs.broken.update(np.flatnonzero(rows.any(axis=0)).tolist())
    for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
        asked = []
        for start, meanings in spans:
            broken = [meaning for at, meaning in enumerate(meanings) if row[start + at]]
            excluded = frozenset(m for m in broken if isinstance(m, str))
            asked.append(_Need(excluded, frozenset(m for m in broken if isinstance(m, frozenset))))
        needs.asked[tuple(asked)] += count
