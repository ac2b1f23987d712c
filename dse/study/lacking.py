"""Cells that a row of a table lacks and that designs with this row read: all of them, not the first alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dse.errors import nearest
from dse.evaluation import BulkEvaluator, Judge, State, judge
from dse.evaluation.counting import LegalSpace, TooLarge
from dse.evaluation.verdict import condition_holds, spread
from dse.expressions import Cell, Graph, Table
from dse.problem import Box, Problem, Team
from dse.study.legal import WORK

__all__ = ["Lacking", "lacking", "own_rows"]

_DRAWN = 1_024
"""Legal designs of a row that are looked at."""

_ROWS = 24
"""Rows at most that are looked at because their file adds them."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """What designs with a row of a table need and have not.

    ``columns`` have no cell that evaluation reads; without those of ``rules`` no design of the row is legal. ``unknown``
    are cells that name no row of another table, in words.
    """

    user: str
    row: str
    table: str
    columns: tuple[str, ...]
    rules: tuple[str, ...]
    unknown: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.columns or self.rules or self.unknown)

    @property
    def text(self) -> str:
        """In one sentence."""
        parts = []
        if self.rules:
            parts.append(f"no design is legal, as rules read {', '.join(self.rules)}")
        if self.columns:
            also = " then also" if self.rules else ""
            parts.append(f"designs{also} fail, as they read {', '.join(self.columns)}")
        said = f"{' and '.join(parts)}, of which {self.table} has no cell" if parts else ""
        named = "; ".join(self.unknown)
        return f"with {self.user} = {self.row} {'; '.join(part for part in (said, named) if part)}"


def own_rows(problem: Problem) -> dict[str, tuple[Lacking, ...]]:
    """What the rows lack that the space's own file adds, for each dimension or input that can take them.

    By the rows' place in the file, such as ``tables.gpus.rows.mine``; complete rows are left out.
    """
    found = {}
    if problem.continuous or problem.measured:
        return {}
    for key in [name for name in problem.locations if _is_row(name)][:_ROWS]:
        table, row = key.removeprefix("tables.").split(".rows.", 1)
        lacks = tuple(lack for user in _users(problem, table, row) if (lack := lacking(problem, user, row)))
        if lacks:
            found[key] = lacks
    return found


def _is_row(name: str) -> bool:
    return name.startswith("tables.") and ".rows." in name


def _users(problem: Problem, table: str, row: str) -> list[str]:
    """The dimensions and inputs that can take a row."""
    dimensions = [d.name for d in problem.dimensions if d.table == table and row in d.values]
    return [*dimensions, *(i.name for i in problem.inputs.values() if i.table == table)]


def lacking(problem: Problem, user: str, row: str) -> Lacking:
    """What designs lack with a dimension or an input at a row; nothing where no legal design can be found in time."""
    at = next((n for n, d in enumerate(problem.dimensions) if d.name == user), None)
    name = problem.inputs[user].table if at is None else problem.dimensions[at].table
    assert name is not None
    team = None
    if at is None:
        problem = problem.with_inputs({user: row})
    else:
        values = tuple(n for n, value in enumerate(problem.dimensions[at].values) if value == row)
        allowed = tuple(values if n == at else None for n in range(len(problem.dimensions)))
        team = Team(f"{user}={row}", (Box(allowed),))
    return _Row(problem, team, user, name, row).lacking()


class _Row:
    """A row that is filled, cell by cell, with what other rows have, until its designs can be judged."""

    def __init__(self, problem: Problem, team: Team | None, user: str, table: str, row: str) -> None:
        self.problem = problem
        self.team = team
        self.user, self.name, self.row = user, table, row
        graph = problem.graph
        self.checks = [rule.check for rule in problem.rules]
        read = _columns(graph, Judge(problem).roots, user, table)
        self.by_rules = [c for c in _columns(graph, self.checks, user, table) if self.cell(c) is None]
        self.missing = [c for c in dict.fromkeys([*read, *self.by_rules]) if self.cell(c) is None]
        self.strange = _strange(graph, [*Judge(problem).roots, *self.checks], user, self)

    def cell(self, column: str) -> Cell:
        """The row's cell of a column; None where there is none."""
        table = self.problem.graph.tables[self.name]
        return table.columns[column].cells[table.positions[0][self.row]]

    def lacking(self) -> Lacking:
        nothing = Lacking(self.user, self.row, self.name, (), (), ())
        if not self.missing and not self.strange:
            return nothing
        filled = self._filled(self.problem, [*self.by_rules, *self.strange])
        designs = _legal(filled, self.team)
        if designs is None or not len(designs):
            return nothing
        needed = self._needed(designs)
        problem = self._filled(self.problem, needed)
        designs = designs[_holds(problem, designs)]
        columns: list[str] = []
        unknown: list[str] = []
        for _ in range(len(self.missing) + len(self.strange)):
            reason = self._first_reason(problem, designs)
            column = next((c for c in self.missing if reason.startswith(f"{self.name}.{c} has no cell")), "")
            strange = next(
                (c for c, why in self.strange.items() if reason.startswith(f"{why[0]} has no key")), ""
            )
            if column:
                columns.append(column)
            elif strange:
                unknown.append(self.strange[strange][1])
            else:
                break
            problem = self._filled(problem, [column or strange])
        return replace(nothing, columns=tuple(columns), rules=tuple(needed), unknown=tuple(unknown))

    def _needed(self, designs: NDArray[np.intp]) -> list[str]:
        """The columns without which no design is legal, of those that rules read."""
        needed = list(self.by_rules)
        for column in self.by_rules:
            without = [c for c in needed if c != column]
            if _holds(self._filled(self.problem, without), designs).any():
                needed = without
        return needed

    def _first_reason(self, problem: Problem, designs: NDArray[np.intp]) -> str:
        """Why the first design that fails does; nothing where none does."""
        digits = dict(zip(problem.names, designs.T, strict=True))
        failed = np.flatnonzero(Judge(problem).evaluate(digits, len(designs)).failed)
        if not len(failed):
            return ""
        verdict = judge(problem, problem.design_at(designs[failed[0]].tolist()))
        return verdict.reason if verdict.state is State.FAILED else ""

    def _filled(self, problem: Problem, columns: Collection[str]) -> Problem:
        """The problem with the row's cells of these columns taken from other rows."""
        if not columns:
            return problem
        table = problem.graph.tables[self.name]
        at = table.positions[0][self.row]
        changed = dict(table.columns)
        for column in columns:
            known = changed[column]
            cells = list(known.cells)
            usable = [c for c in cells if c is not None and self._usable(column, c)]
            cells[at] = _typical(usable)
            changed[column] = replace(known, cells=tuple(cells))
        return replace(problem, graph=problem.graph.with_tables([replace(table, columns=changed)]))

    def _usable(self, column: str, cell: Cell) -> bool:
        """Whether a cell names a row, where it must."""
        if column not in self.strange:
            return not isinstance(cell, float) or cell > 0.0
        return cell in self.problem.graph.tables[self.strange[column][0]].axes[0]


