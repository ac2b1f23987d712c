"""Dimensions of which only some values are left: rows of a table that the file lists, or what ``--set`` names."""

from __future__ import annotations

from pathlib import Path

import pytest

from dse import search
from dse.errors import SpaceError
from dse.evaluation import judge
from dse.evaluation.verdict import State
from dse.problem import Design, Problem
from dse.problem.library import load
from dse.study.study import Study
from dse.study.verify import verify

SPACE = """\
dse: 1
name: chips
inputs: {accept: 0, limit: 8 ms}
tables:
  chips:
    columns: {memory: GB}
    rows: {a: [10], b: [20], c: [30], d: [40]}
  rates: {keys: [tp, chip], unit: 1, rows: {1: {a: 1, b: 2, c: 3, d: 4}, 2: {a: 5, b: 6, c: 7}, 4: {a: 8, b: 9, c: 1}}}
dimensions:
  chip: {table: chips, choices: [c, a, b]}
  tp: [1, 2, 4]
  wait: {choices: [1, 2, 3], unit: ms}
  size: {range: [1, 8]}
  draft: {choices: [0, 2, 4], when: accept > 0}
rules:
  known: {check: "chip != 'd' or tp == 1", because: "{chip} is known for TP 1 only"}
metrics:
  cost: {expr: "chip.memory * tp * rates[tp, chip] + draft * size * 1 GB", unit: GB}
  time: {expr: "wait * tp", unit: ms}
objectives: {cost: minimize, time: minimize}
constraints: {time: "<= limit"}
teams: {one: {chip: [a, b], tp: [1, 2]}, two: {chip: c}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "chips.yaml"
    path.write_text(SPACE)
    return path


def front(problem: Problem, solver: str, team: str | None = None) -> list[object]:
    result = search(problem, solver=solver, team=team)
    return [(point.design, dict(point.metrics), point.ties) for point in result.front]


def test_rows_that_the_file_lists_are_the_values_in_that_order(path: Path) -> None:
    problem = load(path)
    assert problem.dimension("chip").values == ("c", "a", "b")
    assert problem.size == 3 * 3 * 3 * 8 * 3
    design: Design = {"chip": "a", "tp": 2.0, "wait": 0.001, "size": 1.0, "draft": 0.0}
    assert problem.design_at(problem.digits(design)) == design
    assert judge(problem, design).objectives == (10e9 * 2 * 5, 0.002)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ("[a, e]", "found 'e', expected a row of chips; known: a, b, c, d"),
        ("[a, 1]", "found the number 1, expected the text like the first value; do not mix kinds"),
    ],
)
def test_choices_that_are_no_rows(path: Path, choices: str, message: str) -> None:
    path.write_text(SPACE.replace("[c, a, b]", choices))
    with pytest.raises(SpaceError) as caught:
        load(path)
    assert str(caught.value) == f"{path}:10:37: dimensions.chip.choices.1: {message}"


def test_the_narrowed_space_is_the_whole_one_with_these_values_fixed(path: Path, tmp_path: Path) -> None:
    whole = load(path)
    narrow = load(path, {"chip": ["b", "c"], "tp": "2,4", "wait": "2 ms", "size": "[8, 3]"})
    assert narrow.dimension("chip").values == ("c", "b")
    assert narrow.sizes == (2, 2, 1, 2, 3)
    fixed = front(whole, "exhaustive", "chip=b,c & tp=2,4 & wait=2 ms & size=3,8")
    assert front(narrow, "exhaustive") == fixed
    assert front(narrow, "pareto") == fixed
    study = Study(narrow, solver="pareto", folder=tmp_path / "run")
    study.run()
    again = Study.open(tmp_path / "run")
    assert again.problem.overrides == (
        ("chip", '["b", "c"]'),
        ("tp", "2,4"),
        ("wait", "2 ms"),
        ("size", "[8, 3]"),
    )
    assert again.problem == narrow
    assert verify(tmp_path / "run").problem == narrow


def test_teams_keep_what_is_left_of_their_values(path: Path) -> None:
    problem = load(path, {"chip": "a"})
    assert problem.team("one").boxes[0].allowed[:2] == ((0,), (0, 1))
    assert search(problem, team="two").accounting.outside == problem.size


def test_an_inactive_value_that_is_left_out_leaves_designs_in_which_the_dimension_is_active(
    path: Path,
) -> None:
    asleep = search(load(path, {"draft": "2,4"}))
    assert (asleep.funnel.legal, asleep.accounting.illegal_by["inactive"]) == (0, 3 * 3 * 3 * 8 * 2)
    awake = load(path, {"draft": "2", "accept": "0.5"})
    assert search(awake).funnel.legal == awake.size
    kept = load(path, {"draft": "4,0"})
    assert search(kept).funnel.legal == kept.size // 2
    design = kept.design_at((0, 0, 0, 0, 1))
    assert judge(kept, design).state is State.ILLEGAL


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("chip", "d", "dimension 'chip' has no value 'd'; known: c, a, b"),
        ("chip", "[a, bb]", "dimension 'chip' has no value 'bb'; did you mean 'b'?"),
        ("wait", "2", "dimension 'wait' has no value '2'; known: 1 ms, 2 ms, 3 ms"),
        ("tp", "3", "dimension 'tp' has no value '3'; the nearest are 2 and 4"),
        ("tp", "0", "dimension 'tp' has no value '0'; the nearest is 1"),
        ("tp", "[]", "found an empty list, expected values of tp"),
        ("chi", "a", "found 'chi', expected an input or a dimension; did you mean 'chip'?"),
    ],
)
def test_what_is_refused(path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(SpaceError) as caught:
        load(path, {name: text})
    assert str(caught.value) == f"--set {name}={text}: {message}"


def test_a_continuous_dimension_becomes_the_values_within_its_ends(path: Path) -> None:
    path.write_text(SPACE.replace("size: {range: [1, 8]}", "size: {range: [0.5, 8.5]}"))
    assert load(path, {"size": "2.25,1"}).dimension("size").values == (1.0, 2.25)
    with pytest.raises(SpaceError, match=r"dimension 'size' has no value '9', only any from 0.5 to 8.5"):
        load(path, {"size": "9"})
