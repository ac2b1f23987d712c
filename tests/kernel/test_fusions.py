"""Legal designs of the space against all ways to cut the graph into kernels, found by brute force."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest

import dse
from dse.evaluation import broken_rule
from dse.evaluation.sentence import sentence
from dse.problem import Design, Problem
from dse.spaces.kernel.block import EDGES, block
from dse.spaces.kernel.fusion import Machine, times
from dse.spaces.kernel.grouping import Groups, fused_edges, greedy, in_order
from dse.study.legal import LegalDesigns

MATMULS = {"gate", "up", "down"}
ARROWS = sorted(EDGES.values())
NAMES = sorted({name for arrow in ARROWS for name in arrow})


def components(inside: tuple[bool, ...]) -> frozenset[frozenset[str]]:
    """Operators that the chosen edges connect."""
    groups = {name: {name} for name in NAMES}
    for (a, b), joined in zip(ARROWS, inside, strict=True):
        if joined and groups[a] is not groups[b]:
            groups[a] |= groups[b]
            for name in groups[b]:
                groups[name] = groups[a]
    return frozenset(frozenset(group) for group in groups.values())


def reachable(start: set[str], without: frozenset[str], backwards: bool = False) -> set[str]:
    """What leads from (or to) operators outside a kernel."""
    found, queue = set(start), list(start)
    while queue:
        at = queue.pop()
        for a, b in ARROWS:
            source, target = (b, a) if backwards else (a, b)
            if source == at and target not in found and target not in without:
                found.add(target)
                queue.append(target)
    return found


def convex(group: frozenset[str]) -> bool:
    """Nothing outside lies on a path between two of its operators."""
    after = {b for a, b in ARROWS if a in group and b not in group}
    before = {a for a, b in ARROWS if b in group and a not in group}
    return not (reachable(after, group) & reachable(before, group, backwards=True))


def within(group: frozenset[str], a: str, matmul: str) -> bool:
    """Whether a kernel holds an operator and a later matmul that its result leads to, all inside."""
    outside = frozenset(NAMES) - group
    return {a, matmul} <= group and matmul in reachable({a}, outside)


def allowed(group: frozenset[str], fuser: str) -> bool:
    held = group & MATMULS
    if fuser == "pointwise":
        return not held or len(group) == 1
    if len(held) > {"tile": 1, "gated": 2, "megakernel": 3}[fuser]:
        return False
    makers = ("mean", "gate", "up")
    return fuser == "megakernel" or not any(within(group, a, m) for a in makers for m in MATMULS if a != m)


def partitions() -> Iterator[frozenset[frozenset[str]]]:
    """Every cut into connected kernels, once."""
    yield from {components(inside) for inside in product((False, True), repeat=len(ARROWS))}


@pytest.fixture(scope="module")
def cuts() -> list[frozenset[frozenset[str]]]:
    return [cut for cut in partitions() if all(map(convex, cut))]


@cache
def on_h100(fuser: str) -> Problem:
    return dse.load("kernel", {"fuser": fuser})


@pytest.mark.parametrize("fuser", ["pointwise", "tile", "gated", "megakernel"])
def test_legal_designs_are_the_legal_cuts(cuts: list[frozenset[frozenset[str]]], fuser: str) -> None:
    wanted = {cut for cut in cuts if all(allowed(group, fuser) for group in cut)}
    problem = on_h100(fuser)
    found = []
    for inside in product((False, True), repeat=len(ARROWS)):
        edges = {name: inside[ARROWS.index(arrow)] for name, arrow in EDGES.items()}
        if broken_rule(problem, {"tokens": 1.0, "hardware": "h100-sxm", "graphs": False, **edges}) is None:
            found.append(components(inside))
    assert len(found) == len(set(found)) == len(wanted)
    assert set(found) == wanted
    counted = LegalDesigns(problem, problem.everything).count
    chips = sum(1 for row in problem.dimension("hardware").values if computes(problem, str(row)))
    assert counted == len(wanted) * 17 * 2 * chips


def computes(problem: Problem, chip: str) -> bool:
    design: Design = {"tokens": 1.0, "hardware": chip, "graphs": False, **dict.fromkeys(EDGES, False)}
    return broken_rule(problem, design) is None


def test_cuts_into_convex_kernels_are_those_that_can_run_in_order(
    cuts: list[frozenset[frozenset[str]]],
) -> None:
    graph, convex_ones = block(4, 64, 256), set(cuts)
    every = list(partitions())
    assert (len(every), len(cuts)) == (3456, 2816)
    assert [in_order(graph, tuple(cut)) for cut in every] == [cut in convex_ones for cut in every]


def test_costs_are_those_of_the_cut(cuts: list[frozenset[frozenset[str]]]) -> None:
    """Bytes and operations of every cut, counted from sets of names."""
    graph = block(32, 64, 256)
    machine = Machine(1e12, 1e11, 1e-6)
    for cut in cuts[:: len(cuts) // 200]:
        total = traffic = 0.0
        for group in cut:
            reads = {t for o in graph.operators if o.name in group for t in o.reads} - group
            writes = {
                name
                for name in group
                if name == "residual" or any(a == name and b not in group for a, b in ARROWS)
            }
            size = sum(graph.size[name] for name in reads | writes)
            flop = sum(o.flop for o in graph.operators if o.name in group)
            traffic += size
            total += max(flop / machine.peak, size / machine.bandwidth) + machine.launch
        groups: Groups = tuple(cut)
        found = times(graph, fused_edges(graph, groups), machine)
        assert found.kernels == len(cut)
        assert found.traffic == pytest.approx(traffic, rel=1e-12)
        assert found.total == pytest.approx(total, rel=1e-12)
        assert sum(found.each.values()) == pytest.approx(total, rel=1e-12)
        place = graph.names.index
        firsts = {min(group, key=place) for group in cut}
        assert {name for name, seconds in found.each.items() if seconds} == firsts


def test_greedy_fusion_never_waits_for_itself() -> None:
    """A matmul between two elementwise operators keeps them apart, even beside a direct edge."""
    from dse.spaces.kernel.graph import Graph, Operator

    graph = Graph(
        (
            Operator("a", "elementwise", ("x",), 1.0),
            Operator("m", "matmul", ("a",), 1.0),
            Operator("b", "elementwise", ("a", "m"), 1.0),
        ),
        dict.fromkeys(("x", "a", "m", "b"), 1.0),
        frozenset({"b"}),
    )
    assert greedy(graph) == (frozenset("a"), frozenset("m"), frozenset("b"))


def test_rejections_say_why() -> None:
    none: Design = {"tokens": 1.0, "hardware": "h100-sxm", "graphs": False, **dict.fromkeys(EDGES, False)}
    asked: list[tuple[str, Design, str]] = [
        ("tile", {"weight_gate": True, "gate_silu": True, "silu_product": True}, "waits for a kernel that"),
        ("tile", {"weight_gate": True, "weight_up": True}, "tile kernels hold 1 at most"),
        ("pointwise", {"gate_silu": True}, "pointwise kernels hold nothing beside a matmul"),
        ("gated", {"up_product": True, "product_down": True}, "do not wait inside"),
        ("tile", {"hardware": "v100-sxm2-32"}, "v100-sxm2-32 cannot multiply in bf16"),
    ]
    for fuser, changed, said in asked:
        problem = on_h100(fuser)
        design: Design = {**none, **changed}
        rule = broken_rule(problem, design)
        assert rule is not None
        assert said in sentence(problem, rule.because, design)
    gpt = dse.load("kernel", {"model": "gpt-3-175b"})
    rule = broken_rule(gpt, none)
    assert rule is not None
    assert rule.name == "model_has_it"
