"""Problems: indices, identity, inputs, teams and sentences."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.errors import ExpressionError, InputError, SpaceError
from dse.evaluation import member
from dse.problem import Problem, Team
from dse.problem.library import load, locate
from dse.problem.template import parse_template
from tests.expressions.scope import scope
from tests.randomspaces import problem as random_problem
from tests.randomspaces import spaces

# -- designs and indices ------------------------------------------------------------------------------


def test_the_first_dimension_is_slowest() -> None:
    camera = load("camera")
    assert camera.sizes == (4, 5, 3, 2, 2, 2)
    assert camera.digits_of(0) == (0, 0, 0, 0, 0, 0)
    assert camera.digits_of(1) == (0, 0, 0, 0, 0, 1)
    assert camera.digits_of(479) == (3, 4, 2, 1, 1, 1)
    assert [camera.index_of(camera.digits_of(index)) for index in range(480)] == list(range(480))


@pytest.mark.parametrize("index", [-1, 480])
def test_an_index_outside_the_space(index: int) -> None:
    with pytest.raises(InputError, match=f"design index {index} must be from 0 to 479"):
        load("camera").digits_of(index)


def huge() -> Problem:
    return load(
        {
            "dse": 1, "name": "huge", "dimensions": {f"d{n}": {"range": [0, 1]} for n in range(200)},
            "metrics": {"x": {"expr": "d0", "unit": 1}}, "objectives": {"x": "minimize"},
        }
    )  # fmt: skip


@settings(max_examples=30)
@given(st.integers(0, 2**200 - 1))
def test_indices_past_2_to_the_64_are_exact(index: int) -> None:
    found = _HUGE
    assert found.size == 2**200
    digits = found.digits_of(index)
    assert digits == tuple(int(bit) for bit in f"{index:0200b}")
    assert found.index_of(digits) == index


_HUGE = huge()


def test_designs_are_read_from_texts_as_from_values() -> None:
    camera = load("camera")
    texts = {
        "detector": "Det-L", "format": "int8-QAT", "pruning": "none", "distill": "true", "engine": "optimized",
        "hardware": "npu",
    }  # fmt: skip
    digits = camera.digits(texts)
    assert camera.design_at(digits) == {**texts, "distill": True}
    assert camera.digits(camera.design_at(digits)) == digits
    with pytest.raises(InputError, match="'detector' has no value 'det-l'; did you mean 'Det-L'"):
        camera.digits({**texts, "detector": "det-l"})
    with pytest.raises(InputError, match="unknown dimension 'hardwere'; did you mean 'hardware'"):
        camera.digits({**texts, "hardwere": "npu"})
    with pytest.raises(InputError, match="the design has no value for pruning, hardware"):
        camera.digits({name: text for name, text in texts.items() if name not in ("pruning", "hardware")})


def test_numbers_and_flags_do_not_mix() -> None:
    found = load(
        {
            "dse": 1, "name": "kinds",
            "dimensions": {"n": [1, 2], "flag": [False, True], "t": {"choices": [1, 1000], "unit": "ms"}},
            "metrics": {"x": {"expr": "n", "unit": 1}}, "objectives": {"x": "minimize"},
        }
    )  # fmt: skip
    assert found.digits({"n": 2, "flag": True, "t": "1 s"}) == (1, 1, 1)
    assert found.digits({"n": "2", "flag": "TRUE", "t": 0.001}) == (1, 1, 0)
    for name, wrong in (("n", True), ("flag", 1), ("t", "1"), ("t", "1 MB"), ("n", "two")):
        with pytest.raises(InputError, match="has no value"):
            found.digit(name, wrong)


# -- identity -----------------------------------------------------------------------------------------------


def changes() -> dict[str, Callable[[dict[str, Any]], object]]:
    return {
        "an input": lambda d: d["inputs"].update(limit="11 ms"),
        "a cell": lambda d: d["tables"]["t"]["rows"].update(u=[2]),
        "a choice": lambda d: d["dimensions"].update(n=[1, 3]),
        "the order of choices": lambda d: d["dimensions"].update(n=[2, 1]),
        "the order of dimensions": lambda d: d.update(dimensions=dict(reversed(d["dimensions"].items()))),
        "a metric": lambda d: d["metrics"]["x"].update(expr="n + 1 + a.w / 1 ms"),
        "a unit": lambda d: d["metrics"]["y"].update(unit="s"),
        "a direction": lambda d: d["objectives"].update(x="maximize"),
        "an operator": lambda d: d["constraints"].update(y="< limit"),
        "a rule": lambda d: d["rules"]["r"].update(check="n > 0 or a == 'u'"),
        "a team": lambda d: d["teams"]["one"].update(n=2),
    }


def base() -> dict[str, Any]:
    return {
        "dse": 1, "name": "base", "inputs": {"limit": "10 ms"},
        "tables": {"t": {"columns": {"w": "ms"}, "rows": {"u": [1], "v": [5]}}},
        "dimensions": {"n": [1, 2], "a": {"table": "t"}}, "rules": {"r": {"check": "n > 0", "because": "{n}"}},
        "metrics": {"x": {"expr": "n + a.w / 1 ms", "unit": 1}, "y": {"expr": "a.w", "unit": "ms"}},
        "objectives": {"x": "minimize", "y": "minimize"}, "constraints": {"y": "<= limit"}, "teams": {"one": {"n": 1}},
    }  # fmt: skip


@pytest.mark.parametrize("name", list(changes()))
def test_the_digest_changes_with_everything_that_a_result_depends_on(name: str) -> None:
    data = base()
    changes()[name](data)
    assert load(data).digest != load(base()).digest


def test_the_digest_is_blind_to_words() -> None:
    data = base()
    data |= {"title": "Title", "about": "words"}
    data["rules"]["r"]["because"] = "another sentence"
    assert load(data).digest == load(base()).digest
    assert load(data) == load(base())
    assert len({load(base()), load(base())}) == 1


def test_the_digest_is_the_same_in_every_process() -> None:
    """Whatever the seed of Python's hashes."""
    program = "from dse.problem.library import load; print(load('camera').digest)"
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parents[2],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {load("camera").digest}


