"""Measuring a design with the user's program or Python function.

What crosses the border is in the units that the space file declares: numbers of the design in their dimension's
unit, numbers that come back in their metric's unit (a text may carry its own: ``"8 ms"``). Whole numbers are
passed as integers, truth values and texts as they are.

A program gets ``{name}`` of dimensions and inputs in its arguments replaced, the design and the inputs as one JSON
object on its standard input, and prints one JSON object of metrics as all of its output or as the last line of it. A
function gets the same as a dict and returns a mapping of metrics. Relative paths start at the space file's folder.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import statistics
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from dse.errors import InputError, nearest
from dse.expressions import Kind
from dse.problem import Design, Dimension, Measurement, Problem
from dse.problem.code import import_function
from dse.study import watchdog
from dse.units import UnitError, dims_text, from_base, parse_quantity, to_base

__all__ = [
    "Failed",
    "Measurer",
    "Runner",
    "check_measurement",
    "end_process",
    "needed_metrics",
    "plain_design",
]

_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_SHOWN = 200  # characters of a program's output that a message quotes
_EXACT = 2.0**53


class Failed(Exception):
    """A measurement that gave no result; the message is the trial's reason."""


class Runner(Protocol):
    """Runs the user's code once for one design (as plain data) and returns what it said."""

    def run(self, design: Mapping[str, Any]) -> object:
        """Raises :class:`Failed`."""
        ...

    def close(self) -> None:
        """End what is running."""
        ...


def plain_design(problem: Problem, design: Design) -> dict[str, Any]:
    """The design as the user's code gets it: numbers in their dimension's unit, whole ones as integers."""
    return {d.name: _plain(d, design[d.name]) for d in problem.dimensions}


def _plain(dimension: Dimension, value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, float):
        return value
    number = from_base(value, dimension.unit)
    whole = dimension.interval is None and number.is_integer() and abs(number) < _EXACT
    return int(number) if whole else number


def given(problem: Problem, design: Design) -> dict[str, object]:
    """What a measurement is given: the design, and the values of the inputs beside it, in their declared units."""
    inputs = {
        name: from_base(i.value, i.unit) if type(i.value) is float else i.value
        for name, i in problem.inputs.items()
    }
    whole = {
        name: int(v) if type(v) is float and v.is_integer() and abs(v) < _EXACT else v
        for name, v in inputs.items()
    }
    return {**whole, **plain_design(problem, design)}


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
        for place in _PLACE.finditer(argument):
            known = (*problem.names, *problem.inputs)
            if place[1] is not None and place[1] not in known:
                raise InputError(
                    f"measure.command: unknown dimension or input {place[1]!r}{nearest(place[1], known)}"
                )
    return measurement


def needed_metrics(problem: Problem) -> list[str]:
    """The measured metrics that an objective or constraint depends on: without one of them a design fails."""
    roots = [o.node for o in problem.objectives]
    roots += [node for c in problem.constraints for node in (c.bound.lhs, c.bound.rhs)]
    nodes = (problem.graph[number] for number in problem.graph.needed(roots))
    reached = {node.data for node in nodes if node.op == "measured"}
    return [name for name, metric in problem.metrics.items() if metric.measured and name in reached]


class Measurer:
    """Measures designs of one problem, one at a time: retries, repeats, medians, and checks of what came back."""

    def __init__(self, problem: Problem, runner: Runner | None = None) -> None:
        self.problem = problem
        self.measurement = check_measurement(problem)
        self.runner = runner or _runner(self.measurement)

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
            except Failed:
                if not left:
                    raise
        raise AssertionError

    def close(self) -> None:
        """End what is running."""
        self.runner.close()


def _runner(measurement: Measurement) -> Runner:
    if measurement.command:
        return CommandRunner(measurement.command, measurement.folder, measurement.timeout)
    return FunctionRunner(import_function(measurement.function, measurement.folder))


# -- what came back --------------------------------------------------------------------------------


def read_metrics(problem: Problem, found: object, *, strict: bool = True) -> dict[str, float]:
    """The measured metrics in base units, from what the user's code returned.

    A metric that no objective or constraint depends on may be missing, None or NaN: it is left out.

    Args:
        strict: whether anything else that is wrong with such a metric is an error too; if not, it is left out as well.

    Raises:
        Failed: it is no mapping, or a metric that is needed is missing, is no number, has another unit or is NaN.
    """
    if not isinstance(found, Mapping):
        raise Failed(f"the measurement must return a mapping of metrics, but got {_quote(found)}")
    values = {}
    needed = needed_metrics(problem)
    for name, metric in problem.metrics.items():
        if not metric.measured:
            continue
        if name not in needed:
            value = _spare_metric(problem, name, found.get(name), strict)
            if value is not None:
                values[name] = value
            continue
        if name not in found:
            raise Failed(f"the measurement returned no {name}{nearest(name, [str(key) for key in found])}")
        values[name] = _checked(name, _read_metric(problem, name, found[name]))
    return values


