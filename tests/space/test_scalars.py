"""Plain scalars are typed as the YAML 1.2 core schema says."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.space.scalars import Plain, read_plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E6", 1e6),
        ("12e03", 12000.0),
        ("02142", 2142),
        ("-7", -7),
        ("+7", 7),
        ("0o17", 15),
        ("0x1F", 31),
        (".5", 0.5),
        ("5.", 5.0),
        ("-.5e1", -5.0),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("~", None),
        ("", None),
        ("Null", None),
        ("TRUE", True),
        ("False", False),
    ],
)
def test_core_schema_values(text: str, value: Plain) -> None:
    read = read_plain(text)
    assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize(
    "text",
    "on off yes no y n 1:10 1_000 0b11 int8 2001-12-14 nUll tRUE 1e 0x 0o8 -0x1F .e3 . + - inf nan +.nan 1,000 ½".split(),
)
def test_everything_else_is_text(text: str) -> None:
    assert read_plain(text) == text
    assert isinstance(read_plain(text), str)


def test_not_a_number() -> None:
    for text in (".nan", ".NaN", ".NAN"):
        value = read_plain(text)
        assert isinstance(value, float)
        assert math.isnan(value)


@pytest.mark.parametrize("text", ["1e999", "-1e999", "1e-999", "1" + "0" * 309, "9" * 401, "0x" + "f" * 300])
def test_numbers_that_no_double_holds_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"a number (that fits|of \d+ characters)"):
        read_plain(text)


def test_zero_with_a_large_exponent_is_zero() -> None:
    assert read_plain("0e999999999") == 0.0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back(value: float) -> None:
    read = read_plain(repr(value))
    assert isinstance(read, float)
    assert math.copysign(1, read) == math.copysign(1, value)
    assert read == value


@given(st.text(alphabet="0123456789+-.eExoabfnulINtrue_:~", max_size=12))
def test_a_number_is_read_exactly_when_the_grammar_says_so(text: str) -> None:
    number = r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    try:
        value = read_plain(text)
    except ValueError:
        assert re.fullmatch(number, text)
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    special = re.fullmatch(r"[-+]?\.inf|\.nan|[-+]?\.INF|\.NAN", text, re.IGNORECASE)
    assert is_number == bool(re.fullmatch(number, text)) or special
