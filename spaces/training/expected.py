"""What the efficiencies of a GPU generation are expected to be before training runs are looked at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dse.spaces.fitting import Number
from dse.study.measurements import Measurements, read_measurements

__all__ = ["EXPECTED", "expectations"]


EXPECTED: Mapping[str, Number] = {
    "gemm": Number(0.75, 0.3),
    "gemm_half": Number(150.0, 0.4, share=False),
    "fp8": Number(0.55, 0.3),
    "attention": Number(0.4, 0.3),
    "memory": Number(0.8, 0.3),
    "link": Number(0.75, 0.4),
    "nic": Number(0.75, 0.5),
    "link_latency": Number(5e-6, 0.7, share=False, seconds=True),
    "nic_latency": Number(8e-6, 0.7, share=False, seconds=True),
    "overlap": Number(0.7, 0.8),
    "launch": Number(20e-6, 0.5, share=False, seconds=True),
    "step_overhead": Number(0.01, 0.8, share=False, seconds=True),
}
"""``gemm``, ``fp8``, ``attention``: share of the dense peak of large multiplications in 16 and in 8 bits and of fused
attention. ``gemm_half``: dimension at which a multiplication takes twice as long. ``memory``, ``link``, ``nic``: share
of bandwidth. ``link_latency``, ``nic_latency``: seconds of one step of a ring. ``overlap``: share of computing that can
hide communication. ``launch``: seconds of one kernel. ``step_overhead``: the framework's own seconds of a step on one GPU."""


def expectations(gemm: Path | None = None, comm: Path | None = None) -> dict[str, dict[str, float]]:
    """Expected values by generation that kernel measurements give.

    Args:
        gemm: matrix multiplications with columns gpu, dtype, m, n, k and time_us (microseconds).
        comm: collectives with columns gpu, collective, n_gpus, n_nodes and time_us.

    Returns:
        values in base units, by generation and name; only what a table tells.

    Raises:
        SpaceError: a file cannot be read as such a table.
    """
    found: dict[str, dict[str, float]] = {}
    if gemm is not None:
        table = read_measurements(
            gemm, required=("gpu", "dtype", "m", "n", "k", "time_us"), numbers=("m", "n", "k", "time_us")
        )
        for generation, value in _halves(table).items():
            found.setdefault(generation, {})["gemm_half"] = value
    if comm is not None:
        table = read_measurements(
            comm,
            required=("gpu", "collective", "n_gpus", "n_nodes", "time_us"),
            numbers=("n_gpus", "n_nodes", "time_us"),
        )
        for generation, value in _steps(table).items():
            found.setdefault(generation, {})["link_latency"] = value
    return found


GENERATIONS = {"V100": "volta", "A100": "ampere", "H100": "hopper", "H200": "hopper", "B200": "blackwell"}
"""The generation of a GPU by what its name begins with."""

LARGE = 512.0
"""Rows of a multiplication from which it is bound by computing, as in training."""


def _generation(name: str) -> str | None:
    return next((found for start, found in GENERATIONS.items() if name.startswith(start)), None)


def _halves(table: Measurements) -> dict[str, float]:
    """The ``half`` that fits 16-bit multiplications best in time = FLOPs / (share x peak) x prod (1 + half / size)."""
    sizes: dict[str, list[tuple[float, ...]]] = {}
    for record in table.records:
        generation = _generation(record.cells["gpu"])
        shape = tuple(record.numbers.get(name, float("nan")) for name in ("m", "n", "k", "time_us"))
        half = record.cells["dtype"] in {"fp16", "bf16", "bfloat16", "float16"}
        if generation and half and not any(np.isnan(shape)) and min(shape[:3]) >= LARGE and shape[3] > 0:
            sizes.setdefault(generation, []).append(shape)
    found = {}
    for generation, shapes in sizes.items():
        m, n, k, time = np.array(shapes, float).T
        best = (float("inf"), 0.0)
        for size in np.arange(10.0, 400.0, 10.0):
            rate = np.log(2 * m * n * k * (1 + size / m) * (1 + size / n) * (1 + size / k) / time)
            best = min(best, (float(np.abs(rate - np.median(rate)).mean()), float(size)))
        found[generation] = best[1]
    return found


def _steps(table: Measurements) -> dict[str, float]:
    """Seconds of one step of a ring inside a node: the least time of an all-gather over its n - 1 steps."""
    least: dict[str, float] = {}
    for record in table.records:
        generation = _generation(record.cells["gpu"])
        n = record.numbers
        one_node = n.get("n_nodes") == 1 and n.get("n_gpus", 0.0) >= 4
        gathers = record.cells["collective"] == "all_gather"
        if generation and gathers and one_node and n["time_us"] > 0:
            one_step = n["time_us"] * 1e-6 / (n["n_gpus"] - 1.0)
            least[generation] = min(least.get(generation, float("inf")), one_step)
    return least
