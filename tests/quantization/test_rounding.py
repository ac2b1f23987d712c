"""Rounding: the formula of its noise, half a step, idempotence, scale, and what the codes take."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dse.errors import InputError
from dse.spaces.catalog import catalog
from dse.spaces.catalog.formats import bits_per_weight, main_bits
from dse.spaces.quantization.floats import E2M1, E4M3, E5M2, NF4, fp8, mxfp4, nf4, nvfp4, to_float
from dse.spaces.quantization.llamacpp import q4_0, q4_k, q6_k, q8_0
from dse.spaces.quantization.rounding import (
    Array,
    Quantized,
    absmax_sqnr,
    asymmetric,
    grouped,
    sqnr,
    symmetric,
)

SEEDS = (11, 12, 13)

matrices = arrays(
    np.float64,
    (3, 64),
    elements=st.floats(-4, 4).map(lambda value: value if abs(value) > 1e-3 else 0.0),
)


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_of_absmax_rounding_on_gaussian_data_is_the_formulas(seed: int) -> None:
    w = np.random.default_rng(seed).standard_normal((128, 2048))
    for bits in (4, 5, 6, 7, 8, 10):
        for group in (32, 64, 128, 512, 0, -1):
            peaks = np.abs(grouped(w, group)).max(axis=-1)
            peak = float(np.sqrt(np.mean(peaks**2)) / w.std())
            found = sqnr(w, symmetric(w, bits, group, exact=True).weights)
            assert found == pytest.approx(absmax_sqnr(bits, peak), abs=0.3)
            stored = sqnr(w, symmetric(w, bits, group).weights)  # with scales in fp16
            assert stored == pytest.approx(absmax_sqnr(bits, peak), abs=0.3)


@settings(max_examples=60, deadline=None)
@given(matrices, st.integers(2, 8), st.sampled_from((0, 16, 32, -1)), st.booleans())
def test_values_move_by_half_a_step_at_most_and_stay_there(
    w: Array, bits: int, group: int, zero: bool
) -> None:
    run = asymmetric if zero else symmetric
    found = run(w, bits, group, exact=True).weights
    groups = grouped(w, group)
    if zero:
        step = (np.maximum(groups.max(-1), 0) - np.minimum(groups.min(-1), 0)) / (2**bits - 1)
    else:
        step = np.abs(groups).max(-1) / (2 ** (bits - 1) - 1)
    moved = np.abs(groups - grouped(found, group)).max(-1)
    # a rounded zero point moves the codes by half a step at most, which clips the ends by as much
    assert (moved <= step * (1.0 if zero else 0.5) * (1 + 1e-9)).all()
    again = run(found, bits, group, exact=True).weights
    assert again == pytest.approx(found, rel=1e-9, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(matrices, st.integers(-3, 3))
def test_powers_of_two_pass_through(w: Array, power: int) -> None:
    factor = 2.0**power
    runs: tuple[Callable[[Array], Quantized], ...] = (
        lambda m: symmetric(m, 4, 32, exact=True),
        lambda m: asymmetric(m, 3, 16, exact=True),
        mxfp4,
        fp8,
        nvfp4,
    )
    for run in runs:
        assert run(w * factor).weights == pytest.approx(run(w).weights * factor, rel=1e-12, abs=1e-12)


def test_bits_per_weight_are_those_of_the_codes_scales_and_zero_points() -> None:
    w = np.random.default_rng(14).standard_normal((64, 1024)).astype(np.float32)
    for bits in (2, 3, 4, 8):
        for group in (32, 64, 128, 0):
            width = group or 1024
            assert symmetric(w, bits, group).bits_per_weight == bits_per_weight(bits, width, 16)
            assert asymmetric(w, bits, group).bits_per_weight == bits_per_weight(bits, width, 16, bits)
    blocks: dict[str, Quantized] = {
        "q4_0": q4_0(w), "q8_0": q8_0(w), "q4_k_s": q4_k(w), "q6_k": q6_k(w), "mxfp4": mxfp4(w), "nf4": nf4(w),
        "int4-g128": asymmetric(w, 4, 128), "int3-g128": asymmetric(w, 3, 128),
    }  # fmt: skip
    for name, found in blocks.items():
        assert found.bits_per_weight == main_bits(catalog.weight_format(name)), name
    assert nvfp4(w).stored_bits == w.size * catalog.weight_format("nvfp4").bits_per_weight + 32


# -- small floats ----------------------------------------------------------------------------------------


def test_small_floats_have_their_formats_values() -> None:
    assert sorted(set(np.abs(to_float(np.linspace(-9, 9, 4001), E2M1)))) == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert to_float(np.array([2.5, 3.5, 0.25, 0.75, 5.0]), E2M1).tolist() == [2, 4, 0, 1, 4]  # ties to even
    e4m3 = to_float(np.array([448.0, 500.0, 17.0, 2.0**-9, 2.0**-10, 0.1]), E4M3)
    assert e4m3.tolist() == [448, 448, 16, 2.0**-9, 0, 0.1015625]
    assert to_float(np.array([57344.0, 1e9, 1.2]), E5M2).tolist() == [57344, 57344, 1.25]


def test_nf4_suits_normal_weights_and_takes_the_nearest_value() -> None:
    w = np.random.default_rng(15).standard_normal((64, 512))
    assert sqnr(w, nf4(w).weights) > sqnr(w, symmetric(w, 4, 64).weights) + 1
    row = np.concatenate([NF4, np.full(48, 0.12)])[None]
    assert nf4(row * 3).weights[0, :17] == pytest.approx([*(NF4 * 3), 0.07958029955625534 * 3])


@settings(max_examples=40, deadline=None)
@given(matrices)
def test_blocks_of_small_floats_are_idempotent(w: Array) -> None:
    for run in (mxfp4, nf4, fp8):
        once = run(w).weights
        assert run(once).weights == pytest.approx(once, rel=1e-12)


# -- llama.cpp ---------------------------------------------------------------------------------------------


def test_q4_0_of_a_block_by_hand() -> None:
    w = np.zeros((1, 32), np.float32)
    w[0, :4] = [-8.0, 7.4, 0.4, 7.9]
    assert q4_0(w).weights[0, :4].tolist() == [-8, 7, 0, 7]  # d = 1; 8 has no code
    w[0, 0] = 8.0
    assert q4_0(w).weights[0, :4].tolist() == [8, 7, 0, 8]  # d = -1


@pytest.mark.parametrize("seed", SEEDS)
def test_searched_super_blocks_lose_less_than_plain_blocks_of_the_same_size(seed: int) -> None:
    w = np.random.default_rng(seed).standard_normal((32, 1024)).astype(np.float32)
    assert sqnr(w, q4_k(w).weights) > sqnr(w, q4_0(w).weights) + 1
    assert sqnr(w, q6_k(w).weights) > sqnr(w, symmetric(w, 6, 32).weights) + 1
    assert sqnr(w, q8_0(w).weights) > 42


def test_constant_and_zero_rows_survive() -> None:
    w = np.zeros((3, 256), np.float32)
    w[1] = 0.5
    for run in (symmetric, asymmetric):
        assert run(w, 4, 32).weights == pytest.approx(w, abs=1e-3)
    for block in (q4_0, q8_0, q4_k, q6_k, mxfp4, nvfp4, nf4, fp8):
        assert block(w).weights == pytest.approx(w, abs=0.02), block


def test_groups_that_do_not_divide_a_row_and_bits_out_of_range() -> None:
    w = np.ones((2, 100))
    with pytest.raises(InputError, match="groups of 32 do not divide rows of 100"):
        symmetric(w, 4, 32)
    with pytest.raises(InputError, match="expected from 2 to 16"):
        symmetric(w, 1)
