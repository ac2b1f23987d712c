"""The parts of the compiled evaluator: what ranges promise, where guards stand, what the helpers compute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dse.evaluation import BulkEvaluator
from dse.evaluation.compiled import Declined, Grid, Nest, facts
from dse.evaluation.compiled.facts import Facts
from dse.evaluation.compiled.guards import Lines
from dse.evaluation.compiled.helpers import HELPERS
from dse.evaluation.hull import Hull
from dse.expressions import Kind
from dse.problem import Problem
from dse.problem.library import load
from tests.randomspaces import problem

pytest.importorskip("llvmlite")


def roots_of(found: Problem) -> list[int]:
    roots = [rule.check for rule in found.rules] + [o.node for o in found.objectives]
    return roots + [n for c in found.constraints for n in (c.bound.lhs, c.bound.rhs)]


@pytest.mark.parametrize("tabulated", [1, 12, 4096])
def test_no_value_escapes_its_range(tabulated: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_TABULATED", tabulated)
    monkeypatch.setattr(facts, "_READ", frozenset())
    checked = 0
    for seed in range(250):
        found = problem(seed, 60)
        known = Facts(found, found.everything, roots_of(found))
        digits = Hull(found, found.everything).digit_arrays(np.arange(found.size))
        values = BulkEvaluator(found, roots_of(found)).evaluate(digits)
        for n, (value, undefined) in values.items():
            if found.graph[n].type.kind not in (Kind.NUMBER, Kind.BOOL) or found.graph[n].op == "position":
                continue
            range_ = known.ranges[n]
            reasons = np.broadcast_to(0 if undefined is None else undefined, value.shape)
            assert not set(reasons.reshape(-1).tolist()) - {0, range_.reasons & 1, range_.reasons & 2}
            defined = value[reasons == 0].astype(np.float64)
            assert range_.nan or not np.isnan(defined).any()
            numbers = defined[~np.isnan(defined)]
            assert ((numbers >= range_.low) & (numbers <= range_.high)).all()
            checked += n not in known.tables
    assert checked > (1000 if tabulated == 1 else 300 if tabulated == 12 else -1)


# -- guards -----------------------------------------------------------------------------------------------


def drawn_front(rng: np.random.Generator, k: int, n: int, whole: bool) -> NDArray[np.float64]:
    points = (
        rng.integers(-4, 5, (n, k)).astype(np.float64)
        if whole
        else rng.normal(size=(n, k)) * 10.0 ** rng.integers(-3, 4)
    )
    points = np.unique(points + 0.0, axis=0)
    dominated = [(((points <= p).all(axis=1)) & ((points < p).any(axis=1))).any() for p in points]
    kept: NDArray[np.float64] = points[~np.array(dominated)]
    return kept


def looked_up(grid: Grid, vector: NDArray[np.float64], last: int) -> tuple[float, float]:
    """The limit of the last objective, and the cost of the guard with the same other objectives (NaN: none)."""
    others = np.delete(vector, last)
    ranks = [
        int(np.searchsorted(own.values[1:], x, side="right"))
        for own, x in zip(grid.lines, others, strict=True)
    ]
    on = all(own.values[rank] == x for own, rank, x in zip(grid.lines, ranks, others, strict=True))
    place = tuple(ranks) or (0,)
    return float((grid.exact if on else grid.limits)[place]), float(grid.costs[place]) if on else math.nan


@pytest.mark.parametrize("cells", [16, 200, 2**16])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_a_grid_discards_what_the_front_dominates_and_nothing_else(k: int, cells: int) -> None:
    rng = np.random.default_rng(k * 1000 + cells)
    discarded = equal = 0
    for round_ in range(30):
        whole = round_ % 2 == 0
        front = drawn_front(rng, k, 40, whole)
        usual = drawn_front(rng, k, 20, whole)
        last = int(rng.integers(k))
        grid = Grid.of(front, last, usual, cells)
        fine = all(
            set(np.delete(front, last, axis=1)[:, at]) <= set(own.values) for at, own in enumerate(grid.lines)
        )
        queries = np.concatenate(
            [front, front + (rng.integers(0, 3, front.shape) if whole else rng.exponential(size=front.shape))]
        )
        for vector in queries:
            limit, cost = looked_up(grid, vector, last)
            beaten = ((front <= vector).all(axis=1) & (front < vector).any(axis=1)).any()
            if vector[last] >= limit:
                assert beaten
            elif fine:
                assert not beaten
            discarded += bool(vector[last] >= limit)
            if vector[last] < limit and vector[last] == cost:
                assert (front == vector).all(axis=1).any()
                place = int(np.flatnonzero(np.isclose(grid.costs.reshape(-1), cost, rtol=0, atol=0))[0])
                assert grid.vector(place, last)[last] == cost
                equal += 1
    assert discarded > 20
    assert equal >= (5 if cells > 16 or k < 3 else 0)


@pytest.mark.parametrize("k", [8, 12, 17, 18, 40])
def test_a_grid_of_many_objectives_is_small_and_discards_what_it_has_room_for(k: int) -> None:
    rng = np.random.default_rng(k)
    front, usual = drawn_front(rng, k, 300, whole=False), drawn_front(rng, k, 50, whole=False)
    grid = Grid.of(front, 3, usual)
    assert grid.limits.size <= 2**16
    worst = looked_up(grid, front.max(axis=0) + 1.0, 3)[0]
    assert worst == (front[:, 3].min() if k < 18 else math.inf)
    for vector in front:
        assert vector[3] < looked_up(grid, vector, 3)[0]


def test_an_empty_grid_discards_nothing() -> None:
    for k in (1, 2, 3):
        grid = Grid.of(np.empty((0, k)), 0, np.empty((0, k)))
        assert looked_up(grid, np.full(k, 1e300), 0)[0] == math.inf


# -- helpers ----------------------------------------------------------------------------------------------

WRAPPED = """
define i32 @ranked(ptr %slots, i64 %start, i64 %stop) {
  %lines = load ptr, ptr %slots
  %p1 = getelementptr i64, ptr %slots, i64 1
  %buckets = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %slots, i64 2
  %first = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %slots, i64 3
  %shift = load i64, ptr %p3
  %p4 = getelementptr i64, ptr %slots, i64 4
  %x = load double, ptr %p4
  %rank = call i64 @rank(ptr %lines, ptr %buckets, i64 %first, i64 %shift, double %x)
  store i64 %rank, ptr %slots
  %above = call double @above(double %x)
  store double %above, ptr %p1
  ret i32 0
}
"""


def test_ranks_and_next_numbers() -> None:
    from dse.evaluation.compiled.engine import compiled

    code = compiled(HELPERS + WRAPPED, ["ranked"])
    rng = np.random.default_rng(5)
    sets = [
        np.array([]), np.array([0.0]), np.array([-3.0, 5.0]), rng.normal(size=5000), rng.normal(size=300) * 1e-310,
        np.concatenate([[-1.7e308], rng.normal(size=50) * 1e300, [1.7e308]]), 1e9 + np.arange(3000) * 1e-6,
        np.exp(rng.normal(size=900) * 100), np.arange(-40.0, 40.0),
    ]  # fmt: skip
    for values in sets:
        own = np.unique(values + 0.0)
        lines = Lines.at(own)
        near = np.concatenate([own, np.nextafter(own, np.inf), np.nextafter(own, -np.inf)])[:4000]
        for x in [*near[:: max(1, len(near) // 500)].tolist(), 0.0, 1e308, -1e308, 5e-324, -5e-324]:
            slots = np.array(
                [lines.values.ctypes.data, lines.buckets.ctypes.data, lines.first, lines.shift, 0]
            )
            slots[4:].view(np.float64)[0] = x + 0.0
            code.functions["ranked"](slots.ctypes.data, 0, 0)
            assert slots[0] == np.searchsorted(own, x, side="right")
            assert slots[1:2].view(np.float64)[0] == np.nextafter(x + 0.0, np.inf)


# -- what is compiled -------------------------------------------------------------------------------------


def base(**more: Any) -> Problem:
    return load(
        {
            "dse": 1, "name": "x", "dimensions": {"a": {"range": [1, 4]}, "b": {"range": [1, 5]}},
            "metrics": {"x": {"expr": "a * b", "unit": 1}}, "objectives": {"x": "minimize"}, **more,
        }
    )  # fmt: skip


def test_equal_problems_are_compiled_once_and_inputs_tell_them_apart() -> None:
    found = base(inputs={"i": 2}, metrics={"x": {"expr": "a * b + i", "unit": 1}})
    first = Nest.of(found, found.everything)
    assert Nest.of(found.with_inputs({}), found.everything) is first
    assert Nest.of(found.with_inputs({"i": 3}), found.everything) is not first


def test_what_cannot_be_compiled_says_why() -> None:
    one = base(dimensions={"a": [3], "b": [4]})
    with pytest.raises(Declined, match="one design"):
        Nest(one, one.everything)
    measured = base(metrics={"x": {"unit": 1, "measured": True}}, measure={"command": ["true"]})
    with pytest.raises(Declined, match="measured"):
        Nest(measured, measured.everything)


def test_conditions_that_always_hold_are_not_asked() -> None:
    rules = {
        "sum": {"check": "a + b > 1", "because": "no"},
        "both": {"check": "a < 5 and b > 2", "because": "no"},
    }
    demands = Nest(base(rules=rules, constraints={"x": "<= 20"}), base().everything).demands
    assert [(c.line, c.support) for c in demands.conditions] == [(1, 2)]
    assert not demands.requirements
    assert not demands.fallible


def test_expressions_of_any_depth_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_TABULATED", 1)
    lets = {"l0": "a + b"} | {f"l{at}": f"l{at - 1} + a / (b + {at % 5})" for at in range(1, 700)}
    found = base(lets=lets, metrics={"x": {"expr": "l699", "unit": 1}})
    assert Nest(found, found.everything).searching.length
