"""Fits the numbers of GPU generations and of engines to measured runs of static batches.

Eleven numbers a generation and up to four an engine, none for a model, a source or a row. Engines are what all of them share and how far
each is from it, so that one without runs has the shared numbers. Each source weighs the same, and in it each group of (model,
system). Expected values come from kernel measurements where they are given, and then hold twice as closely.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dse.spaces.fitting import Fit, Move, balanced, cell, decoded, encoded, minimized, rounded
from dse.spaces.measured.namespace import Namespace

from .cost import predicted_seconds
from .expected import ENGINE, GENERATION, SHARED, expectations, own_numbers
from .measured.cases import Cases
from .measured.engine import DEFAULT
from .measured.given import Given, load_given
from .rows import Rows

__all__ = ["fit", "written", "written_engines"]

Columns: TypeAlias = dict[str, dict[str, Any]]
Floats: TypeAlias = NDArray[np.float64]

PENALTY = 0.01
"""Weight of one squared standard deviation from an expected value, against the mean weight of a source."""
PINNED = 1e-3
"""Spread of a number that an engine has not of its own."""
MEASURED = 0.5
"""Spread of a number whose expected value was measured, over that of others."""


def fit(
    rows: Rows, *, without: str | None = None, gemm: Path | None = None, comm: Path | None = None
) -> tuple[Columns, Columns]:
    """The numbers that predict the rows of static batches best.

    Args:
        rows: measured runs.
        without: a source to leave out.
        gemm: a table of measured matrix multiplications, for the expected values.
        comm: a table of measured collectives, for the expected values.

    Returns:
        values by generation, and by engine; a generation without runs has the mean over those that have some, or what is
        measured of its kernels, and an engine without runs what all engines share.

    Raises:
        SpaceError: a file cannot be read as such a table.
    """
    given = load_given()
    chosen = [
        (at, row)
        for at, row in enumerate(rows.rows)
        if row.kind == "exact"
        and row.cells["source"] != without
        and given.generation(row.hardware) in given.fit.efficiency
    ]
    generations = list(dict.fromkeys(str(chip["generation"]) for chip in given.hardware.values()))
    expected = expectations(gemm, comm)
    task = _Task.of(Cases.of(chosen), given, generations, expected)
    found = minimized(task.fit()) if chosen else task.centre
    return _by_generation(task, found, expected), _by_engine(task, found, given)


@dataclass(frozen=True, slots=True)
class _Task:
    """Runs to fit, and the layout of the unknowns: generations x numbers, then what engines share, then each engine's own."""

    g: Namespace
    log_seconds: Floats
    weights: Floats
    generations: Sequence[str]
    engines: Sequence[str]
    generation: NDArray[np.intp]
    engine: NDArray[np.intp]
    centre: Floats
    strength: Floats

    @classmethod
    def of(
        cls,
        cases: Cases,
        given: Given,
        generations: Sequence[str],
        expected: Mapping[str, Mapping[str, float]],
    ) -> _Task:
        captures = {name: float(row["captures"]) for name, row in given.fit.engines.items()}
        named = [name if name in captures else DEFAULT for name in cases.engine]
        engines = [*sorted({name for name in named if name != DEFAULT}), DEFAULT]
        table = [
            [expected.get(one, {}).get(name, number.value) for name, number in GENERATION.items()]
            for one in generations
        ]
        spreads = [
            [
                number.spread * (MEASURED if name in expected.get(one, {}) else 1.0)
                for name, number in GENERATION.items()
            ]
            for one in generations
        ]
        shared = encoded(np.array([number.value for number in ENGINE.values()]), ENGINE)
        facts = given.fit.engines
        apart = [
            [number.spread if name in _own(facts[one]) else PINNED for name, number in ENGINE.items()]
            for one in engines
        ]
        centre = np.concatenate(
            [encoded(np.array(table), GENERATION).ravel(), shared, np.zeros(len(engines) * len(ENGINE))]
        )
        spread = np.concatenate([np.ravel(spreads), [SHARED[name] for name in ENGINE], np.ravel(apart)])
        weights = balanced(cases.group)
        where = {one: at for at, one in enumerate(generations)}
        return cls(
            given.namespace(cases),
            np.log(cases.seconds),
            weights,
            generations,
            engines,
            np.array([where[str(given.hardware[chip]["generation"])] for chip in cases.hardware], np.intp),
            np.array([engines.index(name) for name in named], np.intp),
            centre,
            PENALTY * float(weights.sum()) / max(len(set(cases.source)), 1) / spread**2,
        )

    def values(self, found: Floats) -> tuple[Floats, Floats]:
        """Values by generation and by engine."""
        count = len(self.generations) * len(GENERATION)
        shared, own = found[count : count + len(ENGINE)], found[count + len(ENGINE) :]
        return (
            decoded(found[:count].reshape(len(self.generations), -1), GENERATION),
            decoded(shared + own.reshape(len(self.engines), -1), ENGINE),
        )

    def shared(self, found: Floats) -> Floats:
        """What engines have in common."""
        count = len(self.generations) * len(GENERATION)
        values: Floats = decoded(found[count : count + len(ENGINE)], ENGINE)
        return values

    def errors(self, found: Floats) -> Floats:
        """Log of predicted over measured seconds, one a run."""
        generations, engines = self.values(found)
        efficiency = {name: generations[self.generation, at] for at, name in enumerate(GENERATION)}
        engine = {name: engines[self.engine, at] for at, name in enumerate(ENGINE)}
        g = self.g.replaced(efficiency=Namespace(efficiency), engine=self.g.engine.replaced(**engine))
        with np.errstate(all="ignore"):
            seconds = predicted_seconds(g)
        predicted: Floats = np.log(np.broadcast_to(seconds, len(self.log_seconds)))
        return predicted - self.log_seconds

    def fit(self) -> Fit:
        """What is minimized."""
        names, own, runs = len(GENERATION), len(ENGINE), len(self.log_seconds)
        count = len(self.generations) * names
        moves = [
            Move(np.arange(len(self.generations)) * names + at, (self.generation * names + at,))
            for at in range(names)
        ]
        for at in range(own):
            shared = np.full(runs, count + at, np.intp)
            moves.append(Move(np.array([count + at]), (count + own + self.engine * own + at, shared)))
        return Fit(self.errors, self.weights, self.centre, self.strength, moves)


