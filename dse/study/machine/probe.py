"""The measuring itself, in a process whose libraries were told how many threads they have.

``python -m dse.study.machine.probe`` reads a :class:`Task` as JSON on standard input and prints, as JSON, a list of
samples: a name, what it was done with, and the values of every repeat in base units.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Task", "run"]

_CHUNK = 2**15  # numbers of a piece that stays in a core's cache
_CALLS = 5_000
_SMALLEST, _LARGEST = 256, 8192  # rows of a matrix


@dataclass(frozen=True, slots=True)
class Task:
    """What a process measures.

    Attributes:
        threads: that it may use.
        array: bytes of each of the three arrays that are streamed.
        matrices: bytes that the three matrices of a multiplication may take.
        seconds: matrices grow until all multiplications of one format took as long.
        repeats: runs of everything, after one that does not count.
    """

    threads: int
    array: int
    matrices: int
    seconds: float
    repeats: int


def run(task: Task) -> list[dict[str, Any]]:
    """Every sample of a task."""
    found = [*_streams(task)]
    found += [_multiplication(task, kind) for kind in ("fp32", "fp64")]
    found.append(_call(task))
    return found


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _sample(name: str, values: list[float], with_: str) -> dict[str, Any]:
    return {"name": name, "values": values, "with": with_}


def _streams(task: Task) -> list[dict[str, Any]]:
    """Copy (a = b) and triad (a = b + s c) of STREAM (McCalpin 1995), whose bytes count each array once.

    Every thread has a part of its own, which it is also the first to write: a page belongs to the socket that first
    writes it. The triad goes in pieces, so that what NumPy computes in between stays in the cache.
    """
    numbers = max(task.array // 8, task.threads)
    a, b, c = (np.empty(numbers) for _ in range(3))
    edges = [numbers * at // task.threads for at in range(task.threads + 1)]
    parts = [slice(low, high) for low, high in pairwise(edges)]

    def fill(part: slice) -> None:  # all pages are there from then on
        for value, array in enumerate((a, b, c)):
            array[part] = value

    def copy(part: slice) -> None:
        np.copyto(a[part], b[part])

    def triad(part: slice) -> None:
        between = np.empty(min(_CHUNK, numbers))
        for low in range(part.start, part.stop, _CHUNK):
            high = min(low + _CHUNK, part.stop)
            piece = between[: high - low]
            np.multiply(c[low:high], 3.0, out=piece)
            np.add(b[low:high], piece, out=a[low:high])

    found = []
    with ExitStack() as stack:
        threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in parts]
        _over(threads, fill, parts)
        for name, work, arrays in (("copy", copy, 2), ("triad", triad, 3)):
            seconds = [_timed(partial(_over, threads, work, parts)) for _ in range(task.repeats + 1)]
            moved = arrays * 8.0 * numbers
            found.append(_sample(name, [moved / s for s in seconds[1:]], f"{numbers * 8e-6:.4g} MB arrays"))
    return found


def _over(threads: list[ThreadPoolExecutor], work: Callable[[slice], None], parts: list[slice]) -> None:
    """The work on all parts at once, each by its thread."""
    for done in [thread.submit(work, part) for thread, part in zip(threads, parts, strict=True)]:
        done.result()


def _multiplication(task: Task, kind: str) -> dict[str, Any]:
    """The best rate of square matrix multiplications of growing size: 2 n^3 FLOP each."""
    dtype = {"fp32": np.float32, "fp64": np.float64}[kind]
    width = np.dtype(dtype).itemsize
    best: tuple[float, int, list[float]] = (0.0, 0, [])
    n, spent = _SMALLEST, 0.0
    while n <= _LARGEST and (3 * n * n * width <= task.matrices or n == _SMALLEST):
        x, y, z = _matrices(n, dtype)
        seconds = [_timed(partial(np.matmul, x, y, out=z)) for _ in range(task.repeats + 1)]
        rates = [2.0 * n**3 / s for s in seconds[1:]]
        if float(np.median(rates)) > best[0]:
            best = (float(np.median(rates)), n, rates)
        spent += sum(seconds)
        if spent > task.seconds:
            break
        n *= 2
    return _sample(kind, best[2], f"n = {best[1]}")


def _matrices(n: int, dtype: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    draw = np.random.default_rng(0)
    return draw.random((n, n), dtype=dtype), draw.random((n, n), dtype=dtype), np.empty((n, n), dtype=dtype)


def _call(task: Task) -> dict[str, Any]:
    """Seconds of a call that has next to nothing to do: the sum of two arrays of one number."""
    x, y, z = (np.ones(1) for _ in range(3))

    def work() -> None:
        for _ in range(_CALLS):
            np.add(x, y, out=z)

    seconds = [_timed(work) / _CALLS for _ in range(task.repeats + 1)]
    return _sample("call", seconds[1:], "arrays of one number")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(Task(**json.load(sys.stdin)))))
