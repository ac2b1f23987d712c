"""``dse compare --map`` and ``dse import --from camera-published``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

Dse = Callable[..., Any]
Snapshot = Callable[[str, str], None]

MAP = ("--map", "max_latency=0.5:200 ms:40", "--map", "min_accuracy=84:94 percent:11")
CAMERA = "Object detector on a surveillance camera: for which max_latency and min_accuracy each team succeeds"


def test_the_map_of_the_camera(dse: Dse, snapshot: Snapshot) -> None:
    ran = dse("compare", "camera", *MAP)
    assert (ran.code, ran.err) == (0, "")
    snapshot("map_camera", ran.out)


def test_its_data_and_pictures_agree(dse: Dse, tmp_path: Path) -> None:
    folder = tmp_path / "map"
    ran = dse("compare", "camera", *MAP, "--out", folder, "--format", "json")
    data = json.loads(ran.out)
    names = {"map.json", "map.csv", "borders.csv", "map.png", "map.svg", "map.html"}
    assert {path.name for path in folder.iterdir()} == names
    assert json.loads((folder / "map.json").read_text(encoding="utf-8")) == data
    assert (data["method"], data["proven"]) == ("front", True)
    cells = list(csv.DictReader(io.StringIO((folder / "map.csv").read_text(encoding="utf-8"))))
    alone = [row for row in cells if (row["ml"], row["systems"], row["mlsys"]) == ("false", "false", "true")]
    (group,) = (group for group in data["groups"] if group["text"] == "only mlsys")
    assert (len(cells), len(alone)) == (440, group["cells"])
    borders = list(csv.DictReader(io.StringIO((folder / "borders.csv").read_text(encoding="utf-8"))))
    assert [row["team"] for row in borders].count("systems") == 2
    assert borders[0]["detector"] == "Det-S"
    assert "24.375" in [row["max_latency [ms]"] for row in borders]
    assert all(
        len(text) < 15 for row in (*cells, *borders) for name, text in row.items() if name.startswith("m")
    )
    root = ET.parse(folder / "map.svg").getroot()
    assert (root.get("role"), root.get("aria-label")) == ("img", CAMERA)
    patterns = [element.get("id") for element in root.iter() if element.tag.endswith("pattern")]
    assert len(set(patterns)) == len(data["groups"]) - 1  # every group but nobody has one of its own
    svg = "".join(root.itertext())
    for text in ("only mlsys", "every team", "as set: 10 ms, 90 %", "memory <= max_memory (100 MB)"):
        assert text in svg
    assert "Det-XL" in (folder / "map.html").read_text(encoding="utf-8")
    again = [path.read_bytes() for path in sorted(folder.iterdir())]
    dse("compare", "camera", *MAP, "--out", folder)
    assert again == [path.read_bytes() for path in sorted(folder.iterdir())]


def test_one_limit_and_searches(dse: Dse, tmp_path: Path) -> None:
    one = dse("compare", "camera", "--map", "max_latency=1:200 ms:20", "--team", "ml", "--team", "mlsys")
    assert "  .......######" in one.out
    assert "with max_latency = 10 ms: only mlsys" in one.out
    overrides = ("--set", "rules.engine_runs.check=engine in hardware.engines and max_latency > 1 ms")
    searched = dse("compare", "camera", *overrides, "--map", "max_latency=1:99 ms:3", "--out", tmp_path / "m")
    assert "note: each cell was searched, since max_latency also enters rule engine_runs" in " ".join(
        searched.out.split()
    )
    assert (tmp_path / "m" / "map.svg").is_file()
    assert not (tmp_path / "m" / "borders.csv").exists()


def test_nobody_succeeds(dse: Dse) -> None:
    ran = dse("compare", "camera", "--map", "max_latency=0.1:0.5 ms:3")
    assert ran.code == 1
    assert ".  no team  3 of 3 cells" in ran.out
    assert dse("compare", "camera", "--map", "max_latencie").err == (
        "error: --map max_latencie: unknown input; did you mean 'max_latency'?\n"
    )


def test_figures_are_imported_and_errors_have_places(
    dse: Dse, write: Callable[..., Path], tmp_path: Path
) -> None:
    head = "model,device,runtime,latency_ms,map50_95\n"
    path = write(head + "A,B,C,5,70\n", "own.csv")
    made = dse("import", "--from", "camera-published", path, "-o", tmp_path / "own.yaml")
    assert (made.code, made.out) == (0, "")
    assert made.err.startswith("1 figure\nwrote ")
    assert dse("compare", tmp_path / "own.yaml").code == 0
    for text, told in (
        (head + "A,B,C,x,70\n", "own.csv:2:4: latency_ms: found 'x', expected a number"),
        (
            head + "A,B,C,,70\n",
            "found no figure to add (1 left out: no latency), expected rows with a latency",
        ),
        ("model,devise,runtime\nA,B,C\n", "device: found no column 'device'; is it 'devise'?"),
    ):
        ran = dse("import", "--from", "camera-published", write(text, "own.csv"))
        assert ran.code == 2
        assert told in ran.err
    assert "did you mean 'camera-published'?" in dse("import", "--from", "camera-publish", path).err
