"""Fits the efficiencies of GPU generations to measured training runs.

Twelve numbers a generation, none for a model, a source or a row. The fit minimizes the weighted sum of absolute errors
of log time, each source and in it each group of (model, system) weighing the same, plus a quadratic penalty for leaving the
expected values, which come from kernel measurements where they are given.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dse.spaces.fitting import Fit, Move, balanced, cell, decoded, encoded, minimized, rounded

from . import flops
from .expected import EXPECTED, expectations
from .measured.cases import Cases, Namespace
from .measured.given import Given, load_given
from .measured.predictions import predict_times
from .rows import Rows
from .step import step

__all__ = ["NAMES", "Efficiencies", "fit", "written"]

Efficiencies: TypeAlias = dict[str, dict[str, Any]]
"""Values by generation and name, in base units, and the best measured MFU with its source."""

Floats: TypeAlias = NDArray[np.float64]

NAMES = tuple(EXPECTED)
PENALTY = 0.05
"""Weight of one squared standard deviation from an expected value, against the sum of weights of all runs."""
PATIENCE = 3
"""Steps of little gain before the fit ends."""


@dataclass(frozen=True, slots=True)
class _Data:
    """Runs to fit: what the model is given, log seconds, weights with mean 1, and each run's generation."""

    g: Namespace
    log_seconds: Floats
    weights: Floats
    generation: NDArray[np.intp]


def fit(
    rows: Rows, *, without: str | None = None, gemm: Path | None = None, comm: Path | None = None
) -> Efficiencies:
    """The efficiencies that predict the dense, fully configured rows best.

    Args:
        rows: measured runs.
        without: a source to leave out.
        gemm: a table of measured matrix multiplications, for the expected values.
        comm: a table of measured collectives, for the expected values.

    Returns:
        values by generation; a generation without runs has the mean over those that have some, or what is expected.

    Raises:
        SpaceError: a file cannot be read as such a table.
    """
    given = load_given()
    known = predict_times(rows.rows, given, ("exact",))  # a GPU may lack figures of the catalogue
    chosen = [(at, row) for at, row in enumerate(rows.rows) if at in known and row.cells["source"] != without]
    generations = list(dict.fromkeys(str(chip["generation"]) for chip in given.hardware.values()))
    centre = _centre(generations, expectations(gemm, comm))
    if not chosen:
        return {one: _efficiencies(own, {}) for one, own in zip(generations, centre, strict=True)}
    cases = Cases.of(chosen)
    data = _data(cases, given, generations, [row.group for _, row in chosen])
    found = minimized(_fit(data, centre), patience=PATIENCE).reshape(centre.shape)
    present = sorted(set(data.generation.tolist()))
    pooled = found[present].mean(axis=0)
    best = _records(cases, data, given)
    return {
        generation: _efficiencies(found[at] if at in present else pooled, best.get(generation, {}))
        for at, generation in enumerate(generations)
    }


def _efficiencies(fitted: Floats, best: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name to four digits, with the best measured MFU."""
    return {**rounded(decoded(fitted, EXPECTED), EXPECTED), "best_mfu": None, "best_source": "", **best}


def written(fitted: Mapping[str, Mapping[str, Any]]) -> str:
    """The fitted efficiencies as the CSV that the space reads; seconds in microseconds, MFU in percent."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["generation", *NAMES, "best_mfu", "best_source"])
    for generation, cells in fitted.items():
        shown = [cell(cells[name], number) for name, number in EXPECTED.items()]
        best = "" if cells["best_mfu"] is None else f"{100 * cells['best_mfu']:.4g}"
        out.writerow([generation, *shown, best, cells["best_source"]])
    return text.getvalue()


def _centre(generations: list[str], expected: Mapping[str, Mapping[str, float]]) -> Floats:
    """Expected values as they are fitted, (generations, names)."""
    table = [
        [expected.get(generation, {}).get(name, EXPECTED[name].value) for name in NAMES]
        for generation in generations
    ]
    found: Floats = encoded(np.array(table), EXPECTED)
    return found


def _data(cases: Cases, given: Given, generations: list[str], groups: Sequence[tuple[str, ...]]) -> _Data:
    where = {generation: at for at, generation in enumerate(generations)}
    return _Data(
        given.namespace(cases),
        np.log(cases.seconds),
        balanced(groups),
        np.array([where[str(given.hardware[chip]["generation"])] for chip in cases.hardware], np.intp),
    )


def _fit(data: _Data, centre: Floats) -> Fit:
    """What is minimized; the unknowns are ``centre`` (generations, names) row by row. Generations without runs stay there."""

    def errors(found: Floats) -> Floats:
        """Log of predicted over measured seconds, one a run."""
        values = decoded(found.reshape(centre.shape), EXPECTED)[data.generation]
        columns = {name: values[:, at] for at, name in enumerate(NAMES)}
        with np.errstate(all="ignore"):
            seconds = step(data.g.replaced(efficiency=Namespace(columns))).total
        predicted: Floats = np.log(np.broadcast_to(seconds, len(data.log_seconds)))
        return predicted - data.log_seconds

    count, names = centre.shape
    spread = np.array([number.spread for number in EXPECTED.values()])
    return Fit(
        errors,
        data.weights,
        centre.ravel(),
        np.tile(PENALTY / spread**2, count),
        [Move(np.arange(count) * names + at, (data.generation * names + at,)) for at in range(names)],
    )


def _records(cases: Cases, data: _Data, given: Given) -> dict[str, dict[str, Any]]:
    """The best measured MFU of each generation in 16 bits, with causal attention, and its source."""
    g = data.g.replaced(attention_flops=np.full(len(cases), "causal"))
    with np.errstate(all="ignore"):
        share = flops.model_flops(g) / (cases.seconds * g.n_gpus * flops.peak_rate(g))
    share = np.where(np.isin(cases.plan["format"], ["bf16", "fp16"]), np.broadcast_to(share, len(cases)), 0.0)
    found: dict[str, dict[str, Any]] = {}
    for at in np.argsort(share, kind="stable").tolist():
        generation = str(given.hardware[cases.hardware[at]]["generation"])
        if share[at] > 0.0:
            found[generation] = {"best_mfu": float(share[at]), "best_source": cases.source[at]}
    return found
