"""Units of measure: parsing, exact conversion and printing.

The table is small on purpose: what a cost model counts (bytes, operations, tokens), what it spends (seconds,
joules, dollars), and their SI and IEC prefixes. ``b`` and ``bit`` are bits, ``B`` is a byte. Conversions are
exact rational arithmetic followed by one rounding, so a quantity is the double nearest its decimal text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import floor, isfinite, isnan

from dse.errors import DseError

__all__ = [
    "Dims",
    "Quantity",
    "Unit",
    "UnitError",
    "dims_text",
    "format_value",
    "from_base",
    "is_unit",
    "multiply",
    "parse_quantity",
    "parse_unit",
    "to_base",
]

Dims = tuple[tuple[str, int], ...]
"""Sorted ``(base unit, exponent)`` pairs without zero exponents; ``()`` is dimensionless."""


class UnitError(DseError):
    """A unit or a quantity cannot be read, or its value does not fit a double."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit. ``scale`` is how many base units one of it is; ``percent`` marks ``percent`` itself."""

    text: str
    dims: Dims
    scale: Fraction
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in base units, and the unit it was written in (None for a bare number)."""

    value: float
    unit: Unit | None


_SMALL = {"m": Fraction(1, 10**3), "u": Fraction(1, 10**6), "n": Fraction(1, 10**9), "p": Fraction(1, 10**12)}
_LARGE = {prefix: Fraction(10 ** (3 * i)) for i, prefix in enumerate("kMGTPE", start=1)}
_BINARY = {prefix + "i": Fraction(2 ** (10 * i)) for i, prefix in enumerate("KMGTPE", start=1)}

# symbol -> what one of it is in base units, its dimensions, and the prefixes it takes
_ATOMS: dict[str, tuple[Fraction, Dims, dict[str, Fraction]]] = {
    "s": (Fraction(1), (("s", 1),), _SMALL),
    "min": (Fraction(60), (("s", 1),), {}),
    "h": (Fraction(3600), (("s", 1),), {}),
    "day": (Fraction(86400), (("s", 1),), {}),
    "B": (Fraction(1), (("B", 1),), _LARGE | _BINARY),
    "b": (Fraction(1, 8), (("B", 1),), _LARGE | _BINARY),
    "bit": (Fraction(1, 8), (("B", 1),), _LARGE | _BINARY),
    "flop": (Fraction(1), (("flop", 1),), _LARGE),
    "op": (Fraction(1), (("op", 1),), _LARGE),
    "token": (Fraction(1), (("token", 1),), {p: _LARGE[p] for p in "kMGT"}),
    "J": (Fraction(1), (("J", 1),), _SMALL | _LARGE),
    "W": (Fraction(1), (("J", 1), ("s", -1)), _SMALL | _LARGE),
    "USD": (Fraction(1), (("USD", 1),), {p: _LARGE[p] for p in "kM"}),
    "Hz": (Fraction(1), (("s", -1),), {p: _LARGE[p] for p in "kMGT"}),
}
_SYMBOLS: dict[str, tuple[Fraction, Dims]] = {
    prefix + name: (factor * scale, dims)
    for name, (scale, dims, prefixes) in _ATOMS.items()
    for prefix, factor in ({"": Fraction(1)} | prefixes).items()
}

_NUMBER = re.compile(r"([-+]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([-+]?[0-9]+))?")
_FACTOR = re.compile(r"([^\s*/^]+)(?:\^([-+]?[0-9]+))?")
_MAX_DIGITS = 2000  # longer than the exact decimal form of any double that matters
_MAX_EXPONENT = 5000  # beyond it every number of _MAX_DIGITS digits overflows or is zero, in any unit
_MAX_SCALE = 10**300
_MAX_UNIT = 100
_PLAIN_FROM, _PLAIN_BELOW = Decimal("1e-4"), Decimal("1e15")  # magnitudes printed without an exponent


# ---------------------------------------------------------------------------------------------- dimensions


def multiply(a: Dims, b: Dims, power: int = 1) -> Dims:
    """The dimensions of ``a * b**power``."""
    exponents = dict(a)
    for base, exponent in b:
        exponents[base] = exponents.get(base, 0) + power * exponent
    return tuple(sorted((base, exponent) for base, exponent in exponents.items() if exponent))


def dims_text(dims: Dims) -> str:
    """``B/s``, ``op/J/s^2``, ``1/s`` or ``1``; :func:`parse_unit` reads it back."""

    def factor(base: str, exponent: int) -> str:
        return base if exponent == 1 else f"{base}^{exponent}"

    above = "*".join(factor(base, exponent) for base, exponent in dims if exponent > 0)
    return (above or "1") + "".join("/" + factor(base, -exponent) for base, exponent in dims if exponent < 0)


# ------------------------------------------------------------------------------------------------- reading


@lru_cache(maxsize=1024)
def parse_unit(text: str) -> Unit:
    """Read a unit such as ``ms``, ``GiB``, ``Gop/s``, ``flop/B``, ``USD/h``, ``1/s`` or ``percent``.

    ``*`` and ``/`` apply from left to right, so ``flop/s/W`` is per second and per watt.

    Raises:
        UnitError: the text is no unit; the message has the nearest spelling.
    """
    compact = re.sub(r"\s*([*/^])\s*", r"\1", text.strip()).replace("\u00b5", "u").replace("\u03bc", "u")
    if compact == "percent":
        return Unit("percent", (), Fraction(1, 100), percent=True)
    if not compact:
        raise UnitError("a unit must not be empty; write '1' for a plain number")
    if len(compact) > _MAX_UNIT:
        raise UnitError(f"a unit must have at most {_MAX_UNIT} characters, but got {len(compact)}")
    parts = re.split(r"([*/])", compact)
    scale = Fraction(1)
    dims: Dims = ()
    unknown: dict[str, list[str]] = {}
    for operator, part in zip(["*", *parts[1::2]], parts[::2], strict=True):
        name, power = _read_factor(part, text)
        if name in _SYMBOLS:
            factor, symbol_dims = _SYMBOLS[name]
            signed = -power if operator == "/" else power
            scale *= factor**signed
            dims = multiply(dims, symbol_dims, signed)
        elif part != "1":
            unknown[name] = _spellings(name)
    if unknown:
        raise UnitError(_unknown_message(compact, unknown))
    if not Fraction(1, _MAX_SCALE) <= scale <= _MAX_SCALE:
        raise UnitError(f"a unit must be within 1e-300 and 1e300 base units, but got {compact!r}")
    return Unit(compact, dims, scale)


def _read_factor(part: str, text: str) -> tuple[str, int]:
    """Split ``s^2`` into its name and exponent; the name may still be unknown."""
    match = _FACTOR.fullmatch(part)
    if match is None:
        raise _malformed(text)
    name, exponent = match[1], match[2]
    if name == "percent":
        raise UnitError(f"percent must stand alone, but got {text!r}")
    if (name[0].isdigit() or "." in name) and part != "1":
        raise _malformed(text)
    power = int(exponent[:5]) if exponent else 1
    if not 1 <= abs(power) <= 9:
        raise UnitError(f"exponents in a unit must be from 1 to 9, but got {exponent} in {text!r}")
    return name, power


def is_unit(text: str) -> bool:
    """Whether :func:`parse_unit` accepts the text."""
    try:
        parse_unit(text)
    except UnitError:
        return False
    return True


def parse_quantity(text: str) -> Quantity:
    """Read a number with or without a unit: ``10 ms``, ``64GiB``, ``-.5 J``, ``90 percent``, ``1e3``.

    Raises:
        UnitError: no finite decimal number, an unknown unit, or a value past the largest double.
    """
    stripped = text.strip()
    match = _NUMBER.match(stripped)
    if match is None:
        shown = stripped[:60]
        if re.match(r"[-+]?\.?(inf|nan)", stripped, re.IGNORECASE):
            raise UnitError(f"a quantity must be a finite number, but got {shown!r}")
        raise UnitError(f"{shown!r} is not a quantity; write a number and a unit, like '10 ms'")
    rest = stripped[match.end() :]
    if rest[:1] in {"_", ","}:
        raise UnitError(f"digits must not be grouped, but got {stripped[:60]!r}; write 1000 or 1e3")
    unit = parse_unit(rest) if rest else None
    return Quantity(to_base(match[0], unit), unit)


# ---------------------------------------------------------------------------------------------- converting


def to_base(decimal_text: str, unit: Unit | None) -> float:
    """The double nearest the exact value of ``decimal_text`` (a decimal number) in base units.

    Raises:
        UnitError: the text is no decimal number, or its value is past the largest double.
    """
    match = _NUMBER.fullmatch(decimal_text.strip())
    if match is None:
        raise UnitError(f"{decimal_text[:60]!r} is not a decimal number")
    sign, digits, exponent_text = match[1], match[2], match[3] or "0"
    if len(digits) > _MAX_DIGITS:
        raise UnitError(f"a number must have at most {_MAX_DIGITS} digits, but got {len(digits)}")
    if not digits.strip("0."):
        return 0.0
    # The exponent is looked at before it is applied: 1e999999999 must not build a billion digits.
    negative = exponent_text.startswith("-")
    exponent_digits = exponent_text.lstrip("+-").lstrip("0") or "0"
    if len(exponent_digits) > 4 or int(exponent_digits) > _MAX_EXPONENT:
        if negative:
            return 0.0
        raise _overflow(decimal_text, unit)
    exponent = -int(exponent_digits) if negative else int(exponent_digits)
    shift = _decimal_shift(unit.scale) if unit else 0
    if shift is not None:
        # A power of ten only moves the point, and float() rounds a decimal text correctly.
        value = float(f"{sign}{digits}e{exponent + shift}") + 0.0
        if not isfinite(value):
            raise _overflow(decimal_text, unit)
        return value
    exact = Fraction(Decimal(f"{sign}{digits}e{exponent}"))
    try:
        return float(exact * unit.scale if unit else exact) + 0.0  # -1e-999 is 0.0, not -0.0
    except OverflowError:
        raise _overflow(decimal_text, unit) from None


@lru_cache(maxsize=256)
def _decimal_shift(scale: Fraction) -> int | None:
    """K where ``scale`` is 10^k; None where it is no power of ten."""
    power, one = (scale.numerator, scale.denominator) if scale >= 1 else (scale.denominator, scale.numerator)
    digits = str(power)
    if one != 1 or digits != "1" + "0" * (len(digits) - 1):
        return None
    return len(digits) - 1 if scale >= 1 else 1 - len(digits)


def from_base(value: float, unit: Unit | None) -> float:
    """``value`` (base units) in ``unit``, rounded once. Infinities and NaN pass; overflow gives ±inf."""
    if unit is None or not isfinite(value):
        return value
    try:
        return float(Fraction(value) / unit.scale) + 0.0
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def format_value(value: float, unit: Unit | None, digits: int = 6) -> str:
    """``value`` (base units) printed in ``unit``: ``8 ms``, ``91.9 %``, ``inf ms``, ``57``.

    Rounds to ``digits`` significant digits, but keeps every digit before the decimal point of a value below
    1e15. There is no exponent from 1e-4 to 1e15.
    """
    suffix = "" if unit is None or unit.text == "1" else " %" if unit.percent else f" {unit.text}"
    if not isfinite(value):
        return f"{'nan' if isnan(value) else 'inf' if value > 0 else '-inf'}{suffix}"
    exact = Fraction(value) / (unit.scale if unit else 1)
    if not exact:
        return f"0{suffix}"
    whole = len(str(floor(abs(exact)))) if abs(exact) < _PLAIN_BELOW else 0
    context = Context(
        prec=max(digits, whole), rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, clamp=0, traps=[]
    )
    rounded = context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    if _PLAIN_FROM <= abs(rounded) < _PLAIN_BELOW:
        number = f"{rounded:f}"
        return (number.rstrip("0").rstrip(".") if "." in number else number) + suffix
    mantissa, _, exponent = f"{rounded:e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{int(exponent)}{suffix}"


# -------------------------------------------------------------------------------------------------- errors

# What people write -> what it is called here. Compared without case, after an optional prefix.
_WORDS = {
    "bits": "bit", "byte": "B", "bytes": "B", "flops": "flop/s", "ops": "op/s", "tok": "token",
    "toks": "token", "tokens": "token", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "watt": "W", "watts": "W", "joule": "J", "joules": "J", "hertz": "Hz", "usd": "USD", "dollar": "USD", "dollars": "USD",
}  # fmt: skip
_WHOLE_WORDS = {
    "%": "percent", "pct": "percent", "$": "USD", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
    "mins": "min", "minute": "min", "minutes": "min", "d": "day", "days": "day", "tps": "token/s",
    "qps": "1/s", "fps": "1/s", "x": "1",
}  # fmt: skip


def _spellings(word: str) -> list[str]:
    """At most two likely meanings of an unknown symbol, best first."""
    if word == "m":
        return ["min", "ms"]
    folded = word.casefold()
    if folded in _WHOLE_WORDS:
        return [_WHOLE_WORDS[folded]]
    if same := [symbol for symbol in _SYMBOLS if symbol.casefold() == folded]:
        return same[:2]
    if len(word) > 2 and folded.endswith("ps"):
        stems = [symbol for symbol in _SYMBOLS if symbol == word[:-2]] or [
            symbol for symbol in _SYMBOLS if symbol.casefold() == folded[:-2]
        ]
        if stems:
            return [f"{stem}/s" for stem in stems[:2]]
    for cut in (0, 1, 2):
        prefix, meaning = word[:cut], _WORDS.get(folded[cut:])
        for cased in (prefix, prefix.lower(), prefix.upper(), prefix.capitalize()):
            if meaning and cased + meaning.removesuffix("/s") in _SYMBOLS:
                both = word.endswith("s") and meaning in {"flop/s", "op/s"}  # FLOPs: a count or a rate
                return [cased + meaning.removesuffix("/s"), cased + meaning] if both else [cased + meaning]
    distances = {symbol: _distance(word, symbol) for symbol in _SYMBOLS}
    best = min(distances, key=distances.__getitem__)
    return [best] if distances[best] <= min(2, len(word) / 3 + 0.25) else []


def _distance(a: str, b: str) -> float:
    """Edit distance in which a swap of neighbours counts one edit and a change of case a quarter."""
    if abs(len(a) - len(b)) > 2:
        return 3.0
    before: list[float] = []
    last: list[float] = []
    row = [float(j) for j in range(len(b) + 1)]
    for i, x in enumerate(a, start=1):
        last, before = before, row
        row = [float(i)]
        for j, y in enumerate(b, start=1):
            change = 0.0 if x == y else 0.25 if x.casefold() == y.casefold() else 1.0
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + change)
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]


def _unknown_message(compact: str, unknown: dict[str, list[str]]) -> str:
    for name, meanings in unknown.items():
        if not meanings:
            inside = f" in {compact!r}" if name != compact else ""
            known = ", ".join(_ATOMS)
            return (
                f"unknown unit {name!r}{inside}; known: {known}, percent, 1, with prefixes (ms, GB, GiB, Gop)"
            )

    def corrected(choice: int) -> str:
        def spelling(word: re.Match[str]) -> str:
            meanings = unknown.get(word[0], [word[0]])
            meaning = meanings[min(choice, len(meanings) - 1)]
            below = compact[: word.start()].endswith("/")
            return meaning.replace("/s", "*s") if below and word[0] in unknown else meaning

        return re.sub(r"[^*/^]+", spelling, compact)

    options = list(dict.fromkeys([corrected(0), corrected(1)]))
    options = [option for option in options if "/s/s" not in option] or options
    chosen = {symbol.removesuffix("/s")[-1] for meanings in unknown.values() for symbol in meanings}
    bits = " (B is byte, b is bit)" if {"b", "B"} <= chosen else ""
    return f"unknown unit {compact!r}; did you mean {' or '.join(map(repr, options))}?{bits}"


def _malformed(text: str) -> UnitError:
    hint = f"; did you mean '1{text.strip()[:60]}'?" if text.strip().startswith("/") else ""
    return UnitError(f"{text[:60]!r} is not a unit{hint or '; write it like ms, GB/s, flop/B, 1/s or B/s^2'}")


def _overflow(decimal_text: str, unit: Unit | None) -> UnitError:
    return UnitError(
        f"{decimal_text[:60]}{' ' + unit.text if unit else ''} is past the largest number, about 1.8e308"
    )
