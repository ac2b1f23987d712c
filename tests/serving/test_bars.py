"""The recorded fit: its errors are within what the product promises, and the README and the space tell them."""

from __future__ import annotations

import csv
import json
from importlib.resources import files
from typing import Any

import pytest

from dse.problem.library import load
from dse.spaces.serving.expected import ENGINE, GENERATION, own_numbers
from dse.spaces.serving.measured.given import load_given
from dse.spaces.serving.measured.predictions import predict_times
from dse.spaces.serving.measured.scores import score
from dse.spaces.serving.rows import read_rows
from dse.spaces.serving.validation import PUBLISHED

SPACE = files("dse.spaces.serving")


def _record() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SPACE.joinpath("efficiency.json").read_text(encoding="utf-8"))
    return found


def test_the_fit_is_within_its_bars() -> None:
    record = _record()
    inside, outside = record["in_sample"], record["left_out"]
    assert inside["macro"] <= 0.09
    assert outside["macro"] <= 0.15
    assert inside["decode"] <= 0.10
    assert min(inside["throughput_spearman"], inside["latency_spearman"]) >= 0.95
    assert min(outside["throughput_spearman"], outside["latency_spearman"]) >= 0.95


def test_numbers_are_few_and_none_is_of_a_model() -> None:
    assert len(GENERATION) <= 12
    assert (
        max(len(own_numbers(captures, repeats)) for captures in (False, True) for repeats in (False, True))
        <= 4
    )
    engines = list(csv.DictReader(SPACE.joinpath("engines.csv").read_text(encoding="utf-8").splitlines()))
    shared = engines[0]
    for row in engines:  # what is not an engine's own is that of all engines
        own = own_numbers(row["captures"] == "1", row["repeats"] == "1")
        assert {name for name in ENGINE if row[name] != shared[name]} <= set(own), row["engine"]
    text = SPACE.joinpath("efficiency.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert list(rows[0]) == ["generation", *GENERATION]
    chips = load("serving").graph.tables["gpus"].columns["generation"].cells
    assert {row["generation"] for row in rows} == set(chips)


def test_the_readme_and_the_space_tell_the_recorded_errors() -> None:
    record = _record()
    inside, outside = record["in_sample"], record["left_out"]
    lines = SPACE.joinpath("README.md").read_text(encoding="utf-8").splitlines()
    told = {
        cells[1].strip(" *"): [cell.strip(" *") for cell in cells]
        for line in lines
        if len(cells := line.split("|")) == 5
    }
    for source, error in inside["sources"].items():
        assert float(told[source][2]) == pytest.approx(100 * error, abs=0.051), source
    for source, error in outside["sources"].items():
        assert float(told[source][3].split()[0]) == pytest.approx(100 * error, abs=0.051), source
    assert [float(cell) for cell in told["macro"][2:4]] == pytest.approx(
        [100 * inside["macro"], 100 * outside["macro"]], abs=0.051
    )
    errors = load("serving").errors
    assert set(errors) == {"gpu_throughput", "user_speed"}
    assert list(errors.values()) == [pytest.approx(outside["macro"], abs=0.0005)] * 2


def test_the_record_is_of_the_shipped_model_and_numbers() -> None:
    """Sources that are shipped as a whole come out with the recorded errors when they are predicted again."""
    rows = read_rows(PUBLISHED)
    scores = score(rows.rows, predict_times(rows.rows, load_given(), ("exact",)))
    by_source: dict[str, list[float]] = {}
    for (source, *_), errors in scores.groups.items():
        by_source.setdefault(source, []).append(errors.mean)
    recorded = _record()["in_sample"]["sources"]
    for source in ("FasterTransformer docs (GPT)", "Qwen2.5 speed benchmark", "gpt-fast README"):
        assert sum(by_source[source]) / len(by_source[source]) == pytest.approx(recorded[source], abs=2e-4), (
            source
        )
