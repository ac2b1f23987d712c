"""Published differences come back for all that there is; for what there is not, the nearest does, and says so."""

from __future__ import annotations

import csv
from pathlib import Path
from unittest import mock

import pytest

import dse.spaces.quantization.figures as module
from dse.errors import InputError
from dse.spaces.quantization.figures import figures, series
from dse.spaces.quantization.quality import Answer, methods, models, quality


def rows() -> list[dict[str, str]]:
    with (Path(module.__file__).parent / "quality.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def one(answer: Answer) -> module.Figure:
    assert len(answer.figures) == 1
    return answer.figures[0]


def test_the_difference_of_every_row_comes_back_by_names_and_by_the_sources_own_labels() -> None:
    best: dict[tuple[str, str], list[float]] = {}
    for row in rows():
        best.setdefault((row["series"], row["model"]), []).append(float(row["value"]))
    assert len(rows()) == 600
    for row in rows():
        of = series()[row["series"]]
        numbers = {
            "activation_bits": float(row["a_bits"]),
            "kv_bits": float(row["kv_bits"]),
            "group": int(row["group"]),
            "within": row["series"],
        }
        bits = float(row["w_bits"])
        found = one(quality(row["model"], row["method"], bits, variant=row["variant"], **numbers))
        values = best[row["series"], row["model"]]
        reference = float(row["baseline_value"] or (min if of.lower_is_better else max)(values))
        assert found.difference == float(row["value"]) - reference
        assert found.loss == pytest.approx(
            found.difference * {"perplexity": 1, "percent": -1, "fraction": -100}[of.unit]
        )
        assert (found.baseline is None) == (not row["baseline_value"])
        assert not found.interpolated
        assert of.source in str(found)
        own = quality(row["source_model"], row["source_method"], bits, **numbers).figures
        assert found in own, (row["source_model"], row["source_method"])


def test_every_method_model_and_width_is_answered_without_saying_more() -> None:
    for figure in figures():
        answer = quality(figure.model, figure.method, figure.w_bits)
        assert figure in answer.figures
        assert not answer.interpolated
    assert len(models()) == 30
    assert {"rtn", "gptq", "awq", "smoothquant", "qat+efficientqat", "mxfp4", "nvfp4"} <= set(methods())


def test_what_nobody_published_names_the_nearest_and_what_differs() -> None:
    answer = quality("llama-2-13b", "awq", 8, group=128)
    assert not answer.found
    assert {(f.model, f.method, f.w_bits, f.group) for f in answer.nearest} == {
        ("llama-2-13b", "awq", 4, 128)
    }
    assert "no published figure of llama-2-13b awq, 8 bits, groups of 128" in str(answer)
    assert "4 bits of weights instead of 8" in str(answer)
    other = quality("my/Own-12B", "gptq", 3)
    assert not other.found
    assert {f.model for f in other.nearest} <= {"llama-13b", "llama-2-13b"}
    assert "instead of own-12b" in str(other)
    trained = quality("llama-3-8b", "QuIP#", 2)
    assert {f.method for f in trained.nearest} == {"qat"}
    assert "instead of quip" in str(trained)


def test_interpolation_stays_within_one_line_and_says_so() -> None:
    answer = quality("llama-2-7b", "awq", 3.5, group=128, within="awq-paper")
    found = one(answer)
    assert answer.interpolated
    assert "interpolated" in str(answer)
    assert found.value == pytest.approx(
        5.47 + (0.77 * 0.13) ** 0.5
    )  # a straight line would say 0.45, not 0.316
    assert found.notes == "between 3 and 4 bits (6.24 and 5.6), logarithms of losses"
    points = one(quality("llama-2-7b", "gptq", 3.5, variant="", group=128, within="autoround-11tasks"))
    ends = [
        one(quality("llama-2-7b", "gptq", b, variant="", group=128, within="autoround-11tasks")).value
        for b in (3, 4)
    ]
    assert points.value == pytest.approx(sum(ends) / 2)
    assert points.notes.endswith("straight line")
    every = quality("llama-2-7b", "gptq", 3.25).figures
    assert {(f.series.name, f.name, f.group) for f in every} == {
        ("awq-paper", "gptq", 128),
        ("awq-paper", "gptq+reorder", 128),
        ("autoround-11tasks", "gptq", 128),
    }
    assert not quality("llama-2-7b", "awq", 4.5, within="awq-paper").found  # beyond the ends there is no line
    missing = [f for f in figures() if (f.model, f.name, f.w_bits) != ("llama-2-7b", "awq", 3)]
    with mock.patch("dse.spaces.quantization.quality.figures", return_value=tuple(missing)):
        wide = quality("llama-2-7b", "awq", 3, group=128)  # from 2 to 4 nobody knows
    assert not wide.found
    assert {f.w_bits for f in wide.nearest} <= {2, 4}


def test_of_two_baselines_the_answer_says_which() -> None:
    told = str(quality("llama-3.1-8b", "q2_k_s", 2, variant="autoround"))
    assert "the source has two baselines, 0.6235 and 0.6295" in told
    assert "two baselines" not in str(quality("llama-2-7b", "awq", 4))


def test_a_misprint_is_told() -> None:
    found = one(quality("llama-2-7b", "q2_k", 2))
    assert "0.625552" in str(found)


def test_misspelt_names_and_impossible_numbers() -> None:
    with pytest.raises(InputError, match=r"no method 'gtpq'; did you mean 'gptq'"):
        quality("llama-2-7b", "gtpq", 4)
    with pytest.raises(InputError, match=r"no series 'awq-papr'; did you mean 'awq-paper'"):
        quality("llama-2-7b", "awq", 4, within="awq-papr")
    for bits in (0, float("nan"), 64):
        with pytest.raises(InputError, match="bits must be from 1 to 32"):
            quality("llama-2-7b", "awq", bits)
