"""Plans as JSON: inputs and design as the command line takes them."""

from __future__ import annotations

import json
from typing import Any

from dse.errors import InputError
from dse.problem import Problem
from dse.study.exports import KnownPlan, Plan, Written

__all__ = ["load_json", "read_json", "write_json"]


def write_json(plan: Plan) -> Written:
    """The plan as an object with ``space``, ``inputs`` and ``design``: texts, with units where they have one."""
    data = {
        "space": plan.space,
        "inputs": {name: plan.texts[name] for name in plan.inputs},
        "design": {name: plan.texts[name] for name in plan.design},
    }
    return Written(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def load_json(text: str, file: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        InputError: the text is none; says where.
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{file}:{error.lineno}:{error.colno}: this is no JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{file}: this JSON is nested too deep to be read") from None
    except ValueError as error:
        raise InputError(f"{file}: this JSON cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{file}: expected a JSON object, but got {type(data).__name__}")
    return data


def read_json(text: str, file: str, problem: Problem) -> KnownPlan | None:
    """A plan that :func:`write_json` wrote; None where the object is something else.

    Raises:
        InputError: the text is no JSON object, or the plan is of another space.
    """
    data = load_json(text, file)
    if "design" not in data or "inputs" not in data:
        return None
    if data.get("space") not in (None, problem.name):
        raise InputError(f"{file}: the plan is for the space {data['space']!r}, not for {problem.name!r}")
    parts: list[dict[str, str]] = []
    for key in ("inputs", "design"):
        given = data[key]
        if not isinstance(given, dict) or not all(
            isinstance(v, (str, bool, int, float)) for v in given.values()
        ):
            raise InputError(f"{file}: {key!r} must be an object of texts, numbers, true and false")
        parts.append({name: _text(value) for name, value in given.items()})
    places = {name: f"{file}: {name}={value}" for part in parts for name, value in part.items()}
    return KnownPlan(parts[0], parts[1], places)


def _text(value: str | float | bool) -> str:
    return value if isinstance(value, str) else json.dumps(value)
