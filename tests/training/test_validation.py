"""What validation tells of predictions that are known: errors, sweeps, bounds, repeats, memory, files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as forall
from hypothesis import settings
from hypothesis import strategies as st

from dse.errors import InputError
from dse.problem.library import load
from dse.spaces.training import validation
from dse.spaces.training.measured.fitted import fitted, fitted_text
from dse.spaces.training.measured.given import Given
from dse.spaces.training.measured.memory_rows import GIB, MemoryRow, read_memory_rows
from dse.spaces.training.measured.memory_scores import score_memory
from dse.spaces.training.measured.row import Row
from dse.spaces.training.measured.scores import bounds, noise, score
from dse.spaces.training.rows import read_rows
from dse.spaces.training.validation import PUBLISHED
from dse.study.agreement import Calibration, Report, Validation, report_data
from tests.training.measured_tables import MEMORY, MOE, write_table

GIVEN = Given({}, {name: {"generation": name[:4]} for name in ("a100-sxm-80", "h100-sxm")}, {}, {}, {})


def times(rows: Sequence[Row], factor: Callable[[Row], float] = lambda _: 1.0) -> dict[int, list[float]]:
    """Predictions that are off by a known factor in time; at both ends of an open plan 20 % apart."""
    return {
        at: [row.target.seconds * factor(row) * (1 + 0.2 * end) for end in range(len(row.plans))]
        for at, row in enumerate(rows)
        if row.target
    }


@pytest.fixture
def off(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Makes every predicted time, and every peak of memory, so many times the measured one."""

    def set_factor(factor: float) -> None:
        def predict(
            rows: Sequence[Row],
            _: Given,
            kinds: Collection[str] = ("exact", "mixture", "bounds", "flagged"),
            *__: Any,
        ) -> dict[int, list[float]]:
            return {at: ends for at, ends in times(rows, lambda _: factor).items() if rows[at].kind in kinds}

        def peaks(rows: Sequence[MemoryRow], _: Given) -> dict[int, list[float]]:
            return {
                at: [factor * (75.0 if math.isnan(row.value) else row.value) * row.unit] * len(row.run.plans)
                for at, row in enumerate(rows)
                if row.run
            }

        monkeypatch.setattr(validation, "predict_times", predict)
        monkeypatch.setattr(validation, "predict_memory", peaks)
        monkeypatch.setattr(validation, "load_given", lambda: GIVEN)

    set_factor(1.0)
    return set_factor


def table(report: Report, name: str) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = report_data(report)["tables"][name]
    return found


def test_published_figures_by_default(off: Callable[[float], None]) -> None:
    report = validation.validate(Validation())
    assert report.scores["macro"] == pytest.approx(0.0, abs=0.02)  # a second, rounded figure gives some times
    assert report.scores["configurations"] > 350
    assert report.scores["plan_spearman"] == pytest.approx(1.0)
    assert report.scores["plan_regret"] == pytest.approx(0.0)
    assert "mixture" not in report_data(report)["tables"]  # all of them leave recomputation open
    assert table(report, "memory_large")[0]["median"] == 0.0


def test_errors_are_taken_in_the_unit_of_value(off: Callable[[float], None], tmp_path: Path) -> None:
    """A time that is 25 % too long is 25 % off; as a rate it is 20 % too low."""
    off(1.25)
    path = write_table(tmp_path / "t.csv", [{}, {"metric": "tokens_s_gpu", "value": "1638.4", "source": "b"}])
    report = validation.validate(Validation(path))
    assert report.scores["macro"] == pytest.approx((0.25 + 0.2) / 2)
    assert [group["bias"] for group in table(report, "groups")] == pytest.approx([0.25, -0.2])


def test_predictions_repeat_the_rows(off: Callable[[float], None], tmp_path: Path) -> None:
    off(1.25)
    rows = [
        {"value": "8"},
        {"flag": "odd", "notes": 'a, "b"'},
        {"value": ""},
        {"recompute": ""},
        MOE,
        {"metric": "tokens_s_gpu", "value": "1638.4"},
    ]
    path = write_table(tmp_path / "t.csv", rows)
    columns, found = validation.validate(Validation(path)).predictions or ((), ())
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        assert list(columns) == [*(reader.fieldnames or ()), "predicted"]
        for given, row in zip(reader, found, strict=True):
            assert {name: row[name] for name in given} == given
    predicted = [row["predicted"] for row in found]
    assert predicted == [10.0, 12.5, None, pytest.approx(12.5 * 1.2**0.5), 12.5, pytest.approx(1638.4 / 1.25)]


