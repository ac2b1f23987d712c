"""``dse plot``: the Pareto front as pictures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dse.cli import emit
from dse.cli.options import FILE, code_option, search_options, space_argument, team_option

if TYPE_CHECKING:
    from dse.study.compare import Comparison
    from dse.study.result import Result

__all__ = ["command"]


@click.command("plot")
@space_argument()
@team_option(multiple=True)
@search_options(out=False)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Where to; an ending .png, .svg, .pdf or .html draws that format only, and a folder gets NAME-front. "
    "Default: NAME-front.",
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
    from dse.cli.folder import writable
    from dse.cli.loading import distinct, is_run, load_space, tell_warnings
    from dse.cli.plotting import render_front
    from dse.cli.running import run_search
    from dse.study.compare import compare
    from dse.study.study import Study

    study = None
    if is_run(space):
        if settings or teams:
            raise click.UsageError("a finished run is drawn as it is; --set and --team need a space")
        study = Study.open(Path(space), code=code)
        problem = study.problem
    else:
        problem = load_space(space, settings, code=code)
        tell_warnings(problem)
    output = output or Path()
    if output.is_dir():
        output /= f"{problem.name}-front"
    with writable(output.parent):
        shown: Comparison | Result
        if study is not None:
            shown = study.result
        elif problem.teams or teams:
            shown = compare(problem, distinct(teams), solve=partial(run_search, **options))
        else:
            shown = run_search(problem, **options)
        for path in render_front(shown, output, x=x, y=y):
            emit.note(f"wrote {path}")
    if not shown.feasible:
        emit.as_lines(_nothing(shown))
    return 0 if shown.feasible else 1


def _nothing(shown: Comparison | Result) -> list[str]:
    """Why there is no front in the picture."""
    from dse.cli.comparing import comparison_lines
    from dse.cli.running import help_for
    from dse.cli.summary import result_lines
    from dse.study.compare import Comparison

    if isinstance(shown, Comparison):
        return comparison_lines(shown)
    return result_lines(shown, *help_for(shown))
