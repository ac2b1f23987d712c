"""``dse plot``: the Pareto front, or a design along a dimension, as pictures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dse.cli import emit
from dse.cli.options import FILE, PAIR, code_option, search_options, space_argument, team_option

if TYPE_CHECKING:
    from dse.study.compare import Comparison
    from dse.study.result import Result

__all__ = ["command"]


@click.command("plot")
@space_argument()
@click.argument("values", nargs=-1, type=PAIR, metavar="[DIMENSION=VALUE]...")
@team_option(multiple=True)
@search_options(out=False)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="FILE",
    help="Where to; an ending .png, .svg, .pdf or .html draws that format only, and a folder gets NAME-front. "
    "Default: NAME-front, and with --along NAME-DIMENSION.",
)
@click.option(
    "--along",
    metavar="DIMENSION",
    help="Draw one design along a dimension, all else fixed: that of the values given, or the best one with them.",
)
@click.option(
    "--ridge",
    metavar="METRIC,METRIC",
    help="With --along: mark where these cross. Default: where the largest part of a metric that is drawn changes.",
)
@click.option("--x", metavar="NAME", help="What the horizontal axis shows: a metric, a constraint or index.")
@click.option(
    "--y",
    "shown",
    multiple=True,
    metavar="NAME",
    help="What the vertical axis shows. Default: each pair of objectives. With --along a metric; repeatable.",
)
@code_option()
def command(
    space: str,
    *,
    settings: tuple[tuple[str, str], ...],
    values: tuple[tuple[str, str], ...],
    teams: tuple[str, ...],
    output: Path | None,
    along: str | None,
    ridge: str | None,
    x: str | None,
    shown: tuple[str, ...],
    code: bool,
    **options: Any,
) -> int:
    """Draw the Pareto front of SPACE, or of a run that dse search --out kept in a folder.

    A space is searched first, once for each of its teams. Infeasible designs are dimmed, constraints are lines, and in
    the HTML file the pointer shows each design.

    With --along, metrics are drawn against a dimension, with their limits and the ridge: where compute overtakes memory,
    say.
    """
    if along is not None:
        if x is not None or len(teams) > 1:
            raise click.UsageError("--along takes no --x, and at most one --team")
        asked = _Asked(along, ridge, shown, dict(values), teams[0] if teams else None)
        return _along(space, settings, asked, output, code=code, **options)
    if values or ridge is not None or len(shown) > 1:
        raise click.UsageError("dimensions' values, --ridge and several --y go with --along DIMENSION")
    y = shown[0] if shown else None
    return _front(space, settings, teams, output, axes=(x, y), code=code, **options)


def _front(
    space: str,
    settings: tuple[tuple[str, str], ...],
    teams: tuple[str, ...],
    output: Path | None,
    *,
    axes: tuple[str | None, str | None],
    code: bool,
    **options: Any,
) -> int:
    """Draws the front; the command's exit code."""
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
        for path in render_front(shown, output, x=axes[0], y=axes[1]):
            emit.note(f"wrote {path}")
    if not shown.feasible:
        emit.as_lines(_nothing(shown))
    return 0 if shown.feasible else 1


@dataclass(frozen=True, slots=True)
class _Asked:
    """What ``--along`` and the options that go with it ask for."""

    along: str
    ridge: str | None
    metrics: tuple[str, ...]
    values: dict[str, str]
    team: str | None


def _along(
    space: str,
    settings: tuple[tuple[str, str], ...],
    asked: _Asked,
    output: Path | None,
    *,
    code: bool,
    **options: Any,
) -> int:
    """Draws a design along a dimension, and tells its points; the command's exit code."""
    from dse.cli.folder import writable
    from dse.cli.going import along_lines, design_along, read_pair
    from dse.cli.loading import is_run, load_space, tell_warnings
    from dse.cli.options import restricted
    from dse.cli.plotting import render
    from dse.cli.running import run_search
    from dse.evaluation import State
    from dse.study.along import along
    from dse.study.study import Study

    found: Result | None = None
    if is_run(space):
        if settings or asked.team or asked.values:
            raise click.UsageError("a finished run is drawn as it is; --set, --team and values need a space")
        found = Study.open(Path(space), code=code).result
        problem = found.problem
    else:
        problem = load_space(space, settings, code=code)
        tell_warnings(problem)

    def solve() -> Result:
        if found is not None:
            return found
        return run_search(problem, team=restricted(asked.team, list(asked.values.items())), **options)

    design, remark = design_along(problem, asked.along, asked.values, solve)
    pair = read_pair(asked.ridge)
    gone = along(problem, asked.along, design, asked.metrics, ridge=pair)
    output = output or Path()
    if output.is_dir():
        output /= f"{problem.name}-{asked.along}"
    with writable(output.parent):
        emit.as_lines(along_lines(gone, remark, pair))
        for path in render("along", gone, output):
            emit.note(f"wrote {path}")
    return 0 if any(point.state is State.FEASIBLE for point in gone.points) else 1


def _nothing(shown: Comparison | Result) -> list[str]:
    """Why there is no front in the picture."""
    from dse.cli.comparing import comparison_lines
    from dse.cli.running import help_for
    from dse.cli.summary import result_lines
    from dse.study.compare import Comparison

    if isinstance(shown, Comparison):
        return comparison_lines(shown)
    return result_lines(shown, *help_for(shown))
