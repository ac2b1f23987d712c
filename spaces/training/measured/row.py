"""One measured run: what its row says in the space's names, and what it shares with other runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from dse.spaces.measured.cells import plain_number

from .hardware import Cluster
from .plan import Plan
from .target import Target

__all__ = ["ARCHITECTURE", "CONFIGURATION", "PLAN", "REQUIRED", "SMALLEST", "Row"]

REQUIRED = (
    "model system n_gpus tp pp micro_batch global_batch seq_len sharding recompute precision metric value"
).split()
"""The columns that a table must have; README.md says what they mean, and what others there may be."""

SMALLEST = (
    f"The smallest table: {','.join(REQUIRED)}\n"
    "llama-3.1-8b,h100-sxm,64,1,1,1,128,8192,fsdp2,none,bf16,iter_s,2.4\n"
    "The README of the training space lists all columns and their values."
)
"""What is said where columns are missing; a table of memory has its own metrics."""

ARCHITECTURE = ("layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab", "activation", "moe")
CONFIGURATION = (
    "source", "system", "n_gpus", "model", *ARCHITECTURE, "seq_len", "global_batch", "micro_batch", "tp", "pp", "vpp",
    "cp", "ep", "dp", "zero_stage", "sharding", "recompute", "seq_parallel", "precision", "metric", "framework",
    "overlap_dp", "overlap_tp", "attention", "schedule", "placement", "edges",
)  # fmt: skip
"""The columns in which two identical runs agree."""

PLAN = (
    "micro_batch", "tp", "pp", "vpp", "cp", "ep", "dp", "zero_stage", "sharding", "recompute", "seq_parallel", "overlap_dp",
    "overlap_tp", "schedule", "placement", "edges",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One measured run; see :mod:`dse.spaces.training.rows` for ``kind``. ``plans`` and ``jobs`` run in parallel.

    ``assumed``: what the row does not state and was decided by rule, where that matters, and how.
    """

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
    assumed: Mapping[str, str] = field(default_factory=dict)

    @property
    def group(self) -> tuple[str, str, str]:
        """Source, model and system."""
        return self.cells["source"], self.cells["model"], self.cells["system"]

    def key(self, columns: Collection[str]) -> tuple[str, ...]:
        """The row's cells in some columns; numbers that are written differently agree."""
        return tuple(plain_number(self.cells.get(name, "")) for name in columns)

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
