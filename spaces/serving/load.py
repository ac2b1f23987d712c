"""What a stream of requests meets: times of an empty and of a loaded instance, and the rates that it sustains.

Approximations, each named where it is made: decode steps are linear in the batch between one sequence and the full batch, with
a bend where tokens read most experts;
prefill and decode share the GPUs in turn, a decode step after each chunk; pipeline stages and copies of the attention are all
busy with prompts when many come, and those that come together share a pass; prompts queue for prefill as M/G/1 (Pollaczek-Khinchine).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import ceil, maximum, minimum, quantity, where

from .kernels import Given, one, seconds_zero
from .memory import PASS_TOKENS, cache_bytes
from .step import Pass, forward_pass

__all__ = ["Times", "decode", "prefill", "times"]

KNOT = 1.4
"""Where the seconds of a step with experts bend; steps between are up to a quarter longer than the two lines."""
HALVINGS = 8
"""Halvings of the interval in which a rate is looked for: to less than half a percent of it."""
BUSY = 0.999
"""Most of an instance's time that requests may take before a queue has no end."""


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

    ``chunks`` passes make a prompt's ``prefill`` (s). ``step`` (s) is a decode step of the full batch with its ``drafting``
    (s), of which each sequence has ``tokens_per_step`` tokens; ``interval`` (s) the longest time between two tokens.
    ``capacity`` (1/s) are the requests that the full batch sustains, ``tpot`` (s) is then the time per output token. Of
    ``rate`` requests (1/s): ``running`` sequences, ``loaded_tpot`` (s), ``wait`` (s) for prefill, and ``between`` (s), what
    holds up a prompt's own passes. ``transfer`` (s) moves its cache. ``goodput`` (1/s) is the highest rate within the limits.
    """

    prefilling: Pass
    decoding: Pass
    drafting: Any
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
    several = _joined(g, prompt, yields)
    together = where(several > 1.0, prefill(g, several, prompt, cached).seconds, whole)
    prompts = _Prompts(
        whole=whole,
        together=together,
        marginal=(together - whole) / maximum(several - 1.0, 1e-9),
        several=several,
        chunks=chunks,
        spread=0.5 * (1.0 + g.prompt_cv * g.prompt_cv),
        lines=g.attention_dp * where(g.disaggregated, g.prefill_ratio, 1.0),
    )
    knot = _knot(g)
    middle = (decode(g, knot, context).seconds + drafted) / yields
    line = _lines(g, prompts, _bent(g, (1.0, first), (knot, middle), (g.batch, last)), yields)
    shared = line.packed.shared
    requests = g.batch / (g.output_len * last + g.batch * shared)
    capacity = minimum(requests, BUSY * prompts.lines / (prompts.each(g) + _met(g, prompts, line, g.batch)))
    running = minimum(line.running(rate), g.batch)
    transfer = where(g.disaggregated, _transfer(g), seconds_zero(g))
    return Times(
        prefilling=one,
        decoding=full,
        drafting=drafted,
        chunks=chunks,
        prefill=whole,
        step=full.seconds + drafted,
        interval=full.seconds
        + drafted
        + where(g.disaggregated, seconds_zero(g), where(several > 1.0, together, one.seconds)),
        tokens_per_step=yields,
        capacity=capacity,
        tpot=last + g.batch * shared / g.output_len,
        running=running,
        loaded_tpot=line.token(rate, g.batch),
        wait=_wait(g, prompts, line, rate, running),
        between=_between(g, prompts, line, rate, running),
        transfer=transfer,
        goodput=_goodput(g, capacity, line, prompts, transfer),
    )


@dataclass(frozen=True, slots=True)
class _Prompts:
    """Prefill as a queue sees it. ``whole`` (s) is one prompt's prefill of ``chunks`` passes, ``together`` (s) a pass of the
    ``several`` prompts that share one when many come, ``marginal`` (s) what another adds to it. ``spread`` is half the second
    moment of a prompt's length over its squared mean. ``lines`` prompts are served at once, each by a copy of the attention.
    """

    whole: Any
    together: Any
    marginal: Any
    several: Any
    chunks: Any
    spread: Any
    lines: Any

    def each(self, g: Given) -> Any:
        """Seconds of a pipeline stage for one of several prompts."""
        return self.together / (self.several * g.pp)


def _knot(g: Given) -> Any:
    """Sequences up to which more of them read more experts: at KNOT E/k tokens of a pass, the share e^-KNOT of them is left."""
    m = g.model
    tokens = KNOT * m.experts / maximum(m.top_k, 1.0) / (1.0 + g.draft_length)
    return where(m.experts > 0, minimum(maximum(tokens, g.attention_dp) * g.pp, g.batch), g.batch)


@dataclass(frozen=True, slots=True)
class _Ray:
    """Seconds per output token of k sequences: first + slope (k - 1)."""

    first: Any
    slope: Any

    def alone(self, running: Any) -> Any:
        """Those while no prompt is prefilled; never less than of one sequence."""
        return self.first + self.slope * maximum(running - 1.0, 0.0)

    def running(self, busy: Any, rate: Any, output: Any) -> Any:
        """Sequences that run, k = rate x output x (first + slope (k - 1)) / (1 - busy), by Little's law."""
        single = rate * output * self.first / maximum(1.0 - busy, 1.0 - BUSY)
        rest = maximum(1.0 - busy - rate * output * self.slope, 1.0 - BUSY)
        return maximum(minimum(single, 1.0), rate * output * (self.first - self.slope) / rest)

    def rate(self, g: Given, shared: Any) -> Any:
        """Requests (1/s) at which a token takes the limit: first + slope (k - 1) = limit (1 - rate x shared) with k = rate x
        output x limit, and of less than one sequence first = limit (1 - rate x shared).
        """
        least, limit = quantity(1e-12 * one(g), "s"), g.max_tpot
        lost = maximum(self.slope * g.output_len + shared, least)
        several = (limit - self.first + self.slope) / (limit * lost)
        return minimum(several, (limit - self.first) / (limit * maximum(shared, least)))


