"""Teams of the training space, redesigns at equal parameters, and what is asked of its inputs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dse
from dse.cli.misses import grown_text
from dse.errors import SpaceError
from dse.evaluation import broken_rule
from dse.problem import Problem
from dse.spaces.catalog import architecture
from dse.spaces.catalog import model as catalogue_model
from dse.spaces.training.cost import _Redesigned
from dse.study.compare import Comparison, compare
from dse.study.growing import grown
from dse.study.legal import LegalDesigns

SMALL = {"model": "llama-3.1-8b", "n_gpus": "64", "global_batch": "128"}
BOTH = {"redesign": "true", "precision": "any"}


@cache
def compared(*settings: tuple[str, str]) -> Comparison:
    return compare(dse.load("training", dict(settings)))


def best(comparison: Comparison) -> dict[str, float | None]:
    return {
        row.team: row.result.front[0].objectives["iteration_time"] if row.result.front else None
        for row in comparison.rows
    }


# -- teams ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framework", ["megatron", "deepspeed", "torchtitan"])
def test_every_team_can_train_a_small_model(framework: str) -> None:
    problem = dse.load("training", {**SMALL, "framework": framework, "global_batch": "64", "n_gpus": "32"})
    for team in problem.teams:
        assert dse.search(problem, team=team, within=0, keep=0).feasible, team


def test_together_they_beat_either_team() -> None:
    comparison = compared(*{**SMALL, **BOTH}.items())
    found = best(comparison)
    assert found["ml"] is not None
    assert found["systems"] is not None
    assert found["mlsys"] is not None
    assert found["mlsys"] < 0.95 * min(found["ml"], found["systems"])
    ml, systems, _ = (row.result.front[0].design for row in comparison.rows)
    assert (ml["format"], ml["tp"], ml["pp"], ml["cp"]) == ("fp8", 1.0, 1.0, 1.0)
    assert (systems["format"], systems["extra_layers"], systems["kv_share"]) == ("bf16", 0.0, 1.0)
    assert all(row.result.promise == "exact" and row.result.status == "complete" for row in comparison.rows)


def test_plain_data_parallelism_cannot_hold_a_large_model_and_is_told_what_would_help() -> None:
    comparison = compared(("model", "llama-3.1-70b"), ("n_gpus", "64"), ("global_batch", "64"))
    found = best(comparison)
    assert found["ml"] is None
    assert found["systems"] == found["mlsys"]
    (row,) = (row for row in comparison.rows if row.team == "ml")
    unlocked = {unlock.dimensions for unlock in row.unlocks}
    assert ("tp",) in unlocked
    assert any(text.startswith("sharding other than ddp") for text in row.departures)


# -- redesigns ----------------------------------------------------------------------------------------


@cache
def redesigning(model: str) -> Problem:
    return dse.load("training", {"model": model, "n_gpus": "1", "global_batch": "8", "redesign": "true"})


def test_redesigns_keep_the_parameters_within_two_percent() -> None:
    problem = dse.load("training")
    table = problem.graph.tables["models"]
    assert {"redesigned_layers", "redesigned_heads"} <= {rule.name for rule in problem.rules}
    dense, worst = 0, 0.0
    for at in range(len(table.axes[0])):
        model = SimpleNamespace(**{column: found.cells[at] for column, found in table.columns.items()})
        if model.experts > 0:
            continue
        dense += 1
        given = architecture.parameters(model)
        for layers in map(float, problem.dimension("extra_layers").values):
            for share in map(float, problem.dimension("kv_share").values):
                if 8 * abs(layers) > model.layers or model.kv_heads % share:
                    continue
                changed = architecture.parameters(_Redesigned(model, np.float64(layers), np.float64(share)))
                worst = max(worst, abs(changed / given - 1.0))
    assert dense > 20
    assert 0.001 < worst <= 0.02  # rounding to 256 of the narrowest MLPs


def test_redesigns_keep_the_share_of_layers_that_have_a_window() -> None:
    """Mistral 7B has a window of 4,096 tokens in each of its 32 layers."""
    given = catalogue_model(Path(__file__).parents[1] / "catalog/configs/mistral-7b-v0.1.json")
    assert (given.window, given.window_layers, given.layers) == (4096, 32, 32)
    for layers in (-4.0, 0.0, 4.0):
        changed = _Redesigned(given, np.float64(layers), np.float64(1.0))
        assert changed.window_layers == changed.layers == 32 + layers
        each = architecture.attention_flops(changed, 32768) / changed.layers
        assert each == architecture.attention_flops(given, 32768) / 32


@pytest.mark.parametrize(
    ("model", "changes", "rule"),
    [
        ("llama-3.2-1b", {"extra_layers": 2.0}, None),
        ("llama-3.2-1b", {"extra_layers": 4.0}, "redesigned_layers"),
        ("llama-3.2-1b", {"kv_share": 8.0}, None),
        ("qwen2.5-0.5b", {"kv_share": 4.0}, "redesigned_heads"),  # it has 2
        ("mixtral-8x7b", {"kv_share": 2.0}, "inactive"),
        ("mixtral-8x7b", {"extra_layers": 2.0}, "inactive"),
    ],
)
def test_only_near_shapes_of_dense_models_are_legal(
    model: str, changes: dict[str, float], rule: str | None
) -> None:
    problem = redesigning(model)
    drawn = LegalDesigns(problem, problem.team("systems")).draw(np.random.default_rng(0), set())
    assert drawn is not None
    plan = {
        **problem.design_at([int(digit) for digit in drawn.key]),
        "recompute": "none",
        "recompute_block": 1.0,
    }
    assert broken_rule(problem, plan) is None
    broken = broken_rule(problem, {**plan, **changes})
    assert (None if broken is None else broken.name) == rule


# -- inputs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("seq_len=0", "a whole number from 1 to 16777216, but got 0"),
        ("seq_len=-5", "a whole number from 1 to 16777216, but got -5"),
        ("seq_len=1e9", "a whole number from 1 to 16777216, but got 1e9"),
        ("seq_len=1000000000", "a whole number from 1 to 16777216, but got 1000000000"),
        ("n_gpus=0", "a whole number from 1 to 16777216, but got 0"),
        ("n_gpus=2.5", "a whole number from 1 to 16777216, but got 2.5"),
        ("global_batch=0", "a whole number from 1 to 16777216, but got 0"),
        ("attention_share=0", "a number above 0 and at most 1, but got 0"),
        ("length_imbalance=0.5", "a number from 1 to 1000, but got 0.5"),
        ("memory_reserve=1", "a number of at least 0 and below 1, but got 1"),
        ("memory_fixed=-1 GiB", "a quantity of at least 0 GiB, but got -1 GiB"),
        ("pue=0.9", "a number of at least 1, but got 0.9"),
    ],
)
def test_inputs_that_mean_nothing_are_refused_before_a_search(setting: str, expected: str) -> None:
    name, _, text = setting.partition("=")
    with pytest.raises(SpaceError) as caught:
        dse.load("training", {name: text})
    assert str(caught.value) == f"--set {setting}: input '{name}' must be {expected}"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": "llama-3.1-405b"}, "with n_gpus = 64 some design is feasible; with 16 and 32 none is"),
    ],
)
def test_how_many_gpus_would_do(settings: dict[str, str], said: str) -> None:
    problem = dse.load("training", {**settings, "n_gpus": "8"})
    (tried,) = grown(problem, seconds=300.0)
    assert grown_text(tried) == said
    last = problem.with_inputs({"n_gpus": tried.enough})
    assert dse.search(last, solver="pareto", within=0, keep=0).feasible
