"""``dse solvers``: what is installed to search with."""

from __future__ import annotations

import click

from dse.cli import emit
from dse.cli.options import format_option
from dse.cli.text import wrapped

__all__ = ["command"]


@click.command("solvers")
@format_option
def command(form: str) -> None:
    """The installed solvers: what each promises, and what it needs of a problem.

    An exact solver accounts for every design; a sampling solver tries some. A plugin that cannot be loaded is named
    on standard error.
    """
    from dse.errors import DseError
    from dse.problem.plugins import entry_points
    from dse.study.registry import load_solver

    rows = []
    for name, point in entry_points("dse.solvers").items():
        try:
            solver = load_solver(name)
        except DseError as error:
            emit.note(f"broken plugin {name} ({point.value}): {error}")
            continue
        needs = sorted(solver.needs)
        rows.append(
            {"name": name, "promise": str(solver.promise), "needs": " ".join(needs), "title": solver.title}
        )
    if form == "json":
        emit.as_json(rows)
    elif form == "csv":
        emit.as_csv(["name", "promise", "needs", "title"], rows)
    else:
        cells = [[str(row[key]) for key in ("name", "promise", "needs", "title")] for row in rows]
        emit.as_lines(wrapped([["solver", "promise", "needs", "title"], *cells], header=True))
