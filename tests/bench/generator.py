"""Spaces of any size that look like cost models, made from a seed: tables per dimension, joined over several layers.

Every dimension has a table for each objective, cheap where another is dear, so that objectives trade off; some tables
have two axes. Layers of sums, products, maxima and ratios join them into one expression per objective. Constraints are
expressions of the same kind, with a bound that a given share of sampled designs meets.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dse import Problem

SAMPLE = 4096
LEVELS = 24  # steps of tables: costs are coarse, as real ones are, and designs tie now and then


@dataclass(frozen=True, slots=True)
class Shape:
    """What is generated.

    ``size`` designs, about; ``depth`` layers of operations over the tables; ``objectives`` and ``constraints`` so many;
    each constraint is met by a share of about ``tightness`` of all designs; ``rules`` so many conditions on pairs of
    dimensions, each met by some three quarters.
    """

    size: float = 1e6
    depth: int = 3
    objectives: int = 3
    constraints: int = 2
    tightness: float = 0.5
    rules: int = 2
    seed: int = 0

    @property
    def source(self) -> str:
        """The shape as a text, ``generated:size=1e6,depth=3,...``."""
        return "generated:" + ",".join(f"{f.name}={getattr(self, f.name):g}" for f in fields(self))

    @classmethod
    def read(cls, source: str) -> Shape:
        """What :attr:`source` gave."""
        pairs = (pair.split("=") for pair in source.removeprefix("generated:").split(","))
        given: dict[str, Any] = {name: float(value) for name, value in pairs}
        return cls(**{n: v if n in ("size", "tightness") else int(v) for n, v in given.items()})


def generated(shape: Shape) -> Problem:
    """The problem of a shape: the same for the same shape, whatever the machine."""
    import dse
    from dse.problem.neutral import to_space

    data = neutral_of(shape)
    if shape.constraints:
        free = dse.load(to_space(data | {"objectives": [f"limited{c}" for c in range(shape.constraints)]}))
        bounds = _bounds(free, shape)
        data["constraints"] += [f"limited{c} <= {bound!r}" for c, bound in enumerate(bounds)]
    return dse.load(to_space(data))


def neutral_of(shape: Shape) -> dict[str, Any]:
    """The neutral JSON of a shape, with its rules and without its constraints."""
    rng = random.Random(repr(shape.seed))
    axes = [(f"d{at}", size) for at, size in enumerate(_sizes(shape.size, rng))]
    writer = _Writer(shape, rng)
    for o in range(shape.objectives):
        writer.formulas[f"cost{o}"] = writer.expression(f"o{o}", axes, o)
    for c in range(shape.constraints):
        used = sorted(rng.sample(axes, max(2, len(axes) // 2)), key=axes.index)
        writer.formulas[f"limited{c}"] = writer.expression(f"l{c}", used, c)
    conditions = []
    for _ in range(shape.rules):
        (a, many), (b, few) = rng.sample(axes, 2)
        conditions.append(f"{a} < {float(many // 2 + 1)} or {b} < {float(few // 2 + 1)}")
    return {
        "name": f"generated-{shape.size:.0e}",
        "dims": {name: [float(value) for value in range(1, size + 1)] for name, size in axes},
        "tables": writer.tables,
        "formulas": writer.formulas,
        "constraints": conditions,
        "objectives": [f"cost{o}" for o in range(shape.objectives)],
    }


def _sizes(size: float, rng: random.Random) -> list[int]:
    """Sizes of dimensions whose product is within a fifth of ``size``; larger spaces begin like smaller ones."""
    sizes: list[int] = []
    left = size
    while left > 16:
        sizes.append(rng.choice((2, 3, 4, 4, 5, 6, 8, 10)))
        left /= sizes[-1]
    return [*sizes, max(2, round(left))]


class _Writer:
    """Writes costs: their tables, and their formulas layer by layer."""

    def __init__(self, shape: Shape, rng: random.Random) -> None:
        self.shape = shape
        self.rng = rng
        self.tables: dict[str, Any] = {}
        self.formulas: dict[str, str] = {}

    def expression(self, prefix: str, axes: list[tuple[str, int]], which: int) -> str:
        """The outermost expression of one cost over ``axes``; ``which`` says where its tables rise."""
        leaves = [self.leaf(f"{prefix}t{at}", axes, at, which) for at in range(len(axes))]
        terms = leaves
        fan = max(2, math.ceil(len(terms) ** (1.0 / self.shape.depth)))
        for layer in range(self.shape.depth):
            joined = [self.joined(terms[at : at + fan], leaves) for at in range(0, len(terms), fan)]
            terms = [f"{prefix}n{layer}_{at}" for at in range(len(joined))]
            self.formulas |= dict(zip(terms, joined, strict=True))
        return " + ".join(terms)

    def leaf(self, table: str, axes: list[tuple[str, int]], at: int, which: int) -> str:
        """A look-up in a new table over an axis, every third time over the one before, too."""
        name, size = axes[at]
        rising = (at + which) % max(2, self.shape.objectives) == 0
        steps = sorted(self.rng.sample(range(1, LEVELS + size), size), reverse=not rising)
        values: list[Any] = [step / LEVELS for step in steps]
        keys = [name]
        if at and at % 3 == 0:
            other, width = axes[at - 1]
            keys.append(other)
            values = [[v + self.rng.randrange(4) / LEVELS for _ in range(width)] for v in values]
        self.tables[table] = {"axes": keys, "values": values}
        return f"{table}[{','.join(keys)}]"

    def joined(self, terms: list[str], leaves: list[str]) -> str:
        """Some terms as one: a sum, a product, a maximum or a ratio."""
        first, *others = terms
        if not others:
            return f"{first} + 0.25 * max({first}, {self.rng.choice(leaves)})"
        kind = self.rng.randrange(4)
        if kind == 0:
            return " + ".join(terms)
        if kind == 1:
            return f"({' + '.join(others)}) * (1.0 + {first})"
        if kind == 2:
            return f"max({first}, {others[0]}) + 0.5 * ({' + '.join(terms)})"
        return f"{first} + ({' + '.join(others)}) / (1.0 + 0.25 * {others[0]})"


def _bounds(problem: Problem, shape: Shape) -> list[float]:
    """Per constraint the value that a share of ``tightness`` of sampled designs does not pass."""
    import numpy as np

    from dse.evaluation import Judge

    rng = np.random.default_rng(shape.seed)
    digits = {d.name: rng.integers(0, len(d.values), SAMPLE) for d in problem.dimensions}
    found = np.sort(Judge(problem).evaluate(digits, SAMPLE).objectives, axis=0)
    row = found[min(SAMPLE - 1, int(shape.tightness * SAMPLE))]
    return [float(value) for value in row]
