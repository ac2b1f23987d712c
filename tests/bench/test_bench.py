from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dse
from dse.evaluation import Judge
from tests.bench.cases import Case, Outcome, measured
from tests.bench.generator import Shape, generated, neutral_of
from tests.bench.measuring import Line, Missing, Options, amount, read, table, timed, write
from tests.bench.peers import Designs, tried
from tests.bench.run import SCRIPTS, judged
from tests.bench.sources import problem_of
from tests.bench.truth import compared


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        (Line("a", 0.5, bar=1.0), "pass"),
        (Line("a", 2.0, bar=1.0), "MISSED"),
        (Line("a", 2.0, bar=1.0, more=True), "pass"),
        (Line("a", 0.5, bar=1.0, median=2.0), "best only"),
        (Line("a", None, bar=1.0), "not run"),
        (Line("a", 0.5), ""),
        (Line("a", 0.5, bar=1.0, wrong="another front"), "WRONG"),
    ],
)
def test_a_line_is_held_against_its_bar(line: Line, verdict: str) -> None:
    assert line.verdict == verdict


def test_best_and_median_of_runs() -> None:
    line = timed("a", [3.0, 1.0, 2.0], 1.5)
    assert (line.figure, line.median, line.runs, line.verdict) == (1.0, 2.0, 3, "best only")


def test_figures_are_short() -> None:
    assert [amount(v, "s") for v in (0.0123, 0.612, 12.34, 231.0)] == [
        "12.3 ms",
        "0.612 s",
        "12.3 s",
        "231 s",
    ]
    assert amount(1.5e7, "points/s") == "1.50e+07 points/s"


def test_the_table_has_peers_and_what_is_wrong() -> None:
    text = "\n".join(
        table([Line("a", 0.5, peer="one\ntwo", ratio=3.0), Line("b", 1.0, wrong="counts", note="n")])
    )
    assert "peer: one" in text
    assert "peer: two" in text
    assert "wrong: counts" in text
    assert "3x" in text


def test_lines_are_read_as_they_were_written(tmp_path: Path) -> None:
    lines = [timed("a", [1.0], 2.0, peer="p", ratio=2.0), Line("b", None, wrong="w")]
    write(tmp_path / "x.json", {}, lines, {"peak": 1})
    assert read(tmp_path / "x.json") == (lines, {"peak": 1})
    assert json.loads((tmp_path / "x.json").read_text())["lines"][0]["verdict"] == "pass"


def test_bars_are_summed_up() -> None:
    lines = [Line("a", 0.5, bar=1.0), Line("b", 2.0, bar=1.0), Line("c", 1.0)]
    assert judged(lines) == "1 bars met by the median, 1 missed"


def test_every_benchmark_is_there() -> None:
    folder = Path(__file__).parent
    assert all((folder / f"{script}.py").is_file() for script in SCRIPTS)


@pytest.mark.parametrize("size", [1e4, 1e7, 1e12])
def test_generated_spaces_have_the_size_and_the_seed_that_were_asked_for(size: float) -> None:
    shape = Shape(size=size, seed=3)
    assert Shape.read(shape.source) == shape
    assert neutral_of(shape) == neutral_of(shape)
    assert neutral_of(shape) != neutral_of(Shape(size=size, seed=4))
    problem = generated(Shape(size=size, constraints=0, objectives=2))
    assert 0.8 * size <= problem.size <= 1.25 * size
    assert len(problem.objectives) == 2


@pytest.mark.parametrize("tightness", [0.2, 0.8])
def test_generated_constraints_are_as_tight_as_was_asked_for(tightness: float) -> None:
    problem = generated(Shape(size=1e5, constraints=3, tightness=tightness, rules=0))
    rng = np.random.default_rng(99)
    digits = {d.name: rng.integers(0, len(d.values), 20_000) for d in problem.dimensions}
    met = (Judge(problem).evaluate(digits, 20_000).violations <= 0.0).mean(axis=0)
    assert met == pytest.approx([tightness] * 3, abs=0.05)


def test_deeper_costs_have_more_layers() -> None:
    shallow, deep = (len(neutral_of(Shape(size=1e6, depth=depth))["formulas"]) for depth in (1, 6))
    assert deep > shallow


def test_a_case_counts_and_times() -> None:
    found = measured(Case(Shape(size=2000).source, workers=1, runs=2))
    exhaustive = dse.search(problem_of(Shape(size=2000).source), solver="exhaustive", ties=True)
    assert len(found.seconds) == 2
    assert (found.front, found.total) == (len(exhaustive.front), exhaustive.accounting.total)
    assert found.boxes > 0
    assert found.peak > 10


def test_fewer_objectives() -> None:
    assert [o.name for o in problem_of(Shape(size=100).source, ("cost1",)).objectives] == ["cost1"]


def test_other_counts_than_known_are_told() -> None:
    right = Outcome([1.0], [1.0], [0.0], 1.0, 0.0, 38, 38, 480, 480, 40, 10)
    assert not compared("camera_480", right)
    assert "front 37" in compared(
        "camera_480", Outcome([1.0], [1.0], [0.0], 1.0, 0.0, 37, 38, 480, 480, 40, 10)
    )


def test_peers_see_the_designs_as_they_are() -> None:
    problem = problem_of("camera")
    designs = Designs(problem, limit=400)
    rows = np.array([problem.digits_of(index) for index in range(problem.size)])
    designs.evaluate(rows[:300])
    designs.evaluate(rows[300:])
    assert designs.evaluated == len(designs.seen) == 400
    whole = Designs(problem)
    whole.evaluate(rows)
    front = dse.search(problem, solver="exhaustive").front
    true = sorted([point.objectives[o.name] * o.sign for o in problem.objectives] for point in front)
    assert sorted(whole.best()) == true


def test_a_peer_that_is_not_installed_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pymoo.py").write_text("raise ModuleNotFoundError('no pymoo', name='pymoo')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    # The checkout is first on the path of a child, so the stand-in is found unless pymoo itself is installed before it.
    answer = tried("pymoo", "camera", 10)
    assert isinstance(answer, Missing)
    assert "pymoo is not installed" in str(answer)


def test_reference_problems_are_optional(tmp_path: Path) -> None:
    assert Options().reference("training_1e9") is None
    assert Options(data=tmp_path).reference("training_1e9") is None
    assert Options(data=tmp_path).benchspaces() == []
