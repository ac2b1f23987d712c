"""How a loop looks at the grid of guards, hands over what they do not discard, and lets that discard more."""

from __future__ import annotations

from collections.abc import Sequence

from dse.evaluation.compiled.guards import last_objective
from dse.evaluation.compiled.loops import Loops

__all__ = ["look"]


def look(loops: Loops, costs: Sequence[str], levels: Sequence[int], end: int, *, ties: bool) -> None:
    """Hand over a feasible design unless a guard discards it, or it has a guard's very vector and is counted there.

    A full buffer may bring another grid before the next look; what was looked up is of no use in that one.

    Args:
        costs: the objectives to minimize, known at ``levels``, which are not outside ``end``.
        ties: whether designs with a guard's vector are handed over too.
    """
    last = last_objective(levels)
    others = [at for at in range(len(costs)) if at != last]
    level = max([end, *(levels[at] for at in others)])
    _Look(loops, level, [costs[at] for at in others], costs[last]).hand_over(costs, ties=ties)


class _Axis:
    """Where an objective stands on its axis: ``rank``, and whether exactly on that line (``same``)."""

    def __init__(self, loops: Loops, axis: int, cost: str, level: int) -> None:
        coder = loops.coder
        lines = loops.read(level, f"guard.lines{axis}", "ptr")
        buckets = loops.read(level, f"guard.buckets{axis}", "ptr")
        first, shift = loops.read(level, f"guard.first{axis}"), loops.read(level, f"guard.shift{axis}")
        self.width = loops.read(level, f"guard.width{axis}")
        self.rank = coder.put(
            level, f"call i64 @rank(ptr {lines}, ptr {buckets}, i64 {first}, i64 {shift}, double {cost})"
        )
        line = coder.put(level, f"load double, ptr {loops.element(level, lines, self.rank, 'double')}")
        self.same = coder.put(level, f"fcmp oeq double {line}, {cost}")

    def start(self, loops: Loops) -> str:
        """The first line that is not before the objective."""
        step = loops.coder.put(loops.depth, f"select i1 {self.same}, i64 0, i64 1")
        return loops.coder.put(loops.depth, f"add i64 {self.rank}, {step}")


