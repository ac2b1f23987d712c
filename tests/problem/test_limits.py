"""Limits of inputs: one located error before anything is searched, wherever the value comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dse
from dse.errors import InputError, SpaceError
from dse.problem.limits import Limits
from dse.units import parse_quantity, parse_unit

SPACE = """
dse: 1
name: s
tables: {t: {columns: {c: 1}, rows: {r: [1]}}}
inputs:
  count: {default: 4, whole: true, at_least: 1, at_most: 64}
  share: {default: 0.5, above: 0, below: 1}
  wait: {default: 10 ms, at_least: 1 us}
  loss: {default: 3 percent, at_most: 5 percent}
  name: {default: some}
dimensions: {a: [1, 2]}
metrics: {m: {expr: a * count * share, unit: 1}}
objectives: {m: minimize}
constraints: {m: <= 1}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text(SPACE, encoding="utf-8")
    return tmp_path / "s.yaml"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("count", "0", "input 'count' must be a whole number from 1 to 64, but got 0"),
        ("count", "2.5", "input 'count' must be a whole number from 1 to 64, but got 2.5"),
        ("count", "1e9", "input 'count' must be a whole number from 1 to 64, but got 1e9"),
        ("count", "-5", "input 'count' must be a whole number from 1 to 64, but got -5"),
        ("share", "0", "input 'share' must be a number above 0 and below 1, but got 0"),
        ("share", "1", "input 'share' must be a number above 0 and below 1, but got 1"),
        ("wait", "0 s", "input 'wait' must be a quantity of at least 0.001 ms, but got 0 s"),
        ("loss", "6 percent", "input 'loss' must be a quantity of at most 5 %, but got 6 percent"),
        ("inputs.count", "65", "input 'count' must be a whole number from 1 to 64, but got 65"),
        ("inputs.count.default", "65", "found 65, expected a whole number from 1 to 64"),
        ("inputs.count.at_most", "3", "found 4, expected a whole number from 1 to 3"),
        ("inputs.wait.at_least", "1", "found 1, expected a quantity in ms, like the default"),
        ("inputs.loss.at_most", "0.1", "found 0.1, expected a quantity in percent, like the default"),
        ("inputs.share.below", "1 ms", "found '1 ms', expected a number, like the default"),
        ("inputs.name.whole", "true", "found 'whole' beside some, expected it beside a number"),
        ("inputs.wait.whole", "true", "found 'whole' beside a quantity, expected it beside a plain number"),
        ("inputs.count.grow", "1.5", "found 1.5, expected a whole number, as the input is one"),
    ],
)
def test_a_value_past_its_limits_is_refused_where_it_was_set(
    path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(SpaceError) as caught:
        dse.load(path, {name: text})
    (found,) = caught.value.diagnostics
    assert message in found.message
    wanted = str(path) if name == "inputs.count.at_most" else f"--set {name}="
    assert found.location.file.startswith(wanted)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("count", "1"),
        ("count", "64"),
        ("count", "6.4e1"),
        ("share", "0.999"),
        ("wait", "1 us"),
        ("loss", "5 percent"),
    ],
)
def test_the_ends_that_are_allowed_are(path: Path, name: str, text: str) -> None:
    assert dse.load(path, {name: text}).inputs[name].value == pytest.approx(parse_quantity(text).value)


def test_a_default_past_its_limits_is_an_error_at_its_line(path: Path) -> None:
    path.write_text(SPACE.replace("default: 4", "default: 0"), encoding="utf-8")
    with pytest.raises(
        SpaceError, match=r"s.yaml:6:20: inputs.count.default: found 0, expected a whole number"
    ):
        dse.load(path)


@pytest.mark.parametrize("value", [0, 2.5, -1.0, "65", float("inf")])
def test_planners_and_problems_refuse_the_same(path: Path, value: Any) -> None:
    problem = dse.load(path)
    with pytest.raises(InputError, match="must be a whole number from 1 to 64"):
        problem.with_inputs({"count": value})
    with pytest.raises(InputError, match="must be a whole number from 1 to 64"):
        dse.Planner(problem).plan({"count": value})
    with pytest.raises(InputError, match=r"must be a quantity of at least 0\.001 ms, but got 0 ms"):
        problem.with_inputs({"wait": parse_quantity("0 ms")})


def test_limits_in_words() -> None:
    assert Limits(at_least=1, whole=True).text(None) == "a whole number of at least 1"
    assert Limits(above=0, at_most=1).text(None) == "a number above 0 and at most 1"
    assert Limits(whole=True).text(None) == "a whole number"
    assert Limits(at_least=1e9, at_most=2e9).text(parse_unit("GB/s")) == "a quantity from 1 GB/s to 2 GB/s"
    assert not Limits(at_least=0).allow(float("nan"))
