"""From the trials of a sampling search to a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from dse.evaluation import Outcomes, judge
from dse.evaluation.gates import told_together
from dse.problem import Design, Problem, Team
from dse.study.accounting import Accounting
from dse.study.diagnosis import design_metrics, funnel_of, miss_of, traits_of
from dse.study.identity import Coder
from dse.study.legal import LegalDesigns
from dse.study.result import FrontPoint, Kept, Miss, Relaxation, Result, design_text
from dse.study.tally import Tally
from dse.study.trial import Trial, TrialState

__all__ = ["evaluated", "measured_of", "sampled_result"]

_STATES = {"COMPLETE": TrialState.COMPLETE, "INFEASIBLE": TrialState.INFEASIBLE, "FAILED": TrialState.FAILED}


def evaluated(problem: Problem, trial: Trial, measured: Mapping[str, float] | None = None) -> Trial:
    """``trial``, finished: judged by the scalar reference, with the measured metrics in base units."""
    verdict = judge(problem, trial.design, measured)
    return Trial(
        trial.number,
        trial.design,
        trial.index,
        _STATES[verdict.state.value],
        trial.batch,
        verdict.objectives,
        verdict.violations,
        design_metrics(problem, trial.design, measured),
        verdict.reason,
    )


def measured_of(problem: Problem, trial: Trial) -> dict[str, float] | None:
    """What was measured for a finished trial, in base units; None when nothing is."""
    found = {}
    for name, metric in problem.metrics.items():
        value = trial.metrics.get(name)
        if metric.measured and isinstance(value, float):
            found[name] = value
    return found or None


def sampled_result(
    problem: Problem,
    team: Team,
    solver: str,
    trials: Sequence[Trial],
    *,
    legal: LegalDesigns,
    exhausted: bool,
    top: int = 0,
    objective: int = 0,
    seed: int = 0,
    note: str = "",
    clock: Mapping[str, Any] | None = None,
) -> Result:
    """The result of finished ``trials``; whatever their order, the same."""
    status: Literal["exhausted", "stopped"] = "exhausted" if exhausted else "stopped"
    result = _Trials(problem, legal, trials, top, objective).result(team, solver, status)
    return replace(result, seed=seed, note=note, run=clock or {})


class _Trials:
    """Trials in the order of their designs' indices (their numbers where there are none), tallied."""

    def __init__(
        self, problem: Problem, legal: LegalDesigns, trials: Sequence[Trial], top: int, objective: int
    ) -> None:
        self.problem = problem
        self.legal = legal
        self.trials = sorted(trials, key=lambda t: t.number if t.index is None else t.index)
        self.digits = _digits(legal.coder, self.trials)
        self.outcomes = self._outcomes()
        self.tally = Tally(problem, top=top, objective=objective)
        positions = np.arange(len(self.trials), dtype=np.int64)
        columns = {name: self.digits[:, at] for at, name in enumerate(problem.names)}
        self.tally.add(positions, self.outcomes, columns)

    def _outcomes(self) -> Outcomes:
        n, k, c = len(self.trials), len(self.problem.objectives), len(self.problem.constraints)
        signs = np.array([o.sign for o in self.problem.objectives])
        objectives, violations, nearness = np.zeros((n, k)), np.zeros((n, c)), np.zeros(n)
        failed = np.array([t.state is TrialState.FAILED for t in self.trials], dtype=np.bool_)
        feasible = np.array([t.state is TrialState.COMPLETE for t in self.trials], dtype=np.bool_)
        for at, trial in enumerate(self.trials):
            if not failed[at]:
                objectives[at] = np.array(trial.objectives) * signs + 0.0
                violations[at] = trial.violations
                if not feasible.any():
                    measured = measured_of(self.problem, trial)
                    nearness[at] = judge(self.problem, trial.design, measured).nearness
        infinite = np.isposinf(objectives)
        return Outcomes(objectives, violations, infinite, nearness, failed, feasible)

    def _point(self, position: int, ties: int = 1) -> FrontPoint:
        trial = self.trials[position]
        objectives = {o.name: v for o, v in zip(self.problem.objectives, trial.objectives, strict=True)}
        return FrontPoint(trial.index, trial.design, objectives, trial.metrics, ties)

    def _miss(self, position: int) -> Miss:
        trial = self.trials[position]
        return miss_of(self.problem, trial.index, trial.design, measured_of(self.problem, trial))

    def _relaxations(self) -> tuple[Relaxation, ...]:
        names = [c.name for c in self.problem.constraints]
        found = sorted(self.tally.relaxed.items(), key=lambda item: (item[1], item[0]))
        sets = [
            (tuple(name for at, name in enumerate(names) if mask >> at & 1), at) for mask, (_, at) in found
        ]
        return tuple(
            Relaxation(chosen, self._miss(position))
            for chosen, position in sets
            if told_together(self.problem, chosen)
        )

    def _accounting(self) -> Accounting:
        evaluated = len(self.trials)
        census = self.legal.census()
        if census is None:  # a continuous space has no size
            return Accounting(evaluated, evaluated=evaluated)
        unvisited = census.total - census.outside - census.illegal - evaluated
        return Accounting(
            census.total, census.outside, census.illegal, evaluated, 0, unvisited, census.illegal_by
        )

    def _kept(self) -> Kept:
        signs = np.array([o.sign for o in self.problem.objectives])
        found = self.outcomes
        n = len(self.trials)
        objectives = np.where(found.failed[:, None], np.nan, found.objectives * signs + 0.0)
        return Kept(self.digits, objectives, found.violations, found.feasible, found.failed, n, complete=True)

    def result(self, team: Team, solver: str, status: Literal["exhausted", "stopped"]) -> Result:
        tally = self.tally
        tally.archive.check()
        _, positions, ties = tally.archive.to_arrays()
        nearest = None
        if not tally.feasible and len(tally.nearest.positions):
            nearest = self._miss(int(tally.nearest.positions[0]))
        failures = [self.trials[int(position)] for position in tally.failures.positions]
        return Result(
            problem=self.problem,
            team=team.name,
            solver=solver,
            promise="sampling",
            status=status,
            accounting=self._accounting(),
            funnel=funnel_of(self.problem, tally, exact=status == "exhausted"),
            front=tuple(self._point(int(p), int(count)) for p, count in zip(positions, ties, strict=True)),
            nearest_miss=nearest,
            relaxations=() if tally.feasible else self._relaxations(),
            traits=traits_of(self.problem, tally.present) if status == "exhausted" else (),
            best=tuple(self._point(int(position)) for position in tally.best.positions),
            failures=tuple((t.reason, _number(t), self._text(t.design)) for t in failures),
            n_trials=len(self.trials),
            kept=self._kept(),
        )

    def _text(self, design: Design) -> str:
        return design_text(self.problem, design)


def _number(trial: Trial) -> int:
    return trial.number if trial.index is None else trial.index


def _digits(coder: Coder, trials: Sequence[Trial]) -> np.ndarray[tuple[int, int], np.dtype[np.intp]]:
    """Value numbers, shape (n, dimensions); 0 where a dimension is continuous."""
    digits = np.zeros((len(trials), len(coder.problem.dimensions)), dtype=np.intp)
    for at, trial in enumerate(trials):
        key = coder.key(trial.design)
        digits[at] = [
            0 if d.interval is not None else int(part)
            for d, part in zip(coder.problem.dimensions, key, strict=True)
        ]
    return digits
