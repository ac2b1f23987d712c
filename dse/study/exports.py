"""Plans for other programs: what a space offers to write of a design, and to read back.

A space's exporters are a module under the entry-point group ``dse.exports``, by the space's name; a file that extends it
has the same. The module has

- ``TARGETS``: by name, functions from a :class:`Plan` to a :class:`Written` text; they raise
  :class:`dse.errors.InputError` for what the target cannot express, and
- optionally ``read_plan(text, file, problem)``, which gives a :class:`KnownPlan`, and ``KEPT``, the names of dimensions
  that a search for a better plan leaves as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import TypeAlias

from dse.errors import InputError, nearest
from dse.expressions import Cell, Value
from dse.problem import Design, Problem, shown
from dse.problem.plugins import entry_points

__all__ = [
    "Exporter",
    "KnownPlan",
    "Plan",
    "Reader",
    "Written",
    "exporter",
    "kept",
    "reader",
    "row_of",
]

GROUP = "dse.exports"


@dataclass(frozen=True, slots=True)
class Plan:
    """A design and everything that it was chosen for.

    ``design`` and ``inputs`` are in base units; ``rows`` are the cells, by column and in base units, of the row that
    each table dimension or input names. ``texts`` are both as the command line takes them. ``given`` are the inputs
    that differ from the space's defaults.
    """

    space: str
    design: Mapping[str, Value]
    inputs: Mapping[str, Value]
    rows: Mapping[str, Mapping[str, Cell]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    given: frozenset[str] = frozenset()

    @classmethod
    def of(cls, problem: Problem, design: Design) -> Plan:
        """The plan that ``design`` is for ``problem``."""
        units = {d.name: d.unit for d in problem.dimensions} | {
            i.name: i.unit for i in problem.inputs.values()
        }
        inputs = {name: known.value for name, known in problem.inputs.items()}
        values = {**inputs, **design}
        overridden = {name.removeprefix("inputs.").partition(".")[0] for name, _ in problem.overrides}
        return cls(
            problem.name,
            dict(design),
            inputs,
            {name: row for name, value in values.items() if (row := row_of(problem, name, value))},
            {name: shown(value, units[name]) for name, value in values.items()},
            frozenset(overridden & set(inputs)),
        )


@dataclass(frozen=True, slots=True)
class Written:
    """What an exporter wrote: the text of a file, and remarks for the user.

    ``starter`` gives, for the name of that file, a script that starts the program with it, where the file itself has
    no place for what the program must be told.
    """

    text: str
    notes: tuple[str, ...] = ()
    starter: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class KnownPlan:
    """What was read of a plan that exists: texts of inputs and of dimensions, as the command line takes them.

    ``places`` says where each stands: file, line, and what is written there. ``ignored`` is what has no influence on
    the cost; ``notes`` are remarks. ``needs`` are inputs that the file leaves open and that must be given beside it,
    ``assumed`` those whose default is taken instead. ``agrees``, if any, is given the problem and the design that
    were made of all this and of what the user added; it raises :class:`dse.errors.InputError` where the file says
    otherwise.
    """

    inputs: Mapping[str, str]
    design: Mapping[str, str]
    places: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    agrees: Callable[[Problem, Design], None] | None = None


Exporter: TypeAlias = Callable[[Plan], Written]
Reader: TypeAlias = Callable[[str, str, Problem], KnownPlan]


def exporter(problem: Problem, target: str) -> Exporter:
    """The function that writes plans of the problem's space for ``target``.

    Raises:
        InputError: the space exports nothing, or not for that target; the message has the known ones.
    """
    targets: Mapping[str, Exporter] = getattr(_module(problem), "TARGETS", {})
    if target not in targets:
        raise InputError(f"unknown target {target!r} for space {problem.name!r}{nearest(target, targets)}")
    return targets[target]


def reader(problem: Problem) -> Reader:
    """The function that reads plans for the problem's space.

    Raises:
        InputError: the space reads none.
    """
    found: Reader | None = getattr(_module(problem), "read_plan", None)
    if found is None:
        raise InputError(f"space {problem.name!r} reads no plans")
    return found


def kept(problem: Problem) -> tuple[str, ...]:
    """The dimensions that stay as they are in a plan when a better one is looked for."""
    names: tuple[str, ...] = getattr(_module(problem), "KEPT", ())
    return tuple(name for name in names if name in problem.names)


def row_of(problem: Problem, name: str, value: Value) -> dict[str, Cell] | None:
    """The cells of the table row that a dimension or input names by ``value``; None when it names none."""
    table = next((d.table for d in problem.dimensions if d.name == name), None)
    if table is None and name in problem.inputs:
        table = problem.inputs[name].table
    if table is None:
        return None
    known = problem.graph.tables[table]
    at = known.positions[0].get(value)
    return None if at is None else {column: found.cells[at] for column, found in known.columns.items()}


def _module(problem: Problem) -> ModuleType:
    points = entry_points(GROUP)
    name = next((name for name in (problem.name, *problem.extends) if name in points), None)
    if name is None:
        others = f"; spaces with exporters: {', '.join(points)}" if points else ""
        raise InputError(f"space {problem.name!r} has no exporters{others}")
    return _loaded(name)


@cache
def _loaded(name: str) -> ModuleType:
    point = entry_points(GROUP)[name]
    try:
        module = point.load()
    except Exception as error:  # importing a plugin runs a stranger's code, which may raise anything
        raise InputError(
            f"the exporters of {name!r} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(module, ModuleType):
        raise InputError(
            f"the exporters of {name!r} ({point.value}) must be a module, but are {type(module).__name__}"
        )
    return module
