"""Methods that look at activations, on data with outlier channels; every seed is named here."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest

from dse.errors import InputError
from dse.spaces.quantization.calibrated import awq, llm_int8, smoothing_scales, smoothquant
from dse.spaces.quantization.gptq import gptq, gptq_searched, inverse_factor
from dse.spaces.quantization.rounding import (
    Array,
    Quantized,
    asymmetric,
    output_error,
    rounded_rows,
    symmetric,
)
from dse.spaces.quantization.schemes import METHODS, quantize

SEEDS = (21, 22, 23)


def outlier_data(
    seed: int, larger: float = 20.0, *, tokens: int = 256, inputs: int = 128, mixed: float = 0.5
) -> tuple[Array, Array]:
    """Weights (32, inputs) and correlated activations, four of whose channels are ``larger`` times the others."""
    random = np.random.default_rng(seed)
    w = (0.05 * random.standard_normal((32, inputs))).astype(np.float32)
    mixing = np.eye(inputs) + mixed * random.standard_normal((inputs, inputs)) / np.sqrt(inputs)
    x = random.standard_normal((tokens, inputs)) @ mixing
    x[:, random.choice(inputs, 4, replace=False)] *= larger
    return w, x.astype(np.float32)


def plain_w8a8(w: Array) -> Quantized:
    found = symmetric(w, 8)
    return Quantized(found.weights, found.stored_bits, partial(rounded_rows, bits=8))


@pytest.mark.parametrize("seed", SEEDS)
def test_smoothquant_loses_less_than_plain_rounding_in_eight_bits(seed: int) -> None:
    for larger in (10.0, 30.0, 100.0):
        w, x = outlier_data(seed, larger)
        calibration, other = x[::2], x[1::2]
        assert (
            output_error(other, w, smoothquant(w, calibration)) < output_error(other, w, plain_w8a8(w)) / 1.5
        )


def test_searched_gptq_loses_no_more_than_awq_and_rounding_on_its_calibration_inputs() -> None:
    """Inputs that are correlated, outlier channels of 20 times the others, seeds 1 to 8 (of 64 see README.md)."""
    for seed, tokens, bits, group in product(range(1, 9), (128, 512), (3, 4), (0, 64)):
        w, x = outlier_data(seed, tokens=tokens)
        found = output_error(x, w, gptq_searched(w, x, bits, group))
        assert found <= output_error(x, w, awq(w, x, bits, group))
        assert found <= output_error(x, w, awq(w, x, bits, group, clip=False))
        assert found <= output_error(x, w, gptq(w, x, bits, group))
        rounded = output_error(x, w, asymmetric(w, bits, group))
        assert output_error(x, w, gptq(w, x, bits, group)) <= rounded
        assert output_error(x, w, awq(w, x, bits, group, clip=False)) <= rounded


def test_gptq_as_published_loses_no_more_than_awq_where_outliers_are_mild() -> None:
    """By activation order, of correlated inputs with channels of 5 times the others, from 4 bits; seeds 1 to 8."""
    for seed, bits, group in product(range(1, 9), (4, 6), (0, 64)):
        w, x = outlier_data(seed, 5.0, tokens=512)
        found = output_error(x, w, gptq(w, x, bits, group, order=True))
        assert found <= output_error(x, w, awq(w, x, bits, group))


def test_no_row_of_searched_gptq_loses_more_than_rounding() -> None:
    """Whatever the inputs: few tokens of them, independent ones, constant rows, weights of one sign."""
    for seed, tokens, mixed in ((31, 8, 0.5), (32, 256, 0.0), (33, 128, 2.0)):
        w, x = outlier_data(seed, 60.0, tokens=tokens, mixed=mixed)
        w[:8], w[8:16] = np.sign(w[:8]) * 0.05, np.abs(w[8:16])
        for bits, group in ((2, 0), (3, 64), (8, 0)):
            left = w - gptq_searched(w, x, bits, group).weights
            for plain in (symmetric, asymmetric):
                other = w - plain(w, bits, group).weights
                lost, most = np.square(x @ left.T).sum(0), np.square(x @ other.T).sum(0)
                assert (lost <= most * (1 + 1e-5) + 1e-12).all()


def test_awq_cuts_what_is_far_out_where_that_loses_less() -> None:
    for group, tokens in ((0, 64), (0, 512), (64, 256)):  # fewer tokens than weights in a group, and more
        w, x = outlier_data(34, 1.0, tokens=tokens)
        cut, whole = awq(w, x, 2, group), awq(w, x, 2, group, clip=False)
        assert output_error(x, w, cut) < 0.9 * output_error(x, w, whole)
        assert np.abs(cut.weights).max() < np.abs(whole.weights).max()


def test_gptq_is_algorithm_1_column_by_column() -> None:
    w, x = outlier_data(26)
    hessian = 2.0 * (x.T @ x).astype(np.float64)
    hessian += 0.01 * np.diagonal(hessian).mean() * np.eye(128)
    upper = np.linalg.cholesky(np.linalg.inv(hessian)).T
    assert inverse_factor(hessian) == pytest.approx(upper, rel=1e-6, abs=1e-9)
    left, found = w.astype(np.float64), np.empty((32, 128))
    low, high = np.minimum(w.min(1), 0), np.maximum(w.max(1), 0)
    scale = ((high - low) / 15).astype(np.float16).astype(np.float64)
    zero = np.rint(-low / scale)
    for at in range(128):
        code = np.clip(np.rint(left[:, at] / scale) + zero, 0, 15)
        found[:, at] = (code - zero) * scale
        error = (left[:, at] - found[:, at]) / upper[at, at]
        left[:, at:] -= np.outer(error, upper[at, at:])
    same = gptq(w, x, 4, order=False).weights
    assert np.mean(np.abs(same - found) < 1e-5) > 0.99  # float32 rounds some ties to the other side
    assert output_error(x, w, Quantized(found.astype(np.float32), 0)) == pytest.approx(
        output_error(x, w, gptq(w, x, 4, order=False)), rel=0.03
    )


def test_gptq_takes_inputs_that_never_occur_and_few_tokens() -> None:
    w, x = outlier_data(27, tokens=16)
    x[:, 5] = 0
    for run in (gptq, gptq_searched):
        found = run(w, x, 4, 64)
        assert np.isfinite(found.weights).all()
        assert output_error(x, w, found) < 1e-2
        assert np.isfinite(run(w, np.zeros_like(x), 4).weights).all()


def test_llm_int8_keeps_columns_with_outliers_in_16_bits() -> None:
    w, x = outlier_data(28, larger=60.0)
    outliers = (np.abs(x) >= 6).any(axis=0)
    found = llm_int8(w, x)
    assert found.weights[:, outliers] == pytest.approx(w[:, outliers], rel=1e-3)
    assert found.bits_per_weight == 8 + 16 / 128 + 8 * outliers.mean()
    assert output_error(x, w, found) < output_error(x, w, plain_w8a8(w)) / 10


def test_smoothing_follows_alpha() -> None:
    w, x = outlier_data(29)
    scaled = x / smoothing_scales(w, x, 1.0)
    assert np.abs(scaled).max(axis=0) == pytest.approx(
        np.ones(128), rel=1e-5
    )  # all of it moves into the weights
    unscaled = w * smoothing_scales(w, x, 0.0)
    assert np.abs(unscaled).max(axis=0) == pytest.approx(np.ones(128), rel=1e-5)


def test_every_method_runs_in_all_that_it_has_and_refuses_the_rest() -> None:
    w, x = outlier_data(30, tokens=64, inputs=256)
    for name, method in METHODS.items():
        for bits in method.bits[-1:]:
            for group in method.groups[-2:]:
                for width in method.activations:
                    found = quantize(name, w[:8], x, bits=bits, group=group, activation_bits=width)
                    assert np.isfinite(found.output(x)).all()
                    assert found.bits_per_weight >= bits
                    if bits >= 4 and width > 4:
                        assert output_error(x, w[:8], found) < 0.1, name
    with pytest.raises(InputError, match=r"q6_k has no bits 4; it has 6"):
        quantize("q6_k", w, x, bits=4)
    with pytest.raises(InputError, match=r"no method 'gtpq'; did you mean 'gptq'"):
        quantize("gtpq", w, x, bits=4)
    for name in ("quip#", "aqlm", "qat"):
        with pytest.raises(InputError, match=r"cannot be measured.*published figures of it only"):
            quantize(name, w, x, bits=2)
    with pytest.raises(InputError, match=r"32 x 256 .*and activations 64 x 200"):
        quantize("rtn", w, x[:, :200], bits=4)
