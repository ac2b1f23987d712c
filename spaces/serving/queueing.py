"""Requests that come at random to one instance: how many run, how long they wait, and the rates that it sustains.

Approximations, each named where it is made: decode steps are those of the mean number that runs (Little's law); prefill and
decode share the GPUs in turn, a decode step after each chunk; prompts queue for prefill as M/G/1 (Pollaczek and Khinchine),
and requests for one of the batch's slots as M/G/c (Sakasegawa 1977, Ann. Inst. Stat. Math. 29: 67-75).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dse.expressions.tracer import maximum, minimum, sqrt, where

from .kernels import Given, seconds_zero

__all__ = ["BUSY", "MOST", "Load", "Prompts", "Queue"]

BUSY = 0.999
"""Most of an instance's time that requests may take before a queue has no end."""
MOST = 2048.0
"""Sequences that no engine decodes at once more of: where the number that runs is looked for, whatever the batch may be."""
PASSES, HALVINGS = 4, 8
"""Halvings of the interval of running sequences, its logarithm with steps of their own, then itself with lines between."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """Prefill as a queue sees it. ``whole`` (s) is one prompt's prefill of ``chunks`` passes, ``together`` (s) a pass of the
    ``several`` prompts that share one when many come, ``marginal`` (s) what another adds to it. ``spread`` is half the second
    moment of a prompt's length over its squared mean. ``lines`` prompts are served at once, each by a copy of the attention.
    """

    whole: Any
    together: Any
    several: Any
    chunks: Any
    spread: Any
    lines: Any

    @property
    def marginal(self) -> Any:
        """Seconds that another prompt adds to a pass."""
        return (self.together - self.whole) / maximum(self.several - 1.0, 1e-9)

    def each(self, count: Any) -> Any:
        """Seconds of a pass for one of ``count`` prompts in it."""
        return (self.whole + (count - 1.0) * self.marginal) / count


@dataclass(frozen=True, slots=True)
class Load:
    """``running`` sequences on an instance, whose decode steps take ``alone`` (s) for an output token, and with their share
    of prefill ``token`` (s), at ``rate`` requests (1/s).
    """

    rate: Any
    running: Any
    alone: Any
    token: Any


@dataclass(frozen=True, slots=True)
class Queue:
    """An instance that requests come to. ``step`` gives the seconds of a decode step of so many sequences, each of which has
    ``yields`` tokens of it; ``transfer`` (s) moves a prompt's cache; full batches serve ``full`` requests (1/s).

    Prompts that come in a decode step are prefilled in one pass after it: less than one comes in a step, or some do, each step
    then has a pass, and each prompt adds to it, or as many as fill passes. With a fixed and a marginal part of a pass's
    seconds, the first two are longer each where it does not hold, and the last is shorter; so what holds is
    max(min(first, second), third).
    """

    g: Given
    prompts: Prompts
    step: Callable[[Any], Any]
    yields: Any
    transfer: Any
    full: Any

    def alone(self, running: Any) -> Any:
        """Seconds of a decode step for an output token, of at least one sequence."""
        return self.step(maximum(running, 1.0)) / self.yields

    def _taken(self) -> tuple[tuple[Any, Any], ...]:
        """Of the three: seconds that prefill adds to a token whatever comes, and those that a request takes from decoding."""
        g, p = self.g, self.prompts
        here, lanes = where(g.disaggregated, 0.0, 1.0), g.pp * g.attention_dp
        return (
            (seconds_zero(g), here * p.whole / lanes),
            (here * (p.whole - p.marginal) / self.yields, here * p.marginal / lanes),
            (seconds_zero(g), here * p.together / (p.several * lanes)),
        )

    def token(self, rate: Any, alone: Any) -> Any:
        """Seconds per output token with the prefill of ``rate`` requests (1/s)."""
        one, some, many = (
            (alone + fixed) / maximum(1.0 - rate * shared, 1.0 - BUSY) for fixed, shared in self._taken()
        )
        return maximum(minimum(one, some), many)

    def rate(self, running: Any, alone: Any) -> Any:
        """Requests (1/s) of which so many run, by Little's law: k = rate x output x token."""
        one, some, many = (
            running / (self.g.output_len * (alone + fixed) + running * shared)
            for fixed, shared in self._taken()
        )
        return minimum(maximum(one, some), many)

    def loaded(self, rate: Any) -> Load:
        """What ``rate`` requests (1/s) find, however many may run.

        The number that runs is where k = rate x output x token(k). It is looked for from above, twice by putting in what comes
        out, then by the secant of both (Steffensen), and between the next secant and the chord from one sequence, as the
        seconds of a step bend; the token's time is that of a step of as many.
        """
        output = self.g.output_len

        def run(sequences: Any) -> Any:
            return rate * output * self.token(rate, self.alone(sequences))

        above = minimum(run(MOST), MOST)
        first = minimum(run(above), above)
        second = minimum(run(first), first)
        found = maximum(minimum(_crossing((first, second), (above, first)), second), 1.0)
        least, there = run(1.0), run(found)
        chord = minimum(_crossing((1.0, least), (found, there)), found)
        tangent = minimum(_crossing((found, there), (first, second)), found)
        closer = where(there < found, 0.5 * (chord + maximum(tangent, chord)), there)
        alone = self.alone(where(least > 1.0, closer, 1.0))
        token = self.token(rate, alone)
        return Load(rate, rate * output * token, alone, token)

    def steps(self, load: Load, count: Any) -> Any:
        """Seconds of ``count`` decode steps between chunks, as far as anything is decoded."""
        seconds = self.yields * load.alone * minimum(load.running, 1.0)
        return count * where(self.g.disaggregated, seconds_zero(self.g), seconds)

    def met(self, load: Load) -> Any:
        """Seconds of decode steps until the next prompt can begin: whole prompts go before them, chunks alternate with them."""
        return where(self.g.chunk > 0.0, self.steps(load, self.prompts.chunks), seconds_zero(self.g))

    def comes(self, load: Load) -> Any:
        """Prompts that come to a copy of the attention and a stage in a decode step."""
        return load.running * self.yields / (self.g.output_len * self.g.pp * self.g.attention_dp)

    def least(self, load: Load) -> Any:
        """Seconds that a line for prefill is busy with a prompt when many come: those of a decode step share a pass, on
        instances of their own as many as fill it.
        """
        several = self.prompts.several
        joined = where(self.g.disaggregated, several, minimum(maximum(self.comes(load), 1.0), several))
        return self.prompts.each(joined) / self.g.pp + self.met(load)

    def used(self, load: Load) -> Any:
        """Share of the time in which a line for prefill is busy."""
        return minimum(load.rate * self.least(load) / self.prompts.lines, BUSY)

    def between(self, load: Load) -> Any:
        """Seconds that a prompt's own passes are held up: by half of the decode step in progress when it comes, a whole one
        behind a pass of several, by one before each further chunk, and by the other prompts of its pass, as many as come in a
        step.
        """
        g, prompts = self.g, self.prompts
        others = maximum(self.comes(load) - 1.0, 0.0)
        used = self.used(load)
        waiting = used * (prompts.several - 1.0)
        more = minimum(where(g.disaggregated, waiting, others), prompts.several - 1.0)
        count = prompts.chunks - 0.5 + 0.5 * used * where(g.disaggregated, 0.0, minimum(others, 1.0))
        return self.steps(load, count) + more * prompts.marginal

    def wait(self, load: Load) -> Any:
        """Mean seconds that a request waits for a slot, for the prefill of those before it, and for the transfer of theirs."""
        prompts, used = self.prompts, self.used(load)
        prefill = prompts.spread * used * (prompts.whole / self.g.pp + self.met(load)) / (1.0 - used)
        moving = minimum(load.rate * self.moving(), BUSY)
        return prefill + prompts.spread * moving * self.moving() / (1.0 - moving) + self.slot(load)

    def moving(self) -> Any:
        """Seconds that a request's cache takes from the network of an instance, of the one that has more of them to move."""
        return self.transfer * maximum(1.0 / where(self.g.disaggregated, self.g.prefill_ratio, 1.0), 1.0)

    def slot(self, load: Load) -> Any:
        """Mean seconds until one of the batch's c slots is free, M/G/c by Sakasegawa's formula:
        S/c x rho^(sqrt(2 (c + 1)) - 1) / (1 - rho) x (1 + cv^2) / 2, with rho = rate / full and S/c = 1 / full.
        """
        g = self.g
        rho = minimum(load.rate / self.full, BUSY)
        queue = rho ** (sqrt(2.0 * (g.batch + 1.0)) - 1.0) / (1.0 - rho)
        return queue / self.full * 0.5 * (1.0 + g.output_cv * g.output_cv)

    def first(self, load: Load) -> Any:
        """Mean seconds to the first token."""
        return self.wait(load) + self.transfer + self.prompts.whole + self.between(load)

    def capacity(self, full: Load) -> Any:
        """Requests (1/s) that an instance sustains with its batch full: slots, prefill and transfers are less than all busy."""
        network = BUSY / maximum(self.moving(), 1e-12 * self.prompts.whole)
        return minimum(minimum(BUSY * self.full, BUSY * self.prompts.lines / self.least(full)), network)

    def goodput(self, capacity: Any, one: Any, all_: Any) -> Any:
        """The highest rate (1/s) at which mean TPOT and TTFT are within their limits and ``capacity`` suffices.

        Both rise with the sequences that run, and so does the rate; their number is looked for by halving. ``one`` and ``all_``
        (s) are a decode step's time for a token, of one sequence and of the full batch.
        """
        g = self.g

        def load(running: Any, alone: Any) -> Load:
            rate = self.rate(running, alone)
            return Load(rate, running, alone, self.token(rate, alone))

        def kept(at: Load) -> Any:
            return (at.token <= g.max_tpot) & (self.first(at) <= g.max_ttft) & (at.rate <= capacity)

        low, high, below, above = 1.0 + 0.0 * g.batch, 1.0 * g.batch, one, all_
        for _ in range(PASSES):
            middle = sqrt(low * high)
            alone = self.alone(middle)
            fits = kept(load(middle, alone))
            low, below = where(fits, middle, low), where(fits, alone, below)
            high, above = where(fits, high, middle), where(fits, above, alone)
        start, slope = low, (above - below) / maximum(high - low, 1e-9)

        def line(running: Any) -> Load:
            return load(running, below + slope * maximum(running - start, 0.0))

        low = where(start > 1.0, start, 0.0)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            fits = kept(line(middle))
            low, high = where(fits, middle, low), where(fits, high, middle)
        return line(low).rate


def _crossing(one: tuple[Any, Any], other: tuple[Any, Any]) -> Any:
    """Where the line through two points has y = x."""
    slope = (other[1] - one[1]) / maximum(other[0] - one[0], 1e-9)
    return (one[1] - slope * one[0]) / maximum(1.0 - slope, 1.0 - BUSY)
