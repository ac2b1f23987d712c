"""Rows that another row of the same source contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .row import CONFIGURATION, Row

__all__ = ["flagged"]

SLOWER = 2.0
"""How many times longer a prefill may take than the same one with quantized weights, which have to be unpacked on top."""

LONG = 256.0
"""Tokens from which on a prefill is bound by its multiplications, not by the weights that it reads."""

HALF = ("fp16", "bf16")


def flagged(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows, with those flagged that cannot be if another row of their source is right.

    A prefill of many tokens multiplies in 16 bits however its weights are stored, if only weights are quantized: with weights
    of 16 bits it spares unpacking them, and cannot take :data:`SLOWER` times as long.
    """
    quickest: dict[tuple[str, ...], float] = {}
    for row in rows:
        if _is_long_prefill(row) and row.runs[0].plan["weights"] not in HALF:
            quickest[_like(row)] = min(quickest.get(_like(row), float("inf")), row.runs[0].target.seconds)
    return tuple(_judged(row, quickest.get(_like(row))) for row in rows)


def _judged(row: Row, other: float | None) -> Row:
    if other is None or not _is_long_prefill(row) or row.runs[0].plan["weights"] not in HALF:
        return row
    if row.runs[0].target.seconds <= SLOWER * other:
        return row
    reason = (
        f"prefill in 16 bits takes more than {SLOWER:g} times that with quantized weights in the same table"
    )
    return replace(row, kind="flagged", reason=reason)


def _is_long_prefill(row: Row) -> bool:
    if row.kind != "exact" or row.phase != "prefill":
        return False
    run = row.runs[0]
    return run.plan["activations"] in HALF and run.job["batch"] * run.job["prompt"] >= LONG


def _like(row: Row) -> tuple[str, ...]:
    """What a row shares with those that differ in how weights are stored alone."""
    return (*row.key([name for name in CONFIGURATION if name != "weights_precision"]), f"{row.past:g}")
