"""What the numbers of a GPU generation and of an engine are expected to be before runs are looked at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dse.spaces.fitting import Number
from dse.study.measurements import Measurements, read_measurements

__all__ = ["ENGINE", "GENERATION", "SHARED", "expectations", "own_numbers"]

GENERATION: Mapping[str, Number] = {
    "gemm": Number(0.78, 0.3),
    "gemm_half": Number(64.0, 0.5, share=False),
    "vector": Number(4.0, 0.5, share=False),
    "narrow": Number(0.75, 0.3),
    "attention": Number(0.45, 0.4),
    "memory": Number(0.85, 0.4),
    "cache": Number(0.75, 0.4),
    "kernel": Number(2e-6, 0.5, share=False, seconds=True),
    "link": Number(0.75, 0.4),
    "link_latency": Number(20e-6, 0.4, share=False, seconds=True),
    "unpack": Number(4.0, 0.5, share=False),
}
"""``gemm``: share of the dense 16-bit peak of large multiplications, ``narrow`` what formats below 16 bits reach of that share;
``gemm_half``: rows at which a multiplication takes twice as long as its size says; ``vector`` how much longer a row takes as a
product with a vector. ``attention``: share of the peak.
``memory``, ``cache``, ``link``: share of bandwidth that weights, cached keys and values, and messages are moved at.
``kernel``: seconds that a kernel takes beside its work, ``link_latency`` a collective of two GPUs. ``unpack``: operations that widen
a 4-bit weight."""

ENGINE: Mapping[str, Number] = {
    "overhead": Number(300e-6, 1.0, share=False, seconds=True),
    "launch": Number(1e-3, 0.5, share=False, seconds=True),
    "streaming": Number(1.0, 0.08, share=False),
    "compute": Number(0.9, 0.5, share=False),
    "copies": Number(2.0, 0.7, share=False),
}
"""``overhead``: seconds of a step beside the GPU's. ``launch``: seconds in which the host launches a layer's kernels one by
one. ``streaming``, ``compute``: what the engine's kernels reach of the generation's shares of bandwidth and of peak. ``copies``: passes
over cached keys and values that are copied to every query head: written and read. Values are those of all engines together; spreads
say how far one engine may be from the others. An engine has at most four of its own (:func:`own_numbers`)."""


def own_numbers(captures: bool, repeats: bool) -> tuple[str, ...]:
    """The numbers that an engine has of its own; the others are those of all engines.

    One that captures graphs launches no kernels one by one. One that does not waits for its launches, behind which the rest of a
    step's overhead is not seen. ``copies`` are of engines that copy (``repeats``).
    """
    host = "overhead" if captures else "launch"
    return (host, "streaming", "compute", *(("copies",) if repeats else ()))


SHARED = {"overhead": 0.5, "launch": 0.5, "streaming": 0.05, "compute": 0.3, "copies": 0.01}
"""How far what engines have in common may stray from :data:`ENGINE`."""

GENERATIONS = {
    "V100": "volta", "A100": "ampere", "L40S": "ada", "H100": "hopper", "H200": "hopper", "B200": "blackwell",
    "GB200": "blackwell", "B300": "blackwell", "GB300": "blackwell",
}  # fmt: skip
"""The generation of a GPU by what its name begins with."""

HALF = {"fp16", "bf16", "bfloat16", "float16"}
LARGE = 4096.0
"""Rows of a multiplication that computing binds."""
SMALL = 8.0
"""Rows up to which reading the weights binds a multiplication."""
SHORT = 65536.0
"""Bytes of a message whose time is latency."""


def expectations(gemm: Path | None = None, comm: Path | None = None) -> dict[str, dict[str, float]]:
    """Expected values by generation that kernel measurements give.

    Args:
        gemm: matrix multiplications with columns gpu, op, dtype, m, n, k, bytes_moved, time_us, frac_peak and peak_gb_s.
        comm: collectives with columns gpu, library, collective, n_gpus, message_bytes and time_us.

    Returns:
        values in base units, by generation and name; only what a table tells.

    Raises:
        SpaceError: a file cannot be read as such a table.
    """
    found: dict[str, dict[str, float]] = {}
    if gemm is not None:
        numbers = ("m", "n", "k", "bytes_moved", "time_us", "frac_peak", "peak_gb_s")
        table = read_measurements(gemm, required=("gpu", "dtype", *numbers), numbers=numbers)
        for generation, values in _multiplications(table).items():
            found.setdefault(generation, {}).update(values)
    if comm is not None:
        table = read_measurements(
            comm,
            required=("gpu", "collective", "n_gpus", "message_bytes", "time_us"),
            numbers=("n_gpus", "time_us"),  # sizes of messages are words in some rows
        )
        for generation, value in _latencies(table).items():
            found.setdefault(generation, {})["link_latency"] = value
    return found


def _generation(name: str) -> str | None:
    return next((found for start, found in GENERATIONS.items() if name.startswith(start)), None)


def _multiplications(table: Measurements) -> dict[str, dict[str, float]]:
    """Of large 16-bit multiplications the median share of the peak, of fp8 ones that over it; and of short ones the share of
    bandwidth and the seconds that fit time = kernel + bytes / (share x bandwidth) with the least relative error.
    """
    large: dict[tuple[str, bool], list[float]] = {}
    short: dict[str, list[tuple[float, float]]] = {}
    for record in table.records:
        generation, n = _generation(record.cells["gpu"]), record.numbers
        half = record.cells["dtype"] in HALF
        if generation is None or record.cells.get("op", "gemm") != "gemm" or n.get("time_us", 0.0) <= 0.0:
            continue
        if (
            (half or record.cells["dtype"] == "fp8")
            and n.get("m", 0.0) >= LARGE
            and n.get("frac_peak", 0.0) > 0.0
        ):
            large.setdefault((generation, half), []).append(n["frac_peak"])
        if (
            half
            and 0.0 < n.get("m", 0.0) <= SMALL
            and n.get("bytes_moved", 0.0) > 0.0
            and n.get("peak_gb_s", 0.0) > 0.0
        ):
            seconds = n["time_us"] * 1e-6
            short.setdefault(generation, []).append(
                (n["bytes_moved"] / (n["peak_gb_s"] * 1e9) / seconds, 1.0 / seconds)
            )
    found: dict[str, dict[str, float]] = {}
    for (generation, half), shares in large.items():
        if half:
            found.setdefault(generation, {})["gemm"] = float(np.median(shares))
    for (generation, half), shares in large.items():
        if not half and "gemm" in found.get(generation, {}):
            found[generation]["narrow"] = min(float(np.median(shares)) / found[generation]["gemm"], 0.95)
    for generation, pairs in short.items():
        (slope, kernel), *_ = np.linalg.lstsq(np.array(pairs), np.ones(len(pairs)), rcond=None)
        if slope > 1.0 and len(pairs) > 2:
            found.setdefault(generation, {})["memory"] = float(1.0 / slope)
            if kernel > 1e-6:
                found[generation]["kernel"] = float(kernel)
    return found


def _latencies(table: Measurements) -> dict[str, float]:
    """The median seconds of NCCL's all-reduce of a short message between two GPUs."""
    times: dict[str, list[float]] = {}
    for record in table.records:
        generation, n = _generation(record.cells["gpu"]), record.numbers
        nccl = "NCCL" in record.cells.get("library", "NCCL") and record.cells["collective"] == "all_reduce"
        if generation and nccl and n.get("n_gpus") == 2.0 and _short(record.cells["message_bytes"]):
            times.setdefault(generation, []).append(n["time_us"] * 1e-6)
    return {generation: float(np.median(found)) for generation, found in times.items()}


def _short(text: str) -> bool:
    """Whether a size in bytes is that of a short message; some tables have words there."""
    try:
        return 0.0 < float(text) <= SHORT
    except ValueError:
        return False
