"""Files of other formats that a space reads: functions under the entry-point group ``dse.imports``, by the format's name.

Such a function takes the path of a file, and returns the content of a space file as plain data and remarks for the
user. It raises :class:`dse.errors.DseError` for what is wrong with the file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from dse.errors import InputError, nearest
from dse.problem.plugins import entry_points

__all__ = ["Importer", "importer"]

GROUP = "dse.imports"

Importer: TypeAlias = Callable[[Path], tuple[dict[str, Any], list[str]]]


def importer(form: str) -> Importer:
    """The function that reads files of a format.

    Raises:
        InputError: there is none (the message has the nearest name), or it cannot be loaded.
    """
    points = entry_points(GROUP)
    if form not in points:
        raise InputError(f"unknown format {form!r}{nearest(form, ['neutral', *points])}")
    try:
        found: Importer = points[form].load()
    except Exception as error:  # importing a plugin runs a stranger's code, which may raise anything
        raise InputError(f"format {form!r} cannot be loaded: {type(error).__name__}: {error}") from error
    return found
