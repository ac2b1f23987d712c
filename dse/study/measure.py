"""Measuring a design with the user's program or Python function.

What crosses the border is in the units that the space file declares: numbers of the design in their dimension's
unit, numbers that come back in their metric's unit (a text may carry its own: ``"8 ms"``). Whole numbers are
passed as integers, truth values and texts as they are.

A program gets ``{name}`` of dimensions and inputs in its arguments replaced, the design and the inputs as one JSON
object on its standard input, and prints one JSON object of metrics as all of its output or as the last line of it. It
has answered when it ends; what it left running is ended then, but for what left its session on purpose (``setsid``, a
daemon such as a build server). A function is called in a process of its own that serves one design after another; it
gets the same as a dict and returns a mapping of metrics. If it has an attribute ``check``, that is called with the inputs
before any trial, and what it raises refuses the study. Relative paths start at the space file's folder.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any, Protocol

from dse.errors import InputError, nearest
from dse.problem import Design, Measurement, Problem
from dse.problem.parts import plain_value
from dse.study.command import PLACE, CommandRunner
from dse.study.metrics import Failed, needed_metrics, read_metrics
from dse.study.worker import ProcessRunner

__all__ = [
    "Failed",
    "Measurer",
    "Runner",
    "check_measurement",
    "given_inputs",
    "needed_metrics",
    "plain_design",
    "read_metrics",
    "runner_for",
]


class Runner(Protocol):
    """Runs the user's code once for one design (as plain data) and returns what it said.

    ``remark`` ends the reason when what it said cannot be used.
    """

    remark: str

    def run(self, design: Mapping[str, Any]) -> object:
        """Raises :class:`Failed`."""
        ...

    def close(self) -> None:
        """End what is running."""
        ...


def plain_design(problem: Problem, design: Design) -> dict[str, Any]:
    """The design as the user's code gets it: numbers in their dimension's unit, whole ones as integers."""
    return {d.name: d.plain(design[d.name]) for d in problem.dimensions}


def given_inputs(problem: Problem) -> dict[str, object]:
    """The values of the inputs, in their declared units."""
    return {name: plain_value(i.value, i.unit) for name, i in problem.inputs.items()}


def given(problem: Problem, design: Design) -> dict[str, object]:
    """What a measurement is given: the design, and the inputs beside it."""
    return {**given_inputs(problem), **plain_design(problem, design)}


def check_measurement(problem: Problem) -> Measurement:
    """The problem's measurement, checked as far as it can be without running it.

    Raises:
        InputError: the problem has none, or its command names something that is no dimension.
    """
    measurement = problem.measurement
    if measurement is None:
        names = ", ".join(name for name, metric in problem.metrics.items() if metric.measured)
        raise InputError(
            f"nothing measures {names}: the space needs `measure:`, or tell() the values yourself"
        )
    for argument in measurement.command:
        for place in PLACE.finditer(argument):
            known = (*problem.names, *problem.inputs)
            if place[1] is not None and place[1] not in known:
                raise InputError(
                    f"measure.command: unknown dimension or input {place[1]!r}{nearest(place[1], known)}"
                )
    return measurement


class Measurer:
    """Measures designs of one problem, one at a time: retries, repeats, medians, and checks of what came back."""

    def __init__(self, problem: Problem, runner: Runner | None = None) -> None:
        self.problem = problem
        self.measurement = check_measurement(problem)
        self.runner = runner or runner_for(self.measurement)

    def measure(self, design: Design) -> dict[str, float]:
        """The measured metrics of a design, in base units: of each the median of the repeats.

        A metric that nothing depends on is left out where a run gave no number for it.

        Raises:
            Failed: a run failed more often than it may be retried.
        """
        runs = [self._retried(design) for _ in range(self.measurement.repeats)]
        names = [name for name in runs[0] if all(name in run for run in runs)]
        return {name: float(statistics.median(run[name] for run in runs)) for name in names}

    def _retried(self, design: Design) -> dict[str, float]:
        for left in range(self.measurement.retries, -1, -1):
            try:
                found = self.runner.run(given(self.problem, design))
                return read_metrics(self.problem, found, strict=False)
            except Failed as failed:
                if not left:
                    raise Failed(f"{failed}{self.runner.remark}") from None
        raise AssertionError

    def close(self) -> None:
        """End what is running."""
        self.runner.close()


def runner_for(measurement: Measurement) -> CommandRunner | ProcessRunner:
    """What runs the user's code, in processes other than this one."""
    if measurement.command:
        return CommandRunner(measurement.command, measurement.folder, measurement.timeout)
    return ProcessRunner(measurement.function, measurement.folder, measurement.timeout)
