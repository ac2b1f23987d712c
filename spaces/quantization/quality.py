"""What is published about the quality of a quantized model: asked by model, method and bits.

:func:`quality` returns every figure that fits, each as a difference to its own source's baseline. What nobody
published is not made up: the answer then says so and holds the nearest figures with what differs. Between two bit
widths of one series, model and method that are one bit apart it interpolates, and says that too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from dse.errors import InputError, nearest

from .figures import PLAIN, Figure, family, figures, model_size, series

__all__ = ["Answer", "models", "methods", "quality"]

_ALIASES = {
    "k-quants": "llama.cpp", "round-to-nearest": "rtn", "quip#": "quip", "quip-sharp": "quip", "llm.int8()": "llm-int8",
    "llm.int8": "llm-int8", "fp8": "fp8-block", "fp16": PLAIN, "bf16": PLAIN, "f16": PLAIN,
}  # fmt: skip
GAP = 1.0
"""Bits between two published widths that are interpolated at most."""

_WITHOUT = ("llm-int8", "quip", "aqlm")
"""Methods that are known and of which there are no figures."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for; None is any."""

    model: str
    method: str
    variant: str | None
    w_bits: float | None
    a_bits: float | None
    kv_bits: float | None
    group: int | None

    def fits(self, figure: Figure) -> bool:
        """Whether a figure is of this model, method and numbers, under the table's names or its source's own."""
        return self._fits_model(figure) and self._fits_method(figure) and self.fits_numbers(figure)

    def _fits_model(self, figure: Figure) -> bool:
        return _letters(self.model) in (_letters(figure.model), _letters(figure.source_model))

    def _fits_method(self, figure: Figure) -> bool:
        if self.variant is not None and figure.variant != self.variant:
            return False
        names = (figure.method, figure.name, _plain(figure.source_method))
        return self.method in names or self.method == family(figure.method)

    def fits_numbers(self, figure: Figure, *, bits: bool = True) -> bool:
        """Whether bits and group are those asked for; ``bits``: those of the weights too."""
        pairs = [(self.a_bits, figure.a_bits), (self.kv_bits, figure.kv_bits), (self.group, figure.group)]
        if bits:
            pairs.append((self.w_bits, figure.w_bits))
        return all(wanted is None or wanted == found for wanted, found in pairs)

    def but_for_bits(self, figure: Figure) -> bool:
        """Whether a figure fits in all but the bits of its weights."""
        return replace(self, w_bits=None).fits(figure)

    def distance(self, figure: Figure) -> float:
        """How far a figure is from what was asked: model first, then method, bits and group."""
        far = 0.0 if self._fits_model(figure) else model_distance(self.model, figure.model)
        if not self._fits_method(figure):
            far += method_distance(self.method, figure.method)
        far += abs((self.w_bits or figure.w_bits) - figure.w_bits)
        far += abs((self.a_bits or figure.a_bits) - figure.a_bits) / 4
        far += abs((self.kv_bits or figure.kv_bits) - figure.kv_bits) / 4
        if self.group is not None:
            far += abs(math.log2((self.group or 4096) / (figure.group or 4096))) / 4
        return far

    def departures(self, figure: Figure) -> str:
        """What of a figure is not what was asked."""
        told = []
        if not self._fits_model(figure):
            told.append(f"model {figure.model} instead of {self.model}")
        if not self._fits_method(figure):
            wanted = self.method + (f"+{self.variant}" if self.variant else "")
            told.append(f"{figure.name} instead of {wanted}")
        numbers = (
            ("bits of weights", self.w_bits, figure.w_bits),
            ("bits of activations", self.a_bits, figure.a_bits),
            ("bits of the KV cache", self.kv_bits, figure.kv_bits),
        )
        told += [
            f"{got:g} {what} instead of {asked:g}" for what, asked, got in numbers if asked not in (None, got)
        ]
        if self.group is not None and self.group != figure.group:
            told.append(f"{_groups(figure.group)} instead of {_groups(self.group)}")
        return ", ".join(told)

    def __str__(self) -> str:
        parts = [self.method + (f"+{self.variant}" if self.variant else "")]
        parts += [f"{self.w_bits:g} bits"] if self.w_bits is not None else []
        parts += [f"activations in {self.a_bits:g}"] if self.a_bits is not None else []
        parts += [f"KV cache in {self.kv_bits:g}"] if self.kv_bits is not None else []
        parts += [_groups(self.group)] if self.group is not None else []
        return f"{self.model} {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Answer:
    """Figures that fit (published or, when ``interpolated``, between two that are), else the nearest ones."""

    asked: Asked
    figures: tuple[Figure, ...]
    nearest: tuple[Figure, ...] = ()

    @property
    def found(self) -> bool:
        """Whether there is any figure of what was asked."""
        return bool(self.figures)

    @property
    def interpolated(self) -> bool:
        """Whether the figures lie between published bit widths."""
        return any(figure.interpolated for figure in self.figures)

    def __str__(self) -> str:
        if self.figures:
            return "\n".join(map(str, self.figures))
        lines = [f"no published figure of {self.asked}; the nearest that has one:"]
        lines += [f"  {figure}\n    ({self.asked.departures(figure)})" for figure in self.nearest]
        return "\n".join(lines)


