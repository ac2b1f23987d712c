"""Reading expressions: precedence, quantities, names, and errors at the character that does not fit."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dse.evaluation import Undefined
from dse.expressions import Kind, Type, parse
from dse.expressions.parser import DEPTH_LIMIT, LENGTH_LIMIT, parse_condition
from tests.expressions.scope import fails, scope, type_of, value

# -- values -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "1 + 2 * 3", "2 * 3 + 1", "(1 + 2) * 3", "10 - 4 - 3", "100 / 10 / 5", "2 ** 3 ** 2", "-2 ** 2",
        "(-2) ** 2", "2 ** -1", "7 // 2 * 2", "7 % 4 % 2", "-7 // 2", "-7 % 3", "7 % -3", "1 - -1", "- - 3", "+3",
        "-3 * -2", "2 * -3 ** 2", "1e3 + .5 + 5.", "0.1 + 0.2", "1 < 2 < 3", "3 > 2 == 2", "1 < 2 and 2 < 1",
        "not 1 < 2", "not 1 > 2 and 2 > 1", "1 > 2 or 2 > 1 and 1 > 1", "1 if 1 > 2 else 2 if 2 > 3 else 4",
        "(1 if 1 > 2 else 2) + 1", "1 + 1 if 1 > 2 else 5", "3 in [1, 2, 3]", "3 not in [1, 2]", "max(1, 2, 3) - min(4, 2)",
        "abs(-3)", "1 == 1.0", "1 != 2", "not not 1 == 1", "9007199254740992 + 0", "2 ** 0.5", "8 // 3 ** 1",
    ],
)  # fmt: skip
def test_arithmetic_means_what_python_means(text: str) -> None:
    """These use nothing in which the product's rules differ from Python's (integers here stay small)."""
    expected = eval(text, {"__builtins__": {}}, {"abs": abs, "max": max, "min": min})
    found = value(text)
    assert found == expected
    assert isinstance(found, bool) == isinstance(expected, bool)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15 us", 15e-6), ("3.35 TB/s", 3.35e12), ("64 GiB", 64.0 * 2**30), ("1 kb", 125.0), ("90 percent", 0.9),
        ("2 op/s * 3 s", 6.0), ("10 ms / 2 ms", 5.0), ("1 GB/s * 2 ms", 2e6), ("ms", 1e-3), ("5 * ms", 5e-3),
        ("1 / (2 ms)", 500.0), ("limit / 5", 0.002), ("-5 ms", -0.005), ("4 ms // 3 ms", 1.0), ("5 ms % 3 ms", 5e-3 - 3e-3),
        ("abs(-5 ms)", 5e-3), ("max(1 ms, 0)", 1e-3), ("1 ms if flag else 0", 1e-3), ("batch * 2 ms", 8e-3),
        ("sqrt(4 s * 1 s)", 2.0), ("(2 s) ** 2 / s", 4.0), ("limit > 5 ms", True), ("0 < limit", True),
    ],
)  # fmt: skip
def test_quantities(text: str, expected: float) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("device", "npu"), ("device == 'npu'", True), ('device != "npu"', False), ("device in ['cpu', 'npu']", True),
        ("format not in ['fp32']", True), ("device.bandwidth", 16e9), ("device.fast", True), ("device.label", "right"),
        ("engine in device.engines", True), ("'naive' in device.engines", False), ("engine not in device.engines", False),
        ("rates[device, format]", 2e12), ("rates['cpu', format]", 2e11), ("steps[batch]", 40.0), ("steps[batch / 2]", 20.0),
        ("steps[n - 4] + 1", 41.0), ("flag == device.fast", True), ("true", True), ("False", False), ("true and not false", True),
        ("where(flag, device.label, 'left')", "right"), ("device.label if flag else format", "right"),
        ("ceil(2.1) + floor(-2.1)", 0.0), ("log2(8) + log(1) + exp(0)", 4.0), ("where(zero == 0, 1, 1 / zero)", 1.0),
    ],
)  # fmt: skip
def test_names_cells_and_functions(text: str, expected: Any) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 / zero", math.inf), ("-1 / zero", -math.inf), ("1 / -zero", -math.inf), ("zero / zero", math.nan),
        ("1 // zero", math.inf), ("5 % zero", math.nan), ("log(zero)", -math.inf), ("log(-1)", math.nan), ("sqrt(-1)", math.nan),
        ("exp(1000)", math.inf), ("1e308 * 10", math.inf), ("max(sqrt(-1), 1)", math.nan), ("min(1, sqrt(-1))", math.nan),
        ("1 / zero - 1 / zero", math.nan), ("(-8) ** (1 / 3)", math.nan), ("zero ** 0", 1.0), ("5 % (1 / zero)", math.nan),
        ("max(zero, -zero)", 0.0), ("1 ** sqrt(-1)", 1.0), ("1 if sqrt(-1) > 0 else 2", math.nan),
    ],
)  # fmt: skip
def test_the_corners_of_arithmetic(text: str, expected: float) -> None:
    found = value(text)
    assert isinstance(found, float)
    assert repr(found) == repr(expected)


def test_what_is_undefined_spreads_only_where_it_is_read() -> None:
    hole = "rates[device, 'fp32']"
    assert value(hole) == Undefined("rates has no cell npu, fp32")
    assert value(f"{hole} > 0") == Undefined("rates has no cell npu, fp32")
    assert value(f"1 if not flag and {hole} > 0 else 2") == 2.0
    assert value(f"flag or {hole} > 0") is True
    assert value(f"not flag and {hole} > 0") is False
    assert value(f"where(flag, 1 op/s, {hole})") == 1.0
    assert value("device.loss") == Undefined("devices.loss has no cell npu")
    assert value("steps[batch + 1]") == Undefined("steps has no key 5")
    assert value("sqrt(-1) > 0") == Undefined("a comparison reads NaN", missing=False)
    assert value("flag or sqrt(-1) > 0") is True


# -- types ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("limit", "a quantity in s"), ("size / limit", "a quantity in B/s"), ("limit / limit", "a number without a unit"),
        ("share", "a percentage"), ("share * 2", "a percentage"), ("share * share", "a number without a unit"),
        ("share / 2", "a percentage"), ("share / share", "a number without a unit"), ("share - 1 percent", "a percentage"),
        ("limit * limit", "a quantity in s^2"), ("sqrt(limit * limit)", "a quantity in s"), ("limit > 0", "true or false"),
        ("device", "a text"), ("device.engines", "a list of texts"), ("limit ** -1", "a quantity in 1/s"),
    ],
)  # fmt: skip
def test_types(text: str, shown: str) -> None:
    assert str(type_of(text)) == shown


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("limit + size", "cannot add a quantity in s and a quantity in B", 6),
        ("1 + limit", "cannot add a number without a unit and a quantity in s", 2),
        ("n * limit - 3", "cannot subtract a quantity in s and a number without a unit", 10),
        ("limit > 5", "cannot compare a quantity in s and a number without a unit", 6),
        ("max(limit, 5)", "cannot take max of a quantity in s and a number without a unit", 0),
        ("where(flag, limit, n)", "cannot choose between a quantity in s and a number without a unit", 0),
        ("share > 90", "cannot compare a percentage and a number without a unit: 90: write 90 percent", 6),
        ("share + 1", "cannot add a percentage and a number without a unit: 1: write 1 percent", 6),
        ("exp(limit)", "exp() needs a number without a unit, but got a quantity in s; divide by a unit first", 0),
        ("ceil(limit)", "ceil() needs a number without a unit, but got a quantity in s; divide by a unit first", 0),
        ("sqrt(limit)", "the square root of a quantity in s has no unit", 0),
        ("limit ** n", "a base with a unit needs a constant whole exponent of at most 8, but got a quantity in s", 6),
        ("2 ** limit", "an exponent is a number without a unit, but got a quantity in s", 2),
        ("limit // n", "cannot divide with // a quantity in s and a number without a unit", 6),
        ("limit % n", "cannot take % of a quantity in s and a number without a unit", 6),
        ("flag + 1", "+ needs numbers, but got true or false", 5),
        ("device * 2", "* needs numbers, but got a text", 7),
        ("-device", "- needs numbers, but got a text", 0),
        ("not n", "'not' needs true or false, but got a number without a unit", 0),
        ("flag and n", "'and' needs true or false, but got a number without a unit", 5),
        ("n if n else n", "a condition must be true or false, but got a number without a unit", 2),
        ("flag == 1", "cannot compare true or false and a number without a unit", 5),
        ("device == flag", "cannot compare a text and true or false", 7),
        ("device >= 'npu'", ">= needs numbers, but got a text", 7),
        ("device < 'npu'", "< needs numbers, but got a text", 7),
        ("device.engines == device.engines", "lists of texts cannot be compared; use `text in list`", 15),
        ("1 op + 1 flop", "cannot add a quantity in op and a quantity in flop", 5),
        ("n in device.engines", "cannot look for a number without a unit in a list of texts", 2),
    ],
)  # fmt: skip
def test_kinds_and_units_that_do_not_fit(text: str, message: str, at: int) -> None:
    assert fails(text) == (message, at)


def test_the_literal_zero_takes_any_unit() -> None:
    for text in (
        "limit > 0",
        "max(limit, 0)",
        "limit if flag else 0",
        "share >= 0",
        "0 + size",
        "share - 0.0",
    ):
        parse(text, scope())
    assert fails("limit > 0 MB")[0].startswith("cannot compare")


# -- errors of form ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("", "expected a value, but found the end", 0),
        ("1 +", "expected a value, but found the end", 3),
        ("(1 + 2", "expected ')' after the expression in parentheses, but found the end", 6),
        ("1 2", "unexpected '2' after '1'", 2),
        ("n batch", "unexpected 'batch' after 'n'", 2),
        ("max(1)", "max takes at least 2 argument(s), but got 1", 0),
        ("abs()", "abs takes 1 argument(s), but got 0", 0),
        ("where(flag, 1)", "where takes 3 argument(s), but got 2", 0),
        ("maxx(1, 2)", "unknown function 'maxx'; did you mean 'max'?", 0),
        ("bacth + 1", "unknown name 'bacth'; did you mean 'batch'?", 0),
        ("1 + bacth", "unknown name 'bacth'; did you mean 'batch'?", 4),
        ("15 uss", "unknown unit 'uss'; did you mean 'us'?", 3),
        ("n if flag", "expected 'else' after the condition, but found the end", 9),
        ("[1, 2]", "a list may only stand after 'in'", 0),
        ("n in []", "the list after 'in' is empty", 6),
        ("n in [1", "expected ']' after the list, but found the end", 7),
        ("n not 3", "expected 'in' after 'not', but found '3'", 6),
        ("device == 'np'", "'np' is none of the possible values; did you mean 'npu'?", 7),
        ("'cpuu' == device", "'cpuu' is none of the possible values; did you mean 'cpu'?", 7),
        ("device in ['cpu', 'mpu']", "'mpu' is none of the possible values; did you mean 'npu'?", 18),
        ("device.label == 'rigth'", "'rigth' is none of the possible values; did you mean 'right'?", 13),
        ("'tund' in device.engines", "'tund' is none of the possible values; did you mean 'tuned'?", 7),
        ("device.bandwith", "table 'devices' has no column 'bandwith'; did you mean 'bandwidth'?", 0),
        ("batch.size", "dimension 'batch' has no columns; only a dimension or an input with a table has", 0),
        ("limit.size", "input 'limit' has no columns; only a dimension or an input with a table has", 0),
        ("rates", "table 'rates' is read as rates[device, format]", 0),
        ("1 + rates.x", "table 'rates' is read as rates[device, format]", 4),
        ("devices.fast", "table 'devices' is read through its dimension, as device.bandwidth", 0),
        ("rates[device]", "table 'rates' is read as rates[device, format], but got 1 key(s)", 0),
        ("rates[device, 'fp23']", "table 'rates' has no key 'fp23'; did you mean 'fp32'?", 14),
        ("1 + rates[format, n]", "key 2 of table 'rates' is a number without a unit, but its keys are a text, like 'fp32'", 4),
        ("device[n]", "dimension 'device' is not a table keyed by dimensions", 0),
        ("device.", "expected a column name after '.'", 7),
    ],
)  # fmt: skip
def test_errors_point_at_what_does_not_fit(text: str, message: str, at: int) -> None:
    assert fails(text) == (message, at)


@pytest.mark.parametrize(
    ("text", "word", "at"),
    [
        ("__import__('os').system('true')", "unknown function '__import__'", 0),
        ("lambda: 1", "'lambda' is not part of an expression", 0),
        ("n + (lambda: 1)()", "'lambda'", 5),
        ("f'{n}'", "a text with a prefix", 0),
        ("n == f'{n}'", "a text with a prefix", 5),
        ("b'x'", "a text with a prefix", 0),
        ("device.__class__", "no column '__class__'", 0),
        ("device.label.upper", "unexpected '.' after 'label'", 12),
        ("n.__class__.__mro__", "input 'n' has no columns", 0),
        ("(n := 3)", "unexpected ':'", 3),
        ("`n`", "unexpected '`'", 0),
        ("n = 3", "unexpected '=': '==' compares", 2),
        ("n & 1", "unexpected '&': write 'and'", 2),
        ("n | 1", "unexpected '|': write 'or'", 2),
        ("!flag", "unexpected '!': write 'not'", 0),
        ("n ^ 2", "unexpected '^': write '**' for a power", 2),
        ("flag ? 1 : 2", "unexpected '?': write 'a if condition else b'", 5),
        ("{n}", "unexpected '{'", 0),
        ("'a\\x41'", "the text has no closing quote, or has a backslash", 0),
        ("device == 'npu", "the text has no closing quote", 10),
        ("n; 1", "unexpected ';'", 1),
        ("n # 1", "unexpected '#'", 2),
        ("[x for x in n]", "'for' is not part of an expression", 3),
        ("n in [x for x in y]", "'for' is not part", 8),
        ("await n", "'await' is not part", 0),
        ("None", "'None' is not part", 0),
        ("device is 'npu'", "'is' is not part", 7),
        ("n(1)", "unknown function 'n'", 0),
        ("max(*n)", "expected a value, but found '*'", 4),
        ("max(a=1, b=2)", "unexpected '='", 5),
        ("rates[1:2]", "unexpected ':'", 7),
        ("@n", "unexpected '@'", 0),
        ("1_000", "unknown unit", 1),
        ("0x10", "unknown unit", 1),
    ],
)
def test_nothing_but_the_grammar_can_be_said(text: str, word: str, at: int) -> None:
    message, offset = fails(text)
    assert word in message
    assert offset == at


# -- limits -----------------------------------------------------------------------------------------


def test_integers_past_2_to_the_53_are_refused() -> None:
    assert value("9007199254740992") == 2.0**53
    message, at = fails("1 + 9007199254740993")
    assert message.startswith("the integer 9007199254740993 is past 2^53")
    assert at == 4
    assert value("9007199254740993.0") == 2.0**53
    message, _ = fails("9" * 10_000)
    assert "past 2^53" in message
    assert len(message) < 150
    assert fails("1e999")[0] == "the number 1e999 is too large"
    assert fails("1" + "0" * 5000 + ".0")[0].endswith("is too large")


def test_length_and_depth_are_limited() -> None:
    assert (
        fails("1" * (LENGTH_LIMIT + 1))[0]
        == "an expression has at most 20,000 characters, but this has 20,001"
    )
    deep = DEPTH_LIMIT - 1
    assert value("(" * deep + "1" + ")" * deep) == 1.0
    assert value("abs(" * deep + "1" + ")" * deep) == 1.0
    inner = "1 + 2 * where(flag or flag and 1 < 2 + 3 * n, "
    assert value(inner * deep + "1" + ", 0)" * deep) == 2.0**60 - 1
    for text in (
        "(" * 5000 + "1" + ")" * 5000,
        "abs(" * 2000 + "1" + ")" * 2000,
        "2 ** " * 3000 + "2",
        "(1 if flag else " * 100 + "1" + ")" * 100,
        "1 + 2 * (flag and flag or (" * 100,
        "rates[" * 3000,
    ):
        assert "nested deeper than 60 levels" in fails(text)[0]


@pytest.mark.parametrize(
    "text",
    [
        "1" + " + 1" * 4000,
        "-" * 9999 + "1",
        "not " * 4000 + "flag",
        "n < " * 3000 + "n",
        "1 if flag else " * 1000 + "1",
    ],
)
def test_long_flat_expressions_are_read(text: str) -> None:
    """Chains are loops, not recursion."""
    parse(text, scope())


# -- names and units ---------------------------------------------------------------------------------


def test_a_declared_name_hides_a_unit_of_its_spelling() -> None:
    own = scope()
    own.names.kinds["ms"] = "input"
    own.names.nodes["ms"] = own.graph.number(3.0)
    node = own.graph[parse("ms * 2", own)]
    assert node.type == Type(Kind.NUMBER)
    from dse.errors import ExpressionError

    with pytest.raises(ExpressionError, match="'ms' is declared here and hides the unit"):
        parse("5 ms", own)


def test_a_unit_is_the_longest_that_is_written_without_spaces() -> None:
    assert str(type_of("5 GB/s")) == "a quantity in B/s"
    assert fails("5 GB / 2 s + 1")[0] == "cannot add a quantity in B/s and a number without a unit"
    assert value("6 MB/limit") == 6e6 / 0.01  # a declared name ends the unit
    assert value("6 op/max(1, 2)") == 3.0


def test_equal_expressions_are_one_node() -> None:
    own = scope()
    assert parse("batch * n + 1", own) == parse("(batch*n)+1.0", own)
    assert parse("n > batch", own) == parse("batch < n", own)
    assert parse("0.0", own) != parse("-0.0", own)
    assert parse("flag == true", own) != parse("batch == 1", own)
    assert parse("batch * n", own) != parse("n * batch", own)


def test_a_condition_keeps_its_sides_as_written() -> None:
    own = scope()
    node, sides = parse_condition("limit >= 5 ms", own)
    assert sides == (parse("limit", own), ">=", parse("5 ms", own))
    assert parse_condition("limit >= 5 ms and flag", own)[1] is None
    assert parse_condition("not limit >= 5 ms", own)[1] is None
    assert parse_condition("1 < n < 5", own)[1] is None
    assert own.graph[node].op == "le"
