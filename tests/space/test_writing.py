"""Data written as YAML reads back as the same data."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.space.document import parse
from dse.space.nodes import plain
from dse.space.writing import as_yaml

TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Co", "Cn", "Zl", "Zp"]), max_size=40
)
VALUES = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | TEXTS
DATA = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=40,
)


def read(text: str) -> Any:
    return plain(parse(text)[0])


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(TEXTS.filter(bool), DATA, min_size=1, max_size=5))
def test_any_data(data: dict[str, Any]) -> None:
    assert json.dumps(read(as_yaml(data))) == json.dumps(data)


def test_it_reads_like_a_space_file() -> None:
    data = {
        "dse": 1,
        "name": "x",
        "dimensions": {"a": [1, 2.5, "on"], "b": list(range(60))},
        "rules": {"r": {"check": "a < b"}},
    }
    assert as_yaml(data) == (
        "dse: 1\nname: x\ndimensions:\n  a: [1, 2.5, on]\n"
        "  b: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,\n"
        "    28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53,\n"
        '    54, 55, 56, 57, 58, 59]\nrules:\n  r: {check: "a < b"}\n'
    )


@pytest.mark.parametrize(
    "text", ["true", "null", "12", "1e5", ".inf", "a: b", "- a", "", "#", "y'all", "1:10", "a b"]
)
def test_texts_that_look_like_something_else(text: str) -> None:
    assert read(as_yaml({"k": text, "l": [text]})) == {"k": text, "l": [text]}
