"""The tables that cases are completed with: those of the training space, of the catalogue, and the efficiencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from dse.problem import Problem
from dse.problem.library import load
from dse.spaces.measured.namespace import table_rows

from .cases import TABLE_DIMENSIONS, Cases, Namespace

__all__ = ["Given", "given", "load_given"]

ALIASES = {"format": {"fp16": "bf16", "mxfp8": "fp8"}}
"""Rows that stand in for others where the space has no row of its own."""

FROZEN = {"frameworks": (), "resident": 2.0}
"""The sharding of a base model that is not trained (LoRA): weights in two bytes, nothing else. No plan of the space."""

Columns = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Given:
    """Columns by row name: of each table dimension, of the hardware and of the efficiencies by GPU generation;
    the columns of a cluster of which nothing is known; and the space's other inputs at their defaults.
    """

    tables: Mapping[str, Columns]
    hardware: Columns
    efficiency: Columns
    cluster: Mapping[str, Any]
    inputs: Mapping[str, Any]

    def namespace(self, cases: Cases, efficiency: Columns | None = None) -> Namespace:
        """What the cost model is given for the cases; ``efficiency`` instead of the shipped ones."""
        return cases.namespace(
            self.tables,
            self.hardware,
            self.efficiency if efficiency is None else efficiency,
            cluster=self.cluster,
            inputs=self.inputs,
        )


@cache
def load_given() -> Given:
    """The tables of the shipped training space."""
    return given(load("training"))


def given(problem: Problem) -> Given:
    """The tables of a problem that was loaded from the training space."""
    graph = problem.graph
    tables = {
        dimension.name: table_rows(graph.tables[dimension.table])
        for dimension in problem.dimensions
        if dimension.table and dimension.name in TABLE_DIMENSIONS
    }
    for name, one in problem.inputs.items():
        if one.table and name in TABLE_DIMENSIONS:
            tables[name] = table_rows(graph.tables[one.table])
    for name, aliases in ALIASES.items():
        if name in tables:
            own = tables[name]
            tables[name] = {alias: own[row] for alias, row in aliases.items() if row in own} | own
    if "sharding" in tables:
        blank = dict.fromkeys(next(iter(tables["sharding"].values())), 0.0)
        tables["sharding"]["frozen"] = blank | FROZEN
    inputs = problem.inputs

    def named(name: str) -> dict[str, dict[str, Any]]:
        """The rows of the table that an input names one of."""
        table = inputs[name].table
        return table_rows(graph.tables[table]) if table else {}

    tables["runtime"] = named("framework")
    cluster = named("cluster").get("standard", {})
    # experts of measured runs that drop tokens are not padded beyond the mean (Megatron-Bridge's token drop)
    taken = {"n_gpus", "global_batch", "seq_len", "capacity_factor"}
    return Given(
        tables,
        named("hardware"),
        table_rows(graph.tables["efficiency"]),
        {name: cell for name, cell in cluster.items() if name not in {"hardware", "source", "node", "nic"}},
        {name: one.value for name, one in inputs.items() if name not in taken and one.table is None},
    )
