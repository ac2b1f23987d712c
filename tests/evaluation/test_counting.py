"""Counts, numbers, draws and lists of legal designs, against brute force, closed forms and published figures."""

from __future__ import annotations

import json
import math
import resource
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from dse.errors import InputError
from dse.evaluation import broken_rule, evaluate_nodes
from dse.evaluation.bulk import BulkEvaluator
from dse.evaluation.counting import LegalSpace, TooLarge, joining, legal_designs, listing, unranking
from dse.evaluation.counting.conditions import broken, clauses, holds
from dse.evaluation.counting.legal import draw_below
from dse.problem import Problem, Team
from dse.problem.library import load
from dse.problem.neutral import to_space
from tests.bruteforce import truth
from tests.randomspaces import problem, spaces

NEUTRAL = Path(__file__).parents[1] / "neutral"
REAL = ["hotspot", "kt_gpu_layers", "cs_minisat_hack", "ytopt_conv2d", "trap_neg_product"]


def made(dimensions: dict[str, Any], rules: Iterable[str] = (), **more: Any) -> Problem:
    checks = {f"r{at}": {"check": text, "because": "no"} for at, text in enumerate(rules)}
    costs = {"metrics": {"cost": {"expr": 1, "unit": "1"}}, "objectives": {"cost": "minimize"}}
    return load({"dse": 1, "name": "made", "dimensions": dimensions, "rules": checks, **costs, **more})


def digits(count: int, low: int = 0, high: int = 9) -> dict[str, Any]:
    return {f"d{at}": {"range": [low, high]} for at in range(count)}


def real(name: str) -> tuple[Problem, dict[str, Any]]:
    data = json.loads((NEUTRAL / f"{name}.json").read_text(encoding="utf-8"))
    return load(to_space(data)), data


