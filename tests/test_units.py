"""Units: every prefix, exact rounding against an integer oracle, spelling hints."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.errors import DseError
from dse.units import (
    Dims,
    Unit,
    UnitError,
    dims_text,
    format_value,
    from_base,
    is_unit,
    multiply,
    parse_quantity,
    parse_unit,
    to_base,
)

SI = {"k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
SMALL = {"m": -3, "u": -6, "n": -9, "p": -12}
IEC = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

PREFIXED = [
    *((p + u, Fraction(10) ** e) for u in ("B", "b", "bit", "flop", "op", "J", "W") for p, e in SI.items()),
    *((p + u, Fraction(10) ** e) for u in ("s", "J", "W") for p, e in SMALL.items()),
    *((p + u, Fraction(2) ** e) for u in ("B", "b", "bit") for p, e in IEC.items()),
    *((p + u, Fraction(10) ** SI[p]) for u in ("token", "Hz") for p in "kMGT"),
    *((p + "USD", Fraction(10) ** SI[p]) for p in "kM"),
]
UNITS = [
    parse_unit(text)
    for text in ("ms", "GB", "GiB", "b", "Gop/s", "USD/h", "1/s", "percent", "1", "flop/B", "day", "pJ/op")
]


@pytest.mark.parametrize(("text", "factor"), PREFIXED)
def test_every_prefix(text: str, factor: Fraction) -> None:
    base = next(
        u for u in ("token", "flop", "bit", "USD", "op", "Hz", "B", "b", "s", "J", "W") if text.endswith(u)
    )
    unit, plain = parse_unit(text), parse_unit(base)
    assert unit.text == text
    assert unit.dims == plain.dims
    assert unit.scale == plain.scale * factor


@pytest.mark.parametrize(
    ("text", "dims", "scale"),
    [
        ("b", "B", Fraction(1, 8)),
        ("bit", "B", Fraction(1, 8)),
        ("W", "J/s", 1),
        ("Hz", "1/s", 1),
        ("min", "s", 60),
        ("h", "s", 3600),
        ("day", "s", 86400),
        ("Gop/s", "op/s", 10**9),
        ("flop/B", "flop/B", 1),
        ("USD/h", "USD/s", Fraction(1, 3600)),
        ("J/token", "J/token", 1),
        ("op*s", "op*s", 1),
        ("1/s", "1/s", 1),
        ("B/s^2", "B/s^2", 1),
        ("s^-1", "1/s", 1),
        ("Top/s/W", "op/J", 10**12),
        ("W*h", "J", 3600),
        ("Gb / s", "B/s", 125_000_000),
        ("s/s", "1", 1),
        ("op*1/1", "op", 1),
        ("1", "1", 1),
        ("percent", "1", Fraction(1, 100)),
        ("\u00b5s", "s", Fraction(1, 10**6)),
        ("\u03bcs", "s", Fraction(1, 10**6)),
    ],
)
def test_reads_products_and_quotients(text: str, dims: str, scale: Fraction) -> None:
    unit = parse_unit(text)
    assert (dims_text(unit.dims), unit.scale, unit.percent) == (dims, scale, text == "percent")
    assert parse_unit(dims).dims == unit.dims


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Gpo/s", "unknown unit 'Gpo/s'; did you mean 'Gop/s'?"),
        ("GBps", "unknown unit 'GBps'; did you mean 'GB/s'?"),
        ("Gbps", "unknown unit 'Gbps'; did you mean 'Gb/s'?"),
        ("gb", "unknown unit 'gb'; did you mean 'GB' or 'Gb'? (B is byte, b is bit)"),
        ("KB/s", "unknown unit 'KB/s'; did you mean 'kB/s' or 'kb/s'? (B is byte, b is bit)"),
        ("TOPS/W", "unknown unit 'TOPS/W'; did you mean 'Top/s/W'?"),
        ("W/TOPS", "unknown unit 'W/TOPS'; did you mean 'W/Top*s'?"),
        ("GFLOPs", "unknown unit 'GFLOPs'; did you mean 'Gflop' or 'Gflop/s'?"),
        ("ops/s", "unknown unit 'ops/s'; did you mean 'op/s'?"),
        ("tok/sec", "unknown unit 'tok/sec'; did you mean 'token/s'?"),
        ("GBytes", "unknown unit 'GBytes'; did you mean 'GB'?"),
        ("%", "unknown unit '%'; did you mean 'percent'?"),
        ("m", "unknown unit 'm'; did you mean 'min' or 'ms'?"),
        ("ghz", "unknown unit 'ghz'; did you mean 'GHz'?"),
        ("/s", "'/s' is not a unit; did you mean '1/s'?"),
        ("percent/s", "percent must stand alone, but got 'percent/s'"),
        ("B^0", "exponents in a unit must be from 1 to 9, but got 0 in 'B^0'"),
    ],
)
def test_wrong_units_get_the_nearest_spelling(text: str, message: str) -> None:
    assert not is_unit(text)
    with pytest.raises(UnitError) as caught:
        parse_unit(text)
    assert str(caught.value) == message
    assert isinstance(caught.value, DseError)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " ",
            "furlong",
            "furlong/s",
            "ks",
            "dB",
            "mB",
            "Gi",
            "k",
            "2",
            "2*s",
            "B//s",
            "B/",
            "s^",
            "s^x",
        ),
        *("B^99999", "s s", "(s)", "s**2", "min/" * 40 + "s", "/".join(["1", *["EB^9"] * 5]), "__import__"),
        *("s\n*", "1^2"),
    ],
)
def test_refuses(text: str) -> None:
    assert not is_unit(text)
    with pytest.raises(UnitError, match=r"unit|exponent"):
        parse_unit(text)


def test_a_unit_without_a_near_spelling_lists_what_there_is() -> None:
    with pytest.raises(
        UnitError, match=r"unknown unit 'furlong' in 'furlong/s'; known: s, min, h, day, B, b"
    ):
        parse_unit("furlong/s")


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("10 ms", 0.01, "ms"),
        ("10ms", 0.01, "ms"),
        ("3.35 TB/s", 3.35e12, "TB/s"),
        ("64GiB", 64 * 2.0**30, "GiB"),
        ("1e3 op", 1000.0, "op"),
        ("1E3op", 1000.0, "op"),
        ("1EB", 1e18, "EB"),
        (".5 J", 0.5, "J"),
        ("-3. J", -3.0, "J"),
        ("+3 s", 3.0, "s"),
        ("90 percent", 0.9, "percent"),
        ("5 1/s", 5.0, "1/s"),
        ("12", 12.0, None),
        (" 012 ", 12.0, None),
        ("-0 s", 0.0, "s"),
        ("0e999999999", 0.0, None),
        ("1e-999999999 s", 0.0, "s"),
        ("-1e-400", 0.0, None),
        ("1e0000000000000000002", 100.0, None),
    ],
)
def test_quantities(text: str, value: float, unit: str | None) -> None:
    quantity = parse_quantity(text)
    assert quantity.value == value
    assert math.copysign(1.0, quantity.value) == (-1.0 if value < 0 else 1.0)
    assert (quantity.unit.text if quantity.unit else None) == unit


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("inf", "finite"),
        ("-.inf s", "finite"),
        ("nan", "finite"),
        ("ten ms", "not a quantity"),
        ("", "not a quantity"),
        ("--3", "not a quantity"),
        (".", "not a quantity"),
        ("1_000 s", "grouped"),
        ("1,000 s", "grouped"),
        ("90%", "did you mean 'percent'"),
        ("10 m", "did you mean 'min' or 'ms'"),
        ("1e", "unknown unit 'e'"),
        ("0x10", "unknown unit 'x10'"),
        ("\u0663 s", "not a quantity"),
        ("1e400", "past the largest number"),
        ("1e999999999 s", "past the largest number"),
        ("1e308 day", "past the largest number"),
        ("9" * 3000, "at most 2000 digits"),
    ],
)
def test_bad_quantities(text: str, message: str) -> None:
    with pytest.raises(UnitError, match=message):
        parse_quantity(text)


def test_overflow_begins_where_rounding_leaves_the_doubles() -> None:
    largest = 2**1024 - 2**971
    assert to_base(str(largest + 2**970 - 1), None) == sys.float_info.max
    with pytest.raises(UnitError):
        to_base(str(largest + 2**970), None)


decimals = st.builds(
    lambda sign, whole, part, exponent: f"{sign}{whole}.{part}e{exponent}",
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**25),
    st.text("0123456789", max_size=30),
    st.integers(-350, 250),
)


def exact_value(text: str) -> Fraction:
    """The decimal's value by integer arithmetic, without Decimal."""
    mantissa, _, exponent = text.partition("e")
    whole, _, part = mantissa.partition(".")
    return Fraction(int(whole + part)) * Fraction(10) ** (int(exponent) - len(part))


