"""From a declaration to a problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dse.errors import SpaceError, nearest
from dse.expressions import Graph
from dse.problem.blame import ordered
from dse.problem.building import Building
from dse.problem.costs import build_costs
from dse.problem.leaves import build_dimensions, build_inputs, read_defaults
from dse.problem.names import Names
from dse.problem.narrowing import narrowed
from dse.problem.parts import Measurement
from dse.problem.problem import Problem
from dse.problem.remarks import build_errors, with_remarks
from dse.problem.restrictions import (
    build_conditions,
    build_constraints,
    build_objectives,
    build_rules,
    build_teams,
)
from dse.problem.tables import build_tables
from dse.problem.template import places
from dse.problem.tracing import CostFunction
from dse.space.reading import Declaration
from dse.space.schema import MeasureDecl
from dse.units import parse_quantity

__all__ = ["build"]


def build(
    declaration: Declaration,
    cost: CostFunction | None = None,
    *,
    code: bool = True,
    narrow: Sequence[tuple[str, str]] = (),
) -> Problem:
    """The problem that a space file declares.

    Args:
        cost: a Python cost function, instead of the one that the file names.
        code: whether the file's Python cost function may be imported.
        narrow: dimensions that keep only some of their values, and which (:func:`dse.problem.narrowing.narrowed`).

    Raises:
        SpaceError: everything that is wrong, each with its place.
    """
    model = declaration.model
    folder = str(declaration.path.resolve().parent)
    names = Names(Graph())
    for kind, declared in (
        ("dimension", model.dimensions),
        ("input", model.inputs),
        ("let", model.lets),
        ("table", model.tables),
        ("metric", model.metrics),
    ):
        names.kinds |= dict.fromkeys(declared, kind)
    building = Building(declaration, names, warnings=[str(warning) for warning in declaration.warnings])
    build_tables(building)
    inputs = build_inputs(building)
    readers = read_defaults(building, inputs, folder, code=code)
    dimensions = narrowed(building, build_dimensions(building), narrow)
    dimensions, conditions = build_conditions(building, dimensions)
    if model.cost is not None:
        building.locations["cost"] = declaration.locate(("cost",))
    lets, metrics = build_costs(building, cost, code=code, folder=folder)
    metrics = with_remarks(building, metrics)
    problem = Problem(
        name=model.name,
        title=model.title,
        about=model.about,
        graph=names.graph,
        dimensions=dimensions,
        inputs=inputs,
        readers=readers,
        lets=lets,
        let_texts={name: building.source(("lets", name), model.lets[name]) for name in lets},
        rules=conditions + build_rules(building),
        metrics=metrics,
        objectives=build_objectives(building, metrics),
        constraints=build_constraints(building, metrics),
        errors=build_errors(building, metrics),
        measurement=_measurement(building, model.measure, folder),
        cost=model.cost or "",
        source=str(declaration.path),
        locations=building.locations,
    )
    if not building.errors or dimensions:
        problem = replace(problem, teams=build_teams(building, problem))
    if model.measure is not None and not any(metric.measured for metric in metrics.values()):
        building.warnings.append("measure: is never run, since no metric is measured")
    if building.errors:
        raise SpaceError(ordered(building.declaration, building.errors))
    return replace(problem, warnings=tuple(building.warnings))


def _measurement(building: Building, declared: str | MeasureDecl | None, folder: str) -> Measurement | None:
    if declared is None:
        return None
    if isinstance(declared, str):
        return Measurement(function=declared, folder=folder)
    known = [name for name, kind in building.names.kinds.items() if kind in ("dimension", "input")]
    for at, argument in enumerate(declared.command):
        for name in places(argument):
            if name not in known:
                hint = nearest(name, known)
                building.report(("measure", "command", at), f"unknown dimension or input {name!r}{hint}")
    timeout = None
    if declared.timeout is not None:
        timeout = parse_quantity(str(declared.timeout)).value
    function = declared.function or ""
    return Measurement(declared.command, function, folder, timeout, declared.retries, declared.repeats)
