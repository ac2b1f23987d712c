"""A Python cost function is traced into the same graph as text; what cannot be traced says what to write instead."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dse
from dse.errors import SpaceError
from dse.evaluation import evaluate_nodes
from dse.problem import Problem
from dse.problem.library import load, locate

SPACE: dict[str, Any] = {
    "dse": 1,
    "name": "traced",
    "inputs": {"limit": "10 ms", "n": 8, "on": True},
    "tables": {
        "devices": {
            "columns": {"bandwidth": "GB/s", "engines": "texts", "fast": "flag"},
            "rows": {"cpu": [8, ["naive"], False], "npu": [16, ["naive", "tuned"], True]},
        },
        "rates": {"keys": ["device", "batch"], "unit": "op/s", "rows": {"cpu": {"1": 5, "4": 6}, "npu": {"1": 7}}},
    },
    "dimensions": {"device": {"table": "devices"}, "batch": [1, 4], "flag": [False, True], "engine": ["naive", "tuned"]},
    "lets": {"traffic": "batch * 1 MB"},
    "metrics": {"x": {"unit": "1"}},
    "objectives": {"x": "minimize"},
}  # fmt: skip

Cost = Callable[..., Any]


def traced(cost: Cost, unit: str = "1", **sections: Any) -> Problem:
    return load({**SPACE, "metrics": {"x": {"unit": unit}}, **sections}, cost=cost)


def text(expr: str, unit: str = "1") -> Problem:
    return load({**SPACE, "metrics": {"x": {"expr": expr, "unit": unit}}})


def values(problem: Problem) -> list[str]:
    node = problem.metrics["x"].node
    designs = (problem.design_at(problem.digits_of(index)) for index in range(problem.size))
    return [repr(evaluate_nodes(problem, design, [node])[node]) for design in designs]


def refused(cost: Cost, unit: str = "1", **sections: Any) -> str:
    with pytest.raises(SpaceError) as caught:
        traced(cost, unit, **sections)
    (found,) = caught.value.diagnostics
    return found.message


@pytest.mark.parametrize(
    ("cost", "expr", "unit"),
    [
        (lambda batch, n: batch * n + 1, "batch * n + 1", "1"),
        (lambda batch, n: 1 + n / batch - 2 * batch, "1 + n / batch - 2 * batch", "1"),
        (lambda batch: 7 // batch + 7 % batch + 2**batch, "7 // batch + 7 % batch + 2 ** batch", "1"),
        (lambda batch, n: batch**2 - batch**-1 + batch**0.5 + n**batch, "batch**2 - batch**-1 + batch**0.5 + n**batch", "1"),
        (lambda batch: -abs(1 - batch) + +batch, "-abs(1 - batch) + +batch", "1"),
        (lambda batch, n: math.ceil(n / batch) + math.floor(n / 3), "ceil(n / batch) + floor(n / 3)", "1"),
        (lambda batch: dse.ceil(batch / 3) + dse.floor(batch / 3), "ceil(batch / 3) + floor(batch / 3)", "1"),
        (lambda batch: dse.sqrt(batch) + dse.exp(batch) + dse.log(batch) + dse.log2(batch),
         "sqrt(batch) + exp(batch) + log(batch) + log2(batch)", "1"),
        (lambda batch, n: dse.maximum(batch, n, 3) - dse.minimum(batch, 2), "max(batch, n, 3) - min(batch, 2)", "1"),
        (lambda batch, flag: dse.where(flag, batch, 2), "where(flag, batch, 2)", "1"),
        (lambda batch, flag, on: dse.where((batch > 1) & flag | ~on, 1, 2), "1 if batch > 1 and flag or not on else 2", "1"),
        (lambda batch, n: dse.where((batch >= n) | (n != 8) | (batch <= 0), 1, 2), "1 if batch >= n or n != 8 or batch <= 0 else 2", "1"),
        (lambda device: dse.where(device == "cpu", 1, 2), "1 if device == 'cpu' else 2", "1"),
        (lambda device: dse.where(device.fast, 1, 2), "1 if device.fast else 2", "1"),
        (lambda device, engine: dse.where(dse.contains(device.engines, engine), 1, 2), "1 if engine in device.engines else 2", "1"),
        (lambda device, batch, rates: rates[device, batch], "rates[device, batch]", "op/s"),
        (lambda traffic, device: traffic / device.bandwidth, "traffic / device.bandwidth", "ms"),
        (lambda limit: limit + dse.quantity("15 us") * 3, "limit + 15 us * 3", "ms"),
        (lambda limit: dse.maximum(limit - dse.quantity("9 ms"), 0), "max(limit - 9 ms, 0)", "ms"),
        (lambda batch: np.float64(1.5) * batch + np.int64(2) + batch * np.float32(0.5), "1.5 * batch + 2 + batch * 0.5", "1"),
    ],
)  # fmt: skip
def test_python_and_text_are_equal_to_the_bit(cost: Cost, expr: str, unit: str) -> None:
    def metrics(**names: Any) -> Any:
        return {"x": cost(**names)}

    metrics.__signature__ = inspect.signature(cost)  # type: ignore[attr-defined]
    assert values(traced(metrics, unit)) == values(text(expr, unit))


def camera_costs(  # noqa: PLR0917
    detector: Any,
    format: Any,  # noqa: A002
    pruning: Any,
    distill: Any,
    engine: Any,
    hardware: Any,
    rates: Any,
) -> dict[str, Any]:
    """The camera's cost model in Python."""
    kernels = detector.layers * engine.kernels_per_layer
    activations = detector.activation * format.activation / dse.quantity("4 B")
    weights = detector.params * pruning.weights_kept * (format.weight + pruning.index)
    traffic = weights + activations * 4 * engine.kernels_per_layer
    compute = detector.work * pruning.compute_kept / rates[hardware, format]
    transfer = traffic / hardware.bandwidth
    launches = kernels * engine.overhead
    gain = dse.where(distill, dse.quantity("0.6 percent"), 0)
    return {
        "accuracy": detector.accuracy - format.loss - pruning.loss + gain,
        "latency": dse.maximum(compute, transfer) + launches,
        "memory": weights + activations * engine.copies + engine.size,
    }


