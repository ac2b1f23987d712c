"""Real runs: Ctrl-C, a terminal, a pipe."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DSE = [sys.executable, "-m", "dse"]

LARGE = """\
dse: 1
name: large
dimensions: {a: {range: [1, 100]}, c: {range: [1, 100]}, d: {range: [1, 100]}, e: {range: [1, 400]}}
metrics:
  m: {expr: "a * c + sqrt(d) / e", unit: 1}
  n: {expr: "max(d * c, a + e) - a", unit: 1}
objectives: {m: minimize, n: maximize}
"""


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A space whose exhaustive search takes minutes."""
    path = tmp_path / "large.yaml"
    path.write_text(LARGE, encoding="utf-8")
    return path


@pytest.mark.slow
def test_interrupted_and_resumed(large: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ["search", str(large), "--solver", "exhaustive", "--out", str(run)]
    process = subprocess.Popen(
        [*DSE, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not (run / "manifest.json").exists():
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (3, "")
    assert err.startswith("interrupted at ")
    assert err.endswith(f"go on with dse resume {run}\n")
    stopped = json.loads((run / "result.json").read_text(encoding="utf-8"))
    words = ["resume", str(run), "--timeout", "1 s", "--format", "json"]
    resumed = subprocess.run([*DSE, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert resumed.returncode == 0, resumed.stderr
    went_on = json.loads(resumed.stdout)
    assert went_on["status"] == "stopped"
    assert went_on["accounting"]["evaluated"] > stopped["accounting"]["evaluated"] > 0
    assert f"go on with dse resume {run}" in resumed.stderr


@pytest.mark.slow
def test_progress_on_a_terminal_only(large: Path) -> None:
    words = ["search", str(large), "--solver", "exhaustive", "--timeout", "2", "--format", "json"]
    piped = subprocess.run([*DSE, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (piped.returncode, piped.stderr) == (0, "")
    assert json.loads(piped.stdout)["status"] == "stopped"

    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    kept = large.with_name("out.json")
    with kept.open("wb") as out:  # a file never fills up, unlike a pipe that nobody reads meanwhile
        process = subprocess.Popen([*DSE, *words], cwd=ROOT, stdout=out, stderr=theirs, env=environment)
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while part := os.read(ours, 4096):
            seen += part
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert json.loads(kept.read_text(encoding="utf-8"))["status"] == "stopped"
    assert b"searching" in seen
    assert b"designs/s" in seen
