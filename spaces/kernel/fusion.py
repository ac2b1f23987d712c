"""What a graph costs when some of its edges are fused: kernels, operations, bytes, time.

Operators that fused edges connect are one kernel. A kernel reads every tensor that it needs from outside once and
writes every tensor of its own that anything outside needs; what stays inside never reaches memory. It takes the
longer of computing and moving, max(flop / peak, bytes / bandwidth): the roofline (Williams, Waterman and Patterson
2009, CACM 52:4), and one launch. All kernels compute at one peak.

Edges are truth values of Python, of NumPy or traced, and so are the results. That a kernel is convex, and that every
edge inside it is fused, is up to the caller: see grouping.py for plain values and the rules of space.yaml for designs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import maximum

from .graph import Edge, Graph, Operator
from .truth import all_of, any_of, chosen, negated

__all__ = ["Kernel", "Machine", "Times", "kernels", "times"]


@dataclass(frozen=True, slots=True)
class Machine:
    """What runs kernels: ``peak`` in FLOP/s, ``bandwidth`` in B/s, ``launch`` in s for each kernel."""

    peak: Any
    bandwidth: Any
    launch: Any


@dataclass(frozen=True, slots=True)
class Kernel:
    """The kernel that begins with one operator.

    Attributes:
        first: its first operator in the graph's order.
        exists: whether a kernel begins there; else the operator is inside another's, and the rest means nothing.
        flop: its operations.
        read: bytes from outside, each tensor once.
        written: bytes that something outside needs.
    """

    first: str
    exists: Any
    flop: Any
    read: Any
    written: Any


@dataclass(frozen=True, slots=True)
class Times:
    """A graph on a machine.

    Attributes:
        kernels: how many.
        flop: their operations.
        traffic: bytes that they read and write.
        computing: seconds of the kernels that computing bounds.
        moving: seconds of those that memory bounds.
        launching: seconds of all launches.
        each: seconds with its launch of the kernel that begins with an operator; 0 where none does.
    """

    kernels: Any
    flop: Any
    traffic: Any
    computing: Any
    moving: Any
    launching: Any
    each: Mapping[str, Any]

    @property
    def total(self) -> Any:
        """Seconds of the graph: one kernel after another."""
        return self.computing + self.moving + self.launching


def kernels(graph: Graph, fused: Mapping[Edge, Any]) -> tuple[Kernel, ...]:
    """One candidate for each operator: the kernel that begins with it, where one does.

    Args:
        graph: the operators.
        fused: of every edge whether its ends are in one kernel.
    """
    together = _together(graph, fused)
    found = []
    for at, operator in enumerate(graph.operators):
        first = operator.name
        inside = {first: True} | {name: together[first, name] for name in graph.names[at + 1 :]}
        exists = negated(any_of(together[name, first] for name in graph.names[:at]))
        members = graph.operators[at:]  # where a kernel begins here, nothing before is inside
        read: Any = 0.0
        for tensor in dict.fromkeys(tensor for member in members for tensor in member.reads):
            needed = any_of(inside[member.name] for member in members if tensor in member.reads)
            read = read + chosen(all_of(needed, negated(inside.get(tensor, False))), graph.size[tensor])
        written: Any = 0.0
        for member in members:
            kept = all_of(inside[member.name], _needed_outside(graph, member, together))
            written = written + chosen(kept, graph.size[member.name])
        flop = sum((chosen(inside[member.name], member.flop) for member in members[1:]), operator.flop)
        found.append(Kernel(first, exists, flop, read, written))
    return tuple(found)


def _together(graph: Graph, fused: Mapping[Edge, Any]) -> dict[tuple[str, str], Any]:
    """Whether two operators, given in the graph's order, are in one kernel: some path between them is all fused."""
    names = graph.names
    return {
        (a, b): any_of(all_of(*(fused[edge] for edge in path)) for path in graph.paths(a, b))
        for at, a in enumerate(names)
        for b in names[at + 1 :]
    }


def _needed_outside(graph: Graph, operator: Operator, together: Mapping[tuple[str, str], Any]) -> Any:
    """Whether the tensor of an operator is an output of the graph or read by another kernel."""
    if operator.name in graph.outputs:
        return True
    readers = graph.consumers(operator.name)
    return any_of(negated(together[operator.name, reader]) for reader in readers)


def times(graph: Graph, fused: Mapping[Edge, Any], machine: Machine) -> Times:
    """What the graph costs on a machine, see :func:`kernels`."""
    count: Any = 0.0
    flop: Any = 0.0
    traffic: Any = 0.0
    computing: Any = 0.0
    moving: Any = 0.0
    each: dict[str, Any] = {}
    for kernel in kernels(graph, fused):
        size = kernel.read + kernel.written
        compute, move = kernel.flop / machine.peak, size / machine.bandwidth
        longer = maximum(compute, move)
        count = count + chosen(kernel.exists, 1.0)
        flop = flop + chosen(kernel.exists, kernel.flop)
        traffic = traffic + chosen(kernel.exists, size)
        computing = computing + chosen(all_of(kernel.exists, compute >= move), longer)
        moving = moving + chosen(all_of(kernel.exists, compute < move), longer)
        each[kernel.first] = chosen(kernel.exists, longer + machine.launch)
    return Times(count, flop, traffic, computing, moving, count * machine.launch, each)
