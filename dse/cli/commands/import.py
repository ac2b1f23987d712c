"""``dse import``: a file of another format as a space file."""

from __future__ import annotations

from pathlib import Path

import click

from dse.cli import emit

__all__ = ["command"]

_LIMIT = 4 * 1024 * 1024


@click.command("import")
@click.option(
    "--from",
    "form",
    default="neutral",
    show_default=True,
    metavar="FORMAT",
    help="Its format: neutral, or one that a space reads, such as camera-published.",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    help="The space file to write; - (the default) is standard output.",
)
def command(form: str, file: Path, output: str) -> None:
    """Turn FILE, a space in another format, into a space file.

    neutral: JSON with parameters and restrictions in Python's syntax, or with dims, tables, formulas, constraints and
    objectives to minimize. camera-published: a CSV of detectors' latencies and accuracies on devices.
    """
    from dse.errors import Diagnostic, Location, SpaceError
    from dse.problem.builder import build
    from dse.problem.library import library
    from dse.problem.neutral import read_neutral
    from dse.problem.plugins import space_folders
    from dse.space.document import read_text
    from dse.space.reading import load_declaration
    from dse.space.writing import as_yaml
    from dse.study.imports import importer

    told: list[str] = []
    if form == "neutral":
        data = read_neutral(read_text(file, _LIMIT, "split the file"), str(file))
    else:
        data, told = importer(form)(file)
    text = as_yaml(data)
    try:
        declaration = load_declaration(Path(output), text=text, resolve=library().get, packages=space_folders)
        problem = build(declaration, code=False)
    except SpaceError as error:
        found = [Diagnostic(Location(str(file)), d.key, d.message) for d in error.diagnostics]
        raise SpaceError(found) from None
    for line in told:
        emit.note(line)
    if output == "-":
        click.echo(text, nl=False)
        return
    try:
        with Path(output).open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise click.UsageError(f"{output} exists already; give another name with -o FILE") from None
    emit.note(f"wrote {output} ({problem.name}); next: dse show --count {output}")
