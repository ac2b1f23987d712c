"""Reading values that are given by name: of a dimension, or for an input."""

from __future__ import annotations

import math

from dse.errors import InputError, nearest
from dse.expressions import Kind, Type, Value
from dse.problem.parts import Dimension, Input
from dse.units import Quantity, Unit, UnitError, format_value, parse_quantity

__all__ = ["beside", "input_value", "read_value"]

_LABELS = 10_000
"""Values of a dimension that are looked through for the nearest spelling."""


def read_value(text: str, type_: Type, unit: Unit | None) -> Value:
    """A value given as text, read by the kind of what it is for; a text that does not fit is returned as it is."""
    if type_.kind is Kind.BOOL and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if type_.kind is Kind.NUMBER:
        try:
            quantity = parse_quantity(text)
        except UnitError:
            return text
        if quantity.unit is None and unit is not None:
            return text
        return quantity.value
    return text


def beside(dimension: Dimension, text: str) -> str:
    """What a dimension has instead of ``text``: the values on both sides of a number, else the nearest spelling."""
    wanted = read_value(text, dimension.type, dimension.unit)
    if not isinstance(wanted, float) or dimension.type.kind is not Kind.NUMBER or not len(dimension.values):
        labels = [dimension.label(at) for at in range(min(len(dimension.values), _LABELS))]
        return nearest(text, labels)
    numbers = {float(value): at for at, value in enumerate(dimension.values)}
    below = max((number for number in numbers if number < wanted), default=None)
    above = min((number for number in numbers if number > wanted), default=None)
    near = [dimension.label(numbers[number]) for number in (below, above) if number is not None]
    return f"; the nearest {'are' if len(near) > 1 else 'is'} {' and '.join(near)}" if near else ""


def input_value(declared: Input, value: object) -> Value:
    """``value`` for an input, checked against its declared kind, unit, choices and limits."""
    name, type_ = declared.name, declared.type
    if type_.kind is Kind.BOOL:
        read = read_value(value, type_, None) if isinstance(value, str) else value
        if not isinstance(read, bool):
            raise InputError(f"input {name!r} is true or false, but got {value!r}")
        return read
    if type_.kind is Kind.STRING:
        if not isinstance(value, str):
            raise InputError(f"input {name!r} is a text, but got {value!r}")
        if declared.choices and value not in declared.choices:
            raise InputError(
                f"input {name!r} cannot be {value!r}{nearest(value, [str(c) for c in declared.choices])}"
            )
        return value
    number = _input_number(declared, value)
    if math.isnan(number):
        raise InputError(f"input {name!r} must be a number, but got NaN")
    if declared.choices and number not in declared.choices:
        raise InputError(
            f"input {name!r} must be one of {', '.join(str(c) for c in declared.choices)}, but got {value!r}"
        )
    if declared.limits is not None and not declared.limits.allow(number):
        expected = declared.limits.text(declared.unit)
        raise InputError(f"input {name!r} must be {expected}, but got {_plain_text(value)}")
    return number


def _input_number(declared: Input, value: object) -> float:
    """A number in base units for an input that is one; with a unit, when the input has one."""
    unit = declared.unit
    example = f"; write {_plain_text(value)} {unit.text}" if unit else ""
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Quantity)):
        raise InputError(f"input {declared.name!r} is a number, but got {value!r}")
    if isinstance(value, (int, float)):
        if unit is not None:
            raise InputError(
                f"input {declared.name!r} needs a quantity in {unit.text}, but got {value!r}{example}"
            )
        return float(value)
    try:
        quantity = parse_quantity(value) if isinstance(value, str) else value
    except UnitError as error:
        raise InputError(f"input {declared.name!r}: {error}") from None
    percent = quantity.unit is not None and quantity.unit.percent
    if Type.of_unit(quantity.unit).dims != declared.type.dims or percent != (
        unit is not None and unit.percent
    ):
        wanted = f"a quantity in {unit.text}" if unit else "a number without a unit"
        found = quantity.unit.text if quantity.unit else "no unit"
        hint = example if quantity.unit is None else ""
        raise InputError(
            f"input {declared.name!r} needs {wanted}, but got {found} in {_plain_text(value)!r}{hint}"
        )
    return quantity.value


def _plain_text(value: object) -> str:
    return (
        value
        if isinstance(value, str)
        else f"{value:g}"
        if isinstance(value, (int, float))
        else format_value(value.value, value.unit)
        if isinstance(value, Quantity)
        else str(value)
    )
