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
dimensions: {a: {range: [1, 100]}, c: {range: [1, 100]}, d: {range: [1, 100]}, e: {range: [1, 40000]}}
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
    assert process.returncode == 3
    assert "stopped before the end; what follows is what was found so far" in " ".join(out.split())
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
    assert b"designs evaluated/s" in seen


@pytest.mark.slow
def test_sigterm_is_like_ctrl_c(large: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ["search", str(large), "--solver", "exhaustive", "--out", str(run)]
    process = subprocess.Popen(
        [*DSE, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not (run / "manifest.json").exists():
        time.sleep(0.05)
    time.sleep(1.0)
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "stopped before the end" in out
    assert err.endswith(f"go on with dse resume {run}\n")
    assert json.loads((run / "result.json").read_text(encoding="utf-8"))["accounting"]["evaluated"] > 0


def test_sigterm_outside_a_search() -> None:
    program = (
        "import os, signal\nfrom dse.cli.signals import like_ctrl_c\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "try:\n"
        "    with like_ctrl_c():\n        os.kill(os.getpid(), signal.SIGTERM)\n"
        "except KeyboardInterrupt:\n    print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize("entry", [["-m", "dse"], ["-c", "from dse.__main__ import run; run()"]])
def test_ctrl_c_while_loading_is_quiet(tmp_path: Path, entry: list[str]) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run(
        [sys.executable, *entry], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")


FAULTY = """\
from dse.study.plugin import ExactSolver, SamplingSolver, walk

class Sampling(SamplingSolver):
    name = "faulty"
    title = "divides by zero"
    needs = frozenset({"trials"})

    def propose(self, proposals):
        return 1 // 0

class Piece:
    def __init__(self, problem, team):
        pass

    def __len__(self):
        return 4

    def run(self, piece, tally):
        return 1 // 0

class Exact(ExactSolver):
    name = "worse"
    title = "divides by zero elsewhere"
    needs = frozenset({"bulk"})

    def explore(self, search):
        walk(search, Piece)
"""


@pytest.mark.parametrize(
    "words", [["--solver", "faulty"], ["--solver", "worse"], ["--solver", "worse", "--workers", "2"]]
)
def test_a_plugins_error_is_named_as_its_own(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "faulty_package.py").write_text(FAULTY, encoding="utf-8")
    folder = tmp_path / "faulty-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.0\n", encoding="utf-8")
    (folder / "entry_points.txt").write_text(
        "[dse.solvers]\nfaulty = faulty_package:Sampling\nworse = faulty_package:Exact\n", encoding="utf-8"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}

    def ran(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*DSE, "search", "camera", *words, *more],
            cwd=ROOT, capture_output=True, text=True, check=False, env=environment,
        )  # fmt: skip

    failed = ran()
    assert (failed.returncode, failed.stdout) == (70, "")
    assert failed.stderr.startswith(f"error: solver {words[1]!r} (faulty_package) raised ZeroDivisionError: ")
    assert "report" not in failed.stderr
    refused = ran("--option", "depth=3")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"solver {words[1]} has no options, but got depth" in refused.stderr
