"""From the number of a legal design to the design: back through the joins that counted it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bulk import Bulk
from dse.evaluation.counting.groups import Group, Leaf, Weights, grouped, packed, picked, ways
from dse.evaluation.counting.joining import Joining, columns_of

__all__ = ["Unranking"]

_PAIRS = 2**18  # pairs of states up to which a join is kept whole
_REMEMBERED = 2**22  # pairs and states that are kept for the next design


class _Whole(NamedTuple):
    """All pairs of states of a join, those of its first state first, with the ways up to and with each.

    ``before`` is the ways of all states before each state.
    """

    a: NDArray[np.intp]
    b: NDArray[np.intp]
    until: Weights
    before: Weights


class _Choices(NamedTuple):
    """What leads to one state of a join: states of the first group with the ways up to and with each, and those of
    the second that come into question.
    """

    a: NDArray[np.intp]
    until: Weights
    of_b: NDArray[np.intp]


class Unranking:
    """Finds the designs behind the states of one box."""

    def __init__(self, joining: Joining) -> None:
        self.joining = joining
        self._wholes: dict[int, _Whole] = {}
        self._choices: dict[tuple[int, int], _Choices] = {}
        self._size = 0

    def fill(
        self,
        designs: NDArray[np.intp],
        at: NDArray[np.intp],
        group: Group,
        rows: NDArray[np.intp],
        ranks: NDArray[Any],
    ) -> None:
        """Write the value numbers of the group's dimensions into the designs ``at``.

        Args:
            designs: value numbers (n, dimensions), written in place.
            at: which of them.
            group: the group, ``rows`` its state in each and ``ranks`` which of that state's ways.
            rows: see ``group``.
            ranks: see ``group``.
        """
        source = group.source
        if isinstance(source, Leaf):
            designs[at, source.dimension] = source.digits[source.starts[rows] + ranks.astype(np.intp)]
            return
        a, b = source
        if len(a) * len(b) <= _PAIRS:
            whole = self._whole(group, a, b)
            place, rest = _placed(whole.until, ranks + whole.before[rows])
            first, second = whole.a[place], whole.b[place]
        else:
            first, second, rest = np.zeros_like(rows), np.zeros_like(rows), ranks.copy()
            for row, mine in _split(rows):
                choices = self._of_row(group, a, b, row)
                place, left = _placed(choices.until, ranks[mine])
                for chosen, some in _split(place):
                    one = choices.a[chosen : chosen + 1]
                    _, others, found = next(self._pairs(group, a, b, row, (one, choices.of_b)))
                    which, rest[mine[some]] = _placed(np.cumsum(found), left[some])
                    first[mine[some]], second[mine[some]] = one, others[which]
        weights = b.weights[second]
        self.fill(designs, at, a, first, rest // weights)
        self.fill(designs, at, b, second, rest % weights)

    def _whole(self, group: Group, a: Group, b: Group) -> _Whole:
        """All of a join; its only chunk gives the states in the order in which the join had them."""
        known = self._wholes.get(group.dims)
        if known is None:
            frontier = list(group.columns)
            (crossing,) = self.joining.crossed(a, b, frontier)
            found = ways(a.weights[crossing.a], b.weights[crossing.b], group.total)
            columns = columns_of(a, b, crossing, frontier)
            states = grouped(*packed(columns.values(), len(found)), found, group.total)
            order = np.argsort(states.place, kind="stable")
            before = np.cumsum(states.ways) - states.ways
            known = _Whole(crossing.a[order], crossing.b[order], np.cumsum(found[order]), before)
            self._remember(len(order))
            self._wholes[group.dims] = known
        return known

    def _of_row(self, group: Group, a: Group, b: Group, row: int) -> _Choices:
        known = self._choices.get((group.dims, row))
        if known is None:
            of = (_agreeing(a, group, row), _agreeing(b, group, row))
            sums: Weights = np.zeros(len(a), dtype=group.weights.dtype)
            for first, _, found in self._pairs(group, a, b, row, of):
                np.add.at(sums, first, found)
            leading = np.flatnonzero(sums)
            known = _Choices(leading, np.cumsum(sums[leading]), of[1])
            self._remember(len(leading) + len(of[1]))
            self._choices[group.dims, row] = known
        return known

    def _remember(self, size: int) -> None:
        """Make room for ``size`` more pairs and states."""
        self._size += size
        if self._size > _REMEMBERED:
            self._wholes.clear()
            self._choices.clear()
            self._size = size

    def _pairs(
        self, group: Group, a: Group, b: Group, row: int, of: tuple[NDArray[np.intp], NDArray[np.intp]]
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], Weights]]:
        """Pairs of states, of those in question, that become ``row``, with their ways; in chunks, at least one."""
        wanted = {n: c for n, c in group.columns.items() if n not in a.columns and n not in b.columns}
        for crossing in self.joining.crossed(a, b, list(group.columns), *of):
            same = np.ones(len(crossing.a), dtype=np.bool_)
            for node, column in wanted.items():
                same &= _same(crossing.values[node], column, row)
            first, second = crossing.a[same], crossing.b[same]
            yield first, second, ways(a.weights[first], b.weights[second], group.total)


def _placed(until: Weights, ranks: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Between which of the ascending sums each rank lies, and by how much it passes the one before."""
    place = np.searchsorted(until, ranks, side="right")
    return place, ranks - np.where(place > 0, until[place - 1], 0)


def _agreeing(part: Group, joint: Group, row: int) -> NDArray[np.intp]:
    """The states of a part that agree with a joint state in the columns that it kept."""
    same = np.ones(len(part), dtype=np.bool_)
    for node, column in joint.columns.items():
        if node in part.columns:
            same &= _same(part.columns[node], column, row)
    return np.flatnonzero(same)


def _same(column: Bulk, of: Bulk, row: int) -> NDArray[np.bool_]:
    """Where a column is, to the bit, what another is in ``row``."""
    one = picked(of, np.array([row]))
    same: NDArray[np.bool_] = _bits(column.values) == _bits(one.values)
    if column.undefined is not None or one.undefined is not None:
        mine = 0 if column.undefined is None else column.undefined
        same = same & (mine == (0 if one.undefined is None else one.undefined))
    return same


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(values).view(np.int64) if values.dtype == np.float64 else values


def _split(keys: NDArray[np.intp]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Each different key, and where it stands."""
    if len(keys) == 1:
        yield int(keys[0]), np.zeros(1, dtype=np.intp)
        return
    order = np.argsort(keys, kind="stable")
    cuts = np.flatnonzero(np.diff(keys[order])) + 1
    for places in np.split(order, cuts):
        yield int(keys[places[0]]), places
