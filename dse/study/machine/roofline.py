"""This machine's roofline: what its memory and its processor reach with NumPy, on one and on all threads."""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

from dse.errors import DseError
from dse.study.machine import limits
from dse.study.machine.probe import Task
from dse.study.processes import end, ending, exchange, last_line, start

__all__ = ["CannotMeasure", "Machine", "Reading", "measure", "tasks"]

THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
"""What libraries of linear algebra read their number of threads from when they are loaded."""

_STREAMED = 4  # arrays as large as this many times all last-level caches (the rule of STREAM)
_SHARE = 4  # of the available memory, at most one part in so many is taken


class CannotMeasure(DseError):
    """A measuring process was ended, or said something else."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One quantity on some number of threads: its median and extremes over the repeats, in base units.

    ``name`` is ``copy`` or ``triad`` (B/s), ``fp32`` or ``fp64`` (flop/s) or ``call`` (s).
    """

    name: str
    threads: int
    median: float
    low: float
    high: float
    done_with: str


@dataclass(frozen=True, slots=True)
class Machine:
    """A measured machine.

    Attributes:
        title: the processor.
        cpus: threads of the widest readings.
        memory: bytes.
        readings: on one thread first, then on all.
        remarks: what the readings must be taken with.
    """

    title: str
    cpus: int
    memory: int
    readings: tuple[Reading, ...]
    remarks: tuple[str, ...]

    def widest(self, *names: str) -> Reading:
        """The reading of these quantities with the largest median, on however many threads."""
        return max(
            (reading for reading in self.readings if reading.name in names), key=lambda found: found.median
        )

    def best(self, *names: str) -> float:
        """The largest median of these quantities, on however many threads."""
        return self.widest(*names).median

    @property
    def bandwidth(self) -> float:
        """B/s of copy or triad, whichever is more."""
        return self.best("copy", "triad")

    @property
    def call(self) -> float:
        """Seconds of one call on one thread."""
        return self.launch.median

    @property
    def launch(self) -> Reading:
        """One call on one thread."""
        return next(reading for reading in self.readings if reading.name == "call")


def tasks(*, quick: bool, threads: int, available: int, caches: int) -> tuple[Task, ...]:
    """What to measure, on one thread and then on all, within a quarter of the available memory.

    Args:
        quick: smaller arrays and matrices, and fewer repeats.
        threads: how many there are.
        available: bytes of memory.
        caches: bytes of all last-level caches.
    """
    room = available // _SHARE
    most = min(room, (3 if quick else 16) * 2**28)
    array = max(min(most // 3, _STREAMED * caches), 2**16)
    matrices = max(min(room, 2**30), 2**18)
    seconds, repeats = (0.5, 3) if quick else (2.0, 5)
    return tuple(Task(n, array, matrices, seconds, repeats) for n in dict.fromkeys((1, threads)))


def measure(
    *, quick: bool = False, timeout: float = 300.0, note: Callable[[str], None] | None = None
) -> Machine:
    """Measure this machine; it should be idle.

    Args:
        quick: in some ten seconds, with less certainty.
        timeout: seconds that one process may take.
        note: is told what is measured next.

    Raises:
        CannotMeasure: a measuring process failed.
    """
    threads, caches = limits.cpus(), limits.caches()
    planned = tasks(quick=quick, threads=threads, available=limits.available_memory(), caches=caches)
    readings: list[Reading] = []
    for task in planned:
        if note is not None:
            note(_doing(task))
        readings += _readings(task, timeout)
    machine = Machine(limits.title(), threads, limits.total_memory(), tuple(readings), ())
    remarks = tuple(_remarks(machine, planned[0], caches))
    return Machine(machine.title, machine.cpus, machine.memory, machine.readings, remarks)


def _doing(task: Task) -> str:
    return f"measuring on {task.threads} thread{'s' * (task.threads > 1)}"


def _readings(task: Task, timeout: float) -> list[Reading]:
    path = os.pathsep.join(part or os.getcwd() for part in sys.path)  # noqa: PTH109 - one text
    told = dict.fromkeys(THREADS, str(task.threads)) | {"PYTHONPATH": path}
    process = start([sys.executable, "-m", "dse.study.machine.probe"], environment=os.environ | told)
    try:
        answer = exchange(process, json.dumps(asdict(task)).encode(), timeout)
    finally:
        end(process)
    if answer.stopped:
        raise CannotMeasure(f"{_doing(task)}: the process {answer.stopped}")
    if process.returncode:
        said = last_line(answer.err)
        raise CannotMeasure(f"{_doing(task)}: the process {ending(process.returncode)}{said}")
    return [
        Reading(
            one["name"],
            task.threads,
            statistics.median(one["values"]),
            min(one["values"]),
            max(one["values"]),
            one["with"],
        )
        for one in json.loads(answer.out)
    ]


def _remarks(machine: Machine, task: Task, caches: int) -> list[str]:
    """What a reader must know to trust the numbers."""
    found = []
    if task.array < _STREAMED * caches:
        found.append(
            f"arrays of {task.array / 1e6:.0f} MB are smaller than {_STREAMED} times the caches of "
            f"{caches / 1e6:.0f} MB: part of the bandwidth may be the caches'"
        )
    if machine.cpus == 1:
        found.append("there is one CPU, so one thread is all threads")
    shaky = {r.name for r in machine.readings if r.name != "call" and r.low < 0.7 * r.median}
    if shaky:
        found.append(f"repeats of {', '.join(sorted(shaky))} differ by more than 30 %: was the machine idle?")
    if machine.cpus > 1:
        rates = {(r.name, r.threads): r.median for r in machine.readings}
        slower = [n for n in ("fp32", "fp64") if rates[n, machine.cpus] < 1.2 * rates[n, 1]]
        if slower:
            found.append(
                f"{' and '.join(slower)} multiplications gain nothing from more threads: NumPy's library may have "
                "none, the CPUs may share a core, or the machine was busy"
            )
    return found
