"""Problems built by hand from a graph, for tests of studies that need no space file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from dse.evaluation import State, Verdict, judge, member
from dse.expressions import Column, Flavor, Graph, Kind, Table, Type
from dse.expressions.parser import parse
from dse.problem import (
    Bound,
    Box,
    Conjunct,
    Constraint,
    Dimension,
    Input,
    Interval,
    Measurement,
    Metric,
    Objective,
    Problem,
    Rule,
    Team,
)
from dse.problem.template import Template
from dse.units import parse_quantity, parse_unit

Values = Sequence[float] | Sequence[str] | Sequence[bool] | Interval


class Build:
    """Declares names one after the other, each visible to those after it."""

    def __init__(self, tables: Sequence[Table] = ()) -> None:
        self.graph = Graph(tables)
        self.nodes: dict[str, int] = {}
        self.dimensions: list[Dimension] = []
        self.inputs: dict[str, Input] = {}
        self.rules: list[Rule] = []
        self.metrics: dict[str, Metric] = {}
        self.objectives: list[Objective] = []
        self.constraints: list[Constraint] = []
        self.teams: dict[str, Team] = {}
        self.of_table: dict[str, str] = {}

    # -- the scope of expressions -------------------------------------------------------------------

    def value(self, name: str) -> int:
        return self.nodes[name]

    def column(self, name: str, column: str) -> int:
        return self.graph.cell(self.of_table[name], column, [self.nodes[name]])

    def table(self, name: str) -> Table:
        return self.graph.tables[name]

    def declares(self, name: str) -> bool:
        return name in self.nodes or name in self.graph.tables

    # -- declarations -------------------------------------------------------------------------------

    def input(self, name: str, text: str) -> Build:
        quantity = parse_quantity(text)
        type_ = Type.of_unit(quantity.unit)
        node = self.nodes[name] = self.graph.input(name, type_)
        self.inputs[name] = Input(name, quantity.value, type_, node, quantity.unit)
        return self

    def dimension(
        self, name: str, values: Values, when: str = "", otherwise: int = 0, table: str = ""
    ) -> Build:
        interval = values if isinstance(values, Interval) else None
        listed: list[Any] = [] if isinstance(values, Interval) else list(values)
        kind = Kind.BOOL if listed and isinstance(listed[0], bool) else Kind.NUMBER
        kind = Kind.STRING if listed and isinstance(listed[0], str) else kind
        listed = [float(v) for v in listed] if kind is Kind.NUMBER else listed
        type_ = Type(kind)
        condition = parse(when, self) if when else None
        node = self.graph.dimension(name, type_, listed if kind is Kind.STRING else None)
        self.nodes[name] = node
        self.of_table[name] = table
        made = Dimension(
            name, tuple(listed), type_, node, None, table or None, condition, otherwise, interval
        )
        self.dimensions.append(made)
        if when:
            value = listed[otherwise]
            shown = str(value).lower() if isinstance(value, bool) else repr(value)
            self.rule(f"{name}_inactive", f"{when} or {name} == {shown}", f"{name} is not used unless {when}")
        return self

    def let(self, name: str, text: str) -> Build:
        self.nodes[name] = parse(text, self)
        return self

    def rule(self, name: str, check: str, because: str = "it does not exist") -> Build:
        self.rules.append(Rule(name, parse(check, self), Template((because,)), check))
        return self

    def metric(self, name: str, text: str, unit: str = "1") -> Build:
        node = self.nodes[name] = parse(text, self)
        self.metrics[name] = Metric(name, node, parse_unit(unit), text)
        return self

    def measured(self, name: str, unit: str = "1") -> Build:
        made = parse_unit(unit)
        node = self.graph.measured(name, Type.of_unit(made), frozenset(d.name for d in self.dimensions))
        self.nodes[name] = node
        self.metrics[name] = Metric(name, node, made, "", measured=True)
        return self

    def minimize(self, name: str) -> Build:
        self.objectives.append(Objective(name, self.nodes[name], "minimize", self.metrics[name].unit))
        return self

    def maximize(self, name: str) -> Build:
        self.objectives.append(Objective(name, self.nodes[name], "maximize", self.metrics[name].unit))
        return self

    def constrain(self, name: str, text: str) -> Build:
        found = re.fullmatch(r"(.+?)\s*(<=|>=|==|<|>)\s*(.+)", text)
        assert found is not None
        bound = Bound(parse(found[1], self), found[2], parse(found[3], self))
        metric = self.metrics.get(name)
        unit = metric.unit if metric else None
        self.constraints.append(Constraint(name, bound, unit, text, metric=name if metric else None))
        return self

    def team(self, name: str, where: str = "", **values: Any) -> Build:
        allowed = []
        for dimension in self.dimensions:
            wanted = values.get(dimension.name)
            wanted = wanted if isinstance(wanted, list) or wanted is None else [wanted]
            allowed.append(
                None if wanted is None else tuple(sorted(dimension.values.index(v) for v in wanted))
            )
        conjuncts: tuple[Conjunct, ...] = ()
        if where:
            node = parse(where, self)
            conjuncts = (Conjunct(node, where, self.graph[node].support),)
        self.teams[name] = Team(name, (Box(tuple(allowed), conjuncts),))
        return self

    def problem(self, name: str = "test", measurement: Measurement | None = None) -> Problem:
        return Problem(
            name=name,
            graph=self.graph,
            dimensions=tuple(self.dimensions),
            inputs=self.inputs,
            rules=tuple(self.rules),
            metrics=self.metrics,
            objectives=tuple(self.objectives),
            constraints=tuple(self.constraints),
            teams=self.teams,
            measurement=measurement,
        )


def table(name: str, columns: Mapping[str, str], rows: Mapping[str, Sequence[Any]]) -> Table:
    """A table of rows; a column's unit may also be ``flag`` or ``texts``."""
    made = {}
    for at, (column, unit) in enumerate(columns.items()):
        cells = [row[at] for row in rows.values()]
        if unit == "flag":
            made[column] = Column(Type(Kind.BOOL), tuple(cells))
        elif unit == "texts":
            made[column] = Column(Type(Kind.TEXTS), tuple(tuple(cell) for cell in cells))
        else:
            numbers = tuple(
                None if cell is None else parse_quantity(f"{cell} {unit}").value for cell in cells
            )
            made[column] = Column(Type.of_unit(parse_unit(unit)), numbers, parse_unit(unit))
    return Table(name, (name,), (tuple(rows),), made)


