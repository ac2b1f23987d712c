"""What an expression is written as means the expression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings

from dse.errors import ExpressionError
from dse.evaluation import Undefined, evaluate_nodes
from dse.expressions import Graph, Table, parse, render
from dse.problem import Problem
from dse.problem.library import load
from tests.expressions.scope import scope
from tests.randomspaces import problem, spaces


@dataclass
class Leaves:
    """The names that rendered expressions use: dimensions, inputs and tables."""

    problem: Problem

    @property
    def graph(self) -> Graph:
        return self.problem.graph

    def value(self, name: str) -> int:
        if name in self.problem.inputs:
            return self.problem.inputs[name].node
        return self.problem.dimension(name).node

    def column(self, name: str, column: str) -> int:
        dimension = self.problem.dimension(name)
        if dimension.table is None:
            raise ExpressionError(f"{name} is no table")
        return self.graph.cell(dimension.table, column, (dimension.node,))

    def table(self, name: str) -> Table:
        return self.graph.tables[name]

    def declares(self, name: str) -> bool:
        return name in self.problem.names or name in self.problem.inputs or name in self.graph.tables


def exact(value: Any) -> Any:
    if isinstance(value, Undefined):
        return "missing" if value.missing else "read NaN"
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value.hex()
    return value


def assert_text_means_node(found: Problem) -> None:
    own = Leaves(found)
    roots = [metric.node for metric in found.metrics.values()] + [rule.check for rule in found.rules]
    roots += list(found.lets.values())
    for node in roots:
        text = render(found.graph, node)
        again = parse(text, own)
        for index in range(0, found.size, max(1, found.size // 5)):
            design = found.design_at(found.digits_of(index))
            values = evaluate_nodes(found, design, [node, again])
            assert exact(values[node]) == exact(values[again]), text


@settings(max_examples=80)
@given(spaces(designs=12))
def test_drawn_expressions(data: dict[str, Any]) -> None:
    assert_text_means_node(load(data))


def test_many_expressions() -> None:
    for seed in range(120):
        assert_text_means_node(problem(seed, 40))


@pytest.mark.parametrize(
    "text",
    [
        "batch - (n - x)", "batch - n - x", "batch / (n / x)", "batch * n / x", "(batch + n) * x", "-(batch + n)",
        "-batch ** x", "(-batch) ** x", "(batch ** x) ** n", "batch ** x ** n", "batch ** -x", "-2 ** x", "(-2) ** x",
        "(batch < n) == (n < x)", "(batch < n) == flag", "not (flag == device.fast)", "not flag == device.fast",
        "(not flag) == device.fast", "not (flag and device.fast)", "flag or device.fast and batch < n",
        "(flag or device.fast) and batch < n", "(n if flag else x) + 1", "n if flag else x + 1",
        "(n if flag else x) if device.fast else batch", "n if flag else x if device.fast else batch",
        "batch > n", "batch >= 3", "3 >= batch", "1 < batch < n", "engine in device.engines", "not engine in device.engines",
        "(engine in device.engines) == flag", "max(batch, n, x)", "min(batch, max(n, x))", "rates[device, format] / 2",
        "steps[batch / 2]", "share - 0.6 percent", "share * 2 - 50 percent", "limit + 15 us", "where(flag, limit, 0)",
        "batch // n", "batch % n", "abs(-batch)", "exp(batch) ** 0.5", "batch - -3", "batch * -3", "batch < 1.7976931348623157e308", "device == 'npu'",
        "device in ['cpu', 'npu']", "device != 'cpu'", "where(flag, device, 'cpu') == device", "size / limit > 3 MB/s",
        "(flag if device.fast else true) and flag", "(flag if device.fast else true) == flag", "- -batch", "-(-3)",
    ],
)  # fmt: skip
def test_parentheses_stand_where_they_must(text: str) -> None:
    own = scope()
    node = parse(text, own)
    written = render(own.graph, node)
    assert parse(written, own) == node or "%" in text, written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("batch*n+1", "batch * n + 1"), ("limit>0.005 s", "limit > 5 ms"), ("share-0.6 percent", "share - 0.6 percent"),
        ("(n if flag else x)*2", "(n if flag else x) * 2"), ("rates[device,format]", "rates[device, format]"),
        ("device.bandwidth*1 s", "device.bandwidth * 1 s"), ("true and flag", "true and flag"),
    ],
)  # fmt: skip
def test_the_written_form(text: str, written: str) -> None:
    own = scope()
    assert render(own.graph, parse(text, own)) == written


def test_names_stand_for_their_nodes() -> None:
    own = scope()
    inner = parse("batch * n", own)
    node = parse("batch * n + 1", own)
    assert render(own.graph, node, {inner: "work", node: "total"}) == "work + 1"
