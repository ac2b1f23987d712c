"""``dse plot``: the Pareto front as pictures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from dse.cli import emit
from dse.cli.options import code_option, search_options, space_argument, team_option

__all__ = ["command"]


@click.command("plot")
@space_argument()
@team_option(multiple=True)
@search_options(out=False)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to; an ending .png, .svg, .pdf or .html draws that format only. Default: NAME-front.",
)
@click.option("--x", metavar="NAME", help="What the horizontal axis shows: a metric, a constraint or index.")
@click.option("--y", metavar="NAME", help="What the vertical axis shows. Default: each pair of objectives.")
@code_option()
def command(
    space: str,
    *,
    settings: tuple[tuple[str, str], ...],
    teams: tuple[str, ...],
    output: Path | None,
    x: str | None,
    y: str | None,
    code: bool,
    **options: Any,
) -> int:
    """Draw the Pareto front of SPACE, or of a run that dse search --out kept in a folder.

    A space is searched first, once for each of its teams. Infeasible designs are dimmed, constraints are lines, and in
    the HTML file the pointer shows each design.
    """
    from dse.cli.loading import is_run, load_space
    from dse.cli.plotting import render_front
    from dse.cli.running import run_search
    from dse.study.compare import compare
    from dse.study.study import Study

    shown: Any
    if is_run(space):
        if settings or teams:
            raise click.UsageError("a finished run is drawn as it is; --set and --team need a space")
        shown = Study.open(Path(space), code=code).result
        feasible, name = shown.feasible, shown.problem.name
    else:
        problem = load_space(space, settings, code=code)
        name = problem.name
        if problem.teams or teams:
            shown = compare(problem, list(dict.fromkeys(teams)), solve=partial(run_search, **options))
        else:
            shown = run_search(problem, **options)
        feasible = shown.feasible
    for path in render_front(shown, output or Path(f"{name}-front"), x=x, y=y):
        emit.note(f"wrote {path}")
    return 0 if feasible else 1
