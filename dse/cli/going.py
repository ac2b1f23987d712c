"""A design along one dimension: where it comes from, and what is said of it beside the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dse.cli.designing import active, value_of
from dse.cli.designs import assignments
from dse.cli.summary import heading
from dse.cli.text import blocks, paragraph
from dse.errors import InputError
from dse.evaluation import State
from dse.problem import shown
from dse.study.along import Along
from dse.units import format_value

if TYPE_CHECKING:
    from dse.problem import Design, Problem
    from dse.study.result import Result

__all__ = ["along_lines", "design_along", "read_pair"]

_MOST_ROWS = 40
_WHY = {State.FEASIBLE: "", State.ILLEGAL: "not legal", State.FAILED: "failed"}


def read_pair(text: str | None) -> tuple[str, str] | None:
    """Two metrics, ``A,B``.

    Raises:
        InputError: these are not two.
    """
    if text is None:
        return None
    names = [part.strip() for part in text.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise InputError(f"--ridge takes two metrics, as in --ridge compute,transfer, but got {text!r}")
    return names[0], names[1]


def design_along(
    problem: Problem, name: str, given: Mapping[str, str], solve: Callable[[], Result]
) -> tuple[Design, str]:
    """The design of the values that are given: one that leaves dimensions open is filled in from the best that has them.

    Args:
        solve: searches the designs with these values.

    Returns:
        The design, and a remark on where it comes from.

    Raises:
        InputError: an unknown dimension or value, one for the dimension itself, or no design with these values.
    """
    problem.dimension(name)
    if name in given:
        raise InputError(f"{name}={given[name]} fixes the dimension that the plot goes along; leave it out")
    fixed = {key: value_of(problem, key, text) for key, text in given.items()}
    design: Design = {}
    open_ = False
    for dimension in problem.dimensions:
        own = dimension.name
        if own in fixed:
            design[own] = fixed[own]
        elif own == name:
            design[own] = dimension.values[-1] if dimension.values else 0.0
        elif not active(problem, dimension, design):
            design[own] = dimension.values[dimension.otherwise]
        else:
            open_ |= len(dimension.values) != 1
            design[own] = dimension.values[0] if dimension.values else 0.0
    if not open_:
        return design, ""
    result = solve()
    objective = problem.objectives[0]
    if result.front:
        best = min(result.front, key=lambda point: point.objectives[objective.name] * objective.sign)
        return dict(best.design), f"the design with the best {objective.name}"
    if result.nearest_miss is None:
        raise InputError("no design with these values is legal; dse explain says why")
    return dict(result.nearest_miss.design), "the nearest miss, as no design is feasible"


def along_lines(found: Along, remark: str, pair: tuple[str, str] | None = None) -> list[str]:
    """The points as a table, and the ridges in words; of a ``pair`` of metrics without one, which is larger."""
    problem, name = found.problem, found.dimension.name
    rest = found.rest
    lines = heading(problem)
    lines += paragraph(f"along {name}{f', {remark}' if remark else ''}")
    lines += paragraph(assignments(problem, rest), indent=2) if rest else []
    largest = _bounds(found)
    head = [name, *found.metrics, *([_bounded_word(found)] if any(largest) else []), ""]
    rows = [head]
    told = list(zip(found.points, largest, strict=True))
    shown_at = sorted({round(at * (len(told) - 1) / (_MOST_ROWS - 1)) for at in range(_MOST_ROWS)})
    for point, bound in [told[at] for at in shown_at]:
        values = [_text(found, metric, point.metrics.get(metric)) for metric in found.metrics]
        why = ", ".join(f"breaks {broken}" for broken in point.broken) or _WHY.get(point.state, "")
        rows.append(
            [shown(point.value, found.dimension.unit), *values, *([bound] if any(largest) else []), why]
        )
    lines += ["", *(line.rstrip() for line in blocks(rows, fixed=1))]
    if len(shown_at) < len(told):
        lines.append(f"{len(shown_at)} of {len(told)} values; the picture has all")
    if pair is not None and not found.ridges:
        first = next(point.metrics for point in found.points if point.metrics)
        one, two = (first[metric] for metric in pair)
        above = isinstance(one, float) and isinstance(two, float) and one >= two
        larger, other = pair if above else pair[::-1]
        lines += ["", *paragraph(f"no ridge: {larger} is above {other} all along")]
    for ridge in found.ridges:
        at = "" if ridge.at is None else f" at about {format_value(ridge.at, found.dimension.unit, digits=3)}"
        low, high = (shown(value, found.dimension.unit) for value in (ridge.low, ridge.high))
        lines += [
            "",
            *paragraph(f"ridge of {ridge.metric}{at}: {ridge.before} up to {low}, {ridge.after} from {high}"),
        ]
    return lines


def _bounded_word(found: Along) -> str:
    """What the column of :func:`_bounds` is called: only a time is bound by its largest part."""
    unit = found.problem.metrics[found.ridges[0].before].unit
    return "bound by" if ("s", 1) in unit.dims else "largest part"


def _bounds(found: Along) -> Sequence[str]:
    """What bounds the first metric that has a ridge, point by point."""
    if not found.ridges:
        return ["" for _ in found.points]
    ridges = [ridge for ridge in found.ridges if ridge.metric == found.ridges[0].metric]
    values = [point.value for point in found.points]
    texts, now, changes = [], ridges[0].before, {values.index(ridge.high): ridge.after for ridge in ridges}
    for at, point in enumerate(found.points):
        now = changes.get(at, now)
        texts.append(now if point.metrics else "")
    return texts


def _text(found: Along, name: str, value: float | bool | str | None) -> str:
    if value is None:
        return "-"
    return format_value(value, found.problem.metrics[name].unit) if isinstance(value, float) else shown(value)
