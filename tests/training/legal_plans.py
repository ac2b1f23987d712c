"""Legal plans of the training space, drawn at random, and what the formulas are given for them as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from dse.evaluation.scalar import evaluate_nodes
from dse.problem import Box, Design, Problem, Team
from dse.problem.library import load
from dse.spaces.training import cost
from dse.study.legal import LegalDesigns

__all__ = [
    "CASES", "columns", "drawn", "efficiencies", "given", "names", "namespace", "plan_of", "restricted", "space",
    "traced",
]  # fmt: skip

CASES: Mapping[str, Mapping[str, str]] = {
    "dense": {"model": "llama-3-8b", "n_gpus": "256", "global_batch": "512"},
    "gpt": {"model": "gpt-3-175b", "n_gpus": "1024", "global_batch": "1536", "seq_len": "2048", "hardware": "a100-sxm-80"},
    "volta": {"model": "megatron-22b", "n_gpus": "256", "global_batch": "256", "seq_len": "2048",
              "hardware": "v100-sxm2-32", "attention": "unfused", "precision": "fp16"},
    "mixture": {"model": "mixtral-8x7b", "n_gpus": "256", "global_batch": "512", "expert_imbalance": "1.3"},
    "latent": {"model": "deepseek-v3", "n_gpus": "2048", "global_batch": "4096", "seq_len": "4096", "precision": "fp8"},
    "windows": {"model": "gpt-oss-20b", "n_gpus": "128", "global_batch": "256", "attention_share": "0.25",
                "length_imbalance": "1.2"},
    "redesigned": {"model": "llama-3-8b", "n_gpus": "64", "global_batch": "256", "redesign": "true"},
    "racks": {"model": "llama-3.1-405b", "n_gpus": "16384", "global_batch": "2048", "cluster": "meta-24k-roce"},
}  # fmt: skip
"""Inputs of the space: dense models and mixtures, fp16 and fp8, windows, packed documents, tiers of a network."""


@cache
def _shipped() -> Problem:
    return load("training")


@cache
def _loaded(inputs: tuple[tuple[str, str], ...]) -> Problem:
    if any("." in name for name, _ in inputs):
        return load("training", dict(inputs))
    return _shipped().with_inputs(dict(inputs))


def space(**inputs: str) -> Problem:
    """The training space with some inputs; every framework's plans unless it says otherwise."""
    return _loaded(tuple(sorted({"framework": "any", **inputs}.items())))


def restricted(problem: Problem, **values: Any) -> Team:
    """The team that may use only these values (one, or a tuple of several) of some dimensions."""
    allowed: list[tuple[int, ...] | None] = [None] * len(problem.names)
    for name, one in values.items():
        several = one if isinstance(one, tuple) else (one,)
        allowed[problem.names.index(name)] = tuple(sorted(problem.digit(name, value) for value in several))
    return Team("restricted", (Box(tuple(allowed)),))


@cache
def _legal(problem: Problem, values: tuple[tuple[str, Any], ...]) -> LegalDesigns:
    return LegalDesigns(problem, restricted(problem, **dict(values)) if values else problem.everything)


def drawn(problem: Problem, count: int, seed: int, **values: Any) -> list[Design]:
    """At most ``count`` different legal plans with these values."""
    legal = _legal(problem, tuple(sorted(values.items())))
    rng = np.random.default_rng(seed)
    taken: dict[Any, Design] = {}
    for _ in range(count):
        found = legal.draw(rng, taken.keys())
        if found is None:
            break
        taken[found.key] = problem.design_at(tuple(map(int, found.key)))
    return list(taken.values())


@cache
def _rows(problem: Problem, table: str) -> dict[str, dict[str, Any]]:
    found = problem.graph.tables[table]
    (keys,) = found.axes
    return {
        str(key): {name: one.cells[at] for name, one in found.columns.items()} for at, key in enumerate(keys)
    }


def names(problem: Problem, design: Mapping[str, Any]) -> dict[str, Any]:
    """What the cost function is called with, as numbers: rows of tables are objects with their columns."""
    values: dict[str, Any] = {
        name: SimpleNamespace(**_rows(problem, one.table)[str(one.value)]) if one.table else one.value
        for name, one in problem.inputs.items()
    }
    for dimension in problem.dimensions:
        value = design[dimension.name]
        values[dimension.name] = (
            SimpleNamespace(**_rows(problem, dimension.table)[str(value)]) if dimension.table else value
        )
    return values


def columns(problem: Problem, designs: Sequence[Design]) -> dict[str, Any]:
    """The same for many plans at once: arrays (n,), rows of tables as objects of arrays."""
    one_by_one = [names(problem, design) for design in designs]
    values = dict(one_by_one[0])
    for dimension in problem.dimensions:
        cells = [each[dimension.name] for each in one_by_one]
        if dimension.table:
            values[dimension.name] = SimpleNamespace(
                **{
                    name: np.array([getattr(cell, name) for cell in cells])
                    for name, first in vars(cells[0]).items()
                    if isinstance(first, (int, float))
                }
            )
        else:
            values[dimension.name] = np.array(cells)
    return values


def efficiencies(problem: Problem) -> dict[str, SimpleNamespace]:
    """The efficiencies that are shipped, by generation of GPUs."""
    return {name: SimpleNamespace(**cells) for name, cells in _rows(problem, "efficiency").items()}


def namespace(problem: Problem, values: Mapping[str, Any]) -> Any:
    """What the formulas are given."""
    return cost.namespace(efficiencies(problem), dict(values))


def given(problem: Problem, designs: Sequence[Design]) -> Any:
    """What the formulas are given for many plans."""
    return namespace(problem, columns(problem, designs))


def plan_of(problem: Problem, **values: Any) -> Design:
    """A plan: one GPU for everything, and these values."""
    plain = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "expert_tp": False, "dispatch": "dropless", "micro_batch": 1,
             "extra_layers": 0, "kv_share": 1, "shorter": 1, "schedule": "1f1b", "chunks": 1, "edges": "even",
             "placement": "tp-cp-dp-pp", "cp_kind": "ring", "sequence_parallel": False, "format": "bf16",
             "recompute": "none", "recompute_block": 1, "sharding": "distributed-optimizer", "shard_group": 0,
             "optimizer": "adam", "overlap_dp": False, "overlap_tp": False}  # fmt: skip
    return problem.design_at(problem.digits({**plain, **values}))


def traced(problem: Problem, design: Design) -> dict[str, Any]:
    """Every metric of a plan by the graph, in base units."""
    nodes = {name: metric.node for name, metric in problem.metrics.items()}
    found = evaluate_nodes(problem, design, nodes.values())
    return {name: found[node] for name, node in nodes.items()}
