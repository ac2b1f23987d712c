"""``dse compare``: teams side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dse.cli import emit
from dse.cli.options import code_option, format_option, search_options, space_argument, team_option

if TYPE_CHECKING:
    from dse.study.compare import Comparison

__all__ = ["command"]


@click.command("compare")
@space_argument()
@team_option(multiple=True)
@search_options(out=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write the tables and the plot of the front to this folder.",
)
@format_option
@code_option()
def command(
    space: str,
    *,
    settings: tuple[tuple[str, str], ...],
    teams: tuple[str, ...],
    out: Path | None,
    form: str,
    code: bool,
    **options: Any,
) -> int:
    """Search SPACE once for each team and show the results side by side.

    For a team without a feasible design it says which constraint stands in the way and by how much, and which
    dimensions the team would have to be given. Exits with 1 when no team has a feasible design.
    """
    from dse.cli.comparing import comparison_columns, comparison_data, comparison_lines, comparison_rows
    from dse.cli.loading import load_space, tell_warnings
    from dse.cli.running import run_search
    from dse.study.compare import compare

    problem = load_space(space, settings, code=code)
    tell_warnings(problem)

    def solve(*args: Any, team: str | None, **kept: Any) -> Any:
        return run_search(*args, team=team, label=f"searching {team or 'all'}", **kept)

    comparison = compare(problem, teams or None, solve=solve, **options)
    if form == "json":
        emit.as_json(comparison_data(comparison))
    elif form == "csv":
        emit.as_csv(comparison_columns(problem), comparison_rows(comparison))
    else:
        emit.lines(comparison_lines(comparison))
    if out is not None:
        for path in write_folder(comparison, out):
            emit.note(f"wrote {path}")
    return 0 if comparison.feasible else 1


def write_folder(comparison: Comparison, folder: Path) -> list[Path]:
    """Writes ``teams.csv``, ``front.csv``, ``comparison.json`` and the plot; returns what was written."""
    from dse.cli.comparing import comparison_columns, comparison_data, comparison_rows
    from dse.cli.plotting import render_front
    from dse.study.result import columns, point_row

    problem = comparison.problem
    folder.mkdir(parents=True, exist_ok=True)
    fronts = [
        {"team": row.team, **point_row(problem, point)}
        for row in comparison.rows
        for point in row.result.front
    ]
    texts = {
        "teams.csv": emit.csv_text(comparison_columns(problem), comparison_rows(comparison)),
        "front.csv": emit.csv_text(["team", *columns(problem)], fronts),
        "comparison.json": json.dumps(comparison_data(comparison), indent=1, ensure_ascii=False) + "\n",
    }
    written = []
    for name, text in texts.items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return [*written, *render_front(comparison, folder / "front")]