def test_identical_rows_count_once(tmp_path: Path) -> None:
    rows = read_rows(
        write_table(
            tmp_path / "t.csv", [{"value": v} for v in ("10", "11", "30")] + [{"value": "99", "flag": "slow"}]
        )
    ).rows
    scores = score(rows, {at: [11.0] for at in range(4)})
    (run,) = scores.runs
    assert (run.members, run.value, run.spread) == ((0, 1, 2), 11.0, 3.0)
    assert scores.macro == 0.0
    report = validation.repeats_table(rows)
    assert report.rows[0][:2] == (4, pytest.approx(9.9))  # a flagged repeat is in the table, not in the bars


def sweep_rows(tmp_path: Path, changes: Sequence[Mapping[str, str]]) -> Sequence[Row]:
    rows: Sequence[Row] = read_rows(write_table(tmp_path / "t.csv", changes)).rows
    return rows


PLANS = [
    {"micro_batch": size, "value": value}
    for size, value in zip("12348", ("14", "12", "11", "10", "13"), strict=True)
]


def test_sweeps(tmp_path: Path) -> None:
    plans = [{**cells, "global_batch": "768"} for cells in PLANS]
    rows = sweep_rows(
        tmp_path, [*plans, {"global_batch": "1536", "value": "20"}, {"n_gpus": "32", "dp": "8"}]
    )
    seconds = times(rows, lambda row: 2.0 if row.cells["micro_batch"] == "4" else 1.0)
    scores = score(rows, seconds)
    (plan,) = scores.plan
    assert len(plan.members) == 5
    assert plan.rank == pytest.approx(0.0)  # the best plan is predicted to be the worst
    assert plan.regret == pytest.approx(0.1)  # 11 s are chosen, 10 s were possible
    (scale,) = scores.scale
    assert len(scale.members) == 6  # the run on 32 GPUs is of no sweep
    assert (scores.plan_rank, scores.plan_regret) == (plan.rank, plan.regret)


def test_a_plan_sweep_needs_five_distinct_plans(tmp_path: Path) -> None:
    rows = sweep_rows(
        tmp_path,
        [*({**cells, "global_batch": "768"} for cells in PLANS[:4]), {**PLANS[0], "global_batch": "768"}],
    )
    scores = score(rows, times(rows))
    assert (len(scores.runs), len(scores.plan), len(scores.scale)) == (4, 0, 1)
    assert math.isnan(scores.plan_rank)


def test_rates_and_times_rank_alike(tmp_path: Path) -> None:
    """A sweep of tokens/s and the same sweep of seconds have the same rank correlation and regret."""
    as_time = [{**cells, "global_batch": "768"} for cells in PLANS]
    as_rate = [
        {
            **cells,
            "metric": "tokens_s_gpu",
            "value": repr(768 * 2048 / 64 / float(cells["value"])),
            "source": "b",
        }
        for cells in as_time
    ]
    rows = sweep_rows(tmp_path, [*as_time, *as_rate])
    scores = score(rows, times(rows, lambda row: 2.0 if row.cells["micro_batch"] == "4" else 1.0))
    first, second = scores.plan
    assert first.rank == pytest.approx(second.rank)
    assert first.regret == pytest.approx(second.regret)


def test_open_rows_are_bounds(tmp_path: Path) -> None:
    rows = sweep_rows(tmp_path, [{"recompute": "", "value": value} for value in ("7", "9", "14")])
    found = bounds(rows, {at: [8.0, 10.0] for at in range(3)})
    assert [bound.outside for bound in found] == pytest.approx([-0.125, 0.0, 0.4])
    assert score(rows, times(rows)).runs == ()


@settings(max_examples=20, deadline=None)
@forall(st.permutations(range(9)))
def test_the_order_of_rows_means_nothing(
    tmp_path_factory: pytest.TempPathFactory, order: Sequence[int]
) -> None:
    changes = [
        {"value": str(8 + at), "micro_batch": str(1 << at % 3), "source": f"s{at % 2}", "model": f"m{at % 4}"}
        for at in range(9)
    ]
    path = tmp_path_factory.mktemp("order")
    straight, turned = (
        read_rows(write_table(path / f"{name}.csv", [changes[at] for at in chosen])).rows
        for name, chosen in (("a", range(9)), ("b", order))
    )

    def predicted(rows: Sequence[Row]) -> dict[int, list[float]]:
        return {at: [9.0 + float(row.cells["value"]) % 3] for at, row in enumerate(rows)}

    first, second = score(straight, predicted(straight)), score(turned, predicted(turned))
    assert first.macro == pytest.approx(second.macro)
    assert first.scale_rank == pytest.approx(second.scale_rank, nan_ok=True)