def quality(
    model: str,
    method: str,
    bits: float | None = None,
    *,
    variant: str | None = None,
    activation_bits: float | None = None,
    kv_bits: float | None = None,
    group: int | None = None,
    within: str | None = None,
) -> Answer:
    """The published differences in quality of a quantized model.

    Args:
        model: a name of :func:`models`, or a source's own name of it; any other is answered with the nearest.
        method: a name of :func:`methods` (with its variant as ``gptq+reorder`` if wanted), a source's own name,
            or a family such as ``k-quants``.
        bits: of the weights; between two published widths of one series and method, a bit apart, it is interpolated.
        variant: of the method; "" is the plain one, None any.
        activation_bits: bits of the activations; None is any.
        kv_bits: bits of cached keys and values; None is any.
        group: weights that share a scale, 0 for a whole row; None is any.
        within: the name of a series, to ask in that one only.

    Raises:
        InputError: a method or series that nobody knows, with the nearest spelling, or a number out of range.
    """
    asked = _asked(model, method, variant, (bits, activation_bits, kv_bits, group))
    if within is not None and within not in series():
        raise InputError(f"there is no series {within!r}{nearest(within, series())}")
    known = [figure for figure in figures() if within in (None, figure.series.name)]
    fitting = tuple(figure for figure in known if asked.fits(figure))
    if not fitting and bits is not None:
        fitting = tuple(_interpolated(asked, known))
    if fitting:
        return Answer(asked, fitting)
    distances = [asked.distance(figure) for figure in known]
    least = min(distances)
    near = tuple(figure for figure, far in zip(known, distances, strict=True) if far == least)
    return Answer(asked, (), near)


def models() -> tuple[str, ...]:
    """The models that there are figures of."""
    return tuple(sorted({figure.model for figure in figures()}))


def methods() -> tuple[str, ...]:
    """The methods that there are figures of, with their variants."""
    return tuple(sorted({figure.name for figure in figures()}))


@cache
def model_distance(asked: str, other: str) -> float:
    """How far one model is from another: by size in octaves, nearer in one family of models."""
    ratio = model_size(asked) / model_size(other)
    size = abs(math.log2(ratio)) if ratio == ratio else 4.0
    return 4.0 + size - (1.0 if asked.partition("-")[0] == other.partition("-")[0] else 0.0)


@cache
def method_distance(asked: str, other: str) -> float:
    """How far one method is from another: a variant is near, another method of its kind is farther."""
    if asked == other:
        return 1.0
    return 3.0 if _kind(asked) == family(other) else 6.0


def _asked(model: str, method: str, variant: str | None, numbers: Sequence[float | None]) -> Asked:
    for what, number in zip(("bits", "activation_bits", "kv_bits", "group"), numbers, strict=True):
        least = 0 if what == "group" else 1
        if number is not None and not least <= number <= (1_000_000 if what == "group" else 32):
            raise InputError(
                f"{what} must be from {least} to {1_000_000 if least == 0 else 32}, but got {number}"
            )
    name = _plain(method)
    name = _ALIASES.get(name, name)
    if name not in _known_methods():
        raise InputError(f"there is no method {method!r}{nearest(name, sorted(_known_methods()))}")
    bits, activation, kv, group = numbers
    wanted = _plain(model.rpartition("/")[2])
    return Asked(wanted, name, variant, bits, activation, kv, None if group is None else int(group))


@cache
def _plain(name: str) -> str:
    return "-".join(name.casefold().split())


@cache
def _letters(name: str) -> str:
    """A model's name without case and punctuation."""
    return re.sub(r"[^a-z0-9.]", "", name.casefold())


@cache
def _known_methods() -> frozenset[str]:
    named = {n for f in figures() for n in (f.method, f.name, _plain(f.source_method), family(f.method))}
    return frozenset({*named, *_WITHOUT})


@cache
def _kind(method: str) -> str:
    """The family of a method as asked, which may be a family already or a source's own name."""
    for figure in figures():
        if method in (figure.method, figure.name, _plain(figure.source_method), family(figure.method)):
            return family(figure.method)
    return family(method)


def _groups(group: int) -> str:
    return f"groups of {group}" if group else "one scale a row"


def _interpolated(asked: Asked, known: Iterable[Figure]) -> Iterable[Figure]:
    """Between the nearest widths below and above, of all else alike, where these are :data:`GAP` bits apart at most; never
    beyond the ends.
    """
    assert asked.w_bits is not None
    lines: dict[tuple[object, ...], list[Figure]] = {}
    for figure in known:
        if asked.but_for_bits(figure) and not figure.flag and figure.method != PLAIN:
            key = (figure.series.name, figure.model, figure.name, figure.a_bits, figure.kv_bits, figure.group)
            lines.setdefault(key, []).append(figure)
    for line in lines.values():
        below = [figure for figure in line if figure.w_bits < asked.w_bits]
        above = [figure for figure in line if figure.w_bits > asked.w_bits]
        if below and above:
            low, high = max(below, key=lambda f: f.w_bits), min(above, key=lambda f: f.w_bits)
            if high.w_bits - low.w_bits <= GAP:
                yield between(low, high, asked.w_bits)


def between(low: Figure, high: Figure, bits: float) -> Figure:
    """The figure at ``bits`` between two of one series, model and method.

    Losses in perplexity fall by a factor with each bit, so that their logarithms are taken to lie on a line: the straight
    line between them would be above what is measured. Accuracy, and losses that are not both above 0, are taken linearly.
    """
    share = (bits - low.w_bits) / (high.w_bits - low.w_bits)
    packed = None
    if low.bits_per_weight is not None and high.bits_per_weight is not None:
        packed = low.bits_per_weight + share * (high.bits_per_weight - low.bits_per_weight)
    if low.series.lower_is_better and min(low.difference, high.difference) > 0:
        change, how = low.difference ** (1.0 - share) * high.difference**share, "logarithms of losses"
    else:
        change, how = low.difference + share * (high.difference - low.difference), "straight line"
    return replace(
        low,
        w_bits=bits,
        bits_per_weight=packed,
        value=low.reference + change,
        notes=f"between {low.w_bits:g} and {high.w_bits:g} bits ({low.value:g} and {high.value:g}), {how}",
        interpolated=True,
    )
