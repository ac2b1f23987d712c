"""Which vectors the front found so far discards, decided by one comparison in the innermost loop.

The front is laid out over a grid of the values of all objectives but one. A vector's place on the grid is looked up
where those objectives are known; the grid says below which cost the last objective must be for the vector to matter.
Where a front has more values than the grid has lines, guards move to the next line above: less is discarded, never more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.compiled.loops import Loops

__all__ = ["HELPERS", "Grid", "last_objective", "look"]

CELLS = 2**16
"""Most places of a grid."""

HELPERS = """
define internal i64 @rank(ptr %lines, i64 %count, double %x) alwaysinline {
entry:
  %all = add i64 %count, 1
  br label %head
head:
  %base = phi i64 [ 0, %entry ], [ %base.next, %body ]
  %n = phi i64 [ %all, %entry ], [ %n.next, %body ]
  %more = icmp ugt i64 %n, 1
  br i1 %more, label %body, label %done
body:
  %half = lshr i64 %n, 1
  %middle = add i64 %base, %half
  %where = getelementptr double, ptr %lines, i64 %middle
  %line = load double, ptr %where
  %reached = fcmp ole double %line, %x
  %base.next = select i1 %reached, i64 %middle, i64 %base
  %n.next = sub i64 %n, %half
  br label %head
done:
  ret i64 %base
}
define internal double @above(double %x) alwaysinline {
  %bits = bitcast double %x to i64
  %zero = fcmp oeq double %x, 0.0
  %positive = fcmp ogt double %x, 0.0
  %step = select i1 %positive, i64 1, i64 -1
  %moved = add i64 %bits, %step
  %next = select i1 %zero, i64 1, i64 %moved
  %y = bitcast i64 %next to double
  ret double %y
}
"""
"""``rank``: how many of ``count`` ascending lines, which start at index 1, are at most ``x``. ``above``: the number after
a finite ``x``."""


def last_objective(levels: Sequence[int]) -> int:
    """The objective that is compared last: the one known innermost."""
    return max(range(len(levels)), key=lambda at: levels[at])


class Grid(NamedTuple):
    """A front over a grid of the objectives other than ``last``.

    ``lines`` per axis: NaN, then ascending values. Per place, in C order: ``limits``, which the last objective of a
    vector between lines must be below; ``exact``, the same for a vector exactly on its lines; ``costs`` (NaN: none), the
    last objective of the front's vector there.
    """

    lines: list[NDArray[np.float64]]
    limits: NDArray[np.float64]
    exact: NDArray[np.float64]
    costs: NDArray[np.float64]

    @classmethod
    def of(cls, front: NDArray[np.float64], last: int, cells: int = CELLS) -> Grid:
        """The grid of a front of distinct vectors (n, k), all finite, none dominated."""
        others = [at for at in range(front.shape[1]) if at != last]
        lines = _lines([front[:, at] for at in others], cells)
        shape = tuple(len(own) for own in lines) or (1,)
        places = tuple(
            np.searchsorted(own[1:], front[:, at]) + 1 for own, at in zip(lines, others, strict=True)
        ) or (np.zeros(len(front), dtype=np.intp),)
        on_lines = np.ones(len(front), dtype=np.bool_)
        for own, at, place in zip(lines, others, places, strict=False):
            on_lines &= own[place] == front[:, at]
        own_cost = front[:, last]
        costs, limits, between = np.full(shape, np.nan), np.full(shape, np.inf), np.full(shape, np.inf)
        costs[tuple(p[on_lines] for p in places)] = own_cost[on_lines]
        np.minimum.at(limits, places, own_cost)
        np.minimum.at(between, tuple(p[~on_lines] for p in places), own_cost[~on_lines])
        for axis in range(len(lines)):
            np.minimum.accumulate(limits, axis=axis, out=limits)
        # On its lines, a vector is discarded by what lies strictly before it, and by a lower cost in the same place.
        exact = np.fmin(between, np.nextafter(costs, np.inf))
        for axis in range(len(lines)):
            into, of = [slice(None)] * len(shape), [slice(None)] * len(shape)
            into[axis], of[axis] = slice(1, None), slice(None, -1)
            exact[tuple(into)] = np.minimum(exact[tuple(into)], limits[tuple(of)])
        return cls(lines, limits, exact, costs)

    def vector(self, place: int, last: int) -> list[float]:
        """The front's vector at a place."""
        places = np.unravel_index(place, self.costs.shape)
        found = [float(own[int(at)]) for own, at in zip(self.lines, places, strict=False)]
        found.insert(last, float(self.costs.reshape(-1)[place]))
        return found


