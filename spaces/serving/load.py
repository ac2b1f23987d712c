"""What a stream of requests meets: times of an empty and of a loaded instance, and the rates that it sustains.

Approximations, each named where it is made: decode steps are linear in the batch between one sequence and the full batch;
prefill and decode share the GPUs in turn, a decode step after each chunk; pipeline stages and copies of the attention are all
busy with prompts when many come; prompts queue for prefill as M/G/1 (Pollaczek-Khinchine).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import ceil, maximum, minimum, quantity, where

from .kernels import Given, one, seconds_zero
from .memory import cache_bytes
from .step import Pass, forward_pass

__all__ = ["Times", "decode", "prefill", "times"]

HALVINGS = 10
"""Halvings of the interval in which a rate is looked for: to a thousandth of it."""
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
    sequences, ``loaded_tpot`` (s), ``wait`` (s) for prefill, and ``between`` (s), the decode steps of others between the chunks
    of a prompt. ``transfer`` (s) moves its cache. ``goodput`` (1/s) is the highest rate within the limits.
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
    between: Any
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
    prompts = _Prompts(
        whole=whole,
        stage=whole / g.pp,
        lines=g.attention_dp * where(g.disaggregated, g.prefill_ratio, 1.0),
        shared=(1.0 - apart) * whole / (g.pp * g.attention_dp),
        spread=0.5 * (1.0 + g.prompt_cv * g.prompt_cv),
        chunks=chunks,
        yields=(1.0 - apart) * yields,
    )
    line = _Line(first, slope, g.output_len)
    requests = g.batch / (g.output_len * last + g.batch * prompts.shared)
    capacity = minimum(requests, BUSY * prompts.lines / _service(g, prompts, line, g.batch))
    running = minimum(line.running(rate, prompts.shared), g.batch)
    loaded = line.token(running) / maximum(1.0 - rate * prompts.shared, 1.0 - BUSY)
    transfer = where(g.disaggregated, _transfer(g), seconds_zero(g))
    return Times(
        prefilling=one,
        decoding=full,
        chunks=chunks,
        prefill=whole,
        step=full.seconds + drafted,
        interval=full.seconds + drafted + (1.0 - apart) * one.seconds,
        tokens_per_step=yields,
        capacity=capacity,
        tpot=last + g.batch * prompts.shared / g.output_len,
        running=running,
        loaded_tpot=loaded,
        wait=_wait(g, prompts, line, rate, running),
        between=_between(prompts, line, running),
        transfer=transfer,
        goodput=_goodput(g, capacity, line, prompts, transfer),
    )


@dataclass(frozen=True, slots=True)
class _Line:
    """Seconds per output token of k sequences, first + slope (k - 1), and their ``output`` tokens."""

    first: Any
    slope: Any
    output: Any

    def token(self, running: Any) -> Any:
        """Seconds per output token while no prompt is prefilled; never less than of one sequence."""
        return self.first + self.slope * maximum(running - 1.0, 0.0)

    def running(self, rate: Any, shared: Any) -> Any:
        """Sequences that run: k = rate x output x token(k) / (1 - rate x shared), by Little's law."""
        alone = rate * self.output * self.first / maximum(1.0 - rate * shared, 1.0 - BUSY)
        rest = maximum(1.0 - rate * shared - rate * self.output * self.slope, 1.0 - BUSY)
        several = rate * self.output * (self.first - self.slope) / rest
        return maximum(minimum(alone, 1.0), several)


@dataclass(frozen=True, slots=True)
class _Prompts:
    """Prefill as a queue sees it. ``whole`` (s) is one prompt's prefill and ``stage`` (s) what of it one pipeline stage does;
    ``lines`` prompts are served at once, each by a copy of the attention; ``shared`` (s) of each request decoding loses.
    ``spread`` is half the second moment of a prompt's length over its squared mean. Its ``chunks`` alternate with decode steps
    of ``yields`` tokens, 0 on instances of their own.
    """

    whole: Any
    stage: Any
    lines: Any
    shared: Any
    spread: Any
    chunks: Any
    yields: Any


def _steps(prompts: _Prompts, line: _Line, running: Any, count: Any) -> Any:
    """Seconds of ``count`` decode steps between chunks, as far as anything is decoded."""
    return count * prompts.yields * line.token(running) * minimum(running, 1.0)


def _between(prompts: _Prompts, line: _Line, running: Any) -> Any:
    """Seconds of the decode steps that a prompt meets: half of the one in progress when it comes, and one before each
    further chunk.
    """
    return _steps(prompts, line, running, prompts.chunks - 0.5)


def _service(g: Given, prompts: _Prompts, line: _Line, running: Any) -> Any:
    """Seconds until the next prompt of a line can begin: whole prompts go before decode steps, chunks alternate with them."""
    met = _steps(prompts, line, running, prompts.chunks)
    return prompts.stage + where(g.chunk > 0.0, met, seconds_zero(g))


def _wait(g: Given, prompts: _Prompts, line: _Line, rate: Any, running: Any) -> Any:
    """Mean seconds that a prompt waits for those before it: M/G/1, by Pollaczek and Khinchine (Kleinrock 1975, section 5.6)."""
    service = _service(g, prompts, line, running)
    used = minimum(rate * service / prompts.lines, BUSY)
    return prompts.spread * used * service / (1.0 - used)


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
    size = cache_bytes(g, g.model, 1.0, ceil(g.prompt_len / g.kv_block) * g.kv_block)
    gpus = g.tp * g.pp * g.attention_dp * (1.0 + g.prefill_ratio)
    inside = (gpus <= g.hardware.node) & (g.hardware.link > quantity(0.0 * one(g), "B/s"))
    wire = where(inside, g.hardware.link, maximum(g.hardware.nic, quantity(one(g), "B/s")))
    return size / (wire * g.efficiency.link)


def _goodput(g: Given, capacity: Any, line: _Line, prompts: _Prompts, transfer: Any) -> Any:
    """The highest rate (1/s) at which mean TPOT and TTFT are within their limits and the batch suffices.

    TPOT: first + slope (k - 1) = limit (1 - rate x shared) with k = rate x output x limit; of less than one sequence, first =
    limit (1 - rate x shared). TTFT: the wait of M/G/1 that the prefill itself, and the decode steps between its chunks, leave;
    first with the steps of that rate, which are no shorter, and then closer by halving what lies between.
    """
    limit = g.max_tpot
    least = quantity(1e-12 * one(g), "s")
    lost = maximum(line.slope * line.output + prompts.shared, least)
    several = (limit - line.first + line.slope) / (limit * lost)
    alone = (limit - line.first) / (limit * maximum(prompts.shared, least))
    none = 0.0 * capacity
    most = maximum(minimum(minimum(several, alone), capacity), none)

    def meets(rate: Any) -> tuple[Any, Any]:
        running = minimum(line.running(rate, prompts.shared), g.batch)
        spent = prompts.whole + transfer + _between(prompts, line, running)
        return spent, running

    spent, running = meets(most)
    left, service = maximum(g.max_ttft - spent, seconds_zero(g)), _service(g, prompts, line, running)
    low = minimum(prompts.lines * left / (left + prompts.spread * service) / service, most)
    high = most
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        spent, running = meets(middle)
        kept = spent + _wait(g, prompts, line, middle, running) <= g.max_ttft
        low, high = where(kept, middle, low), where(kept, high, middle)
    return low
