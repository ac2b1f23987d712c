"""What a result of floating-point arithmetic can be, from what its arguments can be.

Rounding to nearest is monotone, so the same operation on the ends of ranges bounds every computed result. Beside its
range, each value has two marks: whether it can be NaN, and which reasons it can have to be undefined. A range says
nothing of values that are NaN or undefined.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from dse.evaluation.bulk import NAN_READ

__all__ = ["ANYTHING", "OPERATIONS", "TRUTH", "Range"]


class Range(NamedTuple):
    """``low`` to ``high`` (0 and 1 for truth values); ``nan``: it can be NaN.

    ``reasons``: a set of bits, NAN_READ and MISSING, of why it can be undefined.
    """

    low: float
    high: float
    nan: bool = False
    reasons: int = 0

    @property
    def sure(self) -> bool:
        """Whether it is always a defined value that is not NaN."""
        return not self.nan and not self.reasons

    @property
    def zero(self) -> bool:
        """Whether it can be zero."""
        return self.low <= 0.0 <= self.high

    @property
    def infinite(self) -> bool:
        """Whether it can be infinite."""
        return self.low == -math.inf or self.high == math.inf


ANYTHING = Range(-math.inf, math.inf, True)
TRUTH = Range(0.0, 1.0)


def _ends(*candidates: float) -> tuple[float, float]:
    """The hull of results at the ends; one that is NaN there is 0 or has a limit among the others."""
    numbers = [0.0 if c != c else c for c in candidates]
    return min(numbers), max(numbers)


def _quotient(a: float, b: float) -> float:
    return math.nan if math.isinf(a) and math.isinf(b) else a / b


def _of_both(a: Range, b: Range) -> tuple[bool, int]:
    return a.nan or b.nan, a.reasons | b.reasons


def _add(a: Range, b: Range) -> Range:
    nan, reasons = _of_both(a, b)
    opposed = (a.high == math.inf and b.low == -math.inf) or (a.low == -math.inf and b.high == math.inf)
    low, high = a.low + b.low, a.high + b.high
    if opposed:
        low, high = -math.inf, math.inf
    return Range(low, high, nan or opposed, reasons)


def _neg(a: Range) -> Range:
    return Range(-a.high, -a.low, a.nan, a.reasons)


def _mul(a: Range, b: Range) -> Range:
    nan, reasons = _of_both(a, b)
    low, high = _ends(*(x * y for x in (a.low, a.high) for y in (b.low, b.high)))
    return Range(low, high, nan or (a.zero and b.infinite) or (a.infinite and b.zero), reasons)


def _div(a: Range, b: Range) -> Range:
    nan, reasons = _of_both(a, b)
    nan = nan or (a.infinite and b.infinite)
    if b.zero:
        return Range(-math.inf, math.inf, nan or a.zero, reasons)
    low, high = _ends(*(_quotient(x, y) for x in (a.low, a.high) for y in (b.low, b.high)))
    return Range(low, high, nan, reasons)


def _abs(a: Range) -> Range:
    ends = abs(a.low), abs(a.high)
    return Range(0.0 if a.zero else min(ends), max(ends), a.nan, a.reasons)


def _rounded(function: Callable[[float], int]) -> Callable[[Range], Range]:
    def whole(x: float) -> float:
        return float(function(x)) if math.isfinite(x) else x

    return lambda a: Range(whole(a.low), whole(a.high), a.nan, a.reasons)


def _sqrt(a: Range) -> Range:
    low, high = (math.sqrt(max(x, 0.0)) for x in (a.low, a.high))
    return Range(low, high, a.nan or a.low < 0.0, a.reasons)


def _min(a: Range, b: Range) -> Range:
    return Range(min(a.low, b.low), min(a.high, b.high), *_of_both(a, b))


def _max(a: Range, b: Range) -> Range:
    return Range(max(a.low, b.low), max(a.high, b.high), *_of_both(a, b))


def _decided(true: bool, false: bool, a: Range, b: Range) -> Range:
    nan, reasons = _of_both(a, b)
    return Range(float(true), float(not false), False, reasons | (NAN_READ if nan else 0))


def _lt(a: Range, b: Range) -> Range:
    return _decided(a.high < b.low, a.low >= b.high, a, b)


def _le(a: Range, b: Range) -> Range:
    return _decided(a.high <= b.low, a.low > b.high, a, b)


def _eq(a: Range, b: Range) -> Range:
    same = a.low == a.high == b.low == b.high
    return _decided(same, a.high < b.low or b.high < a.low, a, b)


def _ne(a: Range, b: Range) -> Range:
    same = a.low == a.high == b.low == b.high
    return _decided(a.high < b.low or b.high < a.low, same, a, b)


def _not(a: Range) -> Range:
    return Range(1.0 - a.high, 1.0 - a.low, False, a.reasons)


def _and(a: Range, b: Range) -> Range:
    return Range(min(a.low, b.low), min(a.high, b.high), False, a.reasons | (b.reasons if a.high else 0))


def _or(a: Range, b: Range) -> Range:
    return Range(max(a.low, b.low), max(a.high, b.high), False, a.reasons | (0 if a.low else b.reasons))


OPERATIONS: dict[str, Callable[..., Range]] = {
    "alias": lambda a: a,
    "neg": _neg,
    "add": _add,
    "sub": lambda a, b: _add(a, _neg(b)),
    "mul": _mul,
    "div": _div,
    "abs": _abs,
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
    "sqrt": _sqrt,
    "min": _min,
    "max": _max,
    "lt": _lt,
    "le": _le,
    "eq": _eq,
    "ne": _ne,
    "not": _not,
    "and": _and,
    "or": _or,
}
"""By the name of the operation; ``where``, tables and functions of NumPy are not among them."""
