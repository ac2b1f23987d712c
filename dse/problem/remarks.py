"""What a space says of its metrics beside their values: the parts of a sum, the best ever measured, the model's error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dse.errors import ExpressionError, nearest
from dse.problem.building import Building
from dse.problem.parts import Best, Metric
from dse.problem.tracing import check_unit
from dse.space.fields import read_share
from dse.space.nodes import Path

__all__ = ["build_errors", "with_remarks"]


def with_remarks(building: Building, metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """The metrics with their parts and records. What is wrong with these is reported."""
    found = {name: _with_record(building, metric) for name, metric in metrics.items()}
    for name, declared in building.declaration.model.metrics.items():
        if declared.parts is None or name not in found:
            continue
        for at, part in enumerate(declared.parts):
            problem = _part_problem(building, metrics, name, part, declared.parts[:at])
            if problem:
                building.report(("metrics", name, "parts", at), problem)
        found[name] = replace(found[name], parts=declared.parts)
    for name, metric in list(found.items()):
        for trail in _below(found, name, (name,)):
            if trail[-1] == name:
                building.report(
                    ("metrics", name, "parts"), f"{' -> '.join(trail)}: a metric cannot be a part of itself"
                )
                found[name] = replace(metric, parts=())
                break
    return found


def _part_problem(
    building: Building, metrics: Mapping[str, Metric], name: str, part: str, before: tuple[str, ...]
) -> str | None:
    """What keeps a metric from being a part of another; None when nothing does."""
    declared = building.declaration.model.metrics
    if part not in metrics:
        if part in declared or building.names.open:
            return None  # it could not be built, which is reported, or is not known yet
        return f"found {part!r}, expected a metric{nearest(part, metrics)}"
    if part in before:
        return f"found {part!r} again, expected every part once"
    whole = metrics[name].unit
    if metrics[part].unit.dims != whole.dims:
        return f"found {part!r}, which is in {metrics[part].unit.text}, expected a metric like {name}, in {whole.text}"
    return None


def _below(metrics: Mapping[str, Metric], name: str, trail: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The ways down from a metric to its parts; one that comes round ends there."""
    for part in metrics[name].parts if name in metrics else ():
        yield (*trail, part)
        if part not in trail:
            yield from _below(metrics, part, (*trail, part))


def _with_record(building: Building, metric: Metric) -> Metric:
    declared = building.declaration.model.metrics.get(metric.name)
    if declared is None or declared.record is None:
        return metric
    ((side, expression),) = declared.record.items()
    path: Path = ("metrics", metric.name, "record")
    if building.declaration.node((*path, side)) is not None:
        path = (*path, side)
    scope = building.names.view(("dimension", "input", "let", "table", "metric"), "")
    node = building.expression(path, expression, scope)
    if node is None:
        return metric
    try:
        check_unit(building.names, node, metric.unit, f"the record of {metric.name}")
    except ExpressionError as error:
        building.report(path, error.message)
        return metric
    return replace(metric, record=Best(node, side == "above", building.source(path, expression)))


def build_errors(building: Building, metrics: Mapping[str, Metric]) -> dict[str, float]:
    """The declared errors of metrics, as shares."""
    errors: dict[str, float] = {}
    for name, declared in building.declaration.model.error.items():
        share = read_share(declared)
        assert share is not None  # checked by the schema
        if name in metrics:
            errors[name] = share
        elif name not in building.declaration.model.metrics and not building.names.open:
            building.report_key(("error", name), f"found {name!r}, expected a metric{nearest(name, metrics)}")
    return errors
