"""Fits the efficiencies of GPU generations to measured training runs.

Twelve numbers a generation, none for a model, a source or a row. The fit minimizes the weighted sum of absolute errors
of log time, each source and in it each group of (model, system) weighing the same, plus a quadratic penalty for leaving the
expected values; shares move as logits, seconds and sizes as logarithms (Levenberg 1944 and Marquardt 1963, with the
weights of absolute errors renewed in every step). Expected values come from kernel measurements where they are given.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

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
STEPS = 60
SMOOTH = 0.01
"""Errors below 1 % are weighed as squares, so that the weights stay finite."""
PENALTY = 0.05
"""Weight of one squared standard deviation from an expected value, against the sum of weights of all runs."""
NUDGE = 1e-4


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
        return {
            generation: _rounded(_values(own), {})
            for generation, own in zip(generations, centre, strict=True)
        }
    cases = Cases.of(chosen)
    data = _data(cases, given, generations, [rows.rows[at].cells for at, _ in chosen])
    found = _minimized(data, centre)
    present = sorted(set(data.generation.tolist()))
    pooled = found[present].mean(axis=0)
    best = _records(cases, data, given)
    return {
        generation: _rounded(_values(found[at] if at in present else pooled), best.get(generation, {}))
        for at, generation in enumerate(generations)
    }


def _rounded(values: Floats, best: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name to four digits, with the best measured MFU."""
    cells = {name: float(f"{value:.4g}") for name, value in zip(NAMES, values.tolist(), strict=True)}
    return {**cells, "best_mfu": None, "best_source": "", **best}


def written(fitted: Mapping[str, Mapping[str, Any]]) -> str:
    """The fitted efficiencies as the CSV that the space reads; seconds in microseconds, MFU in percent."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["generation", *NAMES, "best_mfu", "best_source"])
    for generation, cells in fitted.items():
        shown = [
            f"{cells[name] * 1e6:.4g} us" if EXPECTED[name].seconds else f"{cells[name]:.4g}"
            for name in NAMES
        ]
        best = "" if cells["best_mfu"] is None else f"{100 * cells['best_mfu']:.4g}"
        out.writerow([generation, *shown, best, cells["best_source"]])
    return text.getvalue()


def _centre(generations: list[str], expected: Mapping[str, Mapping[str, float]]) -> Floats:
    """Expected values as they are fitted, (generations, names)."""
    table = [
        [expected.get(generation, {}).get(name, EXPECTED[name].value) for name in NAMES]
        for generation in generations
    ]
    return _fitted_as(np.array(table))


_IS_SHARE = np.array([EXPECTED[name].share for name in NAMES])


def _fitted_as(values: Floats) -> Floats:
    share = np.clip(values, 1e-6, 1.0 - 1e-6)
    return np.where(_IS_SHARE, np.log(share / (1.0 - share)), np.log(values))


def _values(fitted: Floats) -> Floats:
    grown = np.exp(np.clip(fitted, -40.0, 40.0))
    return np.where(_IS_SHARE, grown / (1.0 + grown), grown)


def _data(cases: Cases, given: Given, generations: list[str], cells: list[Mapping[str, str]]) -> _Data:
    g = given.namespace(cases)
    groups = [(one["source"], one["model"], one["system"]) for one in cells]
    sizes = {group: groups.count(group) for group in set(groups)}
    of_source: dict[str, int] = {}
    for source, *_ in sizes:
        of_source[source] = of_source.get(source, 0) + 1
    raw = np.array([1.0 / (sizes[group] * of_source[group[0]]) for group in groups])
    where = {generation: at for at, generation in enumerate(generations)}
    return _Data(
        g,
        np.log(cases.seconds),
        raw / raw.mean() if len(raw) else raw,
        np.array([where[str(given.hardware[chip]["generation"])] for chip in cases.hardware], np.intp),
    )


def _errors(data: _Data, fitted: Floats) -> Floats:
    """Log of predicted over measured seconds, one a run."""
    values = _values(fitted)[data.generation]
    columns = {name: values[:, at] for at, name in enumerate(NAMES)}
    with np.errstate(all="ignore"):
        seconds = step(data.g.replaced(efficiency=Namespace(columns))).total
    predicted: Floats = np.log(np.broadcast_to(seconds, len(data.log_seconds)))
    return predicted - data.log_seconds


def _minimized(data: _Data, centre: Floats) -> Floats:
    """The fitted values, (generations, names); those of generations without runs stay where they are expected."""
    spread = np.array([EXPECTED[name].spread for name in NAMES])
    strength = PENALTY / spread**2
    present = sorted(set(data.generation.tolist()))
    if not present:
        return centre

    def loss(found: Floats, errors: Floats) -> float:
        away = ((found - centre)[present] ** 2 * strength).sum()
        return float((data.weights * np.abs(errors)).sum() + 0.5 * away)

    found, damping, still = centre.copy(), 1e-2, 0
    errors = _errors(data, found)
    best = loss(found, errors)
    for _ in range(STEPS):
        change = _gradient(data, found, errors)
        moved = False
        for _ in range(12):
            trial = found.copy()
            for at in present:
                own = data.generation == at
                pull = data.weights[own] / np.sqrt(errors[own] ** 2 + SMOOTH**2)
                slope = change[own]
                square = slope.T @ (pull[:, None] * slope) + np.diag(strength)
                downhill = -slope.T @ (pull * errors[own]) - strength * (found - centre)[at]
                square += damping * np.diag(np.diag(square))
                trial[at] += np.clip(np.linalg.solve(square, downhill), -0.5, 0.5)
            found_errors = _errors(data, trial)
            now = loss(trial, found_errors)
            if now < best:
                moved = True
                break
            damping *= 4.0
        if not moved:
            break
        still = still + 1 if best - now < 2e-4 * best else 0
        found, errors, best, damping = trial, found_errors, now, damping / 3.0
        if still >= 3:
            break
    return found


def _gradient(data: _Data, found: Floats, errors: Floats) -> Floats:
    """How the errors change with each number of their own generation, (runs, names)."""
    columns = []
    for at in range(len(NAMES)):
        nudged = found.copy()
        nudged[:, at] += NUDGE
        columns.append((_errors(data, nudged) - errors) / NUDGE)
    return np.stack(columns, axis=1)


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
