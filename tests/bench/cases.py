"""One search in a process of its own, as the benchmarks ask for it.

python -m tests.bench.cases '{"source": "camera", "solver": "exhaustive"}' prints times, counts and peak memory as JSON.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.measuring import ROOT, Missing
from tests.bench.sources import problem_of

LISTED = 50_000  # vectors of a front that are handed back


@dataclass(frozen=True, slots=True)
class Case:
    """A search to time. ``warm``: the problem was searched before, untimed; else every run loads it anew."""

    source: str
    solver: str = "pareto"
    objectives: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 2
    ties: bool = True
    runs: int = 1
    warm: bool = False
    limit: float = 300.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case took and found. ``seconds``, ``cpu`` and ``compiling`` by run; ``peak`` in MB is that of the process."""

    seconds: list[float]
    cpu: list[float]
    compiling: list[float]
    peak: float
    loading: float
    front: int
    tied: int
    total: int
    evaluated: int
    feasible: int
    boxes: int
    vectors: list[list[float]] = field(default_factory=list)
    status: str = "complete"


def run(case: Case) -> Outcome:
    """The case in a process of its own.

    Raises:
        Missing: it took longer than its limit.
        CalledProcessError: it broke off.
    """
    return Outcome(**child("cases", asdict(case), case.limit))


def per_tenfold(small: Outcome, large: Outcome) -> float:
    """The growth of boxes for ten times the designs between two searches."""
    growth: float = (large.boxes / small.boxes) ** (1.0 / math.log10(large.total / small.total))
    return growth


def child(module: str, request: Mapping[str, Any], limit: float = 300.0) -> dict[str, Any]:
    """What ``python -m tests.bench.MODULE`` prints for a request, as JSON on its last line.

    Raises:
        Missing: it says so, or it took longer than ``limit`` seconds.
        CalledProcessError: it broke off; what it said is on standard error.
    """
    command = [sys.executable, "-m", f"tests.bench.{module}", json.dumps(request)]
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=limit, check=True)
    except subprocess.TimeoutExpired:
        raise Missing(f"not done in {limit:g} s") from None
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if "missing" in answer:
        raise Missing(answer["missing"])
    return answer


def peak() -> float:
    """The most memory that this process held, in MB."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (2**20 if sys.platform == "darwin" else 1024)


@contextmanager
def compiling() -> Iterator[list[float]]:
    """Seconds spent on making compiled loops: order, code and machine code."""
    from dse.evaluation.compiled import Nest

    spent: list[float] = []
    original = Nest.__init__

    def timed(self: Nest, *arguments: Any, **more: Any) -> None:
        began = time.perf_counter()
        original(self, *arguments, **more)
        spent.append(time.perf_counter() - began)

    Nest.__init__ = timed  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        Nest.__init__ = original  # type: ignore[method-assign]


@contextmanager
def boxes_seen() -> Iterator[list[int]]:
    """Boxes that each search by branch and bound looked at."""
    from dse.solvers.branching.searching import Search

    seen: list[int] = []
    original = Search.run

    def counted(self: Search) -> None:
        try:
            original(self)
        finally:
            seen.append(self.boxes)

    Search.run = counted
    try:
        yield seen
    finally:
        Search.run = original


def measured(case: Case) -> Outcome:
    """Runs the case in this process. Imports are done before the clock starts, by a search of the camera space."""
    import dse

    settings: dict[str, Any] = {"solver": case.solver, "workers": case.workers, "ties": case.ties}
    dse.search("camera", **settings)
    if case.solver == "exhaustive" and case.options.get("jit", "auto") != "off":
        from dse.evaluation.compiled import available

        if available():
            import llvmlite.binding  # noqa: F401
    seconds: list[float] = []
    cpu: list[float] = []
    spent: list[float] = []
    with compiling() as made, boxes_seen() as boxes:
        began = time.perf_counter()
        problem = problem_of(case.source, case.objectives)
        loading = time.perf_counter() - began
        if case.warm:
            dse.search(problem, options=case.options, **settings)
        for _ in range(case.runs):
            if seconds and not case.warm:
                problem = problem_of(case.source, case.objectives)
            made.clear()
            began, used = time.perf_counter(), time.process_time()
            result = dse.search(problem, options=case.options, **settings)
            seconds.append(time.perf_counter() - began)
            cpu.append(time.process_time() - used)
            spent.append(sum(made))
    front = [[point.objectives[o.name] * o.sign for o in problem.objectives] for point in result.front]
    return Outcome(
        seconds,
        cpu,
        spent,
        peak(),
        loading,
        len(front),
        sum(point.ties for point in result.front),
        result.accounting.total,
        result.accounting.evaluated,
        result.funnel.feasible,
        boxes[-1] if boxes else 0,
        front if len(front) <= LISTED else [],
        result.status,
    )


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(asdict(measured(Case(**(asked | {"objectives": tuple(asked.get("objectives", ()))}))))))
