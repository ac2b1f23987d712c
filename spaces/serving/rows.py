"""Tables of measured inference runs, as the cost model sees them.

``read_rows(path) -> Rows`` reads a CSV with the columns that README.md lists. A :class:`Row` holds the cells, the model, the
catalogued GPU, the engine, one or more runs (layout, formats, sizes and the measured time), and further figures. Its ``kind``:

``exact``    a static batch that is stated in full, or single sequences of which what is not stated hardly matters: scored
``ceiling``  the highest rate of an engine that schedules requests itself: the best batch that fits has to reach it
``bounds``   what is not stated matters: predicted at both ends, told as inside or how far outside
``flagged``  marked as doubtful, or contradicted by another row of its source; predicted, told apart
``skipped``  cannot be predicted; ``reason`` says why

``rows.cases(kinds)`` flattens rows into one case for each run: ``cases.row`` (index of the row), ``cases.phase`` (what was
timed: ``generate``, ``decode``, ``prefill``, ``ceiling``), ``cases.seconds`` (measured), and ``cases.namespace(...)``, the
namespace ``g`` of the cost model with NumPy arrays: ``g.model.layers``, ``g.hardware.bandwidth``, ``g.weights.bits_per_weight``,
``g.tp``, ``g.batch``, ``g.prompt``, ``g.kind_decode`` ...; ``g.replaced(name=value)`` exchanges one, which is how a fit tries
other efficiencies.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from dse.errors import Diagnostic, Location, SpaceError, nearest
from dse.spaces.measured.gpus import hardware_of, taken_as, unknown
from dse.study.measurements import Measurements, Record, read_measurements

from .measured.cases import Cases
from .measured.contradictions import flagged
from .measured.engine import engine_of, is_eager
from .measured.formats import Stored, activations_of, cache_of, stored_of
from .measured.layout import Layout, layouts_of
from .measured.lengths import Lengths, lengths_of, number_of
from .measured.memory import misfit
from .measured.model import architecture_of, bytes_of, parameters_of
from .measured.row import CONFIGURATION, REQUIRED, SMALLEST, Figure, Row, Run
from .measured.target import METRICS, phase_of, says_phase, target_of

__all__ = ["KINDS", "OPTIONAL", "REQUIRED", "Row", "Rows", "read_rows"]

KINDS = ("exact", "ceiling", "bounds", "flagged", "skipped")

OPTIONAL = (
    "source n_gpus engine params_B layers hidden ffn heads kv_heads head_dim vocab moe kv_precision tp pp batching metric2 value2 "
    "metric3 value3 notes flag"
).split()
"""The columns that are read where a table has them."""

NUMBERS = "n_gpus params_B layers hidden ffn heads kv_heads head_dim vocab tp value value2 value3".split()
"""The columns that hold a number or nothing."""

WORDS = ("pp", "batch", "input_len", "output_len")
"""The columns that hold a number, or words that say why there is none."""

UNREAD = ("source_locator", "complete", "arch_source", "predicted")
"""Columns of published tables that are not read."""

CODEBOOKS = ("aqlm-2", "quip-2")
"""Formats whose weights are looked up in codebooks, by kernels that are not modelled."""

MATTERS = 0.10
"""What is not stated matters when it changes the bytes of a step by more."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of measured runs, in the order of the file."""

    table: Measurements
    rows: tuple[Row, ...]

    def cases(self, kinds: Collection[str] = ("exact",)) -> Cases:
        """The runs of all rows of some kinds, one case each; ``exact`` rows and ceilings have exactly one."""
        return Cases.of([(at, row) for at, row in enumerate(self.rows) if row.kind in kinds])

    def counts(self) -> dict[str, int]:
        """The number of rows of each kind."""
        found = Counter(row.kind for row in self.rows)
        return {kind: found[kind] for kind in KINDS}

    def reasons(self, kind: str = "skipped") -> dict[str, int]:
        """The reasons of one kind with their counts, most frequent first."""
        return dict(Counter(row.reason for row in self.rows if row.kind == kind).most_common())


def read_rows(path: Path, *, least: int = 1) -> Rows:
    """The rows of a table of measured inference runs.

    Raises:
        SpaceError: the file is no such table; every finding has its line and column.
    """
    table = read_measurements(path, required=REQUIRED, numbers=NUMBERS, least=least, smallest=SMALLEST)
    wrong = [*_misspelt(table), *_not_finite(table)]
    if wrong:
        raise SpaceError(wrong)
    rows = tuple(_row(record, path.stem) for record in table.records)
    return Rows(table, flagged(rows))


