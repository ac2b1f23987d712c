"""CPU time (user + system) of whole runs of the command line, against its bars.

python tests/bench/startup.py --runs 15 --json startup.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

BARS = {("--help",): 0.2, ("check", "camera"): 0.5}


@dataclass(frozen=True, slots=True)
class Measurement:
    """CPU seconds of one command over several runs, and the bar its median is held against."""

    command: str
    bar: float
    minimum: float
    median: float
    runs: int


def dse_command() -> list[str]:
    """The installed script beside this interpreter, or ``python -m dse`` in a plain checkout."""
    script = Path(sys.executable).with_name("dse")
    return [str(script)] if script.exists() else [sys.executable, "-m", "dse"]


def cpu_seconds(command: list[str]) -> float:
    """User and system time of one run of ``command`` and its children.

    Raises:
        SystemExit: the command failed; a failing run has no start-up time worth reporting.
    """
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def measure(arguments: tuple[str, ...], bar: float, runs: int) -> Measurement:
    """Times ``dse ARGUMENTS`` after one run that is not counted (it writes the byte code)."""
    command = [*dse_command(), *arguments]
    cpu_seconds(command)
    times = [cpu_seconds(command) for _ in range(runs)]
    return Measurement(f"dse {' '.join(arguments)}", bar, min(times), statistics.median(times), runs)


def main() -> None:
    """Prints the table and, when asked, writes it as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=11, help="runs of each command (default 11)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()

    rows = [measure(arguments, bar, options.runs) for arguments, bar in BARS.items()]
    print(f"CPU time, user + system, {options.runs} runs each, Python {platform.python_version()}")
    print(f"{'command':<20}{'min s':>8}{'median s':>10}{'bar s':>8}  within")
    for row in rows:
        within = "yes" if row.median <= row.bar else "NO"
        print(f"{row.command:<20}{row.minimum:>8.3f}{row.median:>10.3f}{row.bar:>8.2f}  {within}")
    if options.json:
        document = {"python": platform.python_version(), "commands": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
