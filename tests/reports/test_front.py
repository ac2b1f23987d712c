"""The files: which are written, where, and what happens when they cannot be."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from dse.errors import InputError
from dse.reports.front import render, report
from dse.reports.source import material
from dse.reports.tables import front_csv, teams_csv
from dse.study.compare import Comparison
from tests.reports.samples import build, camera, compared, knobs, solve


@pytest.fixture(scope="module")
def cameras() -> Comparison:
    return compared(camera(), "ml", "systems", "mlsys")


def test_three_formats_by_default(cameras: Comparison, tmp_path: Path) -> None:
    written = render(cameras, tmp_path / "new" / "v1.2")
    assert [path.name for path in written] == ["v1.2.png", "v1.2.svg", "v1.2.html"]
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["v1.2.html", "v1.2.png", "v1.2.svg"]


def test_a_suffix_asks_for_that_format(cameras: Comparison, tmp_path: Path) -> None:
    assert render(cameras, tmp_path / "a.PDF") == [tmp_path / "a.pdf"]
    assert render(cameras, tmp_path / "a.png", ["svg", "svg"]) == [tmp_path / "a.svg"]


def test_the_same_bytes_and_nothing_left_over(cameras: Comparison, tmp_path: Path) -> None:
    first = [path.read_bytes() for path in render(cameras, tmp_path / "a")]
    assert first == [path.read_bytes() for path in render(cameras, tmp_path / "a")]
    assert len(list(tmp_path.iterdir())) == 3


def test_an_unknown_format_or_axis_writes_nothing(cameras: Comparison, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="got 'pgn'; did you mean 'png'"):
        render(cameras, tmp_path / "a", ["svg", "pgn"])
    with pytest.raises(InputError, match="did you mean 'memory'"):
        render(cameras, tmp_path / "a", y="memroy")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(cameras: Comparison, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        render(cameras, tmp_path / "file" / "a", ["svg"])
    (tmp_path / "b.svg").mkdir()
    with pytest.raises(InputError, match="cannot write"):
        render(cameras, tmp_path / "b", ["svg"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.svg", "file"]


def test_a_report_is_a_folder(cameras: Comparison, tmp_path: Path) -> None:
    names = [path.name for path in report(cameras, tmp_path / "out")]
    assert names == ["front.png", "front.svg", "report.html", "teams.csv", "front_by_team.csv"]
    assert "8 feasible" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_teams_as_csv(cameras: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(teams_csv(material(cameras)))))
    assert [row["team"] for row in rows] == ["ml", "systems", "mlsys"]
    assert [(row["legal"], row["feasible"], row["front"]) for row in rows] == [
        ("120", "0", "0"),
        ("7", "0", "0"),
        ("312", "8", "2"),
    ]
    assert rows[0]["unlock"] == "engine + hardware (8)"
    assert rows[1]["unlock"] == "distill (1) or format (1)"
    assert rows[1]["nearest_miss"] == "misses accuracy by 0.2 %"


def test_the_front_as_csv(cameras: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(front_csv(material(cameras)))))
    assert {(row["team"], row["accuracy [percent]"], row["latency [ms]"]) for row in rows} == {
        ("mlsys", "91.9", "8.0"),
        ("mlsys", "90.9", "5.75"),
    }
    assert {row["distill"] for row in rows} == {"true"}


def test_a_comparison_without_teams_is_still_a_table() -> None:
    source = Comparison(build(knobs(), {"x": ("a", "1")}, {"x": "minimize"}), ())
    assert teams_csv(material(source)).count("\n") == 1


def test_a_sampled_result_says_at_least(tmp_path: Path) -> None:
    result = solve(camera(), "mlsys")
    funnel = replace(result.funnel, exact=False)
    (path,) = render(
        replace(result, promise="sampling", status="stopped", funnel=funnel), tmp_path / "a.html"
    )
    text = path.read_text(encoding="utf-8")
    assert "at least 8 feasible" in text
    assert "exhaustive, sampling, stopped early" in text
