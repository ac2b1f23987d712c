"""Values by attribute, as formulas read them, and the columns of tables' rows side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.expressions import Table

__all__ = ["Namespace", "columns", "table_rows"]


class Namespace:
    """Values by attribute; a part is a namespace of its own."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no {name!r} among {', '.join(sorted(self.__dict__))}")

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__)

    def replaced(self, **values: Any) -> Namespace:
        """The same with some values exchanged or added."""
        return Namespace({**self.__dict__, **values})


def columns(names: Sequence[str], table: Mapping[str, Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """The columns of a table's rows, one cell for each name; a missing number is NaN. Lists
    of texts, which only rules read, are left out.

    Raises:
        KeyError: the table has no such row.
    """
    used = sorted(set(names))
    for name in used:
        if name not in table:
            raise KeyError(f"no row {name!r} among {', '.join(table)}")
    index = np.array([used.index(name) for name in names], np.intp)
    found: dict[str, NDArray[Any]] = {}
    for column in table[used[0]] if used else ():
        cells = [table[name].get(column) for name in used]
        if any(isinstance(cell, tuple) for cell in cells):
            continue  # lists of texts are for rules
        if all(isinstance(cell, bool) for cell in cells):
            whole = np.array(cells, bool)
        elif any(isinstance(cell, str) for cell in cells):
            whole = np.array(["" if cell is None else str(cell) for cell in cells])
        else:
            whole = np.array([np.nan if cell is None else cell for cell in cells], float)
        found[column] = whole[index]
    return found


def table_rows(table: Table) -> dict[str, dict[str, Any]]:
    """The cells of a table of rows, in base units, by row and column."""
    (names,) = table.axes
    return {
        str(name): {column: found.cells[at] for column, found in table.columns.items()}
        for at, name in enumerate(names)
    }
