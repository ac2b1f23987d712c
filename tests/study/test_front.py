"""The front against a double loop, and the archive against order, blocks, merges and checkpoints."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dse.errors import DseError
from dse.study import dominance
from dse.study.dominance import covered, thin
from dse.study.front import Archive, FrontTooLarge, nondominated

Floats = NDArray[np.float64]
Rows = list[tuple[float, ...]]

INF = float("inf")
# Few values, so that ties are common; both zeros, both infinities, neighbours and extremes.
NUMBERS = st.sampled_from(
    [-INF, -1e308, -2.0, -1.0, -0.0, 0.0, 5e-324, 1.0, 1.0000000000000002, 2.0, 3.0, INF]
)


def matrix(rows: Rows, k: int) -> Floats:
    return np.array(rows, dtype=np.float64).reshape(len(rows), k)


def dominates(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    better = False
    for x, y in zip(a, b, strict=True):
        if x > y:
            return False
        if x < y:
            better = True
    return better


def oracle(rows: Rows) -> list[bool]:
    """The definition, by a double loop."""
    return [not any(dominates(other, row) for other in rows) for row in rows]


def oracle_archive(rows: Rows, positions: list[int]) -> list[tuple[tuple[float, ...], list[int]]]:
    """Distinct front vectors in order, each with its ascending positions."""
    found: dict[tuple[float, ...], list[int]] = {}
    for row, position, keep in zip(rows, positions, oracle(rows), strict=True):
        if keep:
            found.setdefault(tuple(x + 0.0 for x in row), []).append(position)
    return [(vector, sorted(found[vector])) for vector in sorted(found)]


@st.composite
def row_sets(draw: st.DrawFn, max_size: int = 30) -> tuple[int, Rows]:
    k = draw(st.integers(1, 5))
    numbers = draw(st.sampled_from([NUMBERS, st.integers(-3, 3).map(float), st.floats(allow_nan=False)]))
    return k, draw(st.lists(st.tuples(*[numbers] * k), max_size=max_size))


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thresholds so low that small sets pass through every branch."""
    for name, value in {"_SAMPLE": 2, "_GUARDS": 2, "_FEW": 1, "_LEAF": 2, "_PAIRS": 3}.items():
        monkeypatch.setattr(dominance, name, value)


@given(row_sets())
def test_nondominated_is_the_definition(case: tuple[int, Rows]) -> None:
    k, rows = case
    assert nondominated(matrix(rows, k)).tolist() == oracle(rows)


@pytest.mark.usefixtures("small_steps")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(row_sets(max_size=40))
def test_nondominated_is_the_definition_in_every_branch(case: tuple[int, Rows]) -> None:
    k, rows = case
    assert nondominated(matrix(rows, k)).tolist() == oracle(rows)
    kept = set(thin(np.ascontiguousarray(matrix(rows, k).T)).tolist())
    assert {i for i, keep in enumerate(oracle(rows)) if keep} <= kept


@pytest.mark.usefixtures("small_steps")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.data(), st.integers(1, 5))
def test_covered_is_the_definition_in_every_branch(data: st.DataObject, k: int) -> None:
    numbers = st.tuples(*[NUMBERS] * k)
    front, rows = data.draw(st.lists(numbers, max_size=20)), data.draw(st.lists(numbers, max_size=20))
    expected = [any(all(x <= y for x, y in zip(f, row, strict=True)) for f in front) for row in rows]
    assert covered(matrix(front, k).T, matrix(rows, k).T).tolist() == expected


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("shape", ["uniform", "grid", "sphere", "one value"])
def test_larger_sets(k: int, shape: str) -> None:
    rng = np.random.default_rng(k)
    values = rng.standard_normal((6000, k))
    if shape == "grid":
        values = np.round(values * 2)
    if shape == "sphere":
        values = -np.abs(values) / np.linalg.norm(values, axis=1, keepdims=True)
    if shape == "one value":
        values[:] = 1.0
    mask = nondominated(values)
    chosen = values[mask]
    for row, keep in zip(values[::7], mask[::7], strict=True):
        # A dominated row is dominated by a row of the true front; a kept one by no row at all.
        among = values if keep else chosen
        beaten = (among <= row).all(axis=1) & (among < row).any(axis=1)
        assert beaten.any() != keep


