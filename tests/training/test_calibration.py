"""Fitting efficiencies: known ones are found again, few or useless rows are no error, kernels give expected values."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dse.problem.library import load
from dse.spaces.training import calibration
from dse.spaces.training.expected import EXPECTED, expectations
from dse.spaces.training.measured.given import load_given
from dse.spaces.training.measured.predictions import predict_times
from dse.spaces.training.measured.scores import score
from dse.spaces.training.rows import Rows, read_rows
from dse.spaces.training.validation import calibrate, left_out
from dse.study.agreement import Calibration
from tests.training.measured_tables import write_table

CHANGES = [
    {"micro_batch": size, "tp": tp, "dp": str(64 // int(tp)), "recompute": again, "seq_len": length, "global_batch": batch}
    for size in ("1", "4")
    for tp in ("1", "4")
    for again in ("none", "full")
    for length, batch in (("2048", "512"), ("16384", "256"))
]  # fmt: skip


def runs(path: Path, changes: list[dict[str, str]]) -> Rows:
    return read_rows(write_table(path / "runs.csv", changes))


def test_twelve_numbers_and_no_more() -> None:
    assert len(calibration.NAMES) == len(EXPECTED) == 12


def test_known_efficiencies_are_found_again(tmp_path: Path) -> None:
    """Times made with other efficiencies than the expected ones are predicted within 1 % after the fit."""
    given, rows = load_given(), runs(tmp_path, CHANGES)
    made = {
        **given.efficiency["ampere"],
        "gemm": 0.6,
        "attention": 0.25,
        "memory": 0.7,
        "step_overhead": 0.02,
    }
    times = predict_times(rows.rows, given, ("exact",), {"ampere": made})
    targets = {at: row.target for at, row in enumerate(rows.rows) if row.target}
    told = tuple(
        replace(row, target=replace(targets[at], seconds=times[at][0], value=times[at][0]))
        for at, row in enumerate(rows.rows)
    )
    before = score(told, predict_times(told, given, ("exact",)))
    fitted = calibration.fit(Rows(rows.table, told))
    after = score(told, predict_times(told, given, ("exact",), fitted))
    assert before.macro > 0.1
    assert after.macro < 0.01
    assert fitted["ampere"]["gemm"] == pytest.approx(0.6, abs=0.06)


def test_generations_without_runs_have_the_mean_of_the_others(tmp_path: Path) -> None:
    fitted = calibration.fit(runs(tmp_path, [{}, {"system": "H100"}, {"value": "12", "micro_batch": "2"}]))
    share = [
        np.log(fitted[name]["gemm"] / (1 - fitted[name]["gemm"])) for name in ("ampere", "hopper", "cdna3")
    ]
    assert share[2] == pytest.approx((share[0] + share[1]) / 2, abs=0.01)
    assert fitted["cdna3"]["best_mfu"] is None
    assert fitted["ampere"]["best_source"] == "a paper"


def test_nothing_to_fit_is_what_is_expected(tmp_path: Path) -> None:
    rows = runs(tmp_path, [{}, {"micro_batch": "2"}])
    fitted = calibration.fit(rows, without="a paper")
    assert {name: fitted["ampere"][name] for name in EXPECTED} == pytest.approx(
        {name: one.value for name, one in EXPECTED.items()}
    )
    shared, apart, whole = left_out(rows, load_given(), lambda source: calibration.fit(rows, without=source))
    assert (len(shared.runs), len(apart.runs), len(whole.runs)) == (0, 2, 2)


def test_rows_of_gpus_that_lack_figures_do_not_spoil_a_fit(tmp_path: Path) -> None:
    """The network of the A10G is not in the catalogue: a run over eight nodes has no time."""
    alone = calibration.fit(runs(tmp_path, [{}, {"micro_batch": "2", "value": "11"}]))
    beside = calibration.fit(runs(tmp_path, [{}, {"micro_batch": "2", "value": "11"}, {"system": "A10G"}]))
    assert beside == alone
    assert all(math.isfinite(alone["ampere"][name]) for name in EXPECTED)


def test_the_file_is_one_that_the_space_reads(tmp_path: Path) -> None:
    data = write_table(tmp_path / "runs.csv", [{}, {"micro_batch": "2", "value": "11"}])
    report = calibrate(Calibration(data, tmp_path / "fit.csv"))
    own = list(csv.DictReader(report.files[tmp_path / "fit.csv"].splitlines()))
    columns = load("training").graph.tables["efficiency"].columns
    assert list(own[0]) == ["generation", *columns]
    assert {row["generation"] for row in own} == {
        str(chip["generation"]) for chip in load_given().hardware.values()
    }
    assert all(row["launch"].endswith(" us") for row in own)


def test_expected_values_come_from_kernels(tmp_path: Path) -> None:
    """A multiplication that takes 1 + 100 / size times as long in each dimension; steps of 4 us in a ring of 8."""
    gemm = tmp_path / "gemm.csv"
    lines = ["gpu,dtype,m,n,k,time_us"]
    for m, n, k in [(512, 512, 512), (1024, 4096, 512), (8192, 8192, 8192), (4096, 1024, 2048)]:
        time = 2 * m * n * k / 200e6 * (1 + 100 / m) * (1 + 100 / n) * (1 + 100 / k)
        lines += [
            f"A100-SXM4,bfloat16,{m},{n},{k},{time}",
            f"A100-SXM4,fp8,{m},{n},{k},1",
            f"Abacus,bf16,{m},{n},{k},1",
        ]
    gemm.write_text("\n".join([*lines, "A100,bf16,1,8,8,0.1"]) + "\n")
    comm = tmp_path / "comm.csv"
    comm.write_text(
        "gpu,collective,n_gpus,n_nodes,time_us\nH100 SXM,all_gather,8,1,28\nH100,all_gather,8,1,90\n"
        "H100,all_gather,16,2,1\nH100,all_reduce,8,1,1\n"
    )
    assert expectations(gemm, comm) == {
        "ampere": {"gemm_half": 100.0},
        "hopper": {"link_latency": pytest.approx(4e-6)},
    }
    assert expectations() == {}
