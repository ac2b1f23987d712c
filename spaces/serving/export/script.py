"""Shell scripts that start an engine: an array of arguments with comments, and the command that takes it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

__all__ = ["Argument", "quoted", "script"]

Argument = tuple[str, str, str]
"""A flag without dashes, its value as the shell takes it ("" for a switch), and a comment ("" for none)."""


def script(
    heading: Iterable[str], arguments: Iterable[Argument], command: str, tail: Iterable[str] = ()
) -> str:
    """The script: comments, the arguments one a line, the rest of the comments, and the command with ``"${ARGS[@]}"``."""
    lines = ["#!/bin/bash", *heading, "ARGS=("]
    for flag, value, comment in arguments:
        word = f"  --{flag} {value}" if value else f"  --{flag}"
        lines.append(f"{word}  # {comment}" if comment else word)
    return "\n".join([*lines, ")", *tail, command]) + "\n"


def quoted(value: str | float) -> str:
    """A value as one word of the shell; whole numbers without a point."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return shlex.quote(text)
