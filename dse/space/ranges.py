"""Expand ``range: [lo, hi]`` into its values, computed exactly and rounded once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise

from dse.errors import InputError
from dse.units import Unit, UnitError, parse_quantity, parse_unit

__all__ = ["LIST_LIMIT", "Continuous", "Values", "expand_range"]

LIST_LIMIT = 2**24
"""Values of a range that has to be listed; ranges of integers with a step are not listed."""

_LOG_LIMIT = 2**20

_LARGEST_INTEGER = 2**53
_INTEGER = re.compile(r"[-+]?[0-9]+")
_DIGITS = Context(prec=50, Emax=10**6, Emin=-(10**6))


@dataclass(frozen=True, slots=True)
class Continuous:
    """An interval, both ends included; ``log`` asks samplers for a logarithmic scale."""

    lo: float
    hi: float
    log: bool = False


Values = Sequence[int] | Sequence[float] | Continuous
"""``range`` or tuple for integers, tuple for floats; in the dimension's unit."""


@dataclass(frozen=True, slots=True)
class _Number:
    """An exact number in the range's unit. ``whole``: written without a point or exponent."""

    text: str
    value: Fraction
    whole: bool

    @property
    def integer(self) -> bool:
        return self.whole and self.value.denominator == 1


def expand_range(
    lo_text: str,
    hi_text: str,
    step_text: str | None = None,
    scale: str | None = None,
    count: int | None = None,
    *,
    unit_text: str | None = None,
) -> Values:
    """The values of a range, ends included, in the unit ``unit_text``.

    Args:
        lo_text: the lower end: a decimal number, or a quantity when a unit is given.
        hi_text: the upper end.
        step_text: the distance of neighbours; it must hit the upper end.
        scale: ``pow2`` for the powers of two between the ends (which must be powers of two), or ``linear`` or
            ``log`` for the spacing of ``count`` values.
        count: how many values.
        unit_text: the unit of the values.

    Returns:
        Integers where all values are, as a ``range`` when they have a step; floats in a tuple; or
        :class:`Continuous` for ends that are not integers with nothing else given.

    Raises:
        InputError: the range is empty, misses its upper end, or has too many values; the message starts with
            what was found.
    """
    unit = parse_unit(unit_text) if unit_text else None
    lo, hi = _number(lo_text, unit), _number(hi_text, unit)
    if lo.value > hi.value:
        raise InputError(f"found an empty range from {lo.text} to {hi.text}, expected the lower end first")
    if step_text is not None:
        if scale is not None or count is not None:
            raise InputError("found step beside scale or count, expected at most one of them")
        return _stepped(lo, hi, _number(step_text, unit))
    if scale == "pow2":
        if count is not None:
            raise InputError("found count beside scale: pow2, expected at most one of them")
        return _powers_of_two(lo, hi)
    if count is not None:
        return _counted(lo, hi, count, scale == "log")
    if lo.integer and hi.integer:
        if scale == "log":
            raise InputError("found scale: log without count, expected a count for a range of integers")
        return _stepped(lo, hi, _Number("1", Fraction(1), whole=True))
    if lo.whole and hi.whole:
        raise InputError(
            f"found the ends {lo.text} and {hi.text}, expected integers in {unit_text}, or step or count"
        )
    if lo.value == hi.value:
        raise InputError(
            f"found an interval of the one value {lo.text}, expected two ends; write choices: [...]"
        )
    if scale == "log" and lo.value <= 0:
        raise InputError(f"found the lower end {lo.text}, expected more than 0 for scale: log")
    return Continuous(float(lo.value), float(hi.value), scale == "log")


def _number(text: str, unit: Unit | None) -> _Number:
    try:
        quantity = parse_quantity(text)
    except UnitError as error:
        raise InputError(f"found {text!r}, expected a number or a quantity; {error}") from None
    digits = text.strip()
    scale = Fraction(1)
    if quantity.unit is not None:
        if unit is None:
            raise InputError(f"found {text!r}, expected a plain number, or the key 'unit' beside the range")
        if quantity.unit.dims != unit.dims:
            raise InputError(f"found {text!r}, expected a quantity in {unit.text}")
        digits = re.split(r"[^-+.0-9eE]|[eE](?![-+]?[0-9])", digits, maxsplit=1)[0].strip()
        scale = quantity.unit.scale / unit.scale
    if quantity.value == 0 and re.search("[1-9]", re.split("[eE]", digits)[0]):
        raise InputError(f"found {text!r}, expected a number that fits a double")
    value = Fraction(Decimal(digits)) * scale
    if _INTEGER.fullmatch(digits) and abs(value) > _LARGEST_INTEGER:
        raise InputError(f"found {text}, expected an integer of at most 2^53")
    return _Number(text, value, bool(_INTEGER.fullmatch(digits)))


