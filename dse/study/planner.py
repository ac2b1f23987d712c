"""A problem held ready, to answer one question after another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dse.problem import Problem, Team
from dse.problem.library import load
from dse.study.choosing import Choice, check_settings
from dse.study.diagnosis import exact_result
from dse.study.exact import run_exact
from dse.study.result import Result
from dse.study.solver import ExactSolver, Solver
from dse.study.study import search

__all__ = ["Planner"]


class Planner:
    """Answers what the best designs are for given inputs and team, without loading the problem again.

    Args:
        problem: a problem, or what :func:`dse.load` takes.
        solver: the solver of every plan; ``auto`` picks one for each team.
        seed: of solvers that sample.
        n_trials: how many trials a solver that samples may take.
    """

    def __init__(
        self,
        problem: Problem | str | Path,
        *,
        solver: str = "auto",
        seed: int = 0,
        n_trials: int | None = None,
    ) -> None:
        self.problem = problem if isinstance(problem, Problem) else load(problem)
        check_settings(self.problem)
        self.solver = solver
        self.seed = seed
        self.n_trials = n_trials
        self._known: dict[Team, tuple[Solver, str]] = {}

    def plan(self, inputs: Mapping[str, object] | None = None, team: str | Team | None = None) -> Result:
        """The result for these inputs (the others keep their values) and this team.

        Where no design is feasible, its front is empty, ``feasible`` is False and ``nearest_miss`` is the design that
        misses the constraints by least; nothing is raised.

        Args:
            inputs: numbers in base units, or texts such as ``"10 ms"``.

        Raises:
            InputError: an unknown input or team, or a value of another unit.
            SolverRefused: the solver cannot do the problem.
        """
        problem = self.problem.with_inputs(inputs) if inputs else self.problem
        whose = problem.team(team)
        solver, note = self._solver(problem, whose)
        if not isinstance(solver, ExactSolver):
            return search(problem, team=whose, solver=solver.name, seed=self.seed, n_trials=self.n_trials)
        run = run_exact(problem, whose, solver, keep=0, seed=self.seed)
        return exact_result(problem, whose, solver.name, run, seed=self.seed, note=note)

    def _solver(self, problem: Problem, team: Team) -> tuple[Solver, str]:
        """The solver for a team and why; what a solver can do does not depend on inputs."""
        if team not in self._known:
            choice = Choice(problem, team)
            name, note = self.solver, ""
            if name == "auto":
                name, reason = choice.automatic(self.n_trials, sampling=False)
                note = f"auto chose {name}: {reason}"
            self._known[team] = choice.accepted(name), note
        return self._known[team]
