"""``dse validate`` and ``dse calibrate``: what they print and write, and how they refuse."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dse.problem.plugins import entry_points
from dse.spaces.training import validation
from dse.spaces.training.measured.given import Given
from dse.spaces.training.measured.row import Row
from dse.spaces.training.rows import Rows
from tests.cli.conftest import Dse
from tests.training.measured_tables import ROW, write_table

Efficiencies = Mapping[str, Mapping[str, Any]]
GIVEN = Given({}, {"a100-sxm-80": {"generation": "ampere"}}, {"ampere": {"factor": 1.2}}, {}, {})


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cost model that is off by one factor, which a fit can find."""

    def predict(
        rows: Sequence[Row],
        given: Given,
        kinds: Collection[str] = ("exact",),
        efficiency: Efficiencies | None = None,
    ) -> dict[int, list[float]]:
        factor = (efficiency or given.efficiency)["ampere"]["factor"]
        return {
            at: [row.target.seconds * factor * (1 + 0.1 * (row.cells["source"] == "b"))] * len(row.plans)
            for at, row in enumerate(rows)
            if row.target and row.kind != "skipped"
        }

    def fit(rows: Rows, *, without: str = "", **_: Path | None) -> Efficiencies:
        sources = {row.cells["source"] for row in rows.rows} - {without}
        return {"ampere": {"factor": 1 / 1.1 if sources == {"b"} else 1.0}}

    calibration = SimpleNamespace(
        fit=fit, written=lambda fitted, *_, **__: f"generation,factor\nampere,{fitted['ampere']['factor']}\n"
    )
    monkeypatch.setattr(validation, "predict_times", predict)
    monkeypatch.setattr(validation, "load_given", lambda: GIVEN)
    monkeypatch.setitem(sys.modules, "dse.spaces.training.calibration", calibration)
    monkeypatch.setattr("dse.spaces.training.calibration", calibration, raising=False)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    changes = [
        {"value": "10"}, {"value": "12", "micro_batch": "2"}, {"value": "11", "micro_batch": "1"}, {"value": "10.5"},
        {"source": "b", "value": "20"}, {"recompute": "", "value": "14"}, {"flag": "slow", "value": "13"},
        {"dp": "8"}, {"system": "Cray-1"},
    ]  # fmt: skip
    return write_table(tmp_path / "runs.csv", changes)


def test_validate(dse: Dse, runs: Path, snapshot: Callable[[str, str], None], tmp_path: Path) -> None:
    out = tmp_path / "predictions.csv"
    ran = dse("validate", "training", "--data", runs, "--by", "source,model,system", "--out", out)
    assert (ran.code, ran.err) == (0, f"wrote {out}\n")
    snapshot("validate_training", ran.out)
    with out.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [*runs.read_text().splitlines()[0].split(","), "predicted"]
    assert [row["predicted"] for row in rows] == [
        "12.0",
        "14.4",
        "13.2",
        "12.6",
        "26.4",
        "16.8",
        "15.6",
        "",
        "",
    ]


def test_validate_as_data(dse: Dse, runs: Path) -> None:
    ran = dse("validate", "training", "--data", runs, "--json")
    assert (ran.code, ran.err) == (0, "")
    data = json.loads(ran.out)
    assert data["scores"]["macro"] == pytest.approx((0.2 + 0.32) / 2, abs=0.01)
    assert data["tables"]["groups"][0]["used"] == 4
    assert [row["spread"] for row in data["tables"]["repeats"]] == [pytest.approx(1.3)]


def test_validate_without_a_usable_row(dse: Dse, tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [{"system": "Cray-1"}])
    ran = dse("validate", "training", "--data", path)
    assert ran.code == 1
    assert "1  - GPU 'Cray-1' is not in the catalogue" in ran.out
    assert "No row could be predicted, of 1 row. 1: GPU 'Cray-1' is not in the catalogue" in " ".join(
        ran.out.split()
    )


def test_one_row_can_be_validated_but_not_calibrated(dse: Dse, tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [{}])
    assert dse("validate", "training", "--data", path).code == 0
    ran = dse("calibrate", "training", "--data", path, "--out", tmp_path / "fit.csv")
    assert (ran.code, ran.out) == (2, "")
    assert "needs at least 2 dense, fully configured rows, but got 1 of 1" in ran.err


