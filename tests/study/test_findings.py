"""``check`` of spaces in which a random design is hardly ever legal: legal ones are drawn by number."""

from __future__ import annotations

from typing import Any

import dse
from dse.study.findings import findings


def space(check: str, expr: str = "a + b", bound: str = "<= 10000000") -> dict[str, Any]:
    """10^12 designs, of which ``check`` leaves those that are equal in all four dimensions, or fewer."""
    return {
        "dse": 1,
        "name": "rare",
        "dimensions": {name: {"range": [1, 1000]} for name in "abcd"},
        "rules": {
            "same": {"check": "a == b and b == c and c == d", "because": "they differ"},
            "own": {"check": check, "because": "so it is"},
        },
        "metrics": {"x": {"expr": expr, "unit": 1}},
        "objectives": {"x": "minimize"},
        "constraints": {"x": bound},
    }


def test_all_rare_legal_designs_are_looked_at() -> None:
    assert findings(dse.load(space("a > 3"))) == []
    (found,) = findings(dse.load(space("a > 3", bound="<= 7")))
    assert found.endswith("no legal design meets x <= 7")
    (found,) = findings(dse.load(space("a > 3", expr="1 / (a - 500 + b - b) + c - c")))
    assert found.endswith("infinite for 1 legal design, so infeasible")


def test_that_no_design_is_legal_is_proven() -> None:
    assert findings(dse.load(space("a + b == 2 * c + 1"))) == ["no design is legal"]


def test_of_many_rare_ones_some_are_drawn() -> None:
    many = space("a > 3")
    many["dimensions"]["e"] = {"range": [1, 1_000_000]}
    many["metrics"]["x"]["expr"] = "a + b + 0 * e"
    assert findings(dse.load(many)) == []
    many["constraints"] = {"x": "<= 7"}
    (found,) = findings(dse.load(many))
    assert "no legal design meets x <= 7 among " in found
    assert found.endswith(" drawn at random")
