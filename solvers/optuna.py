"""Black-box search with Optuna's samplers: TPE, NSGA-II and random.

Every batch rebuilds an Optuna study in memory from the history, so that Optuna keeps nothing of its own and the
study folder is the one record. Constraints reach the sampler as amounts relative to their bounds.
"""

from __future__ import annotations

import copy
import math
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dse.errors import InputError, nearest
from dse.evaluation import evaluate_nodes
from dse.expressions import Kind, Value
from dse.problem import Design, Dimension, Problem, Team
from dse.study.solver import Proposals, SamplingSolver
from dse.study.trial import Trial, TrialState

if TYPE_CHECKING:
    from optuna import Study as OptunaStudy
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial
    from optuna.trial import Trial as OptunaTrial

__all__ = ["Optuna"]

_NEIGHBOURS = 10

_WORST = 1e6
"""The constraint amount of a design that cannot be judged: worse than any infeasible one, by far."""


class Optuna(SamplingSolver):
    """Optuna's samplers over the problem's active dimensions.

    Options:
        sampler: ``tpe`` (default), ``nsga2`` or ``random``.
        n_startup_trials: trials drawn at random before TPE begins (default 10).
        n_ei_candidates: candidates that TPE compares for each proposal (default 24).
        multivariate: whether TPE models dimensions jointly (default true).
        population_size: how many designs NSGA-II breeds from (default 20).
    """

    name = "optuna"
    title = "Black-box sampling with Optuna: TPE, NSGA-II or random; for measured costs and continuous spaces"
    needs = frozenset({"trials"})
    options = frozenset({"sampler", "n_startup_trials", "n_ei_candidates", "multivariate", "population_size"})

    def __init__(self) -> None:
        self._told = _Told()

    def propose(self, proposals: Proposals) -> None:
        """Offer designs that the sampler suggests; where it suggests a known one, offer its unseen neighbours."""
        options = _Options.read(proposals.options)
        self._told = self._told.of(proposals.problem, proposals.team)
        with _quiet():
            _Session(proposals, options, self._told).run()


@dataclass(frozen=True, slots=True)
class _Options:
    sampler: str = "tpe"
    n_startup_trials: int = 10
    n_ei_candidates: int = 24
    multivariate: bool = True
    population_size: int = 20

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> _Options:
        """The options, checked; texts are read as what they stand for.

        Raises:
            InputError: an unknown option, or a value that does not fit.
        """
        known = {field: getattr(cls(), field) for field in cls.__dataclass_fields__}
        read: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                raise InputError(f"solver optuna has no option {name!r}{nearest(name, known)}")
            read[name] = _option(name, value, known[name])
        options = cls(**read)
        if options.sampler not in _SAMPLERS:
            raise InputError(
                f"option sampler cannot be {options.sampler!r}{nearest(options.sampler, _SAMPLERS)}"
            )
        for name, least in {"n_startup_trials": 0, "n_ei_candidates": 1, "population_size": 2}.items():
            if getattr(options, name) < least:
                raise InputError(f"option {name} must be at least {least}, but got {getattr(options, name)}")
        return options


def _option(name: str, value: object, default: object) -> object:
    if isinstance(default, bool):
        if str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
        raise InputError(f"option {name} is true or false, but got {value!r}")
    if isinstance(default, int):
        try:
            return int(str(value))
        except ValueError:
            raise InputError(f"option {name} is a whole number, but got {value!r}") from None
    return str(value).lower()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's log lines and its warnings about experimental arguments."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _tpe(options: _Options, seed: int, conditional: bool) -> BaseSampler:
    from optuna.samplers import TPESampler

    return TPESampler(
        seed=seed,
        n_startup_trials=options.n_startup_trials,
        n_ei_candidates=options.n_ei_candidates,
        multivariate=options.multivariate,
        group=options.multivariate and conditional,
        constant_liar=True,
    )


def _nsga2(options: _Options, seed: int, conditional: bool) -> BaseSampler:
    from optuna.samplers import NSGAIISampler

    return NSGAIISampler(seed=seed, population_size=options.population_size)


def _random(options: _Options, seed: int, conditional: bool) -> BaseSampler:
    from optuna.samplers import RandomSampler

    return RandomSampler(seed=seed)


_SAMPLERS = {"tpe": _tpe, "nsga2": _nsga2, "random": _random}


