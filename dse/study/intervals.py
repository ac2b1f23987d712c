"""What an operation can give when its arguments are only known to lie between bounds.

A number is ``(low, high, odd)``: every value that is a number lies in [low, high], and ``odd`` says whether it can also
be NaN or undefined. A truth value is ``(can be true, can be false, can be undefined)``. When low > high it is never a
number.

**Why bounds hold for computed values.** Rounding to nearest is monotone: x <= y implies round(x) <= round(y). So + - *
/ min max floor ceil abs sqrt and the comparisons, as floating-point operations, are monotone in each argument wherever
the exact ones are, and the same operation on endpoints bounds what the evaluators compute: no widening is needed.
``*`` and ``/`` are monotone in each argument while the other is fixed, so their extremes are at corners. Where a corner
is NaN (0 * inf, inf / inf) the values beside it come to zero and what other corners give, so zero takes its place.
A zero may be -0.0, which compares as 0.0 and matters to nothing but a divisor (and a base of negative power): one that
can be zero makes the quotient unbounded on both sides. ``exp log log2 **`` are monotone as functions but need not be
as computed; NumPy's are wrong by a few units in the last place, and :func:`widened` allows for 16.

NaN and undefined are not told apart: both keep a design from being feasible and a rule from being met. ``**`` can turn
NaN into 1 (``nan ** 0``), which is allowed for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "ANY",
    "ANYTHING",
    "NEVER",
    "NOTHING",
    "OPERATIONS",
    "Bounds",
    "Number",
    "Truth",
    "compared",
    "hull",
]

Number: TypeAlias = tuple[float, float, bool]
Truth: TypeAlias = tuple[bool, bool, bool]
Bounds: TypeAlias = Any
"""A :data:`Number` or a :data:`Truth`, by the kind of the node."""

INF = math.inf
NOTHING: Number = (INF, -INF, True)
ANYTHING: Number = (-INF, INF, True)
NEVER: Truth = (False, False, True)
ANY: Truth = (True, True, True)

_TINY = 2.3e-308  # the smallest normal double, about: below it errors are absolute
_RELATIVE = 2.0**-48
_GREAT = float(np.finfo(np.float64).max)


def hull(a: Number, b: Number) -> Number:
    """Bounds of a value that is one or the other."""
    return min(a[0], b[0]), max(a[1], b[1]), a[2] or b[2]


# -- arithmetic ------------------------------------------------------------------------------------


def _empty(a: Number) -> bool:
    return a[0] > a[1]


def _unbounded(a: Number) -> bool:
    return a[0] == -INF or a[1] == INF


def _zero(a: Number) -> bool:
    return a[0] <= 0.0 <= a[1]


def _alias(a: Bounds) -> Bounds:
    return a


def _neg(a: Number) -> Number:
    return -a[1], -a[0], a[2]


def _add(a: Number, b: Number) -> Number:
    if _empty(a) or _empty(b):
        return NOTHING
    low, high = a[0] + b[0], a[1] + b[1]
    odd = a[2] or b[2] or (a[1] == INF and b[0] == -INF) or (a[0] == -INF and b[1] == INF)
    return -INF if low != low else low, INF if high != high else high, odd


def _sub(a: Number, b: Number) -> Number:
    return _add(a, (-b[1], -b[0], b[2]))


def _corners(corners: tuple[float, ...], odd: bool) -> Number:
    found = [0.0 if x != x else x for x in corners]
    return min(found), max(found), odd


def _mul(a: Number, b: Number) -> Number:
    if _empty(a) or _empty(b):
        return NOTHING
    odd = a[2] or b[2] or (_zero(a) and _unbounded(b)) or (_zero(b) and _unbounded(a))
    return _corners((a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]), odd)


def _div(a: Number, b: Number) -> Number:
    if _empty(a) or _empty(b):
        return NOTHING
    odd = a[2] or b[2] or (_unbounded(a) and _unbounded(b))
    if _zero(b):
        if a[0] == a[1] == 0.0:
            return 0.0, 0.0, True
        return -INF, INF, odd or _zero(a)
    return _corners((a[0] / b[0], a[0] / b[1], a[1] / b[0], a[1] / b[1]), odd)


def _min(a: Number, b: Number) -> Number:
    if _empty(a) or _empty(b):
        return NOTHING
    return min(a[0], b[0]), min(a[1], b[1]), a[2] or b[2]


def _max(a: Number, b: Number) -> Number:
    if _empty(a) or _empty(b):
        return NOTHING
    return max(a[0], b[0]), max(a[1], b[1]), a[2] or b[2]


def _abs(a: Number) -> Number:
    if _empty(a):
        return NOTHING
    return 0.0 if _zero(a) else min(abs(a[0]), abs(a[1])), max(abs(a[0]), abs(a[1])), a[2]


def _monotone(function: Callable[[float], float]) -> Callable[[Number], Number]:
    def operation(a: Number) -> Number:
        return NOTHING if _empty(a) else (function(a[0]), function(a[1]), a[2])

    return operation


def _floor(x: float) -> float:
    return float(math.floor(x)) if abs(x) < 2.0**52 else x


def _ceil(x: float) -> float:
    return float(math.ceil(x)) if abs(x) < 2.0**52 else x


def _of_positive(function: Callable[[float], float]) -> Callable[[Number], Number]:
    """An increasing function of numbers from zero; NaN below."""

    def operation(a: Number) -> Number:
        if _empty(a) or a[1] < 0.0:
            return NOTHING
        low, high, odd = _rounded(function, max(a[0], 0.0), a[1])
        return low, high, odd or a[2] or a[0] < 0.0

    return operation


# -- exp log log2 ** -------------------------------------------------------------------------------


def widened(low: float, high: float) -> tuple[float, float]:
    """Bounds for what a function computes, given what it computes at its extremes: 16 units in the last place."""
    if low == INF:
        low = _GREAT  # it overflows here; elsewhere it may only just not
    if high == -INF:
        high = -_GREAT
    low = low if low == -INF else low - abs(low) * _RELATIVE - _TINY
    high = high if high == INF else high + abs(high) * _RELATIVE + _TINY
    return low, high


def _call(function: np.ufunc, *args: float) -> float:
    with np.errstate(all="ignore"):
        return float(function(*(np.array([a]) for a in args))[0])


def _rounded(function: Any, low: float, high: float) -> Number:
    if not isinstance(function, np.ufunc):
        return function(low), function(high), False
    below, above = _call(function, low), _call(function, high)
    return *widened(below, above), False


def _exp(a: Number) -> Number:
    if _empty(a):
        return NOTHING
    low, high, _ = _rounded(np.exp, a[0], a[1])
    return max(low, 0.0), high, a[2]


def _pow(a: Number, b: Number) -> Number:
    """Of a positive base, monotone in base and exponent; of any other, bounded by the power of its size."""
    odd = a[2] or b[2]
    one = (1.0, 1.0, True) if odd else NOTHING  # nan ** 0 and 1 ** nan
    if _empty(a) or _empty(b):
        return hull(one, NOTHING)
    size = _abs(a)
    corners = [_call(np.power, x, y) for x in size[:2] for y in b[:2]]
    low, high = widened(min(corners), max(corners))
    low = max(low, 0.0)
    if a[0] <= 0.0:
        # Of a negative base (or of -0.0, to a negative power) the result can have either sign, or be NaN.
        odd = odd or a[0] < 0.0
        low = -high if a[0] < 0.0 or b[0] < 0.0 else low
    return hull((low, high, odd), one) if odd else (low, high, odd)


# -- truth values ----------------------------------------------------------------------------------


def compared(op: str, a: Number, b: Number) -> Truth:
    """``a op b`` of numbers; ``op`` is lt, le, eq or ne."""
    if _empty(a) or _empty(b):
        return NEVER
    odd = a[2] or b[2]
    if op == "lt":
        return a[0] < b[1], a[1] >= b[0], odd
    if op == "le":
        return a[0] <= b[1], a[1] > b[0], odd
    equal, other = a[0] <= b[1] and b[0] <= a[1], not a[0] == a[1] == b[0] == b[1]
    return (equal, other, odd) if op == "eq" else (other, equal, odd)


def _not(a: Truth) -> Truth:
    return a[1], a[0], a[2]


def _and(a: Truth, b: Truth) -> Truth:
    return a[0] and b[0], a[1] or (a[0] and b[1]), a[2] or (a[0] and b[2])


def _or(a: Truth, b: Truth) -> Truth:
    return a[0] or (a[1] and b[0]), a[1] and b[1], a[2] or (a[1] and b[2])


def same(a: Truth, b: Truth) -> Truth:
    """``a == b`` of truth values."""
    equal = (a[0] and b[0]) or (a[1] and b[1])
    other = (a[0] and b[1]) or (a[1] and b[0])
    return equal, other, a[2] or b[2]


def chosen(condition: Truth, yes: Number, no: Number) -> Number:
    """``where`` of numbers."""
    found = hull(yes if condition[0] else NOTHING, no if condition[1] else NOTHING)
    odd = condition[2] or (condition[0] and yes[2]) or (condition[1] and no[2])
    return found[0], found[1], odd


def either(condition: Truth, yes: Truth, no: Truth) -> Truth:
    """``where`` of truth values."""
    parts = [(condition[0] and a) or (condition[1] and b) for a, b in zip(yes, no, strict=True)]
    return parts[0], parts[1], condition[2] or parts[2]


OPERATIONS: dict[str, Callable[..., Bounds]] = {
    "alias": _alias,
    "neg": _neg,
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "min": _min,
    "max": _max,
    "abs": _abs,
    "floor": _monotone(_floor),
    "ceil": _monotone(_ceil),
    "sqrt": _of_positive(math.sqrt),
    "exp": _exp,
    "log": _of_positive(np.log),
    "log2": _of_positive(np.log2),
    "pow": _pow,
    "not": _not,
    "and": _and,
    "or": _or,
}
"""Of operations whose arguments and value are all numbers, or all truth values."""
