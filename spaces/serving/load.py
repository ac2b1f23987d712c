"""What a stream of requests meets: times of an empty and of a loaded instance, and the rates that it sustains.

Approximations, each named where it is made: decode steps are linear in the batch between one sequence and the full batch;
prefill and decode share the GPUs in turn; prompts queue for prefill as M/G/1 (Pollaczek-Khinchine).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import ceil, maximum, minimum, quantity, where

from .kernels import Given, one, seconds_zero
from .memory import cache_bytes, cached_tokens
from .step import Pass, forward_pass

__all__ = ["Times", "decode", "prefill", "times"]

BUSY = 0.999
"""Most of an instance's time that requests may take before a queue has no end."""


def prefill(g: Given, prompts: Any, tokens: Any, past: Any) -> Pass:
    """A pass over ``tokens`` of each of ``prompts`` prompts with ``past`` tokens in the cache."""
    return forward_pass(g, prompts, maximum(tokens, 1.0), past)


def decode(g: Given, batch: Any, context: Any) -> Pass:
    """A decode step of ``batch`` sequences with ``context`` tokens each, or one that verifies a draft.

    One micro-batch of ``batch / (pp x attention_dp)`` sequences passes all stages while the others are in other stages.
    """
    sequences = maximum(batch / (g.pp * g.attention_dp), 1.0)
    return forward_pass(g, sequences, 1.0 + g.draft_length, context)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds and rates of one instance; ``prefilling`` and ``decoding`` are the passes that they come from.

    ``chunks`` passes make a prompt's ``prefill`` (s). ``step`` (s) is a decode step of the full batch, of which each sequence
    has ``tokens_per_step`` tokens; ``interval`` (s) the longest time between two tokens. ``capacity`` (1/s) are the requests
    that the full batch sustains, ``tpot`` (s) is then the time per output token. Of ``rate`` requests (1/s): ``running``
    sequences, ``loaded_tpot`` (s) and ``wait`` (s) for prefill. ``goodput`` (1/s) is the highest rate within the limits.
    """

    prefilling: Pass
    decoding: Pass
    chunks: Any
    prefill: Any
    step: Any
    interval: Any
    tokens_per_step: Any
    capacity: Any
    tpot: Any
    running: Any
    loaded_tpot: Any
    wait: Any
    transfer: Any
    goodput: Any


def times(g: Given, rate: Any) -> Times:
    """The times of an instance that ``rate`` requests (1/s) come to."""
    prompt = maximum(g.prompt_len * (1.0 - g.prefix_hit), 1.0)
    chunk = where(g.chunk > 0.0, minimum(g.chunk, prompt), prompt)
    chunks = ceil(prompt / chunk)
    cached = g.prompt_len - prompt
    one = prefill(g, 1.0, prompt / chunks, cached + (prompt - prompt / chunks) / 2.0)
    whole = one.seconds * chunks
    context = g.prompt_len + 0.5 * g.output_len * (1.0 + g.output_cv * g.output_cv)
    full, single = decode(g, g.batch, context), decode(g, 1.0, context)
    drafted = _draft_step(g, context)
    yields = _tokens_per_step(g)
    last = (full.seconds + drafted) / yields
    first = (single.seconds + drafted) / yields
    slope = maximum(last - first, seconds_zero(g)) / maximum(g.batch - 1.0, 1.0)
    apart = where(g.disaggregated, 1.0, 0.0)
    shared = (1.0 - apart) * whole
    steps = g.output_len
    capacity = _prefill_bound(g, g.batch / (steps * last + g.batch * shared), whole)
    # k sequences run: k = rate x output x (first + slope (k - 1)) / (1 - rate x prefill), by Little's law
    rest = maximum(1.0 - rate * shared - rate * steps * slope, 1.0 - BUSY)
    running = minimum(rate * steps * (first - slope) / rest, g.batch)
    sharing = maximum(1.0 - rate * shared, 1.0 - BUSY)
    loaded = (first + slope * maximum(running - 1.0, 0.0)) / sharing
    instances = where(g.disaggregated, g.prefill_ratio, 1.0)
    used = minimum(rate * whole / instances, BUSY)
    spread = 0.5 * (1.0 + g.prompt_cv * g.prompt_cv)
    wait = spread * used * whole / (1.0 - used)
    return Times(
        prefilling=one,
        decoding=full,
        chunks=chunks,
        prefill=whole,
        step=full.seconds + drafted,
        interval=full.seconds + drafted + (1.0 - apart) * one.seconds,
        tokens_per_step=yields,
        capacity=capacity,
        tpot=last + g.batch * shared / steps,
        running=running,
        loaded_tpot=loaded,
        wait=wait,
        transfer=where(g.disaggregated, _transfer(g), seconds_zero(g)),
        goodput=_goodput(g, capacity, (first, slope), whole, chunks * last * (1.0 - apart)),
    )


def _tokens_per_step(g: Given) -> Any:
    """Tokens that a step yields when each of ``draft_length`` drafted ones is accepted with the same probability:
    (1 - a^(d+1)) / (1 - a) (Leviathan 2211.17192, Eq. 1).
    """
    a = minimum(g.acceptance, 0.9999)
    return where(g.draft_length > 0.0, (1.0 - a ** (g.draft_length + 1.0)) / (1.0 - a), 1.0)


def _draft_step(g: Given, context: Any) -> Any:
    """Seconds in which the draft model, on the same ranks, makes ``draft_length`` tokens one after another."""
    sequences = maximum(g.batch / (g.pp * g.attention_dp), 1.0)
    one = forward_pass(_drafting(g), sequences, 1.0, context)
    return where(g.draft_length > 0.0, one.seconds, seconds_zero(g)) * g.draft_length


class _Drafting:
    """What is given, with the draft model for the model."""

    def __init__(self, g: Given) -> None:
        self._given = g
        self.model = g.draft

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given, name)


def _drafting(g: Given) -> Given:
    return _Drafting(g)


def _transfer(g: Given) -> Any:
    """Seconds in which a prompt's cache moves from a prefill to a decode instance, over each GPU's network card, or over the
    links where both are in one node.
    """
    size = cache_bytes(g, g.model, 1.0, cached_tokens(g))
    gpus = g.tp * g.pp * g.attention_dp * (1.0 + g.prefill_ratio)
    inside = (gpus <= g.hardware.node) & (g.hardware.link > quantity(0.0 * one(g), "B/s"))
    wire = where(inside, g.hardware.link, maximum(g.hardware.nic, quantity(one(g), "B/s")))
    return size / (wire * g.efficiency.link)


def _prefill_bound(g: Given, requests: Any, whole: Any) -> Any:
    """Requests (1/s) that decoding sustains, no more than prefill instances of their own deliver."""
    delivered = BUSY * g.prefill_ratio / whole
    return where(g.disaggregated, minimum(requests, delivered), requests)


def _goodput(g: Given, capacity: Any, step: tuple[Any, Any], whole: Any, mixed: Any) -> Any:
    """The highest rate (1/s) at which mean TPOT and TTFT are within their limits and the batch suffices.

    TPOT: first + slope (k - 1) = limit (1 - rate x prefill) with k = rate x output x limit. TTFT: the wait of M/G/1 that the
    prefill itself, and the decode steps between its chunks (``mixed``, at the full batch), leave.
    """
    first, slope = step
    instances = where(g.disaggregated, g.prefill_ratio, 1.0)
    shared = where(g.disaggregated, seconds_zero(g), whole)
    by_tpot = (g.max_tpot - first + slope) / (g.max_tpot * (slope * g.output_len + shared))
    left = maximum(
        g.max_ttft - whole - mixed - where(g.disaggregated, _transfer(g), seconds_zero(g)), seconds_zero(g)
    )
    spread = 0.5 * (1.0 + g.prompt_cv * g.prompt_cv)
    by_ttft = instances * left / (left + spread * whole) / whole
    none = 0.0 * capacity
    return maximum(minimum(minimum(capacity, by_tpot), by_ttft), none)
