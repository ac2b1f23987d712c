"""``dse search``: the best designs of a space, and an account of all others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dse.cli import emit
from dse.cli.options import (
    code_option,
    fix_option,
    format_option,
    restricted,
    search_options,
    space_argument,
    team_option,
)
from dse.errors import Interrupted

if TYPE_CHECKING:
    from dse.study.result import Result

__all__ = ["command", "report"]


@click.command("search")
@space_argument()
@team_option()
@fix_option()
@search_options()
@click.option("--top", type=click.IntRange(min=1), metavar="K", help="The K best designs of one objective.")
@click.option("--objective", metavar="NAME", help="With --top: which objective; default: the first.")
@click.option(
    "--ties", is_flag=True, help="List all designs of equal objectives, not only the first of each."
)
@click.option(
    "--within",
    metavar="SHARE",
    help="Of one objective: count the designs that are worse by at most this share, such as '6 percent', and list the "
    "best of them. Default: the error that the space declares for its objective; 0: none.",
)
@click.option(
    "--epsilon",
    type=click.FloatRange(min=0.0, max=1.0, max_open=True),
    metavar="SHARE",
    help="A front found sooner: every feasible design has a point on it that is worse by at most this share in every "
    "objective, such as 0.01.",
)
@click.option(
    "--certificate",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="With --out: why every discarded design is none of the best, for dse verify to prove again; auto (default) "
    "writes it up to a million boxes.",
)
@format_option
@code_option()
def command(space: str, settings: tuple[tuple[str, str], ...], form: str, code: bool, **options: Any) -> int:
    """Find the best designs of SPACE.

    Prints the Pareto front (or the best design, of one objective), how every other design was accounted for, and what
    each constraint rejects. Without a feasible design it says what comes closest and what would help, and exits with 1.
    """
    from dse.cli.loading import load_space, tell_warnings
    from dse.cli.running import run_search

    problem = load_space(space, settings, code=code)
    tell_warnings(problem)
    options["team"] = restricted(options["team"], options.pop("fixed"))
    ranked = options["top"] is not None
    try:
        result = run_search(problem, **options)
    except Interrupted as error:
        if error.result is not None:
            report(
                error.result, form, None, options["objective"], ranked=ranked
            )  # the error says where it is
        raise
    report(result, form, options["out"], options["objective"], ranked=ranked)
    return 0 if result.feasible else 1


def report(
    result: Result, form: str, out: Path | None, objective: str | None = None, *, ranked: bool
) -> None:
    """Print a result in the format that was asked for; its best designs, if ``ranked``, by ``objective``."""
    from dse.cli.near import near_points
    from dse.cli.running import help_for
    from dse.cli.summary import help_data, result_lines
    from dse.study.result import columns, point_row

    problem = result.problem
    helped = help_for(result)
    if form == "json":
        told = result if ranked else replace(result, best=tuple(near_points(result)[1:]))
        emit.as_json({**told.to_dict(), **help_data(*helped), "run": dict(result.run)})
    elif form == "csv":
        points = (result.best if ranked else near_points(result)) or result.front
        ties = points is result.front  # only these have them, in the last column
        names = columns(problem)[: None if ties else -1]
        emit.as_csv(names, [point_row(problem, point) for point in points])
        if not result.feasible:
            emit.note("\n".join(result_lines(result, *helped)))
    else:
        objective = objective or problem.objectives[0].name
        emit.as_lines(result_lines(result, *helped, objective=objective, ranked=ranked))
    facts = result.certificate or {}
    if facts.get("why") and result.status != "stopped":
        emit.note(f"no certificate: {facts['why']}")
    if out is not None:
        resume = f"; go on with dse resume {out}" if result.status == "stopped" else ""
        emit.note(f"kept in {out}{resume}; check with dse verify {out}")
