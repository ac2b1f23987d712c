"""Interval operations on arrays of lower and upper bounds: what each side of a result needs, and how it is had.

Why the bounds are sound for the *computed* values, without outward rounding: round-to-nearest ``+ - * /``, ``min``,
``max``, ``floor``, ``ceil``, ``abs`` and ``sqrt`` are monotone in each argument also after rounding. The interval
operations do the same float operation as the evaluators, in the same order, on end points chosen by sign, so a result on
end points is at least (at most) every result inside. ``exp log log2 **`` are only nearly monotone, so theirs are
widened by some units in the last place.

A bound speaks of the values that are numbers. NaN and undefined values belong to no bound: every operation passes NaN on
(or, ``**``, is given the one number that can come of it), and a design that reaches NaN in an objective,
constraint or rule is never feasible, so boxes may be discarded as if those values were not there. A box all of whose
values are NaN may have any bounds. No bound is ever NaN itself: a NaN that comes of end points (``0 * inf``, ``inf - inf``,
``inf / inf``) is replaced by what makes the bound wider.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.expressions import Kind, Node

__all__ = ["LOGIC", "NUMBER", "Range", "Recipe", "operation"]

Array = NDArray[Any]

NUMBER = ("lo", "hi")
LOGIC = ("true", "false")

_WIDER = 2.0**-48
"""How much a transcendental bound is widened, relatively: 16 units in the last place."""


class Range(NamedTuple):
    """What a node can be anywhere in the space. ``sure``: always a finite number (or a defined truth value)."""

    lo: float = -np.inf
    hi: float = np.inf
    sure: bool = False


class Recipe(NamedTuple):
    """One side of an operation: the sides of its arguments that it needs, (number of argument, side), and the function."""

    needs: tuple[tuple[int, str], ...]
    function: Callable[..., Array]


_LO, _HI = (0, "lo"), (0, "hi")
_LO2, _HI2 = (1, "lo"), (1, "hi")


def operation(node: Node, args: Sequence[Range], same: bool) -> tuple[dict[str, Recipe], bool]:
    """The recipes of a node's sides, given the ranges of its arguments; and whether a result is sure if it is finite.

    Args:
        same: whether both arguments are the same node.
    """
    if node.op in _MONOTONE:
        low, high = _MONOTONE[node.op]
        return {"lo": low, "hi": high}, all(arg.sure for arg in args) and _defined(node.op, args)
    if node.op == "mul":
        return _product(args, same), all(arg.sure for arg in args)
    if node.op == "div":
        sure = all(arg.sure for arg in args) and (args[1].lo > 0.0 or args[1].hi < 0.0)
        return _quotient(args), sure
    if node.op in ("add", "sub"):
        return _sum(node.op, args), all(arg.sure for arg in args)
    if node.op == "pow":
        return _power(), False
    if node.op == "where":
        return _choice(node), all(arg.sure for arg in args)
    if node.op in ("eq", "ne"):
        return _equality(node.op), all(arg.sure for arg in args)
    return _LOGICAL[node.op], all(arg.sure for arg in args)


def _defined(op: str, args: Sequence[Range]) -> bool:
    """Whether an operation on finite numbers gives a number."""
    return op not in ("sqrt", "log", "log2") or args[0].lo > 0.0 or (op == "sqrt" and args[0].lo >= 0.0)


# -- one argument, or monotone in both --------------------------------------------------------------------


def _abs_low(lo: Array, hi: Array) -> Array:
    return np.maximum(np.maximum(lo, -hi), 0.0)


def _abs_high(lo: Array, hi: Array) -> Array:
    return np.maximum(-lo, hi)


def _widened(function: np.ufunc, sign: float, domain: float = -np.inf) -> Callable[[Array], Array]:
    """A function of one argument, widened downwards (``sign`` -1) or upwards (1)."""

    def bound(values: Array) -> Array:
        found = function(np.ascontiguousarray(np.maximum(values, domain)))
        widened: Array = found + sign * (np.abs(found) * _WIDER + 1e-300)
        return np.where(np.isfinite(found), widened, found)

    return bound


def _pair(function: Callable[..., Array]) -> tuple[Recipe, Recipe]:
    return Recipe((_LO,), function), Recipe((_HI,), function)


_MONOTONE: dict[str, tuple[Recipe, Recipe]] = {
    "alias": _pair(lambda a: a),
    "neg": (Recipe((_HI,), np.negative), Recipe((_LO,), np.negative)),
    "floor": _pair(np.floor),
    "ceil": _pair(np.ceil),
    "sqrt": _pair(lambda a: np.sqrt(np.maximum(a, 0.0))),
    "abs": (Recipe((_LO, _HI), _abs_low), Recipe((_LO, _HI), _abs_high)),
    "min": (Recipe((_LO, _LO2), np.minimum), Recipe((_HI, _HI2), np.minimum)),
    "max": (Recipe((_LO, _LO2), np.maximum), Recipe((_HI, _HI2), np.maximum)),
    "exp": (Recipe((_LO,), _widened(np.exp, -1.0)), Recipe((_HI,), _widened(np.exp, 1.0))),
    "log": (Recipe((_LO,), _widened(np.log, -1.0, 0.0)), Recipe((_HI,), _widened(np.log, 1.0, 0.0))),
    "log2": (Recipe((_LO,), _widened(np.log2, -1.0, 0.0)), Recipe((_HI,), _widened(np.log2, 1.0, 0.0))),
}


# -- sums, products, quotients ------------------------------------------------------------------------------


def _or_else(function: np.ufunc, otherwise: float) -> Callable[..., Array]:
    """``function``, with ``otherwise`` in place of NaN."""

    def bound(*args: Array) -> Array:
        found: Array = np.asarray(function(*args))
        found[np.isnan(found)] = otherwise
        return found

    return bound


def _sum(op: str, args: Sequence[Range]) -> dict[str, Recipe]:
    function = np.add if op == "add" else np.subtract
    low: Callable[..., Array] = function
    high: Callable[..., Array] = function
    if not all(arg.sure for arg in args):
        low, high = _or_else(function, -np.inf), _or_else(function, np.inf)
    if op == "add":
        return {"lo": Recipe((_LO, _LO2), low), "hi": Recipe((_HI, _HI2), high)}
    return {"lo": Recipe((_LO, _HI2), low), "hi": Recipe((_HI, _LO2), high)}


def _product(args: Sequence[Range], same: bool) -> dict[str, Recipe]:
    a, b = args
    if not (a.sure and b.sure):
        times = _or_else(np.multiply, 0.0)
        return _corners(lambda x, y: np.asarray(times(x, y)))
    if a.lo >= 0.0 and b.lo >= 0.0:
        return {"lo": Recipe((_LO, _LO2), np.multiply), "hi": Recipe((_HI, _HI2), np.multiply)}
    if same:
        return {"lo": Recipe((_LO, _HI), _square_low), "hi": Recipe((_LO, _HI), _square_high)}
    if b.lo >= 0.0:
        return {
            "lo": Recipe((_LO, _LO2, _HI2), lambda x, y, z: np.minimum(x * y, x * z)),
            "hi": Recipe((_HI, _LO2, _HI2), lambda x, y, z: np.maximum(x * y, x * z)),
        }
    if a.lo >= 0.0:
        return {
            "lo": Recipe((_LO, _HI, _LO2), lambda x, y, z: np.minimum(x * z, y * z)),
            "hi": Recipe((_LO, _HI, _HI2), lambda x, y, z: np.maximum(x * z, y * z)),
        }
    return _corners(np.multiply)


def _square_low(lo: Array, hi: Array) -> Array:
    nearest = _abs_low(lo, hi)
    found: Array = nearest * nearest
    return found


def _square_high(lo: Array, hi: Array) -> Array:
    furthest = _abs_high(lo, hi)
    found: Array = furthest * furthest
    return found


def _corners(function: Callable[..., Array]) -> dict[str, Recipe]:
    """The extremes over all four pairs of end points; NaN among them counts for nothing."""
    needs = (_LO, _HI, _LO2, _HI2)

    def low(a: Array, b: Array, c: Array, d: Array) -> Array:
        first = np.fmin(function(a, c), function(a, d))
        return _unless_nan(np.fmin(first, np.fmin(function(b, c), function(b, d))), -np.inf)

    def high(a: Array, b: Array, c: Array, d: Array) -> Array:
        first = np.fmax(function(a, c), function(a, d))
        return _unless_nan(np.fmax(first, np.fmax(function(b, c), function(b, d))), np.inf)

    return {"lo": Recipe(needs, low), "hi": Recipe(needs, high)}


def _unless_nan(values: Array, otherwise: float) -> Array:
    values = np.asarray(values)
    values[np.isnan(values)] = otherwise
    return values


def _quotient(args: Sequence[Range]) -> dict[str, Recipe]:
    a, b = args
    if a.sure and b.sure and b.lo > 0.0:
        if a.lo >= 0.0:
            return {"lo": Recipe((_LO, _HI2), np.divide), "hi": Recipe((_HI, _LO2), np.divide)}
        return {
            "lo": Recipe((_LO, _LO2, _HI2), lambda x, y, z: np.minimum(x / y, x / z)),
            "hi": Recipe((_HI, _LO2, _HI2), lambda x, y, z: np.maximum(x / y, x / z)),
        }
    corners = _corners(np.divide)

    def wide(recipe: Recipe, whole: float) -> Recipe:
        def bound(lo: Array, hi: Array, low: Array, high: Array) -> Array:
            # A divisor that can be zero, of either sign, gives anything.
            return np.where((low <= 0.0) & (high >= 0.0), whole, recipe.function(lo, hi, low, high))

        return Recipe(recipe.needs, bound)

    return {"lo": wide(corners["lo"], -np.inf), "hi": wide(corners["hi"], np.inf)}


def _power() -> dict[str, Recipe]:
    """``a ** b``: bilinear in b and log(a) for a > 0; of either sign, and at most as large, for a < 0.

    A base of -0.0, which bounds do not tell from 0.0, gives -inf to a negative odd power.
    """
    needs = (_LO, _HI, _LO2, _HI2)

    def sizes(lo: Array, hi: Array, low: Array, high: Array) -> tuple[Array, Array]:
        near, far = _abs_low(lo, hi), _abs_high(lo, hi)
        corners = [
            np.power(*(np.ascontiguousarray(x) for x in np.broadcast_arrays(base, exponent)))
            for base in (near, far)
            for exponent in (low, high)
        ]
        return np.minimum.reduce(corners), np.maximum.reduce(corners)

    def low_of(lo: Array, hi: Array, low: Array, high: Array) -> Array:
        least, most = sizes(lo, hi, low, high)
        negative = (lo < 0.0) | ((lo <= 0.0) & (low < 0.0))
        found = np.where(negative, -most * (1 + _WIDER) - 1e-300, least * (1 - _WIDER) - 1e-300)
        return _unless_nan(np.minimum(found, 1.0), -np.inf)  # NaN ** 0 and 1 ** NaN are 1

    def high_of(lo: Array, hi: Array, low: Array, high: Array) -> Array:
        most = sizes(lo, hi, low, high)[1]
        return _unless_nan(np.maximum(most * (1 + _WIDER) + 1e-300, 1.0), np.inf)

    return {"lo": Recipe(needs, low_of), "hi": Recipe(needs, high_of)}


# -- truth values: whether a box can hold a true one, and a false one ---------------------------------------

_TRUE, _FALSE = (0, "true"), (0, "false")
_TRUE2, _FALSE2 = (1, "true"), (1, "false")

_LOGICAL: dict[str, dict[str, Recipe]] = {
    "lt": {"true": Recipe((_LO, _HI2), np.less), "false": Recipe((_HI, _LO2), np.greater_equal)},
    "le": {"true": Recipe((_LO, _HI2), np.less_equal), "false": Recipe((_HI, _LO2), np.greater)},
    "not": {"true": Recipe((_FALSE,), lambda a: a), "false": Recipe((_TRUE,), lambda a: a)},
    "and": {
        "true": Recipe((_TRUE, _TRUE2), np.logical_and),
        "false": Recipe((_TRUE, _FALSE, _FALSE2), lambda a, b, c: b | (a & c)),
    },
    "or": {
        "true": Recipe((_TRUE, _FALSE, _TRUE2), lambda a, b, c: a | (b & c)),
        "false": Recipe((_FALSE, _FALSE2), np.logical_and),
    },
    "alias": {"true": Recipe((_TRUE,), lambda a: a), "false": Recipe((_FALSE,), lambda a: a)},
}


def _equality(op: str) -> dict[str, Recipe]:
    needs = (_LO, _HI, _LO2, _HI2)
    can = Recipe(needs, lambda a, b, c, d: (a <= d) & (c <= b))
    must = Recipe(needs, lambda a, b, c, d: (a != b) | (c != d) | (a != c))
    return {"true": can, "false": must} if op == "eq" else {"true": must, "false": can}


def _choice(node: Node) -> dict[str, Recipe]:
    """``where``: the arms that the condition leaves possible."""
    if node.type.kind is Kind.BOOL:
        return {
            side: Recipe((_TRUE, _FALSE, (1, side), (2, side)), lambda yes, no, a, b: (yes & a) | (no & b))
            for side in LOGIC
        }

    def chosen(extreme: np.ufunc) -> Callable[..., Array]:
        def bound(yes: Array, no: Array, a: Array, b: Array) -> Array:
            return np.where(yes, np.where(no, extreme(a, b), a), b)

        return bound

    return {
        "lo": Recipe((_TRUE, _FALSE, (1, "lo"), (2, "lo")), chosen(np.minimum)),
        "hi": Recipe((_TRUE, _FALSE, (1, "hi"), (2, "hi")), chosen(np.maximum)),
    }
