"""Designs and measurements as the command line gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dse.problem import Design, Dimension, Problem

__all__ = ["active", "complete", "numbers", "value_of"]


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
    """The design of these values, filled in where only one value is possible and where a dimension is not active.

    Conditions are decided in the order of the dimensions. One that hangs on a missing value is decided for the value
    that the error proposes, so that what it proposes makes a design.

    Raises:
        InputError: an unknown dimension or value, or active dimensions without a value.
    """
    from dse.errors import InputError
    from dse.problem import shown

    for name in given:
        problem.dimension(name)
    hull = [None] * len(problem.dimensions) if problem.continuous else problem.team(team).hull(problem.sizes)
    design: Design = {}
    missing: dict[str, str] = {}
    for dimension, allowed in zip(problem.dimensions, hull, strict=True):
        name = dimension.name
        if name in given:
            design[name] = value_of(problem, name, given[name])
        elif allowed is not None and team is not None and len(allowed) == 1:
            design[name] = dimension.values[allowed[0]]
        elif not active(problem, dimension, design):
            design[name] = dimension.values[dimension.otherwise]
        elif len(dimension.values) == 1:
            design[name] = dimension.values[0]
        elif dimension.interval is not None:
            design[name] = dimension.interval.low
            missing[name] = shown(dimension.interval.low, dimension.unit)
        else:
            design[name] = dimension.values[allowed[0] if allowed else 0]
            missing[name] = shown(design[name], dimension.unit)
    if missing:
        examples = " ".join(f"{name}={value}" for name, value in missing.items())
        raise InputError(f"no value for {', '.join(missing)}; add for example {examples}")
    return design


def active(problem: Problem, dimension: Dimension, design: Design) -> bool:
    """Whether a dimension is active, by the ones before it; one that cannot be decided counts as active."""
    from dse.evaluation import evaluate_nodes

    when = dimension.when
    return when is None or evaluate_nodes(problem, design, [when])[when] is not False


def value_of(problem: Problem, name: str, text: str) -> float | bool | str:
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
