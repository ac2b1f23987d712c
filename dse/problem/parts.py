"""The parts that a problem is made of; frozen values that refer to the graph by node number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dse.errors import Location
from dse.expressions import Type, Value
from dse.problem.limits import Limits
from dse.problem.template import Template
from dse.units import Unit, format_value, from_base

__all__ = [
    "Best",
    "Bound",
    "Constraint",
    "Dimension",
    "Direction",
    "Input",
    "Interval",
    "Measurement",
    "Metric",
    "Objective",
    "Rule",
    "plain_value",
    "shown",
]

Direction: TypeAlias = Literal["minimize", "maximize"]


def shown(value: Value, unit: Unit | None = None) -> str:
    """A value as it is written in YAML, with its unit."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else format_value(value, unit, digits=12)


def plain_value(value: Value, unit: Unit | None = None) -> Value | int:
    """A value for files and programs: in ``unit``, a whole number as an integer."""
    if type(value) is not float:
        return value
    number = from_base(value, unit)
    return int(number) if number.is_integer() and abs(number) <= 2**53 else number


@dataclass(frozen=True, slots=True)
class Interval:
    """A continuous dimension from ``low`` to ``high`` in base units; ``log`` draws it on a logarithmic scale."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True, slots=True)
class Dimension:
    """One axis of the space.

    ``values`` are numbers in base units, truth values or texts (of a table: its row names). ``when`` is a node
    that must hold for the dimension to be active; an inactive one must have the value number ``otherwise``.
    A continuous dimension has an ``interval`` and no values.
    """

    name: str
    values: Sequence[Value]
    type: Type
    node: int
    unit: Unit | None = None
    table: str | None = None
    when: int | None = None
    otherwise: int = 0
    interval: Interval | None = None
    about: str = ""

    def label(self, at: int) -> str:
        """Value number ``at`` for people."""
        return shown(self.values[at], self.unit)

    def plain(self, value: Value) -> Value | int:
        """A value for files and programs: in the declared unit, a whole number as an integer."""
        plain = plain_value(value, self.unit)
        return float(plain) if self.interval is not None and type(value) is float else plain


@dataclass(frozen=True, slots=True)
class Input:
    """A named parameter. ``choices`` are the texts it may be, when it is a text and they are known.

    With a ``table``, its value is the name of a row, whose cells are read as the input's columns. ``limits`` say which
    numbers it may be; ``grow`` is what it may be multiplied by, again and again, to see how much of it would do.
    """

    name: str
    value: Value
    type: Type
    node: int
    unit: Unit | None = None
    choices: tuple[Value, ...] = ()
    about: str = ""
    table: str | None = None
    limits: Limits | None = None
    grow: float | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition that every existing design meets; ``because`` is the sentence shown when it rejects."""

    name: str
    check: int
    because: Template
    text: str
    location: Location = Location()


@dataclass(frozen=True, slots=True)
class Best:
    """The best value of a metric ever measured: the largest, or the smallest where ``above`` is false."""

    node: int
    above: bool
    text: str


@dataclass(frozen=True, slots=True)
class Metric:
    """A named output of the cost model, printed in ``unit``. It is the sum of the metrics ``parts``, if there are any."""

    name: str
    node: int
    unit: Unit
    text: str
    measured: bool = False
    about: str = ""
    parts: tuple[str, ...] = ()
    record: Best | None = None


@dataclass(frozen=True, slots=True)
class Objective:
    """A metric to minimize or maximize."""

    name: str
    node: int
    direction: Direction
    unit: Unit

    @property
    def sign(self) -> float:
        """What the metric is multiplied by so that smaller is better."""
        return 1.0 if self.direction == "minimize" else -1.0


@dataclass(frozen=True, slots=True)
class Bound:
    """One comparison ``lhs op rhs`` of nodes; ``op`` is ``<=``, ``<``, ``>=``, ``>`` or ``==``.

    A condition that is no comparison has ``op`` ``"holds"``; its ``lhs`` is then true or false.
    """

    lhs: int
    op: str
    rhs: int


@dataclass(frozen=True, slots=True)
class Constraint:
    """A bound on a metric. Its violation is in ``unit``; ``metric`` is the metric bounded, when it is one.

    Of a design that breaks one that comes ``first``, nothing else is told, and any that meets it is a nearer miss.
    """

    name: str
    bound: Bound
    unit: Unit | None
    text: str
    because: Template = Template()
    metric: str | None = None
    location: Location = Location()
    first: bool = False


@dataclass(frozen=True, slots=True)
class Measurement:
    """A black-box cost: a program that prints JSON, or a Python function; run only when a study needs it.

    ``timeout`` is in seconds; a failed run is repeated up to ``retries`` times; each measured metric is the
    median of ``repeats`` runs.
    """

    command: tuple[str, ...] = ()
    function: str = ""
    folder: str = ""
    timeout: float | None = None
    retries: int = 0
    repeats: int = 1
