"""Front points from value numbers, many at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.prepared import borrowed, prepared
from dse.evaluation.tape import Tape
from dse.evaluation.verdict import spread
from dse.expressions import Kind
from dse.problem import Problem
from dse.study.result import FrontPoint

__all__ = ["indices", "points_of"]

_BATCH = 1024  # designs whose metrics are computed at once
_INDEXED = 2**62  # designs up to which indices are computed in 64 bits


def points_of(
    problem: Problem,
    digits: NDArray[np.intp],
    ties: Sequence[int] | None = None,
    tied: Sequence[tuple[int, ...]] | None = None,
) -> tuple[FrontPoint, ...]:
    """The designs with these value numbers (n, dimensions), which did not fail, as points.

    Args:
        ties: of each, how many designs have its objectives; default: it alone.
        tied: of each, the indices of those designs, if they are listed.
    """
    count = len(digits)
    if not count:
        return ()
    metrics = _metrics(problem, digits)
    objectives = [metrics[o.name] for o in problem.objectives]
    values = [d.values for d in problem.dimensions]
    chosen = [[own[at] for at in digits[:, d].tolist()] for d, own in enumerate(values)]
    names, metric_names = problem.names, list(metrics)
    objective_names = [o.name for o in problem.objectives]
    rows = zip(
        indices(problem, digits),
        zip(*chosen, strict=True),
        zip(*objectives, strict=True),
        zip(*metrics.values(), strict=True),
        ties or [1] * count,
        tied or [()] * count,
        strict=True,
    )
    return tuple(
        FrontPoint(
            index,
            dict(zip(names, design, strict=True)),
            dict(zip(objective_names, costs, strict=True)),
            dict(zip(metric_names, outputs, strict=True)),
            number,
            same,
        )
        for index, design, costs, outputs, number, same in rows
    )


def indices(problem: Problem, digits: NDArray[np.intp]) -> list[int]:
    """The indices of the designs with these value numbers (n, dimensions)."""
    if problem.size > _INDEXED:
        return [problem.index_of(row) for row in digits.tolist()]
    index = np.zeros(len(digits), dtype=np.int64)
    for at, size in enumerate(problem.sizes):
        index = index * size + digits[:, at]
    found: list[int] = index.tolist()
    return found


def _metrics(problem: Problem, digits: NDArray[np.intp]) -> dict[str, list[Any]]:
    """Every metric of every design in base units; None where it is undefined, or must be measured."""
    graph = problem.graph
    computed = prepared(
        problem,
        "computed",
        lambda: [n for n, metric in problem.metrics.items() if not graph.leaves(metric.node, "measured")],
    )
    nodes = {name: problem.metrics[name].node for name in computed}
    metrics: dict[str, list[Any]] = {name: [] for name in problem.metrics}
    make = partial(Tape, problem, tuple(nodes.values()), problem.names, {}, _BATCH)
    with borrowed(problem, "metrics", make) as tape:
        for start in range(0, len(digits), _BATCH):
            part = digits[start : start + _BATCH]
            tape.run({name: part[:, at] for at, name in enumerate(problem.names)}, len(part))
            for name, found in metrics.items():
                found.extend(_values(tape, nodes[name], len(part)) if name in nodes else [None] * len(part))
    return metrics


def _values(tape: Tape, node: int, count: int) -> list[Any]:
    values, undefined = spread(tape[node], count)
    kind = tape.graph[node].type.kind
    if kind is Kind.NUMBER:
        found: list[Any] = (values + 0.0).tolist()
    elif kind is Kind.STRING:
        texts = {code: text for text, code in tape.evaluator.codes.items()}
        found = [texts.get(value) for value in values.tolist()]
    else:
        found = [str(value) for value in values.tolist()]
    if undefined is None:
        return found
    return [None if bad else value for value, bad in zip(found, undefined.tolist(), strict=True)]
