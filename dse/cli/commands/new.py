"""``dse new``: a starter file that explains itself."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import click

from dse.cli import emit

__all__ = ["command", "starter"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def starter(name: str, file: str) -> str:
    """The text of a starter space file called ``name``, to be written to ``file``."""
    template = files("dse.cli").joinpath("starter.yaml").read_text(encoding="utf-8")
    return template.replace("@NAME@", name).replace("@FILE@", file)


@click.command("new")
@click.argument("name")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Default: NAME.yaml.",
)
def command(name: str, output: Path | None) -> None:
    """Write a commented starter space file called NAME.

    The file is complete: it passes dse check, and dse search finds its best designs. Change it piece by piece.
    """
    if not _NAME.fullmatch(name):
        raise click.UsageError(
            f"a name has letters, digits, - and _ and begins with a letter, but got {name!r}"
        )
    path = output or Path(f"{name}.yaml")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(starter(name, str(path)))
    except FileExistsError:
        raise click.UsageError(f"{path} exists already; give another name with -o FILE") from None
    emit.note(f"wrote {path}; next: dse check {path}, dse search {path}")
