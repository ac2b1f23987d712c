"""Finding plugins by entry points: of installed packages, and of an uninstalled checkout of this one."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from pathlib import Path

__all__ = ["entry_points"]


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


def _of_checkout(group: str) -> list[metadata.EntryPoint]:
    """What ``pyproject.toml`` beside the package declares, for use without installing."""
    project = Path(__file__).resolve().parents[2] / "pyproject.toml"
    if not project.is_file():
        return []
    import tomllib

    declared = tomllib.loads(project.read_text(encoding="utf-8")).get("project", {}).get("entry-points", {})
    return [metadata.EntryPoint(name, value, group) for name, value in declared.get(group, {}).items()]
