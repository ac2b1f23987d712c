"""What many designs have in common, in few words."""

from __future__ import annotations

from dse.problem import Problem
from dse.study.result import Trait

__all__ = ["trait_text"]

_FEW = 4
"""Values of a trait that are listed."""


def trait_text(problem: Problem, trait: Trait) -> str:
    """A trait in few words: by the values it leaves out when they are fewer, by its ends when there are many."""
    if len(trait.values) <= _FEW:
        return trait.text
    dimension = problem.dimension(trait.dimension)
    labels = [dimension.label(at) for at in range(len(dimension.values))]
    held = set(trait.values)
    absent = [label for label in labels if label not in held]
    if len(absent) <= _FEW:
        none_of = "is not" if len(absent) == 1 else "is none of"
        return f"{trait.dimension} {none_of} {', '.join(absent)}"
    first, last = labels.index(trait.values[0]), labels.index(trait.values[-1])
    span = f"{labels[first]} to {labels[last]}"
    among = "from" if last - first + 1 == len(trait.values) else "within"
    return f"{trait.dimension} {among} {span} ({len(trait.values):,} of {trait.of:,})"
