"""A result in words: the accounting that sums up, the funnel, the front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dse.cli.breakdown import beyond_lines, breakdown_lines, metric_lines
from dse.cli.designs import active_values, ambitions, assignments, point_lines, tie_lines
from dse.cli.failing import failing_head
from dse.cli.misses import failure_lines
from dse.cli.near import near_lines
from dse.cli.proving import epsilon_lines, gap_lines
from dse.cli.text import aligned, count, paragraph, plural, whose, wrapped
from dse.cli.traits import trait_text
from dse.problem import Problem
from dse.study.accounting import Accounting, FunnelLine
from dse.study.result import FrontPoint, Result

if TYPE_CHECKING:
    from dse.study.growing import Grown
    from dse.study.unlock import Unlock

__all__ = [
    "account_lines",
    "front_lines",
    "funnel_lines",
    "heading",
    "help_data",
    "nothing",
    "result_lines",
    "solver_lines",
    "trait_lines",
]

_PARTS = ("outside", "illegal", "evaluated", "pruned", "unvisited")
_WHY = {
    "outside": "excluded by the team",
    "illegal": "break a rule",
    "evaluated": "judged one by one",
    "pruned": "discarded by a bound",
    "unvisited": "not reached",
}


def heading(problem: Problem) -> list[str]:
    """The name and title of the space, and the inputs that differ from the file's."""
    lines = paragraph(f"{problem.name}: {problem.title}" if problem.title else problem.name)
    for name, value in problem.overrides:
        lines += paragraph(f"with {name} = {value}", indent=2)
    return lines


def solver_lines(result: Result) -> list[str]:
    """Which solver ran, why, and what its answer is worth."""
    worth = {
        "complete": "every design is accounted for",
        "exhausted": "every legal design was evaluated",
        "stopped": "stopped before the end; what follows is what was found so far",
    }[result.status]
    if result.promise == "sampling" and result.status == "stopped":
        worth = f"a sample of {plural(result.n_trials, 'trial')}; better designs may exist"
    lines = paragraph(f"solver {result.solver}: {worth}")
    return [*lines, *paragraph(result.note, indent=2, hanging=0)] if result.note else lines


def _account_title(result: Result) -> str:
    if result.problem.continuous:
        return "designs tried, of a continuous space"
    return "what became of the designs" if result.accounting.unvisited else "every design accounted for"


def account_lines(accounting: Accounting, *, indent: int = 2) -> list[str]:
    """The accounting: parts that sum to the total."""
    rows = [["designs", count(accounting.total), ""]]
    for part in _PARTS:
        number = getattr(accounting, part)
        if number or part == "evaluated":
            split = {"illegal": accounting.illegal_by, "pruned": accounting.pruned_by}.get(part, {})
            rows.append([f"  {part}", count(number), _split(split) or _WHY[part]])
    return wrapped(rows, right={1}, indent=indent)


def _split(parts: Mapping[str, int]) -> str:
    shares = sorted(((n, name) for name, n in parts.items() if n), key=lambda share: -share[0])
    return ", ".join(f"{name} {count(n)}" for n, name in shares)


def _lost(line: FunnelLine, number: int) -> str:
    return count(number) if line.exact else f"at least {count(number)}"


def funnel_lines(result: Result, *, indent: int = 2) -> list[str]:
    """From legal designs to feasible ones: what each constraint rejects, in order and by itself."""
    funnel = result.funnel
    texts = {constraint.name: constraint.text for constraint in result.problem.constraints}
    least = "" if funnel.exact else "at least "
    left, rows = (
        funnel.legal,
        [["", "rejects", "alone", "left"], ["legal", "", "", f"{least}{count(funnel.legal)}"]],
    )
    if funnel.failed:
        left -= funnel.failed
        rows.append(["failed (no value)", count(funnel.failed), "", count(left) if funnel.exact else ""])
    for line in funnel.lines:
        left -= line.in_order
        rest = count(left) if funnel.exact else ""
        rows.append(
            [texts.get(line.name, line.name), _lost(line, line.in_order), _lost(line, line.alone), rest]
        )
    rows.append(["feasible", "", "", f"{least}{count(funnel.feasible)}"])
    return aligned(rows, right={1, 2, 3}, indent=indent)