class _Axis:
    """A dimension as Optuna sees it: the values that the team may choose, in an order that means something.

    Numbers are ranked, so that a step is a step whatever the scale; texts and truth values are categories.
    """

    def __init__(self, dimension: Dimension, digits: Sequence[int]) -> None:
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        self.dimension = dimension
        self.values: list[Value] = [dimension.values[digit] for digit in digits]
        self.ranked = dimension.type.kind is Kind.NUMBER and len(self.values) > 2
        self.distribution: BaseDistribution
        interval = dimension.interval
        if interval is not None:
            self.distribution = FloatDistribution(interval.low, interval.high, log=interval.log)
        elif self.ranked:
            self.values.sort()
            self.distribution = IntDistribution(0, len(self.values) - 1)
        else:
            self.distribution = CategoricalDistribution(list(range(len(self.values))))
        self.places = {value: at for at, value in enumerate(self.values)}

    @property
    def size(self) -> float:
        """How many values there are."""
        return len(self.values) if self.dimension.interval is None else math.inf

    def other(self, value: Value, rng: random.Random) -> Value:
        """Another value: the next one up or down half the time where values are ordered, else any."""
        interval = self.dimension.interval
        if interval is not None:
            return rng.uniform(interval.low, interval.high)
        if len(self.values) == 1:
            return self.values[0]
        at = self.places.get(value, 0)
        if self.ranked and rng.random() < 0.5:
            steps = [near for near in (at - 1, at + 1) if 0 <= near < len(self.values)]
            return self.values[rng.choice(steps)]
        return self.values[(at + rng.randrange(1, len(self.values))) % len(self.values)]

    def suggest(self, trial: OptunaTrial) -> Value:
        """The sampler's choice for this dimension."""
        name, interval = self.dimension.name, self.dimension.interval
        if interval is not None:
            return trial.suggest_float(name, interval.low, interval.high, log=interval.log)
        if self.ranked:
            return self.values[trial.suggest_int(name, 0, len(self.values) - 1)]
        return self.values[trial.suggest_categorical(name, list(range(len(self.values))))]

    def parameter(self, value: Value) -> float | int | None:
        """What Optuna calls a value; None when the team may not choose it."""
        return float(value) if self.dimension.interval is not None else self.places.get(value)


@dataclass
class _Told:
    """The finished trials of one search as Optuna knows them, by number, made once each."""

    problem: Problem | None = None
    team: Team | None = None
    trials: dict[int, tuple[Trial, FrozenTrial]] = field(default_factory=dict)

    def of(self, problem: Problem, team: Team) -> _Told:
        """This, or a new one for another search."""
        return self if problem is self.problem and team is self.team else _Told(problem, team)


