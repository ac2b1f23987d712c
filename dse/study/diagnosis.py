"""From a tally to a result: positions become designs, and what was lost is said in words."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.evaluation import Undefined, evaluate_nodes, judge
from dse.evaluation.gates import broken_first, told_of, told_together, told_violations
from dse.evaluation.hull import Hull
from dse.problem import Design, Problem, Team
from dse.study.accounting import Accounting, Funnel, FunnelLine
from dse.study.exact import ExactRun
from dse.study.front import Archive, FrontTooLarge
from dse.study.keeping import kept_of
from dse.study.points import points_of
from dse.study.result import FrontPoint, Miss, Relaxation, Result, Trait, design_text
from dse.study.tally import Tally

__all__ = ["design_metrics", "exact_result", "loss_names", "miss_of", "traits_of"]


def exact_result(
    problem: Problem,
    team: Team,
    solver: str,
    run: ExactRun,
    *,
    seed: int = 0,
    epsilon: float = 0.0,
    note: str = "",
    clock: Mapping[str, Any] | None = None,
) -> Result:
    """The result of an exact run, complete or stopped; ``epsilon`` is what its front was allowed to be worse by."""
    return _Reader(problem, team, run).result(
        run, solver, seed=seed, epsilon=epsilon, note=note, clock=clock or {}
    )


def design_metrics(
    problem: Problem, design: Design, measured: Mapping[str, float] | None = None
) -> dict[str, float | bool | str | None]:
    """Every metric of a legal design in base units, by the scalar reference; None where it is undefined.

    Of one that breaks a constraint that comes first, only what that compares.
    """
    known = {name: m for name, m in problem.metrics.items() if not _unknown(problem, m.node, measured or {})}
    values = evaluate_nodes(problem, design, [metric.node for metric in known.values()], measured)
    metrics: dict[str, float | bool | str | None] = dict.fromkeys(problem.metrics)
    for name, metric in known.items():
        value = values[metric.node]
        metrics[name] = (
            value + 0.0 if isinstance(value, float) else None if isinstance(value, Undefined) else str(value)
        )
    broken = broken_first(problem, design, measured)
    return told_of(problem, broken, metrics) if broken else metrics


def _unknown(problem: Problem, node: int, measured: Mapping[str, float]) -> bool:
    return any(name not in measured for name in problem.graph.leaves(node, "measured"))


def loss_names(problem: Problem) -> list[str]:
    """The names of the funnel's lines: constraints, then ``<objective> finite``."""
    return [c.name for c in problem.constraints] + [f"{o.name} finite" for o in problem.objectives]


def funnel_of(problem: Problem, tally: Tally, *, exact: bool) -> Funnel:
    """Where legal designs were lost. A line that lost none is shown for constraints only."""
    lines = [
        FunnelLine(name, tally.alone[at], tally.in_order[at], exact)
        for at, name in enumerate(loss_names(problem))
        if at < len(problem.constraints) or tally.alone[at]
    ]
    return Funnel(tally.evaluated, tally.failed, tuple(lines), tally.feasible, exact)


def miss_of(
    problem: Problem, index: int | None, design: Design, measured: Mapping[str, float] | None = None
) -> Miss:
    """By how much a design misses its constraints; of those that come first by how much alone, if it misses one."""
    verdict = judge(problem, design, measured)
    told = told_violations(problem, verdict.violations)
    violations = {
        c.name: by for c, by in zip(problem.constraints, told, strict=True) if by is not None and by > 0.0
    }
    first = broken_first(problem, design, measured)
    nearness = sum(first.values()) if first else verdict.nearness
    return Miss(index, design, violations, design_metrics(problem, design, measured), nearness)


def traits_of(problem: Problem, present: list[NDArray[np.bool_]]) -> tuple[Trait, ...]:
    """What all feasible designs share, from which values occur among all of them; dimensions of one value say nothing."""
    traits = []
    for dimension, seen in zip(problem.dimensions, present, strict=True):
        values = np.flatnonzero(seen)
        if len(seen) > 1 and 0 < len(values) < len(seen):
            traits.append(Trait(dimension.name, tuple(dimension.label(int(at)) for at in values), len(seen)))
    return tuple(traits)


def _known(run: ExactRun) -> Archive:
    """The front of a run, with what it found and has not come to."""
    archive, standing = run.tally.archive, run.standing
    if standing is None or not len(standing.values):
        return archive
    fresh = ~archive.dominates(standing.values, or_equal=True)
    both = Archive.from_state(archive.state(), limit=archive.limit)
    both.add(standing.values[fresh], standing.positions[fresh])
    return both


