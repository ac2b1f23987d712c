"""What validation tells of predictions that are known: errors, single tokens, sweeps, ceilings, bounds, memory, files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dse.cli.agreement import report_lines
from dse.errors import InputError
from dse.spaces.measured.few import few_runs
from dse.spaces.serving import validation
from dse.spaces.serving.measured import predictions
from dse.spaces.serving.measured.fitted import fitted, fitted_text
from dse.spaces.serving.measured.given import Fit, Given
from dse.spaces.serving.measured.predictions import predict_ceilings
from dse.spaces.serving.measured.row import Row
from dse.spaces.serving.measured.scores import ceilings, score
from dse.spaces.serving.rows import read_rows
from dse.study.agreement import Calibration, Report, Validation, report_data
from tests.serving.measured_tables import CEILING, SINGLE, write_table
from tests.serving.standin import GIVEN, MODEL

DECODE = {**SINGLE, "notes": "generation speed", "source": "b"}

Times = Callable[[Row], float]


@pytest.fixture(autouse=True)
def standin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in for the cost model and its tables."""
    monkeypatch.setattr(predictions, "shipped", lambda: MODEL)
    monkeypatch.setattr(validation, "load_given", lambda: GIVEN)


@pytest.fixture
def off(monkeypatch: pytest.MonkeyPatch) -> Callable[[Times], None]:
    """Makes every predicted time so many times the measured one."""

    def set_factor(factor: Times) -> None:
        def predict(
            rows: Sequence[Row], _: Given, kinds: Collection[str] = ("exact", "bounds", "flagged"), *__: Any
        ) -> dict[int, list[float]]:
            return times([row if row.kind in kinds else None for row in rows], factor)

        monkeypatch.setattr(validation, "predict_times", predict)

    set_factor(lambda _: 1.0)
    return set_factor


def times(rows: Sequence[Row | None], factor: Times = lambda _: 1.0) -> dict[int, list[float]]:
    """Predictions that are off by a factor; of several runs 20 % apart."""
    return {
        at: [run.target.seconds * factor(row) * (1 + 0.2 * end) for end, run in enumerate(row.runs)]
        for at, row in enumerate(rows)
        if row is not None
    }


def table(report: Report, name: str) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = report_data(report)["tables"][name]
    return found


def test_errors_are_taken_in_the_unit_of_value(off: Callable[[Times], None], tmp_path: Path) -> None:
    """A time that is 25 % too long is 25 % off; as a rate it is 20 % too low."""
    off(lambda _: 1.25)
    rows = [
        {"metric": "latency_ms_total", "value": "1000"}, {"model": "Llama 13B", "source": "b"},
        {"model": "LLaMA-13B", "source": "b", "batch": "8"}, DECODE,
    ]  # fmt: skip
    report = validation.validate(Validation(write_table(tmp_path / "t.csv", rows)))
    assert report.scores["macro"] == pytest.approx((0.25 + 0.2) / 2)
    assert report.scores["macro_bias"] == pytest.approx((0.25 - 0.2) / 2)
    assert (report.scores["groups"], report.scores["sources"]) == (4, 2)
    assert report.scores["decode_macro"] == pytest.approx(0.2)
    assert [(row["group"], row["used"]) for row in table(report, "groups")] == [("a paper", 1), ("b", 3)]
    assert any(note.endswith("exclude the prefill: b.") for note in report.tables[0].notes)
    _, predicted = report.predictions or ((), ())
    assert [row["predicted"] for row in predicted] == pytest.approx([1250, 409.6, 409.6, 80])


def test_predictions_repeat_the_rows(off: Callable[[Times], None], tmp_path: Path) -> None:
    """With what is predicted in the unit of value; halfway between the ends where something is open, and of a ceiling
    the best batch's rate."""
    off(lambda _: 1.25)
    rows = [
        {"notes": 'a, "b"'}, {"value": ""}, {"n_gpus": "8", "tp": "8", "notes": "not true TP"},
        {**CEILING, "value": "3000"}, {**CEILING, "metric": "out_tokens_s_gpu", "n_gpus": "2", "tp": "2"},
    ]  # fmt: skip
    path = write_table(tmp_path / "t.csv", rows)
    report = validation.validate(Validation(path))
    columns, found = report.predictions or ((), ())
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        assert list(columns) == [*(reader.fieldnames or ()), "predicted"]
        for given, row in zip(reader, found, strict=True):
            assert {name: row[name] for name in given} == given
    predicted = [row["predicted"] for row in found]
    assert predicted[:3] == [409.6, None, pytest.approx(512 / 1.25 / 1.2**0.5)]
    best = predict_ceilings(read_rows(path).rows, GIVEN)
    assert predicted[3:] == pytest.approx([best[3].tokens, best[4].tokens / 2])
    assert table(report, "bounds")[0]["inside"] == 0


