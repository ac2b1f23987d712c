"""The error tree. Every mistake a user can make is a :class:`DseError`, printed without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Diagnostic",
    "DseError",
    "ExpressionError",
    "InputError",
    "Interrupted",
    "Location",
    "SolverRefused",
    "SpaceError",
    "StudyError",
    "VerificationFailed",
    "nearest",
]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file. ``line`` and ``column`` count from 1; 0 means unknown."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        parts = [self.file or "<input>"]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        return ":".join(parts)

    def shifted(self, offset: int) -> Location:
        """The place ``offset`` columns further right on the same line."""
        return Location(self.file, self.line, self.column + offset if self.column else 0)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: where, which key, what was found and what was expected."""

    location: Location
    key: str
    message: str

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location != Location() else ""
        key = f"{self.key}: " if self.key else ""
        return f"{where}{key}{self.message}"


class DseError(Exception):
    """Base of every error that a user can cause. ``exit_code`` is what the command line returns."""

    exit_code = 2


class InputError(DseError):
    """A value given on the command line or to a function cannot be used."""


class ExpressionError(DseError):
    """An expression cannot be read or does not type-check. ``offset`` counts characters from 0."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class SpaceError(DseError):
    """A space file cannot be used. Carries every diagnostic found, not only the first."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(str(d) for d in self.diagnostics))

    def __reduce__(self) -> tuple[type[SpaceError], tuple[tuple[Diagnostic, ...]]]:
        return (type(self), (self.diagnostics,))


class SolverRefused(DseError):
    """A solver cannot do what was asked; the message names the ones that can."""


class StudyError(DseError):
    """A study folder cannot be used as asked."""


class Interrupted(DseError):
    """The user stopped a search; its state is kept and can be resumed. ``result`` is what it had found, if it is known."""

    exit_code = 3
    result: Any = None


class VerificationFailed(DseError):
    """A stored result does not hold."""

    exit_code = 4


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest spelling, or lists what there is.

    Returns ``"; did you mean 'x'?"``, ``"; known: a, b, c"`` or ``""`` when nothing is known.
    """
    names = [str(k) for k in known]
    folded = {name.casefold(): name for name in reversed(names)}
    close = difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=0.6)
    if close:
        return f"; did you mean {folded[close[0]]!r}?"
    if not names:
        return ""
    shown = ", ".join(names[:8])
    return f"; known: {shown}" + (", ..." if len(names) > 8 else "")
