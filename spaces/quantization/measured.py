"""Measuring a quantizer on a matrix: the function behind the space ``quantization-measured``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache

import numpy as np

from dse.errors import InputError

from .example import example
from .rounding import Array, output_error, sqnr
from .schemes import quantize
from .tensors import read_matrix

__all__ = ["check", "load", "measure"]

EXAMPLE, AUTO = "example", "auto"
TOKENS = 512
"""Tokens of activations that are drawn where none are given."""


@cache
def load(weights: str, activations: str, seed: int, limit: int) -> tuple[Array, Array, tuple[str, ...]]:
    """Weights (outputs, inputs), activations (tokens, inputs), and what is to be said of them.

    Args:
        weights: a file as :func:`~.tensors.read_matrix` takes it, or ``example``.
        activations: a file, ``example``, or ``auto``: the example's with its weights, else normal ones by seed.
        seed: draws the rows of matrices with more than ``limit`` values, and normal activations.
        limit: values of each matrix that are read.

    Raises:
        InputError: a file that cannot be used, or matrices that do not fit.
    """
    notes = []
    if weights == EXAMPLE:
        w: Array = example()[0]
        notes.append("weights: the example, the first layer of a small network trained on made-up data")
    else:
        read = read_matrix(weights, rows="outputs", seed=seed, limit=limit)
        w = read.values
        notes += [read.note] if read.note else []
    if activations == EXAMPLE or (activations == AUTO and weights == EXAMPLE):
        x: Array = example()[1]
    elif activations == AUTO:
        x = np.random.default_rng(seed).standard_normal((TOKENS, w.shape[1])).astype(np.float32)
        notes.append(
            f"activations: none were given; {TOKENS} tokens of independent normal numbers, seed {seed}"
        )
    else:
        read = read_matrix(activations, rows="tokens", seed=seed, limit=limit)
        x = read.values
        notes += [read.note] if read.note else []
    if w.shape[1] != x.shape[1]:
        raise InputError(
            f"{weights} has {w.shape[1]} inputs and {activations} has {x.shape[1]}: expected weights (outputs, inputs) "
            "and activations (tokens, inputs)"
        )
    if len(x) < 2:
        raise InputError(f"{activations}: has one token, expected at least 2: half calibrates, half measures")
    return w, x, tuple(notes)


@cache
def _say(note: str) -> None:
    sys.stderr.write(note + "\n")


def measure(design: Mapping[str, object]) -> dict[str, float]:
    """Quantize as the design says, and compare with the matrix as it was.

    Every other token calibrates the method; ``output_error`` is taken on the rest, ``calibration_error`` on those seen.
    ``sqnr`` is that of the weights alone, in dB.

    Raises:
        InputError: matrices that cannot be read or do not fit, or a method that has no such bits or group.
    """
    seed, limit = int(str(design["seed"])), int(str(design["max_values"]))
    w, x, notes = load(str(design["weights"]), str(design["activations"]), seed, limit)
    for note in notes:
        _say(note)
    seen, rest = x[::2], x[1::2]
    found = quantize(
        str(design["method"]),
        w,
        seen,
        bits=int(str(design["weight_bits"])),
        group=int(str(design["group"])),
        activation_bits=int(str(design["activation_bits"])),
    )
    return {
        "output_error": output_error(rest, w, found),
        "calibration_error": output_error(seen, w, found),
        "sqnr": sqnr(w, found.weights),
        "bits_per_weight": found.bits_per_weight,
    }


def check(inputs: Mapping[str, object]) -> None:
    """Read the matrices, before anything is measured on them.

    Raises:
        InputError: matrices that cannot be read or do not fit.
    """
    load(
        str(inputs["weights"]),
        str(inputs["activations"]),
        int(str(inputs["seed"])),
        int(str(inputs["max_values"])),
    )


measure.check = check  # type: ignore[attr-defined]  # dse.study.worker calls it once
