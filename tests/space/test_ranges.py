"""Ranges: exact values, ends included."""

from __future__ import annotations

import pickle
import time
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.errors import InputError
from dse.space.ranges import Continuous, expand_range


def listed(*arguments: object, **options: str) -> list[int | float]:
    values = expand_range(*arguments, **options)  # type: ignore[arg-type]
    assert not isinstance(values, Continuous)
    return list(values)


def test_integer_ends_alone_step_by_one() -> None:
    assert expand_range("1", "8") == range(1, 9)
    assert listed("-2", "0") == [-2, -1, 0]
    assert listed("3", "3") == [3]


def test_ends_with_a_point_alone_are_continuous() -> None:
    assert expand_range("0.0", "1.5") == Continuous(0.0, 1.5)
    assert expand_range("0", "1e3") == Continuous(0.0, 1000.0)
    assert expand_range("0.001", "1.0", None, "log") == Continuous(0.001, 1.0, log=True)


def test_a_step_is_exact() -> None:
    assert listed("0.1", "0.7", "0.1") == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    assert listed("0", "1", "0.25") == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert expand_range("0", "100", "20") == range(0, 101, 20)
    assert listed("1e-3", "3e-3", "1e-3") == [1e-3, 2e-3, 3e-3]


def test_powers_of_two() -> None:
    assert listed("1", "1024", None, "pow2") == [2**k for k in range(11)]
    assert listed("0.25", "4", None, "pow2") == [0.25, 0.5, 1.0, 2.0, 4.0]


def test_a_count_of_values() -> None:
    assert listed("0", "1", None, "linear", 5) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert expand_range("0", "8", None, None, 5) == range(0, 9, 2)
    assert listed("1", "1000", None, "log", 4) == [1, 10, 100, 1000]
    assert listed("1e-3", "1.0", None, "log", 4) == [1e-3, 1e-2, 1e-1, 1.0]


def test_quantities_are_converted_to_the_unit() -> None:
    assert expand_range("1 ms", "10 ms", unit_text="ms") == range(1, 11)
    assert listed("1 ms", "3 ms", "1 ms", unit_text="s") == [0.001, 0.002, 0.003]
    assert listed("1 GiB", "2 GiB", "512 MiB", unit_text="GiB") == [1.0, 1.5, 2.0]
    assert expand_range("64GiB", "128GiB", "64GiB", unit_text="GiB") == range(64, 129, 64)
    assert listed("1", "2", "0.5", unit_text="percent") == [1.0, 1.5, 2.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("1", "10", "4"), "found a step of 4 that misses the end 10, expected an end such as 9 or 13"),
        (("0", "1", "0.3"), "found a step of 0.3 that misses the end 1, expected an end such as 0.9 or 1.2"),
        (("5", "1"), "found an empty range from 5 to 1, expected the lower end first"),
        (("1", "2", "0"), "found the step 0, expected more than 0"),
        (("1", "2", "-1"), "found the step -1, expected more than 0"),
        (
            ("1", "3", None, "pow2"),
            "found the end 3, expected a power of two for scale: pow2, such as 2 or 4",
        ),
        (("0", "4", None, "pow2"), "found the end 0, expected a power of two"),
        (("1", "4", "1", "pow2"), "found step beside scale or count, expected at most one"),
        (("1", "4", None, "pow2", 3), "found count beside scale: pow2, expected at most one"),
        (("1", "4", "1", None, 3), "found step beside scale or count, expected at most one"),
        (("1", "4", None, "log"), "found scale: log without count, expected a count"),
        (("0", "4", None, "log", 3), "found the lower end 0, expected more than 0 for scale: log"),
        (("0.0", "4.0", None, "log"), "found the lower end 0.0, expected more than 0 for scale: log"),
        (("1.0", "1.0"), "found an interval of the one value 1.0, expected two ends"),
        (("1", "4", None, None, 1), "found a count of 1, expected at least 2"),
        (("1 ms", "4 ms"), "found '1 ms', expected a plain number, or the key 'unit'"),
        (("x", "4"), "found 'x', expected a number or a quantity"),
        (("0", "1e-999999999"), "found '1e-999999999', expected a number that fits a double"),
        (("0", "1e999999999"), "found '1e999999999', expected a number or a quantity"),
        (("0", "9007199254740993"), "found 9007199254740993, expected an integer of at most 2^53"),
        (("0.0", "1.0", "1e-9"), "found a range of 1,000,000,001 values, expected at most 16,777,216"),
        (("1.0", "1.0000000000000002", None, None, 9), "found 9 values too close for doubles"),
    ],
)
def test_what_is_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError) as error:
        expand_range(*arguments)  # type: ignore[arg-type]
    assert str(error.value).startswith(message)


def test_quantities_of_another_unit_are_refused() -> None:
    with pytest.raises(InputError, match="found '1 GB', expected a quantity in ms"):
        expand_range("1 GB", "2 GB", unit_text="ms")
    with pytest.raises(
        InputError, match="found the ends 1 ms and 9 ms, expected integers in s, or step or count"
    ):
        expand_range("1 ms", "9 ms", unit_text="s")


def test_ten_million_values_load_at_once() -> None:
    start = time.process_time()
    assert len(listed_lazily("1", "10000000")) == 10**7
    assert time.process_time() - start < 0.1
    values = listed_lazily("0", "1", "1e-6")
    assert (len(values), values[1], values[-1]) == (10**6 + 1, 1e-6, 1.0)


def listed_lazily(*arguments: str) -> range | tuple[float, ...]:
    values = expand_range(*arguments)  # type: ignore[arg-type]
    assert isinstance(values, range | tuple)
    return values


def test_values_can_be_pickled() -> None:
    for values in (expand_range("1", "9"), expand_range("0.0", "1.0"), expand_range("0", "1", "0.5")):
        assert pickle.loads(pickle.dumps(values)) == values


DECIMALS = st.decimals(min_value=-1000, max_value=1000, places=3)


@given(DECIMALS, st.decimals(min_value="0.001", max_value=10, places=3), st.integers(1, 200))
def test_every_value_is_the_double_nearest_its_decimal(lo: object, step: object, steps: int) -> None:
    first, stride = Fraction(str(lo)), Fraction(str(step))
    last = first + steps * stride
    hi = f"{last.numerator * (1000 // last.denominator)}e-3"
    values = listed(str(lo), hi, str(step))
    assert values == [float(first + i * stride) for i in range(steps + 1)]
    assert all(type(value) is float for value in values)


@given(st.floats(1e-100, 1e100), st.floats(1.001, 1e50), st.integers(2, 60))
def test_a_logarithmic_range_grows_evenly(lo: float, factor: float, count: int) -> None:
    values = listed(repr(lo), repr(lo * factor), None, "log", count)
    assert (len(values), values[0], values[-1]) == (count, lo, lo * factor)
    ratio = factor ** (1 / (count - 1))
    assert all(abs(b / a / ratio - 1) < 1e-9 for a, b in pairwise(values))
