"""What bounds a plan is counted: rates, transfers, drafts of prompts, and bits, which have a lower limit."""

from __future__ import annotations

from typing import Any

import pytest

from dse.evaluation import State, Verdict, judge
from dse.evaluation.gates import told_violations
from dse.problem import Problem
from dse.spaces.serving import load
from dse.study.study import search
from tests.serving.plans import given, metrics, plan, space
from tests.training.legal_plans import restricted

DEAR = {"model": "llama-2-7b", "prompt_len": 3584, "output_len": 16}
"""A cache of half a megabyte a token: to move a prompt's takes as long as tens of its tokens."""


def verdict(problem: Problem, **values: Any) -> Verdict:
    return judge(problem, problem.design_at(problem.digits(plan(**values))))


def test_more_requests_than_a_plan_sustains_have_no_latency() -> None:
    problem = space(model="llama-3.1-70b", request_rate="50 1/s")
    said = verdict(problem, tp=4, weights="fp8", activations="fp8")
    assert said.state is State.INFEASIBLE
    assert [violation is None for violation in told_violations(problem, said.violations)] == [
        not constraint.first for constraint in problem.constraints
    ]
    (load_,) = (c for c in problem.constraints if c.name == "load")
    assert load_.first


def test_the_network_bounds_what_instances_apart_sustain() -> None:
    """A quarter of a prefill instance for each sends four of the caches that one receives."""
    values = {"disaggregated": True, "hardware": "l40s", "batch": 256.0, "tp": 8}
    few, many = (given(space(n_gpus=64, **DEAR), prefill_ratio=ratio, **values) for ratio in (0.25, 4.0))
    moving, receiving = load.times(few, 0.0), load.times(many, 0.0)
    assert receiving.capacity * receiving.transfer <= 0.999 * (1 + 1e-12)
    assert 4 * moving.capacity * moving.transfer <= 0.999 * (1 + 1e-12)
    assert receiving.capacity < 0.999 * many.batch / (16 * receiving.tpot)
    slow, slower = (load.times(many, share * receiving.capacity).wait for share in (0.5, 0.9))
    assert slower > 5 * slow


def test_a_draft_model_prefills_the_prompt_and_steps_with_as_many_as_run() -> None:
    problem = space(model="llama-3.1-8b", acceptance="0.7")
    none, drafts = metrics(problem), metrics(problem, draft_length=3)
    g = given(problem, draft_length=3)
    alone = load.forward_pass(load._Drafting(g), 1.0, 1024.0, 0.0).seconds
    assert drafts["prefill_draft"] == pytest.approx(alone, rel=1e-12)
    assert drafts["ttft"] == pytest.approx(none["ttft"] + alone, rel=1e-9)
    few = load.times(given(problem, draft_length=3, batch=512.0), 1e-3)
    one = load.times(given(problem, draft_length=3, batch=1.0), 0.0)
    assert few.loaded_alone == pytest.approx(one.step / one.tokens_per_step, rel=1e-9)


def test_fewer_bits_than_asked_for_are_no_plan() -> None:
    said = verdict(space(engine="llama.cpp"), weights="q3_k_s")
    assert said.state is State.ILLEGAL
    assert said.reason == "weights in q3_k_s have 3 bits, fewer than min_bits (4)"
    assert verdict(space(engine="llama.cpp", min_bits=3), weights="q3_k_s").state is not State.ILLEGAL


def test_of_equal_plans_the_one_with_the_smallest_batch_is_shown() -> None:
    problem = space(model="llama-3.1-8b", request_rate="4 1/s")
    few = {
        "hardware": "h100-sxm",
        "tp": 1,
        "pp": 1,
        "replicas": 1,
        "kv": "bf16",
        "chunk": 0,
        "disaggregated": False,
    }
    found = search(problem, team=restricted(problem, weights="bf16", **few))
    (best,) = found.front
    running, batch = best.metrics["running"], best.design["batch"]
    assert isinstance(running, float)
    assert isinstance(batch, float)
    assert running < batch < 3 * running
