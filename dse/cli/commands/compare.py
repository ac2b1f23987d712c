"""``dse compare``: teams side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dse.cli import emit
from dse.cli.options import (
    code_option,
    format_option,
    results_options,
    search_options,
    space_argument,
    team_option,
)

if TYPE_CHECKING:
    from dse.problem import Problem
    from dse.study.compare import Comparison
    from dse.study.result import Result

__all__ = ["command"]

_MARKER = "comparison.json"


@click.command("compare")
@space_argument()
@team_option(multiple=True)
@search_options(out=False)
@results_options("Write the tables and the plot of the front to this folder.")
@format_option
@code_option()
def command(
    space: str,
    *,
    settings: tuple[tuple[str, str], ...],
    teams: tuple[str, ...],
    out: Path | None,
    force: bool,
    form: str,
    code: bool,
    **options: Any,
) -> int:
    """Search SPACE once for each team and show the results side by side.

    For a team without a feasible design it says which constraint stands in the way and by how much, and which
    dimensions the team would have to be given. Exits with 1 when no team has a feasible design.
    """
    from contextlib import nullcontext

    from dse.cli.comparing import comparison_data, comparison_lines, comparison_rows
    from dse.cli.folder import writable
    from dse.cli.loading import distinct, load_space, tell_warnings
    from dse.cli.running import run_search
    from dse.study.compare import compare

    problem = load_space(space, settings, code=code)
    tell_warnings(problem)

    def solve(problem: Problem, team: str | None) -> Result:
        return run_search(problem, team=team, label=f"searching {team or 'all'}", **options)

    place = nullcontext() if out is None else writable(out, _MARKER, problem.name, force=force)
    with place:
        comparison = compare(problem, distinct(teams), solve=solve)
        emit.in_form(
            form,
            lines=lambda: comparison_lines(comparison),
            rows=lambda: comparison_rows(comparison),
            data=lambda: comparison_data(comparison),
        )
        if out is not None:
            for path in write_folder(comparison, out):
                emit.note(f"wrote {path}")
    return 0 if comparison.feasible else 1


def write_folder(comparison: Comparison, folder: Path) -> list[Path]:
    """Writes ``teams.csv``, ``front.csv``, ``comparison.json`` and the plot; returns what was written.

    Raises:
        StudyError: a file cannot be written.
    """
    from dse.cli.comparing import comparison_data, comparison_rows, front_columns, front_rows
    from dse.cli.plotting import render_front
    from dse.study.files import csv_text, write_atomic

    teams = comparison_rows(comparison)
    texts = {
        "teams.csv": csv_text(list(teams[0]), teams),
        "front.csv": csv_text(front_columns(comparison), front_rows(comparison)),
        _MARKER: emit.json_text(comparison_data(comparison)),
    }
    for name, text in texts.items():
        write_atomic(folder / name, text)
    return [*(folder / name for name in texts), *render_front(comparison, folder / "front")]
