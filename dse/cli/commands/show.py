"""``dse show``: what a space consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dse.cli import emit
from dse.cli.options import code_option, format_option, space_argument

if TYPE_CHECKING:
    from dse.problem import Problem

__all__ = ["command"]


@click.command("show")
@space_argument()
@code_option(default=None)
@click.option("--count", "counted", is_flag=True, help="Count the legal designs of every team, exactly.")
@click.option("--rows", metavar="NAME", help="Only the rows that this input or dimension may name.")
@format_option
def command(
    space: str,
    settings: tuple[tuple[str, str], ...],
    code: bool | None,
    *,
    counted: bool,
    rows: str | None,
    form: str,
) -> None:
    """Show the inputs, dimensions, rules, metrics, objectives, constraints and teams of SPACE.

    No code of the space is run unless --code is given.
    """
    from dse.cli.description import describe, description_lines
    from dse.cli.loading import load_space, not_run

    problem = load_space(space, settings, code=code)
    if rows is not None:
        _tell_rows(problem, rows, form)
        return
    for name in not_run(problem, code):
        emit.note(f"not run: {name}")
    legal: dict[str, int] = {}
    if counted:
        from dse.cli.counting import legal_counts

        legal = legal_counts(problem)
    description = describe(problem, legal)
    if form == "json":
        emit.as_json(description)
    elif form == "csv":
        emit.as_csv(["kind", "name", "value", "unit", "about"], _rows(description))
    else:
        emit.as_lines(description_lines(description))


def _tell_rows(problem: Problem, name: str, form: str) -> None:
    from dse.cli.rows import row_lines, table_rows

    if form == "table":
        emit.as_lines(row_lines(problem, name))
        return
    found = table_rows(problem, name)
    if form == "json":
        emit.as_json(found)
    else:
        emit.as_csv(list(found[0]) if found else [name], found)


def _rows(description: dict[str, Any]) -> list[dict[str, Any]]:
    """The description as flat rows: one for each part of the space."""
    rows = [{"kind": "designs", "name": "all", "value": description["designs"]}]
    for kind in ("inputs", "dimensions", "rules", "lets", "metrics", "objectives", "constraints", "teams"):
        for part in description[kind]:
            value = part["value"]
            text = ", ".join(value) if isinstance(value, list) else value
            about = part.get("because") or part.get("about")
            rows.append(
                {
                    "kind": kind.removesuffix("s"),
                    "name": part["name"],
                    "value": text,
                    "unit": part.get("unit"),
                    "about": about,
                }
            )
    rows += [{"kind": "legal designs", "name": team, "value": n} for team, n in description["legal"].items()]
    return rows
