"""Scale and limits of an axis: everything, unless that would squash the part that matters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Axis", "drawable", "scale_of", "spread_out", "view"]

_DECADES = 2.0  # values that span more than this are drawn on a logarithmic scale
_SHARE, _LOG_SHARE = (
    0.45,
    0.25,
)  # of an axis, at least, is for feasible designs and near misses, whatever lies around them
_MARKED_SHARE = 0.25  # and this much for the fronts
_TAIL, _REACH, _MANY = (
    0.02,
    0.25,
    50,
)  # of many designs, the last few are left out where they lie far from the rest
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


def view(values: Floats, core: Floats, log: bool, marked: Floats | None = None) -> tuple[float, float]:
    """Limits of an axis.

    Args:
        values: everything; it is shown as far as it leaves ``core`` most of the axis.
        core: what should be seen; all of it is, but for a few that lie far from the rest, and so is, of its
            outer half, what leaves ``marked`` a fair share of the axis.
        log: whether the axis is logarithmic.
        marked: what must be seen.
    """
    marked = np.empty(0) if marked is None else marked
    values, core, marked = (part[drawable(part)] for part in (values, core, marked))
    if log:
        values, core, marked = (np.log10(part[part > 0.0]) for part in (values, core, marked))
    everything = np.concatenate((values, core, marked))
    if not everything.size:
        return (0.1, 1.0) if log else (0.0, 1.0)
    ends = _ends(everything)
    crowded = not log and core.size >= _MANY  # a logarithmic axis squeezes nothing; few are all shown
    wanted = np.concatenate((_bulk(core) if crowded else core, marked))
    if wanted.size:
        inner = _ends(wanted)
        if crowded and marked.size:
            close = _ends(np.append(_nearer_half(core, _ends(marked)), marked))
            fair = _around(_ends(marked), inner, _MARKED_SHARE)
            inner = min(close[0], fair[0]), max(close[1], fair[1])
        if core.size:  # a side where designs of the core are left out shows none that matter less
            least, most = _ends(core)
            ends = inner[0] if least < inner[0] else ends[0], inner[1] if most > inner[1] else ends[1]
        ends = _around(inner, ends, _LOG_SHARE if log else _SHARE)
    low, high = _padded(*ends)
    return (10.0 ** max(low, -307.0), 10.0 ** min(high, 307.0)) if log else (low, high)


def _ends(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _bulk(values: Floats) -> Floats:
    """The values without the few at either end that lie far from the rest."""
    low, high = np.quantile(values, (_TAIL, 1.0 - _TAIL))
    reach = _REACH * (high - low)
    return values[(values >= low - reach) & (values <= high + reach)] if reach else values


def _nearer_half(values: Floats, ends: tuple[float, float]) -> Floats:
    """The half of the values that lies between the ends or closest to them."""
    if not values.size:
        return values
    away = np.maximum(np.maximum(ends[0] - values, values - ends[1]), 0.0)
    return np.asarray(values[away <= np.median(away)])


def _around(inner: tuple[float, float], outer: tuple[float, float], share: float) -> tuple[float, float]:
    """``inner``, and as much around it of ``outer`` as leaves it this share; all of ``outer`` around a single value."""
    (inner_low, inner_high), (low, high) = inner, outer
    if inner_high <= inner_low:
        return low, high
    # What one side does not need of the room beside, the other may have.
    room = (inner_high - inner_low) * (1.0 / share - 1.0)
    below, above = inner_low - low, high - inner_high
    return (
        inner_low - min(below, max(room / 2, room - above)),
        inner_high + min(above, max(room / 2, room - below)),
    )


def _padded(low: float, high: float) -> tuple[float, float]:
    span = high - low
    if span <= 1e-9 * max(abs(low), abs(high)):
        span = max(0.1 * abs(low), _SMALLEST) if low else 1.0
        return low - span, high + span
    return low - _MARGIN * span, high + _MARGIN * span
