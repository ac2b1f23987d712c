"""What tells designs apart: a key of value numbers, and of the values themselves where a dimension is continuous."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from dse.errors import InputError, nearest
from dse.evaluation import evaluate_nodes
from dse.expressions import Value
from dse.problem import Design, Problem, Team, shown

__all__ = ["Coder", "Key", "Membership"]

Key: TypeAlias = tuple[int | float, ...]
"""One entry per dimension: the value number, or the value of a continuous dimension."""


class Coder:
    """Turns the designs of one problem into keys and back. Equal designs have equal keys."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._numbers: dict[str, dict[Value, int]] = {}

    def key(self, design: Mapping[str, object]) -> Key:
        """The key of a complete design given by values (not by their texts).

        Raises:
            InputError: a dimension is missing or unknown, or has no such value.
        """
        if len(design) != len(self.problem.dimensions):
            for name in design:
                self.problem.dimension(name)
        return tuple(self._part(at, design) for at in range(len(self.problem.dimensions)))

    def _part(self, at: int, design: Mapping[str, object]) -> int | float:
        dimension = self.problem.dimensions[at]
        if dimension.name not in design:
            raise InputError(f"the design has no value for {dimension.name}{nearest(dimension.name, design)}")
        value = design[dimension.name]
        if dimension.interval is not None:
            low, high = dimension.interval.low, dimension.interval.high
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
                raise InputError(f"dimension {dimension.name!r} is from {low} to {high}, but got {value!r}")
            return float(value) + 0.0
        numbers = self._numbers.get(dimension.name)
        if numbers is None:
            numbers = {known: number for number, known in enumerate(dimension.values)}
            self._numbers[dimension.name] = numbers
        number = numbers.get(value) if isinstance(value, (float, bool, str, int)) else None
        if number is None or isinstance(value, bool) != isinstance(dimension.values[number], bool):
            return self.problem.digit(dimension.name, value)
        return number

    def design(self, key: Key) -> Design:
        """The design with this key."""
        return {
            d.name: float(part) if d.interval is not None else d.values[int(part)]
            for d, part in zip(self.problem.dimensions, key, strict=True)
        }

    def index(self, key: Key) -> int | None:
        """The index of the design in the whole space; None when a dimension is continuous."""
        if self.problem.continuous:
            return None
        return self.problem.index_of([int(part) for part in key])

    def text(self, key: Key) -> str:
        """The design for messages: ``a=1 b=true``."""
        design = self.design(key)
        return " ".join(f"{d.name}={shown(design[d.name], d.unit)}" for d in self.problem.dimensions)


class Membership:
    """Which designs a team may choose, decided from keys without looking values up."""

    def __init__(self, problem: Problem, team: Team) -> None:
        self.problem = problem
        self._boxes = [
            (
                [(at, frozenset(allowed)) for at, allowed in enumerate(box.allowed) if allowed is not None],
                [conjunct.node for conjunct in box.where],
            )
            for box in team.boxes
        ]

    def __call__(self, key: Key, design: Mapping[str, Value]) -> bool:
        """Whether the team may choose the design."""
        for narrowed, nodes in self._boxes:
            if all(key[at] in allowed for at, allowed in narrowed):
                values = evaluate_nodes(self.problem, design, nodes)
                if all(values[node] is True for node in nodes):
                    return True
        return False