class _Look:
    """One look at the grid, where all objectives but the last are known: at ``level``; then a test in each turn inside.

    ``below`` is a variable: what the last objective must be below.
    """

    def __init__(self, loops: Loops, level: int, others: Sequence[str], cost: str) -> None:
        coder = loops.coder
        self.loops = loops
        self.cost = cost
        self.epoch = loops.read(level, "guard.epoch")
        self.axes = [_Axis(loops, axis, other, level) for axis, other in enumerate(others)]
        self.place, self.exact = "0", "true"
        for axis in self.axes:
            row = coder.put(level, f"mul i64 {self.place}, {axis.width}")
            self.place = coder.put(level, f"add i64 {row}, {axis.rank}")
            self.exact = coder.put(level, f"and i1 {self.exact}, {axis.same}")
        between, on_lines = loops.read(level, "guard.limits", "ptr"), loops.read(level, "guard.exact", "ptr")
        table = coder.put(level, f"select i1 {self.exact}, ptr {on_lines}, ptr {between}")
        where = loops.element(level, table, self.place, "double")
        limit = coder.put(level, f"load atomic double, ptr {where} unordered, align 8")
        self.below = loops.variable("below", "double")
        coder.lines[level].append(f"store double {limit}, ptr {self.below}")

    def hand_over(self, costs: Sequence[str], *, ties: bool) -> None:
        """Test a design, innermost."""
        loops, coder, depth = self.loops, self.loops.coder, self.loops.depth
        limit = coder.put(depth, f"load double, ptr {self.below}")
        matters, out = loops.branch(
            depth, coder.put(depth, f"fcmp olt double {self.cost}, {limit}"), likely=False
        )
        loops.label(depth, matters)
        above = coder.put(depth, f"call double @above(double {self.cost})")
        coder.lines[depth].append(f"store double {above}, ptr {self.below}")  # until the next look
        same_grid = coder.put(depth, f"icmp eq i64 {loops.read(depth, 'guard.epoch')}, {self.epoch}")
        valid, hand_over = loops.branch(depth, same_grid)
        loops.label(depth, valid)
        if not ties:
            self._count_tie(out)
        self._discard(above)
        loops.goto(depth, hand_over)
        loops.label(depth, hand_over)
        loops.emit(depth, "front", [("i64", f"%pos{depth}"), *(("double", cost) for cost in costs)])
        loops.goto(depth, out)
        loops.label(depth, out)

    def _count_tie(self, out: str) -> None:
        """Count a design that has a guard's very vector, and note the first of them."""
        loops, coder, depth = self.loops, self.loops.coder, self.loops.depth
        known = loops.element(depth, loops.read(depth, "guard.costs", "ptr"), self.place, "double")
        known_cost = coder.put(depth, f"load double, ptr {known}")
        same = coder.put(depth, f"fcmp oeq double {self.cost}, {known_cost}")
        tie, new = loops.branch(depth, coder.put(depth, f"and i1 {self.exact}, {same}"))
        loops.label(depth, tie)
        counts = loops.element(depth, loops.read(depth, "tie.counts", "ptr"), self.place, "i64")
        firsts = loops.element(depth, loops.read(depth, "tie.firsts", "ptr"), self.place, "i64")
        more = coder.put(depth, f"add i64 {coder.put(depth, f'load i64, ptr {counts}')}, 1")
        was = coder.put(depth, f"load i64, ptr {firsts}")
        first = coder.put(depth, f"call i64 @llvm.smin.i64(i64 {was}, i64 %pos{depth})")
        coder.lines[depth] += [f"store i64 {more}, ptr {counts}", f"store i64 {first}, ptr {firsts}"]
        loops.goto(depth, out)
        loops.label(depth, new)

    def _discard(self, above: str) -> None:
        """From now on discard what this design dominates: what is beyond it on every axis.

        On a line that it is exactly on, that line is beyond it too, but for its own place, where equals stay.
        """
        loops, coder, depth = self.loops, self.loops.coder, self.loops.depth
        limits, on_lines = (loops.read(depth, f"guard.{name}", "ptr") for name in ("limits", "exact"))
        own = loops.element(depth, on_lines, self.place, "double")
        yes, no = loops.branch(depth, self.exact)
        loops.label(depth, yes)
        coder.lines[depth].append(f"store atomic double {above}, ptr {own} unordered, align 8")
        loops.goto(depth, no)
        loops.label(depth, no)
        if not self.axes:
            return
        column, same = self.axes[-1], self.axes[-1].same
        row, rows, begun = "0", "1", "0"
        if len(self.axes) > 1:
            row, rows = self.axes[-2].start(loops), self.axes[-2].width
            same = coder.put(depth, f"and i1 {same}, {self.axes[-2].same}")
        for axis in self.axes[:-2]:  # of more axes, only the first line beyond it on each
            at = axis.start(loops)
            edge = coder.put(depth, f"icmp slt i64 {at}, {axis.width}")
            rows = coder.put(depth, f"select i1 {edge}, i64 {rows}, i64 0")
            begun = coder.put(depth, f"add i64 {coder.put(depth, f'mul i64 {begun}, {axis.width}')}, {at}")
        if len(self.axes) > 2:
            size = coder.put(depth, f"mul i64 {self.axes[-2].width}, {column.width}")
            skipped = coder.put(depth, f"mul i64 {begun}, {size}")
            limits, on_lines = (loops.element(depth, base, skipped, "double") for base in (limits, on_lines))
        start = column.start(loops)
        first = coder.put(depth, f"add i64 {start}, {coder.put(depth, f'zext i1 {same} to i64')}")
        coder.lines[depth].append(
            f"call void @lower(ptr {limits}, ptr {on_lines}, i64 {row}, i64 {rows}, i64 {column.width}, "
            f"i64 {first}, i64 {start}, double {self.cost})"
        )
