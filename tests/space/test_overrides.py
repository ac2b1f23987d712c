"""``--set name=value``: inputs, table cells and dotted paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from dse.errors import Location
from dse.space import load_declaration
from tests.space.spacefiles import CAMERA, errors, errors_of, read


def test_an_input_by_its_name() -> None:
    camera = read(CAMERA, ("max_latency", "12 ms"), ("n_gpus", "16"), ("inputs.fast", "true"))
    assert camera.model.inputs["max_latency"].default == "12 ms"
    assert (camera.model.inputs["n_gpus"].default, camera.model.inputs["n_gpus"].choices) == (16, (8, 16))
    assert camera.model.inputs["fast"].default is True
    assert camera.locate(("inputs", "max_latency", "default")) == Location("--set max_latency=12 ms")
    assert camera.text(("inputs", "n_gpus", "default")) == "16"


@pytest.mark.parametrize(
    ("name", "text", "path", "value"),
    [
        ("tables.detectors.Det-S.work", "3 Gop", ("detectors", "Det-S"), (86.0, "3 Gop", 2.5e6)),
        ("tables.detectors.rows.Det-L.work", "1e-3", ("detectors", "Det-L"), (91.8, 0.001, 31)),
        ("tables.detectors.Det-S.work", "null", ("detectors", "Det-S"), (86.0, None, 2.5e6)),
        ("tables.hardwares.cpu.engines", "[naive]", ("hardwares", "cpu"), (8, ("naive",), True, "1.0")),
        ("tables.rates.npu.fp16", "1000 Gop/s", ("rates", "npu"), {"int8.v2": 2000, "fp16": "1000 Gop/s"}),
        ("tables.rates.rows.npu.int8.v2", "1", ("rates", "npu"), {"int8.v2": 1}),
        ("tables.rates.tpu.fp32", "9", ("rates", "tpu"), {"fp32": 9}),
    ],
)
def test_a_cell(name: str, text: str, path: tuple[str, str], value: object) -> None:
    camera = read(CAMERA, (name, text))
    assert camera.model.tables[path[0]].rows[path[1]] == value


def test_anything_on_a_path() -> None:
    camera = read(
        CAMERA,
        ("constraints.latency", "<= 5 ms"),
        ("constraints.energy", "<= 3 J"),
        ("constraints.score.1", "<= 20"),
        ("dimensions.batch.range.1", "8"),
        ("dimensions.format", "[fp32, fp16]"),
        ("dimensions.distill.0", "true"),
        ("dimensions.distill.1", "false"),
        ("teams.both", "null"),
        ("rules.supported.because", "no"),
    )
    model = camera.model
    assert model.constraints["latency"] == "<= 5 ms"
    assert model.constraints["energy"] == "<= 3 J"
    assert model.constraints["score"] == (">= 1", "<= 20")
    assert camera.ranges["batch"] == (1, 2, 4, 8)
    assert model.dimensions["format"].choices == ("fp32", "fp16")
    assert model.dimensions["distill"].choices == (True, False)
    assert "both" not in model.teams
    assert model.rules["supported"].because == "no"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("max_latncy", "1 ms", "found 'max_latncy', expected an input or a dimension; did you mean 'max_latency'?"),
        ("batch", "1", "found 'batch', expected an input; to change dimensions.batch, write its whole path"),
        ("max_latency", "12", "found 12, expected a quantity like '10 ms' (the default is '10 ms')"),
        ("max_latency", "12 GB", "found '12 GB', expected a quantity like '10 ms' (the default is '10 ms')"),
        ("min_accuracy", "0.9", "found 0.9, expected a quantity like '90 percent' (the default is '90 percent')"),
        ("fast", "yes", "found 'yes', expected true or false (the default is false)"),
        ("n_gpus", "many", "found 'many', expected a number (the default is 8)"),
        ("n_gpus", "32", "inputs.n_gpus.default: found 32, expected one of 8, 16"),
        ("n_gpus", "1e999", "found 1e999, expected a number that fits a double (up to 1.8e308)"),
        ("inputs.n_gpsu", "1", "found 'n_gpsu', expected a name under 'inputs'; did you mean 'n_gpus'?"),
        ("lets.compte", "1", "found 'compte', expected a name under 'lets'; did you mean 'compute'?"),
        ("tabels.rates.npu.fp16", "1", "found 'tabels', expected a section of a space file; did you mean 'tables'?"),
        ("tables.rate.npu.fp16", "1", "found 'rate.npu.fp16', expected a name under 'tables'; did you mean 'rates'?"),
        ("tables.detectors.Det-Z.work", "1", "found 'Det-Z', expected a row; did you mean 'Det-S'?"),
        ("tables.detectors.Det-S.wrok", "1", "found 'wrok', expected a column; did you mean 'work'?"),
        ("tables.rates.npu", "1", "found 'npu', expected one step for each of hardware, format"),
        ("tables.rates.tpu", "1", "found 'tpu', expected one step for each of hardware, format"),
        ("tables.detectors.Det-S.work", "1 ms", "tables.detectors.rows.Det-S.work: found '1 ms', expected a number or a"),
        ("dimensions.batch.rnage", "1", "dimensions.batch.rnage: found the unknown key 'rnage', expected a known one; did you mean 'range'?"),
        ("dimensions.format.7", "x", "found '7', expected a position from 0 to 1"),
        ("dimensions.batch.range.1.x", "1", "found 'x', expected the end of the path"),
        ("constraints.energy", "null", "found null, which deletes, but there is no 'energy' to delete"),
        ("extends", "other.yaml", "found 'extends', expected an input or a dimension"),
    ],
)  # fmt: skip
def test_what_is_refused(name: str, text: str, message: str) -> None:
    found = errors(CAMERA, (name, text))
    assert len(found) == 1, found
    assert found[0].startswith(f"--set {name}={text}: {message}")


def test_every_wrong_override_is_reported_with_the_file() -> None:
    found = errors(CAMERA.replace("0.10", "true"), ("max_latncy", "1"), ("x.y", "2"))
    assert [error.split(":")[0] for error in found] == ["s.yaml", "--set max_latncy=1", "--set x.y=2"]


def test_brackets_that_do_not_close() -> None:
    assert errors(CAMERA, ("dimensions.format", "[a")) == [
        "--set dimensions.format=[a:1:1: 1: found a bracket that is never closed, expected a closing bracket"
    ]


def test_the_file_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "camera.yaml"
    path.write_text(CAMERA)
    (tmp_path / "d.csv").write_text("name,params,accuracy,work\nDet-X,1,2,3\n")
    override = ("tables.detectors.file", "d.csv")
    rows = (
        load_declaration(path, [override, ("tables.detectors.Det-X.work", "9")])
        .model.tables["detectors"]
        .rows
    )
    assert rows == {"Det-X": (2, 9, 1)}
    assert errors_of(path, ("tables.detectors.file", "../d.csv")) == [
        "--set tables.detectors.file=../d.csv: tables.detectors.file: found '../d.csv', expected a file below the folder of this one"
    ]