@given(row_sets(), st.randoms())
def test_order_and_repetition_do_not_matter(case: tuple[int, Rows], random: Any) -> None:
    k, rows = case
    kept = {row for row, keep in zip(rows, nondominated(matrix(rows, k)), strict=True) if keep}
    again = rows + random.choices(rows, k=len(rows) // 2) if rows else []
    random.shuffle(again)
    for row, keep in zip(again, nondominated(matrix(again, k)), strict=True):
        assert keep == (row in kept)


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((3, 0)), np.zeros((2, 2, 2)), [[1.0, float("nan")]]])
def test_nondominated_refuses(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"must have shape|NaN"):
        nondominated(bad)


# ------------------------------------------------------------------------------------------------- archive


def cut(rows: Rows, cuts: list[int]) -> list[slice]:
    ends = sorted({0, len(rows), *(c % (len(rows) + 1) for c in cuts)})
    return [slice(a, b) for a, b in pairwise(ends)]


def contents(archive: Archive) -> list[tuple[Any, ...]]:
    values, positions, ties = archive.to_arrays()
    assert positions.dtype == ties.dtype == np.int64
    assert values.shape == (len(archive), archive.k)
    assert values.tobytes() == (values + 0.0).tobytes()  # no -0.0
    rows = [tuple(row) for row in values.tolist()]
    assert rows == sorted(rows)
    tied = [part.tolist() for part in archive.tied_positions()] if archive.keep_ties else [None] * len(rows)
    return list(zip(rows, positions.tolist(), ties.tolist(), tied, strict=True))


@given(row_sets(), st.lists(st.integers(0, 30), max_size=3), st.booleans(), st.booleans(), st.randoms())
def test_archive_is_the_front_in_any_order(
    case: tuple[int, Rows], cuts: list[int], keep_ties: bool, settle: bool, random: Any
) -> None:
    k, rows = case
    expected = [
        (vector, places[0], len(places), places if keep_ties else None)
        for vector, places in oracle_archive(rows, list(range(len(rows))))
    ]
    order = list(range(len(rows)))
    random.shuffle(order)
    values = matrix(rows, k)
    archive = Archive(k, keep_ties=keep_ties)
    for part in cut(rows, cuts):
        archive.add(values[order[part]], np.array(order[part], dtype=np.int64))
        if settle:
            len(archive)
    assert contents(archive) == expected


@given(row_sets(), st.lists(st.integers(0, 30), min_size=2, max_size=2), st.booleans())
def test_merge_is_associative_and_commutative(
    case: tuple[int, Rows], cuts: list[int], keep_ties: bool
) -> None:
    k, rows = case
    values = matrix(rows, k)
    parts = [*cut(rows, cuts), slice(0, 0), slice(0, 0), slice(0, 0)][:3]

    def archive(part: slice) -> Archive:
        made = Archive(k, keep_ties=keep_ties)
        made.add(values[part], np.arange(len(rows))[part])
        return made

    left, middle, right = map(archive, parts)
    left.merge(middle)
    left.merge(right)
    first, second, third = map(archive, parts)
    third.merge(second)
    third.merge(first)
    whole = archive(slice(None))
    assert contents(left) == contents(third) == contents(whole)
    assert contents(second) == contents(middle)  # the merged one is left as it was


@given(row_sets(), row_sets(), st.booleans())
def test_dominates(case: tuple[int, Rows], others: tuple[int, Rows], or_equal: bool) -> None:
    k, rows = case
    asked = [row[:k] for row in others[1]] if others[0] >= k else list(rows)
    archive = Archive(k)
    archive.add(matrix(rows, k), np.arange(len(rows)))
    expected = [any(dominates(row, q) or (or_equal and row == q) for row in rows) for q in asked]
    assert archive.dominates(matrix(asked, k), or_equal=or_equal).tolist() == expected


@given(row_sets(), st.booleans(), st.integers(0, 30))
def test_state_and_pickle_continue_where_they_were(case: tuple[int, Rows], keep_ties: bool, at: int) -> None:
    k, rows = case
    at = min(at, len(rows))
    values, positions = matrix(rows, k), np.arange(len(rows))
    archive = Archive(k, keep_ties=keep_ties)
    archive.add(values[:at], positions[:at])
    pickled = pickle.loads(pickle.dumps(archive))
    restored = Archive.from_state({name: array.copy() for name, array in archive.state().items()})
    assert contents(restored) == contents(pickled) == contents(archive)
    for each in (archive, restored, pickled):
        each.add(values[at:], positions[at:])
    assert contents(restored) == contents(pickled) == contents(archive)


