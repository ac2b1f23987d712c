"""Peak memory of a training plan, in named lines that sum to it, for each stage and for the worst one.

Peaks are told apart: what tensors occupy (:func:`allocated`, torch.cuda.max_memory_allocated), what the caching
allocator holds (:func:`reserved`), and what nvidia-smi shows (:func:`device`), which adds the CUDA context and
communicators. The allocator gives its cache back when memory is short, so a plan fits by less than that
(:func:`peak`): tensors, the holes between them, and the context.
"""

from __future__ import annotations

from typing import Any

from dse.expressions.tracer import maximum, minimum, quantity, where

from . import activations, layout, state
from .layout import Given, yes

__all__ = ["LINES", "allocated", "device", "memory", "peak", "reserved", "stage_memory"]

LINES = (
    "weights",
    "gradients",
    "optimizer_state",
    "activations",
    "logits",
    "recomputed_layer",
    "backward_layer",
    "gathered_weights",
    "buckets",
    "exchange",
    "optimizer_step",
    "workspace",
    "fragmentation",
    "context",
)
"""The lines of a breakdown, in the order they are printed."""


def _step_temporaries(g: Given, index: Any) -> Any:
    """Bytes that live during the optimizer step only: copies of gradients, temporaries of an unfused update.

    Weights without optimizer state are not updated.
    """
    own = state.held(g, index)
    step = g.runtime.step * yes(g.sharding.optimizer > 0) * (1 - g.optimizer.offload)
    return step * (own.dense / layout.shard_ranks(g) + own.experts / layout.expert_shard_ranks(g))


def _moving(g: Given, index: Any) -> dict[str, Any]:
    """Bytes, as plain numbers, of what comes and goes.

    The loss is over before a layer's backward pass begins, and both before the optimizer step: of what is not in
    memory together, only the excess of the larger counts.
    """
    s, unit = state.stage(g, index), state.largest_unit(g, index)
    dense, moe = activations.dense_layer(g), activations.moe_layer(g)
    mask = s.embedding * activations.embedding_mask(g)
    again = maximum(yes(s.dense > 0) * dense.again, yes(s.moe > 0) * moe.again)
    loss = s.loss * activations.logits(g)
    backward = activations.working_set(g) + g.runtime.unfused_gradient * unit
    bucket = minimum(g.sharding.bucket, state.held(g, index).total)
    lines = {
        "activations": activations.in_flight(g, index) * (s.dense * dense.kept + s.moe * moe.kept + mask),
        "logits": loss,
        "recomputed_layer": maximum(again - loss, 0),
        "backward_layer": maximum(backward - maximum(loss - again, 0), 0),
        "gathered_weights": g.sharding.live * unit,
        "buckets": 2 * bucket,
        "exchange": activations.exchanged(g),
    }
    most: Any = 0
    for size in lines.values():
        most = most + size
    return {**lines, "optimizer_step": maximum(_step_temporaries(g, index) - most, 0)}


def stage_memory(g: Given, index: Any, *, cache: Any = 1) -> dict[str, Any]:
    """Bytes at the peak of a rank of stage ``index``, by line (:data:`LINES`).

    Args:
        g: what is given.
        index: 0 to PP - 1, or -1 for the last stage.
        cache: 1 for what nvidia-smi shows, 0 for what the device must have: ``fragmentation`` is then without
            the blocks that the allocator keeps for later.
    """
    kept, moving = state.persistent(g, index), _moving(g, index)
    most: Any = 0
    for size in moving.values():
        most = most + size
    lines = {
        "weights": quantity(kept.weights, "B"),
        "gradients": quantity(kept.gradients, "B"),
        "optimizer_state": quantity(kept.optimizer_state, "B"),
        **{name: quantity(size, "B") for name, size in moving.items()},
        "workspace": g.runtime.workspace,
        "fragmentation": quantity((g.runtime.fragmentation + cache * g.runtime.cache) * most, "B"),
        "context": g.runtime.context,
    }
    return {name: lines[name] for name in LINES}


def _total(lines: dict[str, Any], without: tuple[str, ...] = ()) -> Any:
    names = [name for name in LINES if name not in without]
    total = lines[names[0]]
    for name in names[1:]:
        total = total + lines[name]
    return total


def allocated(g: Given, index: Any) -> Any:
    """Bytes that tensors of a stage's rank occupy at the peak (torch.cuda.max_memory_allocated)."""
    return _total(stage_memory(g, index), ("fragmentation", "context"))


def reserved(g: Given, index: Any) -> Any:
    """Bytes that the caching allocator of a stage's rank holds (torch.cuda.max_memory_reserved)."""
    return _total(stage_memory(g, index), ("context",))


def device(g: Given, index: Any) -> Any:
    """Bytes that nvidia-smi shows of a stage's rank, as long as the device has more."""
    return _total(stage_memory(g, index))


def _stages(g: Given) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The stages one of which is the worst.

    The first and the last hold the embedding and the loss. Of those between, the second has the most micro-batches
    in flight and no fewer layers.
    """
    return (
        stage_memory(g, 0, cache=0),
        stage_memory(g, 1, cache=0),
        stage_memory(g, state.LAST, cache=0),
    )


def peak(g: Given) -> Any:
    """Bytes that the worst rank must have."""
    first, second, last = _stages(g)
    return maximum(_total(first), _total(second), _total(last))


def memory(g: Given) -> dict[str, Any]:
    """Bytes that the worst rank must have, by line (:data:`LINES`); they sum to :func:`peak`."""
    first, second, last = _stages(g)
    one, two, three = _total(first), _total(second), _total(last)
    at_first, at_second = (one >= two) & (one >= three), two >= three
    return {name: where(at_first, first[name], where(at_second, second[name], last[name])) for name in LINES}
