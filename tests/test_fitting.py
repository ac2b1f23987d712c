"""Fitting numbers: known ones are found again, without runs they are the expected ones, an outlier moves nothing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dse.spaces.fitting import Fit, Move, Number, balanced, cell, decoded, encoded, minimized, rounded

Floats = NDArray[np.float64]

NUMBERS = {
    "share": Number(0.7, 0.5),
    "rate": Number(200.0, 0.7, share=False),
    "delay": Number(5e-6, 0.7, share=False, seconds=True),
}
"""Of each of two kinds of chips: seconds = work / (share x rate) + delay; ``rate`` also slows small work down."""

TRUE = np.array([[0.5, 120.0, 9e-6], [0.8, 300.0, 3e-6]])
CENTRE = encoded(np.array([[number.value for number in NUMBERS.values()]] * 3), NUMBERS)
WORK = np.array([1e-5, 1e-4, 1e-3, 1e-2, 1e-1] * 8)
SIZE = np.repeat([10.0, 30.0, 100.0, 1000.0] * 2, 5)
CHIP = np.repeat([0, 1], 20)


def seconds(values: Floats) -> Floats:
    """Of work of some size on the chips of the runs, whose numbers are ``values`` (chips, names)."""
    share, half, delay = values[CHIP].T
    found: Floats = WORK / share * (1.0 + half / SIZE) + delay
    return found


def task(measured: Floats, strength: float = 1e-6) -> Fit:
    """The fit of runs of the first two of three kinds of chips."""
    spread = np.array([number.spread for number in NUMBERS.values()])
    return Fit(
        lambda found: np.log(seconds(decoded(found.reshape(3, 3), NUMBERS)) / measured),
        np.ones(len(measured)),
        CENTRE.ravel(),
        np.tile(strength / spread**2, 3),
        [Move(np.arange(3) * 3 + at, (CHIP * 3 + at,)) for at in range(3)],
    )


def fitted(measured: Floats, strength: float = 1e-6) -> Floats:
    found: Floats = decoded(minimized(task(measured, strength)).reshape(3, 3), NUMBERS)
    return found


def test_known_numbers_are_found_again() -> None:
    assert fitted(seconds(TRUE))[:2] == pytest.approx(TRUE, rel=0.005)


def test_numbers_without_runs_are_the_expected_ones() -> None:
    nothing = Fit(
        lambda _: np.zeros(0),
        np.zeros(0),
        CENTRE[0],
        np.ones(3),
        [Move(np.arange(3), (np.zeros(0, np.intp),))],
    )
    assert np.array_equal(minimized(nothing), CENTRE[0])
    assert np.array_equal(minimized(task(seconds(TRUE))).reshape(3, 3)[2], CENTRE[2])


def test_a_strong_pull_keeps_to_the_centre() -> None:
    away = [np.abs(encoded(fitted(seconds(TRUE), pull), NUMBERS) - CENTRE).max() for pull in (1.0, 1e2, 1e6)]
    assert away[0] > away[1] > away[2]
    assert away[2] < 1e-3


def test_an_outlier_moves_little() -> None:
    """Absolute errors: a run that took ten times as long weighs as one that took a little longer."""
    measured = seconds(TRUE)
    measured[[2, 33]] *= 10.0
    assert fitted(measured)[:2] == pytest.approx(TRUE, rel=0.02)


def test_a_fit_is_the_same_every_time() -> None:
    noisy = seconds(TRUE) * np.exp(0.1 * np.sin(np.arange(40.0)))
    assert np.array_equal(minimized(task(noisy)), minimized(task(noisy)))


def test_an_unknown_may_be_shared() -> None:
    """Runs of two groups lie 0.3 and 0.5 above: what they share goes as far as it is free to."""
    group = np.repeat([0, 1], 5)
    told = np.array([0.3, 0.5])[group]
    fit = Fit(
        lambda found: found[0] + found[1:][group] - told,
        np.ones(10),
        np.zeros(3),
        np.array([1e-4, 1.0, 1.0]),
        [Move(np.array([0]), (1 + group, np.zeros(10, np.intp)))],
    )
    assert minimized(fit) == pytest.approx([0.4, -0.1, 0.1], abs=0.005)


def test_encoded_values_come_back() -> None:
    assert decoded(encoded(TRUE, NUMBERS), NUMBERS) == pytest.approx(TRUE, rel=1e-12)
    extreme = decoded(encoded(np.array([[1.0, 0.0, 0.0]]), NUMBERS), NUMBERS)
    assert np.isfinite(extreme).all()


def test_numbers_are_told_to_four_digits() -> None:
    assert rounded(np.array([0.123456, 98765.4, 1.23456e-6]), NUMBERS) == {
        "share": 0.1235,
        "rate": 98770.0,
        "delay": 1.235e-6,
    }
    assert cell(0.123456, NUMBERS["share"]) == "0.1235"
    assert cell(1.23456e-5, NUMBERS["delay"]) == "12.35 us"


def test_sources_weigh_alike() -> None:
    groups = [("a", "x"), ("a", "x"), ("a", "y"), ("b", "x")]
    weights = balanced(groups)
    assert weights.mean() == pytest.approx(1.0)
    assert weights == pytest.approx([0.5, 0.5, 1.0, 2.0])
    assert len(balanced([])) == 0
