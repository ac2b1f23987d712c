"""``dse schema``: the JSON Schema of space files."""

from __future__ import annotations

import click

from dse.cli import emit

__all__ = ["command"]


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of space files, for editors.

    With the YAML extension of VS Code: dse schema > dse.schema.json, and put
    "# yaml-language-server: $schema=dse.schema.json" on the first line of the file.
    """
    from dse.space.schema import json_schema

    emit.as_json(json_schema())
