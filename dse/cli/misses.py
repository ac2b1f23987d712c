"""Why designs fail: by how much constraints are missed, and what would help, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dse.cli.breakdown import breakdown_lines
from dse.cli.text import count, paragraph, plural
from dse.evaluation import evaluate_nodes
from dse.evaluation.sentence import broken_whatever_the_design, general_sentence, sentence
from dse.problem import Constraint, Problem, shown
from dse.study.breakdown import breakdowns
from dse.study.result import Miss, Relaxation, Result, design_text
from dse.units import format_value

if TYPE_CHECKING:
    from dse.study.growing import Grown
    from dse.study.unlock import Unlock

__all__ = ["MOST_UNLOCKS", "STRICT", "bound_text", "failure_lines", "grown_text", "miss_text"]

_SHORT = {"<=": "over", "<": "over", ">=": "under", ">": "under", "==": "away from"}
_EXTREME = {"<=": "lowest", "<": "lowest", ">=": "highest", ">": "highest"}
MOST_UNLOCKS = 8
"""Unlocks that are told one by one; there may be thousands."""

_LISTED = 6
"""Values tried without success up to which all are named."""

_SENTENCES = 3
"""Rules of which the sentence is told, those that reject most first."""

STRICT = 1e-300
"""A violation below this is a strict bound met with equality."""


def _numbers(miss: Miss) -> dict[str, float]:
    """The metrics of a design that are numbers; those that were measured are known from here alone."""
    return {name: value for name, value in miss.metrics.items() if isinstance(value, float)}


def bound_text(problem: Problem, constraint: Constraint, miss: Miss) -> str:
    """``<= 10 ms``: the bound of a constraint for one design, with its value."""
    rhs = constraint.bound.rhs
    value = evaluate_nodes(problem, miss.design, [rhs], _numbers(miss))[rhs]
    text = format_value(value, constraint.unit) if isinstance(value, float) else str(value)
    return text if constraint.bound.op == "==" else f"{constraint.bound.op} {text}"


def miss_text(result: Result, miss: Miss) -> str:
    """``latency 57 ms, 47 ms over <= 10 ms; ...``: what a design misses, and by how much."""
    by_name = {constraint.name: constraint for constraint in result.problem.constraints}
    parts = []
    for name, amount in miss.violations.items():
        if name not in by_name:
            parts.append(f"{name} does not hold")
            continue
        parts.append(_missed(result, by_name[name], amount, miss))
    return "; ".join(parts) or "meets every constraint"


def _missed(result: Result, constraint: Constraint, amount: float, miss: Miss) -> str:
    gap = _gap(result.problem, constraint, amount, miss)
    if constraint.metric:
        value = result.metric_text(constraint.metric, miss.metrics.get(constraint.metric))
        return f"{constraint.metric} {value}, {gap}"
    return f"{constraint.text}{' ' if constraint.bound.op == 'holds' else ': '}{gap}"


def _gap(problem: Problem, constraint: Constraint, amount: float, miss: Miss) -> str:
    """``47 ms over <= 10 ms``, and the constraint's sentence on this design."""
    op, because = constraint.bound.op, ""
    if constraint.because:
        because = f" ({sentence(problem, constraint.because, miss.design, _numbers(miss))})"
    if op == "holds":
        return f"does not hold{because}"
    bound = bound_text(problem, constraint, miss)
    if amount < STRICT:
        return f"which equals the strict bound {bound}{because}"
    return f"{format_value(amount, constraint.unit)} {_SHORT[op]} {bound}{because}"


def failure_lines(
    result: Result,
    unlocks: tuple[Unlock, ...] = (),
    departures: tuple[str, ...] = (),
    grown: tuple[Grown, ...] = (),
    *,
    indent: int = 2,
) -> list[str]:
    """Why a search found no feasible design: nearest miss, smallest relaxations, what would unlock it or do."""
    problem, miss, far = result.problem, result.nearest_miss, result.so_far
    lines: list[str] = []
    if result.funnel.exact and not result.funnel.legal:
        for line in _no_legal(result):
            lines += paragraph(line, indent=indent)
    elif miss is None:
        lines += paragraph(_no_miss(result), indent=indent)
    else:
        lines += paragraph(f"nearest miss{far}: {miss_text(result, miss)}", indent=indent)
        lines += paragraph(design_text(problem, miss.design), indent=indent + 2)
        if any(c.first and c.name in miss.violations for c in problem.constraints):
            lines += breakdown_lines(problem, breakdowns(problem, miss.metrics), indent=indent + 2)
    if result.relaxations:
        lines += paragraph(f"smallest relaxations{far}, each of which is enough:", indent=indent)
    for relaxation in result.relaxations:
        same = miss is not None and relaxation.miss.design == miss.design
        lines += paragraph(_relaxed(result, relaxation, same=same), indent=indent + 2)
        if not same:
            lines += paragraph(design_text(problem, relaxation.miss.design), indent=indent + 4)
    for unlock in unlocks[:MOST_UNLOCKS]:
        freed = " and ".join(unlock.dimensions)
        lines += paragraph(
            f"unlocked by freeing {freed}: {plural(unlock.feasible, 'feasible design')}", indent=indent
        )
    if len(unlocks) > MOST_UNLOCKS:
        rest = plural(len(unlocks) - MOST_UNLOCKS, "more set")
        lines += paragraph(f"and {rest} of as many dimensions; --format json has all", indent=indent)
    if departures:
        several = "one or more of: " if len(departures) > 1 else ""
        lines += paragraph(
            f"every feasible design of the whole space has {several}{'; '.join(departures)}", indent=indent
        )
    for tried in grown:
        lines += paragraph(grown_text(tried), indent=indent)
    return lines


