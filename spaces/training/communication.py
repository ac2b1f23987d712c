"""Seconds of collectives over the tiers of a cluster: links inside a node, network cards between nodes.

All-gather and reduce-scatter of S bytes over n ranks move (n - 1) / n x S through each rank; all-reduce twice that
(Thakur, Rabenseifner and Gropp 2005, IJHPCA 19:1). The g members of a group that share a node carry one copy of
what leaves it through their g network cards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import log2, maximum, minimum, quantity, where

from .layout import Given

__all__ = [
    "Group", "all_gather", "all_reduce", "all_to_all", "group", "node_size", "on_one_node", "placed",
    "ring_latency", "send",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Group:
    """A communicator: its ranks, how many of them share a node, and on how many nodes they are.

    ``link`` and ``network`` are seconds per byte inside a node and between nodes, for the members of one node
    together; ``link_step`` and ``network_step`` are seconds of one step of a ring; ``in_network`` is 1 where switches reduce.
    """

    ranks: Any
    on_node: Any
    nodes: Any
    link: Any
    network: Any
    link_step: Any
    network_step: Any
    in_network: Any


def node_size(g: Given) -> Any:
    """GPUs that share a scale-up domain: the cluster's, else the hardware's."""
    return where(g.cluster.node > 0, g.cluster.node, g.hardware.node)


def _nic(g: Given, apart: Any) -> Any:
    """Bytes/s of one GPU's share of the network that groups reaching ``apart`` GPUs use."""
    rack, c = g.cluster.rack, g.cluster
    own = where(c.nic > quantity(0.0 * c.node, "B/s"), c.nic, g.hardware.nic)
    beyond = (rack > 0) & (apart > rack)
    return own * g.efficiency.nic / where(beyond, c.fabric_slowdown, c.rack_slowdown)


def group(g: Given, ranks: Any, inner: Any) -> Group:
    """The communicator of ``ranks`` members that stand ``inner`` GPUs apart."""
    return placed(g, ranks, on_one_node(g, ranks, inner), ranks * inner)


def on_one_node(g: Given, ranks: Any, inner: Any) -> Any:
    """How many of ``ranks`` members that stand ``inner`` GPUs apart share a node."""
    return minimum(maximum(node_size(g) / inner, 1.0), ranks)


def placed(g: Given, ranks: Any, on_node: Any, reach: Any) -> Group:
    """The communicator of ``ranks`` members, ``on_node`` of them on each node, over ``reach`` GPUs."""
    e, c = g.efficiency, g.cluster
    nothing = 0.0 * e.link_latency
    beyond = (c.rack > 0) & (reach > c.rack)
    none = 0.0 / g.hardware.bandwidth  # a speed that nobody needs may be unknown
    return Group(
        ranks,
        on_node,
        ranks / on_node,
        where(on_node > 1.0, 1.0 / (g.hardware.link * e.link), none),
        where(ranks > on_node, 1.0 / (_nic(g, reach) * on_node), none),
        where(c.link_latency > nothing, c.link_latency, e.link_latency),
        where(c.nic_latency > nothing, c.nic_latency, e.nic_latency)
        + where(beyond, c.fabric_latency, nothing),
        c.in_network,
    )


def _transfers(to: Group, size: Any) -> tuple[Any, Any]:
    """Seconds to move ``size`` bytes once around the members on a node, and once around the nodes."""
    moved = quantity(size, "B")
    return (to.on_node - 1.0) / to.on_node * moved * to.link, (to.nodes - 1.0) / to.nodes * moved * to.network


def ring_latency(to: Group) -> Any:
    """Seconds of the n - 1 steps of a ring, each as long as its slowest link's."""
    return (to.ranks - 1.0) * where(to.nodes > 1.0, to.network_step, to.link_step)


def all_gather(to: Group, size: Any) -> Any:
    """Seconds to gather, or reduce-scatter, a buffer whose full size is ``size`` bytes: a ring over all ranks."""
    return maximum(*_transfers(to, size)) + ring_latency(to)


def all_reduce(to: Group, size: Any) -> Any:
    """Seconds to reduce ``size`` bytes on every rank: scatter on the nodes, a tree between them, gather.

    Switches that reduce on the way send the data between nodes once, not twice (NCCL-tests PERFORMANCE.md).
    """
    inside, between = _transfers(to, size)
    steps = (to.on_node - 1.0) * to.link_step + log2(to.nodes) * to.network_step
    return 2.0 * (inside + steps) + (2.0 - to.in_network) * between


def all_to_all(to: Group, size: Any, sent: Any = 1.0) -> Any:
    """Seconds to exchange ``size`` bytes of each rank evenly among all: what leaves the node takes its own card.

    ``sent`` is the part of the bytes for other nodes that is sent to them; copies of it are made there.
    """
    moved = quantity(size, "B")
    inside = (to.on_node - 1.0) / to.ranks * moved * to.link
    between = sent * (to.ranks - to.on_node) / to.ranks * moved * to.network * to.on_node
    return maximum(inside, between) + ring_latency(to)


def send(g: Given, size: Any, apart: Any) -> Any:
    """Seconds to send ``size`` bytes to the rank ``apart`` GPUs away: latency + S / B."""
    e, moved = g.efficiency, quantity(size, "B")
    near = moved / (g.hardware.link * e.link) + e.link_latency
    far = moved / _nic(g, apart) + e.nic_latency
    return where(apart < node_size(g), near, far)
