"""The digest changes with everything that a result depends on, and with nothing else."""

import copy
from typing import Any

import pytest

from dse.problem.library import load

SPACE: dict[str, Any] = {
    "dse": 1,
    "name": "digest",
    "title": "Anything",
    "inputs": {"limit": "10 ms"},
    "tables": {"parts": {"columns": {"work": "Gop"}, "rows": {"a": [1], "b": [2]}}},
    "dimensions": {
        "part": {"table": "parts"},
        "rate": {"choices": [1, 2], "unit": "Gop/s"},
        "extra": {"choices": [0, 1], "when": "part == 'a'", "otherwise": 0},
    },
    "rules": {"some": {"check": "extra < 2", "because": "no"}},
    "lets": {"time": "part.work / rate"},
    "metrics": {
        "latency": {"expr": "time", "unit": "ms"},
        "twice": {"expr": "2 * time", "unit": "ms"},
        "seen": {"measured": True, "unit": "ms"},
    },
    "objectives": {"latency": "minimize"},
    "constraints": {"latency": "<= limit"},
    "teams": {"few": {"part": "a"}},
    "measure": {"command": ["true"]},
}

CHANGES: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "name": (("name",), "other"),
    "input": (("inputs", "limit"), "11 ms"),
    "cell": (("tables", "parts", "rows", "a"), [3]),
    "value": (("dimensions", "rate", "choices"), [1, 3]),
    "unit of a dimension": (("dimensions", "rate", "unit"), "Mop/s"),
    "condition": (("dimensions", "extra", "when"), "part == 'b'"),
    "otherwise": (("dimensions", "extra", "otherwise"), 1),
    "rule": (("rules", "some", "check"), "extra < 1"),
    "expression": (("metrics", "twice", "expr"), "3 * time"),
    "unit of a metric": (("metrics", "twice", "unit"), "s"),
    "unit of a measured metric": (("metrics", "seen", "unit"), "s"),
    "direction": (("objectives", "latency"), "maximize"),
    "bound": (("constraints", "latency"), "< limit"),
    "team": (("teams", "few", "part"), "b"),
    "measuring": (("measure", "command"), ["false"]),
}


def changed(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    space = copy.deepcopy(SPACE)
    place: Any = space
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return space


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_that_matters_changes_the_digest(change: tuple[tuple[str | int, ...], Any]) -> None:
    assert load(changed(*change)).digest != load(SPACE).digest


def test_two_metrics_with_their_names_swapped_differ() -> None:
    swapped = copy.deepcopy(SPACE)
    swapped["metrics"]["latency"]["expr"], swapped["metrics"]["twice"]["expr"] = "2 * time", "time"
    assert load(swapped).digest != load(SPACE).digest


@pytest.mark.parametrize("path", [("title",), ("rules", "some", "because")])
def test_words_do_not_change_the_digest(path: tuple[str, ...]) -> None:
    assert load(changed(path, "other words")).digest == load(SPACE).digest


def test_an_override_is_as_good_as_the_file() -> None:
    assert load(SPACE, {"limit": "11 ms"}).digest == load(changed(("inputs", "limit"), "11 ms")).digest
