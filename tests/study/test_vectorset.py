"""Membership of vectors, also where hashes collide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.study import vectorset
from dse.study.vectorset import VectorSet


@given(st.integers(1, 4), st.integers(0, 40), st.integers(0, 60), st.integers(0, 2**16))
def test_members_are_found_and_others_are_not(k: int, held: int, asked: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.array([0.0, 1.0, -1.0, 1e300, np.inf, -np.inf])
    inside = values[rng.integers(values.size, size=(k, held))]
    questions = values[rng.integers(values.size, size=(k, asked))]
    known = {tuple(column) for column in inside.T}
    found = VectorSet(inside).contains(questions)
    assert found.tolist() == [tuple(column) in known for column in questions.T]


def test_equal_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectorset, "_hashed", lambda columns: np.full(columns.shape[1], 7, dtype=np.uint64))
    columns = np.array([[1.0, 2.0, 3.0, 4.0]])
    found = VectorSet(columns).contains(np.array([[3.0, 9.0, 1.0, 4.0, 5.0]]))
    assert found.tolist() == [True, False, True, True, False]