def _bent(g: Given, start: tuple[Any, Any], knot: tuple[Any, Any], end: tuple[Any, Any]) -> tuple[_Ray, _Ray]:
    """Rays whose minimum passes through three points (sequences, seconds), or through the first and last where the one between
    is below.
    """
    (one_, first), (some, middle), (all_, last) = start, knot, end
    slope = maximum(last - first, seconds_zero(g)) / maximum(all_ - one_, 1.0)
    near = (middle - first) / maximum(some - one_, 1.0)
    far = maximum(last - middle, seconds_zero(g)) / maximum(all_ - some, 1.0)
    bend = (all_ - some >= 1.0) & (near > far)
    return (
        _Ray(first, where(bend, near, slope)),
        _Ray(where(bend, middle - far * (some - one_), first), where(bend, far, slope)),
    )


@dataclass(frozen=True, slots=True)
class _Line:
    """Seconds per output token of k sequences, the minimum of two rays, of requests of ``output`` tokens, each of which takes
    ``shared`` seconds from decoding.
    """

    rays: tuple[_Ray, _Ray]
    output: Any
    shared: Any

    def alone(self, running: Any) -> Any:
        """Seconds per output token while no prompt is prefilled."""
        near, far = self.rays
        return minimum(near.alone(running), far.alone(running))

    def running(self, rate: Any) -> Any:
        """Sequences that run."""
        near, far = (ray.running(rate * self.shared, rate, self.output) for ray in self.rays)
        return minimum(near, far)

    def token(self, rate: Any, most: Any) -> Any:
        """Seconds per output token, of no more than ``most`` sequences."""
        return self.alone(minimum(self.running(rate), most)) / maximum(1.0 - rate * self.shared, 1.0 - BUSY)

    def rate(self, g: Given) -> Any:
        """The highest rate at which a token takes no more than the limit."""
        near, far = (ray.rate(g, self.shared) for ray in self.rays)
        return maximum(near, far)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Prompts that come in a decode step are prefilled in one pass after it. ``single``: less than one comes in a step;
    ``joined``: some, each step then has a pass, and each prompt adds to it; ``packed``: as many as fill passes.

    With a fixed and a marginal part of a pass's seconds, the first two are longer each where it does not hold, and the last is
    shorter; so the time that holds is max(min(single, joined), packed). ``yields`` are tokens of a step.
    """

    single: _Line
    joined: _Line
    packed: _Line
    yields: Any

    def running(self, rate: Any) -> Any:
        """Sequences that run."""
        some = minimum(self.single.running(rate), self.joined.running(rate))
        return maximum(some, self.packed.running(rate))

    def token(self, rate: Any, most: Any) -> Any:
        """Seconds per output token, of no more than ``most`` sequences."""
        some = minimum(self.single.token(rate, most), self.joined.token(rate, most))
        return maximum(some, self.packed.token(rate, most))

    def rate(self, g: Given) -> Any:
        """The highest rate at which a token takes no more than the limit."""
        return minimum(maximum(self.single.rate(g), self.joined.rate(g)), self.packed.rate(g))


def _lines(g: Given, prompts: _Prompts, rays: tuple[_Ray, _Ray], yields: Any) -> _Lines:
    """The three of an instance whose decode steps take ``rays`` for each of the tokens that they yield."""
    here = where(g.disaggregated, 0.0, 1.0)
    lanes = g.pp * g.attention_dp
    near, far = rays
    fixed = here * (prompts.whole - prompts.marginal) / yields
    after = (_Ray(near.first + fixed, near.slope), _Ray(far.first + fixed, far.slope))
    return _Lines(
        _Line(rays, g.output_len, here * prompts.whole / lanes),
        _Line(after, g.output_len, here * prompts.marginal / lanes),
        _Line(rays, g.output_len, here * prompts.together / (prompts.several * lanes)),
        yields,
    )


def _joined(g: Given, prompt: Any, yields: Any) -> Any:
    """Prompts of one pass when many come: those that take the place of the sequences that end in a decode step, on instances
    of their own all that wait, as far as a pass has tokens for them. Where prompts are cut, each is on its own.
    """
    many = where(g.disaggregated, PASS_TOKENS, g.batch * yields / (g.output_len * g.attention_dp * g.pp))
    return where(g.chunk > 0.0, 1.0, maximum(minimum(many, PASS_TOKENS / prompt), 1.0))


def _steps(g: Given, line: _Lines, running: Any, count: Any) -> Any:
    """Seconds of ``count`` decode steps between chunks, as far as anything is decoded."""
    step = line.yields * line.single.alone(running) * minimum(running, 1.0)
    return count * where(g.disaggregated, seconds_zero(g), step)


def _met(g: Given, prompts: _Prompts, line: _Lines, running: Any) -> Any:
    """Seconds of decode steps until the next prompt can begin: whole prompts go before them, chunks alternate with them."""
    return where(g.chunk > 0.0, _steps(g, line, running, prompts.chunks), seconds_zero(g))


def _used(g: Given, prompts: _Prompts, line: _Lines, rate: Any, running: Any) -> Any:
    """Share of the time in which a line for prefill is busy."""
    return minimum(rate * (prompts.each(g) + _met(g, prompts, line, running)) / prompts.lines, BUSY)


def _between(g: Given, prompts: _Prompts, line: _Lines, rate: Any, running: Any) -> Any:
    """Seconds that a prompt's own passes are held up: by half of the decode step in progress when it comes, a whole one behind a
    pass of several, by one before each further chunk, and by the other prompts of its pass, as many as come in a step.
    """
    others = maximum(running * line.yields / (g.output_len * g.pp * g.attention_dp) - 1.0, 0.0)
    used = _used(g, prompts, line, rate, running)
    waiting = used * (prompts.several - 1.0)
    more = minimum(where(g.disaggregated, waiting, others), prompts.several - 1.0)
    count = prompts.chunks - 0.5 + where(prompts.several > 1.0, 0.5 * used, 0.0)
    return _steps(g, line, running, count) + more * prompts.marginal


def _wait(g: Given, prompts: _Prompts, line: _Lines, rate: Any, running: Any) -> Any:
    """Mean seconds that a prompt waits for those before it: M/G/1, by Pollaczek and Khinchine (Kleinrock 1975, section 5.6)."""
    used = _used(g, prompts, line, rate, running)
    return prompts.spread * used * (prompts.whole / g.pp + _met(g, prompts, line, running)) / (1.0 - used)


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


def _goodput(g: Given, capacity: Any, line: _Lines, prompts: _Prompts, transfer: Any) -> Any:
    """The highest rate (1/s) at which mean TPOT and TTFT are within their limits and the batch suffices.

    TTFT: the wait of M/G/1 that the prefill itself, and what holds it up, leave; first with what holds it up at the rate that
    TPOT allows, which is no less, and then closer by halving what lies between.
    """
    most = maximum(minimum(line.rate(g), capacity), 0.0 * capacity)

    def meets(rate: Any) -> tuple[Any, Any]:
        running = minimum(line.running(rate), g.batch)
        return prompts.whole + transfer + _between(g, prompts, line, rate, running), running

    spent, running = meets(most)
    left, met = maximum(g.max_ttft - spent, seconds_zero(g)), _met(g, prompts, line, running)
    used = left / (left + prompts.spread * (prompts.whole / g.pp + met))
    low = minimum(prompts.lines * used / (prompts.each(g) + met), most)
    high = most
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        spent, running = meets(middle)
        kept = spent + _wait(g, prompts, line, middle, running) <= g.max_ttft
        low, high = where(kept, middle, low), where(kept, high, middle)
    return low