def test_the_best_batch_of_a_ceiling_fits(tmp_path: Path) -> None:
    """A batch that is twice as large would need more than the GPU's memory; the rate of a small model is no ceiling."""
    rows = read_rows(
        write_table(
            tmp_path / "t.csv",
            [{**CEILING, "value": "1000"}, {**CEILING, "value": "1e9"}, {**CEILING, "model": "Mixtral 8x7B"}],
        )
    ).rows
    best = predict_ceilings(rows, GIVEN)
    memory, weights, cache = GIVEN.hardware["a100-sxm-80"]["memory"], 6.74e9 * 2, 192 * 2**19
    assert best[0].batch * cache + weights < memory < best[0].batch * 2**0.25 * 1.01 * cache + weights
    assert (best[2].batch, best[2].tokens) == (0.0, 0.0)  # the weights alone do not fit
    assert [one.ratio >= 1.0 for one in ceilings(rows, best)] == [True, False, False]
    report = validation.validate(Validation(tmp_path / "t.csv"))
    assert report.scores["ceilings_reached"] == pytest.approx(1 / 3)
    assert [row["reached"] for row in table(report, "ceilings")] == [0, 1]


BATCHES = (("1", "50"), ("2", "95"), ("4", "180"), ("8", "340"), ("16", "330"))


def test_sweeps_of_the_batch(tmp_path: Path) -> None:
    """Five batches, all else equal; the measured rate turns down at the last, the predicted one does not."""
    swept = [
        *({"batch": size, "value": value} for size, value in BATCHES),
        {"batch": "2", "output_len": "128"},
        {"batch": "4", "kv_precision": "fp8"},
    ]
    rows = read_rows(write_table(tmp_path / "t.csv", swept)).rows
    seconds = {at: [1.0 + row.runs[0].job["batch"] / 100] for at, row in enumerate(rows)}
    (sweep,) = score(rows, seconds).sweeps
    assert len(sweep.members) == 5
    assert sweep.throughput == pytest.approx(0.9)
    assert sweep.latency == pytest.approx(1.0)
    assert not score(rows[1:], {at - 1: found for at, found in seconds.items() if at}).sweeps


def test_further_figures_and_memory_are_told_apart(off: Callable[[Times], None], tmp_path: Path) -> None:
    off(lambda _: 1.0)
    rows = [
        {**SINGLE, "metric2": "ttft_ms", "value2": "30", "metric3": "tpot_ms", "value3": "13.5"},
        {"metric2": "mem_gb", "value2": "20"},
        {"n_gpus": "2", "tp": "2", "metric2": "mem_gb", "value2": "160"},
        {"metric2": "ttft_ms", "value2": "300", "notes": "TTFT is average incl. queueing of the batch"},
    ]
    report = validation.validate(Validation(write_table(tmp_path / "t.csv", rows)))
    assert {row["group"] for row in table(report, "further")} == {"a paper, ttft_ms", "a paper, tpot_ms"}
    (memory,) = table(report, "memory")
    assert memory["used"] == 2
    assert memory["bias"] < 0
    assert report.scores["macro"] == pytest.approx(0.0)


def test_rows_without_a_prediction_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{}, {"gpu": "V100-SXM2-32GB"}, {"gpu": "Cray-1"}, {"gpu": "Cray-1", "batch": "0"}]
    given = Given(
        GIVEN.formats,
        {**GIVEN.hardware, "v100-sxm2-32": {"generation": "volta", "memory": 32e9}},
        GIVEN.fit,
        {},
    )
    monkeypatch.setattr(validation, "load_given", lambda: given)
    report = validation.validate(Validation(write_table(tmp_path / "t.csv", rows)))
    told = {row["what"]: row["rows"] for row in table(report, "rows")}
    assert told["skipped: cannot be predicted"] == 3
    assert told["- no time predicted: figures of v100-sxm2-32 are missing"] == 1
    assert (
        report.tables[0].notes[0].startswith("1 of 4 rows scored, 3 not: 3 skipped (2: GPU 'Cray-1' is not")
    )
    data = json.loads(json.dumps(report_data(report), allow_nan=False))
    assert data["scores"]["throughput_spearman"] is None


