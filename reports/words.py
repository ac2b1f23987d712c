"""What a report says of one team: counts as rows, and reasons as sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dse.problem import Problem
from dse.study.compare import TeamReport
from dse.study.result import FrontPoint, Result, design_text

from .cards import missing, short_of, value_text
from .source import clean

__all__ = ["accounting", "front_rows", "funnel", "listing", "metric_heads", "outcome", "reasons"]


_MOST_UNLOCKS = 8


def listing(parts: Sequence[str], word: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return f" {word} ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else list(parts))


def designs(count: int, what: str = "design") -> str:
    """``1 design``, ``1,200 designs``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def outcome(result: Result) -> str:
    """How a search ended, in a few words."""
    how = {"complete": "complete", "exhausted": "every legal design evaluated", "stopped": "stopped early"}[
        result.status
    ]
    return f"{result.solver}, {result.promise}, {how}"


def accounting(result: Result) -> list[tuple[str, str, str]]:
    """Rows (what, how many, split by reason); the last is the total."""
    a = result.accounting
    rows = [
        ("outside the team", a.outside, ""),
        ("illegal", a.illegal, _split(a.illegal_by)),
        ("evaluated", a.evaluated, ""),
        ("pruned", a.pruned, _split(a.pruned_by)),
        ("not visited", a.unvisited, ""),
    ]
    shown = [(what, f"{count:,}", why) for what, count, why in rows if count or what == "evaluated"]
    return [*shown, ("total", f"{a.total:,}", "")]


def _split(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{clean(reason)} {count:,}" for reason, count in reasons.items() if count)


def funnel(result: Result) -> list[tuple[str, str, str, str]]:
    """Rows (requirement, lost by it alone, lost in this order, left), from legal designs to feasible ones."""
    found = result.funnel
    left = found.legal
    rows = [("legal", "", "", _count(left, found.exact))]
    if found.failed:
        left -= found.failed
        rows.append(("no verdict (failed)", "", f"{found.failed:,}", _count(left, found.exact)))
    for line in found.lines:
        left -= line.in_order
        name = clean(line.name)
        exact = found.exact and line.exact
        rows.append(
            (
                name,
                _count(line.alone, line.exact),
                _count(line.in_order, line.exact),
                _count(left, exact) if exact else "",
            )
        )
    return [*rows, ("feasible", "", "", _count(found.feasible, found.exact))]


def _count(count: int, exact: bool) -> str:
    return f"{count:,}" if exact else f"at least {count:,}"


def reasons(entry: TeamReport) -> list[str]:
    """Why a team finds nothing, how near it comes, and what would change that; empty for a team that succeeds."""
    result = entry.result
    if result.front:
        return []
    problem = result.problem
    said = []
    if not result.funnel.legal and (result.funnel.exact or result.so_far):
        said.append(
            "It has no legal design." if result.funnel.exact else "No legal design of it was found so far."
        )
    if result.nearest_miss is not None:
        miss = result.nearest_miss
        said.append(
            f"Nearest miss{result.so_far}: {clean(design_text(problem, miss.design))} {missing(problem, miss.violations)}."
        )
    said += [
        f"{_relaxed(problem, r.miss.violations, r.constraints)} would make this design feasible: "
        f"{clean(design_text(problem, r.miss.design))}."
        for r in result.relaxations
    ]
    said += [
        f"Free to choose {listing([clean(d) for d in unlock.dimensions])}, it has {designs(unlock.feasible, 'feasible design')}."
        for unlock in entry.unlocks[:_MOST_UNLOCKS]
    ]
    if len(entry.unlocks) > _MOST_UNLOCKS:
        said.append(f"So it has with {len(entry.unlocks) - _MOST_UNLOCKS:,} more sets of dimensions.")
    if entry.departures:
        ways = listing([clean(way) for way in entry.departures], "or")
        said.append(f"Every feasible design of the whole space leaves this team: {ways}.")
    return said


def _relaxed(problem: Problem, violations: Mapping[str, float], names: Iterable[str]) -> str:
    known = {constraint.name: constraint for constraint in problem.constraints}
    parts = []
    for name in names:
        by = short_of(violations.get(name, 0.0), known[name]) if name in known else ""
        parts.append(f"{clean(name)}{by}")
    return f"Relaxing {listing(parts)}"


def metric_heads(problem: Problem) -> list[str]:
    """The names of the metrics with their units: ``latency [ms]``."""
    heads = []
    for name, metric in problem.metrics.items():
        unit = "" if metric.unit.text == "1" else " [%]" if metric.unit.percent else f" [{metric.unit.text}]"
        heads.append(clean(name) + unit)
    return heads


def front_rows(entry: TeamReport) -> list[list[str]]:
    """The front: index, dimensions, metrics without their units, ties."""
    problem = entry.result.problem
    return [_front_row(problem, point) for point in entry.result.front]


def _front_row(problem: Problem, point: FrontPoint) -> list[str]:
    row = ["" if point.index is None else str(point.index)]
    row += [value_text(point.design[d.name], d.unit) for d in problem.dimensions]
    for name, metric in problem.metrics.items():
        value = point.metrics.get(name, point.objectives.get(name))
        text = value_text(value, metric.unit)
        row.append(text.rpartition(" ")[0] if isinstance(value, float) and " " in text else text)
    return [*row, f"{point.ties:,}"]
