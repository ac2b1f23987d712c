"""What is drawn: axes, limits, series, hover texts and notes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dse.errors import InputError
from dse.problem import Problem
from dse.reports.axes import scale_of, spread_out, view
from dse.reports.cloud import spots
from dse.reports.figure import FrontFigure, Series, front_figure
from dse.reports.style import BACKGROUND, mark
from dse.study.accounting import Accounting, Funnel
from dse.study.compare import Comparison
from dse.study.result import FrontPoint, Kept, Result
from dse.study.study import Study
from tests.reports.samples import build, camera, compared, knobs, sampled, solve

LOWER = {"x": "minimize", "y": "minimize"}


def series_of(figure: FrontFigure, kind: str, team: int = 0, panel: int = 0) -> Series:
    (found,) = [s for s in figure.panels[panel].series if s.kind == kind and s.team == team]
    return found


@pytest.fixture(scope="module")
def cameras() -> Comparison:
    return compared(camera(), "ml", "systems", "mlsys")


def test_camera_shows_the_two_objectives_with_units(cameras: Comparison) -> None:
    panel = front_figure(cameras).panels[0]
    assert (panel.x.label, panel.y.label) == (
        "accuracy [%], higher is better",
        "latency [ms], lower is better",
    )
    assert (panel.x.log, panel.y.log) == (False, True)  # latencies span three decades


def test_camera_has_one_front_and_two_near_misses(cameras: Comparison) -> None:
    figure = front_figure(cameras)
    front = series_of(figure, "front", team=2)
    assert sorted(zip(front.x.tolist(), front.y.tolist(), strict=True)) == [(90.9, 5.75), (91.9, 8.0)]
    assert [team.name for team in figure.teams] == ["ml", "systems", "mlsys"]
    assert series_of(figure, "miss", team=0).x.tolist() == [86.1]
    assert series_of(figure, "miss", team=1).x.tolist() == [89.8]


def test_every_design_is_drawn_once_for_its_smallest_team(cameras: Comparison) -> None:
    figure = front_figure(cameras)
    counts = [
        sum(
            len(s.x)
            for s in figure.panels[0].series
            if s.team == team and s.kind in ("feasible", "infeasible")
        )
        for team in range(3)
    ]
    assert counts == [117, 7, 188]  # three designs are both ml's and systems'
    assert "All 312 evaluated designs" in figure.notes
    assert "A design of several teams has the mark of the smallest" in figure.notes


def test_hover_is_the_whole_design_and_every_metric(cameras: Comparison) -> None:
    figure = front_figure(cameras)
    front = series_of(figure, "front", team=2)
    best = front.cards[front.x.tolist().index(91.9)]
    assert figure.hover(best).splitlines() == [
        "design 319, feasible",
        "teams: mlsys",
        "detector: Det-L",
        "format: int8-QAT",
        "pruning: none",
        "distill: true",
        "engine: optimized",
        "hardware: npu",
        "accuracy: 91.9 %",
        "latency: 8 ms",
        "memory: 38 MB",
    ]
    miss = figure.hover(series_of(figure, "miss", team=1).cards[0])
    assert miss.startswith("design 291, misses accuracy by 0.2 %\nteams: systems, mlsys\n")


def test_constraints_on_an_axis_are_lines_with_an_allowed_side(cameras: Comparison) -> None:
    lines = front_figure(cameras).panels[0].lines
    assert [(line.text, line.axis, line.at, line.allowed) for line in lines] == [
        ("accuracy \u2265 90 %", "x", 90.0, "above"),
        ("latency \u2264 10 ms", "y", 10.0, "below"),
    ]
    assert len({line.style for line in lines}) == 2


def test_a_bound_written_the_other_way_round_or_varying_by_design() -> None:
    problem = build(
        knobs(),
        {"x": ("a", "1"), "y": ("b", "1")},
        LOWER,
        {"flipped": {"check": "4 >= x"}, "varying": {"check": "y <= a"}},
    )
    lines = front_figure(solve(problem)).panels[0].lines
    assert [(line.text, line.allowed) for line in lines] == [("x \u2264 4", "below")]


def test_axes_can_be_chosen(cameras: Comparison) -> None:
    panel = front_figure(cameras, "memory", "accuracy").panels[0]
    assert (panel.x.label, panel.y.label) == ("memory [MB]", "accuracy [%], higher is better")
    assert not panel.stairs  # memory is no objective, so there is no staircase between these axes
    assert [line.text for line in panel.lines] == ["memory \u2264 100 MB", "accuracy \u2265 90 %"]
    assert front_figure(cameras, y="memory").panels[0].x.name == "accuracy"
    assert front_figure(cameras, x="index").panels[0].y.name == "accuracy"


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [("latencey", None, "did you mean 'latency'"), ("latency", "latency", "both show 'latency'")],
)
def test_axes_that_cannot_be_drawn(cameras: Comparison, x: str, y: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        front_figure(cameras, x, y)


# -- how many objectives --------------------------------------------------------------------------


def test_one_objective_stands_against_the_first_bounded_metric() -> None:
    problem = build(
        knobs(), {"speed": ("a*b", "1"), "power": ("a+b", "1")}, {"speed": "maximize"}, {"power": "<= 7"}
    )
    figure = front_figure(solve(problem))
    assert (figure.panels[0].x.name, figure.panels[0].y.name) == ("power", "speed")
    assert figure.front == "best design"
    assert (series_of(figure, "front").x.tolist(), series_of(figure, "front").y.tolist()) == ([7.0], [12.0])
    assert figure.teams[0].summary == "21 feasible, best 12"


def test_one_objective_alone_stands_against_the_index() -> None:
    figure = front_figure(solve(build(knobs(), {"speed": ("a*b", "1")}, {"speed": "maximize"})))
    assert figure.panels[0].x.name == "index"
    assert figure.panels[0].x.whole
    assert series_of(figure, "front").x.tolist() == [35.0]
    assert series_of(figure, "feasible").x.tolist() == list(range(36))


def test_the_index_of_a_huge_space_is_its_share() -> None:
    many = {f"d{at}": [False, True] for at in range(80)}
    problem = build(many, {"count": ("1 if d0 else 2", "1")}, {"count": "minimize"})
    small = build({"d0": [False, True]}, {"count": ("1 if d0 else 2", "1")}, {"count": "minimize"})
    result = solve(small)
    kept = result.kept
    assert kept is not None
    digits = np.zeros((2, 80), dtype=np.intp)
    digits[:, 0] = [0, 1]
    wide = replace(result, problem=problem, kept=replace(kept, digits=digits), front=(), nearest_miss=None)
    assert series_of(front_figure(wide), "feasible").x.tolist() == [0.0, 0.5]


def test_three_objectives_are_three_panels() -> None:
    metrics = {"x": ("a", "1"), "y": ("b", "1"), "z": ("a*b", "1")}
    figure = front_figure(solve(build(knobs(), metrics, {"x": "minimize", "y": "maximize", "z": "minimize"})))
    assert [(p.x.name, p.y.name) for p in figure.panels] == [("x", "y"), ("x", "z"), ("y", "z")]
    assert not any(panel.stairs for panel in figure.panels)
    assert "The front is over 3 objectives, so some of its designs look dominated here" in figure.notes


def test_five_objectives_show_four_and_say_so() -> None:
    metrics = {name: (f"a*{at} + b", "1") for at, name in enumerate("pqrst")}
    figure = front_figure(solve(build(knobs(), metrics, dict.fromkeys("pqrst", "minimize"))))
    assert len(figure.panels) == 6
    assert "The first 4 of 5 objectives are drawn" in figure.notes


# -- hard cases -----------------------------------------------------------------------------------


def test_no_design_at_all() -> None:
    problem = build(
        knobs(),
        {"x": ("a", "1"), "y": ("b", "1")},
        LOWER,
        rules={"no": {"check": "a > 9", "because": "never"}},
    )
    figure = front_figure(solve(problem))
    assert figure.panels[0].series == ()
    assert figure.teams[0].summary == "none feasible"


def test_infinite_values_are_counted_and_not_drawn() -> None:
    problem = build(knobs(), {"x": ("a / max(b - 3, 0)", "1"), "y": ("b", "1")}, LOWER)
    figure = front_figure(solve(problem))
    assert "18 have no finite value" in figure.notes
    assert all(np.isfinite(s.x).all() for s in figure.panels[0].series)


def test_failed_designs_are_counted() -> None:
    table = {"t": {"keys": ["a"], "unit": "1", "rows": {"1": 5, "2": 6}}}
    problem = build({"a": {"range": [1, 3]}}, {"x": ("t[a]", "1"), "y": ("a", "1")}, LOWER, tables=table)
    assert "1 failed" in front_figure(solve(problem)).notes


def test_a_single_design() -> None:
    figure = front_figure(solve(build({"a": [2]}, {"x": ("a", "1"), "y": ("a - 2", "1")}, LOWER)))
    panel = figure.panels[0]
    assert panel.x.low < 2 < panel.x.high
    assert panel.y.low < 0 < panel.y.high
    assert "The one evaluated design" in figure.notes


def test_far_infeasible_designs_do_not_squash_the_rest() -> None:
    problem = build(
        {"a": {"range": [1, 1000]}},
        {"x": ("a if a < 95 else a * 1e6", "1"), "y": ("0 - a", "1")},
        LOWER,
        {"y": ">= -20"},
    )
    panel = front_figure(solve(problem)).panels[0]
    assert panel.x.high > 20
    assert panel.y.low > -1000
    note = next(n for n in front_figure(solve(problem)).notes if "beyond" in n)
    inside = sum(len(s.x) for s in panel.series if s.kind in ("feasible", "infeasible"))
    assert note == f"{1000 - inside} lie beyond the axes"
    (beyond,) = panel.beyond
    assert beyond.kind == "infeasible"
    assert len(beyond.x) == 1000 - inside
    assert not (panel.x.holds(beyond.x) & panel.y.holds(beyond.y)).any()


def test_thousands_of_designs_are_thinned_but_none_is_alone_and_lost() -> None:
    problem = build(
        knobs(60, 60),
        {"x": ("a + b / 1000", "1"), "y": ("b if b < 60 else 200", "1")},
        {"x": "minimize", "y": "maximize"},
    )
    figure = front_figure(solve(problem), drawn=400)
    shown = series_of(figure, "feasible")
    assert 100 < len(shown.x) <= 200
    assert shown.y.max() == 200
    assert "Where many fall on one spot, one of them is drawn" in figure.notes
    assert "All 3,600 evaluated designs" in figure.notes


def test_a_sample_says_that_it_is_one() -> None:
    result = solve(camera(), "mlsys", keep=50)
    assert front_figure(result).notes[0] == "A sample of 50 of 312 evaluated designs"


def test_without_kept_designs_there_is_still_the_front() -> None:
    figure = front_figure(replace(solve(camera(), "mlsys"), kept=None))
    assert [s.kind for s in figure.panels[0].series] == ["front"]
    assert figure.notes[0] == "The front alone, since evaluated designs were not kept"
    assert "latency: 5.75 ms" in figure.hover(1)


def test_a_study_is_drawn_by_its_result() -> None:
    study = Study(camera(), team="mlsys", solver="exhaustive")
    study.run()
    assert len(front_figure(study).cards) == 312


def test_the_whole_space_stands_behind_teams_that_are_smaller() -> None:
    figure = front_figure(compared(camera(), "ml", "systems"))
    assert [team.name for team in figure.teams] == ["ml", "systems", "whole space"]
    assert figure.teams[2].mark == BACKGROUND


def test_sampled_teams_do_not_claim_to_know_who_has_a_design() -> None:
    source = compared(camera(), "ml", "mlsys")
    kept = source.rows[1].result.kept
    assert kept is not None
    part = replace(source.rows[1], result=replace(source.rows[1].result, kept=sampled(kept, 30)))
    figure = front_figure(replace(source, rows=(source.rows[0], part)))
    assert {card.teams for card in figure.cards} == {""}
    assert figure.notes[:2] == (
        "ml: all 120 evaluated designs",
        "mlsys: a sample of 30 of 312 evaluated designs",
    )


def sampled_result(problem: Problem, objectives: list[list[float]], front: FrontPoint | None) -> Result:
    """What a sampling solver leaves of a problem whose designs have no index."""
    rows = len(objectives)
    kept = Kept(
        np.ones((rows, len(problem.names)), dtype=np.intp),
        np.array(objectives),
        np.zeros((rows, len(problem.constraints))),
        np.ones(rows, dtype=np.bool_),
        np.zeros(rows, dtype=np.bool_),
        rows,
        True,
    )
    points = (front,) if front else ()
    accounting, funnel = Accounting(rows, evaluated=rows), Funnel(rows, 0, (), rows, exact=False)
    return Result(problem, "all", "optuna", "sampling", "stopped", accounting, funnel, points, kept=kept)


def test_a_continuous_space_keeps_objectives_only() -> None:
    dimensions = {"a": {"range": [0.5, 2.5]}, "kind": ["p", "q"]}
    metrics = {"x": ("a", "1"), "other": ("a * 2", "1")}
    problem = build(dimensions, metrics, {"x": "minimize"}, {"other": ">= 0"})
    best = FrontPoint(None, {"a": 0.75, "kind": "q"}, {"x": 0.75}, {"x": 0.75, "other": 1.5})
    figure = front_figure(sampled_result(problem, [[1.0], [0.75], [2.0]], best))
    front, others = series_of(figure, "front"), series_of(figure, "feasible")
    assert (figure.panels[0].x.name, front.x.tolist(), others.x.tolist()) == ("index", [1.0], [0.0, 1.0, 2.0])
    assert figure.hover(front.cards[0]) == "feasible\na: 0.75\nkind: q\nx: 0.75\nother: 1.5"
    assert figure.hover(others.cards[0]) == "feasible\na: -\nkind: q\nx: 1\nother: -"
    with pytest.raises(InputError, match="keeps only objectives"):
        front_figure(sampled_result(problem, [[1.0]], None), "other")


def test_a_measured_objective_is_drawn_from_what_was_kept() -> None:
    metrics: dict[str, dict[str, Any]] = {
        "x": {"measured": True, "unit": "ms"},
        "y": {"expr": "b * 1 B", "unit": "B"},
        "z": {"measured": True, "unit": "ms"},
    }
    problem = build(
        knobs(), metrics, {"x": "minimize", "y": "minimize"}, {"y": "<= 3 B"}, measure={"command": ["true"]}
    )
    best = FrontPoint(7, {"a": 2.0, "b": 2.0}, {"x": 0.004, "y": 2.0}, {"x": 0.004, "y": 2.0, "z": 0.001})
    figure = front_figure(sampled_result(problem, [[0.004, 2.0]], best))
    assert series_of(figure, "feasible").x.tolist() == [4.0]
    assert figure.hover(0) == "design 7, feasible\nteams: all\na: 2\nb: 2\nx: 4 ms\ny: 2 B\nz: 1 ms"
    with pytest.raises(InputError, match="'z' is measured"):
        front_figure(sampled_result(problem, [[0.004, 2.0]], best), "z")


# -- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ways", list(itertools.product(("minimize", "maximize"), repeat=2)))
def test_the_staircase_bounds_what_the_front_dominates(ways: tuple[str, str]) -> None:
    problem = build(
        knobs(), {"x": ("abs(a - 3)", "1"), "y": ("(a - 1) * 2 + b", "1")}, dict(zip("xy", ways, strict=True))
    )
    figure = front_figure(solve(problem))
    ((_, xs, ys),) = figure.panels[0].stairs
    front = series_of(figure, "front")
    assert np.all((np.diff(xs) == 0) | (np.diff(ys) == 0))  # steps, no slopes
    assert {*zip(front.x.tolist(), front.y.tolist(), strict=True)} <= {
        *zip(xs.tolist(), ys.tolist(), strict=True)
    }
    panel = figure.panels[0]
    assert ys[0] == (panel.y.high if ways[1] == "minimize" else panel.y.low)
    assert xs[-1] == (panel.x.high if ways[0] == "minimize" else panel.x.low)


def test_teams_differ_in_colour_and_in_marker() -> None:
    marks = [mark(at) for at in range(56)]
    assert len({m.colour for m in marks[:7]}) == len({m.marker for m in marks[:7]}) == 7
    assert len(set(marks)) == 56


def lightness(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def test_colours_stand_out_on_white() -> None:
    assert all(1.05 / (lightness(mark(at).colour) + 0.05) > 2.0 for at in range(7))


@pytest.mark.parametrize(
    ("values", "log"),
    [
        ([1, 99], False),
        ([1, 101], True),
        ([0, 1e6], False),
        ([-1, 1e6], False),
        ([], False),
        ([5, np.inf], False),
    ],
)
def test_a_logarithmic_scale_needs_positive_values_over_two_decades(values: list[float], log: bool) -> None:
    assert scale_of(np.array(values, dtype=float)) is log


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    ("values", "core"),
    [
        ([1.0, 2.0, 1000.0], [1.0, 2.0]),
        ([5.0], [5.0]),
        ([], []),
        ([1e-300, 1e300], [1e-300, 1e300]),
        ([1.7e308], [1.7e308]),
        ([9e299, -9e299], [9e299]),
        ([1e-300], [1e-300]),
        ([1.0, np.inf, np.nan], [1.0, np.nan]),
        ([1.0, 3.0], []),
    ],
)
def test_limits_are_finite_and_hold_the_core(values: list[float], core: list[float], log: bool) -> None:
    low, high = view(np.array(values, dtype=float), np.array(core, dtype=float), log)
    assert np.isfinite([low, high]).all()
    assert low < high
    assert all(low <= v <= high for v in core if np.isfinite(v) and v < 1e300)


def test_the_core_takes_its_share_of_the_axis() -> None:
    low, high = view(np.array([0.0, 1.0, 1e9]), np.array([0.0, 1.0]), log=False)
    assert 2.0 < high - low < 2.6
    low, high = view(np.array([1.0, 10.0, 1e99]), np.array([1.0, 10.0]), log=True)
    assert 1e4 < high / low < 1e5


def test_fronts_are_not_squeezed_by_what_is_feasible() -> None:
    core = np.linspace(1.0, 100.0, 1000)
    low, high = view(core, core, log=False, marked=np.array([1.0, 5.0]))
    assert low < 1.0
    assert 50.0 < high < 60.0  # half of what is feasible, and no more than that
    alone = np.append(np.linspace(1.0, 10.0, 500), 1e3)
    assert view(alone, alone, log=False)[1] < 20.0
    low, high = view(core, np.empty(0), log=False, marked=np.array([3.0]))
    assert low < 1.0
    assert high > 100.0


def test_infeasible_outliers_set_neither_scale_nor_limits() -> None:
    problem = build(
        knobs(30, 30), {"m": ("a * b", "1"), "k": ("a * a * a", "1")}, {"m": "maximize"}, {"k": "<= 900"}
    )
    (panel,) = front_figure(solve(problem)).panels
    assert (panel.x.name, panel.x.log) == ("k", True)
    problem = build(
        {"a": {"range": [10, 30]}, "b": {"range": [1, 6]}, "c": [1, 30]},
        {"m": ("a + b", "1"), "k": ("a * c", "1")}, {"m": "minimize", "k": "minimize"}, {"k": "<= 30"},
    )  # fmt: skip
    figure = front_figure(solve(problem))
    (panel,) = figure.panels
    assert not panel.y.log
    assert panel.y.high < 100.0  # of up to 900
    assert any(note.endswith("lie beyond the axes") for note in figure.notes)


def test_one_objective_stands_against_another_metric() -> None:
    metrics = {
        "m": ("a + b", "1"),
        "fixed": ("2 * 3", "1"),
        "other": ("a * b", "1"),
        "bounded": ("a - b", "1"),
    }
    alone = front_figure(solve(build(knobs(), metrics, {"m": "minimize"})))
    assert alone.panels[0].x.name == "other"
    bounded = front_figure(solve(build(knobs(), metrics, {"m": "minimize"}, {"bounded": ">= b - 9"})))
    assert bounded.panels[0].x.name == "bounded"


def test_values_of_any_size_are_spread_out() -> None:
    places = spread_out(np.array([-1e299, 0.0, 1e299]))
    assert np.allclose(places, [0.0, 0.5, 1.0])
    assert spread_out(np.array([7.0, 7.0])).tolist() == [0.0, 0.0]
    assert spread_out(np.empty(0)).size == 0


def test_thinning_keeps_to_its_limit_and_keeps_lone_points() -> None:
    generator = np.random.default_rng(1)
    x, y = np.append(generator.random(50_000) / 2, 0.99), np.append(generator.random(50_000) / 2, 0.99)
    chosen = spots(x, y, 1000)
    assert 300 < chosen.size <= 1000
    assert 50_000 in chosen
    assert spots(x[:10], y[:10], 1000).tolist() == list(range(10))
