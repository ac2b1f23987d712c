"""One measured run: what its row says in the space's names, and what it shares with other runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from .hardware import Cluster
from .plan import Plan
from .target import Target

__all__ = ["ARCHITECTURE", "CONFIGURATION", "PLAN", "Row"]

ARCHITECTURE = ("layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab", "activation", "moe")
CONFIGURATION = (
    "source", "system", "n_gpus", "model", *ARCHITECTURE, "seq_len", "global_batch", "micro_batch", "tp", "pp", "vpp",
    "cp", "ep", "dp", "zero_stage", "sharding", "recompute", "seq_parallel", "precision", "metric",
)  # fmt: skip
"""The columns in which two identical runs agree."""

PLAN = (
    "micro_batch",
    "tp",
    "pp",
    "vpp",
    "cp",
    "ep",
    "dp",
    "zero_stage",
    "sharding",
    "recompute",
    "seq_parallel",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One measured run; see :mod:`dse.spaces.training.rows` for ``kind``. ``plans`` and ``jobs`` run in parallel."""

    line: int
    cells: Mapping[str, str]
    kind: str
    reason: str = ""
    framework: str = "megatron"
    hardware: str = ""
    cluster: Cluster = field(default_factory=Cluster)
    model: Mapping[str, float] | None = None
    plans: tuple[Plan, ...] = ()
    jobs: tuple[Mapping[str, float], ...] = ()
    target: Target | None = None

    @property
    def group(self) -> tuple[str, str, str]:
        """Source, model and system."""
        return self.cells["source"], self.cells["model"], self.cells["system"]

    def key(self, columns: Collection[str]) -> tuple[str, ...]:
        """The row's cells in some columns; numbers that are written differently agree."""
        return tuple(_plain(self.cells.get(name, "")) for name in columns)

    @property
    def configuration(self) -> tuple[str, ...]:
        """What identical runs share."""
        return self.key(CONFIGURATION)

    @property
    def scale_sweep(self) -> tuple[str, ...]:
        """What the rows of a scale sweep share: source, architecture, GPU and GPU count, and the unit of ``value``."""
        return self.key(("source", *ARCHITECTURE, "system", "n_gpus", "metric"))

    @property
    def plan_sweep(self) -> tuple[str, ...]:
        """What the rows of a plan sweep share: also sequence length, global batch and precision."""
        return (*self.scale_sweep, *self.key(("seq_len", "global_batch", "precision")))

    @property
    def plan(self) -> tuple[str, ...]:
        """The plan as the table writes it; distinct plans differ in it."""
        return self.key(PLAN)


def _plain(text: str) -> str:
    """A cell, its number in one spelling (``8`` and ``8.0`` agree)."""
    try:
        number = float(text)
    except ValueError:
        return text
    return text if math.isnan(number) else f"{number:.12g}"
