"""What a search found, and how sure it is."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from dse.errors import DseError
from dse.problem import Design, Problem, shown
from dse.study.accounting import Accounting, Funnel
from dse.study.breakdown import Beyond, Share, beyond_record, breakdowns
from dse.study.gap import Gap
from dse.units import format_value, from_base

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

__all__ = [
    "FrontPoint",
    "Kept",
    "Miss",
    "Near",
    "NoFeasibleDesign",
    "Relaxation",
    "Result",
    "Trait",
    "design_text",
    "number",
]


def number(value: float) -> float | str:
    """A float for JSON, which has no infinities or NaN: those are the texts ``inf``, ``-inf`` and ``nan``."""
    return value if math.isfinite(value) else str(value)


def design_text(problem: Problem, design: Design) -> str:
    """``detector=Det-L format=int8-QAT ...``: a design as the command line takes it."""
    return " ".join(f"{d.name}={_quoted(shown(design[d.name], d.unit))}" for d in problem.dimensions)


def _quoted(text: str) -> str:
    return f"'{text}'" if " " in text else text


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """A design of the front: the one with the lowest index among ``ties`` designs of equal objectives.

    ``objectives`` and ``metrics`` are in base units; ``tied`` lists the indices of all tied designs when asked for.
    """

    index: int | None
    design: Design
    objectives: Mapping[str, float]
    metrics: Mapping[str, float | bool | str | None]
    ties: int = 1
    tied: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Miss:
    """An infeasible design and by how much it misses: violations per constraint in base units, those above zero."""

    index: int | None
    design: Design
    violations: Mapping[str, float]
    metrics: Mapping[str, float | bool | str | None]
    nearness: float


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A smallest set of constraints that, relaxed by ``miss.violations``, makes a design feasible."""

    constraints: tuple[str, ...]
    miss: Miss


@dataclass(frozen=True, slots=True)
class Trait:
    """What every feasible design has in common in one dimension: the only values that occur."""

    dimension: str
    values: tuple[str, ...]
    of: int

    @property
    def text(self) -> str:
        """``hardware = npu``, or ``format is one of int8-PTQ, int8-QAT (2 of 5)``."""
        if len(self.values) == 1:
            return f"{self.dimension} = {self.values[0]}"
        return f"{self.dimension} is one of {', '.join(self.values)} ({len(self.values)} of {self.of})"


@dataclass(frozen=True, slots=True)
class Near:
    """The feasible designs whose objective is within ``share`` of the best, itself among them.

    ``bound`` is the worst objective that is, in base units. There are ``count`` of them, or ``more`` than that, or at
    ``least`` so many where counting was stopped. ``shared`` is what all have in common, where all are known; ``listed``
    are the indices of some that are not the best, in order of the objective.
    """

    share: float
    bound: float
    count: int
    counted: Literal["exact", "more", "least"]
    shared: tuple[Trait, ...]
    listed: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "share": self.share,
            "bound": self.bound,
            "count": self.count,
            "counted": self.counted,
            "shared": [{"dimension": t.dimension, "values": list(t.values), "of": t.of} for t in self.shared],
            "listed": list(self.listed),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Near:
        """What :meth:`to_dict` gave."""
        shared = tuple(Trait(t["dimension"], tuple(t["values"]), t["of"]) for t in data["shared"])
        return cls(
            data["share"], data["bound"], data["count"], data["counted"], shared, tuple(data["listed"])
        )


@dataclass(frozen=True)
class Kept:
    """The evaluated designs that were kept: all of ``seen``, or (not ``complete``) a seeded uniform sample.

    ``digits`` (n, dimensions) value numbers; ``objectives`` (n, objectives) in base units as declared; ``violations``
    (n, constraints) in base units; ``feasible`` and ``failed`` (n,).
    """

    digits: NDArray[np.intp]
    objectives: NDArray[np.float64]
    violations: NDArray[np.float64]
    feasible: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    seen: int
    complete: bool

    @classmethod
    def later(cls, find: Callable[[], Kept], seen: int, complete: bool) -> Kept:
        """Designs that ``find`` gives when they are first looked at."""
        kept = cls.__new__(cls)
        kept.__dict__.update(_find=find, seen=seen, complete=complete)
        return kept

    def __getattr__(self, name: str) -> Any:
        find = None if name.startswith("__") else self.__dict__.pop("_find", None)
        if find is None:
            raise AttributeError(name)
        self.__dict__.update(vars(find()))
        return getattr(self, name)


