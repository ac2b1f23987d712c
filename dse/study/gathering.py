"""Taking grids of judged designs into a tally: what is counted is counted in the smallest shape, and only designs
that may be on the front are looked at one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.grid import Grid
from dse.study.guards import Steps, guards_of, unbeaten
from dse.study.tally import Tally

__all__ = ["Gathering"]

_SAMPLE = 256  # designs that guards are found among
_GUARDS = 4  # guards at most: they meet whole grids
_MANY = 512  # designs of a grid that no guard beats, above which better tests are looked for
_MOST_BROKEN = 62  # constraints whose sets fit into an integer
_WORTH = 0.7  # share of them that is left at most if more guards are worth having

Mask = NDArray[np.bool_]


class Gathering:
    """Takes grids into one tally after another, and learns which designs are soon dismissed."""

    def __init__(self, signs: list[float]) -> None:
        self.signs = signs
        self._begin(None)

    def _begin(self, tally: Tally | None) -> None:
        """Forget the tests for the front, which are made of the designs of one tally."""
        self._of = tally
        self._guards = np.empty((0, len(self.signs)))
        self._steps: Steps | None = None
        self._met, self._enough = 0, 2 * _MANY  # designs that met the archive; when to look for better tests

    def take(self, grid: Grid, tally: Tally) -> None:
        """Count a grid's legal designs, and keep what a tally keeps of them."""
        if self._of is not tally:
            self._begin(tally)
        if not grid.count:
            return
        tally.evaluated += grid.count
        if grid.failed is not None:
            tally.failed += grid.number(grid.failed)
            numbers = grid.list(grid.failed)
            positions = grid.positions(numbers)
            tally.failures.add(positions.astype(np.float64), positions, {})
        feasible = self._funnel(grid, tally)
        found = grid.number(feasible)
        if found:
            tally.feasible += found
            tally.relaxed.clear()
            self._front(grid, tally, feasible)
            self._present(grid, tally, feasible)
        elif not tally.feasible:
            numbers = grid.list(self._near(grid, tally))
            tally.add_misses(grid.positions(numbers), grid.outcomes(numbers))

    def _funnel(self, grid: Grid, tally: Tally) -> Mask:
        """Count what each constraint loses; what is left is feasible."""
        left = grid.sound
        for at, broken in enumerate([*grid.broken, *grid.infinite]):
            if broken is None or not broken.any():
                continue
            tally.alone[at] += grid.number(broken & grid.sound)
            tally.in_order[at] += grid.number(broken & left)
            left = left & ~broken
        return left

    def _near(self, grid: Grid, tally: Tally) -> Mask:
        """The designs that may be the nearest miss, of all or of those that break the same constraints.

        Those that are further away than what is known are left out, as long as there are not too many constraints.
        """
        if not tally.relaxed or len(grid.broken) > _MOST_BROKEN:
            return grid.sound
        nearness = grid.nearness()
        count: Any = np.zeros((), dtype=np.int64)
        code: Any = np.zeros((), dtype=np.int64)
        for at, broken in enumerate(grid.broken):
            count = count + broken
            code = code | (broken.astype(np.int64) << at)
        fewest = next(iter(tally.relaxed)).bit_count()
        known_further: Any = False
        for mask, (known, _) in tally.relaxed.items():
            known_further = known_further | ((code == mask) & (nearness > known))
        near = ~(nearness > tally.nearest.arrays()["keys"][0])
        wanted: Mask = near | (count < fewest) | ((count == fewest) & ~np.asarray(known_further))
        return wanted & grid.sound

    # -- the front --------------------------------------------------------------------------------

    def _front(self, grid: Grid, tally: Tally, feasible: Mask) -> None:
        if not len(self._guards):
            self._guards = self._found(self._sample(grid, feasible))
        numbers = grid.list(self._unbeaten(grid, feasible))
        values = self._values(grid, numbers)
        if self._steps is not None:
            left = self._steps.unbeaten(values)
            numbers, values = numbers[left], values[left]
        while self._steps is None and len(numbers) > _MANY:
            left = unbeaten(values, self._found(values))  # what is left is beaten by some of its own
            few = len(left) > _WORTH * len(numbers)
            numbers, values = numbers[left], values[left]
            if few:
                break
        if len(numbers):
            tally.archive.add(values, grid.positions(numbers))
        self._met += len(numbers)
        if self._met > self._enough:
            front = tally.archive.to_arrays()[0]
            self._steps = Steps(front)
            self._guards = guards_of(front, self._sample(grid, feasible))[:_GUARDS]
            self._met, self._enough = 0, max(_MANY, 2 * len(front))
        if tally.best.limit:
            worst = tally.best.worst
            own = tally.objective
            inside = feasible if worst is None else feasible & self._at_most(grid, own, worst)
            numbers = grid.list(inside)
            tally.best.add(self._values(grid, numbers)[:, own], grid.positions(numbers), {})

    def _found(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Guards among some designs, which beat the most of them."""
        sample = values[:: -(-len(values) // _SAMPLE)]
        return guards_of(sample, sample)[:_GUARDS]

    def _sample(self, grid: Grid, feasible: Mask) -> NDArray[np.float64]:
        """Minimized objectives of some of the feasible designs."""
        some = grid.list(feasible)
        return self._values(grid, some[:: -(-len(some) // _SAMPLE)])

    def _values(self, grid: Grid, numbers: NDArray[np.intp]) -> NDArray[np.float64]:
        """The minimized objectives of designs, (n, k)."""
        values = np.empty((len(numbers), len(self.signs)))
        for at, sign in enumerate(self.signs):
            values[:, at] = grid.pick(grid.objectives[at], numbers) * sign + 0.0
        return values

    def _unbeaten(self, grid: Grid, feasible: Mask) -> Mask:
        """The feasible designs that no guard dominates."""
        left = feasible
        order = sorted(range(len(self.signs)), key=lambda at: np.size(grid.objectives[at]))
        for guard in self._guards.tolist():
            beaten: Any = True
            for at in order:
                beaten = beaten & self._at_least(grid, at, guard[at])
            left = left & ~beaten
        return left

    def _at_least(self, grid: Grid, at: int, bound: float) -> Mask:
        values, sign = grid.objectives[at], self.signs[at]
        mask: Mask = values >= bound if sign > 0 else values <= -bound
        return mask

    def _at_most(self, grid: Grid, at: int, bound: float) -> Mask:
        values, sign = grid.objectives[at], self.signs[at]
        mask: Mask = values <= bound if sign > 0 else values >= -bound
        return mask

    # -- what occurs ------------------------------------------------------------------------------

    def _present(self, grid: Grid, tally: Tally, feasible: Mask) -> None:
        """Mark the values that occur among feasible designs, unless all are known to."""
        names = tally.problem.names
        missing = [at for at, seen in enumerate(tally.present) if len(seen) and not seen.all()]
        if not missing:
            return
        whole = np.broadcast_to(feasible, grid.shape)
        rows: Mask | None = None
        for at in missing:
            own = grid.digits.get(names[at])
            if own is not None:
                if rows is None:
                    rows = np.logical_or.reduce(whole.reshape(-1, grid.shape[-1]), axis=0)
                tally.present[at][own[rows]] = True
            else:
                axis, digits = grid.axis(names[at])
                others = tuple(a for a in range(whole.ndim) if a != axis)
                tally.present[at][digits[whole.any(axis=others)]] = True
