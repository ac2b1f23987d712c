"""The README's examples are run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert found, f"the README has no {language} block"
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "serving.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_space_file_is_one_that_check_finds_nothing_in(folder: Path) -> None:
    done = run(folder, "-m", "dse", "check", "serving.yaml")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["search", "compare"])
def test_the_space_file_is_searched_and_compared(folder: Path, command: str) -> None:
    done = run(folder, "-m", "dse", command, "serving.yaml")
    assert done.returncode == 0, done.stderr
    assert "token/s" in done.stdout


def test_the_python_example_runs_and_both_forms_of_the_model_agree(folder: Path) -> None:
    same = """
again = dse.search(traced, ties=True)
plain = dse.search(dse.load("serving.yaml"), ties=True)
assert again.front and [p.objectives for p in again.front] == [p.objectives for p in plain.front]
"""
    done = run(folder, "-c", blocks("python")[0] + same)
    assert done.returncode == 0, done.stderr
    assert "bf16" in done.stdout or "fp8" in done.stdout


def test_the_study_and_the_planner_run(folder: Path) -> None:
    done = run(folder, "-c", blocks("python")[0] + blocks("python")[1])
    assert done.returncode == 0, done.stderr
    assert "FrontPoint" in done.stdout


def test_the_measured_space_is_searched(tmp_path: Path) -> None:
    (tmp_path / "tiles.yaml").write_text(blocks("yaml")[1], encoding="utf-8")
    program = "import json, sys\nd = json.load(sys.stdin)\nassert d['size'] == 512\nassert f\"--tile={d['tile']}\" in sys.argv\n"
    program += "print(json.dumps({'time': f\"{64 / d['tile'] + d['unroll']} ms\"}))\n"
    (tmp_path / "bench.py").write_text(program)
    done = run(tmp_path, "-m", "dse", "search", "tiles.yaml", "--n-trials", "50", "--format", "csv")
    assert done.returncode == 0, done.stderr
    header, best = done.stdout.splitlines()
    assert dict(zip(header.split(","), best.split(","), strict=True))["tile"] == "64"


def test_the_solver_is_found_and_searches(folder: Path) -> None:
    (folder / "my_package.py").write_text(blocks("python")[2], encoding="utf-8")
    information = folder / "my_package-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1\n")
    declared = (
        blocks("toml")[0].replace('[project.entry-points."dse.solvers"]', "[dse.solvers]").replace('"', "")
    )
    (information / "entry_points.txt").write_text(declared)
    listed = run(folder, "-m", "dse", "solvers")
    assert "designs in random order" in listed.stdout, listed.stderr
    done = run(folder, "-m", "dse", "search", "serving.yaml", "--solver", "shuffle", "--n-trials", "100")
    assert done.returncode == 0, done.stderr
    assert "exhausted" in done.stdout or "every legal design" in done.stdout


def test_the_commands_shown_exist(folder: Path) -> None:
    for line in "\n".join(blocks("sh")).splitlines():
        command = line.split("#")[0].strip()
        if not command.startswith("dse "):
            continue
        done = subprocess.run(
            ["bash", "-c", command.replace("dse ", f"{sys.executable} -m dse ", 1)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1), (command, done.stderr)
        assert not done.returncode or "no feasible design" in done.stdout, (command, done.stdout)
    assert "--tensor-model-parallel-size" in (folder / "launch.sh").read_text(encoding="utf-8")
