"""The peers: public libraries given the same problem, each in a process of its own.

python -m tests.bench.peers '{"peer": "grid", "source": "camera", "evaluations": 100}' prints what one found, as JSON.

They evaluate designs with our evaluators, whole populations at once where the peer can, so that what differs is the
search. One that is not installed is reported as missing.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tests.bench.cases import child, peak
from tests.bench.measuring import Missing
from tests.bench.sources import neutral, problem_of

if TYPE_CHECKING:
    from dse import Problem

WORST = 1e30  # stands for an objective without a finite value


@dataclass(frozen=True, slots=True)
class Found:
    """What a peer found: ``vectors`` (minimized) of its best feasible designs, ``unique`` designs that it evaluated.

    ``evaluating`` are the seconds that our evaluator took of its ``seconds``.
    """

    peer: str
    seconds: float
    evaluating: float
    evaluations: int
    unique: int
    vectors: list[list[float]]
    peak: float

    @property
    def rate(self) -> float:
        """Evaluations per second."""
        return self.evaluations / self.seconds

    def hits(self, front: Sequence[Sequence[float]]) -> int:
        """How many vectors of the true front it found."""
        return len({tuple(v) for v in front} & {tuple(v) for v in self.vectors})


def ask(peer: str, source: str, evaluations: int, limit: float = 120.0, **more: Any) -> Found:
    """What a peer finds: ``grid``, ``bruteforce``, ``tpe``, ``nsga2`` (all Optuna's) or ``pymoo``.

    Args:
        peer: its name.
        source: the problem.
        evaluations: how many designs it may evaluate.
        limit: seconds after which it is stopped.
        more: ``objectives`` that are kept, ``seed``, ``population`` of pymoo.

    Raises:
        Missing: it is not installed, or was stopped.
    """
    request = {"peer": peer, "source": source, "evaluations": evaluations, **more}
    return Found(**child("peers", request, limit))


class Designs:
    """A problem as a peer sees it: value numbers in, minimized objectives and amounts of violation out."""

    def __init__(self, problem: Problem, limit: int | None = None) -> None:
        from dse.evaluation import BulkEvaluator, Judge

        self.problem = problem
        self.limit = limit  # designs that count; a last population may have more
        self.evaluated = 0
        self.seconds = 0.0
        self.names = problem.names
        self.sizes = problem.sizes
        self.judge = Judge(problem)
        self.metrics = BulkEvaluator(problem, self.judge.roots)
        self.rules = BulkEvaluator(problem, [rule.check for rule in problem.rules])
        self.seen: set[tuple[int, ...]] = set()
        self.archive: list[list[float]] = []

    def evaluate(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Objectives (n, k) and violations (n, rules + constraints + 1) of designs (n, dimensions)."""
        from dse.evaluation.verdict import condition_holds

        began = time.perf_counter()
        n = len(rows)
        digits = dict(zip(self.names, np.ascontiguousarray(rows.T), strict=True))
        checks = self.rules.evaluate(digits)
        broken = [~np.broadcast_to(condition_holds(checks[rule.check]), (n,)) for rule in self.problem.rules]
        outcomes = self.judge.evaluate(digits, n, self.metrics)
        good = outcomes.feasible & ~np.any(broken, axis=0) if broken else outcomes.feasible
        left = n if self.limit is None else max(0, min(n, self.limit - self.evaluated))
        self.evaluated += left
        self.seen |= {tuple(row) for row in rows[:left].tolist()}
        self.archive += outcomes.objectives[:left][good[:left]].tolist()
        finite = np.isfinite(outcomes.objectives)
        objectives = np.where(finite, outcomes.objectives, WORST)
        amounts = [*broken, *outcomes.violations.T, outcomes.failed | ~finite.all(axis=1)]
        violations = np.stack([np.asarray(amount, dtype=np.float64) for amount in amounts], axis=1)
        self.seconds += time.perf_counter() - began
        return objectives, np.nan_to_num(violations, nan=1.0, posinf=WORST)

    def best(self) -> list[list[float]]:
        """The vectors of the feasible designs so far that no other beats."""
        from dse.study.dominance import nondominated

        if not self.archive:
            return []
        found = np.unique(np.array(self.archive), axis=0)
        best: list[list[float]] = found[nondominated(found)].tolist()
        return best


def _optuna(make: Callable[[Any, Designs, int], Any], designs: Designs, evaluations: int, seed: int) -> float:
    """Runs a study of Optuna; seconds."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    sampler = make(optuna.samplers, designs, seed)
    k = len(designs.problem.objectives)

    def objective(trial: Any) -> tuple[float, ...]:
        row = [
            trial.suggest_categorical(name, range(size))
            if categorical
            else trial.suggest_int(name, 0, size - 1)
            for (name, size), categorical in zip(axes, ordered, strict=True)
        ]
        values, violations = designs.evaluate(np.array([row]))
        trial.set_user_attr("c", violations[0].tolist())
        return tuple(values[0].tolist())

    axes = list(zip(designs.names, designs.sizes, strict=True))
    ordered = [d.type.kind.name != "NUMBER" for d in designs.problem.dimensions]
    study = optuna.create_study(directions=["minimize"] * k, sampler=sampler)
    began = time.perf_counter()
    study.optimize(objective, n_trials=evaluations)
    return time.perf_counter() - began


def _grid(samplers: Any, designs: Designs, seed: int) -> Any:
    """Optuna lists the whole product at first; it is given as much of it as 20,000 designs, which favours it."""
    kept, product = {}, 1
    for name, size in zip(designs.names, designs.sizes, strict=True):
        kept[name] = list(range(max(1, min(size, 20_000 // product))))
        product *= len(kept[name])
    return samplers.GridSampler(kept, seed=seed)


def _constraints(trial: Any) -> Sequence[float]:
    amounts: Sequence[float] = trial.user_attrs["c"]
    return amounts


_SAMPLERS: dict[str, Callable[[Any, Designs, int], Any]] = {
    "grid": _grid,
    "bruteforce": lambda samplers, _, seed: samplers.BruteForceSampler(seed=seed),
    "tpe": lambda samplers, _, seed: samplers.TPESampler(seed=seed, constraints_func=_constraints),
    "nsga2": lambda samplers, _, seed: samplers.NSGAIISampler(seed=seed, constraints_func=_constraints),
}


def _pymoo(designs: Designs, evaluations: int, seed: int, population: int) -> float:
    """Runs pymoo's NSGA-II over value numbers, the whole population evaluated at once; seconds."""
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.core.problem import Problem as Base
    from pymoo.operators.crossover.sbx import SBX
    from pymoo.operators.mutation.pm import PM
    from pymoo.operators.repair.rounding import RoundingRepair
    from pymoo.operators.sampling.rnd import IntegerRandomSampling
    from pymoo.optimize import minimize

    k = len(designs.problem.objectives)
    amounts = len(designs.problem.rules) + len(designs.problem.constraints) + 1

    class Adapted(Base):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            upper = np.array(designs.sizes) - 1
            super().__init__(n_var=len(upper), n_obj=k, n_ieq_constr=amounts, xl=0, xu=upper, vtype=int)

        def _evaluate(self, x: Any, out: dict[str, Any], *_: Any, **__: Any) -> None:
            out["F"], out["G"] = designs.evaluate(np.asarray(x, dtype=np.int64))

    algorithm = NSGA2(
        pop_size=population,
        sampling=IntegerRandomSampling(),
        crossover=SBX(prob=0.9, eta=3.0, vtype=float, repair=RoundingRepair()),
        mutation=PM(eta=3.0, vtype=float, repair=RoundingRepair()),
        eliminate_duplicates=True,
    )
    began = time.perf_counter()
    minimize(Adapted(), algorithm, ("n_eval", evaluations), seed=seed, verbose=False)
    return time.perf_counter() - began


def found(
    peer: str,
    source: str,
    evaluations: int,
    *,
    objectives: Sequence[str] = (),
    seed: int = 0,
    population: int = 200,
) -> Found:
    """What :func:`ask` asks for, in this process."""
    designs = Designs(problem_of(source, objectives), evaluations)
    if peer == "pymoo":
        seconds = _pymoo(designs, evaluations, seed, min(population, evaluations))
    else:
        seconds = _optuna(_SAMPLERS[peer], designs, evaluations, seed)
    return Found(peer, seconds, designs.seconds, designs.evaluated, len(designs.seen), designs.best(), peak())


def constraint_count(source: str) -> dict[str, Any]:
    """python-constraint2 builds the list of valid configurations of a tuning space; seconds and their number."""
    from constraint import Problem as Constraints

    data = neutral(source)
    began = time.perf_counter()
    problem = Constraints()
    for name, values in data["parameters"].items():
        problem.addVariable(name, values)
    for restriction in data["restrictions"]:
        problem.addConstraint(restriction)
    count = len(problem.getSolutions())
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "count": count, "peak": peak()}


