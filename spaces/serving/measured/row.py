"""One measured run of inference: what its row says in the space's names, and what it shares with other runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from dse.spaces.measured.cells import plain_number
from dse.spaces.measured.target import Target

from .model import SIZES

__all__ = ["CONFIGURATION", "REQUIRED", "SMALLEST", "Figure", "Row", "Run"]

REQUIRED = ("gpu", "model", "weights_precision", "batch", "input_len", "output_len", "metric", "value")
"""The columns that a table must have; README.md says what they mean, and what others there may be."""

SMALLEST = (
    f"The smallest table: {','.join(REQUIRED)}\n"
    "h100-sxm,llama-3.1-8b,bf16,16,512,128,out_tokens_s_total,1800\n"
    "The README of the serving space lists all columns and their values."
)

CONFIGURATION = (
    "source", "gpu", "n_gpus", "engine", "model", *SIZES, "moe", "weights_precision", "kv_precision", "tp", "pp", "batch",
    "batching", "input_len", "output_len", "metric",
)  # fmt: skip
"""The columns in which two identical runs agree, beside what the cache held before."""


@dataclass(frozen=True, slots=True)
class Run:
    """One way to run what a row says: layout and formats (``plan``), sizes (``job``), and the time that was measured."""

    plan: Mapping[str, object]
    job: Mapping[str, float]
    target: Target


@dataclass(frozen=True, slots=True)
class Figure:
    """A further figure of a row: its ``metric`` and ``value``, and ``run``, which times it; None for memory (bytes)."""

    metric: str
    value: float
    phase: str
    run: Run | None


@dataclass(frozen=True, slots=True)
class Row:
    """One measured run; see :mod:`dse.spaces.serving.rows` for ``kind``.

    ``phase`` is what the figure times, ``bits`` what the row states of the bits of a stored weight (NaN: nothing),
    ``whole`` whether the output projection is stored so too. ``assumed``: what is not stated and was decided by rule.
    """

    line: int
    cells: Mapping[str, str]
    kind: str
    reason: str = ""
    phase: str = ""
    hardware: str = ""
    engine: str = ""
    model: Mapping[str, float] | None = None
    runs: tuple[Run, ...] = ()
    further: tuple[Figure, ...] = ()
    assumed: Mapping[str, str] = field(default_factory=dict)

    @property
    def group(self) -> tuple[str, str, str]:
        """Source, model, and system: the GPU with the engine."""
        return self.cells["source"], self.cells["model"], f"{self.cells['gpu']}, {self.engine}"

    @property
    def past(self) -> float:
        """Tokens that the cache held before."""
        return self.runs[0].job["past"] if self.runs else 0.0

    @property
    def decode_only(self) -> bool:
        """Whether the figure is the time of a token, or the rate of one sequence, without the prefill."""
        single = (
            self.cells["metric"] == "tokens_s_user" and bool(self.runs) and self.runs[0].job["batch"] == 1
        )
        return self.phase == "decode" and (self.cells["metric"].startswith("tpot_ms") or single)

    def key(self, columns: Collection[str]) -> tuple[str, ...]:
        """The row's cells in some columns; numbers that are written differently agree."""
        return tuple(plain_number(self.cells.get(name, "")) for name in columns)

    @property
    def configuration(self) -> tuple[str, ...]:
        """What identical runs share."""
        return (*self.key(CONFIGURATION), f"{self.past:g}")

    @property
    def batch_sweep(self) -> tuple[str, ...]:
        """What the rows of a batch sweep share: all but the batch."""
        return (*self.key([name for name in CONFIGURATION if name != "batch"]), f"{self.past:g}")
