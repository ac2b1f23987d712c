"""A tally is the same whatever the order and the pieces that designs come in, and survives being written down."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from dse.evaluation import Judge, Outcomes, broken_rule
from dse.evaluation.hashing import uniform
from dse.problem import Problem
from dse.problem.library import load
from dse.study.tally import Records, Tally
from tests.randomspaces import problem

OPTIONS: dict[str, Any] = {"keep": 12, "top": 4, "objective": 0, "ties": True, "seed": 5}


def legal(found: Problem) -> list[int]:
    designs = ((index, found.design_at(found.digits_of(index))) for index in range(found.size))
    return [index for index, design in designs if broken_rule(found, design) is None]


def judged(found: Problem, indices: list[int]) -> tuple[np.ndarray[Any, Any], Outcomes, dict[str, Any]]:
    rows = np.array([found.digits_of(index) for index in indices], dtype=np.intp)
    rows = rows.reshape(len(indices), len(found.names))
    digits = {name: rows[:, at] for at, name in enumerate(found.names)}
    return np.array(indices, dtype=np.int64), Judge(found).evaluate(digits, len(indices)), digits


def facts(tally: Tally) -> dict[str, Any]:
    """Everything that a result is made from."""
    vectors, positions, ties = tally.archive.to_arrays()
    state: dict[str, Any] = {
        "counts": (tally.outside, tally.illegal, tally.pruned, tally.evaluated, tally.failed, tally.feasible),
        "funnel": (tally.alone, tally.in_order),
        "front": (vectors.tolist(), positions.tolist(), ties.tolist()),
        "tied": [part.tolist() for part in tally.archive.tied_positions()],
        "kept": {name: repr(column.tolist()) for name, column in tally.kept.arrays().items()},
        "best": {name: column.tolist() for name, column in tally.best.arrays().items()},
        "failures": tally.failures.positions.tolist(),
        "present": [seen.tolist() for seen in tally.present],
    }
    if not tally.feasible:
        state["nearest"] = {name: column.tolist() for name, column in tally.nearest.arrays().items()}
        state["relaxed"] = sorted(tally.relaxed.items())
    return state


def whole(found: Problem) -> Tally:
    tally = Tally(found, **OPTIONS)
    tally.add(*judged(found, legal(found)))
    return tally


def pieces(draw: random.Random, items: list[int]) -> list[list[int]]:
    shuffled = draw.sample(items, len(items))
    cuts = sorted(draw.randint(0, len(items)) for _ in range(draw.randint(0, 4)))
    return [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, len(items)], strict=True)]


@pytest.mark.parametrize("seed", range(0, 60, 20))
def test_order_and_pieces_do_not_matter(seed: int) -> None:
    for own in range(seed, seed + 20):
        found = problem(own, 40)
        draw = random.Random(own)
        expected = facts(whole(found))
        one = Tally(found, **OPTIONS)
        merged = Tally(found, **OPTIONS)
        for part in pieces(draw, legal(found)):
            one.add(*judged(found, part))
            other = Tally(found, **OPTIONS)
            other.add(*judged(found, part))
            merged.merge(other)
        assert facts(one) == expected
        assert facts(merged) == expected


def test_a_written_tally_reads_back_and_goes_on() -> None:
    for seed in range(30):
        found = problem(seed, 40)
        expected = facts(whole(found))
        tally = Tally(found, **OPTIONS)
        for at, part in enumerate(pieces(random.Random(seed), legal(found))):
            tally.add(*judged(found, part))
            data = tally.pack({"next": at})
            tally, extra = Tally.unpack(found, data)
            assert extra == {"next": at}
            assert tally.pack({"next": at}) == data
        assert facts(tally) == expected


def test_counts_past_2_to_the_64_are_exact() -> None:
    found = load("camera")
    a, b = Tally(found), Tally(found)
    a.prune("constraint latency", 10**30 + 1)
    b.prune("constraint latency", 10**30 + 2)
    b.outside = 2**70 + 1
    a.merge(b)
    a, _ = Tally.unpack(found, a.pack({}))
    assert a.pruned == {"constraint latency": 2 * 10**30 + 3}
    assert a.outside == 2**70 + 1


def test_records_keep_the_smallest_and_break_ties_by_position() -> None:
    records = Records(3, {"tag": 1})
    for keys, positions in (([2.0, 1.0], [9, 8]), ([1.0, 5.0], [3, 1]), ([1.0, 1.0], [7, 2])):
        tags = np.array(positions, dtype=np.float64)[:, None] * 10
        records.add(np.array(keys), np.array(positions, dtype=np.int64), {"tag": tags})
    held = {name: rows.tolist() for name, rows in records.arrays().items()}
    assert held == {"keys": [1.0, 1.0, 1.0], "positions": [2, 3, 7], "tag": [[20.0], [30.0], [70.0]]}
    nothing = Records(0, {})
    nothing.add(np.array([1.0]), np.array([1], dtype=np.int64), {})
    assert nothing.positions.size == 0


def test_records_that_wait_are_the_same_as_records_that_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(0)
    rows = [(float(draw.randint(0, 9)), position) for position in range(300)]
    draw.shuffle(rows)
    found = []
    for waiting in (0, 10, 10**6):
        monkeypatch.setattr("dse.study.tally._WAITING", waiting)
        records = Records(20, {})
        for start in range(0, 300, 7):
            keys, positions = zip(*rows[start : start + 7], strict=True)
            records.add(np.array(keys), np.array(positions, dtype=np.int64), {})
        found.append(records.positions.tolist())
    assert found == [[position for _, position in sorted(rows)[:20]]] * 3


def test_the_sampling_hash_is_splitmix64() -> None:
    """Steele et al. 2014: the first outputs of the generator seeded with 0."""
    first = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    golden = 0x9E3779B97F4A7C15
    positions = np.array([(golden * n) % 2**64 for n in range(3)], dtype=np.uint64).astype(np.int64)
    expected = [(value >> 11) / 2.0**53 for value in first]
    assert uniform(positions, 0).tolist() == expected
    many = uniform(np.arange(100_000, dtype=np.int64), 7)
    assert abs(many.mean() - 0.5) < 0.005
    assert not (many == uniform(np.arange(100_000, dtype=np.int64), 8)).any()


def test_fewer_broken_constraints_replace_more() -> None:
    """The smallest sets to relax, though larger ones were seen first, in one tally or in another."""
    found = load(
        {
            "dse": 1, "name": "misses", "dimensions": {"a": {"range": [0, 3]}},
            "metrics": {"x": {"expr": "a", "unit": 1}}, "objectives": {"x": "minimize"},
            "constraints": {"c": {"check": "a >= 4"}, "d": {"check": "a >= 2"}, "e": {"check": "a <= -1"}},
        }
    )  # fmt: skip
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [0, 3, 1, 2]):
        one, merged = Tally(found), Tally(found)
        for index in order:
            one.add(*judged(found, [index]))
            other = Tally(found)
            other.add(*judged(found, [index]))
            merged.merge(other)
        assert {mask: position for mask, (_, position) in one.relaxed.items()} == {0b101: 2}
        assert one.relaxed == merged.relaxed
