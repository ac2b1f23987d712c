"""Proving boxes again: what bounds show, what takes parts, what is wrong, and what is left open."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest

from dse.problem import Problem
from dse.study import reproof, stated
from dse.study.certificate import DOMINATED, INFINITE, JUDGED, OUTSIDE, RULES, Axis
from dse.study.replay import Tree
from dse.study.reproof import LEFT_OPEN, PROVED, Finding, Reprover
from dse.study.stated import Front
from tests.study.problems import Build

# -- the front -------------------------------------------------------------------------------------


def beaten(front: Front, low: list[float], first: tuple[int, ...] = ()) -> bool:
    """Worked out for one vector, in plain Python."""
    if (low[front.objective], first) <= (front.worst, front.last):
        return False
    reach = [x + front.epsilon * abs(x) if front.epsilon else x for x in low]
    return any(
        all(a <= b for a, b in zip(f, reach, strict=True)) and (front.epsilon > 0 or f != low)
        for f in front.vectors.tolist()
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
@pytest.mark.parametrize("worst", [-math.inf, 4.0])
def test_what_the_front_beats(epsilon: float, worst: float) -> None:
    draw = np.random.default_rng(1)
    for k in (1, 2, 3):
        drawn = draw.integers(-6, 7, size=(60, k)).astype(float)
        front = Front(drawn, epsilon, k - 1, worst)
        low = np.concatenate([draw.integers(-6, 7, size=(300, k)), drawn, np.full((1, k), math.inf)])
        low[:2, 0] = -math.inf
        assert front.beats(low).tolist() == [beaten(front, row) for row in low.tolist()]


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_what_ties_with_the_last_one_listed_is_beaten_from_its_index_on(epsilon: float) -> None:
    draw = np.random.default_rng(3)
    drawn = draw.integers(-6, 3, size=(60, 2)).astype(float)
    front = Front(drawn, epsilon, 1, 1.0, (1, 0, 2))
    low = draw.integers(-1, 4, size=(400, 2)).astype(float)
    first = draw.integers(0, 3, size=(3, 400))
    right = [beaten(front, row, tuple(own)) for row, own in zip(low.tolist(), first.T.tolist(), strict=True)]
    assert front.beats(low, list(first)).tolist() == right
    tied = low[:, 1] == 1.0
    assert len({right[at] for at in np.flatnonzero(tied)}) == 2
    assert not front.beats(low)[tied].any()  # any may be listed


def test_many_vectors_are_compared_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(2)
    front, low = Front(draw.random((200, 3))), draw.random((5_000, 3)) * 1.5
    right = front.beats(low)
    assert 0 < np.count_nonzero(~right) < 5_000
    for pairs in (1 << 30, 10_000, 1_000):
        monkeypatch.setattr(stated, "_PAIRS", pairs)
        assert (front.beats(low) == right).all()
    monkeypatch.setattr(stated, "_PAIRS", 1)
    assert right[:50].tolist() == [beaten(front, row) for row in low[:50].tolist()]


def test_an_empty_front_beats_nothing() -> None:
    assert not Front(np.empty((0, 2))).beats(np.array([[1.0, 1.0], [math.inf, math.inf]])).any()


# -- boxes of many designs -------------------------------------------------------------------------

N, SIZE = 12, 8


def great() -> Problem:
    """7e10 designs; a sum of squares against a sum of products, with a rule, constraints and an infinity."""
    build = Build()
    for at in range(N):
        build.dimension(f"d{at}", [float(v) for v in range(SIZE)])
    names = [f"d{at}" for at in range(N)]
    build.rule("first", "d0 < 6").rule("sum", " + ".join(names) + " < 70")
    build.metric("cost", " + ".join(f"{name} ** 2" for name in names))
    build.metric("other", " + ".join(f"(7 - {a}) * (7 - {b})" for a, b in itertools.pairwise(names)))
    build.metric("wall", "1 / max(0, 5 - d1)").metric("root", "sqrt(d2 - 3) + " + " + ".join(names))
    build.minimize("cost").minimize("other").minimize("wall")
    build.constrain("cost", "cost <= 300").constrain("root", "root >= 0")
    build.team("few", where="d3 + d4 > 2")
    return build.problem("great")


class Case:
    """Boxes of the problem, given by the dimensions that are fixed or narrowed."""

    def __init__(self, front: list[list[float]], team: str = "all") -> None:
        self.problem = great()
        tree = Tree([Axis(at, SIZE, 1) for at in range(N)], [SIZE] * N)
        self.reprover = Reprover(
            self.problem, self.problem.team(team), Front(np.array(front).reshape(-1, 3)), tree
        )

    def prove(self, code: int, ends: dict[int, Any]) -> Finding:
        full = dict.fromkeys(range(N), (0, SIZE))
        fixed = {at: end if isinstance(end, tuple) else (end, end + 1) for at, end in ends.items()}
        (found,) = self.reprover.prove(code, [tuple({**full, **fixed}.values())], [1])
        return found


FIRST, SUM, COST, ROOT = RULES, RULES + 1, RULES + 2, RULES + 3
GOOD = [[10.0, 400.0, 0.2]]


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        (FIRST, {0: 6}),
        (FIRST, {0: (6, 8)}),
        (SUM, dict.fromkeys(range(N), (6, 8))),
        (COST, dict.fromkeys(range(7), (6, 8))),
        (ROOT, {2: 1}),  # no number
        (INFINITE, {1: (5, 8)}),
        (DOMINATED, {0: 4, 1: (1, 5), 5: (0, 1), 6: (0, 1), 7: (0, 1), 8: (0, 1), 9: (0, 1), 10: (0, 1)}),
    ],
)
def test_bounds_show_what_holds_of_large_boxes(
    code: int, ends: dict[int, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reprover, "_settled", None)
    front = [[0.0, 250.0, 0.2]] if code == DOMINATED else GOOD
    assert Case(front).prove(code, ends) == PROVED


@pytest.mark.parametrize(
    ("code", "ends", "said"),
    [
        (FIRST, {0: (5, 8)}, "its designs break rule first, but d0=5 .* does not"),
        (SUM, {0: (0, 6)}, "its designs break rule sum, but .* does not"),
        (COST, {0: (3, 6), 1: (3, 5)}, "its designs break constraint cost <= 300, but .* does not"),
        (ROOT, {2: (2, 8)}, "its designs break constraint root >= 0, but .* does not"),
        (INFINITE, {1: (4, 8), 0: 1}, "an objective of its designs is infinite, but .* is feasible"),
        (DOMINATED, {0: (0, 6)}, "the front is better than its designs, but not than "),
        (OUTSIDE, {}, "all may not choose its designs, but may choose "),
    ],
)
def test_a_wrong_box_of_many_designs_is_found_out(code: int, ends: dict[int, Any], said: str) -> None:
    found = Case(GOOD).prove(code, ends)
    assert not found.proved
    assert re.search(said, found.wrong)
    assert "does not agree" not in found.wrong


def test_a_large_box_is_shown_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two conditions that each can hold in the box, and never together."""
    build = Build()
    for at in range(N):
        build.dimension(f"d{at}", [float(v) for v in range(SIZE)])
    rest = " + ".join(f"d{at}" for at in range(1, N))
    build.rule("both", f"abs({rest} + d0 * 100 - 300) < 20 and abs({rest} + d0 * 100 - 400) < 20")
    problem = build.metric("cost", "d0").minimize("cost").problem()
    order = [*range(1, N), 0]
    for first in (order, order[::-1]):
        tree = Tree([Axis(at, SIZE, 1) for at in first], [SIZE] * N)
        reprover = Reprover(problem, problem.everything, Front(np.array([[0.0]])), tree)
        cut: list[int] = []
        monkeypatch.setattr(
            reprover, "_cut", lambda code, box, cut=cut, own=reprover._cut: cut.append(code) or own(code, box)
        )
        assert reprover.prove(RULES, [((0, SIZE),) * N], [0]) == [PROVED if first[0] == 0 else LEFT_OPEN]
        assert (len(cut) == 1) == (first[0] == 0)