def grown_text(tried: Grown) -> str:
    """``with n_gpus = 64 some design is feasible; with 16 and 32 none is``, as far as it is known."""
    name, unit = tried.input.name, tried.input.unit

    def value(number: float) -> str:
        return shown(number, unit)

    without = [value(number) for number in tried.without]
    listed = " and ".join([", ".join(without[:-1]), without[-1]] if len(without) > 1 else without)
    if len(without) > _LISTED:
        listed = f"{', '.join(without[:2])}, ... {without[-1]} ({len(without)} values)"
    none = f"with {name} = {listed} no design is feasible either" if without else ""
    if tried.stuck:
        return f"{none}; the last of them come no nearer, so more was not tried"
    if tried.enough is not None:
        also = f"; with {listed} none is" if without else ""
        return f"with {name} = {value(tried.enough)} some design is feasible{also}"
    if tried.undecided is not None:
        open_end = f"whether {value(tried.undecided)} would do was not decided in time"
        return f"{none}; {open_end}" if none else f"{name}: {open_end}"
    return none or f"{name} cannot grow beyond {value(float(tried.input.value))}"


def _no_miss(result: Result) -> str:
    """Why no design comes near. Of a search that discards designs, the funnel does not say whether any is legal."""
    funnel, stopped = result.funnel, result.status == "stopped"
    if stopped and not funnel.legal:
        return "no legal design was found before the search ended"
    tried = " that was tried" if stopped else ""
    if not (stopped or funnel.exact):
        return "no design comes near: each breaks a rule, is infinitely far off, or fails"
    if funnel.failed == funnel.legal:
        why = f": {result.failures[0][0]}" if result.failures else ""
        return f"every design{tried} fails{why}"
    return f"no design{tried} comes near: each is infinitely far off, or fails"


def _no_legal(result: Result) -> list[str]:
    """Why there is no legal design, as is known: what the inputs alone rule out, else which rules reject how many."""
    problem, account = result.problem, result.accounting
    if account.outside == account.total:
        return ["the team may choose no design"]
    if broken := broken_whatever_the_design(problem):
        alone = [rule for rule in broken if not problem.graph[rule.check].support]
        who = "the inputs rule out every design" if alone else "every design breaks a rule"
        return [f"{who}: {general_sentence(problem, rule.because) or rule.name}" for rule in alone or broken]
    whose = " of the team" if account.outside else ""
    split = sorted(account.illegal_by.items(), key=lambda item: -item[1])
    shares = [f"{name} rejects {count(number)}" for name, number in split if number]
    if len(shares) < 2:
        lines = [f"every design{whose} breaks a rule{''.join(f': {share}' for share in shares)}"]
    else:
        lines = [f"every design{whose} breaks a rule; by the first that each breaks: {', '.join(shares)}"]
    because = {rule.name: rule.because for rule in problem.rules if rule.because}
    named = [name for name, number in split if number and name in because and name != "inactive"]
    return lines + [f"{name}: {general_sentence(problem, because[name])}" for name in named[:_SENTENCES]]


def _relaxed(result: Result, relaxation: Relaxation, *, same: bool) -> str:
    """``latency by 47 ms: the lowest of a design that meets the rest is 57 ms, 47 ms over <= 10 ms``."""
    problem, miss, far = result.problem, relaxation.miss, result.so_far
    by_name = {constraint.name: constraint for constraint in problem.constraints}
    steps = []
    for name in relaxation.constraints:
        constraint, amount = by_name[name], miss.violations.get(name, 0.0)
        measurable = constraint.bound.op != "holds" and amount >= STRICT
        steps.append(f"{name} by {format_value(amount, constraint.unit)}" if measurable else name)
    what = " and ".join(steps)
    rest = " that meets the rest" if len(by_name) > len(relaxation.constraints) else ""
    constraint = by_name[relaxation.constraints[0]]
    extreme = _EXTREME.get(constraint.bound.op)
    if extreme and constraint.metric and len(steps) == 1 and not problem.graph[constraint.bound.rhs].support:
        value = result.metric_text(constraint.metric, miss.metrics.get(constraint.metric))
        gap = _gap(problem, constraint, miss.violations.get(constraint.name, 0.0), miss)
        what += f": the {extreme} {constraint.metric}{far} of a design{rest} is {value}, {gap}"
    elif not same:
        what += f": the closest design{far}{rest} has {miss_text(result, miss)}"
    return f"{what} (the nearest miss{far})" if same else what
