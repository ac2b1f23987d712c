"""What a stream of requests meets: times of an empty and of a loaded instance, and the rates that it sustains.

Pipeline stages and copies of the attention are all busy with prompts when many come, and those that come together share a
pass; what waits for what is in queueing.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import ceil, maximum, minimum, quantity, where

from .kernels import Given, one, seconds_zero
from .memory import PASS_TOKENS, cache_bytes
from .queueing import BUSY, MOST, Load, Prompts, Queue
from .step import Pass, forward_pass

__all__ = ["Times", "decode", "prefill", "times"]


def prefill(g: Given, prompts: Any, tokens: Any, past: Any) -> Pass:
    """A pass over ``tokens`` of each of ``prompts`` prompts with ``past`` tokens in the cache."""
    return forward_pass(g, prompts, maximum(tokens, 1.0), past)


def decode(g: Given, batch: Any, context: Any) -> Pass:
    """A decode step of ``batch`` sequences with ``context`` tokens each, or one that verifies a draft.

    One micro-batch of ``batch / (pp x attention_dp)`` sequences passes all stages while the others are in other stages.
    """
    each = maximum(batch / g.attention_dp, 1.0)
    under_way = minimum(each, g.pp)
    return forward_pass(g, each / under_way, 1.0 + g.draft_length, context, under_way)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds and rates of one instance; ``prefilling`` and ``decoding`` are the passes that they come from.

    ``chunks`` passes make a prompt's ``prefill`` (s), each with ``prefill_draft`` (s) of the draft model's. ``step`` (s) is a
    decode step of the full batch with its ``drafting`` (s), of which each sequence has ``tokens_per_step`` tokens;
    ``interval`` (s) the longest time between two tokens. Full batches serve ``full`` requests (1/s) with ``tpot`` (s) per
    output token while those that end are replaced at once, and sustain ``capacity`` (1/s) that come at random. Of the rate
    that comes: ``running`` sequences, ``loaded_tpot`` (s), of which decode steps alone are ``loaded_alone`` (s), ``wait`` (s)
    for a slot and for prefill, and ``between`` (s), what holds up a prompt's own passes. ``transfer`` (s) moves its cache.
    ``goodput`` (1/s) is the highest rate within the limits.
    """

    prefilling: Pass
    prefill_draft: Any
    decoding: Pass
    drafting: Any
    chunks: Any
    prefill: Any
    step: Any
    interval: Any
    tokens_per_step: Any
    full: Any
    capacity: Any
    tpot: Any
    alone: Any
    running: Any
    loaded_tpot: Any
    loaded_alone: Any
    wait: Any
    between: Any
    transfer: Any
    goodput: Any


