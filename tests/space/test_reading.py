"""A space file becomes a declaration with a place for everything in it."""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import pytest

from dse.errors import Location, SpaceError
from dse.space import (
    ConstraintDecl,
    Continuous,
    DimensionDecl,
    InputDecl,
    KeyedTableDecl,
    MeasureDecl,
    MetricDecl,
    RowTableDecl,
    RuleDecl,
    TeamDecl,
)
from tests.space.spacefiles import CAMERA, SMALL, errors, errors_of, read, with_section


def test_the_content_of_a_whole_file() -> None:
    model = read(CAMERA).model
    assert (model.dse, model.name, model.extends) == (1, "camera", None)
    assert model.inputs["max_latency"] == InputDecl(default="10 ms")
    assert model.inputs["n_gpus"] == InputDecl(default=8, choices=(8, 16))
    detectors = model.tables["detectors"]
    assert isinstance(detectors, RowTableDecl)
    assert detectors.columns == {"accuracy": "percent", "work": "Gop", "params": "1"}
    assert detectors.rows == {"Det-S": (86.0, 1.5, 2.5e6), "Det-L": (91.8, "15 Gop", 31)}
    hardwares = model.tables["hardwares"]
    assert isinstance(hardwares, RowTableDecl)
    assert hardwares.rows["cpu"] == (8, ("naive", "optimized"), True, "1.0")
    assert hardwares.rows["npu"] == (16, ("optimized",), False, None)
    rates = model.tables["rates"]
    assert isinstance(rates, KeyedTableDecl)
    assert (rates.keys, rates.unit) == (("hardware", "format"), "Gop/s")
    assert dict(rates.cells()) == {("cpu", "fp32"): 50, ("npu", "int8.v2"): 2000}
    assert model.dimensions["format"] == DimensionDecl(choices=("fp32", "int8.v2"))
    assert model.dimensions["chunks"] == DimensionDecl(choices=(1, 2, 4), when="batch > 1", otherwise=1)
    assert model.rules["supported"] == RuleDecl(
        check="rates[hardware, format] > 0", because="{hardware} cannot run {format}"
    )
    assert model.metrics["score"] == MetricDecl(expr=1e-3, unit="1")
    assert list(model.objectives.items()) == [("latency", "minimize"), ("score", "maximize")]
    assert model.constraints["latency"] == "<= max_latency"
    assert model.constraints["score"] == (">= 1", "<= 10")
    assert model.constraints["total"] == ConstraintDecl(check="compute <= 1 s", because="too slow")
    assert model.teams["ml"] == TeamDecl(hardware="cpu", distill=(False, True))  # type: ignore[call-arg]
    systems = model.teams["systems"]
    assert isinstance(systems, TeamDecl)
    assert (systems.restrict, systems.where, systems.about) == (
        {"detector": "Det-L"},
        "not distill",
        "no model changes",
    )
    assert model.teams["both"] == "ml | systems"
    assert model.teams["mlsys"] == TeamDecl()
    assert read(CAMERA).ranges == {"batch": (1, 2, 4, 8, 16, 32, 64)}


def test_places_and_source_texts() -> None:
    camera = read(CAMERA)
    lines = CAMERA.splitlines()

    def at(*path: str | int, offset: int = 0) -> str:
        where = camera.locate(path, offset)
        return lines[where.line - 1][where.column - 1 :]

    assert at("inputs", "max_latency").startswith("10 ms")
    assert at("inputs", "max_latency", "default").startswith("10 ms")
    assert at("rules", "supported", "check").startswith("rates[hardware")
    assert at("rules", "supported", "check", offset=6).startswith("hardware, format]")
    assert at("constraints", "score", 1).startswith("<= 10")
    assert at("teams", "ml", "restrict", "distill", 1).startswith("true]")
    assert at("teams", "ml", "distill", 1).startswith("true]")
    assert at("dimensions", "format", "choices", 1).startswith("int8.v2")
    assert at("tables", "detectors", "rows", "Det-S", "params").startswith("2.5e6")
    assert at("tables", "detectors", "rows", "Det-L", 2).startswith("0x1F")
    line = next(n for n, text in enumerate(lines, 1) if "max(compute" in text)
    column = lines[line - 1].index("unit") + 1
    assert camera.locate_key(("metrics", "latency", "unit")) == Location("s.yaml", line, column)
    assert camera.locate_key(("metrics", "latency", "nothing")) == camera.locate_key(("metrics", "latency"))


