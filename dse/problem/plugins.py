"""Finding plugins by entry points: of installed packages, and of an uninstalled checkout of this one."""

from __future__ import annotations

import importlib.util
from functools import cache
from importlib import metadata
from pathlib import Path

__all__ = ["entry_points", "space_folders"]


@cache
def entry_points(group: str) -> dict[str, metadata.EntryPoint]:
    """The entry points of ``group`` by name, sorted; nothing is imported.

    Our own win over a stranger's of the same name.
    """
    found: dict[str, metadata.EntryPoint] = {}
    for point in (*metadata.entry_points(group=group), *_of_checkout(group)):
        if point.name not in found or point.value.startswith("dse."):
            found[point.name] = point
    return dict(sorted(found.items()))


@cache
def space_folders() -> dict[str, Path]:
    """The folders of installed packages of spaces by name, sorted: our own, also those that only hold data, and those
    of entry points. They are found, not imported.
    """
    found = {
        name: folder for name, point in entry_points("dse.spaces").items() for folder in _folders(point.value)
    }
    for own in _folders("dse.spaces"):
        for path in own.iterdir() if own.is_dir() else ():
            if (path / "__init__.py").is_file():
                found.setdefault(path.name, path)
    return dict(sorted(found.items()))


def _folders(package: str) -> list[Path]:
    """Where a package's files are; empty where it cannot be found."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []


def _of_checkout(group: str) -> list[metadata.EntryPoint]:
    """What ``pyproject.toml`` beside the package declares, for use without installing."""
    project = Path(__file__).resolve().parents[2] / "pyproject.toml"
    if not project.is_file():
        return []
    import tomllib

    declared = tomllib.loads(project.read_text(encoding="utf-8")).get("project", {}).get("entry-points", {})
    return [metadata.EntryPoint(name, value, group) for name, value in declared.get(group, {}).items()]
