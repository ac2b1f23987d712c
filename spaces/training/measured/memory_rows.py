"""Tables of measured memory, in the space's own names.

A :class:`MemoryRow` has a ``kind``: ``exact`` and ``mixture`` are measured peaks of dense models and mixtures of experts;
``bounds`` leave recomputation or the GPU count open; ``formula`` rows are analytic figures that their source
computed; ``oom`` runs did not fit; ``skipped`` cannot be predicted.

Three targets are told apart (``target``): ``allocated``, ``reserved``, and ``device`` (nvidia-smi). A peak that a source does
not name is a device's.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dse.study.measurements import Measurements, Record, read_measurements

from .choices import framework_of, runtime_of
from .hardware import Cluster, cluster_of, hardware_of, unknown
from .model import architecture_of
from .plan import read_plan
from .row import ARCHITECTURE, CONFIGURATION, REQUIRED, SMALLEST, Row

__all__ = ["FROZEN", "GIB", "MEMORY_KINDS", "MemoryRow", "MemoryRows", "read_memory_rows"]

GIB = 2.0**30

MEMORY_KINDS = ("exact", "mixture", "bounds", "formula", "oom", "skipped")

NUMBERS = (
    "n_gpus params_B layers hidden ffn heads kv_heads head_dim global_batch micro_batch tp pp vpp cp ep dp zero_stage "
    "value value2 value3 capacity_gb"
).split()

MEASURED = {
    "max_allocated_gib": ("allocated", GIB), "allocated_gib": ("allocated", GIB), "peak_mem_gib": ("device", GIB),
    "peak_mem_gb": ("device", GIB), "max_reserved_gib": ("reserved", GIB), "reserved_gib": ("reserved", GIB),
    "nvidia_smi_gib": ("device", GIB), "max_allocated_gb": ("allocated", 1e9), "max_reserved_gb": ("reserved", 1e9),
}  # fmt: skip
"""Metrics, the peak that each is, and the bytes of its unit; a card's "GB" as tools print them are 2^30 bytes."""

PRINTED = (
    (
        "litgpt resource tables",
        "peak_mem_gb",
        ("allocated", 1e9),
    ),  # max_memory_allocated / 1e9 (litgpt/finetune)
    (
        "nvidia dgx cloud benchmarking recipes",
        "peak_mem_gib",
        ("reserved", GIB),
    ),  # NeMo logs max_memory_reserved
)
"""What a source's metric is, where its name does not tell: source, metric, and the peak with its unit."""

FROZEN = "frozen base model"

VOCABULARIES = ((r"\b(gpt3_)?7b_", 131072.0), (r"\b(gpt3_)?15b_", 256000.0))
"""Tokens of Megatron-LM's test models that are not trained with GPT-2's."""

FORMULAS = {"params_grads_opt_gib", "activations_gib", "activation_mem_pct_of_tp_baseline"}

NOT_MODELLED = (
    (r"muon", "Muon optimizer"),
    (r"distill", "distillation: two models"),
    (r"offloading", "activations are offloaded"),
    (r"_mla\b", "widths of latent attention not stated"),
    (r"_mtp_", "further prediction heads"),
)

