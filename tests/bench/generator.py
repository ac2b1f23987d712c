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
        given = dict((name, float(value)) for name, value in pairs)
        return cls(**{n: v if n in ("size", "tightness") else int(v) for n, v in given.items()})  # type: ignore[arg-type]


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
    sizes = _sizes(shape.size, rng)
    names = [f"d{at}" for at in range(len(sizes))]
    tables: dict[str, Any] = {}
    formulas: dict[str, str] = {}
    for o in range(shape.objectives):
        formulas[f"cost{o}"] = _expression(f"o{o}", names, sizes, shape, rng, tables, formulas, o)
    for c in range(shape.constraints):
        used = sorted(rng.sample(range(len(names)), max(2, len(names) // 2)))
        own = [names[at] for at in used]
        formulas[f"limited{c}"] = _expression(
            f"l{c}", own, [sizes[at] for at in used], shape, rng, tables, formulas, c
        )
    conditions = []
    for _ in range(shape.rules):
        a, b = rng.sample(range(len(names)), 2)
        high, low = sizes[a] // 2 + 1, sizes[b] // 2 + 1
        conditions.append(f"{names[a]} < {float(high)} or {names[b]} < {float(low)}")
    return {
        "name": f"generated-{shape.size:.0e}",
        "dims": {
            name: [float(v) for v in range(1, size + 1)] for name, size in zip(names, sizes, strict=True)
        },
        "tables": tables,
        "formulas": formulas,
        "constraints": conditions,
        "objectives": [f"cost{o}" for o in range(shape.objectives)],
    }


def _sizes(size: float, rng: random.Random) -> list[int]:
    """Sizes of dimensions whose product is within a fifth of ``size``, the same for the same start of the list."""
    sizes: list[int] = []
    left = size
    while left > 16:
        sizes.append(rng.choice((2, 3, 4, 4, 5, 6, 8, 10)))
        left /= sizes[-1]
    return [*sizes, max(2, round(left))]


def _expression(
    prefix: str,
    names: list[str],
    sizes: list[int],
    shape: Shape,
    rng: random.Random,
    tables: dict[str, Any],
    formulas: dict[str, str],
    which: int,
) -> str:
    """One cost over ``names``: writes its tables and inner formulas, and returns the outermost."""
    terms = []
    for at, (name, size) in enumerate(zip(names, sizes, strict=True)):
        table = f"{prefix}t{at}"
        rising = (at + which) % max(2, shape.objectives) == 0
        steps = sorted(rng.sample(range(1, LEVELS + size), size), reverse=not rising)
        values: list[Any] = [step / LEVELS for step in steps]
        axes = [name]
        if at and at % 3 == 0:  # depends on the dimension before, too
            axes.append(names[at - 1])
            values = [[v + rng.randrange(4) / LEVELS for _ in range(sizes[at - 1])] for v in values]
        tables[table] = {"axes": axes, "values": values}
        terms.append(f"{table}[{','.join(axes)}]")
    fan = max(2, math.ceil(len(terms) ** (1.0 / shape.depth)))
    for layer in range(shape.depth):
        joined = [_joined(terms[at : at + fan], rng) for at in range(0, len(terms), fan)]
        terms = []
        for at, text in enumerate(joined):
            formulas[f"{prefix}n{layer}_{at}"] = text
            terms.append(f"{prefix}n{layer}_{at}")
    return " + ".join(terms)


def _joined(terms: list[str], rng: random.Random) -> str:
    first, *others = terms
    if not others:
        return f"{first} * 1.5 + 0.25"
    kind = rng.randrange(4)
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