def test_problems_travel_between_processes() -> None:
    for seed in range(20):
        found = random_problem(seed, 40)
        again = pickle.loads(pickle.dumps(found))
        assert again == found
        assert again.digest == found.digest
        assert again.names == found.names


def test_a_copy_of_the_shipped_file_is_the_same_problem(tmp_path: Path) -> None:
    copy = tmp_path / "camera.yaml"
    copy.write_bytes(locate("camera").read_bytes())
    assert load(copy) == load("camera")


# -- inputs --------------------------------------------------------------------------------------------------


def test_inputs_can_be_changed_without_reading_again() -> None:
    camera = load("camera")
    faster = camera.with_inputs({"max_latency": "5 ms"})
    assert faster.inputs["max_latency"].value == 0.005
    assert camera.inputs["max_latency"].value == 0.01
    assert faster.graph is camera.graph
    assert faster.digest == load("camera", {"max_latency": "5 ms"}).digest != camera.digest
    assert camera.with_inputs({"max_latency": "0.01 s"}).digest == camera.digest


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("max_latncy", 1, "unknown input 'max_latncy'; did you mean 'max_latency'"),
        ("max_latency", "5", "needs a quantity in ms"),
        ("max_latency", 5, "needs a quantity in ms, but got 5; write 5 ms"),
        ("max_latency", True, "is a number, but got True"),
        ("max_latency", float("nan"), "needs a quantity in ms"),
        ("min_accuracy", "90", "needs a quantity in percent"),
    ],
)
def test_inputs_that_do_not_fit(name: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load("camera").with_inputs({name: value})


# -- teams ---------------------------------------------------------------------------------------------------


def members(found: Problem, team: Team) -> set[int]:
    return {i for i in range(found.size) if member(found, team, found.design_at(found.digits_of(i)))}


@settings(max_examples=40)
@given(spaces(designs=24))
def test_teams_combine_as_sets(data: dict[str, Any]) -> None:
    found = load(data)
    if "team1" not in found.teams:
        return
    a, b = found.teams["team0"], found.teams["team1"]
    assert members(found, a & b) == members(found, a) & members(found, b)
    assert members(found, a | b) == members(found, a) | members(found, b)
    assert members(found, found.team("team0|team1&team0")) == members(found, a)
    assert members(found, found.everything & a) == members(found, a)
    assert members(found, found.everything) == set(range(found.size))


@settings(max_examples=40)
@given(spaces(designs=24))
def test_freeing_dimensions_never_loses_a_design(data: dict[str, Any]) -> None:
    found = load(data)
    for team in found.teams.values():
        for name in found.names:
            assert members(found, team) <= members(found, team.freed(frozenset((name,)), found.names))


def test_a_union_is_not_the_box_around_it() -> None:
    camera = load("camera")
    team = camera.team("ml | systems")
    outside = camera.design_at(camera.digits({
        "detector": "Det-S", "format": "fp32", "pruning": "none", "distill": False, "engine": "optimized",
        "hardware": "cpu",
    }))  # fmt: skip
    assert not member(camera, team, outside)
    with pytest.raises(InputError, match="unknown team 'sistems'; did you mean 'systems'"):
        camera.team("ml | sistems")


# -- sentences ---------------------------------------------------------------------------------------------


def test_sentences_name_declared_names_only() -> None:
    own = scope()
    template = parse_template("{device} has {device.bandwidth}, not {{x}}: {n}", own)
    assert template.fill(lambda node: f"<{node}>").count("<") == 3
    assert "not {x}" in template.fill(dict.fromkeys(template.nodes, ""))
    for text in (
        "{x.__class__}",
        "{device.__class__}",
        "{n!r}",
        "{n:>5}",
        "{0}",
        "{}",
        "{n",
        "n}",
        "{n[0]}",
        "{a.b.c}",
    ):
        with pytest.raises(ExpressionError):
            parse_template(f"why {text}", own)


def test_a_sentence_points_at_its_own_mistake() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_template("{device} runs {devise}", scope())
    assert (caught.value.message, caught.value.offset) == (
        "unknown name 'devise'; did you mean 'device'?",
        14,
    )


def test_a_file_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "own.py").write_text("def cost(a): return {'x': a}\n", encoding="utf-8")
    (inside / "own.py").symlink_to(tmp_path / "own.py")
    text = "dse: 1\nname: s\ndimensions: {a: [1]}\nmetrics: {x: {unit: 1}}\nobjectives: {x: minimize}\n"
    (inside / "s.yaml").write_text(f"{text}cost: ./../own.py:cost\n", encoding="utf-8")
    with pytest.raises(SpaceError, match=r"6:7: cost: found './../own.py:cost', expected a Python function"):
        load(inside / "s.yaml")
    (inside / "s.yaml").write_text(f"{text}cost: ./own.py:cost\n", encoding="utf-8")
    with pytest.raises(SpaceError, match=r"\./own.py is not below the folder of the space file"):
        load(inside / "s.yaml")