@given(decimals, st.sampled_from(UNITS))
def test_to_base_is_the_nearest_double(text: str, unit: Unit) -> None:
    exact = exact_value(text) * unit.scale
    got = to_base(text, unit)
    error = abs(Fraction(got) - exact)
    for neighbour in (math.nextafter(got, math.inf), math.nextafter(got, -math.inf)):
        if math.isfinite(neighbour):
            other = abs(Fraction(neighbour) - exact)
            assert error < other or (error == other and math.frexp(got)[0] * 2**53 % 2 == 0)


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.floats(1e-280, 1e280) | st.floats(-1e280, -1e-280), st.sampled_from(UNITS))
def test_there_and_back_is_within_one_rounding(value: float, unit: Unit) -> None:
    back = from_base(to_base(repr(value), unit), unit)
    assert abs(Fraction(back) - Fraction(value)) <= 2 * Fraction(math.ulp(value))


def test_from_base_at_the_edges() -> None:
    ms = parse_unit("ms")
    assert from_base(0.008, ms) == 8.0
    assert from_base(math.inf, ms) == math.inf
    assert math.isnan(from_base(math.nan, ms))
    assert from_base(-1e308, ms) == -math.inf
    assert from_base(0.1, None) == 0.1


@given(finite, st.sampled_from([None, *UNITS]))
def test_seventeen_digits_read_back_exactly(value: float, unit: Unit | None) -> None:
    if value and abs(value) < sys.float_info.min:
        return  # subnormals carry fewer digits than the format keeps apart
    text = format_value(value, unit, digits=17).replace(" %", " percent")
    if abs(value) < 1e290:
        assert parse_quantity(text).value == value


