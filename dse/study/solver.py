"""What a solver is: one class, found by the entry-point group ``dse.solvers``.

A solver declares what it needs and what it promises. An exact solver implements :meth:`ExactSolver.explore`, and
accounts for every design in the tally it is handed. A sampling solver implements :meth:`SamplingSolver.propose`, a
function of the history, and never runs anything: the driver evaluates, retries, logs and resumes for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from dse.problem import Design, Problem, Team

if TYPE_CHECKING:
    from dse.study.certificate import Recorder
    from dse.study.gap import Standing
    from dse.study.tally import Tally
    from dse.study.trial import Trial

__all__ = [
    "Admission",
    "Chooser",
    "ExactSearch",
    "ExactSolver",
    "Need",
    "Proposals",
    "SamplingSolver",
    "Solver",
    "State",
]


Need: TypeAlias = Literal["bulk", "bounds", "trials"]
"""What a solver needs: designs evaluated in blocks, bounds over boxes, or only one design at a time."""


State: TypeAlias = Mapping[str, Any] | Callable[[], Mapping[str, Any]]
"""Where a search stands, in JSON values; or what gives it, where that is much work."""


class Solver(ABC):
    """Base of all solvers: what one needs of a problem, and what it promises of its front."""

    name: ClassVar[str]
    title: ClassVar[str]
    promise: ClassVar[Literal["exact", "sampling", "as chosen"]]
    needs: ClassVar[frozenset[Need]]
    options: ClassVar[frozenset[str]] = frozenset()
    """The names of the options that it takes; others are refused."""

    def refuse(self, problem: Problem, team: Team) -> str | None:
        """Why this solver cannot do this problem, in a sentence; None when it can."""
        return None


def _unheard(state: State, done: float) -> None:
    """Where ticks go when nobody listens."""


@dataclass
class ExactSearch:
    """What an exact solver works with.

    ``tally`` collects what is found; ``state`` is what the solver last passed to :meth:`tick`, when it resumes;
    ``workers`` how many processes it may use; ``options`` the solver's own options; ``certificate`` takes down every
    discarded box, when that is wanted.
    """

    problem: Problem
    team: Team
    tally: Tally
    state: Mapping[str, Any] | None = None
    workers: int = 1
    on_tick: Callable[[State, float], None] = field(default=_unheard)
    certificate: Recorder | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def tick(self, state: State, done: float) -> None:
        """Call often, when ``tally`` and ``state`` (JSON values) together say where the search stands.

        ``state`` may be a function that gives it, called at once or not at all before the next tick. ``done`` is the
        share of the space accounted for, 0 to 1. May save a checkpoint; may raise to stop.
        """
        self.on_tick(state, done)

    def restart(self, state: Mapping[str, Any]) -> None:
        """Forget what was tallied, and go on from ``state``."""
        self.tally = type(self.tally)(self.problem, **self.tally.options)
        self.state = state


class Chooser(Solver):
    """No search of its own: it picks the solver for a problem, and says why."""

    promise = "as chosen"
    needs = frozenset()

    @abstractmethod
    def choose(self, problem: Problem, team: Team, n_trials: int | None = None) -> tuple[str, str]:
        """The name of the solver for this problem, and the reason; ``n_trials`` is the budget, if there is one."""


class ExactSolver(Solver):
    """A solver that accounts for every design."""

    promise = "exact"

    @abstractmethod
    def explore(self, search: ExactSearch) -> None:
        """Account for every design of ``search.team`` in ``search.tally``, from ``search.state`` on."""

    def standing(self, search: ExactSearch) -> Standing | None:
        """After :meth:`explore` was stopped: what is known beyond the tally; None when that is nothing."""
        return None


@dataclass(frozen=True, slots=True)
class Admission:
    """What the driver says of a proposal; ``why`` is ``illegal``, ``outside``, ``repeated`` or ``""`` if accepted."""

    accepted: bool
    why: str = ""
    violation: float = 0.0


@dataclass(frozen=True)
class Proposals:
    """What a sampling solver knows when it is asked for a batch.

    ``history`` holds every finished trial in order of trial number; ``random_seed`` is derived from the study's seed
    and the batch number; ``admit`` takes a proposal into the batch, or says why not. The solver returns when
    ``wanted`` proposals are accepted or ``admit`` has rejected :attr:`patience` in a row; the driver fills up with
    unseen legal designs drawn uniformly.
    """

    problem: Problem
    team: Team
    history: Sequence[Trial]
    wanted: int
    random_seed: int
    admit: Callable[[Design], Admission]
    options: Mapping[str, Any] = field(default_factory=dict)
    patience: int = 100


class SamplingSolver(Solver):
    """A solver that proposes designs to try."""

    promise = "sampling"

    @abstractmethod
    def propose(self, proposals: Proposals) -> None:
        """Offer designs to ``proposals.admit`` until enough are accepted.

        Must be a function of ``proposals`` alone: the same history and seed, the same offers.
        """
