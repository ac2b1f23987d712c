"""Bounds over boxes: no value that the scalar evaluator computes for a design of the box ever escapes them."""

from __future__ import annotations

import math
import random
from itertools import product
from typing import Any

import numpy as np
import pytest

from dse.evaluation.scalar import _OPERATIONS as SCALAR
from dse.evaluation.scalar import Undefined, evaluate_nodes
from dse.expressions import Graph, Kind
from dse.problem import Problem
from dse.study.boxbounds import Box, BoxBounds
from dse.study.intervals import NOTHING, OPERATIONS, Truth, chosen, compared, either, same
from tests.randomspaces import problem as random_problem
from tests.study.problems import Build

INF, NAN = math.inf, math.nan
SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -3.0, 8.0, 1e-300, -1e-300, 5e-324, 1e300, -1e300, 1e308,
    709.7, 709.8, -745.2, 1024.0, 0.1, 2.0**52, -(2.0**52) - 0.5, INF, -INF,
]  # fmt: skip


def within(value: Any, bounds: Any) -> bool:
    """Whether a value of the scalar evaluator is one that the bounds allow."""
    if isinstance(value, Undefined) or value != value:
        return bool(bounds[2])
    if isinstance(value, bool):
        return bool(bounds[0 if value else 1])
    return bool(bounds[0] <= value <= bounds[1])


# -- operations ------------------------------------------------------------------------------------


def interval(draw: random.Random) -> tuple[tuple[float, float, bool], list[float]]:
    """Random bounds, and values that they allow."""
    if draw.random() < 0.05:
        return NOTHING, [NAN]
    pool = [
        *SPECIAL,
        *(draw.uniform(-5, 5) for _ in range(6)),
        *(float(draw.randint(-9, 9)) for _ in range(4)),
    ]
    values = [draw.choice(pool) for _ in range(draw.randint(1, 5))]
    low, high = min(values), max(values)
    values += [v for v in pool if low <= v <= high]
    if math.isfinite(low) and math.isfinite(high):
        values += [min(max(low + draw.random() * (high - low), low), high) for _ in range(3)]
    odd = draw.random() < 0.3
    return (low, high, odd), [*values, *([NAN] if odd else [])]


@pytest.mark.parametrize("op", sorted(set(OPERATIONS) - {"not", "and", "or"}))
def test_no_number_escapes_an_operation(op: str) -> None:
    draw = random.Random(op)
    count = 1 if op in ("alias", "neg", "abs", "floor", "ceil", "sqrt", "exp", "log", "log2") else 2
    for _ in range(400):
        drawn = [interval(draw) for _ in range(count)]
        bounds = OPERATIONS[op](*(b for b, _ in drawn))
        for values in product(*(draw.sample(v, min(len(v), 12)) for _, v in drawn)):
            found = SCALAR[op](Graph(), None, list(values))  # type: ignore[arg-type]
            assert within(found, bounds), (op, values, drawn, found, bounds)


@pytest.mark.parametrize("op", ["lt", "le", "eq", "ne"])
def test_no_truth_value_escapes_a_comparison(op: str) -> None:
    draw = random.Random(op)
    for _ in range(600):
        (a, values), (b, others) = interval(draw), interval(draw)
        bounds = compared(op, a, b)
        for pair in product(values, others):
            found = SCALAR[op](Graph(), None, list(pair))  # type: ignore[arg-type]
            assert within(found, bounds), (op, pair, a, b, found, bounds)


