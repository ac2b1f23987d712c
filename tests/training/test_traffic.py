"""What a plan sends and where it goes: formulas of the papers by hand, placements, experts, context parallelism."""

from __future__ import annotations

from typing import Any

import pytest

from dse.evaluation import State, judge
from dse.spaces.catalog import architecture
from dse.spaces.training import activations, communication, compute, flops, step, traffic
from tests.training.legal_plans import names, namespace, plan_of, space, traced


def plain(problem: Any, **values: Any) -> Any:
    """Numbers of a plan on a machine that reaches its datasheet and starts to send at once."""
    g = namespace(problem, names(problem, plan_of(problem, **values)))
    e = g.efficiency
    e.link = e.nic = 1.0
    e.link_latency = e.nic_latency = 0.0
    return g


SENT = 2048 * 4096 * 2.0
"""Bytes of the activations of one micro-batch of one sequence of 2048 tokens, h 4096."""


def test_tensor_parallel_traffic() -> None:
    problem = space(model="llama-3-8b", n_gpus="64", global_batch="64", seq_len="2048")
    link = 450e9
    reduced = traffic.tensor_parallel(plain(problem, tp=8))
    assert reduced == pytest.approx(2 * 2 * 7 / 8 * SENT / link)  # two all-reduces
    gathered = traffic.tensor_parallel(plain(problem, tp=8, sequence_parallel=True))
    assert gathered == pytest.approx(4 * 7 / 8 * SENT / link)  # two all-gathers, two reduce-scatters
    again = step.step(plain(problem, tp=8, recompute="full", recompute_block=1)).tp
    assert again == pytest.approx(1.5 * step.step(plain(problem, tp=8)).tp)


def test_data_parallel_traffic() -> None:
    """Megatron: gradients in 4 bytes are scattered and weights in 2 gathered; plain data parallelism reduces 4 bytes."""
    problem = space(model="llama-3-8b", n_gpus="64", global_batch="64", seq_len="2048")
    parameters = 8030261248.0
    nics = 8 * 50e9
    once = traffic.data_parallel(plain(problem), 32).once
    assert once == pytest.approx(7 / 8 * 6 * parameters / nics, rel=1e-6)
    assert traffic.data_parallel(plain(problem, sharding="ddp"), 32).once == pytest.approx(
        7 / 8 * 8 * parameters / nics, rel=1e-6
    )
    # ZeRO-3 gathers twice and scatters once with every micro-batch
    each = traffic.data_parallel(plain(problem, sharding="zero3"), 32).each
    assert each == pytest.approx(7 / 8 * 6 * parameters / nics, rel=1e-6)
    assert traffic.data_parallel(plain(problem, sharding="zero3"), 32).once == 0


def test_pipeline_traffic() -> None:
    problem = space(model="llama-3-8b", n_gpus="64", global_batch="64", seq_len="2048")
    far = traffic.boundary(plain(problem, pp=4))
    assert far == pytest.approx(SENT / 50e9)
    near = traffic.boundary(plain(problem, pp=4, placement="tp-cp-pp-dp"))
    assert near == pytest.approx(SENT / 450e9)
    assert traffic.boundary(plain(problem, pp=4, tp=2, sequence_parallel=True)) == pytest.approx(far / 2)
    chunks = step.step(plain(problem, pp=4, schedule="interleaved", chunks=4))
    assert chunks.pp == pytest.approx(4 * step.step(plain(problem, pp=4)).pp)


def test_only_one_group_can_be_innermost() -> None:
    """Stages on a node leave it fewer data parallel ranks to share its network cards."""
    problem = space(model="llama-3.1-70b", n_gpus="512", global_batch="512")
    for tp in (1, 2):
        apart, inside = (
            traced(problem, plan_of(problem, tp=tp, pp=4, placement=placement))
            for placement in ("tp-cp-dp-pp", "tp-cp-pp-dp")
        )
        assert inside["pp_exposed"] < apart["pp_exposed"]
        assert inside["dp_exposed"] > 2 * apart["dp_exposed"]
    g = plain(problem, tp=2, pp=4, placement="tp-cp-pp-dp")
    held = traffic.most_held(g)[0]
    assert traffic.data_parallel(g, 20).once == pytest.approx(63 / 64 * 6 * held / 50e9)


def test_a_ring_hides_behind_attention_and_all_to_alls_behind_nothing() -> None:
    problem = space(model="llama-3-8b", n_gpus="64", global_batch="8", seq_len="65536")
    ring, ulysses = (plain(problem, cp=8, cp_kind=kind) for kind in ("ring", "ulysses"))
    keys = 2 * 65536 * 8 * 128 * 2.0
    assert traffic.context_parallel(ring) == pytest.approx(7 / 8 * keys / 450e9)
    assert step.step(ring).cp == 0
    heads = 65536 / 8 * 2 * (2 * 32 + 2 * 8) * 128
    assert traffic.context_parallel(ulysses) == pytest.approx(7 / 8 * heads / 450e9)
    layers = 32
    assert step.step(ulysses).cp == pytest.approx(layers * 2 * traffic.context_parallel(ulysses))
    ring.hardware.link = ring.hardware.link / 1e3
    one = compute.layer(ring)
    shown = 3 * traffic.context_parallel(ring) - ring.efficiency.overlap * (one.core + one.core_backward)
    assert step.step(ring).cp == pytest.approx(layers * shown)
    again = plan_of(problem, cp=8, recompute="attention")
    assert traced(problem, again)["cp_exposed"] >= traced(problem, plan_of(problem, cp=8))["cp_exposed"]


