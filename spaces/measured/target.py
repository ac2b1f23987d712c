"""A measured figure as a time, and the way back."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """A measured time: its seconds, and how seconds turn into the unit of ``value``.

    In that unit a prediction of ``t`` seconds reads ``scale * t`` when ``value`` is a time, and ``scale / t``
    when it is a rate.
    """

    seconds: float
    value: float
    scale: float
    is_rate: bool

    def in_unit(self, seconds: float) -> float:
        """A time in the unit of ``value``."""
        return self.scale / seconds if self.is_rate else self.scale * seconds
