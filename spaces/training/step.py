"""Seconds of one training step, by what they are spent on.

A stage works on m micro-batches; the pipeline fills and drains once. Communication hides behind computing as far as
the plan overlaps it and the fitted share of the computing allows. That share is a budget spent once: tensor,
context, expert, pipeline and data parallel traffic draw on the same seconds, in this order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import log2, maximum, minimum, where

from . import compute, layout, traffic
from .layout import Given, yes

__all__ = ["PARTS", "Step", "step"]

LN_2 = 0.6931471805599453

PARTS = ("compute", "recompute", "tp", "cp", "ep", "pp", "dp", "bubble", "optimizer", "overhead")
"""What the seconds of a step are spent on."""


@dataclass(frozen=True, slots=True)
class Step:
    """Seconds of one step by :data:`PARTS`; communication counts where computing does not hide it."""

    compute: Any
    recompute: Any
    tp: Any
    cp: Any
    ep: Any
    pp: Any
    dp: Any
    bubble: Any
    optimizer: Any
    overhead: Any

    @property
    def total(self) -> Any:
        """The iteration time."""
        busy = self.compute + self.recompute + self.tp + self.cp + self.ep + self.pp + self.dp
        return busy + self.bubble + self.optimizer + self.overhead


def _beyond(time: Any, room: Any) -> tuple[Any, Any]:
    """What of ``time`` does not fit into ``room``, and the room that is left."""
    return maximum(time - room, 0.0 * time), maximum(room - time, 0.0 * room)


def _within(time: Any, most: Any, room: Any) -> tuple[Any, Any]:
    """The same for time of which no more than ``most`` can hide, where that is no more than the room."""
    hidden = minimum(time, most)
    return time - hidden, room - hidden


@dataclass(frozen=True, slots=True)
class _Passes:
    """Seconds of one layer of one micro-batch: computing, what communication it shows, and the room left."""

    forward: Any
    again: Any
    backward: Any
    weight_grad: Any
    tp: Any
    cp: Any
    ep: Any
    room: Any

    @property
    def busy(self) -> Any:
        return self.forward + self.again + self.backward + self.tp + self.cp + self.ep


def _passes(g: Given) -> _Passes:
    one = compute.layer(g)
    again, backward = one.recomputed(g), one.input_grad + one.weight_grad
    room = g.efficiency.overlap * (one.forward + again + backward)
    r, ring = g.recompute, 1.0 - g.cp_kind.ulysses
    # forward, backward, and forward again of what is recomputed; the MLP has half of the tensor parallel traffic
    tp = (2.0 + maximum(r.full, 0.5 * r.mlp)) * traffic.tensor_parallel(g)
    hidden, left = _beyond(tp, room)
    tp, room = where(g.overlap_tp, hidden, tp), where(g.overlap_tp, left, room)
    # backward, a ring carries keys and values and their gradients; all-to-alls wait for each other (Ulysses)
    cp = (2.0 + ring + maximum(r.full, r.attention)) * traffic.context_parallel(g)
    beside = ring * g.efficiency.overlap * one.cores(g)
    cp, room = _within(cp, minimum(room, beside), room)
    ep = (2.0 + maximum(r.full, r.mlp)) * traffic.expert_parallel(g)
    hidden, left = _beyond(ep, room)
    dual = g.schedule.dual > 0
    ep, room = where(dual, hidden, ep), where(dual, left, room)
    return _Passes(one.forward, again, backward, one.weight_grad, tp, cp, ep, room)


def _bubble(g: Given, p: _Passes, handed: Any) -> Any:
    """Seconds that the mean stage waits while the pipeline fills and drains.

    GPipe and 1F1B (p - 1)(F + B + W), interleaved that / v (Narayanan 2.2), ZB-H1 (p - 1)(F + B - W) (Qi
    2401.10241), DualPipe (p / 2 - 1)(F&B + B - 3W) with B the full backward pass (its README); never below 0.
    """
    share, s = g.model.layers / g.pp, g.schedule
    weight = share * p.weight_grad
    rest = share * p.busy - weight
    plain = (g.pp - 1.0) * (maximum(rest + s.weights * weight, 0.0 * rest) / g.chunks + 2.0 * handed)
    dual = maximum(g.pp / 2.0 - 1.0, 0.0) * maximum(
        rest + share * (p.backward - p.weight_grad) - weight, 0.0 * rest
    )
    return where(s.dual > 0, dual, plain)


def _overhead(g: Given) -> Any:
    """The framework's own time of a step. The slowest of all ranks counts: of n waits that are distributed
    exponentially the largest is 1/1 + 1/2 + ... + 1/n of their mean, about 1 + ln n (Renyi 1953).
    """
    return g.efficiency.step_overhead * (1.0 + LN_2 * log2(g.n_gpus))


def step(g: Given) -> Step:
    """The time of one step of a plan."""
    m, p = layout.micro_batches(g), _passes(g)
    # with DualPipe either end has the head of half of the micro-batches
    head = (1.0 - 0.5 * g.schedule.dual) * compute.head(g).total
    last = layout.last_layers(g)
    body = where(g.pp > 2, layout.middle_layers(g), layout.first_layers(g))
    on_last = yes(last * p.busy + head >= body * p.busy)
    layers = on_last * last + (1.0 - on_last) * body
    # neighbouring stages hand over activations and gradients of each micro-batch
    handed = where(g.pp > 1, traffic.boundary(g), 0.0 * p.forward)
    sent = 2.0 * g.chunks * handed
    room = where(g.overlap_dp, minimum(last, body) * p.room, 0.0 * p.room)
    shown, room = _within(sent, minimum(g.efficiency.overlap * sent, room), room)
    # gradients and weights hide behind one micro-batch, or with every one when they come with each
    data = traffic.data_parallel(g, maximum(last, body))
    each, room = _beyond(data.each, room)
    once, _ = _beyond(data.once, room)
    return Step(
        compute=m * (layers * (p.forward + p.backward) + on_last * head),
        recompute=m * layers * p.again,
        tp=m * layers * p.tp,
        cp=m * layers * p.cp,
        ep=m * layers * p.ep,
        pp=m * shown,
        dp=m * each + once,
        bubble=_bubble(g, p, handed),
        optimizer=compute.optimizer_step(g, _updated(g)),
        overhead=_overhead(g),
    )


def _updated(g: Given) -> Any:
    """Parameters that a rank of the stage with most of them updates: all, or its share of sharded states."""
    dense, experts = traffic.most_held(g)
    shared = yes(g.sharding.stage >= 1)
    dense = dense * (1.0 - shared + shared / layout.shard_ranks(g))
    return dense + experts * (1.0 - shared + shared / layout.expert_shard_ranks(g))