def _lines(columns: list[NDArray[np.float64]], cells: int) -> list[NDArray[np.float64]]:
    """The lines of each axis: all values of those that have few, evenly drawn ones of the others."""
    values = [np.unique(column) for column in columns]
    order = sorted(range(len(values)), key=lambda at: len(values[at]))
    for done, at in enumerate(order):
        room = max(2, int(cells ** (1.0 / (len(order) - done))) - 1)
        own = values[at]
        if len(own) > room:
            own = own[np.linspace(0, len(own) - 1, room).round().astype(np.intp)]
        values[at] = np.concatenate([[np.nan], own])
        cells = max(2, cells // len(values[at]))
    return values


def look(loops: Loops, costs: Sequence[str], levels: Sequence[int], end: int, *, ties: bool) -> None:
    """Hand over a feasible design unless a guard discards it, or it has a guard's very vector and is counted there.

    Args:
        costs: the objectives to minimize, known at ``levels``, which are not outside ``end``.
        ties: whether designs with a guard's vector are handed over too.
    """
    coder, last, depth = loops.coder, last_objective(levels), loops.depth
    others = [at for at in range(len(costs)) if at != last]
    level = max([end, *(levels[at] for at in others)])
    place, exact = "0", "true"
    for axis, at in enumerate(others):
        lines = loops.read(level, f"guard.lines{axis}", "ptr")
        count = loops.read(level, f"guard.count{axis}")
        rank = coder.put(level, f"call i64 @rank(ptr {lines}, i64 {count}, double {costs[at]})")
        line = coder.put(level, f"load double, ptr {loops.element(level, lines, rank, 'double')}")
        same = coder.put(level, f"fcmp oeq double {line}, {costs[at]}")
        exact = coder.put(level, f"and i1 {exact}, {same}")
        width = coder.put(level, f"add i64 {count}, 1")
        place = coder.put(level, f"add i64 {coder.put(level, f'mul i64 {place}, {width}')}, {rank}")
    between, on_lines = loops.read(level, "guard.limits", "ptr"), loops.read(level, "guard.exact", "ptr")
    table = coder.put(level, f"select i1 {exact}, ptr {on_lines}, ptr {between}")
    limit = coder.put(level, f"load double, ptr {loops.element(level, table, place, 'double')}")
    below = loops.variable("below", "double")
    coder.lines[level].append(f"store double {limit}, ptr {below}")
    position = f"%pos{depth}"
    matters = coder.put(
        depth, f"fcmp olt double {costs[last]}, {coder.put(depth, f'load double, ptr {below}')}"
    )
    yes, no = loops.branch(depth, matters, likely=False)
    loops.label(depth, yes)
    if not ties:
        known = loops.element(depth, loops.read(depth, "guard.costs", "ptr"), place, "double")
        same = coder.put(
            depth, f"fcmp oeq double {costs[last]}, {coder.put(depth, f'load double, ptr {known}')}"
        )
        tie, new = loops.branch(depth, coder.put(depth, f"and i1 {exact}, {same}"))
        loops.label(depth, tie)
        counts = loops.element(depth, loops.read(depth, "tie.counts", "ptr"), place, "i64")
        firsts = loops.element(depth, loops.read(depth, "tie.firsts", "ptr"), place, "i64")
        more = coder.put(depth, f"add i64 {coder.put(depth, f'load i64, ptr {counts}')}, 1")
        was = coder.put(depth, f"load i64, ptr {firsts}")
        first = coder.put(depth, f"call i64 @llvm.smin.i64(i64 {was}, i64 {position})")
        coder.lines[depth] += [f"store i64 {more}, ptr {counts}", f"store i64 {first}, ptr {firsts}"]
        loops.goto(depth, no)
        loops.label(depth, new)
    # The other objectives are the same until the grid is looked at again: nothing worse can matter.
    just_above = coder.put(depth, f"call double @above(double {costs[last]})")
    coder.lines[depth].append(f"store double {just_above}, ptr {below}")
    loops.emit(depth, "front", [("i64", position), *(("double", cost) for cost in costs)])
    loops.goto(depth, no)
    loops.label(depth, no)
