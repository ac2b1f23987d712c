"""Scale and limits of an axis: everything, unless that would squash the part that matters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Axis", "drawable", "scale_of", "spread_out", "view"]

_DECADES = 2.0  # values that span more than this are drawn on a logarithmic scale
_SHARE = 0.25  # the part that matters takes at least this much of an axis
_MARGIN = 0.06
_LARGEST, _SMALLEST = 1e300, 1e-290

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: what it shows and from where to where, in the printed unit.

    ``better`` is ``minimize``, ``maximize`` or empty; ``whole`` says that it shows whole numbers.
    """

    name: str
    unit: str
    better: str
    log: bool
    low: float
    high: float
    whole: bool = False

    @property
    def label(self) -> str:
        """``latency [ms], lower is better``."""
        unit = f" [{self.unit}]" if self.unit else ""
        return (
            self.name
            + unit
            + {"minimize": ", lower is better", "maximize": ", higher is better"}.get(self.better, "")
        )

    def holds(self, values: Floats) -> NDArray[np.bool_]:
        """Which values lie on the axis."""
        return np.asarray((values >= self.low) & (values <= self.high))

    def at(self, values: Floats) -> Floats:
        """Where values lie, 0 at the low end and 1 at the high end."""
        ends = np.array([self.low, self.high])
        if self.log:
            values, ends = np.log10(values), np.log10(ends)
        return np.asarray((values - ends[0]) / (ends[1] - ends[0]))


def scale_of(values: Floats) -> bool:
    """Whether a logarithmic scale suits the values: all positive and more than two decades apart."""
    finite = values[drawable(values)]
    if not finite.size or finite.min() <= 0.0:
        return False
    return math.log10(finite.max()) - math.log10(finite.min()) > _DECADES


def drawable(values: Floats) -> NDArray[np.bool_]:
    """Which values have a place on an axis: finite ones, but for the last few that no scale can be drawn for."""
    return np.asarray(np.abs(values) < _LARGEST)


def spread_out(values: Floats) -> Floats:
    """Where values of any size lie between the least and the greatest, 0 to 1, each power of ten as wide as the next."""
    sizes = np.sign(values) * np.log10(1.0 + np.abs(values))
    low, high = sizes.min(initial=np.inf), sizes.max(initial=-np.inf)
    return np.asarray((sizes - low) / (high - low) if high > low else np.zeros_like(sizes))


def view(values: Floats, core: Floats, log: bool) -> tuple[float, float]:
    """Limits that hold all of ``core``, and as much of ``values`` as leaves ``core`` a fair share of the axis."""
    values, core = values[drawable(values)], core[drawable(core)]
    if log:
        values, core = np.log10(values[values > 0.0]), np.log10(core[core > 0.0])
    everything = np.concatenate((values, core))
    if not everything.size:
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = float(everything.min()), float(everything.max())
    inner_low, inner_high = (float(core.min()), float(core.max())) if core.size else (low, high)
    if inner_high > inner_low:
        # What one side does not need of the room beside the core, the other may have.
        room = (inner_high - inner_low) * (1.0 / _SHARE - 1.0)
        below, above = inner_low - low, high - inner_high
        low = inner_low - min(below, max(room / 2, room - above))
        high = inner_high + min(above, max(room / 2, room - below))
    low, high = _padded(low, high)
    return (10.0 ** max(low, -307.0), 10.0 ** min(high, 307.0)) if log else (low, high)


def _padded(low: float, high: float) -> tuple[float, float]:
    span = high - low
    if span <= 1e-9 * max(abs(low), abs(high)):
        span = max(0.1 * abs(low), _SMALLEST) if low else 1.0
        return low - span, high + span
    return low - _MARGIN * span, high + _MARGIN * span
