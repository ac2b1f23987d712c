"""Whole runs of the command line, from nothing: wall and CPU time (user + system), against their bars.

python -m tests.bench.startup --runs 15
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.measuring import ROOT, Line, Options, main, timed
from tests.bench.peers import Found, shown, tried

# command -> bar in seconds, whether it holds for CPU time alone
BARS = {("search", "camera"): (0.6, False), ("--help",): (0.2, True), ("check", "camera"): (0.5, True)}
DESIGNS = 480  # of the camera space


def dse_command() -> list[str]:
    """The installed script beside this interpreter, or ``python -m dse`` in a plain checkout."""
    script = Path(sys.executable).with_name("dse")
    return [str(script)] if script.exists() else [sys.executable, "-m", "dse"]


def seconds(command: list[str]) -> tuple[float, float]:
    """Wall time of one run of ``command``, and user and system time of it and its children.

    Raises:
        SystemExit: the command failed; a failing run has no start-up time worth reporting.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    with tempfile.TemporaryDirectory() as scratch:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=scratch, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    return wall, usage.ru_utime + usage.ru_stime


def lines(options: Options) -> Iterator[Line]:
    """The lines of the table; the first run of each command writes the byte code and is not counted."""
    for arguments, (bar, of_cpu) in BARS.items():
        command = [*dse_command(), *arguments]
        seconds(command)
        pairs = [seconds(command) for _ in range(options.times(11))]
        wall, cpu = ([pair[at] for pair in pairs] for at in (0, 1))
        peer, ratio = "", None
        if arguments[0] == "search":
            began = time.perf_counter()
            other = tried("bruteforce", "camera", DESIGNS)
            whole = time.perf_counter() - began
            peer = shown(other, f"Optuna BruteForceSampler, {whole:.2f} s with its start")
            ratio = whole / min(wall) if isinstance(other, Found) else None
        yield timed(
            f"cold: dse {' '.join(arguments)}{', CPU' if of_cpu else ''}",
            cpu if of_cpu else wall,
            bar,
            peer=peer,
            ratio=ratio,
            note=f"{'wall' if of_cpu else 'CPU'}, median {statistics.median(wall if of_cpu else cpu):.3f} s",
        )


if __name__ == "__main__":
    main(__doc__, lines)
