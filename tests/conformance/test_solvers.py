"""Every installed solver passes the kit; so does a third party's, built and installed here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dse.study.registry import solvers
from tests.conformance.kit import checks_of

ROOT = Path(__file__).resolve().parents[2]
CASES = [(name, check) for name in solvers() for check in checks_of(name)]


def test_the_shipped_solvers_are_there() -> None:
    assert {"auto", "exhaustive", "optuna", "pareto"} <= set(solvers())


@pytest.mark.parametrize(("name", "check"), CASES, ids=[f"{name}-{check.__name__}" for name, check in CASES])
def test_conformance(name: str, check: Callable[[str], None]) -> None:
    check(name)


# -- a third party's solvers ---------------------------------------------------------------------------------

PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "their-solvers"
version = "1.0"

[project.entry-points."dse.solvers"]
backwards = "their_solvers:Backwards"
wander = "their_solvers:Wander"
cheat = "their_solvers:Cheat"
broken = "their_solvers:NotThere"

[tool.setuptools]
py-modules = ["their_solvers"]
"""

MODULE = '''\
"""Two honest solvers, of one class each, and one that is not."""

import random

import numpy as np

from dse.evaluation import Blocks
from dse.study.solver import ExactSolver, SamplingSolver


class Backwards(ExactSolver):
    name = "backwards"
    title = "every legal design, the last first"
    needs = frozenset({"bulk"})

    def refuse(self, problem, team):
        if not problem.continuous and problem.size > 10**6:
            return f"{problem.size:.3g} designs are more than it cares to count"
        return None

    def explore(self, search):
        blocks = Blocks(search.problem, search.team, 16)
        left = search.state["left"] if search.state else len(blocks)
        for number in reversed(range(left)):
            judged = blocks.judge(number)
            search.tally.outside += judged.outside
            search.tally.illegal = [a + int(b) for a, b in zip(search.tally.illegal, judged.illegal)]
            if judged.outcomes is not None:
                search.tally.add(judged.positions, judged.outcomes, blocks.digit_arrays(judged.positions))
            search.tick({"left": number}, 1 - number / len(blocks))


class Cheat(Backwards):
    name = "cheat"
    title = "leaves out the first block"

    def explore(self, search):
        search.state = {"left": 0}
        super().explore(search)


class Wander(SamplingSolver):
    name = "wander"
    title = "designs at random"
    needs = frozenset({"trials"})

    def refuse(self, problem, team):
        return "it knows no continuous dimensions" if problem.continuous else None

    def propose(self, proposals):
        draw = random.Random(proposals.random_seed)
        accepted = rejected = 0
        while accepted < proposals.wanted and rejected < proposals.patience:
            design = {d.name: draw.choice(d.values) for d in proposals.problem.dimensions}
            if proposals.admit(design).accepted:
                accepted, rejected = accepted + 1, 0
            else:
                rejected += 1
'''

CONTINUOUS = """\
dse: 1
name: wide
dimensions: {a: {range: [0.5, 1.5]}}
metrics: {x: {expr: a, unit: 1}}
objectives: {x: minimize}
"""


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which a package of theirs is installed, without a network."""
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "source").mkdir()
    (folder / "source" / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (folder / "source" / "their_solvers.py").write_text(MODULE, encoding="utf-8")
    (folder / "wide.yaml").write_text(CONTINUOUS, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    where = ["--no-deps", "--no-build-isolation", "--target", str(folder / "site"), str(folder / "source")]
    subprocess.run([*pip, *where], check=True, capture_output=True, timeout=120)
    return folder


def python(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(installed / "site"), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments], cwd=installed, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["backwards", "wander"])
def test_their_solver_passes_the_kit(installed: Path, name: str) -> None:
    done = python(installed, "-c", f"from tests.conformance.kit import check; check({name!r})")
    assert done.returncode == 0, done.stderr


def test_a_solver_that_leaves_designs_out_does_not_pass(installed: Path) -> None:
    """The kit can fail: the accounting of this one does not add up."""
    done = python(installed, "-c", "from tests.conformance.kit import check; check('cheat')")
    assert done.returncode != 0
    assert "designs were not accounted for" in done.stderr


def test_their_solver_is_listed_and_used(installed: Path) -> None:
    listed = python(installed, "-m", "dse", "solvers")
    assert listed.returncode == 0, listed.stderr
    for text in ("backwards", "every legal design, the last first", "wander", "designs at random"):
        assert text in listed.stdout
    searched = python(installed, "-m", "dse", "search", "camera", "--solver", "backwards", "--format", "csv")
    assert searched.returncode == 0, searched.stderr
    shipped = python(installed, "-m", "dse", "search", "camera", "--solver", "exhaustive", "--format", "csv")
    assert searched.stdout == shipped.stdout


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("backwards", "dimension 'a' is continuous, so its designs cannot be listed"),
        ("wander", "it knows no continuous dimensions"),
    ],
)
def test_their_solver_is_refused_politely(installed: Path, name: str, reason: str) -> None:
    done = python(installed, "-m", "dse", "search", "wide.yaml", "--solver", name)
    assert done.returncode == 2
    assert f"solver {name} cannot do this: {reason}; optuna can" in done.stderr
    assert "Traceback" not in done.stderr


def test_their_plugin_that_cannot_be_loaded_is_named(installed: Path) -> None:
    done = python(installed, "-m", "dse", "search", "camera", "--solver", "broken")
    assert done.returncode == 2
    assert "solver 'broken' cannot be loaded: AttributeError" in done.stderr
    assert "Traceback" not in done.stderr
    done = python(installed, "-m", "dse", "search", "camera", "--solver", "backward")
    assert done.returncode == 2
    assert "did you mean 'backwards'" in done.stderr
