"""Check the choices of a dimension or an input: one kind, no duplicates, no NaN, no empty list."""

from __future__ import annotations

from math import isnan

from dse.errors import Diagnostic
from dse.space.nodes import Path, Scalar, Sequence, describe, show_path
from dse.units import UnitError, parse_quantity, parse_unit, to_base

__all__ = ["LARGEST_INTEGER", "check_choices"]

LARGEST_INTEGER = 2**53
"""The largest integer whose neighbours are all doubles."""


def check_choices(choices: Sequence, path: Path, unit: str | None = None) -> list[Diagnostic]:
    """What is wrong with a list of choices. With ``unit`` they must be numbers or quantities in it."""
    if not choices.items:
        return [
            Diagnostic(choices.location, show_path(path), "found an empty list, expected at least one value")
        ]
    found: list[Diagnostic] = []
    seen: dict[tuple[str, object], tuple[int, str]] = {}
    first_kind = ""
    for index, item in enumerate(choices.items):
        if not isinstance(item, Scalar) or item.value is None:
            continue  # the schema reports it

        def report(message: str, where: Scalar = item, step: int = index) -> None:
            found.append(Diagnostic(where.location, show_path((*path, step)), message))

        problem = _problem(item, unit)
        if problem:
            report(f"found {describe(item)}, expected {problem}")
            continue
        kind, identity = _identity(item, unit)
        first_kind = first_kind or kind
        if kind != first_kind:
            report(
                f"found {kind} {describe(item)}, expected {first_kind} like the first value; do not mix kinds"
            )
        elif (kind, identity) in seen:
            position, text = seen[kind, identity]
            report(f"found {describe(item)} again (value {position + 1} is {text}), expected it once")
        seen.setdefault((kind, identity), (index, describe(item)))
    return found


def _problem(item: Scalar, unit: str | None) -> str | None:
    """What was expected instead of an item; None when it can be a choice."""
    if item.value == "":
        return "a number, a text that is not empty, true or false"
    value = item.value
    if isinstance(value, float) and isnan(value):
        return "a value that equals itself"
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return "an integer of at most 2^53"
    if unit is None or isinstance(value, float) or type(value) is int:
        return None
    if not isinstance(value, str):
        return f"a number or a quantity in {unit}"
    return _quantity_problem(value, unit)


def _quantity_problem(text: str, unit: str) -> str | None:
    try:
        quantity = parse_quantity(text)
        if quantity.unit and quantity.unit.dims == parse_unit(unit).dims:
            return None
    except UnitError as error:
        return f"a number or a quantity in {unit}; {error}"
    return f"a number or a quantity in {unit}"


def _identity(item: Scalar, unit: str | None) -> tuple[str, object]:
    """The kind of a choice and what two equal choices have in common."""
    value = item.value
    if isinstance(value, bool):
        return "the truth value", value
    if unit is not None:
        if isinstance(value, str):
            return "the number", parse_quantity(value).value
        return "the number", to_base(repr(value), parse_unit(unit)) if abs(float(value or 0)) < float(
            "inf"
        ) else value
    return ("the text", value) if isinstance(value, str) else ("the number", value)
