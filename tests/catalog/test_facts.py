"""Published figures of rooflines and formats (R6-R14, B1, B2), from the catalogue's functions.

R1-R5 are in ``test_budget.py``; K1-K5 and P1-P6 in ``test_counts.py``.
"""

from __future__ import annotations

import pytest

from dse.errors import InputError
from dse.spaces.catalog import bits_per_weight, hardware, names, ridge_point, weight_format
from dse.spaces.catalog.formats import block_bytes, main_bits
from dse.spaces.catalog.roofline import (
    compute_bound_batch,
    critical_batch,
    decode_floor,
    growth,
    matmul_intensity,
    share_of_peak,
)

H100_RIDGE = ridge_point(hardware("h100-sxm"), "bf16")


def test_r6_growth_from_volta_to_blackwell() -> None:
    volta = hardware("v100-sxm2-32")
    blackwell = hardware("b200-sxm").replace(
        bandwidth=8e12
    )  # the datasheet's; the catalogue has 7.7, as measured
    assert growth(volta, blackwell, "fp16", "bf16") == pytest.approx(18, rel=1e-2)
    assert growth(volta, blackwell, "fp16", "fp4") == pytest.approx(72, rel=1e-2)
    assert growth(volta, blackwell, "bandwidth") == pytest.approx(8.89, rel=1e-2)
    assert growth(volta, blackwell, "memory") == pytest.approx(5.625, rel=1e-2)
    assert growth(volta, blackwell, "link") == pytest.approx(6, rel=1e-2)
    with pytest.raises(InputError, match="v100-sxm2-32 has no bf16 to compare"):
        growth(volta, blackwell, "bf16")


def test_r7_the_critical_batch_of_int8_weights() -> None:
    chip = hardware("tpu-v5e").replace(int8=3.94e14, bandwidth=8.2e11)
    ridge = ridge_point(chip, "int8")
    assert critical_batch(ridge, weight=1) == pytest.approx(240.24, rel=1e-3)
    # The same of a matmul whose weights are far larger than its batch: compute-bound from 241 tokens.
    wide = {"weight": 1, "activation": 0, "result": 0}
    assert compute_bound_batch(ridge, 4096, 4096, **wide) == 241
    assert matmul_intensity(100, 10**7, 10**7, weight=1) == pytest.approx(200, rel=1e-3)


def test_r8_the_smallest_compute_bound_batch() -> None:
    assert matmul_intensity(7, 4096, 4096) == pytest.approx(7 * 4096 / (4096 + 2 * 7), rel=1e-14)
    assert compute_bound_batch(H100_RIDGE, 4096, 4096) == 346
    assert matmul_intensity(346, 4096, 4096) >= H100_RIDGE > matmul_intensity(345, 4096, 4096)
    with pytest.raises(
        InputError, match=r"a matmul 128 x 4096 must be able to reach 295\.3 operations per byte"
    ):
        compute_bound_batch(H100_RIDGE, 128, 4096)


def test_r9_r10_r11_shares_of_peak() -> None:
    assert 100 * share_of_peak(matmul_intensity(1, 4096, 4096), H100_RIDGE) == pytest.approx(0.338, rel=5e-3)
    assert 100 * share_of_peak(matmul_intensity(64, 4096, 4096), H100_RIDGE) == pytest.approx(21.0, rel=5e-3)
    addition = share_of_peak(1 / 6, ridge_point(hardware("a100-sxm-80"), "fp16"))
    assert 100 * addition == pytest.approx(0.109, rel=5e-3)
    assert share_of_peak(matmul_intensity(4096, 4096, 4096), H100_RIDGE) == 1


def test_r12_r13_r14_floors_of_decoding() -> None:
    a100 = hardware("a100-sxm-80")
    floor = decode_floor(100e9, a100, "fp16", bandwidth=2000e9)
    assert floor.reading == pytest.approx(0.1, rel=1e-6)
    assert floor.arithmetic == pytest.approx(0.000641, rel=1e-3)
    assert floor.reading / floor.arithmetic == pytest.approx(156, rel=5e-3)
    halved = decode_floor(100e9, a100, "fp8", "fp16", bandwidth=2000e9)
    assert halved.reading == pytest.approx(0.05, rel=1e-6)
    small = decode_floor(8e9, hardware("h100-sxm"))
    assert small.seconds == pytest.approx(4.776e-3, rel=1e-3)
    assert small.tokens_per_second == pytest.approx(209.4, rel=1e-3)
    assert small.arithmetic == pytest.approx(16.2e-6, rel=5e-3)
    with pytest.raises(InputError, match="a100-sxm-80 has no fp8 rate; it has bf16, fp16, int8"):
        decode_floor(8e9, a100, "fp8")
    with pytest.raises(InputError, match="unknown number format 'bf8'; did you mean"):
        decode_floor(8e9, a100, "fp8", "bf8")


def test_b1_b2_bits_per_weight() -> None:
    assert bits_per_weight(4, 128, 16, 4) == pytest.approx(4.156, rel=1e-3)
    assert weight_format("int4-g128").bits_per_weight == bits_per_weight(4, 128, 16, 4)
    published = {"nvfp4": 4.5, "mxfp4": 4.25, "q4_0": 4.5, "q8_0": 8.5, "fp8-block": 8.002}
    for name, bits in published.items():
        assert main_bits(weight_format(name)) == pytest.approx(bits, rel=1e-3), name


def test_every_format_follows_from_its_layout() -> None:
    for name in names("formats"):
        row = weight_format(name)
        if row.mixed:  # the mean over tensors, some of which are wider
            assert main_bits(row) <= row.bits_per_weight < 1.4 * main_bits(row), name
        else:
            assert main_bits(row) == row.bits_per_weight, name
        assert (row.integer, row.float) == (row.kind == "int", row.kind == "float"), name
        assert row.compute in {"bf16", "fp16", "fp8", "int8", "fp4"}, name


def test_blocks_are_of_the_published_size() -> None:
    sizes = {
        "q8_0": 34,
        "q6_k": 210,
        "q5_k_m": 176,
        "q5_1": 24,
        "q5_0": 22,
        "q4_k_m": 144,
        "q4_1": 20,
        "q4_0": 18,
    }
    sizes |= {
        "q3_k_m": 110,
        "q2_k": 84,
        "iq4_nl": 18,
        "iq4_xs": 136,
        "iq3_s": 110,
        "iq3_xxs": 98,
        "iq2_m": 82,
    }
    sizes |= {"iq2_xs": 74, "iq2_xxs": 66, "iq1_m": 56, "iq1_s": 50, "mxfp4": 17}
    assert {name: block_bytes(weight_format(name)) for name in sizes} == sizes


def test_unknown_formats_are_told_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"unknown format 'nvfp5'; did you mean 'nvfp4'\? Known: bf16, fp16"):
        weight_format("nvfp5")