def _columns(graph: Graph, roots: Iterable[int], user: str, table: str) -> list[str]:
    """The columns of a table that ``roots`` read by the name that ``user`` has."""
    found = []
    for number in graph.needed(roots):
        node = graph[number]
        if node.op == "cell" and node.data[0] == table and node.data[1] and _key(graph, node.args[0]) == user:
            found.append(node.data[1])
    return list(dict.fromkeys(found))


def _key(graph: Graph, position: int) -> str:
    """The dimension or input that a position is that of."""
    key = graph[graph[position].args[0]]
    return str(key.data) if key.op in ("dimension", "input") else ""


def _strange(graph: Graph, roots: Iterable[int], user: str, row: _Row) -> dict[str, tuple[str, str]]:
    """By column, cells of the row that name no row of the table that is read by them: which table, and in words."""
    found: dict[str, tuple[str, str]] = {}
    for number in graph.needed(roots):
        node = graph[number]
        if node.op != "position":
            continue
        key = graph[node.args[0]]
        if key.op != "cell" or key.data[0] != row.name or _key(graph, key.args[0]) != user:
            continue
        other: Table = graph.tables[node.data[0]]
        cell = row.cell(key.data[1])
        if cell is not None and cell not in other.axes[node.data[1]]:
            hint = nearest(str(cell), map(str, other.axes[node.data[1]]))
            said = f"designs fail, as {other.name} has no key {cell}, the {key.data[1]}{hint}"
            found[key.data[1]] = (other.name, said)
    return found


def _typical(cells: Sequence[Cell]) -> Cell:
    """A number in the middle, or what is there most often."""
    numbers = sorted(cell for cell in cells if isinstance(cell, float))
    if numbers and len(numbers) == len(cells):
        return numbers[len(numbers) // 2]
    return Counter(cells).most_common(1)[0][0] if cells else None


def _legal(problem: Problem, team: Team | None) -> NDArray[np.intp] | None:
    """Value numbers of legal designs, at most some at random; None where they cannot be counted in time."""
    space = LegalSpace(problem, team, work=WORK)
    try:
        count = space.count
    except TooLarge:
        return None
    return space.designs(range(count)) if count <= _DRAWN else space.draw(np.random.default_rng(0), _DRAWN)


def _holds(problem: Problem, designs: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which designs break no rule."""
    checks = [rule.check for rule in problem.rules]
    values = BulkEvaluator(problem, checks).evaluate(dict(zip(problem.names, designs.T, strict=True)))
    legal = np.ones(len(designs), dtype=np.bool_)
    for check in checks:
        legal &= condition_holds(spread(values[check], len(designs)))
    return legal
