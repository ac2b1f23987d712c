"""Truth values of Python, NumPy or a traced design, combined alike; Python's own are settled at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dse.expressions.tracer import where

__all__ = ["all_of", "any_of", "chosen", "negated"]


def negated(a: Any) -> Any:
    """Whether ``a`` does not hold."""
    return (not a) if isinstance(a, bool) else ~a


def any_of(values: Iterable[Any]) -> Any:
    """Whether one of the values holds."""
    found: Any = False
    for value in values:
        if value is True or found is True:
            return True
        if value is not False:
            found = value if found is False else found | value
    return found


def all_of(*values: Any) -> Any:
    """Whether all of the values hold."""
    found: Any = True
    for value in values:
        if value is False:
            return False
        if value is not True:
            found = value if found is True else found & value
    return found


def chosen(condition: Any, value: Any) -> Any:
    """The value where the condition holds, else 0."""
    if isinstance(condition, bool):
        return value if condition else 0.0
    return where(condition, value, 0.0)
