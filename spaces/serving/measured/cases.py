"""Measured runs side by side: arrays by name, as the cost model reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.spaces.catalog.columns import MODEL_COUNTS
from dse.spaces.measured.namespace import Namespace, columns

from .formats import Stored
from .model import parameters_of
from .row import Row, Run

__all__ = ["PHASES", "Cases"]

PHASES = ("generate", "decode", "prefill", "ceiling")

FORMATS = ("weights", "activations", "kv")
"""What of a plan names a format."""

LAYOUT = ("tp", "pp", "ep", "batch")

JOB = ("prompt", "output", "past", "n_gpus")

INPUTS: Mapping[str, Any] = {
    "prompt_cv": 0.0, "output_cv": 0.0, "request_rate": 0.0, "prefix_hit": 0.0, "acceptance": 0.0, "attention_dp": 1.0,
    "replicas": 1.0, "chunk": 0.0, "draft_length": 0.0, "disaggregated": 0.0, "memory_reserve": 0.0,
    "prefill_ratio": 1.0, "expert_imbalance": 1.0,
}  # fmt: skip
"""Inputs and dimensions that no table states, at the values that change nothing."""

Columns = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Cases:
    """One case for each run of each row.

    ``row`` (n,) is the index of the case's row in the file; ``phase`` (n,) one of :data:`PHASES`; ``seconds`` (n,) what was
    measured: of the phase, or for a ceiling of one output token of all sequences together (1 over its tokens/s);
    ``value`` (n,) the figure in its own unit. ``plan`` and ``job``
    hold one array (n,) for each name, formats as text; ``bits`` (n,) what is stated of a stored weight, or NaN, and
    ``whole`` (n,) whether the output projection is stored so too.
    """

    row: NDArray[np.intp]
    phase: NDArray[Any]
    seconds: NDArray[np.float64]
    value: NDArray[np.float64]
    hardware: tuple[str, ...]
    engine: tuple[str, ...]
    model: Mapping[str, NDArray[np.float64]]
    plan: Mapping[str, NDArray[Any]]
    job: Mapping[str, NDArray[np.float64]]
    bits: NDArray[np.float64]
    whole: NDArray[np.bool_]
    source: tuple[str, ...]
    group: tuple[tuple[str, str, str], ...]

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of(cls, rows: Sequence[tuple[int, Row]]) -> Cases:
        """The cases of numbered rows; rows without a run have none."""
        return cls.flat([(at, row, row.phase, run) for at, row in rows for run in row.runs])

    @classmethod
    def flat(cls, found: Sequence[tuple[int, Row, str, Run]]) -> Cases:
        """The cases of runs, each with its row's number and its phase."""
        models = [row.model or {} for _, row, *_ in found]
        return cls(
            row=np.array([at for at, *_ in found], np.intp),
            phase=np.array([phase for _, _, phase, _ in found], "U8"),
            seconds=np.array([run.target.seconds for *_, run in found], float),
            value=np.array([run.target.value for *_, run in found], float),
            hardware=tuple(row.hardware for _, row, *_ in found),
            engine=tuple(row.engine for _, row, *_ in found),
            model={name: np.array([model[name] for model in models], float) for name in MODEL_COUNTS},
            plan={
                name: np.array([run.plan[name] for *_, run in found])
                for name in (*LAYOUT, *FORMATS, "graphs")
            },
            job={name: np.array([run.job[name] for *_, run in found], float) for name in JOB},
            bits=np.array([_stated(row, run) for _, row, _, run in found], float),
            whole=np.array([run.plan["whole"] for *_, run in found], bool),
            source=tuple(row.cells["source"] for _, row, *_ in found),
            group=tuple(row.group for _, row, *_ in found),
        )

    def namespace(
        self,
        formats: Mapping[str, Columns],
        hardware: Columns,
        efficiency: Columns | None = None,
        *,
        engines: Columns | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> Namespace:
        """What the cost model is given, as arrays over the cases.

        Args:
            formats: the columns of ``weights``, ``activations`` and ``kv`` by format.
            hardware: the catalogue's columns by id.
            efficiency: columns by generation.
            engines: columns by engine; one that is missing has those of ``default``.
            inputs: further inputs of the space; the default changes nothing.

        Bits that a row states replace the format's, in ``weights.bits_per_weight``; ``weights.whole`` is 0 where only the layers
        are stored so. ``kind_generate`` and the like are 0 or 1.

        Raises:
            KeyError: a table has no row of that name.
        """
        job = {**self.job, "prompt_len": self.job["prompt"], "output_len": self.job["output"]}
        values: dict[str, Any] = {**INPUTS, **(inputs or {}), **job}
        values |= {f"kind_{phase}": (self.phase == phase).astype(float) for phase in PHASES}
        values["model"] = values["draft"] = Namespace(self.model)
        values["hardware"] = chips = Namespace(columns(self.hardware, hardware))
        if efficiency is not None:
            values["efficiency"] = Namespace(columns(chips.generation.tolist(), efficiency))
        if engines is not None:
            own = [name if name in engines else "default" for name in self.engine]
            values["engine"] = Namespace(columns(own, engines))
        values |= {name: cells for name, cells in self.plan.items() if name not in FORMATS}
        for name in FORMATS:
            values[name] = Namespace(columns(self.plan[name].tolist(), formats[name]))
        values["weights"] = self._stored(values["weights"])
        return Namespace(values)

    def _stored(self, weights: Namespace) -> Namespace:
        """The columns of the weights' formats with what rows state of their bits."""
        if "bits_per_weight" not in weights:
            return weights
        bits = np.where(np.isnan(self.bits), weights.bits_per_weight, self.bits)
        return weights.replaced(bits_per_weight=bits, whole=self.whole.astype(float))


def _stated(row: Row, run: Run) -> float:
    stored = run.plan["stored"]
    assert isinstance(stored, Stored)
    return stored.stated(parameters_of(row.model or {}))
