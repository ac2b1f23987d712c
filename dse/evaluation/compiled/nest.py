"""A problem and a team as compiled loops, and the memory that they work in."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bulk import Array
from dse.evaluation.compiled import bodies
from dse.evaluation.compiled.bodies import NOTHING_MORE, SET_BITS, SET_FACTOR, Wanted
from dse.evaluation.compiled.coder import Coder
from dse.evaluation.compiled.demands import Demands
from dse.evaluation.compiled.engine import CALLBACK, available, compiled
from dse.evaluation.compiled.facts import Declined, Facts
from dse.evaluation.compiled.guards import Grid, last_objective
from dse.evaluation.compiled.helpers import HELPERS
from dse.evaluation.compiled.loops import Loops
from dse.evaluation.compiled.order import Sample, best_order, first_order
from dse.problem import Problem, Team

__all__ = ["Memory", "Nest", "Work", "empty_sets", "set_slot"]

_NESTS = 8  # that are held ready in a process
_LARGEST = np.iinfo(np.int64).max
_SETS = 62  # constraints of which sets fit a word
POSITION_LIMIT = 2**62


class Work:
    """One compiled function, and what it says of its slots.

    ``length`` combinations of the ``split`` outermost loops, of ``inner`` designs each, are its work; ``order`` its loops, as the numbers of
    dimensions of the problem. Each turn of the innermost stands for ``idle_weight`` designs, which differ in the dimensions
    ``idle`` alone. ``inner_strides`` are, by (stride, size), the places among positions of all dimensions inside level
    ``tracked``.
    """

    def __init__(self, loops: Loops, run: Callable[[int, int, int], int]) -> None:
        facts = loops.facts
        self.run = run
        self.split = loops.split
        self.slots = dict(loops.slots.places)
        self.counters = list(loops.counters)
        self.length = loops.length
        self.inner = loops.inner[loops.split]
        self.idle_weight = loops.idle
        self.depth = loops.depth
        self.tracked = loops.tracked
        self.order = [facts.axes[d] for d in loops.coder.order]
        self.sizes = loops.sizes[1:]
        idle = [d for d in range(len(facts.axes)) if d not in loops.coder.order]
        self.idle = tuple(facts.axes[d] for d in idle)
        inner = [*idle, *loops.coder.order[loops.tracked :]]
        self.inner_strides = sorted((facts.strides[d], facts.sizes[d]) for d in inner)


class Nest:
    """The loops of a problem and a team.

    ``counting`` counts what is outside or illegal (None: nothing is), ``searching`` judges the legal designs;
    ``missing()`` looks for near misses, and is compiled when it is asked for.

    Args:
        least: legal designs, by the estimate of a sample, from which on compiling is repaid.

    Raises:
        Declined: llvmlite is not installed, or the problem cannot be compiled, or need not; the message says why.
    """

    def __init__(
        self, problem: Problem, team: Team, wanted: Wanted = NOTHING_MORE, least: float = 0.0
    ) -> None:
        if not available():
            raise Declined("llvmlite is not installed")
        if math.prod(len(axis) for axis in team.hull(problem.sizes)) > POSITION_LIMIT:
            raise Declined("its designs cannot be numbered in 64 bits")
        if len(problem.constraints) > _SETS:
            raise Declined(f"it has more than {_SETS} constraints")
        roots = [r.check for r in problem.rules] + [c.node for b in team.boxes for c in b.where]
        roots += [o.node for o in problem.objectives]
        roots += [n for c in problem.constraints for n in (c.bound.lhs, c.bound.rhs)]
        self.problem = problem
        self.team = team
        self.wanted = wanted
        self.facts = Facts(problem, team, roots)
        self.demands = Demands(self.facts, problem, team)
        if not self.facts.axes:
            raise Declined("it has one design")
        self.sample = Sample(self.facts, self.demands)
        if self.sample.legal < least:
            raise Declined(f"it has about {self.sample.legal:,.0f} legal designs, too few to be compiled for")
        self.order = best_order(self.facts, self.demands, self.sample) or [0]
        self._arrays: list[Array] = []
        self._compile()

    @classmethod
    def of(cls, problem: Problem, team: Team, wanted: Wanted = NOTHING_MORE, least: float = 0.0) -> Nest:
        """The loops of a problem and a team, from those that were used last if they are among them.

        Raises:
            Declined: as of the class.
        """
        key = (problem.digest, team.boxes, wanted, least)
        found = _nests.get(key)
        if found is None:
            try:
                found = cls(problem, team, wanted, least)
            except Declined as declined:
                found = declined
            _nests[key] = found
            while len(_nests) > _NESTS:
                _nests.popitem(last=False)
        _nests.move_to_end(key)
        if isinstance(found, Declined):
            raise found
        return found

    def _loops(self, name: str, order: list[int], tracked: int = 0) -> Loops:
        idle = math.prod(self.facts.sizes) // math.prod(self.facts.sizes[d] for d in order)
        return Loops(name, self.facts, Coder(self.facts, order, self._arrays), idle, tracked)

    def _compile(self) -> None:
        demands, facts = self.demands, self.facts
        end = bodies.end_of(Coder(facts, self.order, []), demands)
        split = self._loops("search", self.order).split
        end = max(end, split)
        searching = self._loops("search", self.order, end)
        bodies.search(searching, demands, self.wanted, end)
        levels = [max(searching.coder.level(facts.supports[o.node]), end) for o in self.problem.objectives]
        self.last = last_objective(levels)
        made = [searching]
        if demands.conditions:
            used = 0
            for condition in demands.conditions:
                used |= condition.support
            counting = self._loops("count", first_order(facts, demands.conditions, used) or [0])
            bodies.count(counting, demands)
            made.append(counting)
        found = self._functions(made)
        self.searching = found[0]
        self.counting = found[1] if len(found) > 1 else None
        self._missing: Work | None = None

    def _functions(self, made: list[Loops]) -> list[Work]:
        code = compiled(HELPERS + "\n".join(loops.text() for loops in made), [m.function for m in made])
        self._code = [*getattr(self, "_code", []), code]
        return [Work(loops, code.functions[loops.function]) for loops in made]

    def judged(self, places: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Which designs are feasible, (n,), and the objectives of those, minimized.

        Args:
            places: (n, dimensions with more than one value).
        """
        return self.sample.judged(places)

    def missing(self) -> Work:
        """The loops that look for near misses."""
        if self._missing is None:
            end = bodies.end_of(Coder(self.facts, self.order, []), self.demands)
            loops = self._loops("miss", self.order[:end])
            bodies.miss(loops, self.demands)
            self._missing = self._functions([loops])[0]
        return self._missing


