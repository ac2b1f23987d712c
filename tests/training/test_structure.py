"""What must hold of any training plan: monotone times, bubbles, FLOPs by name, data parallelism as the simplest plan."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import given as over
from hypothesis import strategies as st

from dse.evaluation import State, judge
from dse.spaces.catalog import architecture
from dse.spaces.training import flops, layout, state, step, traffic
from tests.training.legal_plans import CASES, drawn, given, names, namespace, plan_of, space

PLANS = 48
SEEDS = st.integers(0, 2**20)
CASE = st.sampled_from(list(CASES))


def drawing(examples: int) -> settings:
    """This many examples; a plan that fails is told as it is, since making it simpler takes minutes."""
    return settings(max_examples=examples, phases=(Phase.explicit, Phase.generate))


def plans(case: str, seed: int, **values: Any) -> Any:
    """Legal plans of one of the cases, side by side."""
    problem = space(**CASES[case])
    return given(problem, drawn(problem, PLANS, seed, **values))


def close_or_less(smaller: Any, larger: Any) -> bool:
    return bool(np.all(smaller <= np.asarray(larger) * (1 + 1e-12)))


# -- (a) a faster machine is never slower ------------------------------------------------------------


def _scaled(part: str, *names_: str) -> Callable[[Any, float], None]:
    def scale(g: Any, factor: float) -> None:
        for name in names_:
            row = getattr(g, part)
            value = getattr(row, name)
            share = part == "efficiency" and name != "gemm_half" and "latency" not in name
            setattr(row, name, min(value * factor, 1.0) if share else value * factor)

    return scale


def _quicker(*names_: str) -> Callable[[Any, float], None]:
    """Seconds, or sizes from which a kernel is efficient, become less."""

    def scale(g: Any, factor: float) -> None:
        for name in names_:
            setattr(g.efficiency, name, getattr(g.efficiency, name) / factor)

    return scale


def _nics(g: Any, factor: float) -> None:
    g.hardware.nic, g.cluster.nic = g.hardware.nic * factor, g.cluster.nic * factor


def _host(g: Any, factor: float) -> None:
    g.host_bandwidth = g.host_bandwidth * factor


FASTER: dict[str, Callable[[Any, float], None]] = {
    "computing": _scaled("hardware", "bf16", "fp16", "fp8", "fp4"),
    "16 bits": _scaled("hardware", "bf16", "fp16"),
    "8 bits": _scaled("hardware", "fp8"),
    "memory": _scaled("hardware", "bandwidth"),
    "link": _scaled("hardware", "link"),
    "nic": _nics,
    "host": _host,
    **{f"share of {name}": _scaled("efficiency", name) for name in ("gemm", "fp8", "attention", "memory", "link", "nic")},
    "overlap": _scaled("efficiency", "overlap"),
    **{name: _quicker(name) for name in ("gemm_half", "link_latency", "nic_latency", "launch", "step_overhead")},
}  # fmt: skip


def changed(g: Any) -> Any:
    """A copy whose rates may be changed."""
    parts = {
        name: SimpleNamespace(**vars(getattr(g, name))) for name in ("hardware", "cluster", "efficiency")
    }
    return SimpleNamespace(**{**vars(g), **parts})


def slowed(g: Any, factor: float) -> Any:
    """A copy with slow or fast communication, so that windows are too short as well as long."""
    slow = changed(g)
    FASTER["link"](slow, factor)
    FASTER["nic"](slow, factor)
    return slow


@drawing(14)
@over(CASE, SEEDS, st.floats(1.0, 50.0), st.floats(0.01, 1.0))
def test_a_faster_machine_is_never_slower(case: str, seed: int, factor: float, slowness: float) -> None:
    before = slowed(plans(case, seed), slowness)
    total = step.step(before).total
    for rate, faster in FASTER.items():
        after = changed(before)
        faster(after, factor)
        assert close_or_less(step.step(after).total, total), rate


@drawing(10)
@over(CASE, SEEDS, st.floats(1.0, 1.001))
def test_no_step_grows_where_the_slowest_stage_changes(case: str, seed: int, factor: float) -> None:
    """Stages of different length: which one is the slowest depends on the rates."""
    before = plans(case, seed, edges=("embedding", "loss", "both"))
    after = changed(before)
    FASTER["computing"](after, factor)
    assert close_or_less(step.step(after).total, step.step(before).total)


@drawing(20)
@over(CASE, SEEDS, st.floats(0.001, 1.0))
def test_hidden_seconds_are_taken_from_one_budget(case: str, seed: int, slowness: float) -> None:
    found = slowed(plans(case, seed, edges="even"), slowness)
    bare = changed(found)
    bare.efficiency.overlap = 0.0
    some, everything = step.step(found), step.step(bare)

    def shown(s: step.Step) -> Any:
        return s.tp + s.cp + s.ep + s.pp + s.dp

    hidden = shown(everything) - shown(some)
    computing = some.compute + some.recompute
    assert np.all(hidden >= -1e-9 * shown(everything))
    assert np.all(hidden <= found.efficiency.overlap * computing * (1 + 1e-9) + 1e-9 * shown(everything))
    for part in ("tp", "cp", "ep", "pp", "dp", "bubble", "recompute"):
        assert np.all(getattr(some, part) >= 0)


def test_tensor_and_data_parallel_traffic_compete_for_one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = space(model="llama-3-8b", n_gpus="512", global_batch="64", seq_len="8192")
    design = plan_of(problem, tp=8, sequence_parallel=True, overlap_dp=True, overlap_tp=True)
    assert judge(problem, design).state is State.FEASIBLE
    g = namespace(problem, names(problem, design))
    assert layout.micro_batches(g) == 1
    window = 1.0
    layers = g.model.layers

    def traffic_of(tp: float, dp: float) -> step.Step:
        """A step in which computing can hide one second, with this much traffic."""
        monkeypatch.setattr(traffic, "tensor_parallel", lambda _: tp / 2.0 / layers)  # forward and backward
        monkeypatch.setattr(traffic, "data_parallel", lambda *_: traffic.Data(once=dp, each=0.0))
        return step.step(g)

    computing = traffic_of(0.0, 0.0)
    head = step.compute.head(g).total
    g.efficiency.overlap = window / (computing.compute - head)
    for tp, dp in [
        (0.2, 0.3),
        (0.5, 0.5),
        (0.5, 0.9),
        (0.9, 0.5),
        (1.5, 0.5),
        (2.0, 3.0),
        (0.0, 3.0),
        (3.0, 0.0),
    ]:
        found = traffic_of(tp, dp)
        assert found.tp == pytest.approx(max(tp - window, 0.0), abs=1e-12)
        assert found.dp == pytest.approx(max(dp - max(window - tp, 0.0), 0.0), abs=1e-12)
        assert (tp - found.tp) + (dp - found.dp) <= window * (1 + 1e-12)
    # the window is full: what more of one is sent shows the other, second for second
    assert traffic_of(0.6, 0.7).dp - traffic_of(0.5, 0.7).dp == pytest.approx(0.1)
    assert traffic_of(1.6, 0.7).tp - traffic_of(1.5, 0.7).tp == pytest.approx(0.1)


# -- (c) bubbles ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved", "zb-h1", "dualpipe"])
@drawing(8)
@over(st.sampled_from(["dense", "gpt", "mixture", "windows", "racks"]), SEEDS)
def test_the_share_of_the_bubble_falls_with_micro_batches(schedule: str, case: str, seed: int) -> None:
    g = plans(case, seed, schedule=schedule, pp=(2, 4, 8, 16))
    grid = {"interleaved": g.pp, "dualpipe": 2 * np.ones_like(g.pp)}.get(schedule, np.ones_like(g.pp))
    start, one = layout.micro_batches(g), layout.dp(g) * g.micro_batch
    last = np.full(len(g.pp), np.inf)
    for more in (0, 1, 2, 3, 5, 8, 40, 1000):
        g.global_batch = (start + more * grid) * one
        found = step.step(g)
        share = found.bubble / found.total
        assert np.all(share >= 0)
        assert np.all(share < 1)
        assert close_or_less(share, last)
        last = share


def test_bubbles_of_the_papers() -> None:
    """GPipe and 1F1B (p - 1) of the time of a micro-batch, interleaved that / v (Narayanan 2.2), ZB-H1 less (Qi)."""
    problem = space(model="llama-3-8b", n_gpus="4", global_batch="64", seq_len="4096")

    def found(schedule: str, chunks: int = 1) -> tuple[Any, step.Step]:
        design = plan_of(problem, pp=4, schedule=schedule, chunks=chunks, micro_batch=1)
        assert judge(problem, design).rule is None
        g = namespace(problem, names(problem, design))
        g.hardware.link = g.hardware.link * 1e9  # nothing but the bubble between stages
        g.efficiency.link_latency = 0.0
        return g, step.step(g)

    g, plain = found("1f1b")
    one = step.compute.layer(g)
    forward, backward, weights = 8 * one.forward, 8 * one.input_grad, 8 * one.weight_grad
    assert plain.bubble == pytest.approx(3 * (forward + backward + weights))
    assert found("gpipe")[1].bubble == pytest.approx(plain.bubble)
    assert found("interleaved", 4)[1].bubble == pytest.approx(plain.bubble / 4)
    assert found("zb-h1")[1].bubble == pytest.approx(3 * (forward + backward - weights))
    whole = backward + weights
    assert found("dualpipe")[1].bubble == pytest.approx(forward + whole + whole - 3 * weights)
    # relative to the whole, (p - 1) / (m + p - 1) where nothing else takes time
    ideal = plain.bubble / (plain.bubble + 64 * (forward + backward + weights))
    assert ideal == pytest.approx(3 / 67)


# -- (d) FLOPs by name ------------------------------------------------------------------------------------


@drawing(20)
@over(
    st.sampled_from([name for name in CASES if name != "redesigned"]),
    SEEDS,
    st.sampled_from(["causal", "full"]),
)
def test_model_flops_are_those_of_the_inputs_and_the_rest_has_names(
    case: str, seed: int, convention: str
) -> None:
    g = plans(case, seed)
    g.attention_flops = convention
    model, extra, executed = flops.model_flops(g), flops.extra_flops(g), flops.executed_flops(g)
    assert np.unique(model).size == 1
    assert set(extra) == {"recompute", "padding", "replication"}
    for more in extra.values():
        assert np.all(np.broadcast_to(more, len(g.tp)) >= 0)
    assert executed == pytest.approx(model + sum(extra.values()), rel=1e-14)
    again = (g.recompute.attention + g.recompute.mlp + g.recompute.full) > 0
    assert np.all((extra["recompute"] > 0) == again)
    forward = model / 3
    assert np.all(extra["recompute"] <= forward)


def test_full_recomputation_repeats_the_layers_and_not_the_head() -> None:
    problem = space(model="llama-3-8b")
    whole = flops.extra_flops(
        namespace(problem, names(problem, plan_of(problem, recompute="full", recompute_block=1)))
    )
    tokens = 512 * 8192
    layers = architecture.forward_flops(_model("llama-3-8b"), 8192) - 2 * 4096 * 128256
    assert whole["recompute"] == pytest.approx(tokens * layers, rel=1e-14)


def _model(name: str) -> Any:
    problem = space(model=name)
    return names(problem, plan_of(problem))["model"]


def test_flops_of_gpt_3_are_those_of_the_papers() -> None:
    """Narayanan Eq. 3: 96BsLh^2(1 + s/6h + V/16Lh) with recomputation; Korthikanti: 72BLsh^2(1 + s/6h + V/12Lh)."""
    problem = space(
        model="megatron-175b", n_gpus="1024", global_batch="1536", seq_len="2048", attention_flops="full"
    )
    b, s, h, layers, v = 1536, 2048, 12288, 96, 51200
    g = namespace(problem, names(problem, plan_of(problem, tp=8, pp=8, recompute="full", sharding="ddp")))
    square = b * s * layers * h**2
    assert flops.executed_flops(g) == pytest.approx(
        96 * square * (1 + s / (6 * h) + v / (16 * layers * h)), rel=1e-12
    )
    assert flops.model_flops(g) == pytest.approx(
        72 * square * (1 + s / (6 * h) + v / (12 * layers * h)), rel=1e-12
    )
    # 6 P T counts the weights alone
    six = 6 * architecture.parameters(g.model) * b * s
    assert 1.02 < flops.model_flops(g) / six < 1.03
    g.attention_flops = "causal"
    assert 1.005 < flops.model_flops(g) / six < 1.015


def test_padding_and_replicas_are_named() -> None:
    problem = space(model="gpt-3-175b", n_gpus="128", global_batch="128", seq_len="2048")
    g = namespace(problem, names(problem, plan_of(problem, tp=8)))
    rows = -(-50257 // 1024) * 1024 - 50257
    assert flops.extra_flops(g)["padding"] == 3 * 128 * 2048 * 2 * 12288 * rows
    assert flops.extra_flops(g)["replication"] == 0
    problem = space(model="llama-3-8b", n_gpus="64", global_batch="64", seq_len="2048")
    g = namespace(problem, names(problem, plan_of(problem, tp=32, sequence_parallel=True)))
    copies = 4 - 1  # 8 KV heads on 32 ranks
    assert flops.extra_flops(g)["replication"] == 3 * 64 * 2048 * 2 * 32 * copies * (2 * 4096 * 8 * 128)
    problem = space(
        model="mixtral-8x7b", n_gpus="64", global_batch="64", seq_len="2048", capacity_factor="1.5"
    )
    g = namespace(problem, names(problem, plan_of(problem, ep=8, dispatch="capacity")))
    assert flops.extra_flops(g)["padding"] == 3 * 64 * 2048 * 32 * 2 * 0.5 * 2 * 3 * 4096 * 14336


# -- (f) without model parallelism -------------------------------------------------------------------------


@drawing(10)
@over(st.sampled_from(["dense", "gpt", "volta", "mixture", "windows"]), SEEDS)
def test_one_of_everything_is_data_parallelism(case: str, seed: int) -> None:
    g = plans(case, seed, tp=1, pp=1, cp=1, ep=1)
    found = step.step(g)
    for part in ("tp", "cp", "ep", "pp", "bubble"):
        assert np.all(getattr(found, part) == 0), part
    assert np.all(layout.dp(g) == g.n_gpus)
    assert np.all(layout.expert_shard_ranks(g) == g.n_gpus)
    assert layout.first_layers(g) == pytest.approx(g.model.layers)
    padded = architecture.padded_vocab(g.model) - g.model.vocab
    own = architecture.parameters(g.model) + (2 - g.model.tied) * padded * g.model.hidden
    assert state.held(g, 0).total == pytest.approx(own, rel=1e-14)
    shards = np.where(g.shard_group > 0, g.shard_group, g.n_gpus)
    experts = g.model.moe_layers * g.model.experts * architecture.expert_parameters(g.model)
    kept = own * g.sharding.resident + (own - experts) * g.sharding.sharded / shards
    kept = kept + experts * g.sharding.sharded / g.n_gpus
    away = g.optimizer.offload * g.sharding.optimizer
    whole = np.where(g.sharding.stage >= 1, (own - experts) / shards + experts / g.n_gpus, own)
    assert state.state_bytes(g, 0) == pytest.approx(kept - away * whole, rel=1e-12)


def test_computing_of_a_replica_does_not_depend_on_the_others() -> None:
    seconds = []
    for n_gpus in (1, 8, 512):
        problem = space(model="llama-3.2-1b", n_gpus=str(n_gpus), global_batch=str(4 * n_gpus))
        found = step.step(namespace(problem, names(problem, plan_of(problem, sharding="ddp"))))
        seconds.append((found.compute, found.optimizer, found.recompute))
        assert (found.dp == 0) == (n_gpus == 1)
    assert seconds[0] == seconds[1] == seconds[2]


# -- (g) a plan that was run, and its neighbours -------------------------------------------------------------

LLAMA = {
    "model": "llama-3.1-405b",
    "n_gpus": "16384",
    "global_batch": "2048",
    "seq_len": "8192",
    "framework": "megatron",
}
RUN = {"tp": 8, "pp": 16, "edges": "both", "sequence_parallel": True, "overlap_dp": True}  # fmt: skip


def test_the_plan_of_llama_3_is_legal() -> None:
    problem = space(**LLAMA)
    design = plan_of(problem, **RUN)
    assert judge(problem, design).rule is None
    assert judge(problem, plan_of(problem, **RUN, recompute="full")).state is State.FEASIBLE
    g = namespace(problem, names(problem, design))
    assert (layout.dp(g), layout.micro_batches(g)) == (128, 16)
    assert (layout.first_layers(g), layout.middle_layers(g), layout.last_layers(g)) == (7, 8, 7)
    assert 7 + 14 * 8 + 7 == 126
    for chunks in (2, 4, 8):
        more = plan_of(problem, **RUN, schedule="interleaved", chunks=chunks)
        assert judge(problem, more).rule is None


@pytest.mark.parametrize(
    ("values", "rule", "said"),
    [
        ({"edges": "even"}, "stages", "126 layers (edges: even) are not divisible over PP 16 x 1 chunks"),
        ({"edges": "loss"}, "stages", "126 layers (edges: loss) are not divisible"),
        ({"schedule": "interleaved", "chunks": 3}, "stages", "PP 16 x 3 chunks"),
        ({"schedule": "interleaved", "chunks": 1}, "interleaved", "more than one chunk a stage"),
        ({"pp": 15}, "gpus", "TP 8 x PP 15 x CP 1 does not divide 16384 GPUs"),
        ({"micro_batch": 3}, "batch", "DP 128 x micro-batch 3 does not divide the global batch of 2048 sequences"),
        ({"micro_batch": 32}, "batch", "micro-batch 32"),
        ({"schedule": "interleaved", "chunks": 2, "micro_batch": 2}, "interleaved", "in groups of PP 16"),
        ({"schedule": "gpipe"}, "schedule_offered", "megatron does not offer the schedule gpipe"),
        ({"schedule": "zb-h1"}, "schedule_offered", "zb-h1"),
        ({"sharding": "zero1"}, "sharding_offered", "megatron does not offer zero1"),
        ({"sharding": "fsdp2"}, "sharding_offered", "fsdp2"),
        ({"format": "fp8"}, "asked_precision", "bf16 was asked for"),
        ({"placement": "tp-pp-cp-dp"}, "placement_offered", "tp-pp-cp-dp"),
        ({"sequence_parallel": False, "overlap_tp": True}, "overlap_needs_sp", "needs sequence parallelism"),
        ({"tp": 16, "overlap_tp": True}, "overlap_in_node", "TP 16 leaves it"),
        ({"recompute": "full", "recompute_block": 3}, "recompute_block", "blocks of 3 layers"),
        ({"seq_len": "8200", "cp": 64}, "sequence", "8200 tokens is not divisible by twice CP 64"),
        ({"cp": 32, "cp_kind": "ulysses"}, "ulysses", "TP 8 x CP 32 does not divide 128"),
    ],
)  # fmt: skip
def test_its_neighbours_are_illegal_with_a_reason(values: dict[str, Any], rule: str, said: str) -> None:
    plan = dict(values)
    seq_len = plan.pop("seq_len", "8192")
    problem = space(**{**LLAMA, "seq_len": seq_len})
    verdict = judge(problem, plan_of(problem, **{**RUN, **plan}))
    assert verdict.rule is not None
    assert verdict.rule.name == rule
    assert said in verdict.reason
