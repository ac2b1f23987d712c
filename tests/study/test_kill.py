"""Studies killed with SIGKILL at 20 instants end as undisturbed ones, and run no finished trial again."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.study.killing import N_TRIALS

ROOT = Path(__file__).resolve().parents[2]
SPACE = """\
dse: 1
name: slow
measure: ./slow.py:measure
dimensions:
  a: {range: [0, 9]}
  b: {choices: [red, green, blue]}
  c: [false, true]
  d: {range: [1, 64], scale: pow2, when: c, otherwise: 4}
rules:
  pale: {check: "not (b == 'red' and a > 7)", because: "no red that bright"}
metrics:
  time: {unit: ms, measured: true}
  loss: {expr: "abs(a - 4) + d / 16", unit: 1}
objectives: {time: minimize, loss: minimize}
constraints: {time: "<= 12 ms"}
"""

SLOW = """\
import os
import time
from pathlib import Path

log = Path(__file__).with_name("log.txt")


def measure(design):
    with log.open("a") as file:
        file.write(f"{os.environ.get('LIFE')} {sorted(design.items())}\\n")
    time.sleep(0.008)
    if design["a"] == 6:
        raise ValueError("six does not work")
    return {"time": 20 - 2 * design["a"] + design["d"] / 7 + len(design["b"])}
"""


def run(folder: Path, kind: str, times: list[float]) -> list[dict[str, Any]]:
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "tests.study.killing",
        str(folder),
        kind,
        *map(str, times),
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lives: list[dict[str, Any]] = json.loads(done.stdout)
    assert lives[-1]["ended"] == "done", done.stderr
    return lives


def outputs(folder: Path) -> dict[str, bytes | str]:
    tables = (*folder.glob("*.csv"), *folder.glob("certificate.bin"))
    found: dict[str, bytes | str] = {path.name: path.read_bytes() for path in tables}
    result = json.loads((folder / "result.json").read_text())
    del result["run"]
    return found | {"result.json": json.dumps(result, indent=1)}


def instants(kills: int, most: int, seed: int) -> list[float]:
    """Lengths of lives: steps of progress, and a fraction of a second after them. Some have no steps, to hit the start.

    Whatever the machine is doing, a life of some steps gets that far, and all together are no longer than a run.
    """
    rng = random.Random(seed)
    starts = kills // 5 if most > 1 else kills // 2
    return [rng.uniform(0.0, 0.03) for _ in range(starts)] + [
        rng.randint(1, most) + rng.uniform(0.0, 0.02) for _ in range(kills - starts)
    ]


def killed_and_undisturbed(folder: Path, kind: str, kills: int, most: int, seed: int) -> list[dict[str, Any]]:
    """Run a study both ways in ``folder``, compare, and return the lives of the killed one."""
    run(folder / "undisturbed", kind, [])
    (folder / "log.txt").unlink(missing_ok=True)
    lives = run(folder / "killed", kind, instants(kills, most, seed))
    assert outputs(folder / "killed") == outputs(folder / "undisturbed")
    assert Counter(life["ended"] for life in lives)["killed"] >= kills - 2  # in the search, not after it
    return lives


@pytest.mark.parametrize(("kind", "kills", "most", "seed"), [("sampling", 20, 6, 1), ("pair", 5, 24, 2)])
def test_a_killed_sampling_study_ends_the_same(
    tmp_path: Path, kind: str, kills: int, most: int, seed: int
) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "slow.py").write_text(SLOW)
    lives = killed_and_undisturbed(tmp_path, kind, kills, most, seed)
    done = [len(life["before"]) for life in lives]
    assert done == sorted(done)
    assert len(set(done)) > kills // 4  # the kills are spread over the run
    begun = Counter(line.split(" ", 1)[1] for line in (tmp_path / "log.txt").read_text().splitlines())
    assert len(begun) == N_TRIALS
    # A life runs again at most the trials that were under way when the one before was killed.
    assert begun.total() - N_TRIALS <= kills * (2 if kind == "pair" else 1)
    _no_finished_trial_is_run_again(tmp_path, lives)


def _no_finished_trial_is_run_again(folder: Path, lives: list[dict[str, Any]]) -> None:
    """No life begins a design that an earlier one had finished, by the log of the function itself."""
    from dse.problem.library import load
    from dse.study.measure import plain_design
    from dse.study.study import Study

    study = Study.open(folder / "killed", load(folder / "space.yaml"))
    names = {t.number: str(sorted(plain_design(study.problem, t.design).items())) for t in study.trials}
    begun: dict[int, set[str]] = {}
    for line in (folder / "log.txt").read_text().splitlines():
        number, design = line.split(" ", 1)
        begun.setdefault(int(number), set()).add(design)
    for at, life in enumerate(lives):
        again = {names[number] for number in life["before"]} & begun.get(at, set())
        assert not again


@pytest.mark.parametrize(
    ("kind", "kills", "most", "seed"), [("exact", 20, 1, 3), ("pareto", 20, 1, 4), ("compiled", 10, 4, 5)]
)
def test_a_killed_exact_search_ends_the_same(
    tmp_path: Path, kind: str, kills: int, most: int, seed: int
) -> None:
    if kind == "compiled":
        pytest.importorskip("llvmlite")
    lives = killed_and_undisturbed(tmp_path, kind, kills, most, seed)
    done = [life["before"][0] for life in lives]
    assert done == sorted(done)
    assert len(set(done)) > 2  # the kills are spread over the run
