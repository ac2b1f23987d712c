"""A measured machine as a row of a space's table of chips, in a space file of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dse.errors import InputError
from dse.expressions.table import Column
from dse.problem.library import library, load
from dse.problem.problem import Problem
from dse.space.writing import as_yaml
from dse.study.machine.roofline import Machine
from dse.units import format_value, parse_unit

__all__ = ["ROW", "TABLE", "check_space", "extends", "space_file"]

ROW = "this-machine"
TABLE = "gpus"
FORMAT = "fp32"
"""The number format whose rate is written: a CPU multiplies matrices in it at once."""

LAUNCHES = ("launch", "captured_launch")
"""Inputs of a space that are the time from one kernel to the next."""


def check_space(space: str) -> Problem:
    """The space that the machine becomes a part of.

    Raises:
        InputError: there is none, or it has no table of chips with a bandwidth.
        SpaceError: it cannot be read.
    """
    problem = load(space, code=None)
    if not {"bandwidth", FORMAT} <= _columns(problem).keys():
        raise InputError(
            f"the space {space} has no table {TABLE!r} with the columns 'bandwidth' and {FORMAT!r}, so no machine can be its row"
        )
    return problem


def _columns(problem: Problem) -> Mapping[str, Column]:
    table = problem.graph.tables.get(TABLE)
    return {} if table is None else table.columns


def extends(space: str, out: Path) -> str:
    """How a file at ``out`` names the space that it extends.

    Raises:
        InputError: the space is a file that does not stand beside ``out`` or below.
    """
    if space in library():
        return space
    name = os.path.relpath(Path(space).resolve(), out.resolve().parent)
    if name.startswith(os.pardir):
        raise InputError(f"--out: {out} extends {space}, which must stand in the same folder or below")
    return Path(name).as_posix()


def space_file(machine: Machine, problem: Problem, base: str, name: str) -> str:
    """The text of a space file: ``base`` with the machine as one more row of its chips.

    What was not measured is missing in the row; columns that ``problem`` does not have are left out.
    """
    cells = {key: cell for key, cell in _row(machine).items() if key in _columns(problem)}
    data: dict[str, Any] = {"dse": 1, "extends": base, "name": name}
    if defaults := dict(_inputs(machine, problem)):
        data["inputs"] = defaults
    data["tables"] = {TABLE: {"rows": {ROW: cells}}}
    return f"# This machine's roofline, by dse measure: the row {ROW}. What was not measured is missing.\n{as_yaml(data)}"


def _row(machine: Machine) -> dict[str, Any]:
    rate, speed = parse_unit("Gflop/s"), parse_unit("GB/s")
    double = format_value(machine.best("fp64"), rate, digits=4)
    return {
        "title": f"{machine.title}, {machine.cpus} thread{'s' * (machine.cpus > 1)}",
        "vendor": "measured",
        "kind": "cpu",
        "generation": ROW,
        FORMAT: format_value(machine.best("fp32"), rate, digits=4),
        "memory": f"{machine.memory} B",
        "bandwidth": format_value(machine.bandwidth, speed, digits=4),
        "node": 1,
        "checked": "measured",
        "source": "dse measure: NumPy's matrix multiplication, copy and triad",
        "notes": f"fp64 {double}",
    }


def _inputs(machine: Machine, problem: Problem) -> Iterator[tuple[str, Any]]:
    """Defaults of the space's inputs that follow from the measurement."""
    numbers = problem.inputs.get("numbers")
    table = problem.graph.tables.get(numbers.table) if numbers is not None and numbers.table else None
    if table is not None and FORMAT in table.axes[0]:
        yield "numbers", {"default": FORMAT}
    for name in LAUNCHES:
        known = problem.inputs.get(name)
        if known is not None and known.unit is not None and known.unit.dims == (("s", 1),):
            yield name, {"default": format_value(machine.call, parse_unit("us"), digits=4)}