@given(st.floats(1e-4, 1e15, exclude_max=True), st.integers(1, 17))
def test_no_exponent_in_the_common_range(value: float, digits: int) -> None:
    text = format_value(value, None, digits)
    assert "e" not in text or float(text) == 1e15
    assert abs(Fraction(text) - Fraction(value)) <= Fraction(value) * 5 / 10**digits


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.008, "ms", "8 ms"),
        (0.057, "ms", "57 ms"),
        (0.919, "percent", "91.9 %"),
        (math.inf, "ms", "inf ms"),
        (-math.inf, "1", "-inf"),
        (math.nan, "s", "nan s"),
        (-0.0, "s", "0 s"),
        (1234567.8, "B", "1234568 B"),
        (0.0001, "s", "0.0001 s"),
        (0.000099999999, "s", "0.0001 s"),
        (9.9e-05, "s", "9.9e-5 s"),
        (1e15, "B", "1e15 B"),
        (-2.5e20, "op", "-2.5e20 op"),
        (1e300, "ps", "1e312 ps"),
        (1 / 3, "1", "0.333333"),
        (3e12, "TB/s", None),
    ],
)
def test_printing(value: float, unit: str, text: str | None) -> None:
    assert format_value(value, parse_unit(unit)) == (text or "3 TB/s")


def test_printing_a_bare_number() -> None:
    assert format_value(12.0, None) == "12"
    assert format_value(2 / 3, None, digits=2) == "0.67"


exponents = st.dictionaries(
    st.sampled_from(["B", "J", "USD", "flop", "op", "s", "token"]), st.integers(-3, 3)
)
dims = exponents.map(lambda d: multiply((), tuple(d.items())))


@given(dims, dims, st.integers(-3, 3))
def test_dimensions_form_a_group(a: Dims, b: Dims, power: int) -> None:
    product = multiply(a, b, power)
    assert list(product) == sorted(product)
    assert all(exponent for _, exponent in product)
    assert multiply(product, b, -power) == a
    assert multiply(a, b) == multiply(b, a)
    assert parse_unit(dims_text(a)).dims == a


def test_import_is_light() -> None:
    code = "import sys, dse.units; print([m for m in ('numpy', 'pandas', 'pydantic') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
