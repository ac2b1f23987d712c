"""The shipped cost model on measured runs: names agree with the space, and what must hold of its predictions."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from dse.problem.library import load
from dse.spaces.training.measured.cases import TABLE_DIMENSIONS
from dse.spaces.training.measured.given import Given, given, load_given
from dse.spaces.training.measured.memory_rows import read_memory_rows
from dse.spaces.training.measured.memory_scores import relative, score_memory
from dse.spaces.training.measured.predictions import predict_memory, predict_times
from dse.spaces.training.measured.scores import score
from dse.spaces.training.rows import Rows, read_rows
from dse.spaces.training.validation import PUBLISHED, PUBLISHED_MEMORY, validate
from dse.study.agreement import Validation, report_data
from tests.training.measured_tables import MOE, write_table


@pytest.fixture(scope="module")
def shipped() -> Given:
    return load_given()


@pytest.fixture(scope="module")
def published() -> Rows:
    return read_rows(PUBLISHED)


def test_plans_are_told_in_names_of_the_space(shipped: Given, published: Rows) -> None:
    problem = load("training")
    names = {dimension.name for dimension in problem.dimensions} | {"dp", "runtime"} | set(problem.inputs)
    for row in published.rows:
        assert not row.plans or row.hardware in shipped.hardware
        for plan in row.plans:
            assert set(plan) <= names
            for name in TABLE_DIMENSIONS:
                assert plan[name] in shipped.tables[name]


def test_every_row_with_a_plan_is_predicted(shipped: Given, published: Rows) -> None:
    times = predict_times(published.rows, shipped)
    assert set(times) == {at for at, row in enumerate(published.rows) if row.plans}
    assert all(len(times[at]) == len(published.rows[at].plans) for at in times)


def test_predictions_do_not_depend_on_the_other_rows(shipped: Given, published: Rows) -> None:
    whole = predict_times(published.rows, shipped)
    for at in range(0, len(published.rows), 40):
        alone = predict_times([published.rows[at]], shipped)
        assert alone.get(0) == (pytest.approx(whole[at]) if at in whole else None)


def test_the_published_record_is_met(shipped: Given, published: Rows) -> None:
    """Far looser than what is reported: a change that breaks a formula shows here."""
    scores = score(published.rows, predict_times(published.rows, shipped))
    assert scores.macro < 0.12
    assert scores.scale_rank > 0.9
    assert scores.plan_rank > 0.8
    assert scores.plan_regret < 0.05


def test_published_memory_is_met(shipped: Given) -> None:
    rows = read_memory_rows(PUBLISHED_MEMORY).rows
    scores = score_memory(rows, predict_memory(rows, shipped))
    large: Mapping[str, float] = {source: relative(peaks) for (source, _), peaks in scores.large().items()}
    assert len(large) == 3
    assert max(large.values()) <= 0.08
    assert [answer for _, answer in scores.oom].count(False) == 0
    assert [answer for _, answer in scores.oom].count(True) >= 8


@pytest.mark.parametrize(
    ("slower", "faster"),
    [
        ({"recompute": "full"}, {"recompute": "none"}),
        ({"global_batch": "1024"}, {"global_batch": "512"}),
        ({"seq_len": "4096"}, {"seq_len": "2048"}),
        ({"notes": "inter-node RoCE 100 Gb/s"}, {"notes": "inter-node RoCE 1600 Gb/s"}),
        ({"system": "V100-32GB", "precision": "fp16"}, {"precision": "fp16"}),
        ({"system": "H100"}, {"system": "H100", "precision": "fp8"}),
        ({**MOE, "moe": "E=128;topk=8;moe_ffn=1536"}, MOE),
    ],
)
def test_what_makes_a_step_slower(
    shipped: Given, tmp_path: Path, slower: Mapping[str, str], faster: Mapping[str, str]
) -> None:
    rows = read_rows(write_table(tmp_path / "t.csv", [slower, faster])).rows
    (slow,), (fast,) = predict_times(rows, shipped).values()
    assert slow > fast


def test_rows_without_efficiencies_are_left_out(shipped: Given, published: Rows) -> None:
    only = {"hopper": shipped.efficiency["hopper"]}
    times = predict_times(published.rows, shipped, ("exact",), only)
    assert times
    assert {published.rows[at].hardware for at in times} == {"h100-sxm"}


def test_other_efficiencies_give_other_times(shipped: Given, published: Rows) -> None:
    halved = {name: {**cells, "gemm": cells["gemm"] / 2} for name, cells in shipped.efficiency.items()}
    before = predict_times(published.rows, shipped, ("exact",))
    after = predict_times(published.rows, shipped, ("exact",), halved)
    assert all(after[at] >= ends for at, ends in before.items())
    assert predict_times(published.rows, replace(shipped, efficiency=halved), ("exact",)) == after


def test_tables_follow_the_problem() -> None:
    problem = load("training", {"memory_fixed": "3 GiB"})
    assert given(problem).inputs["memory_fixed"] == 3 * 2.0**30


def test_other_gpus_are_predicted_or_skipped_with_a_reason(tmp_path: Path) -> None:
    """Of the first TPU rows the network is not known, which a run within its mesh does not use."""
    rows = [{"system": name} for name in ("H800", "MI300X", "TPU v5p", "A10G", "T4", "Cray-1")]
    report = validate(Validation(write_table(tmp_path / "t.csv", rows)))
    assert report.predictions is not None
    assert [row["predicted"] is not None for row in report.predictions[1]] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
    told = {row["what"] for row in report_data(report)["tables"]["rows"]}
    assert "- no time predicted: figures of a10g are missing" in told


def test_a_shuffled_subset_is_predicted_as_the_whole_is(tmp_path: Path) -> None:
    """Columns in another order, further columns, a byte-order mark, every seventh row: the same figures, row by row."""
    with PUBLISHED.open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    chosen = table[::-7]
    path = tmp_path / "subset.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, [*reversed(table[0]), "id"])
        writer.writeheader()
        writer.writerows({**row, "id": at} for at, row in enumerate(chosen))
    whole, some = validate(Validation(PUBLISHED)), validate(Validation(path))
    assert whole.predictions is not None
    assert some.predictions is not None
    names, rows = some.predictions
    assert names == [*reversed(table[0]), "id", "predicted"]
    assert [row["predicted"] for row in rows] == [row["predicted"] for row in whole.predictions[1][::-7]]
    assert [{name: row[name] for name in table[0]} for row in rows] == chosen
