"""Whose error it is: a plugin's or our own, by the files that a traceback goes through."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

__all__ = ["culprit"]

_KINDS = {"dse.solvers": "solver", "dse.reports": "report", "dse.spaces": "space"}


def culprit(error: BaseException) -> str:
    """``solver 'x' (package.module)`` if an installed plugin of somebody else raised the error, or called what did."""
    from dse.problem.plugins import entry_points

    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    told = "".join(
        traceback.format_exception(error)
    )  # an error in another process brings its traceback as text
    running = {type(frame.f_locals.get("self")) for frame in frames}
    values = {f"{kind.__module__}:{kind.__qualname__}" for kind in running}
    found: dict[str, str] = {}
    for group, kind in _KINDS.items():
        for name, point in entry_points(group).items():
            strange = not point.value.startswith("dse.")
            if strange and any(f'File "{place}' in told for place in _places(point.module)):
                found[f"{kind} {name!r} ({point.module})"] = point.value
    exact = [text for text, value in found.items() if value in values]
    return " or ".join(exact or found)


def _places(module: str) -> list[str]:
    """How the paths of a plugin's own files begin: those of its top-level package, or its only file."""
    found = getattr(sys.modules.get(module.partition(".")[0]), "__file__", None)
    if not found:  # a package without __init__.py, or one that is not loaded
        found = getattr(sys.modules.get(module), "__file__", None)
        return [found] if found else []
    path = Path(found)
    return [f"{path.parent}/"] if path.name == "__init__.py" else [str(path)]
