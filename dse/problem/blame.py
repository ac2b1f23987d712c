"""Which file is to blame: what an extending file breaks in the space that it extends is told at its own line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from dse.errors import Diagnostic, Location
from dse.space.nodes import Mapping
from dse.space.reading import Declaration

__all__ = ["ordered"]

_SECTIONS = ("dimensions", "inputs", "tables", "lets", "metrics")


def ordered(declaration: Declaration, errors: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Errors in the order of the files and their lines, the space file's own first.

    One in a file that it extends, and which names something that the space file declares anew, stands there.
    """
    order = {str(file): at for at, file in enumerate(declaration.files)}
    own = str(declaration.path)
    changed = _changed(declaration, own) if declaration.model.extends is not None else {}
    found = [
        _moved(declaration, error, changed) if error.location.file in {*order} - {own} else error
        for error in errors
    ]
    return sorted(
        dict.fromkeys(found),
        key=lambda d: (
            order.get(d.location.file, len(order)),
            d.location.file,
            d.location.line,
            d.location.column,
        ),
    )


def _changed(declaration: Declaration, own: str) -> dict[str, tuple[str, Location]]:
    """What the space file declares, by name: its key and place."""
    found: dict[str, tuple[str, Location]] = {}
    for section in _SECTIONS:
        entries = declaration.root.entries.get(section)
        for name in entries.entries if isinstance(entries, Mapping) else ():
            place = declaration.locate_key((section, name))
            if place.file == own:
                found.setdefault(name, (f"{section}.{name}", place))
    return found


def _moved(
    declaration: Declaration, error: Diagnostic, changed: dict[str, tuple[str, Location]]
) -> Diagnostic:
    try:
        text = declaration.text(tuple(error.key.split(".")))
    except KeyError:
        text = ""
    words = re.findall(r"[\w-]+", f"{error.message} {text} {error.key}")
    named = next((changed[word] for word in words if word in changed), None)
    if named is None:
        return error
    key, place = named
    message = f"does not fit {error.location}: {error.key}: {error.message}"
    return replace(error, location=place, key=key, message=message)
