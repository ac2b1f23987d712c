"""Ways to put a graph's operators into kernels: every one its own, fused greedily, or all in one."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from .graph import Edge, Graph

__all__ = ["Groups", "eager", "fused_edges", "greedy", "in_order", "one_kernel"]

Groups = tuple[frozenset[str], ...]
"""Kernels as sets of operators; every operator is in one."""


def eager(graph: Graph) -> Groups:
    """Every operator is a kernel of its own."""
    return tuple(frozenset({name}) for name in graph.names)


def one_kernel(graph: Graph) -> Groups:
    """All operators in one kernel: inputs, weights and outputs are all that is moved, the least there can be."""
    return (frozenset(graph.names),)


def greedy(graph: Graph) -> Groups:
    """Connected elementwise operators and reductions are fused, edge by edge; a matmul stays alone.

    An edge is left when fusing it would make a kernel wait for one that waits for it.
    """
    groups = list(eager(graph))
    for edge in graph.edges:
        if "matmul" in (graph.kind(edge[0]), graph.kind(edge[1])):
            continue
        touched = [group for group in groups if group & set(edge)]
        merged = [group for group in groups if group not in touched] + [frozenset().union(*touched)]
        if in_order(graph, tuple(merged)):
            groups = merged
    place = {name: at for at, name in enumerate(graph.names)}
    return tuple(sorted(groups, key=lambda group: min(place[name] for name in group)))


def in_order(graph: Graph, groups: Groups) -> bool:
    """Whether the kernels can run one after another: none waits for one that waits for it."""
    of = {name: at for at, group in enumerate(groups) for name in group}
    waits: dict[int, set[int]] = {at: set() for at in range(len(groups))}
    for producer, consumer in graph.edges:
        if of[producer] != of[consumer]:
            waits[of[consumer]].add(of[producer])
    try:
        tuple(TopologicalSorter(waits).static_order())
    except CycleError:
        return False
    return True


def fused_edges(graph: Graph, groups: Groups) -> dict[Edge, bool]:
    """Of every edge whether both of its ends are in one kernel."""
    return {edge: any(group.issuperset(edge) for group in groups) for edge in graph.edges}
