"""Numbers that would lose digits, units where none can be, and names that combine teams are refused."""

import copy
from typing import Any

import pytest

from dse.errors import SpaceError
from dse.problem.library import load

SPACE: dict[str, Any] = {
    "dse": 1,
    "name": "literals",
    "dimensions": {"a": [1, 2]},
    "metrics": {"m": {"expr": "a", "unit": 1}},
    "objectives": {"m": "minimize"},
}


def refused(**sections: Any) -> str:
    with pytest.raises(SpaceError) as caught:
        load(copy.deepcopy(SPACE) | sections)
    return str(caught.value)


@pytest.mark.parametrize("exponent", ["2 s", "50 percent", "0.5 s"])
def test_an_exponent_has_no_unit(exponent: str) -> None:
    assert "an exponent is a number without a unit" in refused(
        metrics={"m": {"expr": f"a ** {exponent}", "unit": 1}}
    )


def test_integers_past_two_to_the_53_are_refused_wherever_they_stand() -> None:
    large = 2**53 + 1
    assert "2^53" in refused(inputs={"n": large})
    assert "2^53" in refused(metrics={"m": {"expr": f"a * ({large} B / 1 B)", "unit": 1}})
    assert "2^53" in refused(tables={"t": {"columns": {"c": 1}, "rows": {"r": [large]}}})
    assert load(SPACE | {"inputs": {"n": large - 1}}).inputs["n"].value == float(large - 1)


@pytest.mark.parametrize("text", ["10 mss", "10mss", "1.5GBps"])
def test_a_misspelt_quantity_is_no_text(text: str) -> None:
    assert "did you mean" in refused(inputs={"limit": text})


@pytest.mark.parametrize("text", ["8x7b", "llama-70b", "4-bit", "2024-01-01"])
def test_a_text_may_begin_with_a_digit(text: str) -> None:
    assert load(SPACE | {"inputs": {"model": text}}).inputs["model"].value == text


@pytest.mark.parametrize("name", ["x | y", "x&y", " x "])
def test_a_team_is_not_named_like_a_combination(name: str) -> None:
    message = refused(teams={"x": {}, "y": {}, name: {"a": 1}})
    assert "expected one without & and |" in message
