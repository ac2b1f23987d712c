"""Published or own figures of detectors on devices: rows of a CSV as measured designs, and what is left out and why.

A design is a detector at a resolution, on a device, as a format (a runtime and its precision). It exists where a row
says how long it takes, alone in its batch; nothing is carried over from one row to another.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dse.study.measurements import Record, read_measurements

__all__ = ["COLUMNS", "Figure", "Figures", "read_figures", "slug", "tables"]

COLUMNS = (
    "source", "source_locator", "benchmark", "model", "input_res", "params_M", "gflops", "map50_95", "map_on_device",
    "precision", "device", "runtime", "batch", "latency_ms", "fps", "size_mb",
)  # fmt: skip
"""The columns that are read; ``map50_95`` in percent, ``map_on_device`` in percent or as a share."""

_NUMBERS = ("params_M", "gflops", "map50_95", "map_on_device", "batch", "latency_ms", "fps", "size_mb")
_BRACKETS = re.compile(r"\([^()]*\)")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_PRECISION = re.compile(r"(?<![A-Za-z])(fp32|fp16|bf16|int8|int4|w8a8|w8a16)(?![A-Za-z0-9])", re.IGNORECASE)
_HALF = 0.5
_LEAST_SIDE = 8
"""Pixels; smaller numbers of a resolution are channels or the batch."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One row: the names of its design, and its figures in the units of the columns; None is not printed.

    ``accuracy`` is the mAP in percent that was measured for this very format on this device (then ``on_device``), or
    else the model's, as its source prints it.
    """

    benchmark: str
    detector: str
    device: str
    format: str
    latency: float
    accuracy: float
    on_device: bool
    size: float | None
    model: str
    resolution: float | None
    params: float | None
    work: float | None
    published: float | None
    runtime: str
    precision: str
    source: str


@dataclass(frozen=True, slots=True)
class Figures:
    """The usable rows, and how many are not usable, by reason."""

    rows: tuple[Figure, ...]
    skipped: dict[str, int]


def slug(text: str) -> str:
    """A name of small letters, digits, points and dashes; a word that comes twice in a row stands once."""
    words = re.findall(r"[a-z0-9.]+", text.lower())
    return "-".join(word for at, word in enumerate(words) if not at or word != words[at - 1])


def read_figures(path: Path) -> Figures:
    """The figures of a CSV file with the columns of :data:`COLUMNS`.

    Raises:
        SpaceError: the file is no such table; every finding has its line and column.
    """
    table = read_measurements(path, required=("model", "device", "runtime"), numbers=_NUMBERS)
    shares = _as_shares(table.records)
    skipped: Counter[str] = Counter()
    rows: dict[tuple[str, str, str], Figure] = {}
    homes: dict[str, str] = {}
    for record in table.records:
        figure = _figure(record, shares)
        if isinstance(figure, str):
            skipped[figure] += 1
            continue
        # A device of two benchmarks is two devices: its latencies were not taken alike.
        if homes.setdefault(figure.device, figure.benchmark) != figure.benchmark:
            figure = replace(figure, device=f"{figure.device}-{figure.benchmark}")
            homes.setdefault(figure.device, figure.benchmark)
        key = (figure.detector, figure.device, figure.format)
        if key in rows:
            skipped["the design has a figure already"] += 1
        else:
            rows[key] = figure
    return Figures(tuple(rows.values()), dict(skipped))


def _as_shares(records: Iterable[Record]) -> set[str]:
    """The sources that print accuracies on the device as shares of one."""
    largest: dict[str, float] = {}
    for record in records:
        value = record.numbers.get("map_on_device", math.nan)
        if value == value:
            source = record.cells.get("source", "")
            largest[source] = max(value, largest.get(source, 0.0))
    return {source for source, value in largest.items() if value <= 1.0}


def _figure(record: Record, shares: set[str]) -> Figure | str:
    """A row's figure, or why there is none."""
    cells, number = record.cells, record.numbers
    source = cells.get("source", "") or "own"
    batch = _given(number, "batch")
    if batch not in (None, 1.0):
        return f"batch {batch:g}: only single images are compared"
    latency, rate = _given(number, "latency_ms"), _given(number, "fps")
    latency = 1000.0 / rate if latency is None and rate else latency
    if not latency or latency < 0.0:
        return "no latency"
    if any(
        not cells[name] or cells[name].lower().startswith("see ") for name in ("model", "device", "runtime")
    ):
        return "no model, device or runtime is named"
    published, measured = _given(number, "map50_95"), _given(number, "map_on_device")
    if measured is not None and cells.get("source", "") in shares:
        measured *= 100.0
    if published is None and measured is None:
        return "no accuracy"
    if published is not None and measured is not None and measured < _HALF * published:
        return "less than half the model's accuracy on the device: that may be a difference, no accuracy"
    runtime, precision = _format(cells["runtime"], cells.get("precision", ""))
    resolution, side = _resolution(cells.get("input_res", ""))
    model = _BRACKETS.sub("", cells["model"]).removesuffix(".pt").strip()
    return Figure(
        benchmark=slug(cells.get("benchmark", "") or _BRACKETS.sub("", source)),
        detector="-".join(filter(None, (slug(model), resolution))),
        device=slug(_BRACKETS.sub("", cells["device"])) or slug(cells["device"]),
        format="-".join(filter(None, (slug(runtime), slug(precision)))),
        latency=latency,
        accuracy=round(measured, 9) if measured is not None else float(published or 0.0),
        on_device=measured is not None,
        size=_given(number, "size_mb"),
        model=model,
        resolution=side,
        params=_given(number, "params_M"),
        work=_given(number, "gflops"),
        published=published,
        runtime=runtime,
        precision=precision,
        source=source,
    )


def _given(numbers: dict[str, float], name: str) -> float | None:
    value = numbers.get(name, math.nan)
    return value if value == value else None


def _format(runtime: str, precision: str) -> tuple[str, str]:
    """The runtime without its precision, and the precision; either column may name it."""
    runtime = _LINK.sub(r"\1", runtime.strip().strip("`"))
    inside = _PRECISION.search(runtime)
    named = precision or (inside[1] if inside else "")
    plain = _PRECISION.sub("", _BRACKETS.sub("", runtime)).strip()
    return plain, _BRACKETS.sub("", named).strip().lower()


def _resolution(text: str) -> tuple[str, float | None]:
    """``640`` of ``640x640x3``, ``640x480``, and the longer side; channels and the batch are no sides."""
    sides = [
        int(number) for number in re.findall(r"\d+", _BRACKETS.sub("", text)) if int(number) >= _LEAST_SIDE
    ]
    if not sides:
        return "", None
    return (str(sides[0]) if len(set(sides)) == 1 else "x".join(map(str, sides))), float(max(sides))


def tables(figures: Sequence[Figure]) -> dict[str, dict[str, list[object]]]:
    """The rows of the space's tables of detectors, devices and formats, in the order in which figures name them."""
    detectors: dict[str, list[object]] = {}
    devices: dict[str, list[object]] = {}
    formats: dict[str, list[object]] = {}
    for figure in figures:
        own: list[object] = [figure.model, figure.resolution, figure.params, figure.work, figure.published]
        before = detectors.setdefault(figure.detector, own)
        detectors[figure.detector] = [b if a is None else a for a, b in zip(before, own, strict=True)]
        devices.setdefault(figure.device, [figure.benchmark])
        formats.setdefault(figure.format, [figure.runtime, figure.precision or None])
    return {"detectors": detectors, "devices": devices, "formats": formats}
