"""The right answer of a small problem, by the definition: every design, one at a time, through the scalar judge."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from dse.evaluation import State, Verdict, broken_rule, judge, member
from dse.problem import Problem, Team
from dse.study.result import Result


def dominates(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


@dataclass
class Truth:
    """What an exhaustive search must report. Indices are those of the whole space."""

    total: int = 0
    outside: int = 0
    illegal_by: Counter[str] = field(default_factory=Counter)
    verdicts: dict[int, Verdict] = field(default_factory=dict)  # of the legal designs
    costs: dict[int, tuple[float, ...]] = field(default_factory=dict)  # of the feasible ones, minimized

    @property
    def front(self) -> list[tuple[tuple[float, ...], tuple[int, ...]]]:
        """(costs, indices of all designs that have them), best first objective first."""
        distinct = set(self.costs.values())
        best = sorted(v for v in distinct if not any(dominates(other, v) for other in distinct))
        return [(v, tuple(i for i in sorted(self.costs) if self.costs[i] == v)) for v in best]


def truth(problem: Problem, team: Team | None = None) -> Truth:
    team = team or problem.everything
    found = Truth(problem.size)
    for index in range(problem.size):
        design = problem.design_at(problem.digits_of(index))
        if not member(problem, team, design):
            found.outside += 1
        elif rule := broken_rule(problem, design):
            found.illegal_by[rule.name] += 1
        else:
            verdict = found.verdicts[index] = judge(problem, design)
            if verdict.state is State.FEASIBLE:
                signs = [o.sign for o in problem.objectives]
                found.costs[index] = tuple(
                    v * s + 0.0 for v, s in zip(verdict.objectives, signs, strict=True)
                )
    return found


def assert_right_front(result: Result, right: Truth) -> None:
    """The front, the lowest index of each vector and the number of ties."""
    signs = [o.sign for o in result.problem.objectives]
    names = [o.name for o in result.problem.objectives]
    found = [
        (tuple(p.objectives[n] * s + 0.0 for n, s in zip(names, signs, strict=True)), p.index, p.ties)
        for p in result.front
    ]
    assert found == [(costs, indices[0], len(indices)) for costs, indices in right.front]
    for point in result.front:
        assert point.index is not None
        assert result.problem.index_of(result.problem.digits(point.design)) == point.index


def assert_right_explanation(result: Result, right: Truth) -> None:
    """What is said when nothing is feasible, and what feasible designs share when something is."""
    problem = result.problem
    misses = [
        (verdict.nearness, index)
        for index, verdict in right.verdicts.items()
        if verdict.state is State.INFEASIBLE and not verdict.infinite
    ]
    if right.costs or not misses:
        assert result.nearest_miss is None
        assert result.relaxations == ()
    else:
        assert result.nearest_miss is not None
        assert (result.nearest_miss.nearness, result.nearest_miss.index) == min(misses)
        broken = {
            index: tuple(c.name for c, v in zip(problem.constraints, right.verdicts[index].violations, strict=True) if v > 0)
            for _, index in misses
        }  # fmt: skip
        fewest = min(map(len, broken.values()))
        nearest: dict[tuple[str, ...], tuple[float, int]] = {}
        for nearness, index in misses:
            if len(broken[index]) == fewest:
                known = nearest.get(broken[index], (nearness, index))
                nearest[broken[index]] = min(known, (nearness, index))
        assert {r.constraints: (r.miss.nearness, r.miss.index) for r in result.relaxations} == nearest
    if result.accounting.pruned_by.get("dominated by the front"):
        assert right.costs
        assert result.traits == ()  # of a part of the feasible designs they would say nothing
        return
    digits = [problem.digits_of(index) for index in right.costs]
    for at, dimension in enumerate(problem.dimensions):
        used = sorted({row[at] for row in digits})
        traits = [t for t in result.traits if t.dimension == dimension.name]
        if 0 < len(used) < len(dimension.values):
            (trait,) = traits
            assert trait.values == tuple(dimension.label(digit) for digit in used)
        else:
            assert traits == []


def assert_right_counts(result: Result, right: Truth) -> None:
    """The accounting and the funnel of a search that evaluates every legal design."""
    accounting, problem = result.accounting, result.problem
    assert (accounting.total, accounting.outside) == (right.total, right.outside)
    assert {name: n for name, n in accounting.illegal_by.items() if n} == dict(right.illegal_by)
    assert (accounting.evaluated, accounting.pruned) == (len(right.verdicts), 0)
    judged = [v for v in right.verdicts.values() if v.state is not State.FAILED]
    assert result.funnel.failed == len(right.verdicts) - len(judged)
    assert result.funnel.feasible == len(right.costs)
    alone = [sum(v.violations[at] > 0 for v in judged) for at in range(len(problem.constraints))]
    in_order = [
        sum(v.violations[at] > 0 and not any(x > 0 for x in v.violations[:at]) for v in judged)
        for at in range(len(problem.constraints))
    ]
    lines = {line.name: (line.alone, line.in_order) for line in result.funnel.lines}
    own = [line for line in result.funnel.lines if not line.name.endswith(" finite")]
    assert [(line.alone, line.in_order) for line in own] == list(zip(alone, in_order, strict=True))
    for o in problem.objectives:
        lost = sum(o.name in v.infinite for v in judged)
        assert lines.get(f"{o.name} finite", (0, 0))[0] == lost
    assert len(judged) - sum(line.in_order for line in result.funnel.lines) == result.funnel.feasible


def assert_accounted(result: Result) -> None:
    """Every design counted once, whatever the solver."""
    a = result.accounting
    assert a.total == a.outside + a.illegal + a.evaluated + a.pruned + a.unvisited == result.problem.size
    assert sum(a.illegal_by.values()) == a.illegal
    assert sum(a.pruned_by.values()) == a.pruned
    assert min(a.outside, a.illegal, a.evaluated, a.pruned, a.unvisited) >= 0
    if result.promise == "exact" and result.status == "complete":
        assert a.unvisited == 0