class _Reader:
    """Reads the designs behind a tally's positions."""

    def __init__(self, problem: Problem, team: Team, run: ExactRun) -> None:
        self.problem = problem
        self.team = team
        self.tally = run.tally
        self.archive = _known(run)
        self.hull = Hull(problem, team)

    def _design(self, position: int) -> tuple[int, Design]:
        digits = self.hull.digits_of(position)
        return self.problem.index_of(digits), self.problem.design_at(digits)

    def _miss(self, position: int) -> Miss:
        index, design = self._design(position)
        return miss_of(self.problem, index, design)

    def _front(self) -> tuple[FrontPoint, ...]:
        """In the order of the first objective, best first, then the next."""
        archive, weight = self.archive, self.tally.weight
        archive.check()
        _, positions, ties = archive.to_arrays()
        tied: list[tuple[int, ...]] = [()] * len(positions)
        if archive.keep_ties:
            if int(ties.sum()) * weight > archive.limit:
                raise FrontTooLarge(
                    f"at most {archive.limit:,} tied designs can be listed, but there are "
                    f"{int(ties.sum()) * weight:,}; keep one design per vector"
                )
            tied = [tuple(sorted(self._variants(group, weight))) for group in archive.tied_positions()]
        digits = np.column_stack(list(self.hull.digit_arrays(positions).values()))
        return points_of(self.problem, digits, [count * weight for count in ties.tolist()], tied)

    def _variants(self, positions: Iterable[Any], most: int) -> Iterator[int]:
        """The indices of the designs that those at ``positions`` stand for, of each the ``most`` lowest."""
        sizes, axes = self.problem.sizes, self.hull.axes
        for position in positions:
            digits = list(self.hull.digits_of(position))
            values = itertools.product(*(axes[d].tolist() for d in self.tally.idle))
            for chosen in itertools.islice(values, most):
                for d, value in zip(self.tally.idle, chosen, strict=True):
                    digits[d] = value
                index = 0
                for digit, size in zip(digits, sizes, strict=True):
                    index = index * size + digit
                yield index

    def _best(self) -> tuple[FrontPoint, ...]:
        """The best designs of one objective, with those that others stand for."""
        best = self.tally.best.arrays()
        limit = self.tally.best.limit
        rows = zip(best["keys"].tolist(), best["positions"], strict=True)
        found = sorted((key, index) for key, at in rows for index in self._variants([at], limit))
        digits = [self.problem.digits_of(index) for _, index in found[:limit]]
        return points_of(self.problem, np.array(digits, dtype=np.intp).reshape(-1, len(self.hull.sizes)))

    def _relaxations(self) -> tuple[Relaxation, ...]:
        names = [c.name for c in self.problem.constraints]
        found = []
        for mask, (_, position) in sorted(self.tally.relaxed.items(), key=lambda item: (item[1], item[0])):
            chosen = tuple(name for at, name in enumerate(names) if mask >> at & 1)
            if not told_together(self.problem, chosen):
                continue
            found.append(Relaxation(chosen, self._miss(position)))
        return tuple(found)

    def _accounting(self, complete: bool) -> Accounting:
        tally, total = self.tally, self.problem.size
        outside = total - self.hull.total + tally.outside
        illegal_by: dict[str, int] = {}
        for rule, count in zip(self.problem.rules, tally.illegal, strict=True):
            illegal_by[rule.name] = illegal_by.get(rule.name, 0) + count
        illegal, pruned = sum(illegal_by.values()), sum(tally.pruned.values())
        unvisited = total - outside - illegal - tally.evaluated - pruned
        if complete and unvisited:
            raise RuntimeError(f"{unvisited:,} designs were not accounted for")
        return Accounting(
            total, outside, illegal, tally.evaluated, pruned, unvisited, illegal_by, dict(tally.pruned)
        )

    def _failures(self) -> tuple[tuple[str, int, str], ...]:
        found = []
        for position in self.tally.failures.positions:
            index, design = self._design(position)
            found.append((judge(self.problem, design).reason, index, design_text(self.problem, design)))
        return tuple(found)

    def result(
        self, run: ExactRun, solver: str, *, seed: int, epsilon: float, note: str, clock: Mapping[str, Any]
    ) -> Result:
        tally = self.tally
        complete = run.status == "complete"
        surveyed = complete and tally.feasible > 0 and not tally.beaten  # every feasible design was seen
        nearest = None
        if not tally.feasible and len(tally.nearest.positions):
            nearest = self._miss(tally.nearest.positions[0])
        return Result(
            problem=self.problem,
            team=self.team.name,
            solver=solver,
            promise="epsilon" if epsilon else "exact",
            epsilon=epsilon,
            gap=None if run.standing is None else run.standing.gap,
            status=run.status,
            accounting=self._accounting(complete),
            funnel=funnel_of(self.problem, tally, exact=complete and not tally.pruned),
            front=self._front(),
            nearest_miss=nearest,
            relaxations=() if tally.feasible else self._relaxations(),
            traits=traits_of(self.problem, tally.present) if surveyed else (),
            best=self._best(),
            failures=self._failures(),
            seed=seed,
            n_trials=tally.evaluated,
            note=note,
            certificate=run.certificate,
            run=clock,
            kept=kept_of(self.problem, self.team, tally, complete=complete),
        )