def test_skipped_rows_are_counted_with_reasons(off: Callable[[float], None], tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [{}, {"dp": "8"}, {"layers": ""}, {"layers": ""}])
    report = validation.validate(Validation(path))
    told = {row["what"]: row["rows"] for row in table(report, "rows")}
    assert told["- architecture not stated (layers)"] == 2
    assert told["- layout does not multiply to the GPU count"] == 1
    assert told["skipped: cannot be predicted"] == 3


def test_unknown_columns_to_group_by(off: Callable[[float], None], tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [{}])
    with pytest.raises(InputError, match="has no column 'modle'; did you mean 'model'"):
        validation.validate(Validation(path, by=("modle",)))


def test_memory_tables_are_recognised(off: Callable[[float], None], tmp_path: Path) -> None:
    off(1.1)
    rows = [
        {},
        {"value": "5", "model": "small"},
        {"metric": "peak_mem_gb", "notes": "nvidia-smi", "value": "30"},
        {"metric": "activations_gib", "value": "30"},
        {"metric": "oom", "value": "OOM"},
        MOE,
    ]
    path = write_table(tmp_path / "m.csv", rows, MEMORY)
    report = validation.validate(Validation(path))
    large = {row["source"]: row["median"] for row in table(report, "memory_large")}
    assert large == {"a paper, allocated": pytest.approx(0.1), "a paper, device": pytest.approx(0.1)}
    (small,) = table(report, "memory_small")
    assert small["median_GiB"] == pytest.approx(0.5)
    assert len(table(report, "memory_large_mixture")) == 1
    assert report.tables[0].notes == (
        "Memory: 5 of 6 rows scored, 1 not: 1 computed by their source, not measured.",
    )
    assert report.scores["oom_foreseen"] == 1
    _, predicted = report.predictions or ((), ())
    assert [row["predicted"] for row in predicted] == [22.0, 5.5, 33.0, None, None, 22.0]
    off(1.0)
    assert validation.validate(Validation(path)).scores["oom_missed"] == 1


def test_memory_rows(tmp_path: Path) -> None:
    rows = [
        {
            "vocab": "GPT-2 BPE 50257 padded",
            "notes": "max_memory_allocated on the last PP stage",
            "model": "gpt/x",
        },
        {"n_gpus": "", "dp": ""},
        {"seq_len": "", "notes": "sequence (2048 by default)", "metric": "peak_mem_gb"},
        {"model": "moe/x_muon"},
        {"metric": "oom", "value": "OOM", "model": "Falcon 40 B", "layers": "", "precision": "bf16-true"},
        {"metric": "loss"},
        {"metric": "oom", "value": "OOM", "precision": "bf16-true", "notes": "Finetuning with LoRA on 1 GPU"},
    ]
    found = read_memory_rows(write_table(tmp_path / "m.csv", rows, {**MEMORY, "capacity_gb": "40"}))
    assert [(row.kind, row.reason) for row in found.rows] == [
        ("exact", ""),
        ("bounds", "GPU count unspecified"),
        ("exact", ""),
        ("skipped", "Muon optimizer"),
        ("oom", "architecture not stated (layers)"),
        ("skipped", "metric 'loss' is no peak of memory"),
        ("oom", "frozen base model"),
    ]
    first = found.rows[0]
    assert (first.target, first.last_stage) == ("allocated", True)
    assert first.run is not None
    assert first.run.model is not None
    assert first.run.model["vocab"] == 50257
    assert first.run.plans[0]["runtime"] == "megatron-unfused"
    assert {plan["dp"] for plan in (found.rows[1].run or first.run).plans} == {2.0, 64.0}
    assert found.rows[2].target == "device"
    scores = score_memory(found.rows, {6: [41 * GIB]})
    assert scores.oom == ((4, True), (6, True))  # 40e9 weights alone, and what was predicted
    assert score_memory(found.rows, {6: [39 * GIB]}).oom[1] == (6, False)


def test_calibration_needs_rows(off: Callable[[float], None], tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [{}, {"layers": ""}])
    with pytest.raises(InputError, match="at least 2 dense, fully configured rows, but got 1 of 2"):
        validation.calibrate(Calibration(path, tmp_path / "out.csv"))


def test_left_out_sources_are_told_apart(off: Callable[[float], None], tmp_path: Path) -> None:
    """A source whose GPU generation no other source has is reported apart."""
    rows = read_rows(
        write_table(
            tmp_path / "t.csv", [{}, {"source": "b", "value": "11"}, {"source": "c", "system": "H100"}]
        )
    )
    asked: list[str] = []

    def fit(source: str) -> dict[str, dict[str, float]]:
        asked.append(source)
        return {}

    shared, apart, whole = validation.left_out(rows, GIVEN, fit)
    assert asked == ["a paper", "b", "c"]
    assert set(shared.sources) == {"a paper", "b"}
    assert set(apart.sources) == {"c"}
    assert len(whole.runs) == 3


