"""The tables that cases are completed with: those of the serving space, of the catalogue, and the fitted numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from dse.problem import Problem
from dse.problem.library import load
from dse.spaces.measured.namespace import Namespace, table_rows

from .cases import FORMATS, Cases

__all__ = ["Fit", "Given", "given", "load_given"]

Columns = Mapping[str, Mapping[str, Any]]

ALIASES = {
    "activations": {"fp16": "bf16", "mxfp8": "fp8", "nvfp4": "fp4", "mxfp4": "fp4"},
    "kv": {"fp16": "bf16"},
}
"""Formats of measured runs that the space has under another name."""

TAKEN = {"prompt_len", "output_len", "model", "engine", "hardware"}
"""Inputs that rows of measurements state."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted numbers: columns by GPU generation, and by engine, where ``default`` is what engines without any have."""

    efficiency: Columns
    engines: Columns


@dataclass(frozen=True, slots=True)
class Given:
    """Columns by row name: of the formats of each dimension and of the hardware; the fitted numbers that the space ships;
    and the space's other inputs at their defaults.
    """

    formats: Mapping[str, Columns]
    hardware: Columns
    fit: Fit
    inputs: Mapping[str, Any]

    def namespace(self, cases: Cases, fit: Fit | None = None) -> Namespace:
        """What the cost model is given for the cases; ``fit`` instead of the shipped numbers."""
        own = self.fit if fit is None else fit
        return cases.namespace(
            self.formats, self.hardware, own.efficiency, engines=own.engines, inputs=self.inputs
        )

    def generation(self, hardware: str) -> str:
        """The generation of a GPU, whose numbers it has."""
        return str(self.hardware[hardware]["generation"])


@cache
def load_given() -> Given:
    """The tables of the shipped serving space."""
    return given(load("serving"))


def given(problem: Problem) -> Given:
    """The tables of a problem that was loaded from the serving space."""
    tables = problem.graph.tables
    named = {one.name: one.table for one in problem.dimensions if one.table}
    named |= {name: one.table for name, one in problem.inputs.items() if one.table}
    own = {name: table_rows(tables[table]) for name, table in named.items()}
    return Given(
        {name: _aliased(name, own[name]) for name in FORMATS},
        own["hardware"],
        Fit(table_rows(tables["efficiency"]), own["engine"]),
        {
            name: one.value
            for name, one in problem.inputs.items()
            if name not in TAKEN and one.table is None and isinstance(one.value, (int, float, bool))
        },
    )


def _aliased(name: str, rows: Columns) -> Columns:
    more = {alias: rows[row] for alias, row in ALIASES.get(name, {}).items() if row in rows}
    return {**more, **rows}
