"""What is installed: solvers, spaces and reports, found by entry points and loaded one by one when asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dse.errors import InputError, nearest
from dse.problem import Problem, Team
from dse.problem.library import library
from dse.problem.plugins import entry_points
from dse.study.solver import Chooser, Solver

__all__ = ["able", "load_solver", "refusal", "reports", "solvers", "spaces", "unlisted"]


def solvers() -> dict[str, type[Solver]]:
    """The solvers that load, by name. A plugin that does not is left out; :func:`load_solver` says why."""
    found = {}
    for name in entry_points("dse.solvers"):
        try:
            found[name] = type(load_solver(name))
        except InputError:
            continue
    return found


def load_solver(name: str) -> Solver:
    """The solver called ``name``.

    Raises:
        InputError: there is none (the message has the nearest name), or its plugin cannot be loaded.
    """
    points = entry_points("dse.solvers")
    if name not in points:
        raise InputError(f"unknown solver {name!r}{nearest(name, points)}")
    made = _load("solver", name, points[name].load)
    if not (isinstance(made, type) and issubclass(made, Solver)):
        raise InputError(
            f"plugin {name!r} ({points[name].value}) must be a class derived from dse.study.solver.Solver"
        )
    solver: Solver = _load("solver", name, made)
    unknown: set[str] = set(getattr(solver, "needs", ())) - {"bulk", "bounds", "trials"}
    if unknown:
        raise InputError(
            f"solver {name!r} ({points[name].value}) needs {', '.join(sorted(unknown))}; known: bulk, bounds, trials"
        )
    missing = [
        attribute for attribute in ("name", "title", "promise", "needs") if not hasattr(solver, attribute)
    ]
    if missing:
        raise InputError(f"solver {name!r} ({points[name].value}) must declare {', '.join(missing)}")
    return solver


def reports() -> dict[str, Callable[..., Any]]:
    """The reports that load, by name."""
    found: dict[str, Callable[..., Any]] = {}
    for name, point in entry_points("dse.reports").items():
        try:
            found[name] = _load("report", name, point.load)
        except InputError:
            continue
    return found


def spaces() -> dict[str, Path]:
    """The files of the shipped and installed spaces, by name; no code of theirs runs."""
    return library()


def refusal(solver: Solver, problem: Problem, team: Team) -> str | None:
    """Why ``solver`` cannot do the problem: by what it needs, or by its own word; None when it can."""
    reason = unlisted(problem) if "bulk" in solver.needs else None
    return reason or solver.refuse(problem, team)


def unlisted(problem: Problem) -> str | None:
    """Why designs cannot be evaluated in blocks, as solvers with the need ``bulk`` do; None when they can."""
    if problem.continuous:
        return f"dimension {problem.continuous[0]!r} is continuous, so its designs cannot be listed"
    if problem.measured:
        return "its cost is measured one design at a time, not computed"
    return None


def able(problem: Problem, team: Team, promise: str | None = None) -> list[str]:
    """The names of the solvers that can do the problem and, if given, make this promise."""
    return [
        name
        for name, made in solvers().items()
        if not issubclass(made, Chooser)
        and promise in (None, made.promise)
        and refusal(made(), problem, team) is None
    ]


def _load(kind: str, name: str, action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:  # importing a plugin runs a stranger's code, which may raise anything
        raise InputError(f"{kind} {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
