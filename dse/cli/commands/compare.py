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
    from dse.study.limitmap import LimitMap
    from dse.study.result import Result

__all__ = ["command"]

_MARKER = "comparison.json"
_MAP_MARKER = "map.json"


@click.command("compare")
@space_argument()
@team_option(multiple=True)
@search_options(out=False)
@click.option(
    "--map",
    "mapped",
    multiple=True,
    metavar="LIMIT[=LOW:HIGH[:POINTS]]",
    help="Show for which values of one or two limits each team succeeds, such as --map max_latency=1:100ms "
    "--map min_accuracy. Without a range, one that shows all borders.",
)
@results_options("Write the tables and the plot of the front, or of the map, to this folder.")
@format_option
@code_option()
def command(
    space: str,
    *,
    settings: tuple[tuple[str, str], ...],
    teams: tuple[str, ...],
    mapped: tuple[str, ...],
    out: Path | None,
    force: bool,
    form: str,
    code: bool,
    **options: Any,
) -> int:
    """Search SPACE once for each team and show the results side by side.

    For a team without a feasible design it says which constraint stands in the way and by how much, and which
    dimensions the team would have to be given. Exits with 1 when no team has a feasible design.

    With --map, a limit is an input that constraints compare metrics with. One search for each team finds the exact border
    of where it succeeds; a limit that a rule or a metric reads too takes a search for each point.
    """
    from contextlib import nullcontext

    from dse.cli.comparing import comparison_data, comparison_lines, comparison_rows
    from dse.cli.folder import writable
    from dse.cli.loading import distinct, load_space, tell_warnings
    from dse.cli.running import run_search
    from dse.study.compare import compare
    from dse.study.limitmap import limit_map

    problem = load_space(space, settings, code=code)
    tell_warnings(problem)

    def solve(problem: Problem, team: str | None) -> Result:
        return run_search(problem, team=team, label=f"searching {team or problem.everything.name}", **options)

    marker = _MAP_MARKER if mapped else _MARKER
    place = nullcontext() if out is None else writable(out, marker, problem.name, force=force)
    with place:
        if mapped:
            return _map(limit_map(problem, mapped, distinct(teams), solve=solve), form, out)
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


def _map(found: LimitMap, form: str, out: Path | None) -> int:
    """Shows a map over limits, and writes it; the command's exit code."""
    from dse.cli.mapping import border_columns, border_rows, map_data, map_lines, map_rows
    from dse.cli.plotting import render
    from dse.study.files import csv_text, write_atomic

    emit.in_form(
        form, lines=lambda: map_lines(found), rows=lambda: map_rows(found), data=lambda: map_data(found)
    )
    if out is not None:
        cells = map_rows(found)
        texts = {"map.csv": csv_text(list(cells[0]), cells), _MAP_MARKER: emit.json_text(map_data(found))}
        if found.bordered:
            texts["borders.csv"] = csv_text(border_columns(found), border_rows(found))
        for name, text in texts.items():
            write_atomic(out / name, text)
        for path in [*(out / name for name in texts), *render("limits", found, out / "map")]:
            emit.note(f"wrote {path}")
    return 0 if any(team.succeeds.any() for team in found.teams) else 1


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
