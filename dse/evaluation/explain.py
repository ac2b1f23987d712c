"""One design taken apart: every named value, which branch of each ``max`` won, and what decided the verdict.

The result is data, for any front end: nested :class:`Step` values that hold the texts of expressions and their
values. A step that is used twice is the same object in both places.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from dse.evaluation.gates import broken_first, told_of
from dse.evaluation.scalar import Scalar, evaluate_nodes
from dse.evaluation.sentence import sentence, shown_value
from dse.evaluation.verdict import State, Verdict, judge
from dse.expressions import Graph
from dse.expressions.render import Writing
from dse.problem import Constraint, Design, Problem, Rule, shown
from dse.problem.template import Template
from dse.units import Unit, format_value

__all__ = ["BrokenRule", "Explanation", "Margin", "Step", "explain"]

_LONGEST = 160
"""Characters of a part of an expression that is written out."""

Kind: TypeAlias = Literal["metric", "let", "cell", "input", "measured", "choice", "rule"]


@dataclass(frozen=True, slots=True)
class Step:
    """One value of the cost model and what it is made of.

    ``name`` is that of the metric, let or rule; of a table cell or input it is how it is written; of a choice it is
    ``max``, ``min`` or ``if``. ``text`` is the expression, or what a choice compared. ``value`` is in base units, None
    when there is none; ``shown`` is for people, with its unit. ``winner`` is the branch that a choice took.
    """

    kind: Kind
    name: str
    text: str
    value: float | bool | str | tuple[str, ...] | None
    shown: str
    winner: str = ""
    parts: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Margin:
    """How a constraint stands; ``met`` is None where a side has no value. ``by`` is the distance to the bound in base
    units, at least 0, and ``by_text`` the same for people; a condition that is no comparison has no distance.
    """

    name: str
    text: str
    lhs: str
    op: str
    rhs: str
    met: bool | None
    by: float
    by_text: str
    because: str


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that the design breaks, its sentence, and what its condition read."""

    name: str
    because: str
    step: Step


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about one design.

    ``verdict`` is None while it waits for a measurement, of the metrics in ``unmeasured``. An illegal design has
    ``broken`` rules and nothing else, one that breaks a constraint that comes first its metrics alone. ``metrics`` are the cost trees; ``lets`` those that had no part in
    them.
    """

    design: Design
    index: int | None
    verdict: Verdict | None
    metrics: tuple[Step, ...] = ()
    lets: tuple[Step, ...] = ()
    margins: tuple[Margin, ...] = ()
    broken: tuple[BrokenRule, ...] = ()
    unmeasured: tuple[str, ...] = ()

    @property
    def feasible(self) -> bool:
        """Whether the design is known to meet every rule and constraint."""
        return self.verdict is not None and self.verdict.state is State.FEASIBLE


def explain(problem: Problem, design: Design, measured: Mapping[str, float] | None = None) -> Explanation:
    """Take one complete design apart.

    Args:
        measured: values of measured metrics in base units; a cost that depends on one not given is left open.
    """
    index = None if problem.continuous else problem.index_of(problem.digits(design))
    given = measured or {}
    lacking = [m.name for m in problem.metrics.values() if m.measured and m.name not in given]
    tree = _Tree(problem, design, given)
    broken = [rule for rule in problem.rules if tree.value(rule.check) is not True]
    if broken:
        rules = tuple(map(tree.broken, broken))
        verdict = Verdict(State.ILLEGAL, rules[0].because, broken[0])
        return Explanation(design, index, verdict, broken=rules)
    needed = {n for c in problem.constraints for n in (c.bound.lhs, c.bound.rhs)} | {
        o.node for o in problem.objectives
    }
    waiting = [
        name for name in lacking if any(name in problem.graph.leaves(node, "measured") for node in needed)
    ]
    first = broken_first(problem, design, given)
    if first and not waiting:
        return _told(tree, first, index, judge(problem, design, given))
    metrics = tuple(tree.named("metric", metric.name, metric.node) for metric in problem.metrics.values())
    shown_lets = {step.name for step in _all_steps(metrics) if step.kind == "let"}
    lets = tuple(
        tree.named("let", name, node) for name, node in problem.lets.items() if name not in shown_lets
    )
    return Explanation(
        design,
        index,
        None if waiting else judge(problem, design, given),
        metrics,
        lets,
        tuple(tree.margin(constraint) for constraint in problem.constraints),
        unmeasured=tuple(waiting),
    )


def _told(tree: _Tree, first: Collection[str], index: int | None, verdict: Verdict) -> Explanation:
    """What is told of a design that breaks constraints that come first: these, and what they compare."""
    problem = tree.problem
    told = told_of(problem, first, dict.fromkeys(problem.metrics, True))
    known: dict[int, Step] = {}

    def pruned(step: Step) -> Step:
        if id(step) not in known:
            parts = tuple(pruned(part) for part in step.parts if part.kind != "metric" or told[part.name])
            known[id(step)] = replace(step, parts=parts)
        return known[id(step)]

    metrics = (tree.named("metric", m.name, m.node) for m in problem.metrics.values() if told[m.name])
    margins = tuple(tree.margin(c) for c in problem.constraints if c.name in first)
    return Explanation(tree.design, index, verdict, tuple(map(pruned, [*metrics])), (), margins)


class _Open:
    """The value of what waits for a measurement."""

    def __init__(self, name: str) -> None:
        self.reason = f"not measured: {name}"


class _Tree:
    """The steps of one design, made from the leaves up and shared between their users."""

    def __init__(self, problem: Problem, design: Design, measured: Mapping[str, float]) -> None:
        self.problem = problem
        self.design = design
        self.measured = measured
        self.graph: Graph = problem.graph
        self.names: dict[int, str] = {}
        self.writing = Writing(self.graph, self.names, longest=_LONGEST)
        self.kinds: dict[int, Kind] = {}
        self._values: dict[int, Scalar | _Open] = {}
        self._steps: dict[int, tuple[Step, ...]] = {}
        # A let that is a plain leaf is written as that leaf: its node is everyone's.
        for kind, name, node in _declared(problem):
            if node not in self.names and self.graph[node].op not in (
                "const",
                "dimension",
                "input",
                "measured",
            ):
                self.names[node], self.kinds[node] = name, kind
        bounds = [side for c in problem.constraints for side in (c.bound.lhs, c.bound.rhs)]
        declared = [*problem.lets.values(), *(metric.node for metric in problem.metrics.values())]
        self._evaluate([*(rule.check for rule in problem.rules), *declared, *bounds])

    # -- values and texts -------------------------------------------------------------------------

    def value(self, node: int) -> Scalar | _Open:
        """The value of a node; open when it needs a measurement that is not there."""
        if node not in self._values:
            self._evaluate([node])
        return self._values[node]

    def _evaluate(self, roots: Iterable[int]) -> None:
        """Find the values of ``roots`` and of everything below them."""
        below = self.graph.needed(roots)
        for number in below:
            found = self.graph[number]
            if found.op == "measured" and found.data not in self.measured:
                self._values[number] = _Open(found.data)
            else:
                waiting = (self._values.get(arg) for arg in found.args)
                first = next((value for value in waiting if isinstance(value, _Open)), None)
                if first is not None:
                    self._values[number] = first
        known = [number for number in below if number not in self._values]
        self._values.update(evaluate_nodes(self.problem, self.design, known, self.measured))

    def plain(self, node: int) -> float | bool | str | tuple[str, ...] | None:
        """The value of a node as data."""
        value = self.value(node)
        return value if isinstance(value, float | bool | str | tuple) else None

    def shown(self, node: int, unit: Unit | None = None) -> str:
        """The value of a node for people."""
        value = self.value(node)
        if isinstance(value, _Open):
            return f"no value ({value.reason})"
        return shown_value(self.problem, node, value, unit)

    def text(self, node: int, own: str = "") -> str:
        """The expression of a node, as it was written; ``own`` is the name under which it is being explained."""
        alias = self.names.get(node)
        name = own or alias or ""
        metric = self.problem.metrics.get(name)
        if metric is not None and metric.node == node and metric.text != "cost function":
            return metric.text
        if self.problem.lets.get(name) == node and name in self.problem.let_texts:
            return self.problem.let_texts[name]
        return alias if own and alias and alias != own else self.writing.text(node)

    def sentence(self, template: Template) -> str:
        """A ``because`` with the values of this design."""
        return sentence(self.problem, template, self.design, self.measured)

    # -- steps ------------------------------------------------------------------------------------

    def named(self, kind: Kind, name: str, node: int) -> Step:
        """The step of a metric or let."""
        if self.names.get(node) == name:
            return self.steps(node)[0]
        unit = self.problem.metrics[name].unit if kind == "metric" else None
        measured = self.graph[node].op == "measured"
        text, parts = ("measured", ()) if measured else (self.text(node, name), self.steps(node))
        return Step(kind, name, text, self.plain(node), self.shown(node, unit), "", parts)

    def broken(self, rule: Rule) -> BrokenRule:
        """A broken rule and what its condition read."""
        value, shown_value = self.plain(rule.check), self.shown(rule.check)
        step = Step("rule", rule.name, rule.text, value, shown_value, "", self._inside(rule.check))
        return BrokenRule(rule.name, self.sentence(rule.because), step)

    def steps(self, node: int) -> tuple[Step, ...]:
        """What ``node`` adds to the step above it: its own step, or those of its parts."""
        if node not in self._steps:
            for number in self.graph.needed((node,)):
                if number not in self._steps:
                    self._steps[number] = self._made(number)
        return self._steps[node]

    def _made(self, node: int) -> tuple[Step, ...]:
        """The steps of a node whose arguments' steps are made already."""
        op, name = self.graph[node].op, self.names.get(node)
        if name is not None:
            kind = self.kinds[node]
            winner = self._winner(node)[0] if op in ("max", "min", "where") else ""
            return (
                Step(
                    kind,
                    name,
                    self.text(node),
                    self.plain(node),
                    self.shown(node),
                    winner,
                    self._inside(node),
                ),
            )
        if op in ("max", "min", "where"):
            winner, compared = self._winner(node)
            label = "if" if op == "where" else op
            return (
                Step(
                    "choice", label, compared, self.plain(node), self.shown(node), winner, self._inside(node)
                ),
            )
        if op in ("cell", "input", "measured"):
            text = self.text(node)
            leaf = Step(op, text, "", self.plain(node), self.shown(node))  # type: ignore[arg-type]
            return (leaf, *self._inside(node))
        return self._inside(node)

    def _inside(self, node: int) -> tuple[Step, ...]:
        """The steps of what ``node`` is computed from; the arm that a condition did not choose has no part in it."""
        found = self.graph[node]
        if found.op == "alias" and self.problem.let_texts[found.data].strip() not in self.names.values():
            return self._inside(found.args[0])
        args: Iterable[int] = found.args
        if found.op in ("max", "min"):
            args = self._alternatives(node)
        elif found.op == "where":
            condition = self.value(found.args[0])
            taken = found.args[1:2] if condition is True else found.args[2:] if condition is False else ()
            args = (found.args[0], *taken)
        below = (step for arg in args for step in self.steps(arg))
        return tuple({id(step): step for step in below}.values())

    def _alternatives(self, node: int) -> list[int]:
        """``a``, ``b``, ``c`` of ``max(max(a, b), c)``."""
        op, rest = self.graph[node].op, [node]
        while self.graph[rest[0]].op == op and (rest[0] == node or rest[0] not in self.names):
            rest[:1] = self.graph[rest[0]].args
        return rest

    def _winner(self, node: int) -> tuple[str, str]:
        """The branch that a choice took, and what it compared, in words."""
        found = self.graph[node]
        if found.op == "where":
            condition = self.value(found.args[0])
            text = self.writing.text(found.args[0])
            if not isinstance(condition, bool):
                return "", f"{text} is undecided"
            return self._branch(found.args[1 if condition else 2]), f"{text} is {shown(condition)}"
        values = {n: self.value(n) for n in self._alternatives(node)}
        best = next((n for n, value in values.items() if value == self.value(node)), None)
        if best is None:
            return "", ", ".join(map(self._beside, values))
        sign = " > " if found.op == "max" else " < "
        text = self._beside(best)
        for other, value in values.items():
            if other != best:
                text += f"{' = ' if value == values[best] else sign}{self._beside(other)}"
                sign = ", "
        return self._branch(best), text

    def _beside(self, node: int) -> str:
        """A branch with its value, unless it is written as its value."""
        branch, value = self._branch(node), self.shown(node)
        return branch if self.graph[node].op == "const" else f"{branch} {value}"

    def _branch(self, node: int) -> str:
        return self.names.get(node) or self.writing.text(node)

    # -- constraints ------------------------------------------------------------------------------

    def margin(self, constraint: Constraint) -> Margin:
        """How a constraint stands for this design."""
        bound = constraint.bound
        lhs, rhs = self.value(bound.lhs), self.value(bound.rhs)
        because = self.sentence(constraint.because) if constraint.because else ""
        sides = self.shown(bound.lhs, constraint.unit), self.shown(bound.rhs, constraint.unit)
        if bound.op == "holds" and isinstance(lhs, bool):
            return Margin(
                constraint.name, constraint.text, sides[0], bound.op, "", lhs, float(not lhs), "", because
            )
        if not (isinstance(lhs, float) and isinstance(rhs, float)):
            return Margin(
                constraint.name, constraint.text, sides[0], bound.op, sides[1], None, 0.0, "", because
            )
        met = {"<=": lhs <= rhs, "<": lhs < rhs, ">=": lhs >= rhs, ">": lhs > rhs, "==": lhs == rhs}[bound.op]
        by = abs(lhs - rhs)
        by_text = format_value(by, constraint.unit)
        return Margin(
            constraint.name, constraint.text, sides[0], bound.op, sides[1], met, by, by_text, because
        )


def _all_steps(roots: Iterable[Step]) -> list[Step]:
    """The steps and everything below them, each once."""
    seen: dict[int, Step] = {}
    stack = list(roots)
    while stack:
        step = stack.pop()
        if id(step) not in seen:
            seen[id(step)] = step
            stack.extend(step.parts)
    return list(seen.values())


def _declared(problem: Problem) -> Iterable[tuple[Kind, str, int]]:
    for name, node in problem.lets.items():
        yield "let", name, node
    for metric in problem.metrics.values():
        yield "metric", metric.name, metric.node
