"""Kinds of values in the schema. Each validator raises with what was expected; the reader adds what was found."""

from __future__ import annotations

import re
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema

from dse.space.scalars import Plain
from dse.units import UnitError, parse_quantity, parse_unit

__all__ = [
    "COLUMN_KINDS",
    "Best",
    "Bounds",
    "Cell",
    "Code",
    "ColumnKind",
    "Condition",
    "Duration",
    "Expression",
    "Factor",
    "Number",
    "OneOrMany",
    "Scalar",
    "Share",
    "Text",
    "Unit",
    "Version",
    "is_code",
    "read_share",
]

Cell = Plain | tuple[str, ...]
"""A table cell: a number, a quantity as text, text, a flag, a list of texts, or None where it is missing."""

COLUMN_KINDS = ("text", "flag", "texts")
"""What a column may hold instead of numbers in a unit: texts, truth values, lists of texts."""

_CODE = re.compile(r"(\./([\w-]+/)*[\w-]+\.py|[A-Za-z_]\w*(\.[A-Za-z_]\w*)*):[A-Za-z_]\w*")


def is_code(text: str) -> bool:
    """Whether the text names a Python function: ``package.module:function`` or ``./file.py:function``."""
    return _CODE.fullmatch(text) is not None


def _version(value: object) -> Literal[1]:
    if type(value) is int and value == 1:
        return 1
    raise ValueError("1, the version of the format")


def _scalar(value: object) -> bool | int | float | str:
    if isinstance(value, bool | int | float | str):
        return value
    raise ValueError("a number, a quantity such as '10 ms', a text, true or false")


def _number(value: object) -> int | float | str:
    if isinstance(value, int | float | str) and not isinstance(value, bool) and value != "":
        return value
    raise ValueError("a number or a quantity such as '10 ms'")


def _expression(value: object) -> str | int | float:
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return value
    raise ValueError("an expression")


def _condition(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError("a condition such as 'a <= b'")


def _column_kind(value: object) -> str:
    if value in COLUMN_KINDS:
        return str(value)
    return _unit(value)


def _unit(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value == 1:
        return "1"
    if not isinstance(value, str) or not value:
        raise ValueError("a unit such as ms, GB/s or percent, or 1 for a plain number")
    try:
        parse_unit(value)
    except UnitError as error:
        raise ValueError(f"a unit; {error}") from None
    return value


def _one_or_many(value: object) -> bool | int | float | str | tuple[bool | int | float | str, ...]:
    if isinstance(value, list | tuple) and value:
        return tuple(_scalar(item) for item in value)
    if isinstance(value, bool | int | float | str):
        return value
    raise ValueError("a value or a list of values")


def _bounds(value: object) -> str | tuple[str, ...]:
    many = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not many or not all(isinstance(item, str) and item.strip() for item in many):
        raise ValueError("a bound such as '<= 10 ms', a list of bounds, or a mapping with the key 'check'")
    return many if isinstance(value, list | tuple) else many[0]


def _code(value: object) -> str:
    if isinstance(value, str) and is_code(value):
        return value
    raise ValueError("a Python function: 'package.module:function' or './file.py:function'")


def _duration(value: object) -> str:
    expected = "a duration such as '30 s'"
    try:
        quantity = parse_quantity(str(value))
    except UnitError as error:
        raise ValueError(f"{expected}; {error}") from None
    if quantity.unit is None or quantity.unit.dims != (("s", 1),) or not quantity.value > 0:
        raise ValueError(expected)
    return str(value)


def _best(value: object) -> dict[str, str | int | float]:
    given = value if isinstance(value, dict) else {"above": value}
    if len(given) == 1 and given.keys() <= {"above", "below"}:
        return {side: _expression(expression) for side, expression in given.items()}
    raise ValueError("an expression, or a mapping with one key, above or below")


def _share(value: object) -> int | float | str:
    found = read_share(value)
    if found is None:
        raise ValueError("a share such as '6 percent' or 0.06")
    assert isinstance(value, int | float | str)
    return value


def _factor(value: object) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value > 1:
        return value
    raise ValueError("a number above 1, such as 2")


def read_share(value: object) -> float | None:
    """A share from 0 to below 1: ``0.06``, ``6 percent`` or ``6%``; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value).strip()
    if text.endswith("%"):
        text = f"{text[:-1].rstrip()} percent"
    try:
        quantity = parse_quantity(text)
    except UnitError:
        return None
    plain = quantity.unit is None or quantity.unit.percent or quantity.unit.text == "1"
    return quantity.value if plain and 0.0 <= quantity.value < 1.0 else None


_PLAIN: dict[str, Any] = {"type": ["number", "string", "boolean"]}

Version = Annotated[Literal[1], PlainValidator(_version), WithJsonSchema({"const": 1})]
Text = Annotated[str, Field(min_length=1)]
Scalar = Annotated[bool | int | float | str, PlainValidator(_scalar), WithJsonSchema(_PLAIN)]
Number = Annotated[int | float | str, PlainValidator(_number), WithJsonSchema({"type": ["number", "string"]})]
Factor = Annotated[
    int | float, PlainValidator(_factor), WithJsonSchema({"type": "number", "exclusiveMinimum": 1})
]
Expression = Annotated[
    str | int | float, PlainValidator(_expression), WithJsonSchema({"type": ["string", "number"]})
]
Condition = Annotated[str, PlainValidator(_condition), WithJsonSchema({"type": ["string", "boolean"]})]
Unit = Annotated[str, PlainValidator(_unit), WithJsonSchema({"anyOf": [{"type": "string"}, {"const": 1}]})]
ColumnKind = Annotated[
    str, PlainValidator(_column_kind), WithJsonSchema({"anyOf": [{"type": "string"}, {"const": 1}]})
]
OneOrMany = Annotated[
    bool | int | float | str | tuple[bool | int | float | str, ...],
    PlainValidator(_one_or_many),
    WithJsonSchema({"anyOf": [_PLAIN, {"type": "array", "items": _PLAIN, "minItems": 1}]}),
]
Bounds = Annotated[
    str | tuple[str, ...],
    PlainValidator(_bounds),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
    ),
]
Code = Annotated[
    str, PlainValidator(_code), WithJsonSchema({"type": "string", "pattern": f"^{_CODE.pattern}$"})
]
Duration = Annotated[str, PlainValidator(_duration), WithJsonSchema({"type": "string"})]

_EXPRESSION: dict[str, Any] = {"type": ["string", "number"]}
Best = Annotated[
    dict[str, str | int | float],
    PlainValidator(_best),
    WithJsonSchema(
        {
            "anyOf": [
                _EXPRESSION,
                {
                    "type": "object",
                    "properties": {"above": _EXPRESSION, "below": _EXPRESSION},
                    "additionalProperties": False,
                    "minProperties": 1,
                    "maxProperties": 1,
                },
            ]
        }
    ),
]
"""A record: the expression of a largest (``above``) or smallest (``below``) value ever measured."""
Share = Annotated[int | float | str, PlainValidator(_share), WithJsonSchema({"type": ["number", "string"]})]
