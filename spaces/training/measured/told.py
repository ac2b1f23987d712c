"""Lines that are always told of a table: how many rows are not scored and why, and what was assumed of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from dse.spaces.measured import tables as shared

from .memory_rows import MemoryRow
from .row import Row

__all__ = ["assumed_notes", "scored_note"]

MEANINGS = {
    "skipped": "skipped",
    "bounds": "open",
    "mixture": "mixtures of experts",
    "flagged": "flagged",
    "formula": "computed by their source, not measured",
}
"""Why rows are not scored, by kind."""

ASSUMED: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "overlap_dp": (
        "Overlap of DP",
        {"on": ", for distributed optimizer, FSDP and InternEvo", "off": ", for DDP and DeepSpeed's ZeRO"},
    ),
    "overlap_tp": (
        "Overlap of TP",
        {"on": ", with sequence parallelism", "off": ", without sequence parallelism"},
    ),
    "framework": ("The framework", {"fsdp": ", by the source", "internevo": ", by the source"}),
    "gradients": ("The width of sent gradients", {"2 bytes": ", by the source"}),
    "seq_parallel": ("Sequence parallelism", {}),
    "sharding": ("Sharding", {}),
    "attention": ("The attention kernel", {"unfused": ", for fp16", "flash": ", for InternEvo"}),
    "system": ("The exact product of the GPU", {}),
}
"""What may be assumed, by name: what it is called, and by which rule each value is taken."""


def scored_note(rows: Sequence[Row | MemoryRow], scored: Collection[str] = ("exact",)) -> str:
    """How many rows are scored, how many are not, and why; ``scored`` are the kinds that are."""
    found: str = shared.scored_note(rows, MEANINGS, scored)
    return found


def assumed_notes(rows: Iterable[Row]) -> list[str]:
    """What predicted rows do not state and was assumed by rule, one line for each column, where it matters."""
    predicted = [row.assumed for row in rows if row.plans and row.kind != "skipped"]
    found: list[str] = shared.assumed_notes(predicted, ASSUMED, {"gradients": "sharding"})
    return found
