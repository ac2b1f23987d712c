"""The camera space on published figures: what exists was measured, its teams, its map, and own figures beside it."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dse.evaluation import State, judge
from dse.problem import Problem
from dse.problem.library import load
from dse.space.writing import as_yaml
from dse.spaces.camera.figures import Figure, read_figures, tables
from dse.spaces.camera.importing import PUBLISHED, read_space
from dse.study.diagnosis import design_metrics
from dse.study.limitmap import limit_map
from dse.study.study import search

NOT_SHIPPED = ("qualcomm", "hailo", "rknn", "rockchip")


@cache
def published() -> Problem:
    return load("camera-published")


@cache
def figures() -> tuple[Figure, ...]:
    rows: tuple[Figure, ...] = read_figures(PUBLISHED).rows
    return rows


def metrics(problem: Problem, detector: str, device: str, form: str) -> dict[str, Any]:
    return design_metrics(problem, {"detector": detector, "device": device, "format": form})


def test_the_tables_are_those_of_the_file() -> None:
    """Every row is a design under its own names, and the tables of the space file list just what rows name."""
    rows = list(csv.DictReader(PUBLISHED.read_text(encoding="utf-8").splitlines()))
    read = read_figures(PUBLISHED)
    assert (len(rows), len(read.rows), read.skipped) == (556, 556, {})
    named = [(f.benchmark, f.detector, f.device, f.format, f.latency, f.accuracy) for f in read.rows]
    columns = ("benchmark", "detector", "device", "format", "latency_ms", "accuracy")
    assert named == [tuple(float(r[c]) if c in columns[4:] else r[c] for c in columns) for r in rows]
    assert all(row["source"] and "@" in row["source_locator"] for row in rows)
    assert not any(word in str(row).lower() for row in rows for word in NOT_SHIPPED)
    own = tables(read.rows)
    for name, dimension in zip(own, ("detector", "device", "format"), strict=True):
        table = published().graph.tables[name]
        assert list(table.axes[0]) == list(published().dimension(dimension).values) == list(own[name])
        for at, (column, cells) in enumerate(table.columns.items()):
            scale = 100 if column == "published" else 1
            found = [cell * scale if isinstance(cell, float) else cell for cell in cells.cells]
            assert found == [pytest.approx(row[at]) for row in own[name].values()], (name, column)
    assert {f.benchmark for f in read.rows} | {"any"} == set(published().graph.tables["benchmarks"].axes[0])


def test_what_exists_was_measured() -> None:
    """As many legal designs as rows; each has its row's figures; others say that nobody measured them."""
    everything = published().with_inputs({"benchmark": "any"})
    assert search(everything, within=0).funnel.legal == 556
    for figure in figures()[::25]:
        found = metrics(everything, figure.detector, figure.device, figure.format)
        assert found["latency"] == pytest.approx(figure.latency / 1e3)
        assert found["accuracy"] == pytest.approx(figure.accuracy / 100)
        assert found["rate"] == pytest.approx(1e3 / figure.latency)
    design = {"detector": "yolo11x-640", "device": "raspberry-pi-5", "format": "ncnn"}
    verdict = judge(published(), design)
    assert (verdict.state, verdict.reason) == (
        State.ILLEGAL,
        "no source measured yolo11x-640 on raspberry-pi-5 as ncnn",
    )
    other = judge(
        published(), {"detector": "picodet-s-320", "device": "snapdragon-865", "format": "paddle-lite-fp16"}
    )
    assert other.reason.startswith(
        "snapdragon-865 is of the benchmark picodet, whose figures cannot be compared"
    )


def test_what_int8_costs_is_what_was_measured() -> None:
    """YOLO11x on Jetson AGX Orin: 0.7005 in PyTorch, 0.6574 as int8 (Ultralytics' guide); there the model has 54.7."""
    found = metrics(published(), "yolo11x-640", "jetson-agx-orin", "tensorrt-int8")
    assert found["loss"] == pytest.approx(0.7005 - 0.6574)
    assert found["published"] == pytest.approx(0.547)
    assert found["size"] > 50e6