def test_calibrate(dse: Dse, runs: Path, snapshot: Callable[[str, str], None], tmp_path: Path) -> None:
    out = tmp_path / "fit.csv"
    ran = dse("calibrate", "training", "--data", runs, "--out", out, "--leave-out", "source")
    made = out.with_suffix(".json")
    assert (ran.code, ran.err) == (0, f"wrote {out}\nwrote {made}\n")
    assert out.read_text() == "generation,factor\nampere,1.0\n"
    told = json.loads(made.read_text())
    assert told["command"] == "dse calibrate training --data runs.csv --leave-out source --out fit.csv"
    assert told["rows"] == {"fitted": 5, "configurations": 4, "by_generation": {"ampere": 5}}
    assert told["in_sample"]["sources"] == {"a paper": 0.0081, "b": 0.1}
    snapshot("calibrate_training", ran.out)


def test_calibrate_as_data(dse: Dse, runs: Path, tmp_path: Path) -> None:
    ran = dse(
        "calibrate",
        "training",
        "--data",
        runs,
        "--out",
        tmp_path / "f.csv",
        "--json",
        "--leave-out",
        "source",
    )
    scores = json.loads(ran.out)["scores"]
    assert scores["before_macro"] > scores["left_out_macro"] > scores["after_macro"]


def test_noisy_sources_are_told_and_left_out_of_the_macro_error(dse: Dse, tmp_path: Path) -> None:
    rows = [{"value": "10"}, {"value": "16", "flag": "slow repeat"}, {"source": "b", "value": "20"}]
    path = write_table(tmp_path / "t.csv", rows)
    scores = json.loads(dse("validate", "training", "--data", path, "--json").out)["scores"]
    assert scores["macro"] == pytest.approx(0.32)
    assert scores["macro_with_noisy"] == pytest.approx(0.26)
    text = " ".join(dse("validate", "training", "--data", path).out.split())
    assert "identical runs differ at most 1.5-fold: a paper (identical runs differ 1.60-fold" in text
    alone = write_table(tmp_path / "alone.csv", rows[:2])  # nothing else to judge by
    scores = json.loads(dse("validate", "training", "--data", alone, "--json").out)["scores"]
    assert scores["macro"] == pytest.approx(0.2)


def test_no_folder_is_said_before_the_fit(dse: Dse, runs: Path, tmp_path: Path) -> None:
    ran = dse("calibrate", "training", "--data", runs, "--out", tmp_path / "no" / "fit.csv")
    assert (ran.code, ran.out) == (2, "")
    assert "is no folder" in ran.err


@pytest.mark.parametrize("command", ["validate", "calibrate"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: found an empty file, expected column names"),
        ("source,tpp\n", "1:1: found the columns source, tpp; expected also model, system, n_gpus, tp,"),
        (",".join(ROW) + "\n", "1:1: found no rows, expected at least one row"),
        (
            ",".join(ROW) + "\n" + ",".join([*["x"] * 3, "eight", *["1"] * (len(ROW) - 4)]),
            "n_gpus: found 'x', expected a",
        ),
    ],
)
def test_bad_tables(dse: Dse, tmp_path: Path, command: str, text: str, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    extra = ["--out", tmp_path / "fit.csv"] if command == "calibrate" else []
    ran = dse(command, "training", "--data", path, *extra)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert str(path) in ran.err


def test_files_and_words_that_cannot_be_used(dse: Dse, runs: Path, tmp_path: Path) -> None:
    ran = dse("validate", "training", "--data", tmp_path / "no.csv")
    assert (ran.code, ran.out) == (2, "")
    assert "cannot be read: No such file or directory" in ran.err
    ran = dse("validate", "trainign", "--data", runs)
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean 'training'?" in ran.err
    ran = dse("validate", "training", "--data", runs, "--by", "modle")
    assert ran.code == 2
    assert "did you mean 'model'?" in ran.err
    ran = dse("validate", "training", "--data", runs, "--by", ",")
    assert ran.code == 2
    ran = dse("validate", "training", "--data", runs, "--out", tmp_path / "none" / "p.csv")
    assert ran.code == 2
    assert "cannot write" in ran.err
    assert dse("calibrate", "training", "--data", runs).code == 2


def test_spaces_offer_both() -> None:
    for name, point in entry_points("dse.validation").items():
        module = point.load()
        assert callable(module.validate), name
        assert callable(module.calibrate), name
