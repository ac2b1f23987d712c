"""Tables of measured training runs, as the cost model sees them.

``read_rows(path) -> Rows`` reads a CSV with the columns that README.md lists. A :class:`Row` holds the cells,
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

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from dse.errors import Diagnostic, Location, SpaceError, nearest
from dse.study.measurements import Measurements, Record, read_measurements

from .measured.cases import Cases
from .measured.choices import framework_of
from .measured.hardware import cluster_of, hardware_of, taken_as, unknown
from .measured.model import architecture_of
from .measured.plan import read_plan
from .measured.row import ARCHITECTURE, CONFIGURATION, REQUIRED, SMALLEST, Row
from .measured.target import metric_of, target_of

__all__ = ["KINDS", "OPTIONAL", "REQUIRED", "Row", "Rows", "read_rows"]

KINDS = ("exact", "mixture", "bounds", "flagged", "skipped")

OPTIONAL = (
    "source layers hidden ffn heads kv_heads head_dim vocab activation moe cp vpp ep dp zero_stage seq_parallel framework "
    "overlap_dp overlap_tp attention schedule placement edges peak_tflops_used metric2 value2 metric3 value3 notes flag"
).split()
"""The columns that are read where a table has them."""

NUMBERS = (
    "n_gpus params_B layers hidden ffn heads kv_heads head_dim vocab seq_len global_batch micro_batch tp pp vpp cp ep "
    "dp zero_stage value peak_tflops_used value2 value3"
).split()
"""The columns that hold a number or nothing."""

SIZES = ("layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab")

UNREAD = ("source_locator", "params_B", "complete", "arch_source", "predicted")
"""Columns of published tables that are not read."""


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
    table = read_measurements(path, required=REQUIRED, numbers=NUMBERS, least=least, smallest=SMALLEST)
    misspelt = {
        name: nearest(name, OPTIONAL) for name in table.columns if name not in (*REQUIRED, *OPTIONAL, *UNREAD)
    }
    wrong = [
        Diagnostic(
            Location(table.file, 1, table.columns.index(name) + 1),
            name,
            f"found a column that is not read{hint}",
        )
        for name, hint in misspelt.items()
        if "did you mean" in hint and hint.split("'")[1] not in table.columns
    ]
    if wrong:
        raise SpaceError(wrong)
    return Rows(table, tuple(_row(record, path.stem) for record in table.records))


def _completed(record: Record, file: str) -> tuple[dict[str, str], dict[str, float]]:
    """Cells and numbers with the columns that a table leaves out; without a source, the file is it."""
    cells = {**dict.fromkeys((*ARCHITECTURE, *CONFIGURATION), ""), **record.cells}
    cells["source"] = cells["source"] or file
    cells["metric"] = metric_of(cells["metric"])
    return cells, {**dict.fromkeys(NUMBERS, math.nan), **record.numbers}


def _row(record: Record, file: str) -> Row:
    cells, numbers = _completed(record, file)
    flag = cells.get("flag", "")

    def skipped(reason: str) -> Row:
        return Row(record.line, cells, "flagged" if flag else "skipped", flag or reason)

    hardware = hardware_of(cells["system"])
    if not hardware:
        return skipped(unknown(cells["system"]))
    model, reason = architecture_of(cells, numbers)
    if reason:
        return skipped(reason)
    for name in SIZES:  # those of the catalogue, where the row leaves them to it
        cells[name] = cells[name] or f"{model[name]:g}"
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
    taken = taken_as(cells["system"])
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
        assumed={**reading.assumed, **({"system": f"{cells['system']} as {taken}"} if taken else {})},
    )
