"""Published figures of quantized models: ``quality.csv`` and ``series.csv`` beside this file.

A series is one table of one source: one metric, measured in one way. Differences are taken within a series only, to
its own 16-bit baseline of the same model. Names are resolved once, in the table: ``method`` and ``variant`` say what
was done (``gptq`` with ``reorder``), ``source_method`` and ``source_model`` how the source puts it.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from dse.spaces.catalog import architecture, catalog

__all__ = ["PLAIN", "Figure", "Series", "family", "figures", "model_size", "series"]

PLAIN = "none"
"""The method of an unquantized model."""

_FOLDER = Path(__file__).parent
_SIZES = {"mistral-large-2407-instruct": 123.0}


@dataclass(frozen=True, slots=True)
class Series:
    """One table of a source: ``unit`` is perplexity, percent or fraction (of right answers)."""

    name: str
    source: str
    locator: str
    metric: str
    unit: str
    eval_setting: str

    @property
    def lower_is_better(self) -> bool:
        """Whether a smaller value is the better one, as of perplexities."""
        return self.unit == "perplexity"

    @property
    def points(self) -> str:
        """What a loss counts: perplexity, or accuracy points (percent of the answers)."""
        return "perplexity" if self.lower_is_better else "accuracy points"


@dataclass(frozen=True, slots=True)
class Figure:
    """One published value, or one interpolated between two that differ in ``w_bits`` only.

    ``group`` is 0 for one scale a row (or what the format itself says). ``baseline`` is the same source's value of the
    same model in 16 bits; where the source has none, ``reference`` is the best value of the same model in the series,
    and ``against`` says which of the two the difference is to. ``flag`` tells what is wrong with a row at its source.
    """

    series: Series
    model: str
    method: str
    variant: str
    w_bits: float
    a_bits: float
    kv_bits: float
    group: int
    bits_per_weight: float | None
    value: float
    baseline: float | None
    reference: float
    place: str
    flag: str
    notes: str
    source_model: str
    source_method: str
    interpolated: bool = False

    @property
    def name(self) -> str:
        """Method and variant: ``gptq+reorder``."""
        return f"{self.method}+{self.variant}" if self.variant else self.method

    @property
    def difference(self) -> float:
        """Value minus reference, in the unit of the series."""
        return self.value - self.reference

    @property
    def loss(self) -> float:
        """How much worse than the reference: perplexity, or accuracy points; negative where it is better."""
        scale = {"perplexity": 1.0, "percent": -1.0, "fraction": -100.0}[self.series.unit]
        return self.difference * scale + 0.0  # no negative zero

    @property
    def against(self) -> str:
        """What the difference is to."""
        if self.baseline is not None:
            return "the source's own 16-bit baseline"
        return "the best of the same table, whose source gives no 16-bit baseline"

    @property
    def design(self) -> tuple[str, float, float, float, int]:
        """Method with variant, bits of weights, activations and KV cache, group."""
        return (self.name, self.w_bits, self.a_bits, self.kv_bits, self.group)

    def __str__(self) -> str:
        where = f"{self.series.source}, {self.series.locator}" + (f", {self.place}" if self.place else "")
        told = f"{self.loss:+.4g} {self.series.points} ({self.series.metric} {self.value:g})"
        flag = f"; but {self.flag}" if self.flag else ""
        how = "interpolated: " if self.interpolated else ""
        note = f"; {self.notes}" if "baseline" in self.notes else ""  # which of two the difference is to
        return f"{self.model} {design_text(self)}: {how}{told} against {self.against} [{where}]{note}{flag}"


def design_text(figure: Figure) -> str:
    """``awq, 4 bits, groups of 128``; activations and KV cache where they are not in 16 bits."""
    parts = [figure.name, f"{figure.w_bits:g} bits"]
    if figure.a_bits != 16:
        parts.append(f"activations in {figure.a_bits:g}")
    if figure.kv_bits != 16:
        parts.append(f"KV cache in {figure.kv_bits:g}")
    if figure.group:
        parts.append(f"groups of {figure.group}")
    return ", ".join(parts)


@cache
def series() -> Mapping[str, Series]:
    """The series by name."""
    with (_FOLDER / "series.csv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return MappingProxyType({row["series"]: Series(*row.values()) for row in rows})


@cache
def figures() -> tuple[Figure, ...]:
    """All published figures, in the order of the table."""
    with (_FOLDER / "quality.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    best: dict[tuple[str, str], float] = {}
    for row in rows:
        key = row["series"], row["model"]
        better = min if series()[row["series"]].lower_is_better else max
        best[key] = better(best.get(key, float(row["value"])), float(row["value"]))
    return tuple(_figure(row, best[row["series"], row["model"]]) for row in rows)


def _figure(row: Mapping[str, str], best: float) -> Figure:
    baseline = float(row["baseline_value"]) if row["baseline_value"] else None
    return Figure(
        series=series()[row["series"]],
        model=row["model"],
        method=row["method"],
        variant=row["variant"],
        w_bits=float(row["w_bits"]),
        a_bits=float(row["a_bits"]),
        kv_bits=float(row["kv_bits"]),
        group=int(row["group"]),
        bits_per_weight=float(row["bits_per_weight"]) if row["bits_per_weight"] else None,
        value=float(row["value"]),
        baseline=baseline,
        reference=best if baseline is None else baseline,
        place=row["place"],
        flag=row["flag"],
        notes=row["notes"],
        source_model=row["source_model"],
        source_method=row["source_method"],
    )


@cache
def model_size(name: str) -> float:
    """Billions of parameters, from the catalogue or the model's name; NaN where neither tells."""
    if name in _SIZES:
        return _SIZES[name]
    if name in catalog.names("models"):
        return float(architecture.parameters(catalog.model(name))) / 1e9
    found = re.search(r"(?:^|-)(?:(\d+)x)?(\d+(?:\.\d+)?)b(?:-|$)", name)
    return math.nan if found is None else float(found[1] or 1) * float(found[2])


_FAMILIES = {
    "rounding": ("rtn", "hqq", "nf4", "nf4-dq", "fp4"),
    "calibrated": ("gptq", "awq", "omniquant", "autoround"),
    "eight bits": ("smoothquant", "fp8-block", "llm-int8", "fp8"),
    "four-bit floats": ("mxfp4", "nvfp4"),
    "trained": ("qat", "quip", "aqlm"),
}


@cache
def family(method: str) -> str:
    """What kind of method it is: methods of one kind are nearer to each other than to others."""
    for name, methods in _FAMILIES.items():
        if method in methods:
            return name
    return "llama.cpp" if re.match(r"i?q\d", method) else method
