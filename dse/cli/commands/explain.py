"""``dse explain``: the cost of one design, term by term."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dse.cli import emit
from dse.cli.options import PAIR, code_option, space_argument

if TYPE_CHECKING:
    from dse.problem import Design, Problem

__all__ = ["command"]


@click.command("explain")
@space_argument()
@click.argument("values", nargs=-1, type=PAIR, metavar="DIMENSION=VALUE...")
@click.option(
    "--team", metavar="TEAM", help="Take what this team fixes; say so if it may not choose the design."
)
@click.option("--index", type=int, metavar="N", help="The design with this index, instead of its values.")
@click.option(
    "--measured",
    multiple=True,
    type=PAIR,
    metavar="METRIC=VALUE",
    help="What a measured metric is of this design, such as latency='8 ms'. Repeatable.",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="For people, or as data."
)
@code_option()
def command(
    space: str,
    *,
    settings: tuple[tuple[str, str], ...],
    values: tuple[tuple[str, str], ...],
    team: str | None,
    index: int | None,
    measured: tuple[tuple[str, str], ...],
    form: str,
    code: bool,
) -> int:
    """Take one design of SPACE apart: every let and metric with its unit, and which branch of each max or min won.

    Every dimension needs a value, except those that --team fixes to one value and conditional ones that are not
    active. Exits with 1 unless the design is feasible.
    """
    from dse.cli.loading import load_space
    from dse.cli.tree import explanation_data, explanation_lines
    from dse.evaluation import member
    from dse.evaluation.explain import explain

    problem = load_space(space, settings, code=code)
    if index is not None:
        if values:
            raise click.UsageError("give the design by its values or by --index, not both")
        design = problem.design_at(problem.digits_of(index))
    else:
        design = complete(problem, dict(values), team)
    explanation = explain(problem, design, numbers(problem, dict(measured)))
    if form == "json":
        emit.as_json(explanation_data(problem, explanation))
    else:
        emit.as_lines(explanation_lines(problem, explanation))
    if team is not None and not member(problem, problem.team(team), design):
        emit.note(f"outside: team {team} may not choose this design")
        return 1
    return 0 if explanation.feasible else 1


def numbers(problem: Problem, given: dict[str, str]) -> dict[str, float]:
    """Measured metrics in base units, from their texts: of all of them, or of none.

    Raises:
        InputError: a metric is unknown, computed or left out, or its value is no number in its unit.
    """
    from dse.errors import InputError, nearest
    from dse.study.measure import Failed, read_metrics

    known = [name for name, metric in problem.metrics.items() if metric.measured]
    for name in given:
        if name not in known:
            raise InputError(f"{name!r} is no measured metric{nearest(name, known)}")
    missing = [name for name in known if name not in given]
    if given and missing:
        raise InputError(f"no value for {', '.join(missing)}; every measured metric needs one")
    try:
        return read_metrics(problem, given) if given else {}
    except Failed as error:
        raise InputError(str(error)) from None


def complete(problem: Problem, given: dict[str, str], team: str | None) -> Design:
    """The design of these values, filled in where only one value is possible.

    Raises:
        InputError: an unknown dimension or value, or dimensions without a value.
    """
    from dse.errors import InputError
    from dse.problem import shown

    for name in given:
        problem.dimension(name)
    hull = [None] * len(problem.dimensions) if problem.continuous else problem.team(team).hull(problem.sizes)
    design: Design = {}
    missing: list[str] = []
    for dimension, allowed in zip(problem.dimensions, hull, strict=True):
        if dimension.name in given:
            design[dimension.name] = _value(problem, dimension.name, given[dimension.name])
        elif allowed is not None and team is not None and len(allowed) == 1:
            design[dimension.name] = dimension.values[allowed[0]]
        elif dimension.when is not None and not missing and not _active(problem, dimension.when, design):
            design[dimension.name] = dimension.values[dimension.otherwise]
        if dimension.name not in design:
            missing.append(dimension.name)
    if missing:
        examples = []
        for name in missing:
            found = problem.dimension(name)
            examples.append(f"{name}={shown(found.values[0], found.unit) if found.values else '...'}")
        raise InputError(f"no value for {', '.join(missing)}; add for example {' '.join(examples)}")
    return design


def _active(problem: Problem, when: int, design: Design) -> bool:
    """Whether a conditional dimension is active; one that cannot be decided counts as active."""
    from dse.evaluation import evaluate_nodes

    return evaluate_nodes(problem, design, [when])[when] is not False


def _value(problem: Problem, name: str, text: str) -> float | bool | str:
    """The value of a dimension given as text; of a continuous one, a number within its ends."""
    from dse.errors import InputError
    from dse.units import format_value, parse_quantity

    dimension = problem.dimension(name)
    if dimension.interval is None:
        return dimension.values[problem.digit(name, text)]
    quantity = parse_quantity(text)
    low, high = dimension.interval.low, dimension.interval.high
    if (quantity.unit and quantity.unit.dims) != (dimension.unit and dimension.unit.dims):
        wanted = f"a quantity in {dimension.unit.text}" if dimension.unit else "a number without a unit"
        raise InputError(f"dimension {name!r} needs {wanted}, but got {text!r}")
    if not low <= quantity.value <= high:
        ends = f"{format_value(low, dimension.unit)} to {format_value(high, dimension.unit)}"
        raise InputError(f"dimension {name!r} must be from {ends}, but got {text!r}")
    return quantity.value
