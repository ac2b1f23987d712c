"""Scores of predictions: against pandas, by hand, and what must hold of any data."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.study import scoring

VALUES = st.lists(st.integers(0, 6).map(float), min_size=2, max_size=12)
PAIRS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12)
few = settings(max_examples=60, deadline=None)


@few
@given(VALUES)
def test_ranks_are_those_of_pandas(values: list[float]) -> None:
    assert scoring.average_ranks(values).tolist() == pd.Series(values).rank().tolist()


@few
@given(PAIRS)
def test_spearman_is_the_correlation_of_pandas_ranks(pairs: list[tuple[int, int]]) -> None:
    first, second = (pd.Series(side, dtype=float) for side in zip(*pairs, strict=True))
    found = scoring.spearman(first.to_list(), second.to_list())
    if first.nunique() < 2 or second.nunique() < 2:
        assert found is None
    else:
        assert found == pytest.approx(first.rank().corr(second.rank()), abs=1e-12)


@few
@given(PAIRS)
def test_spearman_sees_the_order_only(pairs: list[tuple[int, int]]) -> None:
    first, second = ([float(value) for value in side] for side in zip(*pairs, strict=True))
    found = scoring.spearman(first, second)
    assert scoring.spearman([math.exp(value) for value in first], second) == found
    assert scoring.spearman(second, first) == found
    turned = scoring.spearman([-value for value in first], second)
    assert turned == (None if found is None else pytest.approx(-found))


def test_spearman_of_few_or_constant_values_is_undefined() -> None:
    assert scoring.spearman([], []) is None
    assert scoring.spearman([1.0], [2.0]) is None
    assert scoring.spearman([1.0, 1.0], [1.0, 2.0]) is None
    assert scoring.spearman([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]) == 1.0


@few
@given(PAIRS)
def test_errors_are_those_of_pandas(pairs: list[tuple[int, int]]) -> None:
    measured, predicted = (pd.Series(side, dtype=float) for side in zip(*pairs, strict=True))
    found = scoring.errors(measured.to_numpy(), predicted.to_numpy())
    signed = (predicted - measured) / measured
    size = signed.abs()
    expected = (len(pairs), size.mean(), size.median(), signed.mean(), size.quantile(0.9))
    got = (found.count, found.mean, found.median, found.bias, found.p90)
    assert got == pytest.approx(expected, abs=1e-12)
    assert abs(found.bias) <= found.mean + 1e-12


@few
@given(PAIRS, st.integers(0, 3))
def test_the_macro_mean_is_a_mean_of_means(pairs: list[tuple[int, int]], turn: int) -> None:
    frame = pd.DataFrame(pairs, columns=["measured", "predicted"], dtype=float)
    frame["source"] = [f"s{(at + turn) % 3}" for at in range(len(frame))]
    frame["model"] = [f"m{at % 2}" for at in range(len(frame))]
    keys = list(zip(frame["source"], frame["model"], strict=True))
    groups = scoring.errors_by(keys, frame["measured"].to_numpy(), frame["predicted"].to_numpy())
    frame["size"] = (frame["predicted"] / frame["measured"] - 1).abs()
    expected = frame.groupby(["source", "model"])["size"].mean().groupby("source").mean().mean()
    assert scoring.macro(groups) == pytest.approx(expected)
    # repeating every run moves no group's mean, and so not the macro mean
    twice = scoring.errors_by(
        keys + keys, np.tile(frame["measured"].to_numpy(), 2), np.tile(frame["predicted"].to_numpy(), 2)
    )
    assert scoring.macro(twice) == pytest.approx(scoring.macro(groups))


def test_the_macro_mean_weighs_sources_alike() -> None:
    keys = [("a", "x")] * 98 + [("a", "y"), ("b", "z")]
    measured, predicted = np.full(100, 10.0), np.array([10.0] * 98 + [12.0, 14.0])
    groups = scoring.errors_by(keys, measured, predicted)
    assert scoring.macro(groups) == pytest.approx((0.5 * (0.0 + 0.2) + 0.4) / 2)
    assert math.isnan(scoring.macro({}))


def test_identical_configurations_collapse_to_their_median() -> None:
    found = scoring.collapse(["a", "b", "a", "a"], [3.0, 5.0, 2.0, 9.0])
    assert [(one.first, one.members, one.value, one.spread) for one in found] == [
        (0, (0, 2, 3), 3.0, 4.5),
        (1, (1,), 5.0, 1.0),
    ]


def test_regret_is_measured_on_the_plan_ranked_first() -> None:
    assert scoring.regret([10.0, 12.0, 15.0], [3.0, 2.0, 4.0]) == pytest.approx(0.2)
    assert scoring.regret([10.0, 12.0], [1.0, 2.0]) == 0.0
    assert scoring.regret([10.0, 12.0, 15.0], [2.0, 2.0, 2.0]) == pytest.approx(0.5)  # a tie hides nothing


@few
@given(PAIRS)
def test_regret_of_the_truth_is_nothing(pairs: list[tuple[int, int]]) -> None:
    cost = [float(one) for one, _ in pairs]
    assert scoring.regret(cost, cost) == 0.0
    assert scoring.regret(cost, [float(two) for _, two in pairs]) >= 0.0


def test_sweeps_need_enough_different_plans() -> None:
    keys = [("s",)] * 4 + [("t",)] * 2
    measured = np.array([4.0, 3.0, 2.0, 1.0, 1.0, 2.0])
    predicted = np.array([4.0, 3.0, 1.0, 2.0, 1.0, 2.0])
    found = scoring.sweeps(keys, -measured, -predicted, least=3, costs=(measured, predicted))
    assert [(one.key, one.members) for one in found] == [(("s",), (0, 1, 2, 3))]
    assert found[0].rank == pytest.approx(0.8)
    assert found[0].regret == pytest.approx(1.0)
    assert math.isnan(scoring.sweeps(keys, measured, predicted, least=3)[0].regret)
    assert scoring.sweeps(keys, measured, predicted, least=3, distinct=["p", "p", "q", "q", "r", "r"]) == []


def test_medians_leave_out_what_is_undefined() -> None:
    assert scoring.median([0.5, None, 0.7]) == pytest.approx(0.6)
    assert math.isnan(scoring.median([None]))


def test_outside_of_bounds() -> None:
    assert scoring.outside(5.0, [4.0, 6.0]) == 0.0
    assert scoring.outside(3.0, [6.0, 4.0]) == pytest.approx(-0.25)
    assert scoring.outside(9.0, [4.0, 6.0]) == pytest.approx(0.5)
