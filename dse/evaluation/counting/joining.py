"""Joining groups of dimensions until every condition is decided.

Each dimension starts as a group of its own. Two groups that a condition reads are joined: their states are crossed,
what can now be computed is, conditions that are now decided reject, and states that no undecided condition can tell
apart become one, with the sum of their ways. ``a + b + c + d == 42`` so needs the sums of a and b, not the pairs.
A group that no condition reads any more is one state, and the product of those is the count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError
from dse.evaluation.bulk import Bulk, BulkEvaluator
from dse.evaluation.counting.boxes import Axis
from dse.evaluation.counting.conditions import Clause, holds
from dse.evaluation.counting.groups import (
    Group,
    Leaf,
    Weights,
    grouped,
    joined,
    packed,
    picked,
    total_of,
    ways,
)

__all__ = ["ROWS", "Budget", "Crossing", "Joining", "TooLarge", "TooManyStates", "columns_of", "refusal"]

ROWS = 2**19
"""States of one group that are held at once, fewer where they have many columns."""

_COLUMNS = 4  # columns that are not yet many

_CHUNK = 2**18  # pairs of states that are crossed at once
_TRIAL = 2**12  # pairs that are joined to see how many states are left
_EASY, _HARDER = 2**20, 64  # joins of more pairs, and this much harder than the easiest, wait
_FEW = 8  # groups of a clause, the smallest, of which two are joined
_GAIN = 0.7  # a join that leaves this share of the pairs as states has done nothing
_SAMPLE = 64  # states of each of two larger groups that are crossed for an estimate


class TooLarge(InputError):
    """Legal designs cannot be counted within the limits; the message names what was too large."""


class TooManyStates(Exception):
    """A group has more states than can be held; ``dims`` are its dimensions, as bits."""

    def __init__(self, dims: int) -> None:
        super().__init__(dims)
        self.dims = dims


_KEPT = 2**21  # states that are kept after counting, in all


def refusal(names: Sequence[str], combinations: str) -> str:
    """Why legal designs cannot be counted."""
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return (
        f"the legal designs cannot be counted: the rules couple {shown} so that {combinations} combinations "
        "would have to be looked at"
    )


class Budget:
    """How many more pairs of states may be crossed, and how many states kept."""

    def __init__(self, pairs: int, report: Callable[[int, int], None] | None = None) -> None:
        self.left = pairs
        self._report = report
        self._kept = 0

    def keep(self, states: int) -> bool:
        """Whether so many states more may be kept."""
        fits = self._kept + states <= _KEPT
        self._kept += states if fits else 0
        return fits

    def spend(self, pairs: int, names: Iterable[str]) -> None:
        """Take ``pairs`` off.

        Raises:
            TooLarge: there are not so many left.
        """
        self.left -= pairs
        if self.left < 0:
            raise TooLarge(refusal(list(names), f"{pairs:,}"))

    def report(self, done: int, of: int) -> None:
        """Tell how far a join is."""
        if self._report is not None:
            self._report(done, of)


class Crossing(NamedTuple):
    """Pairs of states that no decided clause rejects: row ``a[i]`` of one group and ``b[i]`` of the other.

    ``values`` holds the columns of the joint states that neither group had; ``upto`` rows of the first are done.
    """

    a: NDArray[np.intp]
    b: NDArray[np.intp]
    values: dict[int, Bulk]
    upto: int


class Joining:
    """One box of a space: the value numbers that each dimension may have, and the clauses that must hold."""

    def __init__(
        self,
        evaluator: BulkEvaluator,
        axes: Sequence[Axis],
        clauses: Sequence[Clause],
        budget: Budget,
    ) -> None:
        self.evaluator = evaluator
        self.graph = evaluator.graph
        self.names = evaluator.problem.names
        self.axes = axes
        self.budget = budget
        free = {name: 1 << at for at, name in enumerate(self.names) if len(axes[at]) > 1}
        self.nodes = self.graph.needed({arg for clause in clauses for arg in clause.args})
        self.support = {n: sum(free.get(name, 0) for name in self.graph[n].support) for n in self.nodes}
        self.clauses = [(clause, _union(self.support[arg] for arg in clause.args)) for clause in clauses]
        self.fixed: dict[int, Bulk] = {}
        self.empty = not all(map(len, axes))
        if not self.empty:
            digits = {name: np.asarray(axis[0]) for name, axis in zip(self.names, axes, strict=True)}
            constant = [n for n in self.nodes if not self.support[n]]
            self.fixed = evaluator.evaluate(digits, constant)
            self.empty = not all(holds(clause, self.fixed).all() for clause, of in self.clauses if not of)
        self.read = _union(of for _, of in self.clauses)
        self.supports = dict.fromkeys(
            [of for _, of in self.clauses if of] + [of for of in self.support.values() if of]
        )

    def name(self, dims: int) -> list[str]:
        """The names of dimensions."""
        return [name for at, name in enumerate(self.names) if dims >> at & 1]

    def groups(self) -> list[Group]:
        """Groups that no clause reads any more, of all dimensions that a clause reads.

        Raises:
            TooLarge: the budget is spent.
            TooManyStates: a group would not fit into memory.
        """
        groups = [self.leaf(at) for at in range(len(self.axes)) if self.read >> at & 1]
        tried: dict[int, tuple[float, Group | None]] = {}
        while all(map(len, groups)):
            pair = self._next(groups, tried)
            if pair is None:
                break
            a, b = pair
            groups = [g for g in groups if g is not a and g is not b]
            groups.append(tried.get(a.dims | b.dims, (1.0, None))[1] or self.join(a, b))
        return groups

    def _next(
        self, groups: Sequence[Group], tried: dict[int, tuple[float, Group | None]]
    ) -> tuple[Group, Group] | None:
        """The two groups to join next; None when no clause reads two of them.

        That is the pair of which the least share of states is left: only pairs that decide a node or a clause can lose
        any. Where none loses much, it is a pair of the clause that takes the least to decide.
        """
        touched = [list(islice((g for g in groups if g.dims & of), 3)) for of in self.supports]
        pairs = {found[0].dims | found[1].dims: (found[0], found[1]) for found in touched if len(found) == 2}
        for dims, (a, b) in pairs.items():
            if dims not in tried:
                tried[dims] = self._tried(a, b)

        def cost(pair: tuple[Group, Group]) -> tuple[float, int]:
            a, b = pair
            return tried.get(a.dims | b.dims, (1.0, None))[0], len(a) * len(b)

        most = max(_EASY, _HARDER * min((len(a) * len(b) for a, b in pairs.values()), default=0))
        best = min((p for p in pairs.values() if len(p[0]) * len(p[1]) <= most), key=cost, default=None)
        if best is not None and cost(best)[0] <= _GAIN:
            return best
        read = ([g for g in groups if g.dims & of] for _, of in self.clauses)
        least = min((found for found in read if len(found) > 1), key=_product, default=None)
        return None if least is None else min(combinations(sorted(least, key=len)[:_FEW], 2), key=cost)

    def _tried(self, a: Group, b: Group) -> tuple[float, Group | None]:
        """Which share of their pairs is left as states when two groups are joined, and the joint group if it is had."""
        work = len(a) * len(b)
        if work <= _TRIAL:
            group = self.join(a, b)
            return len(group) / work, group
        rng = np.random.default_rng(0)
        rows_a, rows_b = (rng.choice(n, min(n, _SAMPLE), replace=False) for n in (len(a), len(b)))
        frontier = self.frontier(a.dims | b.dims)
        (crossing,) = self.crossed(a, b, frontier, rows_a, rows_b)
        key, _ = packed(columns_of(a, b, crossing, frontier).values(), len(crossing.a))
        _, times = np.unique(key, return_counts=True)
        once = int(np.count_nonzero(times == 1))
        # The estimator of Charikar et al. for the number of distinct values behind a sample.
        share = len(rows_a) * len(rows_b) / work
        states = max(once, 1) / share**0.5 + len(times) - once
        return states / work, None

    # -- what is decided, and what is still read -----------------------------------------------------

    def frontier(self, dims: int) -> list[int]:
        """The nodes over ``dims`` that clauses read which other dimensions decide too."""
        stack = [arg for clause, of in self.clauses if of & dims and of & ~dims for arg in clause.args]
        seen: set[int] = set()
        found = []
        while stack:
            node = stack.pop()
            support = self.support[node]
            if node in seen or not support & dims:
                continue
            seen.add(node)
            if support & ~dims:
                stack.extend(self.graph[node].args)
            else:
                found.append(node)
        return sorted(found)

    def _decided(self, dims: int, *parts: int) -> tuple[list[int], list[Clause]]:
        """The nodes and clauses that ``dims`` decide and no one of ``parts`` does."""

        def new(of: int) -> bool:
            return bool(of) and not of & ~dims and all(of & ~part for part in parts)

        return [n for n in self.nodes if new(self.support[n])], [
            clause for clause, of in self.clauses if new(of)
        ]

    # -- groups -----------------------------------------------------------------------------------

    def leaf(self, at: int) -> Group:
        """One dimension by itself."""
        nodes, decided = self._decided(1 << at)
        frontier = self.frontier(1 << at)
        axis = _array(self.axes[at])
        if frontier and len(axis) > 2 * _most(frontier):
            raise TooManyStates(1 << at)
        kept = [axis[:0]]
        columns: dict[int, list[Bulk]] = {node: [] for node in frontier}
        for start in range(0, len(axis), _CHUNK):
            digits = axis[start : start + _CHUNK]
            values = self.evaluator.evaluate({self.names[at]: digits}, nodes, dict(self.fixed))
            alive = np.ones(len(digits), dtype=np.bool_)
            for clause in decided:
                alive &= holds(clause, values)
            rows = np.flatnonzero(alive)
            kept.append(digits[rows])
            for node in frontier:
                columns[node].append(picked(values[node], rows))
        digits = np.concatenate(kept)
        whole = {node: joined(parts) for node, parts in columns.items()}
        states = grouped(*packed(whole.values(), len(digits)), np.ones(len(digits), np.int64), len(digits))
        if len(states.rows) > _most(frontier):
            raise TooManyStates(1 << at)
        order = np.argsort(states.place, kind="stable")
        starts = np.concatenate([[0], np.cumsum(states.ways)]).astype(np.intp)
        return Group(
            1 << at,
            {node: picked(column, states.rows) for node, column in whole.items()},
            states.ways,
            len(digits),
            Leaf(at, digits[order], starts),
        )

    def join(self, a: Group, b: Group) -> Group:
        """Two groups as one."""
        dims = a.dims | b.dims
        self.budget.spend(len(a) * len(b), self.name(dims))
        frontier = self.frontier(dims)
        most = _most(frontier)
        total = a.total * b.total
        columns: dict[int, list[Bulk]] = {node: [] for node in frontier}
        weights: list[Weights] = []

        def condense(whole: Mapping[int, Bulk], found: Weights) -> None:
            """Keeps each state once."""
            states = grouped(*packed(whole.values(), len(found)), found, total)
            weights.append(states.ways)
            for node, column in whole.items():
                columns[node].append(picked(column, states.rows))

        def merge() -> None:
            """Makes what was kept of several chunks one."""
            whole = {node: joined(columns[node]) for node in frontier}
            found: Weights = np.concatenate([np.zeros(0, np.int64), *weights])
            weights.clear()
            for parts in columns.values():
                parts.clear()
            condense(whole, found)
            if len(weights[0]) > most:
                raise TooManyStates(dims)

        for crossing in self.crossed(a, b, frontier):
            condense(
                columns_of(a, b, crossing, frontier),
                ways(a.weights[crossing.a], b.weights[crossing.b], total),
            )
            if sum(map(len, weights)) > 2 * most:
                merge()
            self.budget.report(int(crossing.upto) * len(b), len(a) * len(b))
        if len(weights) > 1 or len(weights[0]) > most:
            merge()
        return Group(
            dims, {n: columns[n][0] for n in frontier}, weights[0], total_of(weights[0], total), (a, b)
        )

    def crossed(
        self,
        a: Group,
        b: Group,
        frontier: Sequence[int],
        rows_a: NDArray[np.intp] | None = None,
        rows_b: NDArray[np.intp] | None = None,
    ) -> Iterator[Crossing]:
        """The pairs of states (of some rows, default all) that no decided clause rejects, in chunks; at least one."""
        rows_a = np.arange(len(a)) if rows_a is None else rows_a
        rows_b = np.arange(len(b)) if rows_b is None else rows_b
        nodes, decided = self._decided(a.dims | b.dims, a.dims, b.dims)
        fresh = [n for n in frontier if n not in a.columns and n not in b.columns]
        right = {n: picked(column, rows_b) for n, column in b.columns.items()}
        step = max(1, _CHUNK // max(len(rows_b), 1))
        for start in range(0, max(len(rows_a), 1), step):
            rows = rows_a[start : start + step]
            known = dict(self.fixed) | right
            for n, column in a.columns.items():
                values, undefined = picked(column, rows)
                known[n] = Bulk(values[:, None], None if undefined is None else undefined[:, None])
            found = self.evaluator.evaluate({}, nodes, known)
            shape = (len(rows), len(rows_b))
            alive = np.ones(shape, dtype=np.bool_)
            for clause in decided:
                alive &= holds(clause, found)
            places = np.nonzero(alive)
            fresh_values = {n: _at(found[n], shape, places) for n in fresh}
            yield Crossing(rows[places[0]], rows_b[places[1]], fresh_values, start + len(rows))


def _most(frontier: Sequence[int]) -> int:
    """How many states of so many columns are held at once."""
    return ROWS * _COLUMNS // max(len(frontier), _COLUMNS)


def _product(groups: Iterable[Group]) -> int:
    return math.prod(map(len, groups))


def _array(axis: Axis) -> NDArray[np.intp]:
    if isinstance(axis, range):
        return np.arange(axis.start, axis.stop, axis.step, dtype=np.intp)
    return axis


def _union(sets: Iterable[int]) -> int:
    union = 0
    for one in sets:
        union |= one
    return union


def columns_of(a: Group, b: Group, crossing: Crossing, frontier: Sequence[int]) -> dict[int, Bulk]:
    """The columns of joint states."""
    found: dict[int, Bulk] = {}
    for node in frontier:
        if node in a.columns:
            found[node] = picked(a.columns[node], crossing.a)
        elif node in b.columns:
            found[node] = picked(b.columns[node], crossing.b)
        else:
            found[node] = crossing.values[node]
    return found


def _at(bulk: Bulk, shape: tuple[int, int], places: tuple[NDArray[np.intp], ...]) -> Bulk:
    """The values at places of a block that a column broadcasts to."""
    values, bad = (None if part is None else np.broadcast_to(part, shape)[places] for part in bulk)
    assert values is not None
    return Bulk(values, bad)
