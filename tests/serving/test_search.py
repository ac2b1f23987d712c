"""Searches for serving plans are proven: every design accounted for, and the front that of looking at each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dse.study.study import search
from tests.serving.plans import metrics, space
from tests.training.legal_plans import restricted

FEW = (1, 8, 64, 160, 512)
CASES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "dense": (
        {"model": "llama-3.1-70b", "request_rate": "2 1/s", "max_ttft": "1 s", "max_tpot": "60 ms", "prompt_cv": "1"},
        {"hardware": "h100-sxm", "pp": 1, "tp": (4, 8), "replicas": 1, "weights": ("bf16", "fp8"), "kv": ("bf16", "fp8"),
         "chunk": (0, 512), "disaggregated": False, "batch": FEW},
    ),
    "mixture": (
        {"model": "gpt-oss-20b", "acceptance": "0.6", "prompt_len": "2048"},
        {"hardware": ("h100-sxm", "gb200-nvl72"), "pp": 1, "tp": (1, 2), "attention_dp": 1, "ep": 1, "kv": "bf16",
         "weights": ("bf16", "fp8", "mxfp4"), "draft_length": (0, 2), "chunk": (0, 1024), "disaggregated": False, "batch": FEW},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bounds_find_what_looking_at_every_plan_finds(name: str) -> None:
    inputs, values = CASES[name]
    problem = space(**inputs)
    asked: dict[str, Any] = {"team": restricted(problem, **values), "ties": True, "seed": 3}
    plain = search(problem, solver="exhaustive", options={"jit": "off"}, **asked)
    pruned = search(problem, solver="pareto", **asked)
    assert [(p.index, p.objectives, p.ties, p.tied) for p in pruned.front] == [
        (p.index, p.objectives, p.ties, p.tied) for p in plain.front
    ]
    kept = plain.kept
    assert kept is not None
    assert kept.complete
    assert 50 < kept.seen < 50_000
    assert len(plain.front) >= 2
    best = kept.objectives[kept.feasible]
    for point in plain.front:
        found = np.array([point.objectives["gpu_throughput"], point.objectives["user_speed"]])
        assert not np.any(np.all(best >= found, axis=1) & np.any(best > found, axis=1))
        again = metrics(problem, **point.design)
        assert [again["gpu_throughput"], again["user_speed"]] == pytest.approx(found, rel=1e-12)


def test_all_plans_for_70_billion_parameters_are_accounted_for() -> None:
    problem = space(model="llama-3.1-70b", max_ttft="1 s", max_tpot="40 ms")
    found = search(problem, team=restricted(problem, hardware="h100-sxm"))
    assert found.status == "complete"
    assert found.accounting.total == math.prod(len(one.values) for one in problem.dimensions)
    for point in found.front:
        values: dict[str, Any] = dict(point.metrics)
        assert values["tpot"] <= 0.04
        assert values["ttft"] <= 1.0
        assert values["peak_memory"] <= 85_520_809_984 * 0.9 - 1.5 * 2**30
        assert values["decode_roofline"] < 1