_nests: OrderedDict[Any, Nest | Declined] = OrderedDict()


class Memory:
    """What one thread's function reads and writes: its slots, buffers, and grid of guards.

    Args:
        flush: called when a buffer is full; raises to end the function.
        room: designs that a buffer holds.
    """

    def __init__(self, work: Work, buffers: dict[str, int], flush: Callable[[], None], room: int) -> None:
        """``buffers``: their names, and the words of a row."""
        self.work = work
        self.words = np.zeros(max(1, len(work.slots)), dtype=np.int64)
        self.flush = flush
        self.error: BaseException | None = None
        self._callback = CALLBACK(self._called)
        self._held: dict[str, Array] = {}
        self.rows = {name: np.empty((room, width), dtype=np.int64) for name, width in buffers.items()}
        self.set("callback", _address_of(self._callback))
        for name, rows in self.rows.items():
            self.point(f"{name}.rows", rows)
            self.set(f"{name}.room", room)
        self.present = {
            level: np.zeros(work.sizes[level - 1], dtype=np.uint8) for level in range(1, work.tracked + 1)
        }
        for level, seen in self.present.items():
            self.point(f"present.{level}", seen)
        self.grid: Grid | None = None

    def _called(self) -> int:
        try:
            self.flush()
        except BaseException as error:  # noqa: BLE001 - it is raised again when the function has returned
            self.error = error
            return 1
        return 0

    def run(self, start: int, stop: int) -> None:
        """Do the combinations of outer loops from ``start`` to ``stop``; then flush."""
        if self.work.run(self.words.ctypes.data, start, stop) and self.error is not None:
            error, self.error = self.error, None
            raise error
        self.flush()

    # -- slots ------------------------------------------------------------------------------------

    def set(self, name: str, value: int) -> None:
        """Write a slot, if the function has it."""
        place = self.work.slots.get(name)
        if place is not None:
            self.words[place] = value

    def set_number(self, name: str, value: float) -> None:
        """Write a slot that holds a double."""
        self.set(name, int(np.float64(value).view(np.int64)))

    def get(self, name: str) -> int:
        """Read a slot; 0 if the function does not have it."""
        place = self.work.slots.get(name)
        return 0 if place is None else int(self.words[place])

    def point(self, name: str, array: Array) -> None:
        """Let a slot point to an array, which is held as long."""
        self._held[name] = array
        self.set(name, array.ctypes.data)

    def take(self, buffer: str) -> NDArray[np.int64]:
        """The rows of a buffer (n, words), which is empty then."""
        count = self.get(f"{buffer}.count")
        self.set(f"{buffer}.count", 0)
        found: NDArray[np.int64] = self.rows[buffer][:count].copy()
        return found

    def seen(self, most: int) -> dict[int, NDArray[np.bool_]]:
        """Per dimension of no more than ``most`` values, which places led to a feasible design since the last call."""
        found = {}
        for level, noted in self.present.items():
            if len(noted) <= most:
                found[self.work.order[level - 1]] = noted.astype(np.bool_)
                noted[:] = 0
        return found

    def counts(self) -> dict[str, int]:
        """All counts, which are zero then."""
        found = {name: self.get(f"count.{name}") for name in self.work.counters}
        for name in found:
            self.set(f"count.{name}", 0)
        return found

    # -- guards -----------------------------------------------------------------------------------

    def guard(self, grid: Grid) -> None:
        """Use another grid from now on."""
        if grid is self.grid:
            return
        self.grid = grid
        self.set("guard.epoch", self.get("guard.epoch") + 1)
        for axis, lines in enumerate(grid.lines):
            self.point(f"guard.lines{axis}", lines.values)
            self.point(f"guard.buckets{axis}", lines.buckets)
            self.set(f"guard.first{axis}", lines.first)
            self.set(f"guard.shift{axis}", lines.shift)
            self.set(f"guard.width{axis}", len(lines.values))
        for name in ("limits", "exact", "costs"):
            self.point(f"guard.{name}", getattr(grid, name))
        self.tie_counts = np.zeros(grid.costs.size, dtype=np.int64)
        self.tie_firsts = np.full(grid.costs.size, _LARGEST, dtype=np.int64)
        self.point("tie.counts", self.tie_counts)
        self.point("tie.firsts", self.tie_firsts)

    def ties(self, last: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Designs with a guard's vector since the last call: the vectors, their lowest positions, and how many."""
        assert self.grid is not None
        places = np.flatnonzero(self.tie_counts)
        vectors = np.array([self.grid.vector(int(at), last) for at in places])
        firsts, counts = self.tie_firsts[places], self.tie_counts[places]
        self.tie_counts[places] = 0
        self.tie_firsts[places] = _LARGEST
        return vectors, firsts, counts


def empty_sets() -> NDArray[np.int64]:
    """A table of sets of missed constraints: the set, the nearness of its best design (a double), and its position."""
    return np.zeros((2**SET_BITS, 3), dtype=np.int64)


def set_slot(mask: int) -> int:
    """The slot of a set."""
    return (mask * SET_FACTOR % 2**64) >> (64 - SET_BITS)


def _address_of(callback: Any) -> int:
    import ctypes

    return ctypes.cast(callback, ctypes.c_void_p).value or 0
