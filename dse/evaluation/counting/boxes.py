"""A team as boxes that share no design, so that counts add up and every design has one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError
from dse.evaluation.counting.conditions import Clause, broken, clauses
from dse.problem import Box, Problem, Team

__all__ = ["Axis", "Part", "disjoint"]

Axis: TypeAlias = range | NDArray[np.intp]
"""Value numbers of one dimension, ascending."""

_MOST = 4096  # parts of one team


class Part(NamedTuple):
    """The value numbers that each dimension may have, and the clauses that must hold."""

    axes: tuple[Axis, ...]
    clauses: tuple[Clause, ...] = ()


def disjoint(problem: Problem, team: Team) -> list[Part]:
    """Parts that hold each design of the team once; rules are not among their clauses.

    Raises:
        InputError: the team unites so many boxes that their parts are too many.
    """
    found: list[Part] = []
    for at, box in enumerate(team.boxes):
        parts = [_part(problem, box)]
        for earlier in team.boxes[:at]:
            parts = [rest for part in parts for rest in _without(part, problem, earlier)]
            if len(parts) > _MOST:
                raise InputError(
                    f"team {team.name} unites too many boxes that overlap for its designs to be counted"
                )
        found += parts
    return found


def _part(problem: Problem, box: Box) -> Part:
    axes = tuple(
        range(size) if allowed is None else np.asarray(allowed, dtype=np.intp)
        for size, allowed in zip(problem.sizes, box.allowed, strict=True)
    )
    return Part(axes, tuple(clauses(problem, [conjunct.node for conjunct in box.where])))


def _without(part: Part, problem: Problem, box: Box) -> Iterator[Part]:
    """The designs of a part that a box does not hold: outside in one dimension and inside in those before it, or
    inside in all and breaking one condition while meeting those before it.
    """
    axes = list(part.axes)
    for at, allowed in enumerate(box.allowed):
        if allowed is not None:
            own = np.asarray(axes[at], dtype=np.intp)
            inside = np.isin(own, allowed)
            if not inside.all():
                yield part._replace(axes=(*axes[:at], own[~inside], *axes[at + 1 :]))
            axes[at] = own[inside]
            if not len(axes[at]):
                return
    met: Sequence[Clause] = part.clauses
    for conjunct in box.where:
        yield Part(tuple(axes), (*met, broken(conjunct.node)))
        met = (*met, *clauses(problem, [conjunct.node]))
