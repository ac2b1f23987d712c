"""A problem: space, inputs, cost model, objectives, constraints and teams, compiled and immutable."""

from __future__ import annotations

import hashlib
import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from dse.errors import InputError, Location, nearest
from dse.expressions import Graph, Value
from dse.problem.parts import Constraint, Dimension, Input, Measurement, Metric, Objective, Rule, shown
from dse.problem.rows import RowReader, rows_for
from dse.problem.teams import Box, Team
from dse.problem.values import beside, input_value, read_value
from dse.units import Unit

__all__ = ["Design", "Problem"]

Design = dict[str, Value]
"""One value per dimension, in base units."""


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """Everything that a solver needs to know, and nothing of solvers.

    Problems are equal, and hash, by :attr:`digest`. ``lets`` maps names to nodes and ``let_texts`` to
    their expressions as they were written. ``errors`` are shares by which predicted metrics may be wrong. ``readers``
    read rows of tables from files. ``source`` is the file it was read from and ``overrides`` what was set; ``extends`` names
    the installed spaces that the file extends, nearest first; ``cost`` the
    Python function that was traced. ``warnings`` are findings
    that do not stop the problem from being used; ``locations`` says where ``rules.x`` or ``teams.y`` stand.
    """

    name: str
    graph: Graph
    dimensions: tuple[Dimension, ...]
    title: str = ""
    about: str = ""
    inputs: Mapping[str, Input] = field(default_factory=dict)
    readers: Mapping[str, RowReader] = field(default_factory=dict)
    lets: Mapping[str, int] = field(default_factory=dict)
    let_texts: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    objectives: tuple[Objective, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    errors: Mapping[str, float] = field(default_factory=dict)
    teams: Mapping[str, Team] = field(default_factory=dict)
    measurement: Measurement | None = None
    cost: str = ""
    source: str = ""
    overrides: tuple[tuple[str, str], ...] = ()
    extends: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    locations: Mapping[str, Location] = field(default_factory=dict)

    def __repr__(self) -> str:
        size = "continuous" if self.continuous else f"{self.size:,} designs"
        return f"<Problem {self.name}: {size}, digest {self.digest[:12]}>"

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key in self.__dataclass_fields__}

    # -- identity ---------------------------------------------------------------------------------

    @cached_property
    def digest(self) -> str:
        """A SHA-256 over everything that a result depends on: 64 hexadecimal digits."""
        hasher = hashlib.sha256()
        graph = self.graph
        parts: list[object] = [
            self.name,
            [(n.op, n.args, n.data, str(n.type), n.type.flavor.value) for n in graph.nodes],
            [
                (t.name, t.keys, t.axes, sorted((c, x.cells) for c, x in t.columns.items()))
                for t in graph.tables.values()
            ],
            [
                (d.name, _digestible(d.values), _unit_text(d.unit), d.when, d.otherwise, d.interval)
                for d in self.dimensions
            ],
            sorted((name, i.value) for name, i in self.inputs.items()),
            [(r.name, r.check) for r in self.rules],
            [(m.name, m.node, m.unit.text, m.measured) for m in self.metrics.values()],
            [(o.name, o.node, o.direction) for o in self.objectives],
            [(c.name, c.bound, _unit_text(c.unit)) for c in self.constraints],
            [(name, team.boxes) for name, team in self.teams.items()],
            self.measurement and replace(self.measurement, folder=""),
        ]
        remarks = [
            (m.name, m.parts, m.record and (m.record.node, m.record.above))
            for m in self.metrics.values()
            if m.parts or m.record
        ]
        if first := [c.name for c in self.constraints if c.first]:
            parts.append(first)
        if remarks or self.errors:
            parts += [remarks, sorted(self.errors.items())]
        for part in parts:
            # frozensets have no order of their own; every other part prints the same way every time
            hasher.update(_canonical(part).encode())
        return hasher.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    # -- designs and their indices ----------------------------------------------------------------

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The dimensions' names, in order."""
        return tuple(d.name for d in self.dimensions)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each dimension."""
        return tuple(len(d.values) for d in self.dimensions)

    @property
    def continuous(self) -> tuple[str, ...]:
        """The dimensions that have an interval instead of values; such a space has no indices."""
        return tuple(d.name for d in self.dimensions if d.interval is not None)

    @cached_property
    def size(self) -> int:
        """The number of designs, legal or not; an exact integer, computed without listing.

        Raises:
            InputError: a dimension is continuous.
        """
        if self.continuous:
            raise InputError(f"dimension {self.continuous[0]!r} is continuous, so the space has no size")
        return math.prod(self.sizes)

    def index_of(self, digits: Sequence[int]) -> int:
        """The index of the design with these value numbers, one per dimension; the first dimension is slowest."""
        index = 0
        for digit, size in zip(digits, self.sizes, strict=True):
            if not 0 <= digit < size:
                raise InputError(f"value number {digit} must be from 0 to {size - 1}")
            index = index * size + int(digit)
        return index

    def digits_of(self, index: int) -> tuple[int, ...]:
        """The value numbers of the design with this index."""
        if not 0 <= index < self.size:
            raise InputError(f"design index {index} must be from 0 to {self.size - 1}")
        digits = []
        for size in reversed(self.sizes):
            index, digit = divmod(index, size)
            digits.append(digit)
        return tuple(reversed(digits))

    def design_at(self, digits: Sequence[int]) -> Design:
        """The design with these value numbers."""
        return {d.name: d.values[digit] for d, digit in zip(self.dimensions, digits, strict=True)}

    def dimension(self, name: str) -> Dimension:
        """The dimension called ``name``.

        Raises:
            InputError: there is none; the message has the nearest spelling.
        """
        for dimension in self.dimensions:
            if dimension.name == name:
                return dimension
        raise InputError(f"unknown dimension {name!r}{nearest(name, self.names)}")

    def digit(self, name: str, value: object) -> int:
        """The number of ``value`` (or of its text) in dimension ``name``.

        Raises:
            InputError: unknown dimension or value; the message has the nearest spelling.
        """
        dimension = self.dimension(name)
        wanted = read_value(value, dimension.type, dimension.unit) if isinstance(value, str) else value
        if isinstance(wanted, int) and not isinstance(wanted, bool):
            wanted = float(wanted)
        at = self._place(dimension, wanted)
        if at is not None:
            return at
        found = (
            value
            if isinstance(value, str)
            else shown(value)
            if isinstance(value, (bool, float, int))
            else repr(value)
        )
        raise InputError(f"dimension {name!r} has no value {found!r}{beside(dimension, str(found))}")

    def digits(self, design: Mapping[str, object]) -> tuple[int, ...]:
        """The value numbers of a complete design given by values or their texts.

        Raises:
            InputError: a dimension is unknown or missing, or a value is unknown.
        """
        for name in design:
            self.dimension(name)
        missing = [d.name for d in self.dimensions if d.name not in design]
        if missing:
            raise InputError(
                f"the design has no value for {', '.join(missing)}; a design has one value per dimension"
            )
        return tuple(self.digit(name, design[name]) for name in self.names)

    @cached_property
    def _places(self) -> dict[str, dict[tuple[bool, object], int]]:
        """Per dimension that lists its values: value -> its number; true and 1 are different values."""
        listed = (d for d in self.dimensions if not isinstance(d.values, array))
        return {d.name: {(isinstance(v, bool), v): at for at, v in enumerate(d.values)} for d in listed}

    def _place(self, dimension: Dimension, wanted: object) -> int | None:
        if not isinstance(dimension.values, array):
            known = isinstance(wanted, (str, int, float))
            return self._places[dimension.name].get((isinstance(wanted, bool), wanted)) if known else None
        if isinstance(wanted, bool) or not isinstance(wanted, float):
            return None
        at = bisect_left(dimension.values, wanted)  # a range ascends
        return at if at < len(dimension.values) and dimension.values[at] == wanted else None

    # -- variations -------------------------------------------------------------------------------

    def with_inputs(self, values: Mapping[str, object], *, code: bool = True) -> Problem:
        """The same problem with other input values.

        An input with a unit takes a text such as ``"10 ms"`` or a :class:`dse.units.Quantity`; one without takes a
        number, a truth value or a text, as it was declared. One with a table takes the name of a row; where the table has
        an ``import``, also a path (relative to the working directory), which ``code`` says may be read by it.

        Raises:
            InputError: unknown input or row, or a value of another unit or kind.
        """
        inputs = dict(self.inputs)
        for name, value in values.items():
            if name not in inputs:
                raise InputError(f"unknown input {name!r}{nearest(name, inputs)}")
            inputs[name] = replace(inputs[name], value=input_value(inputs[name], value))
        changed = [name for name in values if inputs[name].table is not None]
        graph = rows_for(self.graph, inputs, self.readers, changed, code=code) if changed else self.graph
        return replace(self, inputs=inputs, graph=graph)

    # -- teams ------------------------------------------------------------------------------------

    @cached_property
    def everything(self) -> Team:
        """The team that may use the whole space: ``all``, or ``whole space`` where a team of the problem is called so."""
        name = "whole space" if "all" in self.teams else "all"
        return Team(name, (Box((None,) * len(self.dimensions)),))

    def team(self, text: str | Team | None) -> Team:
        """The team called ``text``, which may combine teams: ``ml & systems``, ``ml | systems``; None is everything.

        ``&`` binds tighter than ``|``. ``dimension=value`` or ``dimension=value,value`` stands for the designs with these.

        Raises:
            InputError: unknown team, dimension or value; the message has the nearest spelling.
        """
        if text is None:
            return self.everything
        if isinstance(text, Team):
            return text
        if text in self.teams:
            return self.teams[text]
        union: Team | None = None
        for part in text.split("|"):
            both: Team | None = None
            for raw in part.split("&"):
                found = self._one_team(text, raw.strip())
                both = found if both is None else both & found
            assert both is not None
            union = both if union is None else union | both
        assert union is not None
        return replace(union, name=text)

    def _one_team(self, text: str, name: str) -> Team:
        """A team by its name, or the designs with some values of a dimension; ``text`` is what it stands in."""
        dimension, fixed, values = (part.strip() for part in name.partition("="))
        if fixed and name not in self.teams:
            at = self.names.index(self.dimension(dimension).name)
            digits = sorted({self.digit(dimension, value.strip()) for value in values.split(",")})
            allowed = [None] * at + [tuple(digits)] + [None] * (len(self.dimensions) - at - 1)
            return Team(name, (Box(tuple(allowed)),))
        if name not in self.teams and name != self.everything.name:
            raise InputError(_no_team(text, name, self.teams))
        return self.teams.get(name, self.everything)

    @cached_property
    def measured(self) -> bool:
        """Whether an objective or constraint depends on a metric that a program measures."""
        roots = [o.node for o in self.objectives] + [
            n for c in self.constraints for n in (c.bound.lhs, c.bound.rhs)
        ]
        return any(self.graph[node].op == "measured" for node in self.graph.needed(roots))


def _no_team(text: str, name: str, teams: Iterable[str]) -> str:
    """Why ``name``, a part of ``text``, is no team."""
    if not name:
        return f"a team is missing in {text!r}; write NAME, NAME & NAME or NAME | NAME"
    if set(name) & set("()"):
        return (
            f"parentheses are not supported in {text!r}: & binds tighter than |, "
            "so write (a | b) & c as a & c | b & c"
        )
    return f"unknown team {name!r}{nearest(name, teams)}"


def _digestible(values: Sequence[Value]) -> object:
    """A long numeric dimension is held as an array of doubles, which is hashed whole."""
    return hashlib.sha256(values).hexdigest() if isinstance(values, array) else tuple(values)


def _unit_text(unit: Unit | None) -> str:
    return unit.text if unit else ""


def _canonical(part: object) -> str:
    if isinstance(part, frozenset):
        return "{" + ",".join(sorted(_canonical(item) for item in part)) + "}"
    if isinstance(part, (tuple, list)):
        return "(" + ",".join(_canonical(item) for item in part) + ")"
    if hasattr(part, "__dataclass_fields__"):
        fields: Iterable[str] = part.__dataclass_fields__
        return type(part).__name__ + _canonical(
            [(name, getattr(part, name)) for name in fields if name != "about"]
        )
    return repr(part)
