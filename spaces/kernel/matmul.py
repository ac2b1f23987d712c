"""Measuring one matrix multiplication: compiled, run, checked against NumPy, and only then timed.

The check is first of matrices of small integers, larger than a tile and no multiple of one, whose products every format
holds exactly, so they must agree to the bit; then of the very product that was timed, of random numbers: with u half the
distance from 1 to the next number and k summed products, any order of summation and fused multiply-adds keep

    |C - A B| <= gamma_k |A| |B|,  gamma_k = k u / (1 - k u)

(Higham 2002, Accuracy and Stability of Numerical Algorithms, Eq. 3.13). What fails is never timed again under the same text.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError
from dse.study.metrics import Failed

from .building import ProgramFailed, check_compiler, compiled, compiler, run_program, work_folder
from .source import Tiling, naive_source, tiled_source

__all__ = ["Job", "Timing", "bound", "check", "measure", "timing"]

DTYPES = {"fp32": np.float32, "fp64": np.float64}
ROUNDING = {"fp32": 2.0**-24, "fp64": 2.0**-53}
"""The unit roundoff of each format."""

Format = Literal["fp32", "fp64"]


@dataclass(frozen=True, slots=True)
class Job:
    """What a program is asked to do.

    Attributes:
        format: of the numbers.
        size: m, n and k of the product that is timed.
        exact: m, n and k of the product of integers.
        runs: that are timed, after one that is not.
        timeout: seconds of one start of the program.
        seed: of the random matrices.
    """

    format: Format
    size: tuple[int, int, int]
    exact: tuple[int, int, int]
    runs: int = 5
    timeout: float = 20.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one multiplication, the median of the runs, and its largest error over |A| |B|."""

    seconds: float
    error: float


DIFFERENT = 3
"""What frame.c ends with when two runs gave different products."""

_refused: dict[tuple[str, Job], str] = {}
"""Programs that gave a wrong product, and why: no retry may have better luck."""

_exact: set[tuple[str, Job]] = set()
"""Programs whose product of integers was right: repeats need not do it again."""


def measure(design: Mapping[str, Any]) -> dict[str, float]:
    """The measured metrics of matmul.yaml, in their units.

    Raises:
        Failed: there is no compiler, the program failed, or its product is wrong.
    """
    tiling = Tiling(**{name: design[name] for name in Tiling.__dataclass_fields__})
    size = int(design["size"])
    tiles = (tiling.tile_m, tiling.tile_n, tiling.tile_k)
    m, n, k = (min(tile, 4 * size) + odd for tile, odd in zip(tiles, (3, 5, 7), strict=True))
    job = Job(
        tiling.format,
        (size, size, size),
        (m, n, k),
        int(design["runs"]),
        design["run_timeout"],
        int(design["seed"]),
    )
    naive = _naive(compiler(), job.format, size, job.timeout, job.seed)
    if isinstance(naive, str):
        raise Failed(naive)
    found = timing(tiled_source(tiling), job)
    return {"time": found.seconds * 1e3, "naive_time": naive * 1e3, "error": found.error}


def check(_: Mapping[str, object]) -> None:
    """Make sure that there is a compiler that works, before any trial waits for it.

    Raises:
        InputError: there is none.
    """
    try:
        check_compiler()
    except Failed as failed:
        raise InputError(f"nothing can be measured, a program that does nothing fails: {failed}") from None


measure.check = check  # type: ignore[attr-defined]  # dse.study.worker calls it once


@lru_cache(maxsize=4)
def _naive(command: tuple[str, ...], format: Format, size: int, timeout: float, seed: int) -> float | str:  # noqa: A002
    """Seconds of three plain loops with a compiler, or why there are none; tried once by each measuring process."""
    job = Job(format, (size, size, size), (19, 23, 29), 3, max(timeout, 120.0), seed)
    try:
        return timing(naive_source(format), job).seconds
    except Failed as failed:
        return f"three plain loops: {failed}"


def timing(source: str, job: Job) -> Timing:
    """Compile a program, check it, time it.

    Args:
        source: C text that does what frame.c says.
        job: what it is asked.

    Raises:
        Failed: with the reason; a wrong product has no time.
    """
    if (source, job) in _refused:
        raise Failed(_refused[source, job])
    program = compiled(source, compiler())
    try:
        if (source, job) not in _exact:
            _product(program, job, _integers(job.exact, job.format, job.seed), 1)
            _exact.add((source, job))
        return _product(program, job, _numbers(job.size, job.format, job.seed), job.runs)
    except _Wrong as wrong:
        _refused[source, job] = str(wrong)
        raise


