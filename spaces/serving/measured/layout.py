"""How a measured run was laid out over GPUs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from .lengths import number_of

__all__ = ["Layout", "layouts_of"]

Layout = dict[str, float]

Model = Mapping[str, float]


def layouts_of(
    cells: Mapping[str, str], numbers: Mapping[str, float], model: Model
) -> tuple[tuple[Layout, ...], str]:
    """``n_gpus``, ``tp``, ``pp`` and ``ep`` of a row, one for each layout that it may have had, or none and why.

    ``device_map split`` places layers on the GPUs one after the other: stages that wait for each other.
    """
    n_gpus, tp = numbers.get("n_gpus", math.nan), numbers.get("tp", math.nan)
    pp, ep = number_of(cells["pp"] or "1"), 1.0
    split = "split" in cells["pp"].casefold()
    if math.isnan(n_gpus) and not (math.isnan(tp) or math.isnan(pp)):
        n_gpus = tp * pp
    if math.isnan(n_gpus):
        return (), "GPU count not stated"
    if math.isnan(tp) and not split and not math.isnan(pp):
        tp = n_gpus / pp
    if split:
        tp = 1.0 if math.isnan(tp) else tp
        pp = n_gpus / tp
    if math.isnan(pp):
        return (), f"pp {cells['pp']!r} is no number of stages"
    if not all(count >= 1 and count % 1 == 0 for count in (n_gpus, tp, pp)):
        return (), "layout has a count that is not a whole number above 0"
    if found := re.search(r"\bep(\d+)", cells.get("notes", "").casefold()):
        ep = float(found.group(1))
    if max(tp, ep) * pp != n_gpus:
        return (), "layout does not multiply to the GPU count"
    if model["heads"] % tp:
        return (), f"{model['heads']:g} heads are not divisible by tp {tp:g}"
    if pp > model["layers"]:
        return (), f"more stages than {model['layers']:g} layers"
    found_one = {"n_gpus": n_gpus, "tp": tp, "pp": pp, "ep": ep}
    doubtful = "not true tp" in cells.get("notes", "").casefold() and tp > 1
    return (found_one, found_one | {"tp": 1.0, "pp": tp * pp}) if doubtful else (found_one,), ""
