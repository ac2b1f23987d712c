"""The figure of the page: what plotly is told to draw."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dse.reports.axes import Axis
from dse.reports.figure import FrontFigure, front_figure
from dse.reports.hover import body, markup, neighbours
from dse.reports.interactive import drawn, element
from tests.reports.samples import build, camera, compared, knobs, solve

LOWER = {"x": "minimize", "y": "minimize"}
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def figure() -> FrontFigure:
    return front_figure(compared(camera(), "ml", "systems", "mlsys"))


def spec(figure: FrontFigure) -> tuple[list[Any], Any]:
    found = drawn(figure)
    return list(found.data), found.layout


def clouds(traces: list[Any]) -> list[Any]:
    """The traces of designs."""
    return [trace for trace in traces if trace.hovertext is not None]


def test_the_same_bytes_every_time(figure: FrontFigure) -> None:
    assert element(figure) == element(figure)


def test_nothing_slow_is_loaded() -> None:
    program = (
        "import sys\n"
        "from dse.reports.figure import front_figure\n"
        "from dse.reports.interactive import element\n"
        "from tests.reports.samples import camera, solve\n"
        "figure = front_figure(solve(camera(), 'systems'))\n"
        "assert 'plotly' not in sys.modules, 'loaded before it is needed'\n"
        "element(figure)\n"
        "assert not {'plotly.express', 'pandas', 'matplotlib'} & sys.modules.keys()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_every_series_is_a_trace_in_its_teams_colours(figure: FrontFigure) -> None:
    traces = clouds(spec(figure)[0])
    found = {(trace.legendgroup, tuple(zip(trace.x, trace.y, strict=True))): trace.marker for trace in traces}
    assert len(found) == len(figure.panels[0].series)
    symbols = {0: "circle", 1: "square", 2: "triangle-up"}
    for series in figure.panels[0].series:
        spots = tuple(zip(series.x.tolist(), series.y.tolist(), strict=True))
        marker = found[f"team{series.team}", spots]
        hollow = series.kind == "infeasible"
        assert marker.symbol == symbols[series.team] + ("-open" if hollow else "")
        assert marker.opacity == (0.5 if hollow else None)
        colour = marker.line.color if series.kind == "miss" else marker.color
        assert colour == figure.teams[series.team].mark.colour


def test_the_front_is_in_front(figure: FrontFigure) -> None:
    traces = spec(figure)[0]
    assert [trace.marker.size for trace in clouds(traces)][-1] == 13
    widths = [trace.line.width for trace in traces if trace.mode == "lines"]
    assert widths == [1.3, 1.3, 1.8]  # two bounds, then the staircase


def test_the_legend_switches_teams_and_explains_markers(figure: FrontFigure) -> None:
    traces, layout = spec(figure)
    named = [trace for trace in traces if trace.showlegend is None]
    assert [(trace.legendgroup, trace.name) for trace in named if trace.legend is None] == [
        ("team0", "ml: none feasible; misses accuracy by 3.9 %"),
        ("team1", "systems: none feasible; misses accuracy by 0.2 %"),
        ("team2", "mlsys: 8 feasible, 2 on the front"),
    ]
    assert layout.legend.groupclick == "togglegroup"
    kinds = [trace.name for trace in named if trace.legend == "legend2"]
    assert kinds == ["Pareto front", "feasible", "nearest miss", "infeasible"]
    assert layout.legend2.itemclick is False


def test_axes_start_where_the_figure_says(figure: FrontFigure) -> None:
    layout = spec(figure)[1]
    x, y = figure.panels[0].x, figure.panels[0].y
    assert layout.xaxis.title.text == "accuracy [%], higher is better"
    assert layout.xaxis.range == (x.low, x.high)
    assert layout.yaxis.type == "log"
    assert np.allclose(layout.yaxis.range, np.log10([y.low, y.high]))


def test_bounds_are_lines_with_a_text_and_a_shaded_side(figure: FrontFigure) -> None:
    traces, layout = spec(figure)
    x, y = figure.panels[0].x, figure.panels[0].y
    lines = [trace for trace in traces if trace.mode == "lines"]
    assert (lines[0].x, lines[0].y) == ((90.0, 90.0), (y.low, y.high))
    assert (lines[1].x, lines[1].y) == ((x.low, x.high), (10.0, 10.0))
    assert lines[0].line.dash != lines[1].line.dash
    assert [(s.x0, s.x1, s.y0, s.y1) for s in layout.shapes] == [(x.low, 90.0, 0, 1), (0, 1, 10.0, y.high)]
    texts = [(note.text, note.x, note.y) for note in layout.annotations]
    assert texts == [
        ("accuracy \u2265 90 %", 90.0, 1),
        ("latency<br>\u2264 10 ms", 1, 1.0),
    ]  # a logarithm


def test_near_misses_and_short_fronts_are_named(figure: FrontFigure) -> None:
    texts = [text for trace in clouds(spec(figure)[0]) for text in trace.text or ()]
    assert sorted(texts) == ["90.9 %, 5.75 ms", "91.9 %, 8 ms", "ml: nearest miss", "systems: nearest miss"]


def test_hover_is_the_whole_design(figure: FrontFigure) -> None:
    (text,) = {text for t in clouds(spec(figure)[0]) for text in t.hovertext if "design 319," in text}
    lines = text.replace("<b>", "").replace("</b>", "").replace("\u00a0", " ").split("<br>")
    card = next(at for at, card in enumerate(figure.cards) if card.index == "319")
    assert lines == figure.hover(card).splitlines()


def test_designs_on_one_spot_are_named_by_each() -> None:
    problem = build(knobs(3, 20), {"x": ("a", "1"), "y": ("4 - a", "1")}, LOWER)
    figure = front_figure(solve(problem))
    (team,) = [t for t in clouds(spec(figure)[0]) if len(t.x) == 60]
    said = [re.findall("<i>(.*)</i>", text) for text in team.hovertext]
    assert said[0] == ["19 more on this spot: 1, 2, 3, 4, 5, 6, 7, 8, \u2026"]
    assert said[3] == ["19 more on this spot: 0, 1, 2, 4, 5, 6, 7, 8, \u2026"]
    assert neighbours(figure, 3, [3]) == ""
    assert neighbours(figure, 3, [3, 5]).endswith("1 more on this spot: 5</i>")


def test_texts_of_a_space_are_not_read_as_markup() -> None:
    evil = "<a href='x'>&lt;b&gt;</a>\n%{x}"
    problem = build(
        {"a": {"choices": [evil, "plain"]}}, {"x": ("1 if a == 'plain' else 2", "1")}, {"x": "minimize"}
    )
    text = next(t for t in (body(front_figure(solve(problem)), at) for at in range(2)) if "plain" not in t)
    assert "<a" not in text
    assert "&amp;lt;b" in text
    assert "\n" not in text
    assert html.unescape(markup(evil)) == evil


def test_long_designs_are_paragraphs() -> None:
    dimensions = {f"dimension{at}": [1] for at in range(40)}
    text = body(front_figure(solve(build(dimensions, {"x": ("dimension0", "1")}, {"x": "minimize"}))), 0)
    lines = text.split("<br>")
    assert len(lines) < 20
    assert max(map(len, lines)) <= 64 + len("<b></b>")
    assert all(f"dimension{at}:\u00a01" in text for at in range(40))


def test_designs_beyond_the_axes_appear_by_zooming_out() -> None:
    problem = build(
        {"a": {"range": [1, 1000]}},
        {"x": ("a if a < 95 else 0 - a * 1e6", "1"), "y": ("0 - a", "1")},
        {"x": "maximize", "y": "minimize"},
        {"y": ">= -20"},
    )
    figure = front_figure(solve(problem))
    panel = figure.panels[0]
    traces, layout = spec(figure)
    drawn_there = np.concatenate([np.array(trace.y) for trace in clouds(traces)])
    assert drawn_there.min() == -1000 < panel.y.low
    assert layout.yaxis.range == (panel.y.low, panel.y.high)
    assert layout.yaxis.minallowed < -1000
    assert layout.yaxis.maxallowed == panel.y.high
    assert layout.xaxis.minallowed < -1e9
    (shade,) = layout.shapes  # reaches as far as the reader can
    assert (shade.y0, shade.y1) == (layout.yaxis.minallowed, -20.0)
    stairs = [trace for trace in traces if trace.mode == "lines"][-1]
    assert stairs.x[-1] == layout.xaxis.minallowed
    assert "1,000" in figure.notes[0]


def test_six_panels_have_axes_and_designs_of_their_own() -> None:
    metrics = {name: (f"a*{at} + b", "1") for at, name in enumerate("pqrs")}
    figure = front_figure(solve(build(knobs(), metrics, dict.fromkeys("pqrs", "minimize"))))
    traces, layout = spec(figure)
    assert {(t.xaxis, t.yaxis) for t in clouds(traces)} == {
        (f"x{at}", f"y{at}") for at in ("", "2", "3", "4", "5", "6")
    }
    assert layout.xaxis6.title.text == "r, lower is better"
    assert layout.yaxis6.title.text == "s, lower is better"


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("a / max(b - 3, 0)", "b"),
        ("a * 1e300", "b * 1e-300"),
        ("a * 0", "b * 0"),
        ("0 - a * 1e5 ** b", "exp(a * b)"),
    ],
)
def test_extreme_values_have_finite_axes(x: str, y: str) -> None:
    figure = front_figure(solve(build(knobs(), {"x": (x, "1"), "y": (y, "1")}, LOWER, {"x": "<= 1"})))
    layout = spec(figure)[1]
    for axis in (layout.xaxis, layout.yaxis):
        assert np.isfinite([*axis.range, axis.minallowed, axis.maxallowed]).all()
        assert axis.minallowed <= axis.range[0] < axis.range[1] <= axis.maxallowed


def test_an_empty_figure() -> None:
    rules = {"no": {"check": "a > 9", "because": "never"}}
    problem = build(knobs(), {"x": ("a", "1"), "y": ("b", "1")}, LOWER, {"x": "<= 3"}, rules=rules)
    traces = spec(front_figure(solve(problem)))[0]
    assert [trace.name for trace in traces if trace.name] == ["all: none feasible"]


def test_many_teams_and_bounds_do_not_meet() -> None:
    teams = {f"team{at}": {"a": [at % 6 + 1, (at + 1) % 6 + 1]} for at in range(12)}
    bounds = {"x": [">= 2", "<= 5", "<= 5.1"], "y": [">= 2", ">= 2.1"]}
    problem = build(knobs(), {"x": ("a", "1"), "y": ("b", "1")}, LOWER, bounds, teams=teams)
    figure = front_figure(compared(problem, *teams))
    layout = spec(figure)[1]
    shifts = {note.text: note.yshift for note in layout.annotations}
    assert shifts["x \u2264 5.1"] - shifts["x \u2264 5"] >= 15
    height = layout.height - layout.margin.t - layout.margin.b
    axis: Axis = figure.panels[0].y
    places = [
        float(axis.at(np.array(at))) * height + shifts[text]
        for at, text in ((2.0, "y \u2265 2"), (2.1, "y \u2265 2.1"))
    ]
    assert places[1] - places[0] >= 15
    assert layout.legend.orientation == "h"