def _spare_metric(problem: Problem, name: str, value: object, strict: bool) -> float | None:
    """The value of a metric that nothing depends on; None where there is none."""
    if value is None:
        return None
    try:
        number = _read_metric(problem, name, value)
    except Failed:
        if strict:
            raise
        return None
    return number + 0.0 if number == number else None


def _read_metric(problem: Problem, name: str, value: object) -> float:
    metric = problem.metrics[name]
    if isinstance(value, str):
        try:
            quantity = parse_quantity(value)
        except UnitError as error:
            raise Failed(f"{name}: {error}") from None
        if quantity.unit is None:
            return _to_base(name, value, metric.unit)
        if quantity.unit.dims != metric.unit.dims:
            expected, got = dims_text(metric.unit.dims), dims_text(quantity.unit.dims)
            raise Failed(f"{name} is in {metric.unit.text} ({expected}), but got {value!r} ({got})")
        return quantity.value
    try:
        number = float(value)  # type: ignore[arg-type]  # numbers of any library; others raise
    except (TypeError, ValueError):
        raise Failed(f"{name} must be a number in {metric.unit.text}, but got {_quote(value)}") from None
    if isinstance(value, bool) or problem.graph[metric.node].type.kind is not Kind.NUMBER:
        raise Failed(f"{name} must be a number in {metric.unit.text}, but got {_quote(value)}")
    return number if not math.isfinite(number) else _to_base(name, repr(number), metric.unit)


def _to_base(name: str, text: str, unit: Any) -> float:
    try:
        return to_base(text, unit)
    except UnitError as error:
        raise Failed(f"{name}: {error}") from None


def _checked(name: str, value: float) -> float:
    if value != value:
        raise Failed(f"{name} is NaN")
    return value + 0.0


def _quote(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


# -- running it ------------------------------------------------------------------------------------


class FunctionRunner:
    """Calls a Python function in this process."""

    def __init__(self, function: Callable[[dict[str, Any]], object]) -> None:
        self.function = function

    def run(self, design: Mapping[str, Any]) -> object:
        """What the function returns for a design."""
        try:
            return self.function(dict(design))
        except (Exception, SystemExit) as error:  # the user's code may raise anything; the trial says what
            raise Failed(f"the measurement raised {type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Nothing runs on."""


class CommandRunner:
    """Runs a program for each design, in a process group of its own that ends with the timeout, and with us."""

    def __init__(self, command: Sequence[str], folder: str = "", timeout: float | None = None) -> None:
        self.command = tuple(command)
        self.folder = folder
        self.timeout = timeout
        self._running: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def arguments(self, design: Mapping[str, Any]) -> list[str]:
        """The command with every ``{dimension}`` replaced; ``{{`` and ``}}`` are braces. No shell sees them."""
        return [_PLACE.sub(lambda place: _fill(place, design), argument) for argument in self.command]

    def run(self, design: Mapping[str, Any]) -> object:
        """The JSON object that the program prints for a design."""
        arguments = self.arguments(design)
        try:
            with self._lock:
                if self._closed:
                    raise Failed("the measurement was stopped")
                process = self._running = subprocess.Popen(
                    arguments,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=self.folder or None,
                    start_new_session=True,
                )
                watchdog.watch(process.pid)
        except (OSError, ValueError) as error:
            raise Failed(f"cannot run {arguments[0]}: {error}") from None
        try:
            out, err = process.communicate(json.dumps(design).encode(), self.timeout)
        except subprocess.TimeoutExpired:
            raise Failed(f"{arguments[0]} took longer than {self.timeout:g} s and was killed") from None
        finally:
            end_process(process)
            self._running = None
        if process.returncode:
            raise Failed(f"{arguments[0]} {_ending(process.returncode)}{_last_line(err)}")
        return _last_object(arguments[0], out)

    def close(self) -> None:
        """Kill the program that is running."""
        with self._lock:
            self._closed = True
            if self._running is not None:
                _kill(self._running)


def _fill(place: re.Match[str], design: Mapping[str, Any]) -> str:
    if place[1] is None:
        return place[0][0]
    value = design[place[1]]
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _kill(process: subprocess.Popen[Any]) -> None:
    """End a process and all that it started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass


def end_process(process: subprocess.Popen[Any]) -> None:
    """Kill whatever of the group is left, and take the process's status and pipes away."""
    _kill(process)
    watchdog.forget(process.pid)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                continue


def _ending(code: int) -> str:
    if code > 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _last_line(err: bytes) -> str:
    lines = err.decode(errors="replace").strip().splitlines()
    return f": {lines[-1][:_SHOWN]}" if lines else ""


def _last_object(program: str, out: bytes) -> object:
    """The JSON of a program's whole output, or else of its last line."""
    text = out.decode(errors="replace").strip()
    lines = text.splitlines()
    for candidate in (text, lines[-1] if lines else ""):
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    raise Failed(f"{program} must print a JSON object of metrics, but printed {_quote(text)}")
