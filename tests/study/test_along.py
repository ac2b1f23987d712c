"""A design along one dimension: what bounds it, where that changes, its limits, and what is not legal on the way."""

from __future__ import annotations

from typing import Any

import pytest

from dse.errors import InputError
from dse.evaluation import State
from dse.problem import Problem
from dse.problem.library import load
from dse.study.along import along

GPU: dict[str, Any] = {
    "dse": 1,
    "name": "gpu",
    "title": "Batch on one GPU",
    "inputs": {"max_step": "15 ms", "context": "128 token"},
    "tables": {
        "formats": {
            "columns": {"weight": "B", "rate": "Tflop/s"},
            "rows": {"bf16": [2, 989], "fp8": [1, 1979]},
        }
    },
    "dimensions": {
        "format": {"table": "formats"},
        "batch": {"range": [1, 1024], "scale": "pow2"},
        "chunks": {"choices": [1, 2], "when": "batch > 4"},
    },
    "rules": {"odd": {"check": "batch != 2", "because": "nothing runs {batch}"}},
    "lets": {"weights": "8e9 * format.weight", "cache": "batch * context * 131072 B/token"},
    "metrics": {
        "throughput": {
            "expr": "batch * 1 token / step",
            "unit": "token/s",
            "about": "output tokens, unloaded",
        },
        "step": {
            "expr": "max(compute, transfer) + launch",
            "unit": "ms",
            "parts": ["compute", "transfer", "launch"],
        },
        "compute": {"expr": "2 flop * 8e9 * batch / format.rate", "unit": "ms"},
        "transfer": {"expr": "(weights + cache) / 3.35 TB/s", "unit": "ms"},
        "launch": {"expr": "0.1 ms * chunks", "unit": "ms"},
        "memory": {"expr": "weights + cache", "unit": "GB"},
    },
    "objectives": {"throughput": "maximize", "step": "minimize"},
    "constraints": {"step": "<= max_step", "memory": "<= 72 GB"},
}


def gpu(**inputs: str) -> Problem:
    return load(GPU, inputs)


def design(problem: Problem, **chosen: object) -> dict[str, Any]:
    return problem.design_at(problem.digits({"format": "bf16", "batch": 1024.0, "chunks": 1.0} | chosen))


def test_the_ridge_is_where_compute_overtakes_memory() -> None:
    problem = gpu()
    found = along(problem, "batch", design(problem))
    assert found.metrics == ("throughput", "step", "memory")
    (ridge,) = found.ridges
    assert (ridge.metric, ridge.before, ridge.after, ridge.low, ridge.high) == (
        "step", "transfer", "compute", 256.0, 512.0,
    )  # fmt: skip
    by_hand = (16e9 / 3.35e12) / (16e9 / 989e12 - 128 * 131072 / 3.35e12)
    assert ridge.at == pytest.approx(by_hand, rel=0.03)
    (same,) = along(problem, "batch", design(problem), ["step"], ridge=("transfer", "compute")).ridges
    assert (same.before, same.after, same.at) == ("transfer", "compute", ridge.at)
    assert (
        along(problem, "batch", design(problem), ["throughput", "memory"]).ridges == ()
    )  # nothing shown has parts
    longer = gpu(context="1024 token")  # the cache grows with the batch as fast as compute does
    assert along(longer, "batch", design(longer)).ridges == ()


def test_points_say_what_they_are() -> None:
    problem = gpu()
    found = along(problem, "batch", design(problem, chunks=2.0))
    states = {point.value: point.state for point in found.points}
    assert states[1.0] is states[512.0] is State.FEASIBLE
    assert states[2.0] is State.ILLEGAL
    assert states[1024.0] is State.INFEASIBLE
    points = {point.value: point for point in found.points}
    assert (points[2.0].reason, points[2.0].rule, points[2.0].metrics) == ("nothing runs 2", "odd", {})
    assert points[1024.0].broken == ("step",)
    # One chunk while there is no choice, two after.
    assert [points[n].metrics["launch"] for n in (1.0, 4.0, 8.0)] == pytest.approx([1e-4, 1e-4, 2e-4])
    assert {constraint.name: bound for constraint, bound in found.limits} == pytest.approx(
        {"step": 0.015, "memory": 72e9}
    )


def test_a_limit_that_comes_back_to_where_it_was_is_none() -> None:
    """The bound is the same at the first and the last value, and another in between."""
    bounded = {"step": "<= 1 ms * (10 + (batch - 1) * (1024 - batch))", "memory": "<= 72 GB"}
    problem = load(GPU | {"constraints": bounded})
    found = along(problem, "batch", design(problem))
    assert [constraint.name for constraint, _ in found.limits] == ["memory"]


def test_what_there_is_no_way_along() -> None:
    problem = gpu()
    for arguments, message in (
        (("batsch",), "unknown dimension 'batsch'; did you mean 'batch'?"),
        (("batch", design(problem), ["stp"]), "'stp' is no metric of gpu; did you mean 'step'?"),
        (("format", design(problem, batch=2.0)), "no design along format is legal: nothing runs 2"),
    ):
        with pytest.raises(InputError) as raised:
            along(problem, arguments[0], *(arguments[1:] or (design(problem),)))
        assert message in str(raised.value)


def test_very_many_values_are_thinned() -> None:
    problem = load(GPU | {"dimensions": {**GPU["dimensions"], "batch": {"range": [1, 5000]}}})
    found = along(problem, "batch", design(problem))
    values = [point.value for point in found.points]
    assert (values[0], values[-1], values == sorted(values)) == (1.0, 5000.0, True)
    assert 300 < len(values) <= 400
    assert found.left_out == 5000 - len(values)
    (ridge,) = found.ridges
    assert float(ridge.high) - float(ridge.low) < 30