class NoFeasibleDesign(DseError):
    """No design meets the constraints. ``nearest_miss`` is the design that comes closest, if there is one."""

    exit_code = 1

    def __init__(self, message: str, nearest_miss: Miss | None = None) -> None:
        super().__init__(message)
        self.nearest_miss = nearest_miss


@dataclass(frozen=True, repr=False)
class Result:
    """The outcome of one search.

    ``status`` is ``complete`` (every design accounted for), ``exhausted`` (a sampling solver evaluated every legal
    design) or ``stopped`` (by a budget or the user). ``promise`` is what holds of the front: ``exact``,
    ``epsilon`` (every feasible design y has a point f of the front with f <= y + epsilon * abs(y) in each minimized
    objective) or ``sampling``. ``gap`` is how far a stopped search may be from that. ``best`` are the best designs of one objective when asked for (``top``). ``certificate`` says, of a
    search that discards boxes, in which ``file`` of the study it proves them, their number and its ``sha256``; or
    ``why`` there is none. ``near`` are the designs that a cost model cannot tell from the best. ``run`` holds clock, host and rates, and is no part of the canonical output.
    """

    problem: Problem
    team: str
    solver: str
    promise: Literal["exact", "epsilon", "sampling"]
    status: Literal["complete", "exhausted", "stopped"]
    accounting: Accounting
    funnel: Funnel
    front: tuple[FrontPoint, ...]
    nearest_miss: Miss | None = None
    relaxations: tuple[Relaxation, ...] = ()
    traits: tuple[Trait, ...] = ()
    best: tuple[FrontPoint, ...] = ()
    near: Near | None = None
    failures: tuple[tuple[str, int, str], ...] = ()
    seed: int = 0
    n_trials: int = 0
    note: str = ""
    epsilon: float = 0.0
    gap: Gap | None = None
    certificate: Mapping[str, Any] | None = None
    run: Mapping[str, Any] = field(default_factory=dict, compare=False)
    kept: Kept | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        found = f"{len(self.front)} on the front, {self.funnel.feasible} feasible, {self.funnel.legal} legal"
        return f"<Result {self.problem.name}/{self.team}: {found}; {self.solver}, {self.status}>"

    @property
    def feasible(self) -> bool:
        """Whether any feasible design was found."""
        return bool(self.front)

    @property
    def so_far(self) -> str:
        """What hedges a claim about all designs: " so far" after a search that was stopped."""
        return " so far" if self.status == "stopped" else ""

    @property
    def best_point(self) -> FrontPoint:
        """The best design of a single-objective search.

        Raises:
            DseError: there are several objectives; use ``front``.
            NoFeasibleDesign: there is none; carries the nearest miss.
        """
        if len(self.problem.objectives) > 1:
            raise DseError("best_point is defined for one objective; this problem has several: use front")
        if not self.front:
            raise NoFeasibleDesign(f"no feasible design for {self.team}", self.nearest_miss)
        return self.front[0]

    @property
    def breakdown(self) -> tuple[Share, ...]:
        """Of one objective: what the metrics with parts are made of in the best design."""
        one = len(self.problem.objectives) == 1 and self.front
        return breakdowns(self.problem, self.front[0].metrics) if one else ()

    @property
    def beyond_record(self) -> tuple[Beyond, ...]:
        """The metrics that designs of the front predict past the best ever measured."""
        return beyond_record(self.problem, self.front)

    def metric_text(self, name: str, value: float | bool | str | None) -> str:
        """A metric's value in its declared unit, for people."""
        if value is None:
            return "-"
        return (
            format_value(value, self.problem.metrics[name].unit) if isinstance(value, float) else shown(value)
        )

    def rows(self) -> list[dict[str, Any]]:
        """The front as rows: index, dimensions, metrics in their declared unit (``latency [ms]``), ties."""
        return [point_row(self.problem, point) for point in self.front]

    def to_frame(self) -> pd.DataFrame:
        """The front as a table; see :meth:`rows`."""
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=columns(self.problem))

    def to_dict(self) -> dict[str, Any]:
        """The canonical JSON object; the same for the same problem, solver, seed and version."""
        problem = self.problem
        return {
            "problem": {"name": problem.name, "digest": problem.digest},
            "inputs": {name: _plain(i.value) for name, i in problem.inputs.items()},
            "team": self.team,
            "solver": self.solver,
            "promise": self.promise,
            "status": self.status,
            "seed": self.seed,
            "n_trials": self.n_trials,
            "objectives": {o.name: o.direction for o in problem.objectives},
            "accounting": self.accounting.to_dict(),
            "funnel": self.funnel.to_dict(),
            "front": [self._point(point) for point in self.front],
            "best": [self._point(point) for point in self.best],
            "near": None if self.near is None else self.near.to_dict(),
            "breakdown": [share.to_dict() for share in self.breakdown],
            "beyond_record": [beyond.to_dict() for beyond in self.beyond_record],
            "nearest_miss": None if self.nearest_miss is None else self._miss(self.nearest_miss),
            "relaxations": [
                {"constraints": list(r.constraints), "by": self._miss(r.miss)} for r in self.relaxations
            ],
            "traits": [{"dimension": t.dimension, "values": list(t.values), "of": t.of} for t in self.traits],
            "failures": [
                {"reason": why, "index": index, "design": text} for why, index, text in self.failures
            ],
            "note": self.note,
            "epsilon": self.epsilon,
            "gap": None if self.gap is None else self.gap.to_dict(),
            "certificate": None if self.certificate is None else dict(self.certificate),
        }

    def to_json(self, *, run: bool = True) -> str:
        """:meth:`to_dict` as text, with the ``run`` section unless told otherwise."""
        data = self.to_dict()
        if run:
            data["run"] = dict(self.run)
        return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def _point(self, point: FrontPoint) -> dict[str, Any]:
        data: dict[str, Any] = {
            "index": point.index,
            "design": {name: _plain(value) for name, value in point.design.items()},
            "objectives": {name: number(value) for name, value in point.objectives.items()},
            "metrics": {name: _plain(value) for name, value in point.metrics.items()},
            "ties": point.ties,
        }
        if point.tied:
            data["tied"] = list(point.tied)
        return data

    def _miss(self, miss: Miss) -> dict[str, Any]:
        return {
            "index": miss.index,
            "design": {name: _plain(value) for name, value in miss.design.items()},
            "violations": {name: number(value) for name, value in miss.violations.items()},
            "metrics": {name: _plain(value) for name, value in miss.metrics.items()},
            "nearness": number(miss.nearness),
        }


def _plain(value: float | bool | str | None) -> float | bool | str | None:
    return number(value) if isinstance(value, float) else value


def columns(problem: Problem) -> list[str]:
    """The column names of :func:`point_row`; a dimension or metric of the same name keeps its own."""
    units = {name: metric.unit for name, metric in problem.metrics.items()}
    metrics = [name if unit.text == "1" else f"{name} [{unit.text}]" for name, unit in units.items()]
    named = {*problem.names, *metrics}
    index, ties = (name if name not in named else f"design {name}" for name in ("index", "ties"))
    return [index, *problem.names, *metrics, ties]


def point_row(problem: Problem, point: FrontPoint) -> dict[str, Any]:
    """A front point as one flat row; numbers in the metric's declared unit."""
    choices = [d.plain(point.design[d.name]) for d in problem.dimensions]
    values = [
        from_base(value, metric.unit) if type(value := point.metrics.get(name)) is float else value
        for name, metric in problem.metrics.items()
    ]
    return dict(zip(columns(problem), [point.index, *choices, *values, point.ties], strict=True))