def _misspelt(table: Measurements) -> list[Diagnostic]:
    hints = {
        name: nearest(name, OPTIONAL) for name in table.columns if name not in (*REQUIRED, *OPTIONAL, *UNREAD)
    }
    return [
        Diagnostic(
            Location(table.file, 1, table.columns.index(name) + 1),
            name,
            f"found a column that is not read{hint}",
        )
        for name, hint in hints.items()
        if "did you mean" in hint and hint.split("'")[1] not in table.columns
    ]


def _not_finite(table: Measurements) -> list[Diagnostic]:
    """Numbers that are not finite, in columns that may hold words."""
    return [
        Diagnostic(
            Location(table.file, record.line, at + 1),
            name,
            f"found {record.cells[name]!r}, expected a number",
        )
        for record in table.records
        for at, name in enumerate(table.columns)
        if name in WORDS and _odd(record.cells[name])
    ]


def _odd(text: str) -> bool:
    try:
        return not math.isfinite(float(text)) or "_" in text
    except ValueError:
        return False


class _Skipped(Exception):
    """A row cannot be predicted, and why."""


def _row(record: Record, file: str) -> Row:
    cells = {**dict.fromkeys((*OPTIONAL, *CONFIGURATION), ""), **record.cells}
    cells["source"] = cells["source"] or file
    numbers = {**dict.fromkeys(NUMBERS, math.nan), **record.numbers}
    try:
        return _read(record.line, cells, numbers)
    except _Skipped as reason:
        return Row(record.line, cells, "skipped", str(reason))


def _read(line: int, cells: Mapping[str, str], numbers: Mapping[str, float]) -> Row:
    hardware = hardware_of(cells["gpu"])
    if not hardware:
        raise _Skipped(unknown(cells["gpu"]))
    model, reason = architecture_of(cells, numbers)
    if reason:
        raise _Skipped(reason)
    value = numbers["value"]
    if math.isnan(value) or value <= 0:
        raise _Skipped("no value" if math.isnan(value) else "value is not above 0")
    phase = phase_of(cells["metric"], cells["notes"])
    if not phase:
        raise _Skipped(
            f"metric {cells['metric']!r} is no time or rate of inference; read: {', '.join(METRICS)}"
        )
    ceiling = _is_ceiling(cells, phase)
    layouts, reason = layouts_of(cells, numbers, model)
    if reason:
        raise _Skipped(reason)
    batch = 1.0 if ceiling else _batch(cells)
    lengths, reason = lengths_of(cells, phase, math.nan if ceiling else batch)
    if lengths is None:
        raise _Skipped(reason)
    engine, own = engine_of(cells["engine"])
    plan = _formats(cells, engine)
    assumed = _assumed(cells, lengths, phase, "" if own else engine)
    prompts: tuple[float, ...] = (lengths.prompt,)
    doubt = "which ranks share a layer" if len(layouts) > 1 else ""
    if not own and "presumed" in cells["engine"].casefold():
        doubt = doubt or "the engine is presumed only"
    if not ceiling and lengths.open and _matters(model, plan["stored"], lengths):
        prompts, doubt = lengths.prompts, doubt or f"lengths not stated ({lengths.open})"
    runs = tuple(
        _run(
            cells, layout, plan | {"batch": batch}, lengths, ("ceiling" if ceiling else phase, prompt, value)
        )
        for layout in layouts
        for prompt in prompts
    )
    if not ceiling and (reason := misfit(model, runs[0], hardware, cells["batching"])):
        raise _Skipped(reason)
    return Row(
        line=line,
        cells=cells,
        kind="flagged" if cells["flag"] else "ceiling" if ceiling else "bounds" if doubt else "exact",
        reason=cells["flag"] or doubt,
        phase="ceiling" if ceiling else phase,
        hardware=hardware,
        engine=engine,
        model=model,
        runs=runs,
        further=() if ceiling else _further(cells, numbers, runs[0], phase),
        assumed=assumed,
    )