OPEN_RANKS = (2.0, 64.0)
"""Data parallel ranks between which a run lies whose GPU count is not stated."""


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One measurement. ``value`` is in ``unit`` bytes; ``run`` has the plans; ``last_stage``: measured there."""

    line: int
    cells: Mapping[str, str]
    kind: str
    reason: str = ""
    target: str = ""
    value: float = math.nan
    unit: float = GIB
    capacity: float = math.nan
    last_stage: bool = False
    run: Row | None = None


@dataclass(frozen=True, slots=True)
class MemoryRows:
    """A table of measured memory, in the order of the file."""

    table: Measurements
    rows: tuple[MemoryRow, ...]

    def counts(self) -> dict[str, int]:
        """The number of rows of each kind."""
        found = Counter(row.kind for row in self.rows)
        return {kind: found[kind] for kind in MEMORY_KINDS}

    def reasons(self) -> dict[str, int]:
        """Why rows are skipped, with counts, most frequent first."""
        return dict(Counter(row.reason for row in self.rows if row.kind == "skipped").most_common())


def read_memory_rows(path: Path) -> MemoryRows:
    """The rows of a table of measured memory.

    Raises:
        SpaceError: the file is no such table; every finding has its line and column.
    """
    table = read_measurements(
        path, required=REQUIRED, numbers=NUMBERS, texts=("OOM", "oom"), smallest=SMALLEST
    )
    return MemoryRows(table, tuple(_row(_whole(record, path.stem)) for record in table.records))


def _whole(record: Record, file: str) -> Record:
    """The row with the columns that a table leaves out; without a source, the file is it."""
    cells = {**dict.fromkeys((*ARCHITECTURE, *CONFIGURATION), ""), **record.cells}
    cells["source"] = cells["source"] or file
    return Record(record.line, cells, {**dict.fromkeys(NUMBERS, math.nan), **record.numbers})


def _row(record: Record) -> MemoryRow:
    cells, numbers = _completed(record)
    metric, notes = cells["metric"], cells.get("notes", "")
    oom = metric == "oom" or cells["value"].casefold() == "oom"
    capacity = numbers.get("capacity_gb", math.nan) * GIB
    target, unit = _target(cells, oom)
    value = numbers.get("value", math.nan)

    def made(kind: str, reason: str = "", run: Row | None = None) -> MemoryRow:
        return MemoryRow(
            record.line,
            record.cells,
            kind,
            reason,
            target,
            value,
            unit,
            capacity,
            "last PP stage" in notes,
            run,
        )

    if not oom and not target:
        known = metric in FORMULAS
        return made(
            "formula" if known else "skipped", "" if known else f"metric {metric!r} is no peak of memory"
        )
    if not oom and math.isnan(value):
        return made("skipped", "no value")
    if re.search(r"\blora on 1 gpu\b", notes.casefold()) and "bnb" not in cells["precision"]:
        # the base model is frozen: its weights in two bytes, and the activations of every layer
        run, reason = _run(record, {**cells, "notes": "", "recompute": "none"}, numbers, frozen=True)
        reason = reason or FROZEN
    else:
        run, reason = _run(record, cells, numbers)
    if oom:
        return made("oom", reason, run)
    if run is None:
        return made("skipped", reason)
    return made(run.kind, run.reason, run)


def _target(cells: Mapping[str, str], oom: bool) -> tuple[str, float]:
    """Which peak a row's figure is, and the bytes of its unit; "" where it is none."""
    metric, source = cells["metric"], cells.get("source", "").casefold()
    target, unit = MEASURED.get(metric, ("device", GIB) if oom else ("", GIB))
    for name, figure, known in PRINTED:
        if name == source.strip() and figure == metric:
            target, unit = known
    return "allocated" if "max_memory_allocated" in cells.get("notes", "") else target, unit


def _run(
    record: Record, cells: dict[str, str], numbers: dict[str, float], *, frozen: bool = False
) -> tuple[Row | None, str]:
    """The row's run with its plans, or why there is none."""
    hardware = hardware_of(cells["system"])
    if not hardware:
        return None, unknown(cells["system"])
    for pattern, reason in NOT_MODELLED:
        if re.search(pattern, cells["model"].casefold()):
            return None, reason
    model, reason = architecture_of(cells, numbers)
    if reason:
        return None, reason
    model |= _test_model(cells, numbers)
    opened = _complete_layout(numbers)
    readings = []
    for ranks in OPEN_RANKS if opened == "GPU count" else (numbers["dp"],):
        own = {**numbers, "dp": ranks}
        own["n_gpus"] = ranks * own["tp"] * own["pp"] * own["cp"]
        if math.isnan(own["global_batch"]):  # as many micro-batches as fill the pipeline
            own["global_batch"] = own["micro_batch"] * ranks * max(own["pp"], 1.0) * 2.0
        reading = read_plan(cells, own, model)
        if reading.reason:
            return None, reading.reason
        readings.append(reading)
    reading = readings[0]
    if opened == "GPU count":
        reading = readings[0].__class__(
            sum((one.plans for one in readings), ()),
            sum((one.jobs for one in readings), ()),
            "GPU count unspecified",
        )
    for plan in reading.plans:
        plan.update(_memory_plan(cells, frozen))
    kind = "bounds" if reading.open else "mixture" if model["experts"] else "exact"
    return (
        Row(
            line=record.line,
            cells=record.cells,
            kind=kind,
            reason=reading.open,
            framework=framework_of(cells),
            hardware=hardware,
            cluster=Cluster() if opened else cluster_of(cells["system"], cells.get("notes", "")),
            model=model,
            plans=reading.plans,
            jobs=reading.jobs,
        ),
        "",
    )