def test_truth_values_are_exact() -> None:
    """Of independent arguments, what can be is just what the bounds say."""
    states: list[Any] = [True, False, Undefined("why", missing=False)]
    all_bounds: list[Truth] = [b for b in product([True, False], [True, False], [True, False]) if any(b)]
    allowed = {b: [s for s, can in zip(states, b, strict=True) if can] for b in all_bounds}
    tables: dict[str, Any] = {"and": OPERATIONS["and"], "or": OPERATIONS["or"], "eq": same}
    for op, function in tables.items():
        for a, b in product(all_bounds, repeat=2):
            found = {_state(SCALAR[op](Graph(), None, [x, y])) for x, y in product(allowed[a], allowed[b])}  # type: ignore[arg-type]
            assert {s for s, can in zip("tfu", function(a, b), strict=True) if can} == found, (op, a, b)
    for a in all_bounds:
        found = {_state(SCALAR["not"](Graph(), None, [x])) for x in allowed[a]}  # type: ignore[arg-type]
        assert {s for s, can in zip("tfu", OPERATIONS["not"](a), strict=True) if can} == found
    for c, a, b in product(all_bounds, repeat=3):
        found = {
            _state(x if k is True else y if k is False else k)
            for k, x, y in product(allowed[c], allowed[a], allowed[b])
        }
        assert {s for s, can in zip("tfu", either(c, a, b), strict=True) if can} == found


def _state(value: Any) -> str:
    return "u" if isinstance(value, Undefined) else "t" if value else "f"


def test_an_undecided_choice_is_the_hull_of_both() -> None:
    a, b = (1.0, 2.0, False), (5.0, 6.0, True)
    assert chosen((True, False, False), a, b) == a
    assert chosen((False, True, False), a, b) == b
    assert chosen((True, True, False), a, b) == (1.0, 6.0, True)
    assert chosen((True, False, True), a, b) == (1.0, 2.0, True)
    assert chosen((False, False, True), a, b) == (INF, -INF, True)


# -- graphs ----------------------------------------------------------------------------------------


def random_box(draw: random.Random, sizes: list[int]) -> Box:
    ends = []
    for size in sizes:
        a, b = sorted((draw.randint(0, size), draw.randint(0, size)))
        ends.append(
            (a, b)
            if a < b
            else (0, size)
            if draw.random() < 0.5
            else (min(a, size - 1), min(a, size - 1) + 1)
        )
    return tuple(ends)


def assert_contained(problem: Problem, draw: random.Random, limits: list[int]) -> int:
    team = draw.choice([problem.everything, *problem.teams.values()])
    nodes = [
        n
        for n, node in enumerate(problem.graph.nodes)
        if node.type.kind in (Kind.NUMBER, Kind.BOOL) and node.op not in ("position", "measured")
    ]
    bounder = BoxBounds(problem, team, nodes)
    sizes = [len(axis) for axis in bounder.hull]
    if not all(sizes):
        return 0
    boxes = [random_box(draw, sizes) for _ in range(3)]
    boxes += [moved(draw, box, sizes) for box in boxes]  # of the same shape
    roots = [*nodes, *(bounder.constraint(at) for at in range(len(problem.constraints)))]
    found = {limit: bounder.bounds(roots, boxes, limit) for limit in limits}
    for at, box in enumerate(boxes):
        assert_box(problem, bounder, box, roots, {limit: own[at] for limit, own in found.items()})
    return len(roots) * len(limits)


def moved(draw: random.Random, box: Box, sizes: list[int]) -> Box:
    spans = [high - low for low, high in box]
    lows = [draw.randint(0, size - span) for size, span in zip(sizes, spans, strict=True)]
    return tuple((low, low + span) for low, span in zip(lows, spans, strict=True))


