"""What can be said of all designs of a box: outside, illegal, infeasible, or at best this good.

A box fixes some digits (a *prefix*) and leaves the others free. A frame holds many boxes of the same fixed axes, or all
children of such boxes along one more axis; arrays over a frame have shape (boxes, children), either of them 1 where it
does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.bounds.axes import Grid
from dse.evaluation.bounds.leaves import LIMIT, Table
from dse.evaluation.bounds.program import Program, Side
from dse.problem import Bound, Problem, Team

__all__ = ["Boxes", "Frame"]

Array = NDArray[Any]


class Frame:
    """Boxes at hand: the digits of their fixed axes (n,), and the axis along which children are looked at."""

    def __init__(
        self, columns: Mapping[int, NDArray[np.intp]], child: int | None, count: int, width: int
    ) -> None:
        self.columns = columns
        self.child = child
        self.count = count
        self.width = width
        self.prefix = frozenset(columns)
        self.env: list[Any] = []
        self._places: dict[tuple[int, ...], NDArray[np.intp]] = {}
        self.sizes: dict[int, int] = {}

    def place(self, keys: tuple[int, ...]) -> NDArray[np.intp]:
        """The row of each box in an array over the digits of ``keys``."""
        found = self._places.get(keys)
        if found is None:
            last = self.columns[keys[-1]]
            found = last if len(keys) == 1 else self.place(keys[:-1]) * self.sizes[keys[-1]] + last
            self._places[keys] = found
        return found

    def narrowed(self, alive: Array, carried: list[int]) -> tuple[Frame, NDArray[np.intp]]:
        """The frame of the children that are ``alive`` (boxes, children), each a box of its own now, and which they are.

        ``carried`` are the slots whose values are still needed.
        """
        flat = np.flatnonzero(alive)
        if self.child is None:
            rows, digits = flat, np.zeros(0, dtype=np.intp)
            columns = {axis: column[rows] for axis, column in self.columns.items()}
        else:
            rows, digits = np.divmod(flat, self.width)
            columns = {axis: column[rows] for axis, column in self.columns.items()}
            columns[self.child] = digits
        frame = Frame(columns, None, len(flat), 1)
        frame.sizes = self.sizes
        frame.env = [None] * len(self.env)
        for slot in carried:
            values = self.env[slot]
            tall, wide = values.shape[0] > 1, values.shape[1] > 1
            if tall and wide:
                values = values.reshape(-1)[flat].reshape(-1, 1)
            elif tall:
                values = values[rows]
            elif wide:
                values = values[0][digits].reshape(-1, 1)
            frame.env[slot] = values
        return frame, flat


class Boxes:
    """Bounds of one problem over the boxes of a team's hull.

    ``live`` are the axes of the dimensions that a rule, constraint, objective or team membership depends on;
    ``ruled`` those of rules and membership alone; ``idle`` the others, which change nothing; axes of a single digit are neither. There is one live axis at least.
    """

    def __init__(self, problem: Problem, team: Team, limit: int = LIMIT) -> None:
        self.problem = problem
        self.team = team
        self.grid = Grid(problem, team)
        self.sizes = {at: axis.size for at, axis in enumerate(self.grid.axes)}
        self._masks = [self._narrowed(box.allowed) for box in team.boxes]
        where = [(c.node, "true") for box in team.boxes for c in box.where]
        rules = [(rule.check, "true") for rule in problem.rules]
        constraints = [side for c in problem.constraints for side in _sides(c.bound)]
        objectives = [(o.node, "lo" if o.sign > 0 else "hi") for o in problem.objectives]
        self.conditions = Program(problem, self.grid, [where + rules], limit)
        self.program = Program(problem, self.grid, [constraints, objectives], limit, legal=True)
        self.live, self.idle = self._split([*where, *rules, *constraints, *objectives])
        self.ruled = self._axes_of([*where, *rules])

    def _narrowed(self, allowed: tuple[tuple[int, ...] | None, ...]) -> list[Table]:
        """Which digits a box of the team allows, of the dimensions on which it is narrower than the hull."""
        found = []
        for dimension, values in enumerate(allowed):
            hull = self.grid.hull[dimension]
            if values is not None and len(values) < len(hull):
                mask = self.grid.spread(np.isin(hull, values), [dimension])
                found.append(Table(self.grid.own[dimension], mask, np.logical_or))
        return found

    def _split(self, roots: list[Side]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        live = self._axes_of(roots)
        several = {at for at, axis in enumerate(self.grid.axes) if axis.size > 1}
        if not live & several:
            live = set(next(own for own in self.grid.own if own))
            several |= live
        return tuple(sorted(live & several)), tuple(sorted(several - live))

    def _axes_of(self, roots: list[Side]) -> set[int]:
        """The axes that some nodes, and team membership, depend on."""
        names = {name for node, _ in roots for name in self.problem.graph[node].support}
        return set(self.grid.axes_of(names)) | {
            axis for masks in self._masks for t in masks for axis in t.axes
        }

    def frame(self, columns: Mapping[int, NDArray[np.intp]], child: int | None, count: int) -> Frame:
        """A frame of ``count`` boxes, nothing evaluated yet."""
        frame = Frame(columns, child, count, 1 if child is None else self.sizes[child])
        frame.sizes = self.sizes
        frame.env = [None] * self.program.size
        return frame

    # -- questions; objectives use what was computed for constraints -----------------------------------

    def legal(self, frame: Frame) -> tuple[Array, list[Array]]:
        """Whether the team may choose some design of each box, and per rule whether some design may meet it."""
        env: list[Any] = [None] * self.conditions.size
        self.conditions.run(0, frame, env)
        slot = self.conditions.slot
        inside: Array = np.zeros((1, 1), dtype=np.bool_)
        for masks, box in zip(self._masks, self.team.boxes, strict=True):
            held: Array = np.ones((1, 1), dtype=np.bool_)
            for table in masks:
                held = held & table.read(frame)
            for conjunct in box.where:
                held = held & env[slot((conjunct.node, "true"))]
            inside = inside | held
        return inside, [env[slot((rule.check, "true"))] for rule in self.problem.rules]

    def feasible(self, frame: Frame) -> list[Array]:
        """Per constraint, whether some design of each box may meet it."""
        self.program.run(0, frame, frame.env)
        env, slot = frame.env, self.program.slot
        found = []
        for constraint in self.problem.constraints:
            values = [env[slot(side)] for side in _sides(constraint.bound)]
            found.append(_MEETS[constraint.bound.op](*values))
        return found

    def objectives(self, frame: Frame) -> list[Array]:
        """Per objective, minimized, the best that any design of each box may have."""
        self.program.run(1, frame, frame.env)
        env, slot = frame.env, self.program.slot
        return [
            env[slot((o.node, "lo"))] + 0.0 if o.sign > 0 else -env[slot((o.node, "hi"))] + 0.0
            for o in self.problem.objectives
        ]


def _sides(bound: Bound) -> list[Side]:
    """The sides that decide whether a bound can be met."""
    if bound.op == "holds":
        return [(bound.lhs, "true")]
    if bound.op == "==":
        return [(bound.lhs, "lo"), (bound.lhs, "hi"), (bound.rhs, "lo"), (bound.rhs, "hi")]
    if bound.op in ("<=", "<"):
        return [(bound.lhs, "lo"), (bound.rhs, "hi")]
    return [(bound.lhs, "hi"), (bound.rhs, "lo")]


_MEETS: dict[str, Any] = {
    "holds": lambda a: a,
    "==": lambda a, b, c, d: (a <= d) & (c <= b),
    "<=": np.less_equal,
    "<": np.less,
    ">=": np.greater_equal,
    ">": np.greater,
}
