"""Values for people, in their declared units, and the sentences of rules and constraints made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

from dse.evaluation.scalar import Scalar, Undefined, evaluate_nodes
from dse.expressions import Value, format_typed
from dse.problem import Problem, Rule, Template
from dse.units import Unit, format_value

__all__ = ["broken_whatever_the_design", "declared_unit", "general_sentence", "sentence", "shown_value"]

_COMBINATIONS = 1_000
"""Combinations of values that are tried."""


def declared_unit(problem: Problem, node: int) -> Unit | None:
    """The unit in which a dimension, an input, a column or a metric was declared; None for other nodes."""
    found = problem.graph[node]
    if found.op == "dimension":
        return problem.dimension(found.data).unit
    if found.op == "input":
        return problem.inputs[found.data].unit
    if found.op == "cell":
        table, column = found.data
        return problem.graph.tables[table].columns[column].unit
    return next((metric.unit for metric in problem.metrics.values() if metric.node == node), None)


def shown_value(problem: Problem, node: int, value: Scalar, unit: Unit | None = None) -> str:
    """The value of a node in ``unit``, else in its declared unit, else in one that reads well."""
    if isinstance(value, Undefined):
        return f"no value ({value.reason})"
    unit = unit or declared_unit(problem, node)
    if isinstance(value, float) and unit is not None:
        return format_value(value, unit)
    return format_typed(value, problem.graph[node])


def sentence(
    problem: Problem,
    template: Template,
    design: Mapping[str, Value],
    measured: Mapping[str, float] | None = None,
) -> str:
    """A rule's or constraint's ``because``, filled in for one design."""
    values: dict[int, Scalar] = {}
    for node in template.nodes:
        waiting = [name for name in problem.graph.leaves(node, "measured") if name not in (measured or {})]
        if waiting:
            values[node] = Undefined(f"not measured: {waiting[0]}")
        else:
            values[node] = evaluate_nodes(problem, design, [node], measured)[node]
    return template.fill(lambda node: shown_value(problem, node, values[node]))


def general_sentence(problem: Problem, template: Template) -> str:
    """A rule's ``because`` for all designs: what is the same for all is filled in, the rest stays in braces."""
    only = {d.name: d.values[0] for d in problem.dimensions if len(d.values) == 1}
    names = {node: name for name, node in problem.lets.items()}

    def text(node: int) -> str:
        found = problem.graph[node]
        if found.support <= only.keys() and not problem.graph.leaves(node, "measured"):
            return shown_value(problem, node, evaluate_nodes(problem, only, [node])[node])
        column = ".".join(map(str, found.data)) if found.op == "cell" else "..."
        return f"{{{found.data if found.op == 'dimension' else names.get(node, column)}}}"

    return template.fill(text)


def broken_whatever_the_design(problem: Problem) -> list[Rule]:
    """The rules that no design meets, those first that the inputs alone break.

    Whether a rule is one is found out where few combinations of the dimensions that it reads are to be tried.
    """
    found = [rule for rule in problem.rules if _never_met(problem, rule.check)]
    return sorted(found, key=lambda rule: len(problem.graph[rule.check].support))


def _never_met(problem: Problem, check: int) -> bool:
    read = [d for d in problem.dimensions if d.name in problem.graph[check].support]
    if any(d.interval is not None for d in read) or math.prod(len(d.values) for d in read) > _COMBINATIONS:
        return False
    designs = (
        dict(zip((d.name for d in read), values, strict=True))
        for values in product(*(d.values for d in read))
    )
    return not any(evaluate_nodes(problem, design, [check])[check] is True for design in designs)
