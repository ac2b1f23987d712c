"""Teams: named restrictions of the space, closed under ``&`` and ``|``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Box", "Conjunct", "Team"]


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One top-level condition of a team's ``where``; ``names`` are the dimensions that it depends on."""

    node: int
    text: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Box:
    """Allowed value numbers per dimension (ascending; None allows all) and the conditions that must hold."""

    allowed: tuple[tuple[int, ...] | None, ...]
    where: tuple[Conjunct, ...] = ()

    def __and__(self, other: Box) -> Box:
        pairs = zip(self.allowed, other.allowed, strict=True)
        return Box(tuple(_common(a, b) for a, b in pairs), tuple(dict.fromkeys(self.where + other.where)))

    @property
    def empty(self) -> bool:
        """Whether some dimension has no allowed value."""
        return any(values is not None and not values for values in self.allowed)


def _common(a: tuple[int, ...] | None, b: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if a is None or b is None:
        return b if a is None else a
    other = set(b)
    return tuple(value for value in a if value in other)


@dataclass(frozen=True, slots=True)
class Team:
    """A union of boxes. ``a & b`` is the designs of both teams and ``a | b`` those of either.

    The union of two boxes is not the box around them: a design belongs to a team when one whole box holds it.
    """

    name: str
    boxes: tuple[Box, ...]
    about: str = ""

    def __and__(self, other: Team) -> Team:
        boxes = (a & b for a in self.boxes for b in other.boxes)
        return Team(f"{self.name} & {other.name}", _distinct(box for box in boxes if not box.empty))

    def __or__(self, other: Team) -> Team:
        return Team(f"{self.name} | {other.name}", _distinct(self.boxes + other.boxes))

    def hull(self, sizes: Iterable[int]) -> tuple[tuple[int, ...] | range, ...]:
        """The value numbers that any box allows, per dimension; ``sizes`` are the dimensions' lengths."""
        axes: list[tuple[int, ...] | range] = []
        for at, size in enumerate(sizes):
            allowed = [box.allowed[at] for box in self.boxes]
            if any(values is None for values in allowed):
                axes.append(range(size))
            else:
                axes.append(tuple(sorted({value for values in allowed for value in values or ()})))
        return tuple(axes)

    def freed(self, names: frozenset[str], dimensions: tuple[str, ...]) -> Team:
        """The team with ``names`` freed to all values; conditions that depend on a freed dimension drop."""
        boxes = (
            Box(
                tuple(
                    None if name in names else values
                    for name, values in zip(dimensions, box.allowed, strict=True)
                ),
                tuple(conjunct for conjunct in box.where if not conjunct.names & names),
            )
            for box in self.boxes
        )
        return Team(f"{self.name} + {', '.join(sorted(names))}", _distinct(boxes))


def _distinct(boxes: Iterable[Box]) -> tuple[Box, ...]:
    return tuple(dict.fromkeys(boxes))
