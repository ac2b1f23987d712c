"""Operator graphs: what every operator reads, writes and computes.

Sizes and counts may be numbers, arrays or traced symbols; the structure (names, edges) is plain Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Edge", "Graph", "Kind", "Operator"]

Kind = Literal["elementwise", "reduction", "matmul"]
Edge = tuple[str, str]
"""A producer and a consumer of its tensor."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One eager kernel.

    Attributes:
        name: of the operator and of the one tensor that it writes.
        kind: ``elementwise``, ``reduction`` (along rows) or ``matmul``.
        reads: names of the tensors that it reads, each once: operators' or the graph's own inputs.
        flop: multiplications, additions and other operations on numbers, each counted as one.
    """

    name: str
    kind: Kind
    reads: tuple[str, ...]
    flop: Any


@dataclass(frozen=True, slots=True)
class Graph:
    """Operators in an order in which they can run.

    Attributes:
        operators: every one after those whose tensors it reads.
        size: bytes of every tensor, inputs (activations and weights) included.
        outputs: operators whose tensors are needed after the graph.
    """

    operators: tuple[Operator, ...]
    size: Mapping[str, Any]
    outputs: frozenset[str]

    def __post_init__(self) -> None:
        """Checks the structure.

        Raises:
            ValueError: an operator reads what comes later or has no size, or a name stands twice.
        """
        seen: set[str] = set()
        names = set(self.names)
        for operator in self.operators:
            if operator.name in seen:
                raise ValueError(f"an operator's name must stand once, but got {operator.name!r} again")
            for tensor in (*operator.reads, operator.name):
                if tensor not in self.size:
                    raise ValueError(f"{operator.name} needs a size of {tensor!r}, but there is none")
                if tensor in names and tensor not in seen and tensor != operator.name:
                    raise ValueError(f"{operator.name} reads {tensor!r}, which must come before it")
            seen.add(operator.name)
        if not self.outputs <= seen:
            raise ValueError(f"outputs must be operators, but got {sorted(self.outputs - seen)}")

    @property
    def names(self) -> tuple[str, ...]:
        """Of the operators, in order."""
        return tuple(operator.name for operator in self.operators)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Every (producer, consumer), in the order of the consumers' reads."""
        names = set(self.names)
        return tuple((t, o.name) for o in self.operators for t in o.reads if t in names)

    def kind(self, name: str) -> Kind:
        """Of an operator."""
        return next(operator.kind for operator in self.operators if operator.name == name)

    def consumers(self, tensor: str) -> tuple[str, ...]:
        """Operators that read a tensor."""
        return tuple(operator.name for operator in self.operators if tensor in operator.reads)

    def paths(self, a: str, b: str) -> tuple[tuple[Edge, ...], ...]:
        """Every way from ``a`` to ``b`` along edges in either direction that meets no operator twice."""
        found: list[tuple[Edge, ...]] = []

        def walk(at: str, seen: frozenset[str], path: tuple[Edge, ...]) -> None:
            if at == b:
                found.append(path)
                return
            for edge in self.edges:
                if at in edge:
                    after = edge[0] if edge[1] == at else edge[1]
                    if after not in seen:
                        walk(after, seen | {after}, (*path, edge))

        walk(a, frozenset({a}), ())
        return tuple(found)
