"""What the benchmarks share: lines held against bars, the table they are printed in, JSON, and the machine."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("dse-engine", "numpy", "llvmlite", "optuna", "pymoo", "moocore", "python-constraint2")


class Missing(Exception):
    """A peer is not installed, or something took longer than its limit; the message says which."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table.

    ``figure`` is the best of ``runs``, ``median`` that of all; a bar is met when the median meets it. ``more`` says that
    more is better. ``ratio`` is how many times better than the first ``peer`` (one a line). ``wrong`` says what was not as it must be.
    """

    what: str
    figure: float | None
    unit: str = "s"
    bar: float | None = None
    more: bool = False
    median: float | None = None
    runs: int = 1
    peer: str = ""
    ratio: float | None = None
    wrong: str = ""
    note: str = ""

    @property
    def verdict(self) -> str:
        """``pass``, ``MISSED``, ``best only`` (the best run meets the bar), ``WRONG``, or nothing without a bar."""
        if self.wrong:
            return "WRONG"
        if self.bar is None:
            return ""
        if self.figure is None:
            return "not run"
        if self._meets(self.figure if self.median is None else self.median):
            return "pass"
        return "best only" if self._meets(self.figure) else "MISSED"

    def _meets(self, value: float) -> bool:
        assert self.bar is not None
        return value >= self.bar if self.more else value <= self.bar

    def cells(self) -> list[str]:
        """The line as the table prints it."""
        bar = "" if self.bar is None else f"{'>=' if self.more else '<='} {amount(self.bar, self.unit)}"
        return [
            self.what,
            bar,
            "-" if self.figure is None else amount(self.figure, self.unit),
            "" if self.median is None else amount(self.median, self.unit),
            str(self.runs) if self.figure is not None else "",
            "" if self.ratio is None else f"{number(self.ratio)}x",
            self.verdict,
        ]


def timed(what: str, seconds: Sequence[float], bar: float | None = None, **more: Any) -> Line:
    """The line of several times of the same thing."""
    return Line(what, min(seconds), bar=bar, median=statistics.median(seconds), runs=len(seconds), **more)


def number(value: float) -> str:
    """Three digits, no exponent up to 10^5."""
    size = abs(value)
    if size == 0.0 or size >= 1e5:
        return f"{value:.2e}" if size else "0"
    return f"{value:.0f}" if size >= 100 else f"{value:.3g}"


def amount(value: float, unit: str) -> str:
    """A figure with its unit; short times in ms."""
    if unit == "s" and abs(value) < 0.0995:
        return f"{number(value * 1e3)} ms"
    return f"{number(value)} {unit}".strip()


HEADS = ("what", "bar", "best", "median", "runs", "to peer", "")


def table(lines: Iterable[Line]) -> Iterator[str]:
    """The table as texts: every line, and under it its peer, what is wrong, and its note."""
    listed = list(lines)
    rows = [list(HEADS), *(line.cells() for line in listed)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEADS))]

    def row_text(cells: Sequence[str]) -> str:
        first, *others = (
            cell.ljust(width) if at in (0, 6) else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join([first, *others]).rstrip()

    yield row_text(rows[0])
    yield "-" * len(row_text([" " * width for width in widths[:-1]] + ["-" * max(widths[-1], 4)]))
    for line, cells in zip(listed, rows[1:], strict=True):
        yield row_text(cells)
        below = [f"peer: {peer}" for peer in line.peer.splitlines()]
        below += [f"wrong: {line.wrong}" if line.wrong else "", line.note]
        yield from (f"    {text}" for text in below if text)


def machine() -> dict[str, Any]:
    """Cores, processor, memory, Python and the versions of what is measured; nothing that names the host."""
    versions: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    if versions["dse-engine"] is None:  # a checkout that is not installed
        import dse

        versions["dse-engine"] = dse.__version__
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_mb": _memory(),
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load": _load(),
        "versions": versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    found = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return found[0] if found else platform.processor()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    except (ValueError, OSError, AttributeError):
        return None


def _load() -> float | None:
    """The number of processes that wanted to run in the last minute, before anything is measured."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


@dataclass(frozen=True, slots=True)
class Options:
    """What a benchmark is asked: where the reference problems are, if anywhere; small cases only; how many runs."""

    data: Path | None = None
    quick: bool = False
    runs: int | None = None
    seen: Path | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def times(self, usual: int) -> int:
        """How often to run what is usually run ``usual`` times."""
        return self.runs or (1 if self.quick else usual)

    def reference(self, name: str) -> str | None:
        """The file of a reference problem, if it is there."""
        return self._file("reference_problems", name)

    def benchspaces(self) -> list[Path]:
        """The files of the tuning spaces."""
        return [] if self.data is None else sorted((self.data / "benchspaces").glob("*.json"))

    def _file(self, folder: str, name: str) -> str | None:
        if self.data is None:
            return None
        path = self.data / folder / f"{name}.json"
        return str(path) if path.exists() else None


Lines = Callable[[Options], Iterable[Line]]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that every benchmark has."""
    parser.add_argument(
        "--data",
        type=Path,
        help="folder with reference_problems/ and benchspaces/; without it, generated spaces alone are measured",
    )
    parser.add_argument("--quick", action="store_true", help="small cases, once each: does everything run?")
    parser.add_argument("--runs", type=int, help="runs of each case, instead of the usual number")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")


def main(document: str | None, lines: Lines) -> None:
    """Runs one benchmark: prints its table and, when asked, writes it as JSON.

    Raises:
        SystemExit: a result was wrong.
    """
    parser = argparse.ArgumentParser(description=(document or "").splitlines()[0])
    add_options(parser)
    parser.add_argument(
        "--seen", type=Path, help="folder with figures of other benchmarks, not measured again"
    )
    asked = parser.parse_args()
    options = Options(asked.data, asked.quick, asked.runs, asked.seen)
    about = machine()
    found = []
    try:
        for line in lines(options):
            found.append(line)
            print(f"{line.what}: {' '.join(line.cells()[2:])}", file=sys.stderr, flush=True)
    except (Missing, subprocess.CalledProcessError) as error:
        # A measured process that broke off says why on standard error; what came before it still counts.
        found.append(Line(f"the rest of {Path(sys.argv[0]).stem}", None, wrong=str(error)))
    for text in table(found):
        print(text)
    if asked.json:
        write(asked.json, about, found, options.details)
    if any(line.wrong for line in found):
        raise SystemExit(1)


def write(path: Path, about: object, lines: Iterable[Line], details: object) -> None:
    """Writes figures as JSON."""
    rows = [asdict(line) | {"verdict": line.verdict} for line in lines]
    document = {"machine": about, "lines": rows, "details": details}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path) -> tuple[list[Line], dict[str, Any]]:
    """The lines and details that :func:`write` wrote."""
    document = json.loads(path.read_text(encoding="utf-8"))
    lines = [Line(**{k: v for k, v in row.items() if k != "verdict"}) for row in document["lines"]]
    return lines, document["details"]
