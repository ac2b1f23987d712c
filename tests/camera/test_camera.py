"""The shipped camera space gives every right answer of the exercise (expected.csv)."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dse.evaluation import State, judge
from dse.problem import Problem
from dse.problem.library import load, locate
from dse.solvers.exhaustive import Exhaustive
from dse.solvers.pareto import Pareto
from dse.study.compare import Comparison, compare
from dse.study.diagnosis import design_metrics, exact_result
from dse.study.exact import run_exact
from dse.study.result import Result
from tests.bruteforce import assert_right_counts, assert_right_explanation, assert_right_front, truth

EXPECTED = Path(__file__).parent / "expected.csv"
MS, MB, PERCENT = 1e-3, 1e6, 1e-2


def near(value: float) -> Any:
    return pytest.approx(value, rel=1e-12, abs=0.0)


def expected() -> list[dict[str, str]]:
    lines = [line for line in EXPECTED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def solved(problem: Problem, team: str | None, solver: Any = Exhaustive) -> Result:
    own = problem.team(team)
    return exact_result(problem, own, solver.name, run_exact(problem, own, solver()))


@cache
def camera() -> Problem:
    return load("camera")


@cache
def result(team: str | None) -> Result:
    return solved(camera(), team)


@cache
def comparison() -> Comparison:
    return compare(camera(), solve=lambda problem, team=None: solved(problem, team))


def design(row: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {name: row[name] for name in camera().names}
    found["distill"] = row["distill"] == "True"
    return found


def metrics(problem: Problem | None = None, **chosen: Any) -> dict[str, Any]:
    found = problem or camera()
    return design_metrics(found, found.design_at(found.digits(chosen)))


def npu(**chosen: Any) -> dict[str, Any]:
    return {"pruning": "none", "distill": False, "engine": "optimized", "hardware": "npu", **chosen}


def test_the_file_of_right_answers_is_whole() -> None:
    scopes = [row["scope"] for row in expected()]
    assert scopes == ["mlsys feasible"] * 8 + [
        "all",
        "ml",
        "systems",
        "mlsys",
        "variant",
        "variant",
        "pruning",
    ]


# -- all ----------------------------------------------------------------------------------------------


def test_480_designs_312_of_them_legal() -> None:
    accounting = result(None).accounting
    assert accounting.total == camera().size == 480
    assert accounting.evaluated == 312
    assert accounting.illegal_by == {"supported": 96, "engine_runs": 72}


# -- mlsys ----------------------------------------------------------------------------------------------


def feasible_designs() -> list[dict[str, Any]]:
    right = truth(camera())
    return [camera().design_at(camera().digits_of(index)) for index in right.costs]


def test_the_feasible_designs_are_the_eight() -> None:
    rows = [row for row in expected() if row["scope"] == "mlsys feasible"]
    assert sorted(map(str, feasible_designs())) == sorted(str(design(row)) for row in rows)


@pytest.mark.parametrize("row", [row for row in expected() if row["scope"] == "mlsys feasible"])
def test_the_figures_of_each(row: dict[str, str]) -> None:
    found = design_metrics(camera(), design(row))
    assert found["accuracy"] == near(float(row["accuracy_pct"]) * PERCENT)
    assert found["latency"] == near(float(row["latency_ms"]) * MS)
    assert found["memory"] == near(float(row["memory_mb"]) * MB)
    assert judge(camera(), design(row)).state is State.FEASIBLE


@pytest.mark.parametrize("solver", [Exhaustive, Pareto])
def test_the_front_of_mlsys(solver: Any) -> None:
    front = solved(camera(), "mlsys", solver).front
    figures = [(point.objectives["accuracy"], point.objectives["latency"]) for point in front]
    assert figures == [(near(0.919), near(8.0 * MS)), (near(0.909), near(5.75 * MS))]
    assert [point.ties for point in front] == [1, 1]
    assert [point.design["pruning"] for point in front] == ["none", "structured"]
    assert all(point.design["format"] == "int8-QAT" and point.design["distill"] is True for point in front)


def test_mlsys_has_everything_and_finds_eight() -> None:
    found = result("mlsys")
    assert (found.accounting.outside, found.accounting.evaluated, found.funnel.feasible) == (0, 312, 8)
    assert_right_counts(found, truth(camera()))


def test_what_the_eight_share() -> None:
    texts = [trait.text for trait in result("mlsys").traits]
    assert texts == [
        "detector = Det-L",
        "format is one of int8-PTQ, int8-QAT, int4-QAT (3 of 5)",
        "engine = optimized",
        "hardware = npu",
    ]


# -- ml and systems --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("team", "legal"), [("ml", 120), ("systems", 7)])
def test_the_teams_that_fail(team: str, legal: int) -> None:
    found = result(team)
    right = truth(camera(), camera().team(team))
    assert (found.accounting.evaluated, found.funnel.feasible) == (legal, 0)
    assert not found.front
    assert_right_front(found, right)
    assert_right_counts(found, right)
    assert_right_explanation(found, right)


def test_the_fastest_accurate_design_of_ml() -> None:
    accurate = []
    for index, verdict in truth(camera(), camera().team("ml")).verdicts.items():
        found = camera().design_at(camera().digits_of(index))
        figures = design_metrics(camera(), found)
        assert isinstance(figures["latency"], float)
        assert isinstance(figures["accuracy"], float)
        if figures["accuracy"] >= 0.90:
            accurate.append((figures["latency"], figures["accuracy"], verdict, found))
        if figures["latency"] <= 10 * MS:
            assert found["detector"] == "Det-S"
            assert figures["accuracy"] < 0.90
    latency, accuracy, verdict, fastest = min(accurate, key=lambda row: row[0])
    assert (latency, accuracy) == (near(57.0 * MS), near(0.903))
    assert fastest == {
        "detector": "Det-L", "format": "int8-QAT", "pruning": "structured", "distill": False,
        "engine": "naive", "hardware": "cpu",
    }  # fmt: skip
    assert verdict.state is State.INFEASIBLE


def test_ml_would_have_to_relax_latency_by_47_ms() -> None:
    (relaxation,) = [r for r in result("ml").relaxations if r.constraints == ("latency",)]
    assert dict(relaxation.miss.violations) == {"latency": near(47.0 * MS)}
    chosen = {name: relaxation.miss.design[name] for name in ("detector", "format", "pruning", "distill")}
    assert chosen == {"detector": "Det-L", "format": "int8-QAT", "pruning": "structured", "distill": False}
    assert relaxation.miss.metrics["latency"] == near(57.0 * MS)


def test_systems_misses_accuracy_by_0_2() -> None:
    found = result("systems")
    assert found.accounting.evaluated == 7
    (relaxation,) = [r for r in found.relaxations if r.constraints == ("accuracy",)]
    assert relaxation.miss.violations["accuracy"] == pytest.approx(0.2 * PERCENT, rel=1e-9)
    assert relaxation.miss.design["format"] == "int8-PTQ"
    figures = metrics(**npu(detector="Det-L", format="int8-PTQ"))
    assert (figures["accuracy"], figures["latency"]) == (near(0.898), near(8.0 * MS))
    assert found.nearest_miss is not None
    assert found.nearest_miss.design == relaxation.miss.design


def test_the_fastest_fp16_of_systems() -> None:
    latencies = [
        metrics(**npu(detector="Det-L", format="fp16", engine=engine, hardware="cpu"))["latency"]
        for engine in ("naive", "optimized")
    ]
    assert min(latencies) == near(150.5 * MS)


@pytest.mark.parametrize("team", ["ml", "systems"])
def test_pareto_explains_as_exhaustive_does(team: str) -> None:
    a, b = (solved(camera(), team, solver).to_dict() for solver in (Exhaustive, Pareto))
    for key in ("front", "nearest_miss", "relaxations", "traits"):
        assert a[key] == b[key]
    assert a["accounting"]["outside"] == b["accounting"]["outside"]
    known = b["accounting"]["pruned"] == 0
    assert (b["accounting"] == a["accounting"], b["funnel"] == a["funnel"]) == (known, known)


# -- what would unlock them --------------------------------------------------------------------------------


def test_unlocks() -> None:
    rows = {row.team: row for row in comparison().rows}
    assert [(u.dimensions, u.feasible) for u in rows["ml"].unlocks] == [(("engine", "hardware"), 8)]
    unlocks = {u.dimensions: u.feasible for u in rows["systems"].unlocks}
    assert unlocks == {("distill",): 1, ("format",): 1}
    assert rows["mlsys"].unlocks == ()


def test_how_feasible_designs_leave_systems() -> None:
    rows = {row.team: row for row in comparison().rows}
    assert rows["systems"].departures == (
        "pruning other than none", "distill = true", "format.retrain"
    )  # fmt: skip
    assert rows["ml"].departures == ("engine = optimized", "hardware = npu")


def test_every_feasible_design_retrains_distills_or_prunes() -> None:
    """All with at least one of QAT, distillation and pruning."""
    for found in feasible_designs():
        assert str(found["format"]).endswith("QAT") or found["distill"] or found["pruning"] != "none"


# -- variants ---------------------------------------------------------------------------------------------

FASTER = {"tables.rates.npu.fp16": "1000 Gop/s"}
BETTER = {"tables.formats.int8-PTQ.loss": "1.0"}


def extending(folder: Path, tables: str) -> Problem:
    """A file beside a copy of the shipped one that extends it."""
    (folder / "camera.yaml").write_text(locate("camera").read_text(encoding="utf-8"), encoding="utf-8")
    own = folder / "own.yaml"
    own.write_text(f"dse: 1\nname: own\nextends: camera.yaml\ntables: {tables}\n", encoding="utf-8")
    return load(own)


def by_name(folder: Path, tables: str) -> Problem:
    """A file that extends the shipped space by its name."""
    own = folder / "own.yaml"
    own.write_text(f"dse: 1\nname: own\nextends: camera\ntables: {tables}\n", encoding="utf-8")
    return load(own)


def faster(folder: Path) -> list[Problem]:
    rows = "{rates: {rows: {npu: {fp16: 1000 Gop/s}}}}"
    return [load("camera", FASTER), extending(folder, rows), by_name(folder, rows)]


def better(folder: Path) -> list[Problem]:
    rows = "{formats: {rows: {int8-PTQ: [1.0, 1, 1, false]}}}"
    return [
        load("camera", BETTER),
        load("camera", {"tables.formats.int8-PTQ.loss": "1.0 percent"}),
        load("camera", {"tables.formats.rows.int8-PTQ.loss": "1"}),
        extending(folder, rows),
        by_name(folder, rows),
    ]


def test_an_npu_that_runs_fp16_does_not_help_systems(tmp_path: Path) -> None:
    before = locate("camera").read_bytes()
    for problem in faster(tmp_path):
        found = solved(problem, "systems")
        assert found.funnel.feasible == 0
        figures = metrics(problem, **npu(detector="Det-L", format="fp16"))
        assert figures["latency"] == near(15.5 * MS)  # computes 15.0 ms, launches 0.5 ms
        assert found.accounting.evaluated == 8
    assert locate("camera").read_bytes() == before


def test_better_post_training_quantization_makes_systems_feasible(tmp_path: Path) -> None:
    before = locate("camera").read_bytes()
    for problem in better(tmp_path):
        found = solved(problem, "systems")
        assert found.funnel.feasible == 1
        (point,) = found.front
        assert point.design == npu(detector="Det-L", format="int8-PTQ")
        assert (point.objectives["accuracy"], point.objectives["latency"]) == (near(0.908), near(8.0 * MS))
    assert locate("camera").read_bytes() == before


def test_a_variant_is_another_problem() -> None:
    digests = {
        load("camera", overrides).digest for overrides in ({}, FASTER, BETTER, {"max_latency": "9 ms"})
    }
    assert len(digests) == 4
    assert load("camera").digest == camera().digest


# -- pruning ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pruning", "latency"), [("none", 120.375), ("structured", 84.375), ("unstructured", 120.375)]
)
def test_scattered_zeros_save_no_time(pruning: str, latency: float) -> None:
    figures = metrics(
        detector="Det-M", format="fp32", pruning=pruning, distill=False, engine="optimized", hardware="cpu"
    )
    assert figures["latency"] == near(latency * MS)


def test_unstructured_int8_weights_are_larger_than_dense_ones() -> None:
    """Det-M: 9.0 MB dense, 13.5 MB with an index beside every kept weight."""
    sizes = {
        pruning: metrics(
            detector="Det-M",
            format="int8-QAT",
            pruning=pruning,
            distill=False,
            engine="optimized",
            hardware="cpu",
        )["memory"]
        for pruning in ("none", "unstructured")
    }
    beside = (12 / 4 + 8) * MB  # activations and the engine itself
    assert sizes["none"] - beside == near(9.0 * MB)
    assert sizes["unstructured"] - beside == near(13.5 * MB)
