"""A small set of names for tests of expressions, and a plain way to ask for values."""

from __future__ import annotations

from typing import Any

import pytest

from dse.errors import ExpressionError
from dse.evaluation import evaluate_nodes
from dse.expressions import Column, Graph, Table, Type, parse
from dse.expressions.types import BARE, BOOL, STRING, TEXTS
from dse.problem import Dimension, Input, Problem
from dse.problem.names import Names, View
from dse.units import parse_quantity, parse_unit

__all__ = ["fails", "scope", "type_of", "value"]

DESIGN: dict[str, Any] = {
    "device": "npu", "format": "int8", "engine": "tuned", "batch": 4.0, "time": 0.005, "flag": True, "zero": 0.0,
}  # fmt: skip
VALUES: dict[str, tuple[Any, ...]] = {
    "device": ("cpu", "npu"), "format": ("fp32", "int8"), "engine": ("naive", "tuned"), "batch": (1.0, 2.0, 4.0),
    "time": (0.001, 0.005), "flag": (False, True), "zero": (0.0,),
}  # fmt: skip
INPUTS = {"limit": "10 ms", "share": "90 percent", "n": "8", "x": "2.5", "size": "3 MB"}


def unit_type(text: str) -> Type:
    return Type.of_unit(parse_unit(text))


def tables() -> list[Table]:
    columns = {
        "bandwidth": Column(unit_type("GB/s"), (8e9, 16e9)),
        "engines": Column(TEXTS, (("naive", "tuned"), ("tuned",))),
        "fast": Column(BOOL, (False, True)),
        "label": Column(STRING, ("left", "right")),
        "loss": Column(unit_type("percent"), (0.5, None)),
    }
    devices = Table("devices", ("row",), (("cpu", "npu"),), columns)
    axes = (("cpu", "npu"), ("fp32", "int8"))
    cells = (50e9, 200e9, None, 2000e9)
    rates = Table("rates", ("device", "format"), axes, {"": Column(unit_type("Gop/s"), cells)})
    steps = Table("steps", ("batch",), ((1.0, 2.0, 4.0),), {"": Column(BARE, (10.0, 20.0, 40.0))})
    return [devices, rates, steps]


def scope() -> View:
    names = Names(Graph(tables()))
    for name, values in VALUES.items():
        type_ = {str: STRING, bool: BOOL, float: BARE}[type(values[0])]
        type_ = unit_type("ms") if name == "time" else type_
        texts = [str(v) for v in values] if type_ == STRING else None
        names.nodes[name] = names.graph.dimension(name, type_, texts)
        names.kinds[name] = "dimension"
    for name, text in INPUTS.items():
        names.nodes[name] = names.graph.input(name, Type.of_unit(parse_quantity(text).unit))
        names.kinds[name] = "input"
    names.tables_of["device"] = "devices"
    names.kinds |= {"devices": "table", "rates": "table", "steps": "table"}
    return names.view(("dimension", "input", "table"), "")


def type_of(text: str) -> Type:
    own = scope()
    return own.graph[parse(text, own)].type


def value(text: str, **changed: Any) -> Any:
    """What ``text`` is for :data:`DESIGN`."""
    own = scope()
    node = parse(text, own)
    dimensions = tuple(
        Dimension(name, values, own.graph[own.names.nodes[name]].type, own.names.nodes[name])
        for name, values in VALUES.items()
    )
    inputs = {}
    for name, given in INPUTS.items():
        number = own.names.nodes[name]
        inputs[name] = Input(name, parse_quantity(given).value, own.graph[number].type, number)
    problem = Problem("probe", own.graph, dimensions, inputs=inputs)
    return evaluate_nodes(problem, {**DESIGN, **changed}, [node])[node]


def fails(text: str) -> tuple[str, int]:
    """The message and the offset of what is wrong with ``text``."""
    with pytest.raises(ExpressionError) as caught:
        parse(text, scope())
    return caught.value.message, caught.value.offset
