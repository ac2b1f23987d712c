"""Budgets before any plan: the arithmetic of training runs and ridge points, with their published inputs."""

from __future__ import annotations

import pytest

from dse.errors import InputError
from dse.spaces.catalog import hardware, ridge_point, training_days, training_flops, training_state
from dse.spaces.catalog.budget import FORMATS

TB, GB = 1e12, 1e9


def test_training_flops() -> None:
    assert training_flops(175e9, 300e9) == pytest.approx(3.15e23, rel=1e-3)
    llama = training_flops(405e9, 15.6e12)
    assert llama == pytest.approx(3.79e25, rel=2e-3)
    assert llama / training_flops(175e9, 300e9) == pytest.approx(120, abs=0.5)


def test_training_days() -> None:
    peak = hardware("h100-sxm").bf16
    llama = training_flops(405e9, 15.6e12)
    days = training_days(llama, 16384, peak, 0.40)
    assert days == pytest.approx(67.7, rel=2e-3)
    assert days - training_days(llama, 16384, peak, 0.50) == pytest.approx(13.5, abs=0.05)
    assert training_days(training_flops(70e9, 15e12), 2048, peak, 0.45) == pytest.approx(79.97, rel=2e-3)


@pytest.mark.parametrize("mfu", [0, -0.1, 1.01, 40, float("nan")])
def test_a_utilization_above_all_is_refused(mfu: float) -> None:
    with pytest.raises(InputError, match="mfu must be above 0 and at most 1"):
        training_days(1e24, 1024, 989.4e12, mfu)


def test_training_state() -> None:
    llama = training_state(405e9)
    assert llama / TB == pytest.approx(6.48, rel=1e-3)
    assert llama / (80 * GB) == 81
    assert training_state(7e9) / GB == 112
    assert training_state(7e9, 18) / GB == 126


@pytest.mark.parametrize(
    ("chip", "number_format", "bandwidth", "ridge"),
    [
        ("v100-sxm2-32", "fp16", None, 138.89),
        ("a100-sxm-80", "bf16", None, 153.02),
        ("h100-sxm", "bf16", None, 295.34),
        ("b200-sxm", "bf16", 8e12, 281.25),  # the datasheet's 8 TB/s; the catalogue has 7.7, as measured
        ("b200-sxm", "fp4", 8e12, 1125),
    ],
)
def test_ridge_points(chip: str, number_format: str, bandwidth: float | None, ridge: float) -> None:
    assert ridge_point(hardware(chip), number_format, bandwidth) == pytest.approx(ridge, rel=1e-3)


def test_a_format_that_a_chip_lacks_is_an_error() -> None:
    with pytest.raises(
        InputError, match=r"h100-sxm has no fp4 rate; it has bf16, fp16, fp8, int8, tf32, fp32"
    ):
        ridge_point(hardware("h100-sxm"), "fp4")
    with pytest.raises(InputError, match=r"unknown number format 'bf8'; did you mean"):
        ridge_point(hardware("h100-sxm"), "bf8")
    assert "bf16" in FORMATS