def test_what_is_asked_in_vain(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [{}, {"model": "x"}])
    with pytest.raises(InputError, match="has no column 'modle'; did you mean 'model'"):
        validation.validate(Validation(path, by=("modle",)))
    with pytest.raises(InputError, match="--memory: serving has no table of memory"):
        validation.validate(Validation(path, path))
    with pytest.raises(InputError, match="at least 2 rows of static batches, but got 1 of 2"):
        validation.calibrate(Calibration(path, tmp_path / "out.csv"))


def test_left_out_sources_are_told_apart(off: Callable[[Times], None], tmp_path: Path) -> None:
    """A source whose GPU generation no other source has is reported apart."""
    rows = read_rows(
        write_table(tmp_path / "t.csv", [{}, {"source": "b", "batch": "8"}, {"source": "c", "gpu": "H100"}])
    )
    asked: list[str] = []

    def fit(source: str) -> Fit:
        asked.append(source)
        return GIVEN.fit

    shared, apart = validation.left_out(rows, GIVEN, fit)
    assert asked == ["a paper", "b", "c"]
    assert (set(shared.sources), set(apart.sources)) == ({"a paper", "b"}, {"c"})


def test_a_calibration_writes_both_files_and_how_they_were_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fit is another's: here it halves what the launches take, and without a source leaves all as it was."""

    def fit(_: object, *, without: str | None = None, **__: object) -> tuple[object, object]:
        return GIVEN.fit.efficiency, GIVEN.fit.engines if without else {"default": {"launch": 5e-4}}

    def written(cells: Mapping[str, Any]) -> str:
        return ",".join(cells)

    made = SimpleNamespace(fit=fit, written=written, written_engines=written)
    monkeypatch.setitem(__import__("sys").modules, "dse.spaces.serving.calibration", made)
    monkeypatch.setattr("dse.spaces.serving.calibration", made, raising=False)
    path = write_table(
        tmp_path / "t.csv", [{"value": "800"}, {"source": "b", "batch": "8"}, {"source": "c", "gpu": "L4"}]
    )
    out = tmp_path / "efficiency.csv"
    report = validation.calibrate(Calibration(path, out, leave_out=True))
    assert set(report.files) == {out, tmp_path / "engines.csv", tmp_path / "efficiency.json"}
    assert report.files[tmp_path / "engines.csv"] == "default"
    assert report.scores["before_macro"] != report.scores["after_macro"]
    (warning,) = report.warnings
    assert (
        "by generation: ada (1 row for 11 numbers), ampere (2 rows for 11 numbers). Errors on these"
        in warning
    )
    assert report_lines(report)[2].startswith("warning: no more usable rows than fitted numbers")
    (few,) = few_runs("engine", ["vllm"] * 3 + ["other"] + ["sglang"] * 4, {"vllm": 3, "sglang": 3})
    assert "by engine: vllm (3 rows for 3 numbers). " in few
    text = report.files[tmp_path / "efficiency.json"]
    assert str(tmp_path) not in text
    told = json.loads(text)
    assert told["command"] == "dse calibrate serving --data t.csv --leave-out source --out efficiency.csv"
    assert told["rows"]["by_engine"] == {"tensorrt-llm": 3}
    (tmp_path / "efficiency.json").write_text(text)
    record = fitted(out)
    assert record is not None
    assert record.rows == 3
    assert set(record.in_sample) == {"a paper", "b", "c"}
    assert (set(record.left_out), set(record.apart)) == ({"a paper", "b"}, {"c"})
    assert record.macro == pytest.approx(float(report.scores["after_macro"] or 0), abs=1e-4)
    (tmp_path / "other.json").write_text('{"rows": {"fitted": "x"}}')
    assert fitted(tmp_path / "other.csv") is None


def test_the_record_of_nothing() -> None:
    """Figures that are not there are null, and read back as such."""
    told = json.loads(fitted_text({}, Path("fit.csv"), {}, (score([], {}), []), None))
    assert told["in_sample"]["macro"] is None
    assert told["rows"] == {"fitted": 0, "configurations": 0}
    assert math.isnan(score([], {}).macro)