def check(found: Problem, team: Team | None = None) -> None:
    """The count, every number's design and the list, against the definition."""
    right = sorted(truth(found, team).verdicts)
    legal = LegalSpace(found, team)
    assert legal.count == len(right)
    designs = legal.designs(range(legal.count))
    assert sorted(found.index_of(row) for row in designs.tolist()) == right
    for few in (listing.FEW, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(listing, "FEW", few)
            blocks = list(legal_designs(found, team))
        assert [found.index_of(row) for block in blocks for row in block.tolist()] == right


# -- against the definition ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_random_problems_and_their_teams(seed: int) -> None:
    found = problem(1000 + seed)
    names = list(found.teams)
    unions = [f"{a} | {b}" for a in names for b in names if a != b]
    for text in [None, *names, *unions[:3]]:
        check(found, found.team(text))


@settings(max_examples=60, deadline=None)
@given(spaces())
def test_any_problem(data: dict[str, Any]) -> None:
    check(load(data))


@pytest.mark.parametrize("seed", range(40))
def test_nothing_changes_when_little_fits_into_memory(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Joins in chunks, groups in pieces, estimates from samples, and states that are found one by one."""
    for name, value in {"ROWS": 3, "_CHUNK": 4, "_TRIAL": 0, "_SAMPLE": 2, "_KEPT": 20}.items():
        monkeypatch.setattr(joining, name, value)
    monkeypatch.setattr(unranking, "_PAIRS", seed % 2 * 4)
    monkeypatch.setattr(unranking, "_REMEMBERED", 10)
    found = problem(2000 + seed, 100)
    right = truth(found).verdicts
    legal = LegalSpace(found)
    assert legal.count == len(right)
    designs = legal.designs(range(legal.count))
    assert {found.index_of(row) for row in designs.tolist()} == set(right)


@pytest.mark.parametrize("chunk", [1, 3, 1000])
@pytest.mark.parametrize("few", [True, False])
def test_lists_in_chunks(chunk: int, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not few:
        monkeypatch.setattr(listing, "FEW", -1)
    for seed in range(1004, 1012):
        found = problem(seed)
        team = found.team(next(iter(found.teams), None))
        blocks = list(legal_designs(found, team, chunk))
        assert all(0 < len(block) <= chunk for block in blocks)
        listed = [found.index_of(row) for block in blocks for row in block.tolist()]
        assert listed == sorted(truth(found, team).verdicts)


CONDITIONS = [
    "a / b > 1 and (a - 2) / (b - 2) < 3",
    "not (a / b > 1 and (a - 2) / (b - 2) < 3)",
    "(a - 2) / (b - 2) < 3 or a == 2",
    "a == 2 or (a - 2) / (b - 2) < 3 and b > 1",
    "(b != 2 and (a - 2) / (b - 2) < 3) or a == 2",
    "not (not (b != 2 and (a - 2) / (b - 2) < 3) and a != 2)",
    "min(a, b, a * b - 3) >= 1",
    "not max(a, (a - 2) / (b - 2)) < 2",
    "min((a - 2) / (b - 2), 1) <= max(b, a / 2)",
    "not (min((a - 2) / (b - 2), b) <= 1)",
    "(a == 1 and b == 1) or (a == 2 and b == 2) or (a == 3 and c)",
    "holes[a] > 1 or b == 2",
    "b == 2 or holes[a] > 1",
    "(b == 2 and holes[a] > 1) or a == 3",
    "a in [1, 3] and not (b in [2, 3] and c)",
    "(b != 2 and min((a - 2) / (b - 2), 5) < 3) or a == 2",
    "(b != 2 and max((a - 2) / (b - 2), 0) * 2 < 3) or a == 2",
    "(b != 2 and a % (b - 2) < 1) or a == 2",
    "c if a > 1 else (a - 2) / (b - 2) < 0",
]


@pytest.mark.parametrize("text", CONDITIONS)
def test_clauses_hold_where_the_condition_does(text: str) -> None:
    """NaN, missing cells and the operands after a deciding one included."""
    found = made(
        {"a": [0, 1, 2, 3], "b": [0, 1, 2, 3], "c": [False, True]},
        [text],
        tables={"holes": {"keys": ["a"], "unit": "1", "rows": {"1": 1, "3": 3}}},
    )
    node = found.rules[0].check
    parts = clauses(found, [node])
    rows = [found.digits_of(index) for index in range(found.size)]
    columns = {name: np.array([row[at] for row in rows]) for at, name in enumerate(found.names)}
    values = BulkEvaluator(found, [node, *(arg for part in parts for arg in part.args)]).evaluate(columns)
    met = np.ones(found.size, dtype=np.bool_)
    for part in parts:
        met &= np.broadcast_to(holds(part, values), found.size)
    right = [evaluate_nodes(found, found.design_at(row), [node])[node] is True for row in rows]
    assert met.tolist() == right
    assert np.broadcast_to(holds(broken(node), values), found.size).tolist() == [not held for held in right]


def test_conditions_are_cut_into_parts_that_read_less() -> None:
    pinned = " and ".join(f"d{at} == 0" for at in range(1, 6))
    found = made(digits(6), [f"d0 != 0 or ({pinned})", "min(d1, d2) >= 1"])
    parts = clauses(found, [rule.check for rule in found.rules])
    reads = [{name for arg in part.args for name in found.graph[arg].support} for part in parts]
    assert reads == [{"d0", f"d{at}"} for at in range(1, 6)] + [{"d1"}, {"d2"}]


def test_zeros_of_both_signs_stay_apart() -> None:
    """0 * -1 is -0.0, equal to 0.0, but 1 / -0.0 is minus infinity."""
    check(made({"a": [0, 1], "b": [-1, 1], "c": [1, 2]}, ["c / (a * b) > 0"]))


# -- against closed forms --------------------------------------------------------------------------


def test_independent_parts_multiply_past_2_to_the_200() -> None:
    pairs = made(digits(60, 1, 20), [f"d{at} <= d{at + 1}" for at in range(0, 60, 2)])
    legal = LegalSpace(pairs)
    assert legal.count == 210**30 > 2**200
    designs = legal.draw(np.random.default_rng(1), 300)
    assert all(broken_rule(pairs, pairs.design_at(row)) is None for row in designs[:20].tolist())
    # Of the 210 pairs 20 are equal.
    equal = int((designs[:, ::2] == designs[:, 1::2]).sum())
    expected = 300 * 30 * 20 / 210
    assert abs(equal - expected) < 5 * math.sqrt(expected)


def test_a_space_without_rules_is_as_large_as_it_looks() -> None:
    free = made({f"d{at}": [0, 1] for at in range(300)})
    legal = LegalSpace(free)
    assert legal.count == 2**300
    assert legal.designs([0, 2**300 - 1]).sum(axis=1).tolist() == [0, 300]


def test_a_chain_of_dimensions_is_counted_link_by_link() -> None:
    chain = made(digits(80, 1, 20), [f"d{at} <= d{at + 1}" for at in range(79)])
    legal = LegalSpace(chain)
    assert legal.count == math.comb(99, 80)
    (design,) = legal.draw(np.random.default_rng(0)).tolist()
    assert design == sorted(design)


def test_sums_are_counted_by_their_values() -> None:
    """Lucky tickets: the digits of both halves have the same sum."""
    halves = [" + ".join(f"d{at}" for at in part) for part in (range(15), range(15, 30))]
    sums = np.array([1], dtype=object)
    for _ in range(15):
        sums = np.convolve(sums, np.ones(10, dtype=object))
    assert LegalSpace(made(digits(30), [" == ".join(halves)])).count == sum(int(n) ** 2 for n in sums)


def test_queens() -> None:
    apart = [
        f"d{a} != d{b} and abs(d{a} - d{b}) != {b - a}" for a in range(8) for b in range(a + 1, 8)
    ]  # fmt: skip
    assert LegalSpace(made(digits(8, 1, 8), apart)).count == 92


def test_a_contradiction_leaves_nothing() -> None:
    none = made(digits(30, 1, 20), [f"d{at} < d{at + 1}" for at in range(29)])
    legal = LegalSpace(none)
    assert legal.count == 0
    assert legal.designs([]).shape == (0, 30)
    assert list(legal_designs(made(digits(3), ["d0 > 99"]))) == []
    assert LegalSpace(made(digits(3), ["1 > 2"])).count == 0


def test_a_dimension_of_ten_million_values_fits_into_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wide = made({"n": {"range": [1, 10_000_000]}, "a": [1, 2, 3, 4]}, ["n % a == 0"])
    assert LegalSpace(wide).count == sum(10_000_000 // a for a in (1, 2, 3, 4))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 450_000  # KB


def test_rules_that_couple_too_much_are_refused_by_name() -> None:
    coupled = " + ".join(f"log(d{at} + 1.5) * {at + 1}" for at in range(30))
    found = made(digits(30, 1, 99), [f"{coupled} < 1e3"])
    with pytest.raises(TooLarge, match=r"cannot be counted: the rules couple d\d+, .* combinations"):
        _ = LegalSpace(found, work=2**24).count


def test_continuous_dimensions_are_refused() -> None:
    with pytest.raises(InputError, match="continuous"):
        LegalSpace(made({"rate": {"range": [0.0, 1.0]}}))


# -- teams -----------------------------------------------------------------------------------------


def test_overlapping_teams_count_each_design_once() -> None:
    found = made(
        digits(4),
        ["d0 + d1 <= d2"],
        teams={
            "a": {"d0": [0, 1, 2], "where": "d3 / d0 < 2"},
            "b": {"d0": [1, 2, 3], "d1": [0, 1, 2], "where": "d3 > d1 and d2 > 3"},
            "c": {"d2": [9]},
        },
    )
    assert LegalSpace(found, found.team("a") & found.team("c") & made_team(found, "d2", 0.0)).count == 0
    for text in ("a", "a | b", "a | b | c", "a & b | c", "c | a & b"):
        check(found, found.team(text))


# -- real spaces -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REAL)
def test_real_spaces_have_their_published_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, data = real(name)
    assert found.size == data["cartesian"]
    assert LegalSpace(found).count == data["valid"]
    assert sum(map(len, legal_designs(found))) == data["valid"]
    if name != "hotspot":
        monkeypatch.setattr(listing, "FEW", -1)
        assert sum(map(len, legal_designs(found))) == data["valid"]


def test_every_number_is_a_design_of_its_own() -> None:
    found, data = real("ytopt_conv2d")
    designs = LegalSpace(found).designs(range(data["valid"]))
    assert len({tuple(row) for row in designs.tolist()}) == data["valid"]
    assert all(broken_rule(found, found.design_at(row)) is None for row in designs[::50].tolist())


# -- draws -----------------------------------------------------------------------------------------


def chi_square(seen: Sequence[int], expected: Sequence[float]) -> float:
    return sum((n - e) ** 2 / e for n, e in zip(seen, expected, strict=True))


def test_draws_are_uniform() -> None:
    found = made(digits(4, 0, 5), ["d0 + d1 * d2 <= d3"])
    count = LegalSpace(found).count
    drawn = Counter(map(tuple, LegalSpace(found).draw(np.random.default_rng(7), 50 * count).tolist()))
    assert set(drawn) == {found.digits_of(index) for index in truth(found).verdicts}
    statistic = chi_square(list(drawn.values()), [50.0] * count)
    assert abs(statistic - (count - 1)) < 4 * math.sqrt(2 * (count - 1))


def test_draws_from_a_large_space_have_its_marginals() -> None:
    found, data = real("hotspot")
    designs = LegalSpace(found).draw(np.random.default_rng(3), 20_000)
    for at, dimension in enumerate(found.dimensions):
        counts = []
        for value in dimension.values:
            only = made_team(found, dimension.name, value)
            counts.append(LegalSpace(found, only).count)
        assert sum(counts) == data["valid"]
        seen = np.bincount(designs[:, at], minlength=len(counts))
        expected = [20_000 * n / data["valid"] for n in counts]
        likely = [at for at, e in enumerate(expected) if e > 5]
        statistic = chi_square([int(seen[at]) for at in likely], [expected[at] for at in likely])
        assert statistic < len(likely) + 5 * math.sqrt(2 * len(likely))


def made_team(found: Problem, name: str, value: object) -> Team:
    box = found.everything.boxes[0]
    at = found.names.index(name)
    allowed = (*box.allowed[:at], (found.digit(name, value),), *box.allowed[at + 1 :])
    return Team("only", (type(box)(allowed),))


def test_draws_depend_on_the_seed_alone() -> None:
    found, _ = real("kt_gpu_layers")
    legal = LegalSpace(found)
    first = legal.draw(np.random.default_rng(5), 20)
    rng = np.random.default_rng(5)
    one_by_one = [LegalSpace(found).draw(rng)[0].tolist() for _ in range(20)]
    assert first.tolist() == one_by_one
    assert first.tolist() != legal.draw(np.random.default_rng(6), 20).tolist()


@pytest.mark.parametrize("bound", [1, 5, 2**62, 2**62 + 1, 3**200])
def test_integers_of_any_size_are_drawn_below_a_bound(bound: int) -> None:
    rng = np.random.default_rng(0)
    drawn = [draw_below(rng, bound) for _ in range(500)]
    assert all(0 <= n < bound for n in drawn)
    assert abs(sum(drawn) / 500 - (bound - 1) / 2) <= bound * 0.1
