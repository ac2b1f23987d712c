"""Two thousand random problems: three exact searches and a brute force that shares no code with them agree.

1,600 come from seeded generators, 400 from Hypothesis; of 10 to 10^6 designs. ``pareto``, ``exhaustive`` with NumPy,
``exhaustive`` compiled (of 620 of them, since compiling takes ten times as long as searching so little) and the brute
force in :mod:`tests.brute` must give the same front with the same tied designs; every accounting must sum to the whole
space, and full enumerations must agree on every line of accounting and funnel.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from dse.errors import InputError
from dse.problem import Problem
from dse.problem.library import load
from dse.solvers.exhaustive import Exhaustive
from dse.solvers.pareto import Pareto
from dse.study.diagnosis import exact_result
from dse.study.exact import run_exact
from dse.study.result import Result
from dse.study.solver import ExactSolver
from tests.brute import Everything, Point, Unclear, front
from tests.bruteforce import assert_accounted
from tests.oracle import Oracle
from tests.randomspaces import space, spaces
from tests.solvers.narrowing import narrowed
from tests.widespaces import wide

SMALL, WIDE, PART = 1440, 160, 80
COMPILED = find_spec("llvmlite") is not None
Data = dict[str, Any]


# -- problems -----------------------------------------------------------------------------------------


def size(data: Data) -> int:
    return math.prod(len(values) for values in Oracle(data).dimensions.values())


@cache
def small(number: int) -> Data:
    """Any expressions at all; 10 to 280 designs."""
    for seed in range(number, 10**9, SMALL):
        data = space(random.Random(seed), 40 + 60 * (number % 5))
        if size(data) >= 10:
            return data
    raise AssertionError


@cache
def larger(number: int) -> Data:
    """Sums over many dimensions; 300 to 10^6 designs, few of them large."""
    draw = random.Random(number)
    least, most = (300, 9_000) if number < 100 else (10_000, 100_000) if number < 152 else (200_000, 800_000)
    return wide(draw, draw.randint(least, most), 1 + number % 4)


def team_of(data: Data, number: int) -> str | None:
    """No team for two problems of three, then one of those that are declared."""
    teams = list(data["teams"])
    return teams[number % len(teams)] if teams and number % 3 == 0 else None


# -- the truth ------------------------------------------------------------------------------------------


class Judged:
    """What :class:`Everything` says, worked out design by design, without teams."""

    def __init__(self, data: Data) -> None:
        oracle = Oracle(data)
        signs = [1.0 if way == "minimize" else -1.0 for way in data["objectives"].values()]
        verdicts = [oracle.judge(design) for design in oracle.designs()]
        states = [verdict[0] for verdict in verdicts]
        self.outside = np.zeros(len(states), dtype=np.bool_)
        self.legal = np.array([state != "ILLEGAL" for state in states])
        self.failed = np.array([state == "FAILED" for state in states])
        self.feasible = np.array([state == "FEASIBLE" for state in states])
        self.illegal_by = dict(Counter(verdict[1] for verdict in verdicts if verdict[0] == "ILLEGAL"))
        self.costs = np.full((len(states), len(signs)), np.nan)
        for at, verdict in enumerate(verdicts):
            if states[at] in ("FEASIBLE", "INFEASIBLE"):
                self.costs[at] = [sign * value + 0.0 for sign, value in zip(signs, verdict[1], strict=True)]

    @property
    def front(self) -> list[Point]:
        return front(np.flatnonzero(self.feasible), self.costs[self.feasible])


def test_the_two_brute_forces_agree() -> None:
    told_apart = 0
    for number in range(150):
        data = small(number)
        slow = Judged(data)
        try:
            fast = Everything(data)
        except Unclear:
            continue
        told_apart += 1
        for name in ("legal", "failed", "feasible"):
            assert (getattr(slow, name) == getattr(fast, name)).all()
        known = ~np.isnan(slow.costs)
        assert (slow.costs[known] == fast.costs[known]).all()
        assert slow.illegal_by == fast.illegal_by
        assert slow.front == fast.front
    assert told_apart > 110


# -- the comparison ---------------------------------------------------------------------------------------


def solve(found: Problem, team: str | None, solver: type[ExactSolver], **options: Any) -> Result:
    own = found.team(team)
    return exact_result(found, own, solver.name, run_exact(found, own, solver(), ties=True, options=options))


def points(result: Result) -> list[Point]:
    signs = [objective.sign for objective in result.problem.objectives]
    names = [objective.name for objective in result.problem.objectives]
    found = []
    for point in result.front:
        assert (point.index, point.ties) == (point.tied[0], len(point.tied))
        costs = tuple(point.objectives[n] * s + 0.0 for n, s in zip(names, signs, strict=True))
        found.append((costs, point.tied))
    return found


def assert_equal(data: Data, number: int, *, compiled: bool = False) -> int:
    """How many searches were compiled: none or one.

    Two of three small problems are searched by ``pareto`` with as few tables and boxes at a time as if they were huge.
    """
    team = team_of(data, number)
    narrow = [(None, None), (number % 8, 5), (20, 40)][number // 3 % 3]
    narrow = narrow if size(data) < 5_000 else [(None, None), (20 + number % 200, None)][number // 3 % 2]
    right: Everything | Judged
    try:
        right = Everything(data, team)
    except Unclear:
        right, team = Judged(data), None
    expected = right.front
    found = load(data)
    with narrowed(*narrow):
        results = [solve(found, team, Pareto)]
    results.append(solve(found, team, Exhaustive, jit="off"))
    if compiled:
        with suppress(InputError):  # what cannot be compiled is refused
            results.append(solve(found, team, Exhaustive, jit="on"))
    for result in results:
        assert_accounted(result)
        assert result.accounting.total == right.legal.size
        assert points(result) == expected
    assert len({str(result.to_dict()["front"]) for result in results}) == 1
    for result in results[1:]:
        accounting, funnel = result.accounting, result.funnel
        assert accounting.outside == right.outside.sum()
        own: Counter[str] = Counter()
        for name, count in accounting.illegal_by.items():
            own["inactive" if name in data["dimensions"] else name] += count
        assert {name: count for name, count in own.items() if count} == right.illegal_by
        assert (accounting.evaluated, accounting.pruned) == (right.legal.sum(), 0)
        assert (funnel.failed, funnel.feasible) == (right.failed.sum(), right.feasible.sum())
        assert accounting.to_dict() == results[1].accounting.to_dict()
        assert funnel.to_dict() == results[1].funnel.to_dict()
    return len(results) - 2


@pytest.mark.parametrize("first", range(0, SMALL, PART))
def test_small_problems(first: int) -> None:
    done = sum(
        assert_equal(small(number), number, compiled=COMPILED and number % 8 == 0)
        for number in range(first, first + PART)
    )
    assert done >= PART // 8 - 3 or not COMPILED


@pytest.mark.parametrize("first", range(0, WIDE, PART // 2))
def test_larger_problems(first: int) -> None:
    done = sum(
        assert_equal(larger(number), number, compiled=COMPILED and number % 4 == 0)
        for number in range(first, first + PART // 2)
    )
    assert done >= PART // 8 - 2 or not COMPILED


@settings(max_examples=400, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(spaces(designs=200))
def test_drawn_problems(data: Data) -> None:
    designs = size(data)
    assume(designs >= 10)
    assert_equal(data, designs)


# -- what the problems are ----------------------------------------------------------------------------------


def test_problems_have_what_they_should() -> None:
    """Every form that is listed in the file's first lines, often enough to matter."""
    seen: Counter[str] = Counter()
    sizes = []
    everything = [small(number) for number in range(SMALL)] + [larger(number) for number in range(WIDE)]
    for data in everything:
        sizes.append(size(data))
        text = " ".join(str(data[part]) for part in ("lets", "rules", "metrics", "constraints", "teams"))
        for form in ("where(", "//", "%", " if ", "**", " in [", "min(", "max(", "floor(", "/ 0"):
            seen[form] += form in text
        seen["rows"] += any("columns" in table for table in data["tables"].values())
        seen["keys"] += any("keys" in table for table in data["tables"].values())
        seen["conditional"] += any("when" in declared for declared in data["dimensions"].values())
        seen[f"{len(data['objectives'])} objectives"] += 1
        seen["maximize"] += "maximize" in data["objectives"].values()
    assert min(sizes) == 10
    assert max(sizes) > 500_000
    assert [sum(s >= least for s in sizes) for least in (100, 1_000, 10_000, 100_000)] >= [250, 120, 50, 8]
    assert min(seen[f"{k} objectives"] for k in (1, 2, 3, 4)) > 250
    assert {form: count for form, count in seen.items() if count < 150} == {}


def test_values_are_what_they_should() -> None:
    """Negative and zero objectives, infinite ones, failures, ties and long fronts."""
    seen: Counter[str] = Counter()
    for data in [*map(small, range(0, SMALL, 6)), *map(larger, range(100))]:
        try:
            right = Everything(data)
        except Unclear:
            continue
        costs = right.costs[right.feasible]
        seen["negative"] += bool((costs < 0).any())
        seen["zero"] += bool((costs == 0).any())
        seen["both signs"] += bool(((costs < 0).any(axis=0) & (costs > 0).any(axis=0)).any())
        seen["infinite"] += bool(np.isinf(right.costs[right.legal]).any())
        seen["failed"] += bool(right.failed.any())
        seen["nothing feasible"] += not len(costs)
        seen["ties"] += any(len(tied) > 1 for _, tied in right.front)
        seen["several vectors"] += len(right.front) > 3
    assert {name: count for name, count in seen.items() if count < 20} == {}
    assert len(seen) == 8