def test_the_camera_in_python_is_the_camera_in_text(tmp_path: Any) -> None:
    shipped = load("camera")
    own = tmp_path / "own.yaml"
    (tmp_path / "camera.yaml").write_text(locate("camera").read_text(encoding="utf-8"), encoding="utf-8")
    metrics = "".join(f"  {name}: {{expr: null}}\n" for name in shipped.metrics)
    own.write_text(f"dse: 1\nname: camera\nextends: camera.yaml\nmetrics:\n{metrics}", encoding="utf-8")
    python = load(own, cost=camera_costs)
    for index in range(480):
        design = shipped.design_at(shipped.digits_of(index))
        for name in shipped.metrics:
            a, b = shipped.metrics[name].node, python.metrics[name].node
            assert repr(evaluate_nodes(shipped, design, [a])[a]) == repr(
                evaluate_nodes(python, design, [b])[b]
            )


@pytest.mark.parametrize(
    ("cost", "advice"),
    [
        (lambda batch: {"x": 1 if batch > 1 else 2}, "dse.where(condition, a, b)"),
        (lambda batch: {"x": max(batch, 2)}, "dse.maximum"),
        (lambda batch: {"x": min(batch, 2)}, "dse.minimum"),
        (lambda batch, n: {"x": batch if 1 < batch < n else 0}, "dse.where"),
        (lambda batch, flag: {"x": dse.where(flag and batch > 1, 1, 2)}, "`&`, `|`, `~`"),
        (lambda batch: {"x": batch if not batch else 1}, "dse.where"),
        (lambda device: {"x": {"cpu": 1}[device]}, "cannot look up a dict"),
        (lambda batch: {"x": math.sqrt(batch)}, "dse.sqrt"),
        (lambda batch: {"x": math.exp(batch)}, "dse.exp"),
        (lambda batch: {"x": float(batch)}, "cannot take them"),
        (lambda batch: {"x": int(batch)}, "cannot take them"),
        (lambda batch: {"x": sum(range(batch))}, "cannot take them"),
        (lambda batch: {"x": sum(batch)}, "cannot be iterated over"),
        (lambda bacth: {"x": bacth}, "asks for 'bacth', which is not declared; did you mean 'batch'?"),
        (lambda batch: {"y": batch, "x": batch}, "returns 'y', no metric without expr; known: x"),
        (lambda: {}, "the cost function does not return it"),  # noqa: PIE807
        (lambda batch: batch, "returned Symbol, expected a mapping of metrics"),
        (lambda: None, "returned NoneType, expected a mapping of metrics"),
        (lambda: {"x": None}, "cannot compute with NoneType: expected a number, quantity, text or symbol"),
        (lambda batch: {"x": batch + b"1"}, "cannot compute with bytes"),
        (lambda batch: {"x": batch * float("nan")}, "NaN is not a number that a cost model can use"),
        (lambda batch: {"x": batch + (2**53 + 1)}, "the integer 9007199254740993 is past 2^53"),
        (lambda: {"x": 1 / 0}, "the cost function raised ZeroDivisionError: division by zero"),
        (lambda: {"x": sys.exit(0)}, "the cost function raised SystemExit: 0"),
        (lambda batch, limit: {"x": batch + limit}, "cannot add a number without a unit and a quantity in s"),
        (lambda limit: {"x": limit}, "x is a quantity in s, but its unit is 1 (1); write `unit: s`"),
        (lambda device: {"x": device}, "x is a text, expected a number"),
        (lambda device: {"x": device.bandwith}, "table 'devices' has no column 'bandwith'; did you mean 'bandwidth'?"),
        (lambda batch: {"x": (batch + 1).fast}, "only a table dimension has columns"),
        (lambda batch: {"x": batch.fast}, "dimension 'batch' has no columns"),
        (lambda rates, device: {"x": rates[device]}, "table 'rates' has 2 keys, but got 1"),
        (lambda device: {"x": dse.where(device == "cpux", 1, 2)}, "'cpux' is none of the possible values"),
        (lambda batch: {"x": dse.quantity("5 mss") * batch}, "unknown unit 'mss'"),
    ],
)  # fmt: skip
def test_what_cannot_be_traced_says_why(cost: Cost, advice: str) -> None:
    message = refused(cost)
    assert advice in message
    assert "Traceback" not in message