def test_numbers_are_reachable_as_they_were_written() -> None:
    camera = read(CAMERA)
    assert camera.text(("lets", "factor")) == "0.10"
    assert camera.text(("metrics", "score", "expr")) == "1e-3"
    assert camera.text(("tables", "detectors", "rows", "Det-S", "work")) == "1.50"
    assert camera.text(("tables", "detectors", "rows", "Det-L", "params")) == "31"
    assert camera.text(("inputs", "fast", "default")) == "false"
    assert camera.text(("dimensions", "memory", "choices", 1)) == "2 GB"
    with pytest.raises(KeyError):
        camera.text(("inputs",))
    with pytest.raises(KeyError):
        camera.text(("inputs", "nothing"))


def test_a_declaration_can_be_pickled() -> None:
    camera = read(CAMERA)
    assert pickle.loads(pickle.dumps(camera)) == camera


@pytest.mark.parametrize(
    ("dimension", "values"),
    [
        ("{range: [1, 8]}", range(1, 9)),
        ("{range: [0, 1], step: 0.25}", (0.0, 0.25, 0.5, 0.75, 1.0)),
        ("{range: [1 ms, 4 ms], unit: ms}", range(1, 5)),
        ("{range: [0.5, 2.0]}", Continuous(0.5, 2.0)),
        ("{range: [0x10, 0x12]}", range(16, 19)),
        ("{range: [1, 100], scale: log, count: 3}", (1, 10, 100)),
    ],
)
def test_ranges(dimension: str, values: object) -> None:
    assert read(f"dse: 1\nname: r\ndimensions: {{x: {dimension}}}").ranges["x"] == values


def test_a_dimension_of_ten_million_values_loads_at_once() -> None:
    start = time.process_time()
    read("dse: 1\nname: r\ndimensions: {x: {range: [1, 10000000]}, y: {range: [0, 1], step: 1e-6}}")
    assert time.process_time() - start < 2


def test_measure_and_cost() -> None:
    text = (
        "measure: {command: [./run, '{a}'], timeout: 30 s, retries: 2, repeats: 3}\ncost: ./model.py:cost\n"
    )
    model = read(with_section(text)).model
    assert model.measure == MeasureDecl(command=("./run", "{a}"), timeout="30 s", retries=2, repeats=3)
    assert model.cost == "./model.py:cost"
    assert read(with_section("measure: a.b:c")).model.measure == "a.b:c"
    limited = read(with_section("measure: {function: a.b:c, timeout: 1 s}")).model.measure
    assert limited == MeasureDecl(function="a.b:c", timeout="1 s")
    for wrong in ("{timeout: 1 s}", "{command: [run], function: a.b:c}"):
        with pytest.raises(SpaceError, match="expected a command or a function, one of them"):
            read(with_section(f"measure: {wrong}"))


def test_all_errors_of_a_file_are_reported_at_once_in_its_order() -> None:
    text = SMALL.replace("[1, 2]", "[1, 1]") + (
        "title: 3\n"
        "inputs: {max: 1}\n"
        "rules: {r: {chek: a > 1, because: x}}\n"
        "metrics: {m: {expr: max(a, b), unit: ms}}\n"
        "title: again\n"
        "tables: {t: {columns: {c: mss}, rows: {r: [1]}}}\n"
    )
    assert [error.split(": ")[0] for error in errors(text)] == [
        "s.yaml:3:21", "s.yaml:4:8", "s.yaml:5:10", "s.yaml:6:13", "s.yaml:7:21", "s.yaml:8:1", "s.yaml:9:27",
    ]  # fmt: skip


def test_many_errors_are_cut_short() -> None:
    names = ", ".join(f"x-{n}: [1]" for n in range(300))
    found = errors(f"dse: 1\nname: x\ndimensions: {{{names}}}")
    assert len(found) == 101
    assert found[-1].endswith("and 200 more")


@pytest.mark.parametrize("text", ["- 1", "text", "3", "null"])
def test_a_file_that_is_no_mapping(text: str) -> None:
    assert len(errors(text)) == 1
    assert "expected a mapping that starts with 'dse: 1'" in errors(text)[0]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert errors_of(tmp_path / "none.yaml") == ["none.yaml: no such file"]


def test_names_that_hide_a_unit_are_warned_of() -> None:
    warnings = [str(warning) for warning in read(SMALL.replace("a:", "GB:")).warnings]
    assert warnings == ["s.yaml:3:14: dimensions.GB: the name 'GB' hides the unit 'GB' in expressions"]
    assert read(SMALL).warnings == ()


def test_yes_and_no_are_texts_with_a_warning() -> None:
    declaration = read(SMALL.replace("[1, 2]", "[no, yes]"))
    assert declaration.model.dimensions["a"].choices == ("no", "yes")
    assert "write true and false for truth values" in declaration.warnings[0].message
    assert read(SMALL.replace("[1, 2]", "['no', 'yes']")).warnings == ()
