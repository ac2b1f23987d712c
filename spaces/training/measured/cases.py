"""Measured runs side by side: arrays by name, as the cost model reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.spaces.catalog.columns import MODEL_COUNTS
from dse.spaces.measured.namespace import Namespace, columns

from .row import Row

__all__ = ["Cases", "Namespace"]

TABLE_DIMENSIONS = (
    "schedule", "sharding", "recompute", "format", "optimizer", "placement", "edges", "dispatch", "cp_kind", "attention",
    "runtime",
)  # fmt: skip
"""What of a plan names a row of a table."""

INPUTS = {
    "attention_share": 1.0, "length_imbalance": 1.0, "expert_imbalance": 1.0, "capacity_factor": 1.0,
    "memory_reserve": 0.0, "memory_fixed": 0.0,
}  # fmt: skip
"""Inputs that no table states, at the values that change nothing."""


@dataclass(frozen=True, slots=True)
class Cases:
    """One case for each plan of each row.

    ``row`` (n,) is the index of the case's row in the file; ``seconds`` (n,) its measured iteration time;
    ``plan`` and ``job`` hold one array (n,) for each name, names of table rows as text.
    """

    row: NDArray[np.intp]
    seconds: NDArray[np.float64]
    hardware: tuple[str, ...]
    model: Mapping[str, NDArray[np.float64]]
    cluster: Mapping[str, NDArray[np.float64]]
    plan: Mapping[str, NDArray[Any]]
    job: Mapping[str, NDArray[np.float64]]
    source: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of(cls, rows: Sequence[tuple[int, Row]]) -> Cases:
        """The cases of numbered rows; rows without a plan have none."""
        flat = [
            (at, row, plan, job) for at, row in rows for plan, job in zip(row.plans, row.jobs, strict=True)
        ]
        names = list(flat[0][2]) if flat else []
        return cls(
            row=np.array([at for at, *_ in flat], np.intp),
            seconds=np.array([row.target.seconds if row.target else np.nan for _, row, *_ in flat]),
            hardware=tuple(row.hardware for _, row, *_ in flat),
            model={
                name: np.array([row.model[name] if row.model else 0.0 for _, row, *_ in flat], float)
                for name in MODEL_COUNTS
            },
            cluster={
                name: np.array([getattr(row.cluster, name) for _, row, *_ in flat], float)
                for name in ("node", "nic", "link")
            },
            plan={name: np.array([plan[name] for *_, plan, _ in flat]) for name in names},
            job={
                name: np.array([job[name] for *_, job in flat], float)
                for name in ("n_gpus", "global_batch", "seq_len")
            },
            source=tuple(row.cells["source"] for _, row, *_ in flat),
        )

    def namespace(
        self,
        tables: Mapping[str, Mapping[str, Mapping[str, Any]]],
        hardware: Mapping[str, Mapping[str, Any]],
        efficiency: Mapping[str, Mapping[str, float]] | None = None,
        *,
        cluster: Mapping[str, float] | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> Namespace:
        """What the cost model is given, as arrays over the cases.

        Args:
            tables: for each table dimension of a plan (``sharding``), its rows' columns; a dimension without a
                table keeps the names of its rows.
            hardware: the catalogue's columns by id. A stated link replaces the datasheet's only for the A800 and the
                H800; what else a source says is in ``g.cluster.link``. The rate of a run in fp16 stands under bf16.
            efficiency: columns by generation.
            cluster: further columns of the cluster, the same for all cases (rack, latencies).
            inputs: inputs of the space that no table states; the default changes nothing.

        Raises:
            KeyError: a table has no row of that name, or the hardware no such id.
        """
        values: dict[str, Any] = {**INPUTS, **(inputs or {}), **self.job}
        values["model"] = Namespace(self.model)
        values["hardware"] = chips = Namespace(columns(self.hardware, hardware))
        values["cluster"] = Namespace({**(cluster or {}), **self.cluster})
        if "link" in chips:
            values["hardware"] = chips = chips.replaced(link=self._links(chips.link))
        if "nic" in chips and "node" in chips:
            values["hardware"] = chips = chips.replaced(nic=self._nics(chips.nic, chips.node))
        if "fp16" in chips and "bf16" in chips and "format" in self.plan:
            half = self.plan["format"] == "fp16"
            values["hardware"] = chips = chips.replaced(bf16=np.where(half, chips.fp16, chips.bf16))
        if efficiency is not None:
            values["efficiency"] = Namespace(columns(chips.generation.tolist(), efficiency))
        for name, cells in self.plan.items():
            if name in tables and name in TABLE_DIMENSIONS:
                values[name] = Namespace(columns(cells.tolist(), tables[name]))
            else:
                values[name] = cells
        return Namespace(values)

    def _links(self, datasheet: NDArray[np.float64]) -> NDArray[np.float64]:
        """The datasheet's links, those of the A800 and H800 as stated: the A100's and H100's chips with less NVLink."""
        stated = self.cluster["link"]
        return np.where(stated == 200e9, stated, datasheet)

    def _nics(self, datasheet: NDArray[np.float64], node: NDArray[np.float64]) -> NDArray[np.float64]:
        """The datasheet's networks; one that is not known costs nothing where the run stays within a node."""
        own = np.where(self.cluster["node"] > 0, self.cluster["node"], node)
        within = self.job["n_gpus"] <= own
        return np.where(np.isnan(datasheet) & within, np.inf, datasheet)
