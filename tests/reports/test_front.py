"""The files: which are written, where, and what happens when they cannot be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dse.errors import InputError
from dse.reports.front import render
from dse.study.compare import Comparison
from tests.reports.samples import camera, compared, solve


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


def test_axes_are_chosen(cameras: Comparison, tmp_path: Path) -> None:
    (path,) = render(cameras, tmp_path / "a.svg", x="memory", y="accuracy")
    text = path.read_text(encoding="utf-8")
    assert "memory [MB]" in text
    assert "latency [ms]" not in text


def test_a_sampled_result_says_at_least(tmp_path: Path) -> None:
    result = solve(camera(), "mlsys")
    funnel = replace(result.funnel, exact=False)
    (path,) = render(
        replace(result, promise="sampling", status="stopped", funnel=funnel), tmp_path / "a.html"
    )
    text = path.read_text(encoding="utf-8")
    assert "at least 8 feasible" in text
    assert "exhaustive, sampling, stopped early" in text