class _Session:
    """One batch: the history told, then suggestions until enough are admitted."""

    def __init__(self, proposals: Proposals, options: _Options, told: _Told) -> None:
        import optuna

        self.proposals = proposals
        self.problem = proposals.problem
        self.options = options
        self.rng = random.Random(proposals.random_seed)
        self.axes = _axes(self.problem, proposals.team)
        self.directions = [o.direction for o in self.problem.objectives]
        conditional = any(d.when is not None for d in self.problem.dimensions)
        self.study: OptunaStudy = optuna.create_study(
            directions=self.directions,
            sampler=_SAMPLERS[options.sampler](options, proposals.random_seed, conditional),
        )
        self.worst = _worst(self.problem, proposals.history)
        self.known = told.trials
        if options.sampler != "random":  # which does not look at what was tried
            self.study.add_trials([self._told(trial) for trial in proposals.history])

    def run(self) -> None:
        """Suggest and offer until enough are admitted or too many in a row were not."""
        accepted = refused = 0
        while accepted < self.proposals.wanted and refused < self.proposals.patience:
            trial = self.study.ask()
            design = self._suggest(trial)
            admission = self.proposals.admit(design)
            if admission.accepted:
                accepted, refused = accepted + 1, 0
                continue
            refused += 1
            self._tell_refused(trial, admission.why, admission.violation)
            if admission.why == "repeated" and self.options.sampler != "random":
                for neighbour in self._neighbours(design):
                    admission = self.proposals.admit(neighbour)
                    if admission.accepted:
                        accepted, refused = accepted + 1, 0
                        self._mark(neighbour)
                        break
                    refused += 1

    def _neighbours(self, design: Design) -> Iterator[Design]:
        """A few designs that differ in one dimension (and in those that it makes active or inactive)."""
        movable = [name for name, axis in self.axes.items() if axis.size > 1]
        for _ in range(_NEIGHBOURS if movable else 0):
            changed = self.rng.choice(movable)
            if not self._active(self.axes[changed].dimension, design):
                continue
            neighbour: Design = {}
            for name, axis in self.axes.items():
                if not self._active(axis.dimension, neighbour):
                    neighbour[name] = axis.dimension.values[axis.dimension.otherwise]
                elif name == changed or not self._active(axis.dimension, design):
                    neighbour[name] = axis.other(design[name], self.rng)
                else:
                    neighbour[name] = design[name]
            yield neighbour

    def _mark(self, design: Design) -> None:
        """Let the sampler know that a design is under way."""
        from optuna.trial import TrialState as State
        from optuna.trial import create_trial

        parameters, distributions = self._parameters(design)
        self.study.add_trial(
            create_trial(state=State.RUNNING, params=parameters, distributions=distributions)
        )

    def _tell_refused(self, trial: OptunaTrial, why: str, violation: float) -> None:
        from optuna.trial import TrialState as State

        if why == "repeated":
            self.study.tell(trial, state=State.FAIL)
            return
        trial.set_constraint("legal", _WORST * (1.0 + violation))
        self.study.tell(trial, self.worst)

    def _suggest(self, trial: OptunaTrial) -> Design:
        """A design with the sampler's choice where a dimension is active, and its ``otherwise`` where not."""
        design: Design = {}
        for name, axis in self.axes.items():
            dimension = axis.dimension
            if self._active(dimension, design):
                design[name] = axis.suggest(trial)
            else:
                design[name] = dimension.values[dimension.otherwise]
        return design

    def _active(self, dimension: Dimension, design: Mapping[str, Value]) -> bool:
        if dimension.when is None:
            return True
        return evaluate_nodes(self.problem, design, [dimension.when])[dimension.when] is True

    def _parameters(self, design: Mapping[str, Value]) -> tuple[dict[str, Any], dict[str, BaseDistribution]]:
        parameters: dict[str, Any] = {}
        distributions: dict[str, BaseDistribution] = {}
        for name, axis in self.axes.items():
            if self._active(axis.dimension, design):
                parameter = axis.parameter(design[name])
                if parameter is not None:
                    parameters[name], distributions[name] = parameter, axis.distribution
        return parameters, distributions

    def _told(self, trial: Trial) -> FrozenTrial:
        """A finished trial as Optuna knows it; one without finite objectives depends on the rest of the history."""
        finite = bool(trial.objectives) and all(map(math.isfinite, trial.objectives))
        if finite:
            before = self.known.get(trial.number)
            if before is not None and before[0] is trial:
                return before[1]
        made = self._frozen(trial)
        if finite:
            self.known[trial.number] = (trial, made)
        return made

    def _frozen(self, trial: Trial) -> FrozenTrial:
        from optuna.trial import create_trial

        parameters, distributions = self._parameters(trial.design)
        made = create_trial(
            params=parameters,
            distributions=distributions,
            values=[
                v if math.isfinite(v) else w
                for v, w in zip(trial.objectives or self.worst, self.worst, strict=True)
            ],
            constraints=_amounts(self.problem, trial),
            system_attrs={"NSGAIISampler:generation": 0},
        )
        # Optuna deep-copies what it is told. Nothing changes a finished trial but its number, so a shallow copy does.
        made.__dict__["__deepcopy__"] = lambda _: copy.copy(made)
        return made


def _axes(problem: Problem, team: Team) -> dict[str, _Axis]:
    hull = team.hull(problem.sizes)
    return {d.name: _Axis(d, digits) for d, digits in zip(problem.dimensions, hull, strict=True)}


def _worst(problem: Problem, history: Sequence[Trial]) -> list[float]:
    """Per objective the worst finite value seen, for designs that have none."""
    worst = []
    for at, objective in enumerate(problem.objectives):
        seen = [t.objectives[at] for t in history if t.objectives and math.isfinite(t.objectives[at])]
        worst.append((max if objective.direction == "minimize" else min)(seen, default=0.0))
    return worst


def _amounts(problem: Problem, trial: Trial) -> dict[str, float]:
    """By how much a trial breaks each constraint, relative to its bound; at most 0 where it holds."""
    if trial.state is TrialState.FAILED:
        return {"judged": _WORST}
    amounts = {}
    for constraint, violation in zip(problem.constraints, trial.violations, strict=True):
        amount = 0.0
        if violation > 0.0:
            bound = constraint.bound
            measured = {n: v for n, v in trial.metrics.items() if isinstance(v, float)}
            limit = evaluate_nodes(problem, trial.design, [bound.rhs], measured)[bound.rhs]
            scale = abs(limit) if isinstance(limit, float) and 0.0 < abs(limit) < math.inf else 1.0
            amount = min(max(violation / scale, 1e-300), _WORST)
        amounts[constraint.name] = amount
    for objective, value in zip(problem.objectives, trial.objectives, strict=True):
        if math.isinf(value):
            amounts[f"{objective.name} finite"] = _WORST
    return amounts
