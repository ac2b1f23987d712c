"""The feed-forward block of a Llama layer as an operator graph: RMSNorm, SwiGLU, residual, as twelve eager kernels.

out = x + (silu(h Wg) * (h Wu)) Wd with h = x * rsqrt(mean(x^2) + eps) * w. RMSNorm: Zhang and Sennrich 2019
(1910.07467) Eq. 4; SwiGLU: Shazeer 2020 (2002.05202) Eq. 6; as in Llama: Touvron 2023 (2302.13971) section 2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .graph import Edge, Graph, Operator
from .grouping import Groups, fused_edges

__all__ = ["EDGES", "block", "design", "fused", "parameters"]

EDGES: dict[str, Edge] = {
    f"{a}_{b}": (a, b)
    for a, b in (
        ("pow", "mean"), ("mean", "eps"), ("eps", "rsqrt"), ("rsqrt", "scale"), ("scale", "weight"),
        ("weight", "gate"), ("weight", "up"), ("gate", "silu"), ("silu", "product"), ("up", "product"),
        ("product", "down"), ("down", "residual"),
    )
}  # fmt: skip
"""The dimensions of the space and the edges of the graph that they fuse."""


def block(tokens: Any, hidden: Any, ffn: Any, width: Any = 2.0, operation: Any = 1.0) -> Graph:
    """The graph.

    Args:
        tokens: rows of the input.
        hidden: d, columns of the input.
        ffn: f, columns between the matrices.
        width: bytes of a number.
        operation: one FLOP; with its unit, counts have it too.

    A matmul of [T, a] by [a, b] is 2 T a b FLOP; silu(g) = g / (1 + exp(-g)) four for each number (negate, exp, add,
    divide), everything else one. Each tensor is read and written once, T numbers of a row's mean included.
    """
    x, inner, rows = tokens * hidden, tokens * ffn, tokens
    matrix = hidden * ffn
    size = {
        "x": x, "norm_weight": hidden, "gate_weight": matrix, "up_weight": matrix, "down_weight": matrix,
        "pow": x, "mean": rows, "eps": rows, "rsqrt": rows, "scale": x, "weight": x,
        "gate": inner, "up": inner, "silu": inner, "product": inner, "down": x, "residual": x,
    }  # fmt: skip
    pointwise, gated, matmul = x * operation, inner * operation, 2.0 * tokens * matrix * operation
    operators = (
        Operator("pow", "elementwise", ("x",), pointwise),
        Operator("mean", "reduction", ("pow",), pointwise),
        Operator("eps", "elementwise", ("mean",), rows * operation),
        Operator("rsqrt", "elementwise", ("eps",), rows * operation),
        Operator("scale", "elementwise", ("x", "rsqrt"), pointwise),
        Operator("weight", "elementwise", ("scale", "norm_weight"), pointwise),
        Operator("gate", "matmul", ("weight", "gate_weight"), matmul),
        Operator("up", "matmul", ("weight", "up_weight"), matmul),
        Operator("silu", "elementwise", ("gate",), 4.0 * gated),
        Operator("product", "elementwise", ("silu", "up"), gated),
        Operator("down", "matmul", ("product", "down_weight"), matmul),
        Operator("residual", "elementwise", ("x", "down"), pointwise),
    )
    outputs = frozenset({"residual"})
    return Graph(operators, {name: numbers * width for name, numbers in size.items()}, outputs)


def parameters(hidden: Any, ffn: Any) -> Any:
    """Weights of the block: three matrices and the norm's weight."""
    return 3.0 * hidden * ffn + hidden


def fused(dimensions: Mapping[str, Any]) -> dict[Edge, Any]:
    """The edges of the graph as the design of the space has them."""
    return {edge: dimensions[name] for name, edge in EDGES.items()}


def design(graph: Graph, groups: Groups) -> dict[str, bool]:
    """The values of the space's edges for given kernels."""
    inside = fused_edges(graph, groups)
    return {name: inside[edge] for name, edge in EDGES.items()}
