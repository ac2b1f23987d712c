"""Tables of given figures, as the leaves of expressions read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dse.expressions.types import Type
from dse.units import Unit

__all__ = ["Cell", "Column", "Table", "Value"]

Value: TypeAlias = float | bool | str
"""One value of a dimension, an input or a table key."""

Cell: TypeAlias = float | bool | str | tuple[str, ...] | None
"""One table cell in base units; None is a missing cell."""


@dataclass(frozen=True, slots=True)
class Column:
    """The cells of one column, flat in row-major order over the table's axes."""

    type: Type
    cells: tuple[Cell, ...]
    unit: Unit | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Given figures over one or more axes of keys.

    A table of rows has one axis (the row names) and named columns; a table keyed by dimensions has one
    axis per key and the single column ``""``.
    """

    name: str
    keys: tuple[str, ...]
    axes: tuple[tuple[Value, ...], ...]
    columns: Mapping[str, Column]
    positions: tuple[dict[Value, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lookup = tuple({value: at for at, value in enumerate(axis)} for axis in self.axes)
        object.__setattr__(self, "positions", lookup)

    @property
    def keyed(self) -> bool:
        """Whether cells are read as ``table[key, ...]`` rather than ``dimension.column``."""
        return "" in self.columns

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of keys along each axis."""
        return tuple(len(axis) for axis in self.axes)
