"""The cost model of serving: what the formulas beside this file say of one plan, as metrics, and of one measured run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dse.expressions.tracer import maximum, minimum, quantity, where
from dse.spaces.catalog import architecture

from . import load, memory
from .kernels import Given, matmul_rate, one
from .step import Pass, forward_pass

__all__ = ["cost", "namespace", "predicted_seconds", "steady"]

PASS = (
    "linear",
    "experts",
    "attention",
    "elementwise",
    "head",
    "communication",
    "waiting",
    "bubble",
    "overhead",
)


def namespace(efficiency: Any, names: dict[str, Any]) -> Given:
    """What the formulas are given, from the inputs and dimensions of the space."""
    g = SimpleNamespace(**names)
    g.efficiency = efficiency[g.hardware.generation]
    return g


def predicted_seconds(g: Given) -> Any:
    """Seconds of what a measured run timed.

    Of static batches: ``kind_prefill`` the prompts of the batch behind ``past`` cached tokens, ``kind_decode`` one step in
    the middle of the output, ``kind_generate`` the prompts and the steps of all further tokens.
    """
    middle = g.past + g.prompt + 0.5 * g.output
    batches = minimum(g.batch / g.attention_dp, g.pp)
    turns = (
        batches + g.pp - 1.0
    ) / g.pp  # all pass the first stage one after another, and the last one the others
    share = g.batch / (batches * g.attention_dp)
    prefill = forward_pass(g, share, maximum(g.prompt, 1.0), g.past).seconds * turns
    decode = load.decode(g, g.batch, middle).seconds
    whole = prefill + maximum(g.output - 1.0, 0.0) * decode
    return where(g.kind_prefill > 0, prefill, where(g.kind_decode > 0, decode, whole))


def steady(g: Given) -> Any:
    """Output tokens/s of one instance at its full batch, prompts included, while finished sequences are replaced at once."""
    found = load.times(g, 0.0 * g.batch)
    return found.full * g.output_len


def _parts(name: str, of: Pass, count: Any) -> dict[str, Any]:
    return {f"{name}_{part}": getattr(of, part) * count for part in PASS}


def cost(efficiency: Any, **names: Any) -> dict[str, Any]:
    """Every metric of a plan (see space.yaml for their meaning)."""
    g = namespace(efficiency, names)
    loaded = g.request_rate > quantity(0.0 * one(g), "1/s")
    t = load.times(g, g.request_rate / g.replicas)
    lines = memory.memory(g)
    instance = g.tp * g.pp * g.attention_dp
    # without a rate, as few decode instances as keep a whole prefill instance busy
    least = where(g.disaggregated, maximum(1.0 / g.prefill_ratio, 1.0), 1.0)
    copies = where(loaded, g.replicas, least)
    gpus = instance * copies * where(g.disaggregated, 1.0 + g.prefill_ratio, 1.0)
    empty = t.prefill + t.transfer
    tpot = where(loaded, t.loaded_tpot, t.tpot)
    alone = where(loaded, t.loaded_alone, t.alone)
    waiting = t.wait + t.transfer + t.prefill + t.between
    ttft = where(loaded, waiting, empty)
    capacity = t.capacity * copies
    served = where(loaded, minimum(g.request_rate, capacity), t.full * copies)
    tokens = served * quantity(g.output_len, "token")
    dense = matmul_rate(g)
    work, first = t.decoding.work, t.prefilling.work
    busy = g.power_share * minimum(served / capacity, 1.0)
    power = gpus * (g.hardware.idle + busy * (g.hardware.tdp - g.hardware.idle)) * g.pue
    price = where(g.gpu_price > quantity(0.0 * one(g), "USD/h"), g.gpu_price, g.hardware.price)
    return {
        "gpus_used": gpus,
        "throughput": tokens,
        "gpu_throughput": tokens / gpus,
        "user_speed": quantity(one(g), "token") / tpot,
        "ttft": ttft,
        "ttft_unloaded": empty,
        "ttft_loaded": waiting,
        "tpot": tpot,
        "tpot_decode": alone,
        "tpot_prefill": tpot - alone,
        "token_interval": t.interval,
        "request_time": ttft + (g.output_len - 1.0) * tpot,
        "prefill_time": t.prefill,
        **_parts("prefill", t.prefilling, t.chunks),
        "prefill_draft": t.prefill_draft * t.chunks,
        "decode_step": t.step,
        **_parts("decode", t.decoding, 1.0),
        "decode_draft": t.drafting,
        "prefill_compute": first.compute * t.chunks,
        "prefill_memory": first.memory * t.chunks,
        "decode_compute": work.compute,
        "decode_memory": work.memory,
        "prefill_roofline": maximum(first.flops / dense, first.bytes / g.hardware.bandwidth)
        / t.prefilling.seconds,
        "decode_roofline": maximum(work.flops / dense, work.bytes / g.hardware.bandwidth)
        / t.decoding.seconds,
        "decode_intensity": work.flops / work.bytes,
        "ridge_point": dense / g.hardware.bandwidth,
        "capacity": capacity,
        "goodput": t.goodput * copies,
        "running": where(loaded, t.running, g.batch),
        "tokens_per_step": t.tokens_per_step,
        "peak_memory": memory.peak(g),
        **lines,
        "parameters": architecture.parameters(g.model),
        "dollars": price * gpus / tokens,
        "energy": power / tokens,
    }
