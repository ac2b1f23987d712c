"""Scale and limits of an axis: everything, unless that would squash the part that matters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Axis", "scale_of", "view"]

_DECADES = 2.0  # values that span more than this are drawn on a logarithmic scale
_SHARE = 0.4  # the part that matters takes at least this much of an axis
_MARGIN = 0.06

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
    finite = values[np.isfinite(values)]
    if not finite.size or finite.min() <= 0.0:
        return False
    return math.log10(finite.max()) - math.log10(finite.min()) > _DECADES


def view(values: Floats, core: Floats, log: bool) -> tuple[float, float]:
    """Limits that hold all of ``core``, and as much of ``values`` as leaves ``core`` a fair share of the axis."""
    finite, core = values[np.isfinite(values)], core[np.isfinite(core)]
    if log:
        finite, core = np.log10(finite), np.log10(core[core > 0.0])
    everything = np.concatenate((finite, core))
    if not everything.size:
        return (0.1, 1.0) if log else (0.0, 1.0)
    # Halved so that the distance between the largest doubles is still a double.
    low, high = everything.min() / 2, everything.max() / 2
    inner_low, inner_high = (core.min() / 2, core.max() / 2) if core.size else (low, high)
    inner = inner_high - inner_low
    if inner > 0.0:
        room = inner * (1.0 / _SHARE - 1.0)
        low, high = max(low, inner_low - room / 2), min(high, inner_high + room / 2)
    low, high = _padded(low, high)
    low, high = max(low * 2, -1e308), min(high * 2, 1e308)
    if not log:
        return float(low), float(high)
    return 10.0 ** max(low, -307.0), 10.0 ** min(high, 307.0)


def _padded(low: float, high: float) -> tuple[float, float]:
    span = high - low
    if span <= 1e-9 * max(abs(low), abs(high)):
        span = 0.1 * abs(low) or 1.0
        return low - span, high + span
    return low - _MARGIN * span, high + _MARGIN * span