def main() -> None:
    """Prints what was asked for, or why it cannot be."""
    request = json.loads(sys.argv[1])
    try:
        if request["peer"] == "constraint":
            answer = constraint_count(request["source"])
        else:
            answer = asdict(found(**request))
    except ImportError as error:
        answer = {"missing": f"{error.name} is not installed"}
    print(json.dumps(answer))


def shown(answer: Found | Missing, what: str, truth: Sequence[Sequence[float]] = ()) -> str:
    """What a peer did, as the table prints it."""
    if isinstance(answer, Missing):
        return f"{what}: {answer}"
    text = f"{what}: {answer.evaluations:,} evaluations in {answer.seconds:.3g} s ({answer.evaluating:.2g} s evaluating)"
    if truth:
        text += f", {answer.hits(truth):,} of {len(truth):,} of the front"
    return text


def tried(peer: str, source: str, evaluations: int, **more: Any) -> Found | Missing:
    """:func:`ask`, with what keeps a peer from answering as the answer; one that breaks off says why on stderr."""
    try:
        return ask(peer, source, evaluations, **more)
    except Missing as missing:
        return missing
    except subprocess.CalledProcessError as error:
        return Missing(f"broke off with exit code {error.returncode}")


def best(vectors: Sequence[Sequence[float]]) -> float:
    """The lowest first objective; infinite when there is none."""
    return min((vector[0] for vector in vectors), default=math.inf)


if __name__ == "__main__":
    main()
