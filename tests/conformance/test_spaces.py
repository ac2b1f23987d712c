"""What every shipped space must be: loaded, counted, with its teams, an explainable best design, and its sources told."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dse
from dse.cli import main
from dse.evaluation import broken_rule, judge
from dse.evaluation.explain import explain
from dse.evaluation.sentence import sentence
from dse.problem import Problem
from dse.problem.library import library, locate
from dse.study.findings import findings
from dse.study.legal import LegalDesigns
from dse.study.result import FrontPoint, Result
from dse.units import from_base

SMALL: dict[str, dict[str, str]] = {
    "kernel-matmul": {"size": "64", "runs": "1"},
    "serving": {"hardware": "h100-sxm"},
    "training": {"model": "llama-3.2-1b", "n_gpus": "8", "global_batch": "32", "seq_len": "4096"},
}
"""Inputs with which a space is soon searched; the defaults where there are none."""

TRIALS = {"kernel-matmul": 4, "quantization-measured": 2}
"""Measured spaces, and how many designs of each are tried here."""

HOLDS_NOTHING_WRONG = re.compile(r"hides the (unit|function)")
"""Warnings that say nothing against a space."""

SPACES = sorted(library())
COMPUTED = [name for name in SPACES if name not in TRIALS]
TEAMS = ("ml", "systems", "mlsys")


@cache
def small(name: str) -> Problem:
    return dse.load(name, SMALL.get(name, {}))


@cache
def searched(name: str, team: str | None) -> Result:
    if name == "kernel-matmul" and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("there is no C compiler")
    return dse.search(small(name), team=team, keep=0, within=0, n_trials=TRIALS.get(name))


def run(*arguments: str) -> str:
    done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout


def measured(name: str, point: FrontPoint) -> dict[str, float]:
    """What was measured of a design, in base units."""
    found = {key: point.metrics[key] for key, metric in small(name).metrics.items() if metric.measured}
    return {key: value for key, value in found.items() if isinstance(value, float)}


def settings(name: str) -> list[str]:
    return [part for key, text in SMALL.get(name, {}).items() for part in ("--set", f"{key}={text}")]


def test_the_shipped_spaces_are_there() -> None:
    assert {"camera", "training"} <= set(SPACES)
    assert SMALL.keys() <= set(SPACES)


@pytest.mark.parametrize("name", SPACES)
def test_it_loads_without_settings_and_says_what_it_is_about(name: str) -> None:
    problem = dse.load(name)
    assert problem.name == name
    assert problem.title
    assert problem.objectives
    assert all(metric.unit.text for metric in problem.metrics.values())
    assert all(rule.because.parts for rule in problem.rules)


@pytest.mark.parametrize("name", SPACES)
def test_check_finds_nothing_that_matters(name: str) -> None:
    for problem in {dse.load(name), small(name)}:
        warnings = [*problem.warnings, *findings(problem)]
        assert [text for text in warnings if not HOLDS_NOTHING_WRONG.search(text)] == []
    assert run("check", name, "--code").startswith("ok: ")


@pytest.mark.parametrize("name", SPACES)
def test_its_sources_stand_beside_it(name: str) -> None:
    path = locate(name)
    readme = path.parent / "README.md"
    text = path.read_text(encoding="utf-8")
    top = "\n".join(line for line in text.split("\ndse:")[0].splitlines() if line.startswith("#"))
    told = (readme.read_text(encoding="utf-8") if readme.is_file() else "") + top
    assert re.search(r"\b[Ss]ource", told), (
        "neither a README.md nor comments at the top say where figures come from"
    )


# -- designs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPACES)
def test_its_legal_designs_are_counted(name: str) -> None:
    problem = small(name)
    census = LegalDesigns(problem, problem.everything).census()
    assert census is not None
    assert census.complete
    legal = census.total - census.outside - census.illegal
    assert legal == LegalDesigns(problem, problem.everything).count
    assert 0 < legal <= problem.size
    assert f"{legal:,}" in run("show", name, "--count", *settings(name))


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("team", TEAMS)
def test_its_teams_choose_designs_that_are_explained(name: str, team: str) -> None:
    problem = small(name)
    assert team in problem.teams
    result = searched(name, team)
    assert result.promise == ("sampling" if name in TRIALS else "exact")
    assert name in TRIALS or result.status == "complete"
    for point in result.front[:3]:
        told = explain(problem, point.design, measured(name, point))
        assert told.feasible
        assert told.index == point.index
        assert {step.name: step.value for step in told.metrics} == dict(point.metrics)
    if not result.front:  # then it must be the team's own limits, told with what would unlock it
        assert searched(name, "mlsys").front
        assert result.nearest_miss is not None


@pytest.mark.parametrize("name", COMPUTED)
def test_the_teams_together_are_never_worse(name: str) -> None:
    problem = small(name)
    both = searched(name, "mlsys")
    assert both.front
    signs = np.array([objective.sign for objective in problem.objectives])
    names = [objective.name for objective in problem.objectives]
    front = np.array([[p.objectives[n] for n in names] for p in both.front]) * signs
    for team in ("ml", "systems"):
        assert searched(name, team).accounting.outside > 0
        for point in searched(name, team).front:
            own = np.array([point.objectives[n] for n in names]) * signs
            assert (front <= own).all(axis=1).any()


@pytest.mark.parametrize("name", SPACES)
def test_rejections_are_sentences(name: str) -> None:
    """Designs one step from the best: rules reject some, each with a sentence whose names are filled in."""
    problem = small(name)
    digits = problem.digits(searched(name, "mlsys").front[0].design)
    rejected = 0
    for at, size in enumerate(problem.sizes):
        for value in range(size):
            design = problem.design_at((*digits[:at], value, *digits[at + 1 :]))
            rule = broken_rule(problem, design)
            if rule is None:
                assert name in TRIALS or judge(problem, design).reason is not None
                continue
            text = sentence(problem, rule.because, design)
            rejected += 1
            assert text
            assert "{" not in text
    assert rejected


@pytest.mark.parametrize("name", SPACES)
def test_it_is_searched_and_explained_from_the_command_line(name: str) -> None:
    point = searched(name, "mlsys").front[0]
    assert point.index is not None
    trials = ["--n-trials", "2"] if name in TRIALS else []
    assert "designs" in run("search", name, *settings(name), *trials)
    units = {key: metric.unit for key, metric in small(name).metrics.items()}
    given = [
        f"--measured={key}={from_base(value, units[key])!r} {units[key].text}"
        for key, value in measured(name, point).items()
    ]
    told = run("explain", name, "--index", str(point.index), *settings(name), *given)
    assert {*small(name).names, *small(name).metrics} <= set(re.findall(r"\w+", told))


# -- cost of listing --------------------------------------------------------------------------------------


def test_listing_spaces_imports_no_array_library_and_runs_no_cost_model() -> None:
    code = (
        "import sys; from dse.cli import main; main(['list'], standalone_mode=False); "
        "heavy = {'numpy', 'pandas', 'optuna', 'dse.spaces.training.cost', 'dse.solvers.pareto'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in SPACES)
