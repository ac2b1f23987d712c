"""Which numbers an input may be."""

from __future__ import annotations

from dataclasses import dataclass

from dse.units import Unit, format_value

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a number must be, in base units; None is no limit.

    ``at_least`` and ``at_most`` are allowed themselves, ``above`` and ``below`` are not.
    """

    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None
    whole: bool = False

    def allow(self, value: float) -> bool:
        """Whether the number keeps all limits; NaN keeps none."""
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
            and (not self.whole or value.is_integer())
        )

    def text(self, unit: Unit | None) -> str:
        """``a whole number from 1 to 100``, ``a number above 0 and at most 1``, ``a quantity of at least 0 GB/s``."""
        kind = "a quantity" if unit is not None else "a whole number" if self.whole else "a number"

        def shown(value: float) -> str:
            return format_value(value, unit, digits=12)

        if self.at_least is not None and self.at_most is not None and self.above is self.below is None:
            return f"{kind} from {shown(self.at_least)} to {shown(self.at_most)}"
        named = (
            ("at least", self.at_least),
            ("above", self.above),
            ("at most", self.at_most),
            ("below", self.below),
        )
        bounds = [f"{words} {shown(value)}" for words, value in named if value is not None]
        of = " of" if bounds and bounds[0].startswith("at ") else ""
        return f"{kind}{of} {' and '.join(bounds)}" if bounds else kind
