"""Plans of the shipped space go out to Megatron-LM and come back unchanged, whatever is drawn."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from dse.cli.designing import complete
from dse.cli.planning import read_design
from dse.errors import InputError
from dse.problem import Problem
from dse.problem.library import load
from dse.spaces.training.export import TARGETS, read_plan
from dse.study.exports import KnownPlan, Plan
from dse.study.identity import Coder
from dse.study.legal import LegalDesigns

PLANS = {
    "dense": (
        "model=llama-3.1-70b hardware=h100-sxm n_gpus=512 global_batch=512 seq_len=8192",
        (
            "tp=8 pp=4 cp=1 micro_batch=1 schedule=1f1b sharding=distributed-optimizer sequence_parallel=true recompute=none"
            " format=bf16 optimizer=adam placement=tp-cp-dp-pp overlap_dp=true overlap_tp=true edges=even"
        ),
    ),
    "uneven edges, interleaved": (
        "model=llama-3.1-405b hardware=h100-sxm n_gpus=16384 global_batch=2048 seq_len=8192",
        (
            "tp=8 pp=16 cp=1 micro_batch=1 schedule=interleaved chunks=8 sharding=distributed-optimizer"
            " sequence_parallel=true recompute=full recompute_block=1 format=bf16 optimizer=adam placement=tp-cp-pp-dp"
            " overlap_dp=true overlap_tp=false edges=both"
        ),
    ),
    "experts": (
        "model=mixtral-8x7b hardware=h100-sxm n_gpus=64 global_batch=256 seq_len=4096",
        (
            "tp=2 pp=2 cp=1 ep=8 expert_tp=false dispatch=dropless micro_batch=1 schedule=1f1b"
            " sharding=distributed-optimizer sequence_parallel=true recompute=mlp format=bf16 optimizer=adam"
            " placement=tp-cp-dp-pp overlap_dp=true overlap_tp=false edges=even"
        ),
    ),
    "context parallel": (
        "model=llama-3.1-8b hardware=h100-sxm n_gpus=64 global_batch=64 seq_len=131072 attention_share=0.5",
        (
            "tp=4 pp=1 cp=8 cp_kind=ring micro_batch=1 sharding=megatron-fsdp sequence_parallel=true recompute=attention"
            " format=bf16 optimizer=adam placement=tp-cp-dp-pp overlap_dp=true overlap_tp=false"
        ),
    ),
    "fp8": (
        "model=gpt-3-175b hardware=h200-sxm n_gpus=1024 global_batch=1536 seq_len=2048 precision=fp8",
        (
            "tp=8 pp=8 cp=1 micro_batch=2 schedule=1f1b sharding=ddp sequence_parallel=true recompute=full"
            " recompute_block=2 format=fp8 optimizer=adam placement=tp-cp-dp-pp overlap_dp=false overlap_tp=false edges=even"
        ),
    ),
}


def pairs(text: str) -> dict[str, str]:
    return dict(word.split("=") for word in text.split())


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_read_back_unchanged(name: str) -> None:
    inputs, design = (pairs(text) for text in PLANS[name])
    problem = load("training", {**inputs, "framework": "megatron"})
    plan = Plan.of(problem, complete(problem, design, None))
    written = TARGETS["megatron"](plan).text
    known = read_plan(written, "launch.sh", load("training"))
    again = load("training", known.inputs)
    assert {n: i.value for n, i in again.inputs.items()} == plan.inputs
    assert read_design(again, known, {}) == plan.design
    assert TARGETS["megatron"](Plan.of(again, read_design(again, known, {}))).text == written


@pytest.mark.parametrize("kernel", ["flash3", "flash", "unfused"])
def test_the_attention_kernel_is_written_and_read_back(kernel: str) -> None:
    inputs, design = (pairs(text) for text in PLANS["dense"])
    problem = load("training", {**inputs, "framework": "megatron", "attention": kernel})
    written = TARGETS["megatron"](Plan.of(problem, complete(problem, design, None))).text
    backend = {"flash3": "fused", "flash": "flash", "unfused": "unfused"}[kernel]
    assert f"  --attention-backend {backend}\n" in written
    known = read_plan(written, "launch.sh", load("training"))
    assert load("training", known.inputs).inputs["attention"].value == kernel
    assert known.notes == ()


def test_backends_of_others() -> None:
    inputs, design = (pairs(text) for text in PLANS["dense"])
    problem = load("training", {**inputs, "framework": "megatron"})
    written = TARGETS["megatron"](Plan.of(problem, complete(problem, design, None))).text

    def read(backend: str) -> KnownPlan:
        extra = "--rotary-base 500000 --use-rope-scaling --rope-scaling-factor 8.0 --norm-epsilon 1e-5"
        text = written.replace("backend fused", f"backend {backend} {extra}")
        known: KnownPlan = read_plan(text, "x.sh", load("training"))
        return known

    assert "attention" not in read("auto").inputs
    assert "--rotary-base 500000" in read("auto").ignored
    assert "--attention-backend flash is predicted as flash3" in read("flash").notes[0]
    assert read("local").inputs["attention"] == "unfused"
    with pytest.raises(InputError, match="--attention-backend flashy: expected one of flash, fused"):
        read("flashy")


@cache
def _space(model: str, n_gpus: str, global_batch: str, seq_len: str) -> tuple[Problem, LegalDesigns]:
    inputs = {"model": model, "n_gpus": n_gpus, "global_batch": global_batch, "seq_len": seq_len}
    problem = load("training", {**inputs, "framework": "megatron"})
    return problem, LegalDesigns(problem, problem.everything, Coder(problem))


@pytest.mark.parametrize(
    "asked",
    [("llama-3.1-8b", "64", "128", "8192"), ("mixtral-8x7b", "128", "256", "4096")],
    ids=lambda a: a[0],
)
def test_what_is_legal_and_written_is_read_back(asked: tuple[str, str, str, str]) -> None:
    problem, legal = _space(*asked)
    read = 0
    for seed in range(25):
        drawn = legal.draw(np.random.default_rng(seed), set())
        assert drawn is not None
        assert isinstance(drawn.key, tuple)
        plan = Plan.of(problem, problem.design_at([int(digit) for digit in drawn.key]))
        try:
            written = TARGETS["megatron"](plan).text
        except InputError:  # test_export.py has what is said
            continue
        known = read_plan(written, "launch.sh", problem)
        assert read_design(problem, known, {}) == plan.design
        read += 1
    assert read > 5
