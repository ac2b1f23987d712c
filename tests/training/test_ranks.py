"""What the ranks of legal plans hold: parameters add up to the model, state never grows with the ZeRO stage."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import given as over
from hypothesis import strategies as st

from dse.spaces.catalog import architecture
from dse.spaces.training import layout, memory, state
from tests.training.legal_plans import CASES, columns, drawn, names, namespace, space

STAGES = {
    "deepspeed": ("zero0", "zero1", "zero2", "zero3"),
    "megatron": ("ddp", "distributed-optimizer", "megatron-fsdp"),
    "torchtitan": ("fsdp2-resident", "fsdp2"),
}
TRANSIENT = ("gathered_weights", "buckets")


def drawing(examples: int) -> settings:
    return settings(max_examples=examples, phases=(Phase.explicit, Phase.generate))


@drawing(16)
@over(
    st.sampled_from(list(CASES)),
    st.integers(0, 2**20),
    st.sampled_from(["even", "embedding", "loss", "both"]),
)
def test_parameters_of_all_ranks_less_named_replicas_are_the_model(case: str, seed: int, edges: str) -> None:
    problem = space(**CASES[case])
    for design in drawn(problem, 12, seed, edges=edges):
        g = namespace(problem, names(problem, design))
        everywhere = 0.0
        for index in range(int(g.pp)):
            own = state.held(g, index)
            assert own.total > 0
            everywhere += g.tp * own.dense + g.ep * layout.expert_tp(g) * own.experts
        copies = state.replicas(g)
        assert all(count >= 0 for count in copies.values())
        assert everywhere - sum(copies.values()) == pytest.approx(architecture.parameters(g.model), rel=1e-13)


@pytest.mark.parametrize("framework", STAGES)
@drawing(8)
@over(st.sampled_from(list(CASES)), st.integers(0, 2**20))
def test_state_never_grows_with_the_zero_stage(framework: str, case: str, seed: int) -> None:
    """With equal framework, ranks and plan; the peak grows by no more than the transient lines."""
    problem = space(**CASES[case])
    designs = drawn(problem, 40, seed, sharding=STAGES[framework])
    steps: list[Any] = []
    for sharding in STAGES[framework]:
        # the same plans, whether or not pipelines are legal with the stage
        others = [{**design, "sharding": sharding, "shard_group": 0.0} for design in designs]
        steps.append(namespace(problem, columns(problem, others)))
    for lower, higher in itertools.pairwise(steps):
        assert np.all(lower.sharding.stage < higher.sharding.stage)
        for index in (0, 1, state.LAST):
            assert np.all(state.state_bytes(higher, index) <= state.state_bytes(lower, index) * (1 + 1e-12))
            low, high = memory.stage_memory(lower, index), memory.stage_memory(higher, index)
            named = sum(np.maximum(high[name] - low[name], 0) for name in TRANSIENT)
            around = 1 + higher.runtime.fragmentation + higher.runtime.cache
            assert np.all(sum(high.values()) <= (sum(low.values()) + named * around) * (1 + 1e-12))


@pytest.mark.parametrize("framework", STAGES)
def test_stages_on_one_rank_and_two_layers(framework: str) -> None:
    problem = space(
        model="llama-3.2-1b", n_gpus="1", global_batch="1", **{"tables.models.llama-3.2-1b.layers": "2"}
    )
    (design,) = drawn(problem, 1, 3, sharding=STAGES[framework][0], micro_batch=1)
    kept, peaks = [], []
    for sharding in STAGES[framework]:
        g = namespace(problem, names(problem, {**design, "sharding": sharding}))
        lines = memory.stage_memory(g, 0)
        kept.append(state.state_bytes(g, 0))
        around = 1 + g.runtime.fragmentation + g.runtime.cache
        peaks.append(sum(lines.values()) - around * sum(lines[name] for name in TRANSIENT))
    assert kept == sorted(kept, reverse=True)
    assert peaks == pytest.approx(sorted(peaks, reverse=True), rel=1e-12)