def test_traffic_of_experts() -> None:
    problem = space(model="mixtral-8x7b", n_gpus="64", global_batch="64", seq_len="2048")
    on_node = plain(problem, ep=8)
    assert traffic.expert_parallel(on_node) == pytest.approx(
        2 * 7 / 8 * 2 * SENT / 450e9
    )  # top 2, there and back
    uneven = space(
        model="mixtral-8x7b", n_gpus="64", global_batch="64", seq_len="2048", expert_imbalance="1.5"
    )
    assert traffic.expert_parallel(plain(uneven, ep=8)) == pytest.approx(
        1.5 * traffic.expert_parallel(on_node)
    )
    # with tensor parallelism a rank sends its own tokens, and the experts spare the dense MLP's traffic
    both = plain(problem, tp=2, ep=8, sequence_parallel=True)
    sent = SENT / 50e9
    assert traffic.expert_parallel(both) == pytest.approx(traffic.expert_parallel(on_node) / 2)
    assert traffic.tensor_parallel(both) == pytest.approx(2 * 1 / 2 * SENT / 450e9)
    wide = plain(problem, tp=2, ep=8, sequence_parallel=True, expert_tp=True)  # 16 ranks: two nodes
    assert traffic.expert_parallel(wide) == pytest.approx(2 * (4 / 8 * sent + 1 / 2 * 2 * SENT / 450e9))
    again = step.step(plain(problem, ep=8, recompute="mlp")).ep
    assert again == pytest.approx(1.5 * step.step(on_node).ep)


def test_experts_are_padded_to_their_capacity() -> None:
    """Capacity takes the time of experts that are as full as it, in memory and FLOPs as well, however uneven they are."""
    inputs = {"model": "mixtral-8x7b", "n_gpus": "64", "global_batch": "64", "seq_len": "2048"}
    uneven, padded = (
        space(**inputs, expert_imbalance=imbalance, capacity_factor="1.5") for imbalance in ("1.5", "1.1")
    )
    full, capped = plain(uneven, ep=8), plain(padded, ep=8, dispatch="capacity")
    assert compute.layer(capped).mlp == compute.layer(full).mlp > compute.layer(plain(padded, ep=8)).mlp
    assert traffic.expert_parallel(capped) == traffic.expert_parallel(full)
    assert activations.moe_layer(capped) == activations.moe_layer(full)
    more = flops.extra_flops(capped)["padding"] / (3 * 64 * 2048)  # for each token of a forward pass
    assert more == pytest.approx(0.5 * 32 * 2 * architecture.expert_flops(capped.model))


def test_limited_routing_sends_a_token_to_few_nodes() -> None:
    problem = space(model="deepseek-v3", n_gpus="64", global_batch="64", seq_len="2048")
    g = plain(problem, ep=64)
    assert (g.model.group_limit, g.model.top_k) == (4, 8)
    tokens = 2048 * 7168 * 2.0
    share = 58 / 61  # of the layers
    assert traffic.expert_parallel(g) == pytest.approx(share * 2 * 4 * 56 / 64 * tokens / 50e9)
    g.model._model.group_limit = 0
    assert traffic.expert_parallel(g) == pytest.approx(share * 2 * 8 * 56 / 64 * tokens / 50e9)


def test_tiers_of_a_network() -> None:
    """Meta's pods of 3,072 GPUs share a seventh of their bandwidth with each other (Llama 3, section 3.3.1)."""
    inputs = {"model": "llama-3-8b", "global_batch": "16384", "seq_len": "2048"}
    inside = space(**inputs, n_gpus="2048", cluster="meta-24k-roce")
    beyond = space(**inputs, n_gpus="16384", cluster="meta-24k-roce")
    near, far = (traffic.data_parallel(plain(problem), 32).once for problem in (inside, beyond))
    assert far == pytest.approx(7 * near * (2047 / 2048) / (255 / 256), rel=1e-6)


def test_a_network_that_is_not_known_is_only_asked_for_between_nodes() -> None:
    inputs = {"model": "llama-3.2-1b", "hardware": "a10g", "seq_len": "2048", "global_batch": "64"}
    one, more = space(**inputs, n_gpus="8"), space(**inputs, n_gpus="64")
    assert judge(one, plan_of(one, tp=2)).state is State.FEASIBLE
    assert "the network between nodes of a10g is not known" in judge(more, plan_of(more, tp=2)).reason
    known = space(**inputs, n_gpus="64", cluster="aws-p4d")
    assert judge(known, plan_of(known, tp=2)).state is State.FEASIBLE


def test_a_cluster_says_its_own_latencies_and_whether_switches_reduce() -> None:
    problem = space(model="llama-3-8b", n_gpus="64", global_batch="64", seq_len="2048")
    slow = plain(problem)
    slow.cluster.link_latency, slow.cluster.nic_latency = 0.5, 1.0
    to = communication.group(slow, 16.0, 1.0)
    assert (to.link_step, to.network_step) == (0.5, 1.0)
    assert communication.ring_latency(to) == 15.0
    once, twice = plain(problem), plain(problem)
    once.cluster.in_network = 1.0
    reduced = [communication.all_reduce(communication.group(g, 8.0, 8.0), 1e9) for g in (once, twice)]
    assert reduced[1] == pytest.approx(2 * reduced[0])


def test_sharded_weights_send_nothing_once_a_step() -> None:
    problem = space(model="llama-3-8b", n_gpus="64")
    g = namespace(problem, names(problem, plan_of(problem, sharding="zero3")))
    assert g.efficiency.nic_latency > 0
    assert traffic.data_parallel(g, 32).once == 0
