"""Reading what a measurement gave: metrics in base units, or the reason why there are none."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Mapping
from typing import Any

from dse.errors import nearest
from dse.expressions import Kind
from dse.problem import Problem
from dse.units import UnitError, dims_text, parse_quantity, to_base

__all__ = ["Failed", "last_object", "needed_metrics", "quote", "read_metrics", "reason_of"]

_SHOWN = 200  # characters of what was given that a message quotes
_LONGEST = 2000  # characters of a reason


class Failed(Exception):
    """A measurement that gave no result; the message is the trial's reason, which any file can hold."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason_of(reason))


def reason_of(text: str) -> str:
    """``text`` as the log keeps it: no longer than is of use, and with nothing in it that UTF-8 cannot say."""
    cut = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
    return cut.encode("utf-8", "backslashreplace").decode("utf-8")


def needed_metrics(problem: Problem) -> list[str]:
    """The measured metrics that an objective or constraint depends on: without one of them a design fails."""
    roots = [o.node for o in problem.objectives]
    roots += [node for c in problem.constraints for node in (c.bound.lhs, c.bound.rhs)]
    nodes = (problem.graph[number] for number in problem.graph.needed(roots))
    reached = {node.data for node in nodes if node.op == "measured"}
    return [name for name, metric in problem.metrics.items() if metric.measured and name in reached]


def read_metrics(problem: Problem, found: object, *, strict: bool = True) -> dict[str, float]:
    """The measured metrics in base units, from what the user's code returned.

    A metric that no objective or constraint depends on may be missing, None or NaN: it is left out.

    Args:
        strict: whether anything else that is wrong with such a metric is an error too; if not, it is left out as well.

    Raises:
        Failed: it is no mapping, or a metric that is needed is missing, is no number, has another unit or is NaN.
    """
    if not isinstance(found, Mapping):
        raise Failed(f"the measurement must return a mapping of metrics, but got {quote(found)}")
    values = {}
    needed = needed_metrics(problem)
    for name, metric in problem.metrics.items():
        if not metric.measured:
            continue
        if name not in needed:
            value = _spare_metric(problem, name, found.get(name), strict)
            if value is not None:
                values[name] = value
            continue
        if name not in found:
            raise Failed(f"the measurement returned no {name}{nearest(name, [str(key) for key in found])}")
        values[name] = _checked(name, _read_metric(problem, name, found[name]))
    return values


def _spare_metric(problem: Problem, name: str, value: object, strict: bool) -> float | None:
    """The value of a metric that nothing depends on; None where there is none."""
    if value is None:
        return None
    try:
        number = _read_metric(problem, name, value)
    except Failed:
        if strict:
            raise
        return None
    return number + 0.0 if number == number else None


def _read_metric(problem: Problem, name: str, value: object) -> float:
    metric = problem.metrics[name]
    if isinstance(value, str):
        try:
            quantity = parse_quantity(value)
        except UnitError as error:
            raise Failed(f"{name}: {error}") from None
        if quantity.unit is None:
            return _to_base(name, value, metric.unit)
        if quantity.unit.dims != metric.unit.dims:
            expected, got = dims_text(metric.unit.dims), dims_text(quantity.unit.dims)
            raise Failed(f"{name} is in {metric.unit.text} ({expected}), but got {value!r} ({got})")
        return quantity.value
    try:
        number = float(value)  # type: ignore[arg-type]  # numbers of any library
    except OverflowError:
        raise Failed(
            f"{name} is past the largest number, but must be a number in {metric.unit.text}"
        ) from None
    except Exception:  # noqa: BLE001 - whatever the value is, it is no number
        raise Failed(f"{name} must be a number in {metric.unit.text}, but got {quote(value)}") from None
    if isinstance(value, bool) or problem.graph[metric.node].type.kind is not Kind.NUMBER:
        raise Failed(f"{name} must be a number in {metric.unit.text}, but got {quote(value)}")
    return number if not math.isfinite(number) else _to_base(name, repr(number), metric.unit)


def _to_base(name: str, text: str, unit: Any) -> float:
    try:
        return to_base(text, unit)
    except UnitError as error:
        raise Failed(f"{name}: {error}") from None


def _checked(name: str, value: float) -> float:
    if value != value:
        raise Failed(f"{name} is NaN")
    return value + 0.0


def quote(value: object) -> str:
    """``value`` as a message shows it, however large, deep or strange it is."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a number of too many digits, a nesting too deep, a broken __repr__
        try:
            text = reprlib.repr(value)
        except Exception:  # noqa: BLE001 - the same
            text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def last_object(program: str, out: bytes) -> object:
    """The JSON of a program's whole output, or else of its last line.

    Raises:
        Failed: there is none, or a name is given twice.
    """
    text = out.decode(errors="replace").strip()
    for candidate in (text, text.rpartition("\n")[2]):
        try:
            return json.loads(candidate, object_pairs_hook=_unique)
        except (ValueError, RecursionError):
            continue
    raise Failed(f"{program} must print a JSON object of metrics, but printed {quote(text)}")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Failed(f"the measurement gives {twice} twice")
    return found