def assert_box(
    problem: Problem,
    bounder: BoxBounds,
    box: Box,
    roots: list[int],
    found: dict[int, dict[int, Any]],
) -> None:
    nodes = [n for n in roots if n < len(problem.graph.nodes)]
    designs = list(product(*(range(*ends) for ends in box)))
    seen: dict[int, set[Any]] = {}
    for places in random.Random(str(box)).sample(designs, min(len(designs), 30)):
        design = problem.design_at([int(a[p]) for a, p in zip(bounder.hull, places, strict=True)])
        values = dict(evaluate_nodes(problem, design, nodes))
        for at, constraint in enumerate(problem.constraints):
            values[bounder.constraint(at)] = holds(constraint.bound, values)
        for root in roots:
            for limit, own in found.items():
                assert within(values[root], own[root]), (root, limit, design, values[root], own[root])
            seen.setdefault(root, set()).add(repr(values[root]))
    if len(designs) <= 30:  # what was enumerated as a whole is exact
        for root in roots:
            low, high, _ = found[65_536][root]
            if isinstance(low, float) and low <= high:
                numbers = {repr(float(v) + 0.0) for v in seen[root] if v[0] != "U"}
                assert {repr(low + 0.0), repr(high + 0.0)} <= numbers


def holds(bound: Any, values: dict[int, Any]) -> Any:
    sides = [values[bound.lhs]] + ([] if bound.op == "holds" else [values[bound.rhs]])
    if any(isinstance(side, Undefined) or side != side for side in sides):
        return Undefined("")
    a, b = sides[0], sides[-1]
    return {"<=": a <= b, "<": a < b, ">=": a >= b, ">": a > b, "==": a == b, "holds": a is True}[bound.op]


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_no_value_of_a_random_graph_escapes_its_bounds(first: int) -> None:
    checked = 0
    for seed in range(first, first + 40):
        draw = random.Random(seed)
        checked += assert_contained(random_problem(seed, 200), draw, [1, 4, 30, 65_536])
    assert checked > 4_000


def test_a_cell_that_is_not_enumerated_is_bounded_by_those_within_reach() -> None:
    build = Build()
    build.dimension("a", [float(v) for v in range(10)]).dimension("b", [float(v) for v in range(10)])
    build.metric("cost", "a * 10 + b").minimize("cost")
    problem = build.problem()
    bounder = BoxBounds(problem, problem.everything, [problem.metrics["cost"].node])
    node = problem.metrics["cost"].node
    assert bounder.bounds([node], [((2, 5), (3, 4))], 1)[0][node] == (23.0, 43.0, False)
    assert bounder.bounds([node], [((2, 5), (3, 9))], 100)[0][node] == (23.0, 48.0, False)


def test_truth_values_are_compared_without_enumeration() -> None:
    build = Build().dimension("a", [False, True]).dimension("b", [False, True]).dimension("c", [0.0, 1.0])
    build.metric("same", "1 if (a or c > 0) == (b or c > 0) else 0").minimize("same")
    build.metric("other", "1 if (a or c > 0) != (b or c > 0) else 0")
    problem = build.problem()
    nodes = [problem.metrics[name].node for name in ("same", "other")]
    bounder = BoxBounds(problem, problem.everything, nodes)
    on = ((0, 2), (0, 2), (1, 2))
    assert bounder.bounds(nodes, [on], 1)[0] == {nodes[0]: (1.0, 1.0, False), nodes[1]: (0.0, 0.0, False)}
    assert bounder.bounds(nodes, [((0, 2), (0, 2), (0, 1))], 1)[0][nodes[0]] == (0.0, 1.0, False)


def test_many_dimensions_are_enumerated_in_groups() -> None:
    build = Build()
    for at in range(70):
        build.dimension(f"d{at}", [0.0, 1.0, -1.0])
    build.metric("cost", " + ".join(f"d{at} * d{at + 1}" for at in range(69))).minimize("cost")
    problem = build.problem()
    node = problem.metrics["cost"].node
    bounder = BoxBounds(problem, problem.everything, [node])
    low, high, odd = bounder.bounds([node], [((0, 3),) * 70], 10_000)[0][node]
    assert -69.0 <= low < high <= 69.0
    assert not odd
    draw = np.random.default_rng(0)
    for _ in range(20):
        design = problem.design_at(draw.integers(0, 3, size=70).tolist())
        assert within(evaluate_nodes(problem, design, [node])[node], (low, high, odd))