def times(g: Given, rate: Any) -> Times:
    """The times of an instance that ``rate`` requests (1/s) come to."""
    prompt = maximum(g.prompt_len * (1.0 - g.prefix_hit), 1.0)
    chunk = where(g.chunk > 0.0, minimum(g.chunk, prompt), prompt)
    chunks = ceil(prompt / chunk)
    cached = g.prompt_len - prompt
    behind = cached + (prompt - prompt / chunks) / 2.0
    one = prefill(g, 1.0, prompt / chunks, behind)
    drafted = _drafts(g, 1.0, prompt / chunks, behind)
    whole = (one.seconds + drafted) * chunks
    context = g.prompt_len + 0.5 * g.output_len * (1.0 + g.output_cv * g.output_cv)
    yields = _tokens_per_step(g)

    small, large = (_draft_step(g, sequences, context) for sequences in (1.0, MOST))

    def step(sequences: Any) -> Any:  # the draft's share is small: a line
        drafted = small + (large - small) / (MOST - 1.0) * (sequences - 1.0)
        return decode(g, sequences, context).seconds + drafted

    def shared(several: Any) -> Prompts:
        together = prefill(g, several, prompt, cached).seconds + _drafts(g, several, prompt, cached)
        return Prompts(
            whole=whole,
            together=where(several > 1.0, together, whole),
            several=several,
            chunks=chunks,
            spread=0.5 * (1.0 + g.prompt_cv * g.prompt_cv),
            lines=g.attention_dp * where(g.disaggregated, g.prefill_ratio, 1.0),
        )

    decoding, drafting = decode(g, g.batch, context), _draft_step(g, g.batch, context)
    last = (decoding.seconds + drafting) / yields
    packed = shared(_joined(g, prompt, yields))
    taken = where(g.disaggregated, 0.0, 1.0) * packed.each(packed.several) / (g.pp * g.attention_dp)
    full = g.batch / (g.output_len * last + g.batch * taken)
    transfer = where(g.disaggregated, _transfer(g), seconds_zero(g))
    tpot = last + g.batch * taken / g.output_len
    batch = Load(full, g.batch, last, tpot)
    capacity = Queue(g, packed, step, yields, transfer, full).capacity(batch)
    queue = Queue(
        g, shared(where(g.chunk > 0.0, 1.0, maximum(PASS_TOKENS / prompt, 1.0))), step, yields, transfer, full
    )
    load = queue.loaded(rate)
    return Times(
        prefilling=one,
        prefill_draft=drafted,
        decoding=decoding,
        drafting=drafting,
        chunks=chunks,
        prefill=whole,
        step=decoding.seconds + drafting,
        interval=decoding.seconds
        + drafting
        + where(
            g.disaggregated, seconds_zero(g), where(packed.several > 1.0, packed.together, whole / chunks)
        ),
        tokens_per_step=yields,
        full=minimum(full, capacity / BUSY),
        capacity=capacity,
        tpot=tpot,
        alone=last,
        running=minimum(load.running, g.batch),
        loaded_tpot=load.token,
        loaded_alone=load.alone,
        wait=queue.wait(load),
        between=queue.between(load),
        transfer=transfer,
        goodput=queue.goodput(capacity, queue.alone(1.0), last),
    )


def _joined(g: Given, prompt: Any, yields: Any) -> Any:
    """Prompts of one pass while the batch is full: those that take the place of the sequences that end in a decode step, on
    instances of their own all that wait, as far as a pass has tokens for them. Where prompts are cut, each is on its own.
    """
    many = where(g.disaggregated, PASS_TOKENS, g.batch * yields / (g.output_len * g.attention_dp * g.pp))
    return where(g.chunk > 0.0, 1.0, maximum(minimum(many, PASS_TOKENS / prompt), 1.0))


def _tokens_per_step(g: Given) -> Any:
    """Tokens that a step yields when each of ``draft_length`` drafted ones is accepted with the same probability:
    (1 - a^(d+1)) / (1 - a) (Leviathan 2211.17192, Eq. 1).
    """
    a = minimum(g.acceptance, 0.9999)
    return where(g.draft_length > 0.0, (1.0 - a ** (g.draft_length + 1.0)) / (1.0 - a), 1.0)


def _draft_step(g: Given, batch: Any, context: Any) -> Any:
    """Seconds in which the draft model, on the same ranks, makes ``draft_length`` tokens one after another."""
    return _drafts(g, maximum(batch / (g.pp * g.attention_dp), 1.0), 1.0, context) * g.draft_length


def _drafts(g: Given, sequences: Any, tokens: Any, past: Any) -> Any:
    """Seconds of the draft model's pass, if there is one, over ``tokens`` of each sequence."""
    seconds = forward_pass(_Drafting(g), sequences, maximum(tokens, 1.0), past).seconds
    return where(g.draft_length > 0.0, seconds, seconds_zero(g))


class _Drafting:
    """What is given, with the draft model for the model."""

    def __init__(self, g: Given) -> None:
        self._given = g
        self.model = g.draft

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given, name)


def _transfer(g: Given) -> Any:
    """Seconds in which a prompt's cache moves from a prefill to a decode instance, over each GPU's network card, or over the
    links where both are in one node.
    """
    size = cache_bytes(g, g.model, 1.0, ceil(g.prompt_len / g.kv_block) * g.kv_block)
    gpus = g.tp * g.pp * g.attention_dp * (1.0 + g.prefill_ratio)
    inside = (gpus <= g.hardware.node) & (g.hardware.link > quantity(0.0 * one(g), "B/s"))
    wire = where(inside, g.hardware.link, maximum(g.hardware.nic, quantity(one(g), "B/s")))
    return size / (wire * g.efficiency.link)
