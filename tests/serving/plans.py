"""Plans of the serving space, and what its formulas are given for them as plain numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

from dse.problem import Design, Problem
from dse.problem.library import load
from dse.spaces.serving import cost
from tests.training.legal_plans import efficiencies, names

__all__ = ["PLAN", "given", "metrics", "numbers", "plan", "space"]

PLAN: Design = {
    "hardware": "h100-sxm", "tp": 1, "pp": 1, "attention_dp": 1, "ep": 1, "weights": "bf16", "activations": "bf16",
    "kv": "bf16", "replicas": 1, "disaggregated": False, "prefill_ratio": 0.25, "chunk": 0, "draft_length": 0, "batch": 64,
}  # fmt: skip


@cache
def _shipped() -> Problem:
    return load("serving")


@cache
def _loaded(inputs: tuple[tuple[str, str], ...]) -> Problem:
    return _shipped().with_inputs(dict(inputs)) if inputs else _shipped()


def space(**inputs: Any) -> Problem:
    """The shipped space with some inputs."""
    return _loaded(tuple(sorted((name, str(value)) for name, value in inputs.items())))


def plan(**values: Any) -> Design:
    """A design: Llama-3.1-8B in 16 bits on one H100, 64 sequences, and these values."""
    return {**PLAN, **values}


def given(problem: Problem, **values: Any) -> Any:
    """What the formulas are given for a plan; numbers may be arrays, and need not be choices of the space."""
    return cost.namespace(efficiencies(problem), _names(problem, values))


def metrics(problem: Problem, **values: Any) -> dict[str, Any]:
    """Every metric of a plan, from plain numbers."""
    found: dict[str, Any] = cost.cost(efficiencies(problem), **_names(problem, values))
    return found


def _names(problem: Problem, values: dict[str, Any]) -> dict[str, Any]:
    tables = {one.name for one in problem.dimensions if one.table}
    inputs = {name: value for name, value in values.items() if name in problem.inputs}
    rows = {name: value for name, value in values.items() if name in tables}
    plain = {name: value for name, value in values.items() if name not in tables}
    return numbers(problem, plan(**rows)) | plain | inputs


def numbers(problem: Problem, design: Mapping[str, Any]) -> dict[str, Any]:
    """What the cost function is called with: rows of tables are objects with their columns, missing cells NaN."""
    return {
        name: SimpleNamespace(
            **{column: math.nan if cell is None else cell for column, cell in vars(value).items()}
        )
        if isinstance(value, SimpleNamespace)
        else value
        for name, value in names(problem, design).items()
    }
