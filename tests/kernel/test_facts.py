"""Published figures of the feed-forward block and of small chains, from the space and its functions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

import dse
from dse.evaluation.explain import explain
from dse.problem import Design, Problem
from dse.spaces.kernel.block import EDGES, block, design
from dse.spaces.kernel.fusion import Machine, Times, kernels, times
from dse.spaces.kernel.graph import Graph, Operator
from dse.spaces.kernel.grouping import Groups, eager, fused_edges, greedy, one_kernel

H100 = Machine(989.4e12, 3.35e12, 4e-6)
US = 1e6


def cost(graph: Graph, groups: Groups, machine: Machine = H100) -> Times:
    return times(graph, fused_edges(graph, groups), machine)


@cache
def loaded(**settings: str) -> Problem:
    return dse.load("kernel", settings)


def shown(tokens: int, edges: Mapping[str, bool], **settings: str) -> Mapping[str, Any]:
    """The metrics of a design of the space on an H100 without captured graphs."""
    problem = loaded(**settings)
    chosen: Design = {"tokens": float(tokens), "hardware": "h100-sxm", "graphs": False, **edges}
    told = explain(problem, chosen)
    assert told.feasible
    return {step.name: step.value for step in told.metrics}


def test_eager_prefill_and_decode() -> None:
    graph = block(1, 4096, 14336)
    edges = design(graph, eager(graph))
    assert not any(edges.values())
    prefill, decode = shown(4096, edges), shown(1, edges)
    assert prefill["kernels"] == decode["kernels"] == 12
    assert prefill["time"] * US == pytest.approx(1782, rel=2e-3)
    assert decode["time"] * US == pytest.approx(153.3, rel=2e-3)
    assert decode["launch_share"] == pytest.approx(0.313, abs=5e-4)


def test_matmuls_take_most_of_the_eager_time() -> None:
    graph = block(4096, 4096, 14336)
    found = kernels(graph, fused_edges(graph, eager(graph)))
    matmuls = [kernel for kernel in found if graph.kind(kernel.first) == "matmul"]
    time = sum(max(k.flop / H100.peak, (k.read + k.written) / H100.bandwidth) + H100.launch for k in matmuls)
    assert time / cost(graph, eager(graph)).total == pytest.approx(0.825, abs=5e-4)
    assert sum(k.flop for k in matmuls) / sum(k.flop for k in found) == pytest.approx(0.9997, abs=5e-5)


def test_lower_bound() -> None:
    graph = block(1, 4096, 14336)
    edges = design(graph, one_kernel(graph))
    for tokens, microseconds in ((4096, 1462.6), (1, 109.2)):
        found = shown(tokens, edges, fuser="megakernel")
        assert found["kernels"] == 1
        assert found["time"] * US == pytest.approx(microseconds, rel=2e-3)
        assert found["lower_bound"] == found["time"]
        moved = 2 * (3 * 4096 * 14336 + 4096 + 2 * tokens * 4096)
        assert found["traffic"] == moved


def test_greedy_fusion_leaves_six_kernels() -> None:
    graph = block(4096, 4096, 14336)
    groups = greedy(graph)
    assert [sorted(group) for group in groups] == [
        ["eps", "mean", "pow", "rsqrt", "scale", "weight"], ["gate"], ["up"], ["product", "silu"], ["down"], ["residual"],
    ]  # fmt: skip
    found = shown(4096, design(graph, groups), fuser="pointwise")
    assert found["kernels"] == 6
    assert found["time"] == pytest.approx(cost(graph, groups).total, rel=1e-12)


def test_greedy_fusion_and_the_lower_bound_are_what_a_search_finds() -> None:
    graph = block(4096, 4096, 14336)
    for fuser, groups in (("pointwise", greedy(graph)), ("megakernel", one_kernel(graph))):
        fixed = {"fuser": fuser, "hardware": "h100-sxm", "tokens": "4096", "graphs": "false"}
        (point,) = dse.search(loaded(**fixed)).front
        assert {name: point.design[name] for name in EDGES} == design(graph, groups)
        assert point.objectives["time"] == pytest.approx(cost(graph, groups).total, rel=1e-3)


def test_every_team_has_designs_for_a_prompt_of_the_users() -> None:
    for asked in ({"tokens": "4096"}, {"tokens": "512", "prompt": "512"}, {"tokens": "1"}):
        problem = loaded(hardware="h100-sxm", **asked)
        best = [dse.search(problem, team=team).front[0].objectives["time"] for team in ("ml", "systems")]
        assert best[0] > best[1]


def test_parameters() -> None:
    found = shown(1, dict.fromkeys(EDGES, False))
    assert found["parameters"] == pytest.approx(176.16e6, rel=1e-3)
    assert found["parameters"] == 3 * 4096 * 14336 + 4096


def chain(*operators: Operator, n: float) -> Graph:
    tensors = {name for o in operators for name in (*o.reads, o.name)}
    return Graph(operators, dict.fromkeys(tensors, 2.0 * n), frozenset({operators[-1].name}))


def test_a_chain_of_four_fused_is_four_times_as_fast() -> None:
    n = 1e6
    graph = chain(
        Operator("a", "elementwise", ("x",), n),
        Operator("b", "elementwise", ("a",), n),
        Operator("c", "elementwise", ("b",), n),
        Operator("d", "elementwise", ("c",), n),
        n=n,
    )
    free = Machine(H100.peak, H100.bandwidth, 0.0)
    apart, fused = cost(graph, eager(graph), free), cost(graph, greedy(graph), free)
    assert (apart.traffic, fused.traffic) == (8 * 2 * n, 2 * 2 * n)
    assert apart.total / fused.total == pytest.approx(4.0, rel=1e-9)


def test_silu_and_product_fused() -> None:
    n = 1e6
    graph = chain(
        Operator("silu", "elementwise", ("g",), 4 * n),
        Operator("product", "elementwise", ("silu", "u"), n),
        n=n,
    )
    free = Machine(H100.peak, H100.bandwidth, 0.0)
    apart, fused = cost(graph, eager(graph), free), cost(graph, greedy(graph), free)
    assert (apart.traffic, fused.traffic) == (10 * n, 6 * n)
    assert apart.total / fused.total == pytest.approx(1.667, rel=1e-3)


def test_a_tensor_that_something_outside_needs_is_written() -> None:
    """The norm's output has two readers: beside one of them in a kernel, it is written for the other."""
    graph = block(8, 64, 256)
    x, inner, matrix = 2 * 8 * 64, 2 * 8 * 256, 2 * 64 * 256
    groups: Groups = (frozenset({"weight", "gate", "silu"}),)
    rest = tuple(frozenset({name}) for name in graph.names if name not in groups[0])
    found = {k.first: k for k in kernels(graph, fused_edges(graph, groups + rest)) if k.exists}
    assert found["weight"].read == x + 2 * 64 + matrix
    assert found["weight"].written == x + inner
    assert found["up"].read == x + matrix
    assert set(found) == set(graph.names) - {"gate", "silu"}


@pytest.mark.parametrize(
    ("operators", "said"),
    [
        ((Operator("a", "elementwise", ("b",), 1), Operator("b", "elementwise", ("x",), 1)), "before"),
        ((Operator("a", "elementwise", ("x",), 1), Operator("a", "elementwise", ("x",), 1)), "once"),
    ],
)
def test_a_graph_is_checked(operators: tuple[Operator, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        chain(*operators, n=1)