def _by_generation(task: _Task, found: Floats, expected: Mapping[str, Mapping[str, float]]) -> Columns:
    values, _ = task.values(found)
    present = sorted(set(task.generation.tolist()))
    fitted = encoded(values, GENERATION)
    centre, _ = task.values(task.centre)
    pooled = decoded(fitted[present].mean(axis=0), GENERATION) if present else centre.mean(axis=0)
    table: Columns = {}
    for at, generation in enumerate(task.generations):
        own = expected.get(generation, {})
        mixed = np.array([centre[at, n] if name in own else pooled[n] for n, name in enumerate(GENERATION)])
        table[generation] = rounded(values[at] if at in present else mixed, GENERATION)
    return table


def _by_engine(task: _Task, found: Floats, given: Given) -> Columns:
    """Every engine that the space knows, with its facts: its own numbers, or what engines share; ``default`` has the shared
    ones, whatever the rows of unknown engines say.
    """
    _, values = task.values(found)
    shared = task.shared(found)
    table: Columns = {}
    for name, facts in given.fit.engines.items():
        known = name in task.engines and name != DEFAULT
        own = _own(facts) if known else ()
        mine = values[task.engines.index(name)] if known else shared
        picked = [mine[at] if number in own else shared[at] for at, number in enumerate(ENGINE)]
        table[name] = {**facts, **rounded(np.array(picked), ENGINE)}
    return table


def _own(facts: Mapping[str, Any]) -> tuple[str, ...]:
    return own_numbers(bool(facts["captures"]), bool(facts["repeats"]))


def written(fitted: Mapping[str, Mapping[str, Any]]) -> str:
    """The numbers of generations as the CSV that the space reads; seconds in microseconds."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["generation", *GENERATION])
    for generation, cells in fitted.items():
        out.writerow([generation, *(cell(cells[name], number) for name, number in GENERATION.items())])
    return text.getvalue()


def written_engines(fitted: Mapping[str, Mapping[str, Any]]) -> str:
    """The numbers of engines, with the facts of the shipped table, as the CSV that the space reads."""
    shipped = files("dse.spaces.serving").joinpath("engines.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(shipped.splitlines()))
    text = io.StringIO()
    out = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    out.writeheader()
    for row in rows:
        cells = fitted.get(row["engine"], fitted[DEFAULT])
        out.writerow({**row, **{name: cell(cells[name], number) for name, number in ENGINE.items()}})
    return text.getvalue()