def camera() -> Problem:
    """The camera exercise: 480 designs, 312 legal, 8 feasible, two on the front."""
    detectors = table(
        "detectors",
        {"accuracy": "percent", "work": "Gop", "params": "1", "layers": "1", "activation": "MB"},
        {
            "Det-S": (86.0, 1.5, 2.5e6, 50, 6),
            "Det-M": (89.0, 6.0, 9e6, 75, 12),
            "Det-L": (91.8, 15.0, 25e6, 100, 20),
            "Det-XL": (93.0, 40.0, 60e6, 150, 32),
        },
    )
    formats = table(
        "formats",
        {"loss": "percent", "weight": "B", "activation": "1", "retrain": "flag"},
        {
            "fp32": (0.0, 4, 1, False),
            "fp16": (0.0, 2, 0.5, False),
            "int8-PTQ": (2.0, 1, 0.25, False),
            "int8-QAT": (0.5, 1, 0.25, True),
            "int4-QAT": (2.2, 0.5, 0.25, True),
        },
    )
    prunings = table(
        "prunings",
        {"loss": "percent", "compute": "1", "weights": "1", "index": "B"},
        {"none": (0, 1, 1, 0), "structured": (1, 0.7, 0.7, 0), "unstructured": (0.5, 1, 0.5, 2)},
    )
    engines = table(
        "engines",
        {"kernels": "1", "overhead": "us", "factor": "1", "size": "MB"},
        {"naive": (3, 15, 2, 40), "optimized": (1, 5, 1, 8)},
    )
    hardware = table(
        "hardwares",
        {"bandwidth": "GB/s", "engines": "texts"},
        {"cpu": (8, ["naive", "optimized"]), "npu": (16, ["optimized"])},
    )
    rates = Table(
        "rates",
        ("hardware", "format"),
        (("cpu", "npu"), tuple(formats.axes[0])),
        {
            "": Column(
                Type.of_unit(parse_unit("Gop/s")),
                tuple(
                    None if r is None else r * 1e9
                    for r in (50, 100, 200, 200, 200, None, None, 2000, 2000, 2000)
                ),
                parse_unit("Gop/s"),
            )
        },
    )
    build = Build([detectors, formats, prunings, engines, hardware, rates])
    build.input("min_accuracy", "90 percent").input("max_latency", "10 ms")
    for name, found in {"detector": detectors, "format": formats, "pruning": prunings}.items():
        build.dimension(name, [str(row) for row in found.axes[0]], table=found.name)
    build.dimension("distill", [False, True])
    build.dimension("engine", ["naive", "optimized"], table="engines")
    build.dimension("hardware", ["cpu", "npu"], table="hardwares")
    build.rule("rate", "rates[hardware, format] > 0 op/s").rule("engines", "engine in hardware.engines")
    build.let("weights", "detector.params * pruning.weights * (format.weight + pruning.index)")
    build.let("activations", "detector.activation * format.activation")
    build.let("compute", "detector.work * pruning.compute / rates[hardware, format]")
    build.let("traffic", "weights + activations * 4 * engine.kernels")
    build.let("overhead", "detector.layers * engine.kernels * engine.overhead")
    build.metric(
        "accuracy",
        "detector.accuracy - format.loss - pruning.loss + (0.6 percent if distill else 0)",
        "percent",
    )
    build.metric("latency", "max(compute, traffic / hardware.bandwidth) + overhead", "ms")
    build.metric("memory", "weights + activations * engine.factor + engine.size", "MB")
    build.maximize("accuracy").minimize("latency")
    build.constrain("accuracy", "accuracy >= min_accuracy").constrain("latency", "latency <= max_latency")
    build.constrain("memory", "memory <= 100 MB")
    build.team("ml", engine="naive", hardware="cpu")
    build.team("systems", "not format.retrain", detector="Det-L", pruning="none", distill=False)
    build.team("mlsys")
    return build.problem("camera")


def tiny() -> Problem:
    """Four designs, one objective."""
    build = Build().dimension("a", [1, 2]).dimension("b", [False, True])
    build.metric("cost", "a + (0.5 if b else 0)").minimize("cost")
    return build.problem("tiny")


def legal_verdicts(problem: Problem, team: str | None = None) -> dict[tuple[int, ...], Verdict]:
    """Every legal design of a team with its verdict, by brute force."""
    found = {}
    for digits in product(*(range(size) for size in problem.sizes)):
        design = problem.design_at(digits)
        if member(problem, problem.team(team), design):
            verdict = judge(problem, design)
            if verdict.state is not State.ILLEGAL:
                found[digits] = verdict
    return found


__all__ = ["Build", "Flavor", "camera", "legal_verdicts", "table", "tiny"]