def test_a_long_stream_equals_one_batch() -> None:
    rng = np.random.default_rng(3)
    values = np.round(rng.standard_normal((60_000, 3)), 1)
    values[:, 2] = np.round(-values[:, 0] - values[:, 1], 1)  # everything on one tilted plane
    positions = rng.permutation(60_000)
    archive, once = Archive(3), Archive(3)
    for start in range(0, 60_000, 1000):
        archive.add(values[start : start + 1000], positions[start : start + 1000])
    once.add(values, positions)
    assert contents(archive) == contents(once)
    mask = nondominated(values)
    distinct = np.unique(values[mask] + 0.0, axis=0)
    assert len(distinct) > 2000
    assert np.array_equal(archive.to_arrays()[0], distinct)
    assert archive.to_arrays()[2].sum() == mask.sum()


def test_single_designs_are_settled_late_but_exactly() -> None:
    archive = Archive(2)
    for i in range(300):
        archive.add([[float(i % 7), float(-(i % 7))]], [299 - i])
    assert contents(archive)[0] == ((0.0, 0.0), 299 - 294, 43, None)
    assert len(archive) == 7


def test_limit() -> None:
    archive = Archive(2, limit=3)
    archive.add([[0.0, 3.0], [1.0, 2.0], [2.0, 1.0]], [0, 1, 2])
    assert len(archive) == 3
    archive.add([[3.0, 0.0]], [3])
    with pytest.raises(FrontTooLarge, match=r"at most 3 distinct vectors, but 4 .*--top") as caught:
        archive.check()
    assert isinstance(caught.value, DseError)
    listed = Archive(1, limit=3, keep_ties=True)
    listed.add([[0.0]] * 4, [0, 1, 2, 3])
    with pytest.raises(FrontTooLarge, match=r"at most 3 tied designs can be listed, but 4"):
        listed.check()


@pytest.mark.parametrize("keep_ties", [False, True])
def test_a_front_is_refused_for_what_it_is_in_the_end(keep_ties: bool) -> None:
    on_the_way = [[float(at), 5.0 - at] for at in range(6)]
    for order in ([*on_the_way, [0.0, 0.0]], [[0.0, 0.0], *on_the_way]):
        archive = Archive(2, limit=3, keep_ties=keep_ties)
        for position, row in enumerate(order):
            archive.add([row], [position])
            assert len(archive) <= 6
        archive.check()
        assert archive.to_arrays()[0].tolist() == [[0.0, 0.0]]
    archive = Archive(2, limit=3, keep_ties=keep_ties)
    archive.add([[float(at), 6.0 - at] for at in range(7)], range(7))
    with pytest.raises(FrontTooLarge, match="but 7 are found so far"):
        len(archive)


def test_ties_are_refused_for_what_they_are_in_the_end() -> None:
    archive = Archive(1, limit=3, keep_ties=True)
    archive.add([[1.0]] * 6, range(6))
    assert len(archive) == 1
    archive.add([[0.0]], [6])
    archive.check()
    archive.add([[0.0]] * 6, range(7, 13))
    with pytest.raises(FrontTooLarge, match="but 7 are found so far"):
        len(archive)


def test_archive_refuses() -> None:
    archive = Archive(2)
    with pytest.raises(ValueError, match=r"NaN, but row 1 is"):
        archive.add([[0.0, 0.0], [0.0, float("nan")]], [0, 1])
    with pytest.raises(ValueError, match=r"shape \(n, 2\)"):
        archive.add([[0.0]], [0])
    for positions in ([0, 1], [0.5], [2**63]):
        with pytest.raises(ValueError, match="positions must"):
            archive.add([[0.0, 0.0]], positions)
    with pytest.raises(ValueError, match="agree"):
        archive.merge(Archive(3))
    with pytest.raises(ValueError, match="agree"):
        archive.merge(Archive(2, keep_ties=True))
    with pytest.raises(ValueError, match="keep_ties=True"):
        archive.tied_positions()
    with pytest.raises(ValueError, match="at least 1"):
        Archive(0)
    with pytest.raises(ValueError, match="must have positions, ties"):
        Archive.from_state({"values": [[0.0]]})
    with pytest.raises(ValueError, match="equal length"):
        Archive.from_state({"values": [[0.0]], "positions": [0, 1], "ties": [1]})
    assert len(archive) == 0


def test_a_vector_of_the_front_given_again_is_a_tie() -> None:
    archive = Archive(2, keep_ties=True)
    archive.add([[0.0, 1.0], [1.0, 0.0]], [8, 9])
    assert len(archive) == 2
    archive.add([[-0.0, 1.0], [1.0, 1.0]], [3, 4])
    assert contents(archive) == [((0.0, 1.0), 3, 2, [3, 8]), ((1.0, 0.0), 9, 1, [9])]