def front_lines(
    result: Result, objective: str | None = None, *, indent: int = 2, ranked: bool = True
) -> list[str]:
    """The front, or the best designs that were asked for, by ``objective``."""
    problem = result.problem
    ranked = ranked and bool(result.best)
    points = result.best if ranked else result.front
    if ranked:
        title = f"best {plural(len(points), 'design')}{'' if objective is None else f' by {objective}'}"
    elif len(problem.objectives) == 1:
        lines = paragraph(f"best design ({ambitions(problem)})")
        return [*lines, *best_design_lines(result, points[0], indent=indent)] if points else lines
    elif result.promise == "epsilon" and result.status == "complete":
        share = f"{result.epsilon * 100:.6g} %"
        title = f"epsilon-front, {share}: {plural(len(points), 'design')} ({ambitions(problem)})"
    else:
        title = f"Pareto front: {plural(len(points), 'design')} ({ambitions(problem)})"
    return [*paragraph(title), *point_lines(result, points, indent=indent, ties=not ranked)]


def best_design_lines(result: Result, point: FrontPoint, *, indent: int) -> list[str]:
    """The best design of one objective, all its metrics, and what those with parts are made of."""
    problem = result.problem
    shown = active_values(problem, point.design)
    lines = paragraph(assignments(problem, shown), indent=indent)
    if idle := len(point.design) - len(shown):
        lines += paragraph(f"({plural(idle, 'inactive dimension')} left out)", indent=indent + 2)
    lines += metric_lines(result, point, indent=indent)
    lines += breakdown_lines(result.problem, result.breakdown, indent=indent)
    return [*lines, *tie_lines(result, point, indent)]


def trait_lines(result: Result, *, indent: int = 2) -> list[str]:
    """What every feasible design has in common; not said of those that an unfinished search happened to see."""
    if not result.traits or result.funnel.feasible == 1 or not result.funnel.exact:
        return []
    feasible = plural(result.funnel.feasible, "feasible design")
    traits = [trait_text(result.problem, trait) for trait in result.traits]
    text = f"all {feasible} share: {'; '.join(traits)}"
    return paragraph(text, indent=indent)


def nothing(result: Result) -> str:
    """That no design is feasible, and among how many."""
    if result.accounting.pruned and not result.accounting.unvisited:
        return f"no feasible design: proven for all {count(result.accounting.total)} designs"
    tried = "" if result.funnel.exact else " tried"
    return f"no feasible design among {plural(result.funnel.legal, 'legal design')}{tried}"


def help_data(
    unlocks: tuple[Unlock, ...], departures: tuple[str, ...], grown: tuple[Grown, ...] = ()
) -> dict[str, Any]:
    """What would help a team that found nothing, as JSON values."""
    found = [{"dimensions": list(unlock.dimensions), "feasible": unlock.feasible} for unlock in unlocks]
    return {
        "unlocks": found,
        "departures": list(departures),
        "grown": [tried.to_dict() for tried in grown],
    }


def result_lines(
    result: Result,
    unlocks: tuple[Unlock, ...] = (),
    departures: tuple[str, ...] = (),
    grown: tuple[Grown, ...] = (),
    *,
    objective: str | None = None,
    ranked: bool = True,
) -> list[str]:
    """Everything about one search. Without a feasible design: why, and what would help.

    Its best designs are listed if ``ranked``; otherwise those near the best are.
    """
    lines = heading(result.problem)
    if result.team != result.problem.everything.name or result.accounting.outside:
        lines += paragraph(whose(result.team))
    lines += ["", *solver_lines(result), ""]
    if head := failing_head(result):
        lines += [*head, ""]
    if result.feasible:
        for beyond in result.beyond_record:
            lines += beyond_lines(result.problem, beyond, of=len(result.front))
        lines += [
            *front_lines(result, objective, ranked=ranked),
            *epsilon_lines(result),
            *trait_lines(result),
        ]
        lines += near_lines(result, listed=not ranked)
    else:
        lines += paragraph(nothing(result))
        lines += failure_lines(result, unlocks, departures, grown)
    if gap := gap_lines(result):
        lines += ["", *gap]
    lines += ["", _account_title(result), *account_lines(result.accounting)]
    if result.problem.constraints or result.funnel.failed:
        lines += ["", "funnel", *funnel_lines(result)]
    if result.failures:
        shown, failed = len(result.failures), result.funnel.failed
        lines += ["", "failed designs" if shown == failed else f"failed designs, {shown} of {count(failed)}"]
        for reason, index, design in result.failures:
            lines += paragraph(f"{index}: {design}: {reason}", indent=2)
    return lines
