"""Plain scalars by the YAML 1.2 core schema: ``no``, ``1:10``, ``1_000`` and dates are text, ``1e-3`` is a number."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from math import inf, isinf, nan

__all__ = ["Plain", "read_plain"]

Plain = None | bool | int | float | str
"""What one scalar of a space file can be."""

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBERS: tuple[tuple[re.Pattern[str], Callable[[str], int | float]], ...] = (
    (re.compile(r"[-+]?[0-9]+"), int),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
    (re.compile(r"0x[0-9a-fA-F]+"), lambda text: int(text, 0)),
    (re.compile(r"0o[0-7]+"), lambda text: int(text, 0)),
)
_INFINITY = re.compile(r"[-+]?(\.inf|\.Inf|\.INF)")
_NANS = frozenset({".nan", ".NaN", ".NAN"})
_LONGEST_NUMBER = 400  # more characters than any double needs
_LARGEST = int(sys.float_info.max)


def read_plain(text: str) -> Plain:
    """The value of an unquoted scalar.

    Raises:
        ValueError: a number that does not fit a double, or one that is too long; the message says which.
    """
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if text[0] not in "+-.0123456789":
        return text
    for pattern, read in _NUMBERS:
        if pattern.fullmatch(text):
            return _number(text, read)
    if _INFINITY.fullmatch(text):
        return -inf if text[0] == "-" else inf
    return nan if text in _NANS else text


def _number(text: str, read: Callable[[str], int | float]) -> int | float:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(text)} characters, expected at most {_LONGEST_NUMBER}")
    value = read(text)
    if isinf(value) if isinstance(value, float) else abs(value) > _LARGEST:
        raise ValueError(f"{text}, expected a number that fits a double (up to 1.8e308)")
    if value == 0 and re.search(r"[1-9]", re.split("[eE]", text)[0]):
        raise ValueError(f"{text}, expected a number that fits a double (1e-323 at the smallest)")
    return value
