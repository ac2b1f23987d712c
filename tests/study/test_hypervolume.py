"""The hypervolume against exact cell counting with fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.study.hypervolume import hypervolume, normalized_hypervolume

Rows = list[tuple[float, ...]]
INF = float("inf")


def oracle(rows: Rows, reference: tuple[float, ...]) -> Fraction:
    """Cut space at every coordinate and add up the cells that some vector dominates."""
    k = len(reference)
    below = [row for row in rows if all(x < r for x, r in zip(row, reference, strict=True))]
    cuts = [sorted({row[j] for row in below} | {reference[j]}) for j in range(k)]
    total = Fraction(0)
    for cell in product(*[range(len(c) - 1) for c in cuts]):
        corner = [cuts[j][i] for j, i in enumerate(cell)]
        if any(all(x <= c for x, c in zip(row, corner, strict=True)) for row in below):
            total += math.prod(
                (Fraction(cuts[j][i + 1]) - Fraction(cuts[j][i]) for j, i in enumerate(cell)),
                start=Fraction(1),
            )
    return total


@st.composite
def cases(draw: st.DrawFn, numbers: st.SearchStrategy[float]) -> tuple[Rows, tuple[float, ...]]:
    k = draw(st.integers(1, 5))
    rows = draw(st.lists(st.tuples(*[numbers] * k), max_size=[20, 12, 8, 6, 4][k - 1]))
    return rows, draw(st.tuples(*[numbers] * k))


def values(rows: Rows, k: int) -> Any:
    return np.array(rows, dtype=np.float64).reshape(len(rows), k)


@given(cases(st.integers(-4, 4).map(float)))
def test_whole_numbers_are_exact(case: tuple[Rows, tuple[float, ...]]) -> None:
    rows, reference = case
    assert hypervolume(values(rows, len(reference)), reference) == oracle(rows, reference)


@given(cases(st.floats(-1e6, 1e6)))
def test_reals_to_the_last_digits(case: tuple[Rows, tuple[float, ...]]) -> None:
    rows, reference = case
    exact = oracle(rows, reference)
    got = Fraction(hypervolume(values(rows, len(reference)), reference))
    assert abs(got - exact) <= exact / 10**14 + Fraction(1, 10**290)


@given(cases(st.floats(-10, 10)), st.randoms())
def test_order_repetition_and_dominated_vectors_do_not_matter(
    case: tuple[Rows, tuple[float, ...]], random: Any
) -> None:
    rows, reference = case
    k = len(reference)
    expected = hypervolume(values(rows, k), reference)
    more = rows + [tuple(x + random.choice([0.0, 1.0, INF]) for x in row) for row in rows]
    random.shuffle(more)
    assert hypervolume(values(more, k), reference) == expected


@given(cases(st.floats(-10, 10)), st.data())
@settings(max_examples=50)
def test_another_vector_never_takes_volume_away(
    case: tuple[Rows, tuple[float, ...]], data: st.DataObject
) -> None:
    rows, reference = case
    k = len(reference)
    other = data.draw(st.tuples(*[st.floats(-10, 10)] * k))
    before, after = (hypervolume(values(r, k), reference) for r in (rows, [*rows, other]))
    assert after >= before * (1 - 1e-14)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_larger_fronts_agree_with_slices_of_one_objective_more(k: int) -> None:
    rng = np.random.default_rng(k)
    points = rng.random((60, k))
    reference = np.ones(k)
    deeper = np.hstack([points, np.zeros((60, 1))])  # a unit-thick slab: one more objective, the same volume
    assert hypervolume(points, reference) == pytest.approx(
        hypervolume(deeper, np.ones(k + 1)), rel=1e-14, abs=0.0
    )


def test_infinities_and_the_edge() -> None:
    assert hypervolume([[0.0, INF], [1.0, 1.0]], [2.0, 2.0]) == 1.0
    assert hypervolume([[-INF, 0.0]], [2.0, 2.0]) == INF
    assert hypervolume([[-INF, 2.0]], [2.0, 2.0]) == 0.0
    assert hypervolume([[-1e308, 0.0]], [1e308, 1.0]) == INF
    assert hypervolume([[-1e200, -1e200], [-2e200, 0.0]], [1.0, 1.0]) == INF
    assert hypervolume(np.empty((0, 3)), [1.0, 1.0, 1.0]) == 0.0
    assert hypervolume([[3.0]], [1.0]) == 0.0


@pytest.mark.parametrize(
    ("rows", "reference"),
    [([[math.nan]], [1.0]), ([[0.0]], [1.0, 1.0]), ([[0.0]], [INF]), ([[0.0]], [math.nan]), ([0.0], [1.0])],
)
def test_refuses(rows: Any, reference: Any) -> None:
    with pytest.raises(ValueError, match=r"must"):
        hypervolume(rows, reference)


@given(cases(st.floats(-100, 100) | st.sampled_from([INF, -INF])))
def test_normalized_is_a_share(case: tuple[Rows, tuple[float, ...]]) -> None:
    rows, reference = case
    k = len(reference)
    share = normalized_hypervolume(values(rows, k), [-7.0] * k, [9.0] * k)
    clipped = [tuple(max(x, -7.0) for x in row) for row in rows]
    assert 0.0 <= share <= 1.0
    assert share == pytest.approx(float(oracle(clipped, (9.0,) * k) / 16**k), rel=1e-12, abs=1e-300)


def test_normalized_ends() -> None:
    assert normalized_hypervolume([[0.0, 0.0]], [0.0, 0.0], [3.0, 7.0]) == 1.0
    assert normalized_hypervolume([[3.0, 0.0]], [0.0, 0.0], [3.0, 7.0]) == 0.0
    for ideal in ([1.0, 0.0], [2.0, 0.0], [-INF, 0.0], [0.0]):
        with pytest.raises(ValueError, match="ideal"):
            normalized_hypervolume([[0.0, 0.0]], ideal, [1.0, 1.0])
