"""Shell scripts that start an engine: an array of arguments with comments, and the command that takes it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dse.spaces.remarks import one_line

__all__ = ["Argument", "Asked", "quoted", "script"]

_PLAIN = re.compile(r"[A-Za-z0-9 _@%+=:,./-]*")

Argument = tuple[str, str, str]
"""A flag without dashes, its value as the shell takes it ("" for a switch), and a comment ("" for none)."""


def script(
    heading: Iterable[str],
    arguments: Iterable[Argument],
    command: str,
    tail: Iterable[str] = (),
    asked: Sequence[Asked] = (),
) -> str:
    """The script: comments, what is ``asked`` of the environment, the arguments one a line, the rest of the comments, and the command with ``"${ARGS[@]}"``."""
    lines = [
        "#!/bin/bash",
        *map(one_line, heading),
        *(line for one in asked for line in one.before),
        "ARGS=(",
    ]
    for flag, value, comment in arguments:
        word = f"  --{flag} {value}" if value else f"  --{flag}"
        lines.append(f"{word}  # {one_line(comment)}" if comment else word)
    return "\n".join([*lines, ")", *map(one_line, tail), command]) + "\n"


def quoted(value: str | float) -> str:
    """A value as one word of the shell; whole numbers without a point."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return shlex.quote(text)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the environment's ``variable`` says, or else ``default``; without one the script ends and says ``otherwise``.

    ``text`` stands between double quotes of the shell. It needs the assignments ``before``, as a text that is not plain
    cannot be quoted within ``${...}``.
    """

    variable: str
    default: str
    otherwise: str = ""

    @property
    def text(self) -> str:
        """``${VARIABLE:-default}``, with another variable for a default that is not plain."""
        known = self.default or self.otherwise
        inner = known if _PLAIN.fullmatch(known) else f"$DEFAULT_{self.variable}"
        return f"${{{self.variable}{':-' if self.default else ':?'}{inner}}}"

    @property
    def before(self) -> list[str]:
        """The line that sets that other variable; none for a plain text."""
        known = self.default or self.otherwise
        return [] if _PLAIN.fullmatch(known) else [f"DEFAULT_{self.variable}={shlex.quote(known)}"]
