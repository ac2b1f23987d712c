"""Lets, metrics and the Python cost function, built in the order in which they depend on each other."""

from __future__ import annotations

import inspect

from dse.errors import ExpressionError, InputError
from dse.expressions import Type
from dse.expressions.tokens import tokenize
from dse.problem.building import Building
from dse.problem.code import import_function
from dse.problem.names import View
from dse.problem.parts import Metric
from dse.problem.tracing import CostFunction, check_unit, trace
from dse.space.nodes import Path
from dse.units import parse_unit

__all__ = ["build_costs"]

_COST = "(cost)"


def build_costs(
    building: Building, cost: CostFunction | None, *, code: bool, folder: str
) -> tuple[dict[str, int], dict[str, Metric]]:
    """The nodes of the lets, and the metrics.

    Args:
        cost: the cost function, when it is given as an object; else ``cost:`` names it.
        code: whether Python code may be imported; without it, its metrics have no value.
    """
    model = building.declaration.model
    names = building.names
    lets: dict[str, int] = {}
    metrics: dict[str, Metric] = {}
    function = _function(building, cost, code=code, folder=folder)
    names.open = function is None and model.cost is not None
    traced = (
        [n for n, m in model.metrics.items() if m.expr is None and not m.measured]
        if model.cost or cost
        else []
    )
    parameters = _parameters(building, function) if function else []
    let_scope = names.view(
        ("dimension", "input", "let", "table"), "a let is made of inputs, tables, dimensions and lets"
    )
    metric_scope = names.view(("dimension", "input", "let", "table", "metric"), "")
    for name in _ordered(building, traced, parameters):
        if name == _COST:
            if function is not None:
                metrics |= trace(building, function, parameters, metric_scope)
        elif name in model.lets:
            node = building.expression(("lets", name), model.lets[name], let_scope)
            if node is not None:
                if node in lets.values() and names.graph[node].args:
                    node = names.graph.alias(node, name)
                names.nodes[name] = lets[name] = node
        elif name in model.metrics and name not in metrics and (name not in traced or function is None):
            metric = _metric(building, name, metric_scope, unknown=name in traced)
            if metric is not None:
                names.nodes[name] = metric.node
                metrics[name] = metric
    order = [*model.metrics, *(name for name in metrics if name not in model.metrics)]
    return lets, {name: metrics[name] for name in order if name in metrics}


def _parameters(building: Building, function: CostFunction) -> list[str]:
    """The names that the function asks for; ``**names`` asks for every input and dimension."""
    asked = inspect.signature(function).parameters
    wanted = [name for name, one in asked.items() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    if len(wanted) < len(asked):
        model = building.declaration.model
        wanted += [name for name in (*model.inputs, *model.dimensions) if name not in wanted]
    return wanted


def _function(
    building: Building, cost: CostFunction | None, *, code: bool, folder: str
) -> CostFunction | None:
    declared = building.declaration.model.cost
    if cost is not None or declared is None:
        return cost
    if not code:
        building.warnings.append(
            f"the cost function {declared} was not imported, so its metrics were not checked"
        )
        return None
    try:
        return import_function(declared, folder)
    except InputError as error:
        building.report(("cost",), str(error))
        return None


# -- order -----------------------------------------------------------------------------------------


def _ordered(building: Building, traced: list[str], parameters: list[str]) -> list[str]:
    """Lets, metrics and the cost function, each after what it reads; a cycle is reported and left out."""
    model = building.declaration.model
    reads: dict[str, list[str]] = {}
    paths: dict[str, Path] = {_COST: ("cost",)}
    for name, text in model.lets.items():
        reads[name], paths[name] = _reads(text), ("lets", name)
    for name, metric in model.metrics.items():
        reads[name], paths[name] = _reads(metric.expr), ("metrics", name, "expr")
    for name in traced:
        reads[name] = [_COST]
    reads[_COST] = parameters
    done: dict[str, bool] = {}
    order: list[str] = []
    for root, first in reads.items():
        trail: list[tuple[str, list[str]]] = [] if root in done else [(root, list(first))]
        if trail:
            done[root] = False
        while trail:
            name, left = trail[-1]
            while left:
                following = left.pop(0)
                if following not in reads or done.get(following):
                    continue
                if following in done:
                    cycle = [n for n, _ in trail]
                    cycle = [*cycle[cycle.index(following) :], following]
                    building.report(
                        paths[name], f"{' -> '.join(cycle)} is a cycle, expected an order of evaluation"
                    )
                    building.names.broken.update(cycle)
                    continue
                done[following] = False
                trail.append((following, list(reads[following])))
                break
            else:
                done[name] = True
                trail.pop()
                order.append(name)
    return [name for name in order if name not in building.names.broken]


def _reads(text: object) -> list[str]:
    """The names in an expression; what cannot be read is reported when it is parsed."""
    if not isinstance(text, str):
        return []
    try:
        tokens = tokenize(text)
    except ExpressionError:
        return []
    after_dot = {at + 1 for at, token in enumerate(tokens) if token.text == "."}
    return list(
        dict.fromkeys(t.text for at, t in enumerate(tokens) if t.kind == "name" and at not in after_dot)
    )


# -- metrics ---------------------------------------------------------------------------------------


def _metric(building: Building, name: str, scope: View, *, unknown: bool) -> Metric | None:
    declared = building.declaration.model.metrics[name]
    building.locations[f"metrics.{name}"] = building.declaration.locate(("metrics", name, "expr"))
    unit = parse_unit(declared.unit)
    path: Path = ("metrics", name, "expr")
    if declared.expr is None:
        everything = frozenset(building.declaration.model.dimensions)
        if not declared.measured and not unknown and building.declaration.model.measure is None:
            building.report_key(
                ("metrics", name),
                "found no expr, expected an expression, `measured: true`, or `cost:` in the file",
            )
            return None
        node = building.names.graph.measured(name, Type.of_unit(unit), everything)
        return Metric(
            name, node, unit, "measured" if not unknown else "cost function", not unknown, declared.about
        )
    node_or_none = building.expression(path, declared.expr, scope)
    if node_or_none is None:
        return None
    text = building.source(path, declared.expr)
    try:
        check_unit(building.names, node_or_none, unit, name)
    except ExpressionError as error:
        building.report(path, error.message)
        return None
    return Metric(name, node_or_none, unit, text, False, declared.about)
