"""All benchmarks, one after the other, and the table of what was asked for.

python -m tests.bench.run --data ../shared --json bench

Every benchmark runs in a process of its own and writes its figures there; this one gathers them in bench.json.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tests.bench.measuring import ROOT, Line, add_options, machine, read, table, write

SCRIPTS = (
    "exhaustive", "exact", "single", "continuous", "warm", "counting", "quality", "small", "startup", "certificate",
    "growth", "plans", "kernels", "memory",
)  # fmt: skip
"""In the order of the table; memory takes over the peaks that the others noted."""


def ran(script: str, options: argparse.Namespace, folder: Path) -> tuple[list[Line], object]:
    """The lines and details of one benchmark; one line that says so if it broke off."""
    path = folder / f"{script}.json"
    path.unlink(missing_ok=True)
    command = [sys.executable, "-m", f"tests.bench.{script}", "--json", str(path), "--seen", str(folder)]
    command += ["--quick"] if options.quick else []
    command += [] if options.data is None else ["--data", str(options.data.resolve())]
    command += [] if options.runs is None else ["--runs", str(options.runs)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if not path.exists():
        return [Line(script, None, wrong=f"broke off with exit code {done.returncode}")], {}
    return read(path)


def judged(lines: Iterable[Line]) -> str:
    """How many bars were met, in a sentence."""
    verdicts = [line.verdict for line in lines if line.verdict]
    parts = [
        f"{verdicts.count(verdict)} {text}"
        for verdict, text in (
            ("pass", "bars met by the median"),
            ("best only", "by the best run only"),
            ("MISSED", "missed"),
            ("WRONG", "wrong results"),
            ("not run", "not run"),
        )
        if verdict in verdicts
    ]
    return ", ".join(parts) or "no bars: they hold for the reference problems, which were not given"


def main() -> None:
    """Runs the benchmarks.

    Raises:
        SystemExit: a result was wrong or a benchmark broke off; with ``--strict`` also when a bar was missed.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_options(parser)
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a bar is missed, too")
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help="only these: " + ", ".join(SCRIPTS))
    options = parser.parse_args()
    unknown = [name for name in options.scripts if name not in SCRIPTS]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]}; there are {', '.join(SCRIPTS)}")
    folder = (options.json or Path("bench")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    about = machine()
    if options.data is not None and not (options.data / "reference_problems").is_dir():
        print(
            f"{options.data} has no reference_problems/: only generated spaces are measured", file=sys.stderr
        )
    began = time.perf_counter()
    lines: list[Line] = []
    details = {}
    for script in [name for name in SCRIPTS if not options.scripts or name in options.scripts]:
        print(f"-- {script}", file=sys.stderr, flush=True)
        found, details[script] = ran(script, options, folder)
        lines += found
    versions = ", ".join(f"{name} {version or 'missing'}" for name, version in about["versions"].items())
    print(
        f"{about['cores']} cores, {about['processor']}, {about['python']}, load {about['load']:.1f} at first"
    )
    print(versions)
    print("best and median of so many runs after what was warmed up; bars are held against the median")
    print()
    for text in table(lines):
        print(text)
    print()
    print(f"{judged(lines)}; {time.perf_counter() - began:.0f} s in all")
    write(folder / "bench.json", about, lines, details)
    verdicts = {line.verdict for line in lines}
    if "WRONG" in verdicts or (options.strict and verdicts & {"MISSED", "best only", "not run"}):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
