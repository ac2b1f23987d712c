"""A table of figures of one's own as a space: ``dse import --from camera-published FILE.csv -o mine.yaml``.

The space extends the shipped one, so that own figures stand beside the published ones; each source, or what the column
``benchmark`` says, is a benchmark of its own, whose figures are not compared with those of others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dse.errors import Diagnostic, Location, SpaceError

from .figures import Figure, read_figures, slug, tables

__all__ = ["PUBLISHED", "read_space"]

PUBLISHED = Path(__file__).with_name("published.csv")


def read_space(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The space of a file of figures, as the content of a space file, and what to tell of it.

    Raises:
        SpaceError: the file is no such table, or has no figure that is not shipped already.
    """
    read = read_figures(path)
    shipped = read_figures(PUBLISHED).rows
    known = {(figure.source, figure.latency, figure.accuracy) for figure in shipped}
    own = [row for row in read.rows if (row.source, row.latency, row.accuracy) not in known]
    told = [f"{count} left out: {why}" for why, count in sorted(read.skipped.items())]
    if len(own) < len(read.rows):
        told.append(f"{len(read.rows) - len(own)} left out: published figures that the space has already")
    if not own:
        reasons = "; ".join(told) or "it has no rows"
        message = f"found no figure to add ({reasons}), expected rows with a latency and an accuracy"
        raise SpaceError([Diagnostic(Location(str(path)), "", message)])
    homes = {row.device: row.benchmark for row in shipped}
    own = [_apart(row, homes) for row in own]
    return _space(path, own, shipped), [f"{len(own)} {'figure' if len(own) == 1 else 'figures'}", *told]


def _apart(row: Figure, homes: Mapping[str, str]) -> Figure:
    """A figure whose device is not taken for one of another benchmark."""
    home = homes.get(row.device, row.benchmark)
    return row if home == row.benchmark else replace(row, device=f"{row.device}-{row.benchmark}")


def _space(path: Path, own: Sequence[Figure], shipped: Sequence[Figure]) -> dict[str, Any]:
    before, added = tables(shipped), tables(own)
    rows: dict[str, dict[str, Any]] = {
        name: {row: _cells(cells) for row, cells in found.items() if row not in before[name]}
        for name, found in added.items()
    }
    known = {row.benchmark for row in shipped}
    names = dict.fromkeys(row.benchmark for row in own)
    rows["benchmarks"] = {name: _benchmark(own, name) for name in names if name not in known}
    rows["latencies"] = _nested((row, row.latency) for row in own)
    rows["accuracies"] = _nested((row, row.accuracy) for row in own)
    rows["sizes"] = _nested((row, row.size) for row in own if row.size is not None)
    return {
        "dse": 1,
        "name": slug(path.stem) or "figures",
        "title": f"Object detector on a camera, from {path.name}",
        "extends": "camera-published",
        "inputs": {"benchmark": {"default": Counter(row.benchmark for row in own).most_common(1)[0][0]}},
        "tables": {name: {"rows": found} for name, found in rows.items() if found},
    }


def _cells(cells: Sequence[object]) -> list[object]:
    return [int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in cells]


def _benchmark(own: Sequence[Figure], name: str) -> list[object]:
    """What the teams of a benchmark are given: the detector and the plain device and format with most figures."""
    figures = [row for row in own if row.benchmark == name]
    (detector, _), *_ = Counter(row.detector for row in figures).most_common(1)
    ((device, plain), _), *_ = Counter((row.device, row.format) for row in figures).most_common(1)
    of = "each format" if any(row.on_device for row in figures) else "the model"
    return [detector, device, plain, plain, f"{figures[0].source}; mAP of {of}"]


def _nested(cells: Any) -> dict[str, dict[str, dict[str, float]]]:
    """Cells by detector, device and format."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row, value in cells:
        found.setdefault(row.detector, {}).setdefault(row.device, {})[row.format] = value
    return found
