"""``dse check``: everything wrong with a space file, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dse.cli import emit
from dse.cli.options import code_option, space_argument
from dse.cli.text import paragraph, plural

if TYPE_CHECKING:
    from dse.errors import Diagnostic
    from dse.problem import Problem

__all__ = ["command"]


@click.command("check")
@space_argument()
@code_option(default=None)
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="For people, or as data."
)
def command(space: str, settings: tuple[tuple[str, str], ...], code: bool | None, form: str) -> int:
    """Read SPACE and report everything that is wrong with it, with file, line and column.

    Errors end with exit code 2. Warnings are things that are allowed but hardly meant: they do not change the exit
    code. No code of the space is run unless --code is given, but for the cost function of an installed space that a file
    extends.
    """
    from dse.cli.loading import has_installed_cost, load_space, not_run, warnings_of
    from dse.errors import SpaceError
    from dse.study.findings import findings

    try:
        problem = load_space(space, settings, code=code)
        if code is None and has_installed_cost(problem):
            code = True
            problem = load_space(space, settings, code=code)
        skipped = not_run(problem, code)
        warnings = [*warnings_of(problem), *findings(problem)]
    except SpaceError as error:
        if form != "json":
            click.echo(str(error), err=True)
            click.echo(f"{plural(len(error.diagnostics), 'error')}", err=True)
        else:
            errors = [_plain(diagnostic) for diagnostic in error.diagnostics]
            emit.as_json({"ok": False, "errors": errors, "warnings": [], "not_checked": []})
        return error.exit_code
    if form == "json":
        emit.as_json({"ok": True, "errors": [], "warnings": warnings, "not_checked": skipped})
        return 0
    for warning in warnings:
        emit.note(f"warning: {warning}")
    for name in skipped:
        emit.note(f"not checked: {name}")
    emit.as_lines(paragraph(_summary(problem)))
    return 0


def _summary(problem: Problem) -> str:
    size = (
        f"{plural(len(problem.continuous), 'continuous dimension')}"
        if problem.continuous
        else plural(problem.size, "design")
    )
    parts = [
        plural(len(problem.dimensions), "dimension"),
        plural(len(problem.rules), "rule"),
        plural(len(problem.metrics), "metric"),
        plural(len(problem.objectives), "objective"),
        plural(len(problem.constraints), "constraint"),
        plural(len(problem.teams), "team"),
    ]
    return f"ok: {problem.name}: {size}; {', '.join(parts)}"


def _plain(diagnostic: Diagnostic) -> dict[str, Any]:
    place = diagnostic.location
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "key": diagnostic.key,
        "message": diagnostic.message,
    }
