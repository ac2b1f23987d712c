"""``dse explain``: the cost of one design, term by term."""

from __future__ import annotations

from pathlib import Path

import click

from dse.cli import emit
from dse.cli.options import FILE, PAIR, code_option, space_argument

__all__ = ["command"]

LONG = 400
"""Lines of formulas that are printed without being asked for."""


@click.command("explain")
@space_argument()
@click.argument("values", nargs=-1, type=PAIR, metavar="DIMENSION=VALUE...")
@click.option(
    "--team", metavar="TEAM", help="Take what this team fixes; say so if it may not choose the design."
)
@click.option("--index", type=int, metavar="N", help="The design with this index, instead of its values.")
@click.option(
    "--plan",
    type=FILE,
    metavar="FILE",
    help="The design that a file runs, such as a launch line; then also what a search with the same inputs finds. "
    "Values and --set stand in place of what the file says.",
)
@click.option(
    "--measured",
    multiple=True,
    type=PAIR,
    metavar="METRIC=VALUE",
    help="What a measured metric is of this design, such as latency='8 ms'. Repeatable.",
)
@click.option("--full", is_flag=True, help=f"All formulas, even where they take more than {LONG} lines.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="For people, or as data."
)
@code_option()
def command(
    space: str,
    *,
    settings: tuple[tuple[str, str], ...],
    values: tuple[tuple[str, str], ...],
    team: str | None,
    index: int | None,
    plan: Path | None,
    measured: tuple[tuple[str, str], ...],
    full: bool,
    form: str,
    code: bool,
) -> int:
    """Take one design of SPACE apart: every let and metric with its unit, and which branch of each max or min won.

    Every dimension needs a value, except those that --team fixes to one value and conditional ones that are not
    active. Exits with 1 unless the design is feasible.
    """
    from dse.cli.designing import complete, numbers
    from dse.cli.loading import load_space
    from dse.cli.tree import explanation_data, explanation_lines
    from dse.evaluation import member
    from dse.evaluation.explain import explain

    if plan is not None:
        if index is not None or measured:
            raise click.UsageError("--plan goes with neither --index nor --measured")
        return _of_plan(space, settings, plan, dict(values), team, form=form, code=code)
    problem = load_space(space, settings, code=code)
    if index is not None:
        if values:
            raise click.UsageError("give the design by its values or by --index, not both")
        design = problem.design_at(problem.digits_of(index))
    else:
        design = complete(problem, dict(values), team)
    explanation = explain(problem, design, numbers(problem, dict(measured)))
    if form == "json":
        emit.as_json(explanation_data(problem, explanation))
    else:
        lines = explanation_lines(problem, explanation)
        if len(lines) > LONG and not full:
            emit.note(f"{len(lines):,} lines of formulas are left out; --full prints them")
            lines = explanation_lines(problem, explanation, formulas=False)
        emit.as_lines(lines)
    if team is not None and not member(problem, problem.team(team), design):
        emit.note(f"outside: team {team} may not choose this design")
        return 1
    return 0 if explanation.feasible else 1


def _of_plan(
    space: str,
    settings: tuple[tuple[str, str], ...],
    path: Path,
    values: dict[str, str],
    team: str | None,
    *,
    form: str,
    code: bool,
) -> int:
    """Takes apart the design that a file runs, and compares it with what a search finds."""
    from dse.cli.planning import check_plan, plan_data, plan_lines

    checked = check_plan(space, settings, path, values, team, code=code)
    if form == "json":
        emit.as_json(plan_data(checked))
    else:
        emit.as_lines(plan_lines(checked))
    return 0 if checked.explanation.feasible else 1
