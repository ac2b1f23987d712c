"""Tables of measured training runs, as the cost model sees them.

``read_rows(path) -> Rows`` reads a CSV with the columns of the published table. A :class:`Row` holds the cells,
the model, the catalogued GPU, what is said of the cluster, one or more plans, and the measured time. Its ``kind``:

``exact``    dense, fully configured: what scores are made of
``mixture``  a mixture of experts, fully configured
``bounds``   recomputation or layout is open: predicted at every end, scored as inside or how far outside
``flagged``  marked as inconsistent in the table; predicted, scored apart
``skipped``  cannot be predicted; ``reason`` says why

``rows.cases(kinds)`` flattens rows into one case for each plan: ``cases.row`` (index of the row), ``cases.seconds``
(measured), and ``cases.namespace(tables, hardware, efficiency)``, the namespace ``g`` of the cost model with NumPy
arrays: ``g.model.layers``, ``g.hardware.bandwidth``, ``g.cluster.nic``, ``g.tp``, ``g.sharding.resident`` ...
Columns of table dimensions come from ``tables[dimension][row name][column]``, those of the hardware from
``hardware[id][column]``, efficiencies from ``efficiency[generation][column]`` by ``hardware[id]["generation"]``;
``g.replaced(name=value)`` exchanges one, which is how a fit tries other efficiencies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from dse.study.measurements import Measurements, Record, read_measurements

from .measured.cases import Cases
from .measured.hardware import cluster_of, hardware_of
from .measured.model import architecture_of
from .measured.plan import framework_of, read_plan
from .measured.row import Row
from .measured.target import target_of

__all__ = ["KINDS", "Row", "Rows", "read_rows"]

KINDS = ("exact", "mixture", "bounds", "flagged", "skipped")

REQUIRED = (
    "source system n_gpus model layers hidden ffn heads kv_heads head_dim vocab seq_len global_batch micro_batch tp pp "
    "vpp cp ep dp zero_stage sharding recompute seq_parallel precision activation metric value"
).split()
"""The columns that a table must have."""

NUMBERS = (
    "n_gpus params_B layers hidden ffn heads kv_heads head_dim vocab seq_len global_batch micro_batch tp pp vpp cp ep "
    "dp zero_stage value peak_tflops_used value2 value3"
).split()
"""The columns that hold a number or nothing."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of measured runs, in the order of the file."""

    table: Measurements
    rows: tuple[Row, ...]

    def cases(self, kinds: Collection[str] = ("exact",)) -> Cases:
        """The plans of all rows of some kinds, one case each; ``exact`` rows have exactly one."""
        return Cases.of([(at, row) for at, row in enumerate(self.rows) if row.kind in kinds])

    def counts(self) -> dict[str, int]:
        """The number of rows of each kind."""
        found = Counter(row.kind for row in self.rows)
        return {kind: found[kind] for kind in KINDS}

    def reasons(self, kind: str = "skipped") -> dict[str, int]:
        """The reasons of one kind with their counts, most frequent first."""
        return dict(Counter(row.reason for row in self.rows if row.kind == kind).most_common())


def read_rows(path: Path, *, least: int = 1) -> Rows:
    """The rows of a table of measured training runs.

    Raises:
        SpaceError: the file is no such table; every finding has its line and column.
    """
    table = read_measurements(path, required=REQUIRED, numbers=NUMBERS, least=least)
    return Rows(table, tuple(_row(record) for record in table.records))


def _row(record: Record) -> Row:
    cells, numbers = record.cells, record.numbers
    flag = cells.get("flag", "")

    def skipped(reason: str) -> Row:
        return Row(record.line, cells, "flagged" if flag else "skipped", flag or reason)

    hardware = hardware_of(cells["system"])
    if not hardware:
        return skipped(f"GPU {cells['system']!r} is not in the catalogue")
    model, reason = architecture_of(cells, numbers)
    if reason:
        return skipped(reason)
    reading = read_plan(cells, numbers, model)
    if reading.reason:
        return skipped(reading.reason)
    target, reason = target_of(cells, numbers, model, reading.jobs[0])
    if target is None:
        return skipped(reason)
    kind, reason = "exact", ""
    if flag:
        kind, reason = "flagged", flag
    elif reading.open:
        kind, reason = "bounds", reading.open
    elif model["experts"]:
        kind = "mixture"
    return Row(
        line=record.line,
        cells=cells,
        kind=kind,
        reason=reason,
        framework=framework_of(cells),
        hardware=hardware,
        cluster=cluster_of(cells["system"], cells.get("notes", "")),
        model=model,
        plans=reading.plans,
        jobs=reading.jobs,
        target=target,
    )
