"""What was found: the trials, the result and the tables of a study, read from its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dse.errors import DseError, StudyError
from dse.problem import Problem, Team
from dse.study.claim import Claim
from dse.study.diagnosis import exact_result
from dse.study.driver import TrialRun
from dse.study.exact import ExactRun
from dse.study.legal import LegalDesigns
from dse.study.outputs import design_table, trial_columns, trial_rows
from dse.study.result import FrontPoint, Near, NoFeasibleDesign, Result
from dse.study.sampled import evaluated, sampled_result
from dse.study.solver import SamplingSolver
from dse.study.storage import Storage
from dse.study.trial import Trial, TrialState

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Record"]

_NOTES = {
    "dry": "the search ended early: many random draws found no legal design that was not tried already",
    "skewed": "legal designs are rare here, so some were built one dimension at a time and not drawn evenly",
}
"""Facts of a sampling search that its result tells."""


class Record:
    """The part of a study that is read."""

    problem: Problem
    team: Team
    _claim: Claim
    _storage: Storage
    _legal: LegalDesigns
    _trials: TrialRun | None
    _result: Result | None

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials so far, in order of their numbers; an exact search has none.

        Raises:
            StudyError: the log is damaged.
        """
        if self._trials is not None:
            return tuple(sorted([*self._trials.finished, *self._trials.running], key=lambda t: t.number))
        return tuple(self._storage.trials())

    @property
    def finished(self) -> tuple[Trial, ...]:
        """The finished trials, in order of their numbers."""
        return tuple(trial for trial in self.trials if trial.state is not TrialState.RUNNING)

    @property
    def unfinished(self) -> bool:
        """Whether the outputs in the folder are older than the record: a run was killed, or is under way."""
        return self._storage.unwritten

    @property
    def result(self) -> Result:
        """What is known so far.

        Raises:
            StudyError: nothing was run yet, or the record is damaged.
        """
        if self._result is None:
            self._result = self._read_result()
        return self._result

    def _read_result(self) -> Result:
        if self._claim.solver is None:
            raise StudyError("the study was not run yet")
        if isinstance(self._claim.solver, SamplingSolver):
            return self._sampled({})
        checkpoint = self._storage.checkpoint()
        if checkpoint is None:
            raise StudyError("the study was not run yet, or was stopped before its first checkpoint")
        return self._exact(ExactRun.unpack(self.problem, checkpoint)[0], {})

    def _exact(self, run: ExactRun, clock: Mapping[str, Any]) -> Result:
        settled, near = self._claim.manifest, self._storage.fact("near")
        found = exact_result(
            self.problem,
            self.team,
            settled.solver,
            run,
            seed=settled.seed,
            epsilon=float(settled.options.get("epsilon", 0.0)),
            note=settled.note,
            clock=clock,
        )
        return (
            found if near is None or run.status != "complete" else replace(found, near=Near.from_dict(near))
        )

    def _sampled(self, clock: Mapping[str, Any]) -> Result:
        settled = self._claim.manifest
        finished = self.finished
        told = (text for fact, text in _NOTES.items() if self._storage.fact(fact))
        names = [o.name for o in self.problem.objectives]
        return sampled_result(
            self.problem,
            self.team,
            settled.solver,
            finished,
            legal=self._legal,
            exhausted=bool(self._storage.fact("exhausted")),
            top=settled.top,
            objective=0 if settled.objective is None else names.index(settled.objective),
            seed=settled.seed,
            note="; ".join(note for note in (_all_failed(finished), settled.note, *told) if note),
            clock=clock,
        )

    @property
    def pareto_front(self) -> tuple[FrontPoint, ...]:
        """The non-dominated feasible designs found."""
        return self.result.front

    @property
    def best_trial(self) -> Trial:
        """The feasible trial with the best objective; of equal ones, the design with the lowest index.

        Of an exact search, which has no trials, the best design as a trial of number 0.

        Raises:
            DseError: there are several objectives; use :attr:`pareto_front`.
            NoFeasibleDesign: there is none; carries the nearest miss.
        """
        result = self.result
        if len(self.problem.objectives) > 1:
            raise DseError(
                "best_trial must have one objective to go by, but this problem has "
                f"{', '.join(o.name for o in self.problem.objectives)}; use pareto_front"
            )
        if not result.front:
            raise NoFeasibleDesign(f"no feasible design was found for {self.team.name}", result.nearest_miss)
        point = result.front[0]
        for trial in self.finished:
            if trial.design == point.design:
                return trial
        return evaluated(self.problem, Trial(0, point.design, point.index, TrialState.RUNNING))

    def to_frame(self) -> pd.DataFrame:
        """All trials, or the kept designs of an exact search, as a table; numbers in the declared units."""
        import pandas as pd

        if isinstance(self._claim.solver, SamplingSolver):
            return pd.DataFrame(trial_rows(self.problem, self.trials), columns=trial_columns(self.problem))
        kept = self.result.kept
        return pd.DataFrame({} if kept is None else design_table(self.problem, kept))


def _all_failed(finished: Sequence[Trial]) -> str:
    """What comes first of a search in which nothing worked."""
    reasons = [trial.reason for trial in finished if trial.state is TrialState.FAILED]
    if not reasons or len(reasons) < len(finished):
        return ""
    return f"every design failed{', the first' if len(set(reasons)) > 1 else ''}: {reasons[0]}"