def test_a_value_of_another_trace_is_refused() -> None:
    kept: list[Any] = []

    def first(batch: Any) -> dict[str, Any]:
        kept.append(batch)
        return {"x": batch}

    def second(batch: Any) -> dict[str, Any]:
        return {"x": batch + kept[0]}

    traced(first)
    assert "another trace" in refused(second)


def test_the_function_is_called_once() -> None:
    calls: list[int] = []

    def cost(batch: Any) -> dict[str, Any]:
        calls.append(1)
        return {"x": batch}

    values(traced(cost))
    assert calls == [1]


def test_a_file_with_code_is_not_run_when_told_not_to(tmp_path: Any) -> None:
    (tmp_path / "own.py").write_text(
        "raise SystemExit('run')\ndef cost(a): return {'x': a}\n", encoding="utf-8"
    )
    own = tmp_path / "own.yaml"
    own.write_text(
        "dse: 1\nname: own\ndimensions: {a: [1, 2]}\nmetrics: {x: {unit: 1}}\nobjectives: {x: minimize}\n"
        "cost: ./own.py:cost\n",
        encoding="utf-8",
    )
    problem = load(own, code=False)
    assert any("was not imported" in warning for warning in problem.warnings)
    with pytest.raises(SpaceError, match=r"own.yaml:6:7: cost: cannot import ./own.py: SystemExit: run"):
        load(own)
    (tmp_path / "own.py").write_text("def cots(a): return {'x': a}\n", encoding="utf-8")
    with pytest.raises(SpaceError, match="has no function 'cost'; did you mean 'cots'"):
        load(own)


def formula(batch: Any, rate: Any) -> Any:
    waves = dse.ceil(batch / 3) + dse.floor(batch / 3) + dse.log2(batch)
    return dse.maximum(
        waves, dse.where((batch > 2) & (rate > 1), dse.sqrt(batch), 2), dse.minimum(batch, rate)
    )


def test_one_formula_serves_symbols_numbers_and_arrays() -> None:
    problem = traced(lambda batch, n: {"x": formula(batch, n)})
    batches = np.array([float(v) for v in problem.dimensions[1].values])
    singles = [formula(batch, 8.0) for batch in batches.tolist()]
    assert formula(batches, 8.0).tolist() == singles
    assert set(map(repr, singles)) == set(values(problem))


def test_a_computed_number_is_given_a_unit() -> None:
    problem = traced(lambda batch: {"x": dse.quantity(batch * 3, "MB")}, unit="MB")
    assert set(values(problem)) == {repr(3e6), repr(12e6)}
    assert dse.quantity(3.0, "MB") == 3e6
    assert np.array_equal(dse.quantity(np.array([1.0, 4.0]), "ms"), [0.001, 0.004])


def test_a_cost_function_with_two_stars_receives_every_input_and_dimension() -> None:
    seen: list[str] = []

    def cost(batch: Any, **names: Any) -> dict[str, Any]:
        seen.extend(names)
        return {"x": batch * names["n"]}

    assert set(values(traced(cost))) == {"8.0", "32.0"}
    assert seen == ["limit", "n", "on", "device", "flag", "engine"]