def _completed(record: Record) -> tuple[dict[str, str], dict[str, float]]:
    """The cells with the numbers that stand in texts: a vocabulary, a sequence length, Megatron's default widths."""
    cells, numbers = dict(record.cells), dict(record.numbers)
    for name in ("vocab", "seq_len"):
        found = re.search(r"(?<![\d.])\d{3,}(?![\d.])", cells[name])
        numbers[name] = float(found.group()) if found else math.nan
    if "unless" in cells["vocab"]:  # a default, which larger tests do not take
        known = (tokens for pattern, tokens in VOCABULARIES if re.search(pattern, cells["model"]))
        numbers["vocab"] = next(known, numbers["vocab"])
    stated = re.search(r"\((\d+) by default", cells.get("notes", ""))
    if math.isnan(numbers["seq_len"]) and stated:
        numbers["seq_len"] = float(stated.group(1))
    if math.isnan(numbers["ffn"]) and not math.isnan(numbers["hidden"]) and "/" in cells["model"]:
        wide = 4.0 * numbers["hidden"]  # megatron/training/arguments.py
        gated = cells["activation"].casefold() == "swiglu"
        numbers["ffn"] = wide * 2.0 // 3.0 // 64.0 * 64.0 if gated else wide
    return cells, numbers


def _complete_layout(numbers: dict[str, float]) -> str:
    """Fills in counts that follow from others; what stays open."""
    for name in ("cp", "ep", "vpp", "tp", "pp"):
        if math.isnan(numbers[name]):
            numbers[name] = 1.0
    if not math.isnan(numbers["dp"]):
        return ""
    if math.isnan(numbers["n_gpus"]):
        return "GPU count"
    numbers["dp"] = numbers["n_gpus"] / (numbers["tp"] * numbers["pp"] * numbers["cp"])
    return ""


def _is_test(cells: Mapping[str, str]) -> bool:
    """Whether a row is one of Megatron-LM's functional tests, whose models have GPT-2's parts."""
    return cells["model"].startswith(("gpt/", "moe/"))


def _test_model(cells: Mapping[str, str], numbers: Mapping[str, float]) -> dict[str, float]:
    if not _is_test(cells):
        return {}
    name = cells["model"]
    gated = cells["activation"].casefold() == "swiglu"
    release = "release" in name
    plain = float("disable_bias" not in name and not release)
    learned = 0.0 if "rope" in name or release else numbers["seq_len"]
    return {
        "layernorm": float(not gated),
        "qkv_bias": plain,
        "out_bias": plain,
        "mlp_bias": plain,
        "positions": learned,
        "tied": float("untied" not in cells.get("notes", "") and "untie" not in name),
        "qk_norm": float("qk_layernorm" in name),
        "dropout": float(("memory_speed" in name and "7b" in name) or not (gated or release)),
    }  # fmt: skip


def _memory_plan(cells: Mapping[str, str], frozen: bool) -> dict[str, str | bool]:
    """What of a plan only memory is asked of: which framework keeps what, how experts are divided."""
    found: dict[str, str | bool] = {"runtime": runtime_of(cells)}
    if frozen:
        found["sharding"] = "frozen"
    if "/" in cells["model"]:  # a test of Megatron-LM, whose experts are divided as its layers are
        found["expert_tp"] = "etp1" not in cells["model"]
    if _is_test(cells) and "release" not in cells["model"]:
        found["runtime"] = (
            "megatron-unfused"  # their configurations ask for no fusion of gradient accumulation
        )
    return found
