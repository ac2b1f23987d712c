"""From what the user typed to a problem and a search; the imports that cost time are in here."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dse.cli.emit import note

if TYPE_CHECKING:
    from dse.problem import Problem

__all__ = [
    "check_run",
    "distinct",
    "has_installed_cost",
    "is_run",
    "load_space",
    "not_run",
    "solver_options",
    "tell_warnings",
    "warnings_of",
]


def load_space(space: str, settings: Sequence[tuple[str, str]], *, code: bool | None = True) -> Problem:
    """The problem of a shipped space or a file, with its settings.

    ``code`` None leaves Python code alone and loads what can be had without it, but for rows of tables that the settings
    ask to read from a path; False refuses a space with code.
    """
    from dse.errors import InputError
    from dse.problem.library import load

    if not space.strip():
        raise InputError("the space is empty; give a YAML file or the name of a shipped space")
    if Path(space).is_dir():
        hint = "a run: use dse resume, verify or plot" if is_run(space) else "a folder"
        raise InputError(f"{space!r} is {hint}, but a space is a YAML file or the name of a shipped space")
    path = Path(space)
    if len(path.parts) > 1 and not path.parent.is_dir():
        raise InputError(f"there is no file {space!r}: the folder {str(path.parent)!r} does not exist")
    problem = load(space, settings, code=code)
    if code is False and (names := _code(problem)):
        raise InputError(f"{space!r} runs code ({', '.join(names)}), which --no-code refuses")
    return problem


def _code(problem: Problem) -> list[str]:
    """What of a problem is code: a Python cost function, a measuring program or function."""
    found = []
    if problem.cost:
        found.append(f"cost {problem.cost}")
    if problem.measurement is not None:
        found.append(f"measure {problem.measurement.function or shlex.join(problem.measurement.command)}")
    return found


def not_run(problem: Problem, code: bool | None) -> list[str]:
    """What a command that only looks at a space leaves alone, and who runs it."""
    found = _code(problem)
    if code:
        found = found[1:] if problem.cost else found
    return [
        f"{name}: {'only a search runs it' if name.startswith('measure ') else '--code imports it'}"
        for name in found
    ]


def has_installed_cost(problem: Problem) -> bool:
    """Whether the cost function is that of an installed space which the problem's own file extends."""
    from dse.problem.library import library

    files = {str(path) for path in library().values()}
    place = problem.locations.get("cost")
    return bool(problem.cost) and place is not None and place.file in files and problem.source not in files


def is_run(path: str | Path) -> bool:
    """Whether a path is a folder that a search was kept in."""
    return (Path(path) / "manifest.json").is_file()


def check_run(path: Path) -> None:
    """Makes sure that a path is a run.

    Raises:
        InputError: it is not.
    """
    from dse.errors import InputError

    if not is_run(path):
        what = (
            "has no manifest.json"
            if path.is_dir()
            else "does not exist"
            if not path.exists()
            else "is no folder"
        )
        raise InputError(f"{path} {what}; a run is a folder that dse search --out FOLDER wrote")


def distinct(teams: Sequence[str]) -> list[str]:
    """The teams, each once."""
    return list(dict.fromkeys(team.strip() for team in teams))


def solver_options(sampler: str | None, extra: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
    """The options for a solver; values are read as YAML scalars."""
    from dse.space.scalars import read_plain

    options: dict[str, Any] = {name: read_plain(text) for name, text in extra}
    if sampler is not None:
        options["sampler"] = sampler
    return options


def warnings_of(problem: Problem) -> list[str]:
    """The problem's warnings but for the one on code that was left alone, which :func:`not_run` tells."""
    skipped = f"the cost function {problem.cost} was not imported"
    return [warning for warning in problem.warnings if not warning.startswith(skipped)]


def tell_warnings(problem: Problem) -> None:
    """The problem's warnings, as notes."""
    for warning in warnings_of(problem):
        note(f"warning: {warning}")
