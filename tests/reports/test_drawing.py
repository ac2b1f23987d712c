"""The drawn files: the same bytes, stable ids, texts that stay texts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from dse.reports.drawing import draw
from dse.reports.figure import FrontFigure, front_figure
from dse.reports.labels import Box, apart, beside, text_width
from tests.reports.samples import build, camera, compared, knobs, solve

LOWER = {"x": "minimize", "y": "minimize"}
ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def figure() -> FrontFigure:
    return front_figure(compared(camera(), "ml", "systems", "mlsys"))


def texts(svg: bytes) -> list[str]:
    return ["".join(element.itertext()).strip() for element in ET.fromstring(svg).iter(f"{SVG}text")]


def test_png_svg_and_pdf(figure: FrontFigure) -> None:
    assert draw(figure, "png").startswith(b"\x89PNG")
    assert draw(figure, "pdf").startswith(b"%PDF")
    root = ET.fromstring(draw(figure, "svg"))
    assert (root.tag, root.get("role"), root.get("aria-label")) == (f"{SVG}svg", "img", figure.title)


@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
def test_the_same_bytes_every_time(figure: FrontFigure, form: str) -> None:
    assert draw(figure, form) == draw(figure, form)


def test_no_date_no_version_no_network(figure: FrontFigure) -> None:
    svg = draw(figure, "svg")
    assert b"<metadata" not in svg
    assert b"Matplotlib" not in svg
    outside = set(re.findall(rb'https?://[^"\s]+', svg))
    assert all(address.startswith(b"http://www.w3.org/") for address in outside)


def test_the_users_settings_are_neither_used_nor_changed(figure: FrontFigure) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 31.0, "lines.marker": "x", "svg.fonttype": "path"}):
        before = dict(mpl.rcParams)
        svg = draw(figure, "svg")
        assert dict(mpl.rcParams) == before
    assert svg == draw(figure, "svg")


def test_pyplot_is_not_loaded() -> None:
    program = (
        "import sys\n"
        "from dse.reports.figure import front_figure\n"
        "from dse.reports.drawing import draw\n"
        "from tests.reports.samples import camera, solve\n"
        "figure = front_figure(solve(camera(), 'systems'))\n"
        "assert 'matplotlib' not in sys.modules and 'jinja2' not in sys.modules, 'loaded before it is needed'\n"
        "draw(figure, 'png'), draw(figure, 'svg'), draw(figure, 'pdf')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_every_part_has_an_id_of_its_own(figure: FrontFigure) -> None:
    ids = [element.get("id", "") for element in ET.fromstring(draw(figure, "svg")).iter()]
    ours = [name for name in ids if name.startswith("panel0")]
    assert sorted(ours) == sorted(
        [f"panel0-series{at}" for at in range(len(figure.panels[0].series))]
        + ["panel0-line0", "panel0-line1", "panel0-line0-text", "panel0-line1-text", "panel0-stairs2"]
        + ["panel0-team0-label0", "panel0-team1-label1", "panel0-team2-label2", "panel0-team2-label3"]
    )
    named = [name for name in ids if name]
    assert len(named) == len(set(named))


def test_the_words_of_the_camera_figure(figure: FrontFigure) -> None:
    found = texts(draw(figure, "svg"))
    for text in [
        "Object detector on a surveillance camera",
        "accuracy [%], higher is better",
        "latency [ms], lower is better",
        "accuracy \u2265 90 %",
        "ml: none feasible; misses accuracy by 3.9 %",
        "mlsys: 8 feasible, 2 on the front",
        "Pareto front",
        "ml: nearest miss",
        "91.9 %, 8 ms",
        "All 312 evaluated designs. A design of several teams has the mark of the smallest.",
    ]:
        assert text in found


def test_every_design_is_drawn_in_its_series(figure: FrontFigure) -> None:
    root = ET.fromstring(draw(figure, "svg"))
    for number, series in enumerate(figure.panels[0].series):
        (group,) = [element for element in root.iter() if element.get("id") == f"panel0-series{number}"]
        spots = [(float(use.get("x", "nan")), float(use.get("y", "nan"))) for use in group.iter(f"{SVG}use")]
        across, up = np.array(spots).T
        assert np.array_equal(np.argsort(across, kind="stable"), np.argsort(series.x, kind="stable"))
        assert np.array_equal(np.argsort(-up, kind="stable"), np.argsort(series.y, kind="stable"))


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("<script>alert('&')</script>", "x"),
        ("$x^2$ and \\alpha_{", "x"),
        ("\u7a7a\u95f4 \U0001f600 gr\u00f6\u00dfe", "\u5ef6\u8fdf"),
        ("control \x07 \x9b \ufffe", "x"),
        ("word " * 300, "_x"),
        ("", "n" * 300),
    ],
)
def test_any_title_and_name_can_be_drawn(title: str, name: str) -> None:
    problem = build(
        knobs(), {name: ("a", "1"), "y": ("b", "1")}, {name: "minimize", "y": "maximize"}, {name: "<= 4"}
    )
    object.__setattr__(problem, "title", title)
    figure = front_figure(solve(problem))
    assert draw(figure, "png").startswith(b"\x89PNG")
    svg = draw(figure, "svg")
    assert [e for e in ET.fromstring(svg).iter() if e.tag.endswith("script")] == []
    if len(title) < 60 and title.isprintable():
        assert title.strip() in texts(svg) or not title


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("a / max(b - 3, 0)", "b"),
        ("a * 1e300", "b * 1e-300"),
        ("a * 0", "b * 0"),
        ("0 - a * 1e5 ** b", "exp(a * b)"),
    ],
)
def test_extreme_values_can_be_drawn(x: str, y: str) -> None:
    figure = front_figure(solve(build(knobs(), {"x": (x, "1"), "y": (y, "1")}, LOWER, {"x": "<= 1"})))
    assert draw(figure, "svg")


def test_an_empty_figure_can_be_drawn() -> None:
    rules = {"no": {"check": "a > 9", "because": "never"}}
    problem = build(knobs(), {"x": ("a", "1"), "y": ("b", "1")}, LOWER, {"x": "<= 3"}, rules=rules)
    assert "all: none feasible" in texts(draw(front_figure(solve(problem)), "svg"))


def test_many_teams_and_many_bounds() -> None:
    teams = {f"team{at}": {"a": [at % 6 + 1, (at + 1) % 6 + 1]} for at in range(12)}
    problem = build(
        knobs(),
        {"x": ("a", "1"), "y": ("b", "1")},
        LOWER,
        {"x": [">= 2", "<= 5", "<= 5.1"], "y": [">= 2", ">= 2.1"]},
        teams=teams,
    )
    found = texts(draw(front_figure(compared(problem, *teams)), "svg"))
    assert sum(text.startswith("team") and "feasible" in text for text in found) == 12
    assert {"x \u2264 5", "x \u2264 5.1"} <= set(found)


def test_six_panels() -> None:
    metrics = {name: (f"a*{at} + b", "1") for at, name in enumerate("pqrs")}
    figure = front_figure(solve(build(knobs(), metrics, dict.fromkeys("pqrs", "minimize"))))
    assert draw(figure, "svg").count(b'id="axes_') == 6


# -- placing labels -------------------------------------------------------------------------------


def test_labels_keep_off_each_other_and_off_their_designs() -> None:
    area = Box(0, 0, 200, 100)
    spots = [(100.0, 50.0), (108.0, 52.0), (104.0, 44.0), (195.0, 95.0)]
    placed = beside(spots, [60.0] * 4, height=11.0, area=area, faint=np.empty((0, 2)), lines=[])
    boxes = [box for box in placed if box is not None]
    assert len(boxes) >= 2
    for at, box in enumerate(boxes):
        assert not any(box.meets(other) for other in boxes[at + 1 :])
        assert not any(box.left < x < box.right and box.bottom < y < box.top for x, y in spots)
        assert box.left >= 0
        assert box.right <= 200
        assert box.top <= 100


def test_a_label_without_room_is_left_out() -> None:
    nothing = np.empty((0, 2))
    spots = [(50.0 + at, 50.0 + at) for at in range(40)]
    placed = beside(spots, [60.0] * 40, height=11.0, area=Box(0, 0, 150, 100), faint=nothing, lines=[])
    boxes = [box for box in placed if box is not None]
    assert 0 < len(boxes) < 20
    assert not any(box.meets(other) for at, box in enumerate(boxes) for other in boxes[at + 1 :])
    assert beside([(5.0, 5.0)], [60.0], height=11.0, area=Box(0, 0, 20, 20), faint=nothing, lines=[]) == [
        None
    ]


def test_texts_in_a_row_are_moved_apart() -> None:
    assert apart([10.0, 0.0, 12.0, 40.0], 5.0) == [10.0, 0.0, 15.0, 40.0]
    assert apart([], 5.0) == []
    assert text_width("\u7a7a", 10) > text_width("a", 10)


def test_the_first_use_on_a_machine_says_nothing_of_fonts(tmp_path: Path) -> None:
    program = """
import logging, sys
from dse.problem.library import load
from dse.reports.front import render
from dse.study.study import search
render(search(load("camera")), sys.argv[1], ["png"])
logging.getLogger("matplotlib.font_manager").warning("building the font cache")
"""
    environment = os.environ | {"MPLCONFIGDIR": str(tmp_path / "none yet"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, str(tmp_path / "front.png")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
