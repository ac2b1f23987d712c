"""Rules, conditions of dimensions, objectives, constraints and teams."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from dse.errors import ExpressionError, InputError, nearest
from dse.expressions import Kind, render
from dse.expressions.types import Type, meet
from dse.problem.building import Building
from dse.problem.names import View
from dse.problem.parts import Bound, Constraint, Dimension, Metric, Objective, Rule
from dse.problem.problem import Problem
from dse.problem.teams import Box, Conjunct, Team
from dse.problem.template import Template
from dse.space.nodes import Path
from dse.space.schema import ConstraintDecl, TeamDecl
from dse.units import Unit

__all__ = ["build_conditions", "build_constraints", "build_objectives", "build_rules", "build_teams"]

_WHY_NO_METRIC = "bound a metric under constraints"
_BOUND = re.compile(r"\s*(<=|>=|==|<|>)\s*")


def rule_scope(building: Building) -> View:
    """What a rule may read: everything but metrics."""
    return building.names.view(("dimension", "input", "let", "table"), _WHY_NO_METRIC)


def _is_condition(building: Building, path: Path, node: int) -> bool:
    type_ = building.names.graph[node].type
    if type_.kind is not Kind.BOOL:
        building.report(path, f"found {type_}, expected a condition, such as a <= b")
    return type_.kind is Kind.BOOL


# -- rules -----------------------------------------------------------------------------------------


def build_conditions(
    building: Building, dimensions: tuple[Dimension, ...]
) -> tuple[tuple[Dimension, ...], tuple[Rule, ...]]:
    """The dimensions with their conditions, and the built-in rule ``inactive`` of each conditional one."""
    graph = building.names.graph
    why = "`when` may use inputs and earlier dimensions"
    result: list[Dimension] = []
    rules: list[Rule] = []
    for dimension in dimensions:
        declared = building.declaration.model.dimensions[dimension.name]
        if declared.when is None:
            result.append(dimension)
            continue
        path: Path = ("dimensions", dimension.name, "when")
        later = [d.name for d in dimensions[len(result) :]]
        scope = building.names.view(("dimension", "input", "table"), why).without(later, why)
        node = building.expression(path, declared.when, scope)
        if dimension.interval is not None:
            building.report(
                path, "found a condition on a continuous dimension, expected step or count beside its range"
            )
            node = None
        if node is None or not _is_condition(building, path, node):
            result.append(dimension)
            continue
        full = building.wide.get(dimension.name, dimension)
        value = full.values[full.otherwise]
        if isinstance(value, str):
            constant = graph.string(value)
        elif isinstance(value, bool):
            constant = graph.boolean(value)
        else:
            constant = graph.number(value, dimension.type)
        # The value first: where the condition reads NaN or a missing cell, the dimension is inactive.
        check = graph.apply("or", graph.apply("eq", dimension.node, constant), node)
        text = building.source(path, declared.when)
        because = f"{dimension.name} is inactive unless {text}, and is then {full.label(full.otherwise)}"
        left_out = value not in dimension.values
        if left_out:  # only designs remain in which it is active
            check, because = node, f"{because}, which is left out"
        rules.append(Rule("inactive", check, Template((because,)), text, building.declaration.locate(path)))
        result.append(dimension if left_out else replace(dimension, when=node))
    return tuple(result), tuple(rules)


def build_rules(building: Building) -> tuple[Rule, ...]:
    """The declared rules."""
    rules = []
    scope = rule_scope(building)
    for name, declared in building.declaration.model.rules.items():
        path: Path = ("rules", name, "check")
        building.locations[f"rules.{name}"] = building.declaration.locate_key(("rules", name))
        because = building.template(("rules", name, "because"), declared.because, scope)
        if name == "inactive":
            building.report_key(("rules", name), "found the name of the built-in rule, expected another")
        node = building.expression(path, declared.check, scope)
        if node is not None and _is_condition(building, path, node):
            text = building.source(path, declared.check)
            rules.append(Rule(name, node, because, text, building.declaration.locate(path)))
    return tuple(rules)


# -- objectives and constraints --------------------------------------------------------------------


def build_objectives(building: Building, metrics: Mapping[str, Metric]) -> tuple[Objective, ...]:
    """The objectives; at least one."""
    model = building.declaration.model
    objectives = []
    for name, direction in model.objectives.items():
        if name in metrics:
            metric = metrics[name]
            objectives.append(Objective(name, metric.node, direction, metric.unit))
        elif name not in model.metrics and not building.names.open:
            building.report_key(
                ("objectives", name), f"found {name!r}, expected a metric{nearest(name, metrics)}"
            )
    if not model.objectives:
        building.report_key(
            ("objectives",), "found no objective, expected at least one metric: minimize or maximize"
        )
    return tuple(objectives)


def build_constraints(building: Building, metrics: Mapping[str, Metric]) -> tuple[Constraint, ...]:
    """The constraints; a list of bounds becomes one constraint each."""
    model = building.declaration.model
    scope = building.names.view(("dimension", "input", "let", "table", "metric"), "")
    constraints: list[Constraint] = []
    for name, declared in model.constraints.items():
        building.locations[f"constraints.{name}"] = building.declaration.locate_key(("constraints", name))
        if isinstance(declared, ConstraintDecl):
            found = _condition_constraint(building, name, declared, scope, metrics)
            constraints += [found] if found else []
            continue
        if name not in metrics:
            if name not in model.metrics and not building.names.open:
                hint = nearest(name, metrics)
                building.report_key(
                    ("constraints", name),
                    f"found {name!r}, expected a metric or a mapping with the key check{hint}",
                )
            continue
        bounds = declared if isinstance(declared, tuple) else (declared,)
        for at, text in enumerate(bounds):
            path: Path = ("constraints", name, at) if isinstance(declared, tuple) else ("constraints", name)
            own = f"{name} {text.strip()}" if len(bounds) > 1 else name
            found = _bound_constraint(building, own, metrics[name], text, path=path, scope=scope)
            constraints += [found] if found else []
    return tuple(constraints)


def _bound_constraint(
    building: Building, name: str, metric: Metric, text: str, *, path: Path, scope: View
) -> Constraint | None:
    match = _BOUND.match(text)
    if match is None:
        building.report(path, f"found {text!r}, expected a bound such as '<= 10 {metric.unit.text}'")
        return None
    rhs = building.expression(path, text[match.end() :], scope, skip=match.end())
    if rhs is None:
        return None
    graph = building.names.graph
    try:
        meet(graph[metric.node].type, graph[rhs].type, "compare")
    except ExpressionError as error:
        message = error.message
        bare = graph[rhs].type.kind is Kind.NUMBER and not graph[rhs].type.dims
        if bare and metric.unit.text != "1" and graph[rhs].op == "input":
            given = building.declaration.text(("inputs", graph[rhs].data, "default"))
            message = f"input {graph[rhs].data!r} has no unit, and cannot bound {metric.name}"
            message += f"; write {graph[rhs].data}: {given} {metric.unit.text}"
        elif bare and metric.unit.text != "1" and graph[rhs].op == "const":
            message = f"cannot compare {metric.name} ({graph[metric.node].type}) and a number without a unit"
            message += f"; write {text[match.end() :].strip()} {metric.unit.text}"
        else:
            message = message.replace("compare ", f"compare {metric.name}, ", 1)
        building.report(path, message, match.end())
        return None
    bound = Bound(metric.node, match[1], rhs)
    return Constraint(
        name,
        bound,
        metric.unit,
        f"{metric.name} {text.strip()}",
        metric=metric.name,
        location=building.declaration.locate(path),
    )


def _condition_constraint(
    building: Building, name: str, declared: ConstraintDecl, scope: View, metrics: Mapping[str, Metric]
) -> Constraint | None:
    path: Path = ("constraints", name, "check")
    found = building.condition(path, declared.check, scope)
    because = (
        building.template(("constraints", name, "because"), declared.because, scope)
        if declared.because
        else Template()
    )
    if found is None or not _is_condition(building, path, found[0]):
        return None
    node, sides = found
    graph = building.names.graph
    bound = Bound(node, "holds", node)
    unit: Unit | None = None
    metric: str | None = None
    if sides is not None and sides[1] != "!=" and graph[sides[0]].type.kind is Kind.NUMBER:
        bound = Bound(*sides)
        metric = next((m.name for m in metrics.values() if m.node == sides[0]), None)
        unit = (
            metrics[metric].unit if metric else _unit_of(graph[sides[0]].type, graph[sides[2]].type, metrics)
        )
    return Constraint(
        name,
        bound,
        unit,
        building.source(path, declared.check),
        because,
        metric,
        building.declaration.locate(path),
        declared.first,
    )


def _unit_of(left: Type, right: Type, metrics: Mapping[str, Metric]) -> Unit | None:
    """The unit in which a metric of the same dimensions is shown."""
    dims = left.dims or right.dims
    return next((m.unit for m in metrics.values() if m.unit.dims == dims and dims), None)


# -- teams -----------------------------------------------------------------------------------------


def build_teams(building: Building, problem: Problem) -> dict[str, Team]:
    """The teams; a text combines teams declared before it."""
    teams: dict[str, Team] = {}
    for name, declared in building.declaration.model.teams.items():
        path: Path = ("teams", name)
        building.locations[f"teams.{name}"] = building.declaration.locate_key(path)
        if name != name.strip() or set(name) & set("&|"):
            building.report_key(path, f"found the team name {name!r}, expected one without & and |")
            continue
        if isinstance(declared, TeamDecl):
            teams[name] = Team(name, (_box(building, problem, name, declared),), declared.about)
            continue
        try:
            teams[name] = replace(replace(problem, teams=teams).team(declared), name=name)
        except InputError as error:
            building.report(path, str(error))
            continue
        if not teams[name].boxes and not building.wide:
            building.report(
                path, f"found {declared!r}, which selects nothing, expected teams that have designs in common"
            )
    return teams


def _box(building: Building, problem: Problem, team: str, declared: TeamDecl) -> Box:
    known = {d.name: d for d in problem.dimensions}
    allowed: dict[str, tuple[int, ...]] = {}
    for name, wanted in declared.restrict.items():
        dimension = building.wide.get(name, known.get(name))
        if dimension is None:
            if name not in building.declaration.model.dimensions:
                building.report_key(
                    ("teams", team, name), f"found {name!r}, expected a dimension{nearest(name, known)}"
                )
            continue
        if dimension.interval is not None:
            building.report_key(
                ("teams", team, name), "a team cannot narrow a continuous dimension; give it step or count"
            )
            continue
        values = wanted if isinstance(wanted, tuple) else (wanted,)
        digits = set()
        for at, value in enumerate(values):
            path: Path = ("teams", team, name, at) if isinstance(wanted, tuple) else ("teams", team, name)
            digit = _digit(building, dimension, value, path, drop=_narrowed_above(building, path, name))
            digits |= {digit} if digit is not None else set()
        if not digits and _narrowed_above(building, ("teams", team, name), name):
            building.report_key(
                ("dimensions", name),
                f"leaves team {team!r} no value of {name} (it has {', '.join(map(str, values))} at "
                f"{building.declaration.locate(('teams', team, name))}); give teams.{team}, or delete it: {team}: null",
            )
        if name in building.wide:  # what was left out of the dimension is left out of the team
            places = {value: at for at, value in enumerate(known[name].values)}
            digits = {places[dimension.values[at]] for at in digits if dimension.values[at] in places}
        allowed[name] = tuple(sorted(digits))
    where = _conjuncts(building, ("teams", team, "where"), declared) if declared.where is not None else ()
    return Box(tuple(allowed.get(d.name) for d in problem.dimensions), where)


def _narrowed_above(building: Building, path: Path, dimension: str) -> bool:
    """Whether a file declares a dimension anew for a space that it extends, whose team stands at ``path``."""
    order = {str(file): at for at, file in enumerate(building.declaration.files)}
    team = building.declaration.locate(path).file
    above = building.declaration.locate_key(("dimensions", dimension)).file
    return above in order and team in order and order[above] < order[team]


def _digit(
    building: Building, dimension: Dimension, value: object, path: Path, *, drop: bool = False
) -> int | None:
    """The number of a value; None where there is none, which is reported unless it may be dropped."""
    wanted = building.plain(path, value, dimension.unit) if dimension.type.kind is Kind.NUMBER else value
    for at, known in enumerate(dimension.values):
        if known == wanted and isinstance(known, bool) == isinstance(wanted, bool):
            return at
    if drop:
        return None
    labels = [dimension.label(at) for at in range(min(len(dimension.values), 1000))]
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    building.report(path, f"{dimension.name} has no value {shown!r}{nearest(shown, labels)}")
    return None


def _conjuncts(building: Building, path: Path, declared: TeamDecl) -> tuple[Conjunct, ...]:
    node = building.expression(path, declared.where, rule_scope(building))
    if node is None or not _is_condition(building, path, node):
        return ()
    graph = building.names.graph
    parts: list[int] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if graph[part].op == "and":
            stack.extend(reversed(graph[part].args))
        else:
            parts.append(part)
    return tuple(Conjunct(part, render(graph, part), graph[part].support) for part in parts)
