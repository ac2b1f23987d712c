"""Nothing that a study started runs on when its process is killed, however it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

EXACT = """\
from tests.study.killing import large
from dse.study.study import Study
if __name__ == "__main__":
    Study(large(), solver="exhaustive", workers=2, keep=0).run()
"""

MEASURED = """\
import sys
from dse.study.study import Study
if __name__ == "__main__":
    Study(sys.argv[1], workers=2).run(n_trials=4)
"""

SPACE = """\
dse: 1
name: slow
measure: {measure}
dimensions: {{a: [1, 2, 3, 4]}}
metrics: {{time: {{unit: ms, measured: true}}}}
objectives: {{time: minimize}}
"""

BUSY = """\
import subprocess, sys
def measure(design):
    subprocess.run([sys.executable, "-c", "import time; time.sleep(300)"], stdin=subprocess.DEVNULL)
    sum(range(10**12))
"""


def parents() -> dict[int, int]:
    """The parent of every process that is not a zombie."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            found[int(folder.name)] = int(parent)
    return found


def descendants(pid: int) -> set[int]:
    known, found = parents(), {pid}
    while more := {child for child, parent in known.items() if parent in found} - found:
        found |= more
    return found - {pid}


def wait_until(condition: object, seconds: float) -> bool:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize(
    ("kind", "least"),
    [
        ("exact", 3),  # two workers and multiprocessing's resource tracker
        ("command", 4),  # two shells with a child each
        ("function", 4),  # two workers with a child each
    ],
)
def test_what_was_started_ends_with_a_killed_study(tmp_path: Path, kind: str, least: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(EXACT if kind == "exact" else MEASURED)
    measure = "./slow.py:measure" if kind == "function" else "{command: [sh, -c, 'sleep 300; echo {a}']}"
    (tmp_path / "space.yaml").write_text(SPACE.format(measure=measure))
    (tmp_path / "slow.py").write_text(BUSY)
    study = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path / "space.yaml")],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    started: set[int] = set()
    try:
        assert wait_until(lambda: len(descendants(study.pid)) >= least, 30)
        if kind == "exact":
            time.sleep(1.0)  # the workers are at work
        started = descendants(study.pid)
        study.send_signal(signal.SIGKILL)
        study.wait()
        assert wait_until(lambda: not started & parents().keys(), 10)
    finally:
        study.kill()
        study.wait()
        for pid in started & parents().keys():
            os.kill(pid, signal.SIGKILL)