def _is_ceiling(cells: Mapping[str, str], phase: str) -> bool:
    """Whether the engine chose the batch itself.

    ``dynamic`` and ``persistent`` batching, and a steady state, hold the stated number of sequences at once, as a static
    batch does.
    """
    batching = cells["batching"].casefold()
    if batching.startswith(("in-flight", "inflight", "continuous")):
        if phase != "generate" or not cells["metric"].startswith("out_tokens"):
            raise _Skipped("in-flight batching, and the figure is no rate of output tokens")
        return True
    if batching and not batching.startswith(("static", "single", "dynamic", "steady state")):
        raise _Skipped(f"batching {cells['batching']!r} is not known; known: static, single, in-flight")
    return False


def _batch(cells: Mapping[str, str]) -> float:
    single = cells["batching"].casefold().startswith("single")
    batch = number_of(cells["batch"] or ("1" if single else ""))
    if math.isnan(batch):
        raise _Skipped("batch not stated")
    if batch < 1 or batch % 1:
        raise _Skipped(f"batch {cells['batch']} is not a whole number above 0")
    if single and batch != 1:
        raise _Skipped(f"batching is single, and batch {batch:g}")
    return batch


def _formats(cells: Mapping[str, str], engine: str) -> dict[str, object]:
    stored, reason = stored_of(cells["weights_precision"], engine)
    if stored is None:
        raise _Skipped(reason)
    cache, reason = cache_of(cells["kv_precision"])
    if reason:
        raise _Skipped(reason)
    if stored.format in CODEBOOKS:
        raise _Skipped("weights in codebooks (AQLM, QuIP#), whose kernels are not modelled")
    return {
        "weights": stored.format,
        "activations": activations_of(stored, cells["weights_precision"]),
        "kv": cache,
        "graphs": not is_eager(f"{cells['engine']} {cells['notes']}"),
        "stored": stored,
        "whole": stored.whole,
    }


def _assumed(cells: Mapping[str, str], lengths: Lengths, phase: str, engine: str) -> dict[str, str]:
    found = {}
    if taken := taken_as(cells["gpu"]):
        found["gpu"] = f"{cells['gpu']} as {taken}"
    if engine:
        found["engine"] = engine
    if lengths.open:
        found["input_len"] = "short" if "short" in lengths.open else "1 to 2,048 tokens"
    if phase == "generate" and not cells["metric"].startswith("latency") and not says_phase(cells["notes"]):
        found["metric"] = "with the prefill"
    if "not stated" in cells["weights_precision"].casefold():
        found["weights_precision"] = "fp16"
    return found


def _matters(model: Mapping[str, float], stored: object, lengths: Lengths) -> bool:
    """Whether the ends of a prompt that is not stated differ by more than :data:`MATTERS` in the bytes of a step."""
    assert isinstance(stored, Stored)
    read = parameters_of({**model, "experts": model["top_k"]}) * stored.bits_of(parameters_of(model)) / 8
    low, high = (bytes_of(model, lengths.past + end + lengths.output / 2, 2.0) for end in lengths.prompts)
    return (high - low) / (read + low) > MATTERS


def _run(
    cells: Mapping[str, str],
    layout: Layout,
    plan: Mapping[str, object],
    lengths: Lengths,
    timed: tuple[str, float, float],
) -> Run:
    phase, prompt, value = timed
    batch = plan["batch"]
    assert isinstance(batch, float)
    job = {
        "batch": batch,
        "prompt": prompt,
        "output": lengths.output,
        "past": lengths.past,
        "n_gpus": layout["n_gpus"],
    }
    return Run({**layout, **plan}, job, target_of(cells["metric"], phase, value, job))


def _further(
    cells: Mapping[str, str], numbers: Mapping[str, float], run: Run, phase: str
) -> tuple[Figure, ...]:
    """The other figures of a row that can be predicted; a first token that waited for others cannot."""
    found = []
    for name, amount in (("metric2", "value2"), ("metric3", "value3")):
        metric, value = cells[name], numbers[amount]
        if not metric or math.isnan(value) or value <= 0:
            continue
        if metric == "mem_gb":
            found.append(Figure(metric, value * 1e9, "memory", None))
            continue
        own = phase_of(metric, "")
        waits = own == "prefill" and "queueing" in cells["notes"].casefold()
        prefix = own == "prefill" and not run.job["prompt"]
        if not own or waits or prefix or (metric == "latency_ms_total" and phase == "generate"):
            continue
        found.append(
            Figure(metric, value, own, Run(run.plan, run.job, target_of(metric, own, value, run.job)))
        )
    return tuple(found)
