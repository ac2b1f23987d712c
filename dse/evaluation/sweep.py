"""Sweeping a team's part of the space: every legal design is evaluated, piece by piece, in no order of importance.

Rows, the combinations of the dimensions that conditions depend on, are found legal first, by masks over few axes.
Only rows that are left meet the cost model, together with all combinations of the inner dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.blocks import BLOCK, Blocks, allowed_masks, count_of, members
from dse.evaluation.bulk import Bulk
from dse.evaluation.grid import Grid, Rows
from dse.evaluation.hull import Hull
from dse.evaluation.plan import Plan, plan_of
from dse.evaluation.tape import Tape
from dse.evaluation.verdict import Judge, check_enumerable, condition_holds
from dse.problem import Problem, Team

__all__ = ["BATCH", "Sweep"]

BATCH = 65_536
"""Designs that are evaluated at once: their values stay within a processor's cache."""

_PIECE = 1_000_000  # designs evaluated in a piece, more or less
_JOINED = 64  # blocks of rows in a piece, at most
_SPARSE = 16  # below one legal design in this many, each is evaluated alone

Mask = NDArray[np.bool_]


class Sweep:
    """The pieces of a team's part of the space. ``len(sweep)`` of them.

    Args:
        batch: how many designs are evaluated at once.
        block: how many rows are looked at at once.
        piece: how many of them make a piece, more or less.
        plan: default: the cheapest.

    Raises:
        InputError: a dimension is continuous.
    """

    def __init__(
        self,
        problem: Problem,
        team: Team,
        *,
        batch: int = BATCH,
        block: int = BLOCK,
        piece: int = _PIECE,
        plan: Plan | None = None,
    ) -> None:
        check_enumerable(problem)
        self.problem = problem
        self.team = team
        self.hull = Hull(problem, team)
        self.judge = Judge(problem)
        self.plan = plan = plan or plan_of(problem, team, self.hull, batch=batch)
        names, sizes = self.hull.names, self.hull.sizes
        self.inner = 1
        for d in plan.inner:
            self.inner *= sizes[d]
        own = max(1, min(block, int(piece / (plan.kept * self.inner))))
        self.rows = Blocks(problem, team, own, dimensions=plan.rows)
        self.joined = max(1, min(_JOINED, int(piece / (own * plan.kept * self.inner))))
        self.capacity = min(max(1, batch // self.inner), max(1, self.rows.total))
        self.batch = batch
        strides = [1] * len(sizes)
        for d in range(len(sizes) - 2, -1, -1):
            strides[d] = strides[d + 1] * sizes[d + 1]
        self._strides = [strides[d] for d in plan.rows]
        self._spread = {
            names[d]: self.hull.axes[d] for d in range(len(sizes)) if d in plan.inner or sizes[d] == 1
        }
        wide = [d for d in plan.inner if sizes[d] > 1]
        self.offsets = np.zeros([sizes[d] for d in wide], dtype=np.int64)
        for at, d in enumerate(wide):
            steps = np.arange(sizes[d], dtype=np.int64) * strides[d]
            self.offsets += steps.reshape(-1, *(1,) * (len(wide) - at - 1))
        self._row_names = [names[d] for d in plan.rows if sizes[d] > 1]
        self._tape = Tape(problem, self.judge.roots, self._row_names, self._spread, self.capacity)
        self._left = [at for at, decided in enumerate(self.rows.decided) if not decided]
        self.split = bool(self._left) or not self.rows.membership
        if self.split:
            self._split()

    def _split(self) -> None:
        """What is needed where rows do not decide every condition."""
        problem, names = self.problem, self.hull.names
        conditions = [problem.rules[at].check for at in self._left]
        if not self.rows.membership:
            conditions += [conjunct.node for box in self.team.boxes for conjunct in box.where]
        self._conditions = tuple(dict.fromkeys(conditions))
        self._checks = Tape(problem, self._conditions, self._row_names, self._spread, self.capacity)
        self._alone = Tape(problem, self.judge.roots, names, {}, min(self.batch, self.hull.total))
        self._allowed = [allowed_masks(problem, box, self.hull) for box in self.team.boxes]

    def __len__(self) -> int:
        return math.ceil(len(self.rows) / self.joined)

    def swept(self, pieces: int) -> tuple[tuple[int, ...], int]:
        """Which designs the first ``pieces`` pieces hold: the first so many combinations of these dimensions."""
        blocks = self.rows
        done = min(pieces * self.joined, len(blocks))
        prefix, at = divmod(done, blocks.slices)
        combinations = prefix * blocks.sizes[blocks.split] + min(
            at * blocks.slice, blocks.sizes[blocks.split]
        )
        return self.plan.rows[: blocks.split + 1], combinations

    def run(self, piece: int, take: Callable[[Grid], None]) -> tuple[int, list[int]]:
        """Evaluate the legal designs of a piece.

        Args:
            take: is handed them, grid after grid; a grid is to be forgotten afterwards.

        Returns:
            How many of the piece's designs are outside the team, and how many others break which rule first.
        """
        count = _Counts(len(self.problem.rules))
        waiting: list[NDArray[np.int64]] = []
        lone: list[NDArray[np.int64]] = []
        held = 0
        last = min((piece + 1) * self.joined, len(self.rows))
        for number in range(piece * self.joined, last):
            judged = self.rows.judge(number)
            count.outside += judged.outside * self.inner
            for at, lost in enumerate(judged.illegal.tolist()):
                count.illegal[at] += lost * self.inner
            for at, rows in judged.doubtful:
                for start in range(0, len(rows), self.capacity):
                    self._settle(rows[start : start + self.capacity], at, count)
            if len(judged.positions):
                waiting.append(judged.positions)
                held += len(judged.positions)
            if held and (held >= self.capacity or number == last - 1):
                rows = waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
                stop = held if number == last - 1 else held - held % self.capacity
                for start in range(0, stop, self.capacity):
                    self._evaluate(rows[start : min(start + self.capacity, stop)], take, count, lone)
                waiting, held = [rows[stop:]], held - stop
        if lone:
            self._evaluate_alone(np.concatenate(lone), take)
        return count.outside, count.illegal

    # -- rows -------------------------------------------------------------------------------------

    def _base(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], dict[str, NDArray[np.intp]]]:
        """What rows add to positions, and their value numbers."""
        base = np.zeros(len(rows), dtype=np.int64)
        digits = {}
        places = self.rows.places(rows)
        for name, axis, place, stride in zip(
            self.rows.names, self.rows.axes, places, self._strides, strict=True
        ):
            base += place * stride
            digits[name] = place if _identity(axis) else axis[place]
        return base, digits

    def _evaluate(
        self,
        rows: NDArray[np.int64],
        take: Callable[[Grid], None],
        count: _Counts,
        lone: list[NDArray[np.int64]],
    ) -> None:
        """Hand over the grid of some rows; where few of its designs are legal, list those in ``lone``."""
        base, digits = self._base(rows)
        legal: Mask | None = None
        if self.split:
            size = len(rows) * self.inner
            legal = self._legal(digits, len(rows), len(self.problem.rules), count)
            left = count_of(legal, size)
            if not left:
                return
            if left * _SPARSE < size:
                at = np.flatnonzero(np.broadcast_to(legal, (*self.offsets.shape, len(rows))))
                inner = at // len(rows)
                lone.append(base[at - inner * len(rows)] + self.offsets.reshape(-1)[inner])
                if sum(map(len, lone)) >= self.batch:
                    self._evaluate_alone(np.concatenate(lone), take)
                    lone.clear()
                return
            if left == size:
                legal = None
        self._tape.run(digits, len(rows))
        take(Grid(self.judge, self._tape, Rows(base, digits), self.offsets, legal))

    def _evaluate_alone(self, positions: NDArray[np.int64], take: Callable[[Grid], None]) -> None:
        step = self._alone.capacity
        for start in range(0, len(positions), step):
            own = positions[start : start + step]
            digits = self.hull.digit_arrays(own)
            self._alone.run(digits, len(own))
            take(Grid(self.judge, self._alone, Rows(own, digits), np.zeros((), dtype=np.int64)))

    # -- conditions that rows do not decide -------------------------------------------------------

    def _settle(self, rows: NDArray[np.int64], rule: int, count: _Counts) -> None:
        """Account for rows that break a rule, some of whose designs may be rejected by an earlier condition."""
        _, digits = self._base(rows)
        legal = self._legal(digits, len(rows), rule, count)
        count.illegal[rule] += count_of(legal, len(rows) * self.inner)

    def _legal(self, digits: dict[str, NDArray[np.intp]], rows: int, stop: int, count: _Counts) -> Mask:
        """Which designs of some rows meet the conditions before rule ``stop``; the others are accounted for."""
        size = rows * self.inner
        self._checks.run(digits, rows)
        values: dict[int, Bulk] = {node: self._checks[node] for node in self._conditions}
        alive: Mask = np.asarray(True)
        left = size
        if not self.rows.membership:
            alive = members(self.team, self._allowed, {**self._checks.digits, **digits}, values)
            now = count_of(alive, size)
            count.outside += left - now
            left = now
        for at in self._left:
            if at >= stop or not left:
                break
            alive = alive & condition_holds(values[self.problem.rules[at].check])
            now = count_of(alive, size)
            count.illegal[at] += left - now
            left = now
        return alive


class _Counts:
    """Designs that are outside the team, or break a rule, by the first one broken."""

    def __init__(self, rules: int) -> None:
        self.outside = 0
        self.illegal = [0] * rules


def _identity(axis: NDArray[np.intp]) -> bool:
    """Whether value numbers are places: all values of a dimension are allowed."""
    return bool(axis[0] == 0) and int(axis[-1]) == len(axis) - 1
