"""Too few runs for what a calibration fits: what errors on the same runs then say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = ["few_runs"]


def few_runs(kind: str, runs: Iterable[str], numbers: Mapping[str, int] | int) -> tuple[str, ...]:
    """A warning where no more runs than fitted numbers are there; nothing where there are more everywhere.

    Args:
        kind: what numbers are fitted for, such as generation.
        runs: for each usable row, the one that it is a run of.
        numbers: how many numbers are fitted for each of these; those that are not named have none.
    """
    counted = Counter(runs)
    few = []
    for name, rows in sorted(counted.items()):
        fitted = numbers if isinstance(numbers, int) else numbers.get(name, 0)
        if rows <= fitted:
            few.append(f"{name} ({rows} {'row' if rows == 1 else 'rows'} for {fitted} numbers)")
    if not few:
        return ()
    listed = ", ".join(few)
    nothing = "Errors on these rows themselves say nothing about others; --leave-out source says more"
    return (f"no more usable rows than fitted numbers, by {kind}: {listed}. {nothing}",)
