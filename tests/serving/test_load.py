"""What a stream of requests meets: against simulations, at the limits, and as plain definitions."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from dse.spaces.catalog import architecture
from dse.spaces.serving import load, queueing
from tests.serving.plans import given, metrics, space
from tests.serving.test_structure import MODELS, drawing, rises

PLANS: dict[str, dict[str, Any]] = {
    "one": {},
    "wide": {"tp": 4, "batch": 512},
    "stages": {"pp": 4, "batch": 128},
    "chunks": {"chunk": 256, "batch": 128},
    "apart": {"disaggregated": True, "prefill_ratio": 2.0, "batch": 96},
    "single": {"batch": 1},
    "drafts": {"draft_length": 3, "acceptance": 0.7},
}


# -- simulations ---------------------------------------------------------------------------------------


def waits(seconds: Any, rate: float, rng: np.random.Generator) -> float:
    """Mean wait of requests that come at random and are served one after another."""
    gaps = rng.exponential(1 / rate, len(seconds))
    now = total = 0.0
    for service, gap in zip(seconds, gaps, strict=True):
        now = max(now - gap, 0.0)
        total += now
        now += service
    return total / len(seconds)


@pytest.mark.parametrize(("cv", "share"), [(0.0, 0.7), (1.0, 0.3), (1.0, 0.7)])
def test_the_wait_for_prefill_is_that_of_a_queue(cv: float, share: float) -> None:
    """M/G/1 with lengths of which the spread is stated: within 5 % of 100,000 simulated requests."""
    g = given(space(prompt_cv=cv, output_len=16), batch=2048.0)
    whole = load.times(g, 0.0).prefill
    rng = np.random.default_rng(11)
    lengths = rng.exponential(1.0, 100_000) if cv else np.ones(100_000)
    wait = waits(lengths * whole, share / whole, rng)
    assert load.times(g, share / whole).wait == pytest.approx(wait, rel=0.05)


@dataclass(frozen=True, slots=True)
class Seen:
    """Means over simulated requests: seconds per output token, sequences that run, seconds to the first token."""

    token: float
    running: float
    first: float


def served(g: Any, rate: float, requests: int, joined: int = 1) -> Seen:
    """An engine that prefills whole prompts first, while slots are free, and else decodes what runs, step by step, with steps
    as they are of as many. If it may prefill more than one at once, a decode step follows each pass. Outputs have the stated
    length, or are geometric (their spread is 1).
    """
    rng = np.random.default_rng(1)
    context = g.prompt_len + 0.5 * g.output_len * (1 + g.output_cv**2)
    passes = [load.prefill(g, float(n), g.prompt_len, 0.0).seconds for n in range(1, joined + 1)]
    steps = [0.0, *load.decode(g, np.arange(1.0, g.batch + 1), context).seconds]
    comes = np.cumsum(rng.exponential(1 / rate, requests))
    mean = int(g.output_len)
    lengths = rng.geometric(1 / mean, requests) if g.output_cv else np.full(requests, mean)
    now, at, step, passed = 0.0, 0, 0, False
    ends: list[
        tuple[int, float, int]
    ] = []  # the step after which a sequence ends, its first token's time, its length
    tokens, firsts, area = [], [], 0.0
    while at < requests or ends:
        free = min(int(g.batch) - len(ends), joined)
        if at < requests and comes[at] <= now and free and not (joined > 1 and ends and passed):
            many = min(int(np.searchsorted(comes, now, side="right")) - at, free)
            now += passes[many - 1]
            area += len(ends) * passes[many - 1]
            for one in range(at, at + many):
                firsts.append(now - comes[one])
                heapq.heappush(ends, (step + max(int(lengths[one]) - 1, 1), now, int(lengths[one])))
            at, passed = at + many, True
        elif ends:
            area += len(ends) * steps[len(ends)]
            now, step, passed = now + steps[len(ends)], step + 1, False
            while ends and ends[0][0] <= step:
                _, began, length = heapq.heappop(ends)
                tokens.append((now - began, max(length - 1, 1)))
        else:
            now = float(comes[at])
    half = len(tokens) // 5  # until it runs as always
    spent, made = np.array(tokens[half:-half]).sum(axis=0)
    return Seen(float(spent / made), area / now, float(np.mean(firsts[half:])))


SIMULATED: dict[str, tuple[dict[str, Any], float, float]] = {
    "dense": ({}, 128.0, 0.08),
    "mixture": ({"model": "qwen3-30b-a3b", "output_len": 512}, 256.0, 0.08),
    "few slots": ({}, 16.0, 0.3),
    "few slots of a mixture": ({"model": "qwen3-30b-a3b"}, 32.0, 0.35),
}
"""Inputs, batch, and the most that TTFT at 0.9 of the capacity (0.5: 8 %) differs."""


@pytest.mark.parametrize("name", SIMULATED)
def test_a_loaded_engine_is_as_a_simulated_one(name: str) -> None:
    """Steps of the mean number that runs, and waits for slots: TPOT and sequences within 8 % of 6,000 simulated requests."""
    inputs, batch, slots = SIMULATED[name]
    g = given(space(**{"output_len": 128, **inputs}), batch=batch)
    capacity = load.times(g, 0.0).capacity
    for share, near in ((0.1, 0.08), (0.5, 0.1)) if slots < 0.1 else ((0.5, 0.1), (0.9, slots)):
        t = load.times(g, share * capacity)
        seen = served(g, share * capacity, 6000)
        assert t.loaded_tpot == pytest.approx(seen.token, rel=0.08), share
        assert t.running == pytest.approx(seen.running, rel=0.08), share
        assert t.wait + t.prefill + t.between == pytest.approx(seen.first, rel=near), share


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_short_prompts_share_passes_as_simulated(share: float) -> None:
    """Eight prompts that end and begin in one step of 1,024 sequences: TPOT within 10 %, TTFT and sequences within 25 %."""
    g = given(space(prompt_len=128, output_len=128), batch=1024.0)
    t = load.times(g, 0.0)
    rate = share * t.capacity
    assert t.capacity > 1.5 / (t.prefill + 128 * t.step / 1024)  # one by one they take far longer
    t = load.times(g, rate)
    seen = served(g, rate, 6000, joined=64)
    assert t.loaded_tpot == pytest.approx(seen.token, rel=0.1)
    assert t.running == pytest.approx(seen.running, rel=0.25)
    assert t.wait + t.prefill + t.between == pytest.approx(seen.first, rel=0.25)


@pytest.mark.parametrize("model", ["llama-3.1-70b", "qwen3-30b-a3b"])
def test_the_most_that_may_run_matters_only_where_it_is_reached(model: str) -> None:
    """At 4 requests/s the same run at any limit; it decides whether they wait for a slot, and how many may come."""
    problem = space(model=model, request_rate="4 1/s", prompt_len=512, output_len=512)
    values: dict[str, Any] = {
        "tp": 4 if model == "llama-3.1-70b" else 1,
        "weights": "fp8",
        "activations": "fp8",
    }
    batches = (64.0, 128.0, 1024.0)
    found = [metrics(problem, batch=batch, **values) for batch in batches]
    assert len({(one["tpot"], one["running"], one["gpu_throughput"]) for one in found}) == 1
    g = given(problem, **values)
    k = found[0]["running"]
    assert k == pytest.approx(4 * 512 * found[0]["tpot"], rel=1e-12)
    assert found[0]["tpot_decode"] == pytest.approx(load.decode(g, k, 512 + 256.0).seconds, rel=5e-3)
    least = given(problem, batch=np.ceil(k) + 1, **values)
    near = load.times(least, 4.0)
    assert near.loaded_tpot == found[0]["tpot"]
    assert near.wait + near.prefill > 1.5 * found[0]["ttft"]


def test_the_wait_grows_without_end_towards_the_capacity() -> None:
    g = given(space(), batch=32.0)
    capacity = load.times(g, 0.0).capacity
    t = load.times(g, capacity * np.array([0.5, 0.9, 0.99, 1.0]))
    assert np.all(t.wait[1:] > 5 * t.wait[:-1])
    assert 0.8 * capacity < load.times(g, 0.0).goodput < capacity
    assert load.times(given(space(max_ttft="100 s", max_tpot="1 s"), batch=32.0), 0.0).goodput < capacity


# -- definitions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANS)
def test_requests_take_what_their_tokens_take(name: str) -> None:
    problem, values = space(), PLANS[name]
    for rate in (0.0, 0.7 * metrics(problem, **values)["capacity"]):
        found = metrics(problem, request_rate=rate, **values)
        assert found["request_time"] == pytest.approx(found["ttft"] + 255 * found["tpot"], rel=1e-12)
        assert found["user_speed"] == pytest.approx(1 / found["tpot"], rel=1e-12)
        full = load.times(given(problem, **values), 0.0).full
        assert found["throughput"] == pytest.approx((rate or full) * 256, rel=1e-12)
        assert found["gpu_throughput"] == pytest.approx(found["throughput"] / found["gpus_used"], rel=1e-12)
    t = load.times(given(problem, **values), 0.0)
    batch = values.get("batch", 64)
    if name not in {"apart", "chunks"}:  # prompts may bind there
        assert t.full == pytest.approx(batch / (256 * t.tpot), rel=1e-12)
    assert t.capacity <= queueing.BUSY * batch / (256 * t.tpot) * (1 + 1e-12)


def test_speculation_yields_what_is_accepted_in_a_row() -> None:
    """Leviathan 2211.17192, Eq. 1, against drafts of which each token is accepted by chance."""
    rng = np.random.default_rng(3)
    problem = space()
    for length in (1, 3, 8):
        for acceptance in (0.2, 0.7, 0.95):
            lucky = rng.random((200_000, length)) < acceptance
            drawn = 1 + np.cumprod(lucky, axis=1).sum(axis=1).mean()
            t = load.times(given(problem, draft_length=length, acceptance=acceptance), 0.0)
            assert t.tokens_per_step == pytest.approx(drawn, rel=0.01)
        none, all_ = (
            load.times(given(problem, draft_length=length, acceptance=a), 0.0) for a in (1e-12, 1 - 1e-12)
        )
        assert none.tokens_per_step == pytest.approx(1, rel=1e-9)
        assert all_.tokens_per_step == pytest.approx(length + 1, rel=1e-3)
        assert none.step == all_.step > load.times(given(problem), 0.0).step
    plain, with_none = metrics(problem), metrics(problem, acceptance=0.9, draft_length=0)
    assert plain == with_none
    assert plain["draft_memory"] == 0 < metrics(problem, acceptance=0.9, draft_length=1)["draft_memory"]


def test_a_draft_is_verified_with_the_latent() -> None:
    """Of few new tokens latent attention multiplies with the latent: two take as much as two, not a third of one."""
    g = given(space(model="deepseek-v3"))
    one, two = (load.forward_pass(g, 64.0, queries, 8192.0).work.flops for queries in (1.0, 2.0))
    assert two == pytest.approx(2 * one, rel=1e-3)


def test_prefill_apart_moves_the_prompts_cache_and_leaves_decoding_alone() -> None:
    problem = space(model="llama-3.1-70b", n_gpus=64)
    for tp, wire in ((4, "link"), (8, "nic")):
        values = {"tp": tp, "disaggregated": True, "prefill_ratio": 1.0}
        g = given(problem, **values)
        found = metrics(problem, **values)
        prompt = 1024 * architecture.kv_bytes_per_token(g.model, 2.0) / tp
        moved = prompt / (getattr(g.hardware, wire) * g.efficiency.link)
        assert found["ttft"] - found["prefill_time"] == pytest.approx(moved, rel=1e-9)
        assert found["tpot"] == pytest.approx(found["decode_step"], rel=1e-12)
        assert found["token_interval"] == pytest.approx(found["decode_step"], rel=1e-12)
        shared = metrics(problem, tp=tp)
        assert shared["tpot"] == pytest.approx(
            shared["decode_step"] + 64 * shared["prefill_time"] / 256, rel=1e-12
        )


def test_prefill_instances_are_whole() -> None:
    """A quarter of one is one of four decode instances, and all of them count."""
    quarter = metrics(space(), tp=2, disaggregated=True, prefill_ratio=0.25)
    assert quarter["gpus_used"] == 2 * 5
    one = metrics(space(), tp=2, disaggregated=True, prefill_ratio=1.0)
    assert one["gpus_used"] == 2 * 2
    assert one["user_speed"] == quarter["user_speed"]


def test_copies_of_the_attention_and_stages_prefill_side_by_side() -> None:
    problem = space(model="deepseek-v3", n_gpus=64)
    four = given(problem, hardware="h200-sxm", attention_dp=4, ep=4, weights="fp8", activations="fp8")
    t = load.times(four, 0.0)
    assert t.tpot - t.step == pytest.approx(64 * t.prefill / 4 / 256, rel=1e-9)
    two = load.times(given(space(), pp=2), 0.0)
    assert two.tpot - two.step == pytest.approx(64 * two.prefill / 2 / 256, rel=1e-9)


def test_tokens_of_other_ranks_cost_their_exchange() -> None:
    """Ranks with tokens of their own exchange them, with EP or without; between nodes by network cards."""
    problem = space(model="deepseek-v3", n_gpus=64)
    values = {"hardware": "h200-sxm", "weights": "fp8", "activations": "fp8", "batch": 512.0}
    found = {(dp, ep): metrics(problem, attention_dp=dp, ep=ep, **values)["decode_communication"]
             for dp, ep in ((1, 1), (8, 8), (8, 1), (16, 16), (16, 1))}  # fmt: skip
    assert found[1, 1] == 0
    assert 0 < found[8, 8] == found[8, 1]  # eight experts of a token, or eight ranks
    assert found[16, 16] > found[8, 8]  # half the tokens of a rank, but half of them to another node
    assert found[16, 1] > found[16, 16]
    stages = [metrics(space(n_gpus=64), tp=4, pp=pp, batch=64.0)["decode_communication"] for pp in (1, 2, 4)]
    assert stages[2] - stages[0] > 3 * (stages[1] - stages[0])  # three boundaries, over the slower wire


# -- under load ----------------------------------------------------------------------------------------------


@drawing(16)
@over(
    st.sampled_from(list(PLANS)),
    st.sampled_from(MODELS),
    st.sampled_from([64, 1024, 8192]),
    st.sampled_from([16, 256]),
)
def test_more_requests_are_never_served_sooner(name: str, model: str, prompt: int, output: int) -> None:
    problem = space(model=model, prompt_len=prompt, output_len=output)
    if PLANS[name].get("chunk", 0) >= prompt:
        return
    g = given(problem, **PLANS[name])
    capacity = load.times(g, 0.0).capacity
    rates = capacity * np.array([1e-9, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
    t = load.times(g, rates)
    assert all(rises(values) for values in (t.loaded_tpot, t.wait, t.running, t.between))
    assert np.all(t.running <= g.batch)
    empty = t.prefill + t.transfer
    assert t.wait[0] + empty + t.between[0] == pytest.approx(empty, rel=1e-6)
    assert t.running[0] < 1e-6
    assert t.loaded_tpot[-1] <= 1.1 * t.tpot  # a pass is affine in its prompts there


@drawing(20)
@over(
    st.sampled_from(list(PLANS)),
    st.sampled_from(MODELS),
    st.sampled_from([64, 1024, 8192]),
    st.tuples(st.sampled_from([1.02, 1.2, 2.0, 8.0]), st.sampled_from([1.02, 1.5, 3.0, 20.0])),
    st.sampled_from([0.0, 1.0]),
)
def test_goodput_is_the_rate_at_which_a_limit_is_reached(
    name: str, model: str, prompt: int, slack: tuple[float, float], cv: float
) -> None:
    problem = space(model=model, prompt_len=prompt)
    if PLANS[name].get("chunk", 0) >= prompt:
        return
    empty = load.times(given(problem, **PLANS[name]), 0.0)
    single = load.times(given(problem, **{**PLANS[name], "batch": 1}), 0.0)
    limits = {"max_tpot": slack[0] * single.step / single.tokens_per_step,
              "max_ttft": slack[1] * (empty.prefill + empty.transfer)}  # fmt: skip
    g = given(problem, prompt_cv=cv, **PLANS[name], **limits)

    def kept(rate: float, slack: float) -> bool:
        t = load.times(g, rate)
        ttft = t.wait + t.transfer + t.prefill + t.between
        return bool(t.loaded_tpot <= limits["max_tpot"] * slack and ttft <= limits["max_ttft"] * slack)

    t = load.times(g, 0.0)
    assert 0 <= t.goodput <= t.capacity
    if t.goodput > 0:
        assert kept(0.98 * t.goodput, 1.08)
    more = 1.03 * t.goodput + 0.005 * t.capacity
    if more < t.capacity:
        assert not kept(more, 1.0)
