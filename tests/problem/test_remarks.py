"""The parts of a metric, the best ever measured of it, and the model's error: what is declared, and what is wrong."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dse.errors import SpaceError
from dse.problem.library import load
from dse.study.breakdown import beyond_record, breakdowns
from dse.study.diagnosis import design_metrics
from dse.study.result import FrontPoint

SPACE: dict[str, Any] = {
    "dse": 1,
    "name": "parts",
    "inputs": {"most": "50 percent"},
    "tables": {"t": {"columns": {"best": "percent"}, "rows": {"x": ["50 percent"], "y": [None]}}},
    "dimensions": {"tp": [1, 2, 4], "chip": {"table": "t"}},
    "metrics": {
        "compute": {"expr": "8 s / tp", "unit": "s"},
        "wire": {"expr": "100 ms * (tp - 1)", "unit": "ms"},
        "fixed": {"expr": "0.5 s", "unit": "s"},
        "talk": {"unit": "s", "parts": ["wire", "fixed"]},
        "time": {"unit": "s", "parts": ["compute", "talk"]},
        "mfu": {"expr": "2 s / time", "unit": "percent", "record": "chip.best"},
    },
    "objectives": {"time": "minimize"},
    "error": {"time": "6 percent"},
}


def changed(**metrics: Any) -> dict[str, Any]:
    data = copy.deepcopy(SPACE)
    data["metrics"] |= metrics
    return data


def mistakes(data: dict[str, Any]) -> str:
    with pytest.raises(SpaceError) as caught:
        load(data)
    return str(caught.value)


def test_a_metric_is_the_sum_of_its_parts() -> None:
    found = load(SPACE)
    assert found.metrics["time"].parts == ("compute", "talk")
    assert found.metrics["time"].text == "compute + talk"
    assert found.errors == {"time": 0.06}
    metrics = design_metrics(found, {"tp": 4.0, "chip": "x"})
    assert metrics["time"] == pytest.approx(2.0 + 0.3 + 0.5)
    (time,) = breakdowns(found, metrics)
    assert [(part.name, round(part.share, 3)) for part in time.parts] == [("compute", 0.714), ("talk", 0.286)]
    assert time.bound is time.parts[0]
    assert [part.name for part in time.parts[1].parts] == ["wire", "fixed"]
    assert sum(part.share for part in time.parts[1].parts) == pytest.approx(time.parts[1].share)
    assert (time.rest, time.zeros) == (0.0, ())


def test_zero_parts_are_named_and_what_is_missing_is_told() -> None:
    found = load(
        changed(time={"expr": "compute + talk + 1 s", "unit": "s", "parts": ["compute", "wire", "fixed"]})
    )
    (talk, time) = breakdowns(found, design_metrics(found, {"tp": 1.0, "chip": "x"}))
    assert (talk.name, time.zeros) == ("talk", ("wire",))
    assert time.rest == pytest.approx(1.0)
    assert time.to_dict()["bound"] == "compute"


def test_a_sum_without_a_finite_value_is_not_taken_apart() -> None:
    found = load(changed(fixed={"expr": "1 s / 0", "unit": "s"}))
    assert breakdowns(found, design_metrics(found, {"tp": 1.0, "chip": "x"})) == ()


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({"time": {"expr": "1 s", "unit": "s", "parts": ["compute", "tlak"]}}, "found 'tlak', expected a metric; did you"),
        ({"time": {"expr": "1 s", "unit": "s", "parts": ["mfu"]}}, "found 'mfu', which is in percent, expected a metric like"),
        ({"time": {"expr": "1 s", "unit": "s", "parts": ["talk", "talk"]}}, "found 'talk' again, expected every part once"),
        ({"time": {"expr": "1 s", "unit": "s", "parts": []}}, "expected at least one entry"),
        ({"time": {"unit": "s", "parts": ["compute", "nothing"]}}, "unknown name 'nothing'"),
        ({"fixed": {"expr": "1 s", "unit": "s", "parts": ["time"]}}, "a metric cannot be a part of itself"),
        ({"wire": {"unit": "s", "parts": ["talk"]}}, "is a cycle"),
        ({"mfu": {"expr": "1", "unit": "1", "record": "nine"}}, "metrics.mfu.record: unknown name 'nine'"),
        ({"mfu": {"expr": "1", "unit": "1", "record": "5 s"}}, "the record of mfu is"),
        ({"mfu": {"expr": "1", "unit": "1", "record": {"above": "1", "below": "2"}}}, "with one key, above or below"),
        ({"mfu": {"expr": "1", "unit": "1", "record": {"under": "1"}}}, "with one key, above or below"),
    ],
)  # fmt: skip
def test_mistakes(metrics: dict[str, Any], said: str) -> None:
    assert said in mistakes(changed(**metrics))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({"tiem": 0.1}, "error.tiem: found 'tiem', expected a metric; did you mean 'time'?"),
        ({"time": "6 ms"}, "expected a share such as '6 percent' or 0.06"),
        ({"time": 1.5}, "expected a share such as '6 percent' or 0.06"),
        ({"time": -0.1}, "expected a share such as '6 percent' or 0.06"),
        ({"time": True}, "expected a share such as '6 percent' or 0.06"),
    ],
)
def test_wrong_errors(error: dict[str, Any], said: str) -> None:
    assert said in mistakes({**SPACE, "error": error})


@pytest.mark.parametrize("error", [0.06, "6%", "6 %", "6 percent", "0.06"])
def test_ways_to_write_an_error(error: Any) -> None:
    assert load({**SPACE, "error": {"time": error}}).errors == {"time": 0.06}


def points(found: Any) -> list[FrontPoint]:
    designs = [found.design_at(found.digits_of(index)) for index in range(found.size)]
    return [FrontPoint(at, d, {}, design_metrics(found, d)) for at, d in enumerate(designs)]


def test_predictions_past_the_best_measured() -> None:
    found = load(SPACE)
    (beyond,) = beyond_record(found, points(found))
    assert (beyond.metric, beyond.designs, beyond.index, beyond.record) == ("mfu", 1, 4, 0.5)
    assert beyond.value == pytest.approx(2 / 2.8)
    below = load(changed(mfu={"expr": "2 s / time", "unit": "percent", "record": {"below": "most"}}))
    (beyond,) = beyond_record(below, points(below))
    assert (beyond.designs, beyond.index) == (4, 0)


@pytest.mark.parametrize("record", ["0 / 0", "1 / 0", "100 percent"])
def test_no_record_no_doubt(record: str) -> None:
    found = load(changed(mfu={"expr": "2 s / time", "unit": "percent", "record": record}))
    assert beyond_record(found, points(found)) == ()


def test_remarks_are_part_of_the_digest() -> None:
    digests = {
        load(SPACE).digest,
        load({**SPACE, "error": {}}).digest,
        load(changed(talk={"expr": "wire + fixed", "unit": "s"})).digest,
        load(changed(mfu={"expr": "2 s / time", "unit": "percent"})).digest,
    }
    assert len(digests) == 4
    spelled = {"expr": "2 s / time", "unit": "percent", "record": "chip . best"}
    assert load(changed(mfu=spelled)).digest == load(SPACE).digest
    below = {**spelled, "record": {"below": "chip.best"}}
    assert load(changed(mfu=below)).digest != load(SPACE).digest