def _stepped(lo: _Number, hi: _Number, step: _Number) -> Values:
    if step.value <= 0:
        raise InputError(f"found the step {step.text}, expected more than 0")
    steps = (hi.value - lo.value) / step.value
    if steps.denominator != 1:
        below = lo.value + (steps.numerator // steps.denominator) * step.value
        hint = f"{_show(below)} or {_show(below + step.value)}"
        raise InputError(
            f"found a step of {step.text} that misses the end {hi.text}, expected an end such as {hint}"
        )
    if lo.integer and hi.integer and step.integer:
        return range(int(lo.value), int(hi.value) + 1, int(step.value))
    return _spaced(lo.value, step.value, int(steps) + 1)


def _spaced(first: Fraction, step: Fraction, count: int) -> tuple[float, ...]:
    """``first + i * step`` for i below ``count``: integers over one denominator, so each is rounded once."""
    _refuse_many(count)
    denominator = first.denominator * step.denominator
    start = first.numerator * step.denominator
    stride = step.numerator * first.denominator
    return _distinct(tuple(n / denominator for n in range(start, start + stride * count, stride)))


def _powers_of_two(lo: _Number, hi: _Number) -> Values:
    for end in (lo, hi):
        if not _is_power(end.value):
            raise InputError(
                f"found the end {end.text}, expected a power of two for scale: pow2{_nearby(end.value)}"
            )
    values = []
    value = lo.value
    while value <= hi.value:
        values.append(value)
        value *= 2
    if lo.value.denominator == 1:
        return tuple(int(value) for value in values)
    return tuple(float(value) for value in values)


def _is_power(value: Fraction) -> bool:
    larger = max(value.numerator, value.denominator)
    return value > 0 and min(value.numerator, value.denominator) == 1 and larger & (larger - 1) == 0


def _nearby(value: Fraction) -> str:
    if value < 1:
        return ""
    below = 1 << (int(value).bit_length() - 1)
    return f", such as {below} or {2 * below}"


def _counted(lo: _Number, hi: _Number, count: int, log: bool) -> Values:
    if count < 2:
        raise InputError(f"found a count of {count}, expected at least 2; write choices: [...] for one value")
    if lo.value == hi.value:
        raise InputError(f"found {count} values from {lo.text} to {hi.text}, expected two different ends")
    whole = lo.integer and hi.integer
    if log:
        return _geometric(lo, hi, count, whole)
    step = (hi.value - lo.value) / (count - 1)
    if whole and step.denominator == 1:
        return range(int(lo.value), int(hi.value) + 1, int(step))
    return _spaced(lo.value, step, count)


def _geometric(lo: _Number, hi: _Number, count: int, whole: bool) -> Values:
    if lo.value <= 0:
        raise InputError(f"found the lower end {lo.text}, expected more than 0 for scale: log")
    _refuse_many(count, _LOG_LIMIT)
    c = _DIGITS
    first, last = (c.divide(Decimal(end.value.numerator), Decimal(end.value.denominator)) for end in (lo, hi))
    ratio = c.exp(c.divide(c.ln(c.divide(last, first)), Decimal(count - 1)))
    exact = [first]
    for _ in range(count - 2):
        exact.append(c.multiply(exact[-1], ratio))
    rounded = [c.to_integral_value(value) for value in exact]
    if whole and all(
        abs(value - near) < Decimal("1e-25") * near for value, near in zip(exact, rounded, strict=True)
    ):
        return (*map(int, rounded), int(hi.value))
    return _distinct((float(lo.value), *map(float, exact[1:]), float(hi.value)))


def _refuse_many(count: int, limit: int = LIST_LIMIT) -> None:
    if count > limit:
        raise InputError(f"found a range of {count:,} values, expected at most {limit:,}")


def _distinct(values: tuple[float, ...]) -> tuple[float, ...]:
    if not all(a < b for a, b in pairwise(values)):
        raise InputError(f"found {len(values):,} values too close for doubles, expected fewer")
    return values


def _show(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else repr(float(value))