class _Wrong(Failed):
    """The product is not that of the matrices."""


@dataclass(frozen=True, slots=True)
class _Case:
    """Two matrices, their product and what it may be off by (0 for integers), and |A| |B|."""

    a: NDArray[Any]
    b: NDArray[Any]
    product: NDArray[np.float64]
    off: NDArray[np.float64]
    scale: NDArray[np.float64]


def bound(k: int, format: Format) -> float:  # noqa: A002 - the space's own word
    """gamma_k of the format, and that of the reference, which is summed in fp64."""
    return sum(k * u / (1 - k * u) for u in (ROUNDING[format], ROUNDING["fp64"]))


@lru_cache(maxsize=2)
def _integers(size: tuple[int, int, int], format: Format, seed: int) -> _Case:  # noqa: A002
    """Integers from -8 to 8: sums of up to 2^18 products are exact in fp32."""
    return _case(size, format, lambda draw, shape: draw.integers(-8, 9, shape), seed, exact=True)


@lru_cache(maxsize=2)
def _numbers(size: tuple[int, int, int], format: Format, seed: int) -> _Case:  # noqa: A002
    """Numbers from -1 to 1."""
    return _case(size, format, lambda draw, shape: draw.uniform(-1, 1, shape), seed, exact=False)


def _case(size: tuple[int, int, int], format: Format, numbers: Any, seed: int, *, exact: bool) -> _Case:  # noqa: A002
    m, n, k = size
    draw = np.random.default_rng(seed)
    a, b = (numbers(draw, shape).astype(DTYPES[format]) for shape in ((m, k), (k, n)))
    exact_a, exact_b = a.astype(np.float64), b.astype(np.float64)
    scale = np.abs(exact_a) @ np.abs(exact_b)
    off = scale * (0.0 if exact else bound(k, format))
    return _Case(a, b, exact_a @ exact_b, off, scale)


def _product(program: bytes, job: Job, case: _Case, runs: int) -> Timing:
    """Run the program on two matrices and check what it wrote.

    Raises:
        Failed: it failed, or what it printed cannot be its times.
        _Wrong: its product is off by more than it may be.
    """
    (m, k), n = case.a.shape, case.b.shape[1]
    with work_folder() as folder:
        for name, matrix in (("A", case.a), ("B", case.b)):
            (folder / name).write_bytes(matrix.tobytes())
        begun = time.perf_counter()
        try:
            said = run_program(program, ["A", "B", "C", *map(str, (m, n, k, runs))], folder, job.timeout)
        except ProgramFailed as failed:
            raise (_Wrong(str(failed)) if failed.code == DIFFERENT else failed) from None
        seconds = _seconds(said, runs, time.perf_counter() - begun)
        product = _read(folder / "C", (m, n), job.format)
    off = np.abs(product - case.product)
    bad = ~(off <= case.off)  # so that NaN is bad
    if bad.any():
        i, j = (int(at) for at in np.argwhere(bad)[0])
        raise _Wrong(
            f"wrong product: {int(bad.sum())} of {m * n} numbers are off, first C[{i}, {j}] = {product[i, j]:.9g} "
            f"where {case.product[i, j]:.9g} is right within {case.off[i, j]:.2g}; its time does not count"
        )
    error = float(np.max(off / np.where(case.scale > 0, case.scale, 1.0)))
    return Timing(statistics.median(seconds), error)


def _seconds(said: str, runs: int, most: float) -> list[float]:
    """The times that a program printed, which must be possible ones."""
    try:
        found = json.loads(said)
    except ValueError:
        found = None
    possible = (
        isinstance(found, list)
        and len(found) == runs
        and all(isinstance(one, float | int) and not isinstance(one, bool) for one in found)
        and all(math.isfinite(one) and one > 0 for one in found)
    )
    if not possible or not isinstance(found, list):
        raise Failed(f"the program printed {said.strip()[:80]!r}, expected a list of {runs} times above 0")
    if sum(found) > most:
        raise Failed(f"the program says that it took {sum(found):.3g} s, but it ran for {most:.3g} s only")
    return [float(one) for one in found]


def _read(path: Path, shape: tuple[int, int], format: Format) -> NDArray[np.float64]:  # noqa: A002
    """The product that a program wrote."""
    wanted = shape[0] * shape[1] * np.dtype(DTYPES[format]).itemsize
    size = path.stat().st_size if path.is_file() else 0
    if size != wanted:
        raise Failed(f"the program wrote {size} bytes of a product, expected {wanted}")
    return np.fromfile(path, dtype=DTYPES[format]).reshape(shape).astype(np.float64)