def test_outside_is_shown_by_conditions_and_by_values() -> None:
    case = Case(GOOD, "few")
    assert case.prove(OUTSIDE, {3: (0, 2), 4: (0, 2)}) == PROVED
    found = case.prove(OUTSIDE, {3: (0, 2), 4: (0, 3)})
    assert found.wrong.startswith("few may not choose its designs, but may choose d0=0 d1=0 d2=0 d3=1 d4=2")


def test_what_is_too_hard_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Designs that contradict may be there, and too rare to be drawn: nothing is claimed of such a box."""
    build = Build()
    for at in range(N):
        build.dimension(f"d{at}", [float(v) for v in range(SIZE)])
    names = [f"d{at}" for at in range(N)]
    squares = " + ".join(f"({name} - {at % SIZE}) ** 2" for at, name in enumerate(names))
    products = " + ".join(f"{a} * {b}" for a, b in itertools.pairwise(names))
    build.rule("odd", f"({products}) * 7919 % 4 == 1 and ({squares}) % 3 == 5")
    problem = build.metric("cost", "d0").minimize("cost").problem()
    tree = Tree([Axis(at, SIZE, 1) for at in range(N)], [SIZE] * N)
    reprover = Reprover(problem, problem.everything, Front(np.array([[0.0]])), tree)
    monkeypatch.setattr(reproof, "PARTS", 3)
    assert reprover.prove(RULES, [((0, SIZE),) * N], [0]) == [LEFT_OPEN]


def test_judged_boxes() -> None:
    case = Case(GOOD)
    fixed = dict.fromkeys(range(N), 0)
    assert case.prove(JUDGED, {**fixed, 2: 3}).wrong.endswith("belongs on the front")
    assert case.prove(JUDGED, {**fixed, 0: 7}).wrong.endswith("is illegal")
    assert case.prove(JUDGED, dict.fromkeys(range(N), 5)) == PROVED  # infeasible
    assert (
        Case(GOOD, "few")
        .prove(JUDGED, fixed)
        .wrong.startswith("its designs were judged, but few may not choose")
    )
    best = [[9.0, 1e9, 1.0]]
    assert Case(best).prove(JUDGED, {**fixed, 2: 4}).wrong.endswith("belongs on the front")
    assert Case([[9.0, 7.0, 0.2]]).prove(JUDGED, {**fixed, 2: 4}) == PROVED
