"""``dse list``: the shipped spaces."""

from __future__ import annotations

import click

from dse.cli import emit
from dse.cli.options import format_option
from dse.cli.text import aligned, count

__all__ = ["command"]


@click.command("list")
@format_option
def command(form: str) -> None:
    """The spaces that come with dse or with installed plugins, with title and size."""
    from dse.cli.loading import load_space
    from dse.errors import DseError
    from dse.problem.library import library

    rows = []
    for name, path in library().items():
        try:
            problem = load_space(name, (), code=None)
        except DseError as error:
            emit.note(f"{name}: cannot be read: {error}")
            continue
        size = None if problem.continuous else problem.size
        rows.append({"name": name, "designs": size, "title": problem.title, "path": str(path)})
    if form == "json":
        emit.as_json(rows)
    elif form == "csv":
        emit.as_csv(["name", "designs", "title", "path"], rows)
    else:
        cells = [[str(row["name"]), _size(row["designs"]), str(row["title"])] for row in rows]
        emit.as_lines(aligned([["space", "designs", "title"], *cells], right={1}))


def _size(size: object) -> str:
    return count(size) if isinstance(size, int) else "continuous"
