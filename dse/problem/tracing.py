"""Tracing the Python cost function, and reading the metrics that it returns."""

from __future__ import annotations

import pathlib
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Any

from dse.errors import DseError, ExpressionError, nearest
from dse.expressions import Kind, Type
from dse.expressions.tracer import Symbol, TableSymbol, node_of
from dse.expressions.types import Flavor, meet
from dse.problem.building import Building
from dse.problem.names import Names, View
from dse.problem.parts import Metric
from dse.space.nodes import Path
from dse.units import Unit, dims_text, parse_unit

__all__ = ["CostFunction", "check_unit", "trace"]

CostFunction = Callable[..., Mapping[str, Any]]
"""A cost function: parameters named after dimensions, inputs, lets and tables; returns metrics by name."""

_PATH: Path = ("cost",)


def check_unit(names: Names, node: int, unit: Unit, name: str) -> None:
    """Raise :class:`ExpressionError` unless ``node`` is a number that can be shown in ``unit``."""
    found, wanted = names.graph[node].type, Type.of_unit(unit)
    if found.kind is not Kind.NUMBER:
        raise ExpressionError(f"{name} is {found}, expected a number")
    if found.dims != wanted.dims and found.flavor is not Flavor.ZERO:
        hint = f"; write `unit: {dims_text(found.dims)}`" if found.dims and not wanted.dims else ""
        raise ExpressionError(
            f"{name} is {found}, but its unit is {unit.text} ({dims_text(unit.dims)}){hint}"
        )
    if unit.percent:
        meet(found, wanted, "show as a percentage")


def trace(
    building: Building, function: CostFunction, parameters: list[str], scope: View
) -> dict[str, Metric]:
    """Call the cost function once with symbols; the metrics that it returns. Errors are reported."""
    arguments = _arguments(building, parameters, scope)
    returned = None if arguments is None else _returned(building, function, arguments)
    if returned is None:
        building.names.open = True
        return {}
    model = building.declaration.model
    metrics: dict[str, Metric] = {}
    wanted = [n for n, m in model.metrics.items() if m.expr is None and not m.measured]
    sums = [n for n, m in model.metrics.items() if m.parts and m.expr == " + ".join(m.parts)]
    for name in wanted:
        if name not in returned:
            hint = nearest(name, returned)
            building.report_key(("metrics", name), f"the cost function does not return it{hint}")
    for name, value in returned.items():
        if model.metrics and name not in wanted and name not in sums:
            hint = nearest(name, wanted)
            building.report(_PATH, f"the cost function returns {name!r}, no metric without expr{hint}")
            continue
        declared = model.metrics.get(name)
        try:
            node = node_of(value, scope)
            unit = parse_unit(declared.unit if declared else dims_text(building.names.graph[node].type.dims))
            check_unit(building.names, node, unit, name)
        except ExpressionError as error:
            building.report(_PATH, f"metric {name!r} of the cost function: {error.message}")
            continue
        metrics[name] = Metric(name, node, unit, "cost function", False, declared.about if declared else "")
        building.names.nodes[name] = node
        building.names.kinds.setdefault(name, "metric")
    return metrics


def _arguments(building: Building, parameters: list[str], scope: View) -> dict[str, object] | None:
    """A symbol for each parameter; None when one is unknown, or could not be built (which is reported)."""
    names = building.names
    arguments: dict[str, object] = {}
    for parameter in parameters:
        if parameter not in names.kinds:
            hint = nearest(parameter, names.kinds)
            building.report(_PATH, f"the cost function asks for {parameter!r}, which is not declared{hint}")
            return None
        if names.kinds[parameter] == "table":
            arguments[parameter] = TableSymbol(scope, parameter)
        elif parameter in names.nodes:
            arguments[parameter] = Symbol(scope, names.nodes[parameter], parameter)
        else:
            return None
    return arguments


def _place(error: BaseException) -> str:
    """The last line of the user's own code that an error passed through."""
    own = pathlib.Path(__file__).resolve().parents[1]
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not pathlib.Path(frame.filename).resolve().is_relative_to(own)]
    return f" (at {pathlib.Path(theirs[-1].filename).name}:{theirs[-1].lineno})" if theirs else ""


def _returned(
    building: Building, function: CostFunction, arguments: dict[str, object]
) -> Mapping[str, Any] | None:
    try:
        with redirect_stdout(sys.stderr):  # what the user's code prints is no part of a command's output
            returned: object = function(**arguments)
    except DseError as error:
        building.report(_PATH, f"the cost function cannot be traced: {error}{_place(error)}")
        return None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may raise anything
        building.report(_PATH, f"the cost function raised {type(error).__name__}: {error}{_place(error)}")
        return None
    if not isinstance(returned, Mapping):
        found = type(returned).__name__
        building.report(_PATH, f"the cost function returned {found}, expected a mapping of metrics")
        return None
    return returned