def test_teams_are_given_what_the_benchmark_names() -> None:
    """In every benchmark each team has a design, and the given detector is measured on the plain device."""
    cells = published().graph.tables["benchmarks"]
    for at, name in enumerate(cells.axes[0]):
        problem = published().with_inputs(
            {"benchmark": str(name), "min_accuracy": "0 percent", "max_latency": "1 h"}
        )
        given = {column: str(cells.columns[column].cells[at]) for column in ("detector", "device", "format")}
        assert judge(problem, given).state is State.FEASIBLE, name
        counts = [search(problem, team=team, within=0).funnel.feasible for team in ("ml", "systems", "mlsys")]
        assert min(counts) >= 1
        assert max(counts) == counts[2]


def test_where_only_the_joint_team_succeeds() -> None:
    """By hand from the file: the systems team's best YOLO11s, and what PyTorch on the small Jetson takes."""
    rows = [row for row in figures() if row.benchmark == "ultralytics-edge"]
    plain = [r for r in rows if (r.device, r.format) == ("jetson-orin-nano-super", "pytorch")]
    found = limit_map(published(), ["max_latency=1:200 ms:12", "min_accuracy=50:72 percent:12"])
    axes = [axis.values for axis in found.axes]
    teams = {
        "ml": plain,
        "systems": [row for row in rows if row.detector == "yolo11s-640"],
        "mlsys": rows,
    }
    for team in found.teams:
        for i, latency in enumerate(axes[0]):
            for j, accuracy in enumerate(axes[1]):
                right = any(
                    r.latency / 1e3 <= latency and r.accuracy / 100 >= accuracy for r in teams[team.team]
                )
                assert bool(team.succeeds[i, j]) == right
    assert found.succeeding(found.given) == ("mlsys",)


OWN = """source,model,input_res,map50_95,map_on_device,precision,device,runtime,batch,latency_ms,fps
mine,Net A,320,40,0.39,int8,Board (rev 2),TensorRT,1,5,
mine,Net A,320,40,0.40,fp16,Board (rev 2),TensorRT (FP16),,,100
mine,Net B,640x480,50,0.49,fp16,Board (rev 2),TensorRT,1,25,
mine,Net B,640x480,50,0.02,int8,Board (rev 2),TensorRT,1,12,
mine,Net B,640,50,,int8,Board (rev 2),TensorRT,8,12,
mine,Net C,640,,,int8,Board (rev 2),TensorRT,1,12,
mine,Net A,320,40,0.41,fp16,Board (rev 2),TensorRT,1,11,
theirs,Net A,320,40,,fp16,Board (rev 2),TensorRT,1,9,
theirs,Net A,320,40,,fp16,,TensorRT,1,9,
"""


def test_own_figures_become_a_space(write: Callable[..., Path], tmp_path: Path) -> None:
    data, told = read_space(write(OWN, "my boards.csv"))
    assert told[0] == "4 figures"
    assert sorted(line.split(" left out: ")[1].partition(":")[0] for line in told[1:]) == [
        "batch 8",
        "less than half the model's accuracy on the device",
        "no accuracy",
        "no model, device or runtime is named",
        "the design has a figure already",
    ]
    path = tmp_path / "mine.yaml"
    path.write_text(as_yaml(data), encoding="utf-8")
    problem = load(path)
    assert (problem.name, problem.inputs["benchmark"].value) == ("my-boards", "mine")
    found = search(problem.with_inputs({"min_accuracy": "0 percent"}), within=0)
    assert found.funnel.legal == 3
    fast = metrics(problem, "net-a-320", "board", "tensorrt-fp16")
    assert (fast["latency"], fast["accuracy"]) == (pytest.approx(0.010), pytest.approx(0.40))
    assert metrics(problem, "net-b-640x480", "board", "tensorrt-fp16")["loss"] == pytest.approx(0.0)
    assert metrics(problem, "net-a-320", "board", "tensorrt-int8")["loss"] == pytest.approx(0.01)
    theirs = problem.with_inputs({"benchmark": "theirs", "min_accuracy": "0 percent"})
    assert search(theirs, within=0).front[0].design["device"] == "board-theirs"
    assert search(problem.with_inputs({"benchmark": "any"}), within=0).funnel.legal == 560