def test_reports_are_json(off: Callable[[float], None], tmp_path: Path) -> None:
    report = validation.validate(Validation(write_table(tmp_path / "t.csv", [{}])))
    data = json.loads(json.dumps(report_data(report), allow_nan=False))
    assert data["scores"]["plan_spearman"] is None  # no sweeps
    assert data["scores"]["macro"] == 0.0


def test_how_a_fit_was_made_is_read_back(off: Callable[[float], None], tmp_path: Path) -> None:
    data = write_table(tmp_path / "t.csv", [{}, {"source": "b", "value": "11"}])
    rows = read_rows(data).rows
    scores = score(rows, {0: [11.0], 1: [11.0]})
    out = tmp_path / "fit.csv"
    text = fitted_text(
        {"data": data, "gemm": None}, out, ["ampere"] * 2, scores, (scores, score([], {}), scores)
    )
    assert str(tmp_path) not in text
    out.with_suffix(".json").write_text(text)
    record = fitted(out)
    assert record is not None
    assert record.rows == 2
    assert record.in_sample == record.left_out == {"a paper": 0.1, "b": 0.0}
    assert (record.left_out_macro, record.apart) == (0.05, {})
    assert math.isnan(record.figure("plan_regret"))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"rows": {"fitted": "x"}, "in_sample": {"sources": {}, "macro": 1}}']
)
def test_a_record_that_cannot_be_read_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "fit.json").write_text(text)
    assert fitted(tmp_path / "fit.csv") is None
    assert fitted(tmp_path / "other.csv") is None


def test_shipped_efficiencies_say_how_they_were_made() -> None:
    """The bars: at most 5.5 % in sample, and 10 % where another source has that generation."""
    record = fitted()
    assert record is not None
    assert record.macro <= 0.055
    assert record.left_out_macro <= 0.10
    assert record.figure("scale_spearman") >= 0.9
    assert record.figure("plan_spearman") >= 0.8
    assert record.figure("plan_regret") <= 0.05


def test_the_space_and_its_readme_tell_the_recorded_errors() -> None:
    """The error that a search prints is that of runs which the efficiencies were not fitted to."""
    record = fitted()
    assert record is not None
    assert load("training").errors["iteration_time"] == pytest.approx(record.left_out_macro, abs=0.0005)
    lines = PUBLISHED.with_name("README.md").read_text(encoding="utf-8").splitlines()
    told = {
        cells[1].strip(): [cell.strip(" *") for cell in cells]
        for line in lines
        if len(cells := line.split("|")) == 6
    }
    for source, error in record.in_sample.items():
        assert float(told[source][3]) == pytest.approx(100 * error, abs=0.051), source
    for source, error in record.left_out.items():
        assert float(told[source][4].split()[0]) == pytest.approx(100 * error, abs=0.051), source
    macro = [100 * record.macro, 100 * record.left_out_macro]
    assert [float(cell) for cell in told["**macro**"][3:5]] == pytest.approx(macro, abs=0.051)


def test_noise_is_seen_in_identical_dense_runs_only(tmp_path: Path) -> None:
    changes: list[dict[str, str]] = [
        {}, {"value": "14"}, {"source": "b"}, {"source": "b", "value": "16", "flag": "slow"}, {**MOE, "source": "c"},
        {**MOE, "source": "c", "value": "30"}, {"source": "d"}, {"source": "d", "value": "30", "micro_batch": "2"},
    ]  # fmt: skip
    rows = read_rows(write_table(tmp_path / "t.csv", changes)).rows
    assert noise(rows) == {"b": 1.6}


def test_mixtures_are_told_apart_from_open_dense_rows(off: Callable[[float], None], tmp_path: Path) -> None:
    off(1.1)
    rows = [{"recompute": ""}, MOE, {**MOE, "recompute": ""}]
    report = validation.validate(Validation(write_table(tmp_path / "t.csv", rows)))
    assert [row["rows"] for row in table(report, "bounds")] == [1]
    (mixture,) = table(report, "mixtures")
    assert (mixture["rows"], mixture["inside"]) == (2, 0)
    assert mixture["group"] == "a paper, Qwen3 MoE 30B, A100-80GB SXM"
    assert mixture["halfway"] == pytest.approx((0.1 + (1.1 * 1.32) ** 0.5 - 1) / 2)
