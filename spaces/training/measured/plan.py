"""The training plan of a measured run, in the names of the training space.

What a row leaves open (recomputation, micro-batch, layout) becomes several plans: the ends between which its
time must lie.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .choices import (
    Unknown,
    attention_of,
    flag_of,
    formats_of,
    framework_of,
    known_of_source,
    named,
    overlaps_dp,
    recomputes_of,
    runtime_of,
    sharding_of,
)

__all__ = ["Plan", "Reading", "read_plan"]

Plan: TypeAlias = dict[str, float | bool | str]
"""The dimensions of the space by name: numbers, flags and names of table rows, and ``dp``."""

LONGEST = 2.0**24
"""Tokens of a sequence that the space takes."""

LAYOUTS = 64
"""The most plans that are tried for a row whose layout is open."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The plans that a row allows: one when it states everything. ``open`` says what it leaves open, ``assumed`` what
    it does not state and was decided by rule, where that matters.
    """

    plans: tuple[Plan, ...] = ()
    jobs: tuple[dict[str, float], ...] = ()
    open: str = ""
    reason: str = ""
    assumed: Mapping[str, str] = field(default_factory=dict)


def read_plan(cells: Mapping[str, str], numbers: Mapping[str, float], model: Mapping[str, float]) -> Reading:
    """Every plan that a row allows, with its job, or why there is none."""
    try:
        return _read(cells, numbers, model)
    except Unknown as unknown:
        return Reading(reason=str(unknown))


def _read(cells: Mapping[str, str], numbers: Mapping[str, float], model: Mapping[str, float]) -> Reading:
    if re.search(r"\blora\b|\badapter\b|bnb\.|inference", _words(cells)):
        return Reading(reason="LoRA, adapter, quantized or inference run")
    seq_len, n_gpus = numbers["seq_len"], numbers["n_gpus"]
    if not n_gpus > 0:
        return Reading(reason="GPU count not stated")
    if not seq_len > 0:
        return Reading(reason="sequence length not stated")
    if seq_len % 1 or seq_len > LONGEST:
        return Reading(reason=f"sequence length {seq_len:g} is no whole number up to 2^24")
    forms, (recomputes, unspecified) = formats_of(cells["precision"]), recomputes_of(cells)
    layouts, missing = _layouts(numbers, model)
    if not layouts:
        return Reading(reason=missing)
    opened = list(filter(None, (missing, unspecified, "precision" if len(forms) > 1 else "")))
    plans = []
    jobs = []
    assumed: dict[str, str] = {}
    for layout, recompute, form in itertools.product(layouts, recomputes, forms):
        plan, taken = _plan(cells, layout, model)
        assumed = taken | assumed
        plan |= {"recompute": recompute, "recompute_block": 1.0, "format": form}
        plans.append(plan)
        jobs.append({"n_gpus": n_gpus, "global_batch": layout["global_batch"], "seq_len": seq_len})
    told = " and ".join(opened) and f"{' and '.join(opened)} unspecified"
    return Reading(tuple(plans), tuple(jobs), told, assumed=assumed)


def _words(cells: Mapping[str, str]) -> str:
    return f"{cells['model']} {cells['precision']} {cells.get('notes', '').partition(';')[0]}".casefold()


def _layouts(
    numbers: Mapping[str, float], model: Mapping[str, float]
) -> tuple[Sequence[dict[str, float]], str]:
    """The layouts that a row allows, each with the global batch, and what it leaves open or why there is none."""
    n_gpus = numbers["n_gpus"]
    fixed = {
        name: numbers.get(name, math.nan) for name in ("tp", "pp", "cp", "dp", "micro_batch", "vpp", "ep")
    }
    fixed["global_batch"] = numbers.get("global_batch", math.nan)
    fixed |= {name: 1.0 for name in ("cp", "ep") if math.isnan(fixed[name])}
    if math.isnan(fixed["vpp"]):  # interleaving is said where it is used
        fixed["vpp"] = 1.0
    known = [fixed[name] for name in ("tp", "pp", "cp", "dp")]
    if not any(map(math.isnan, known)) and math.prod(known) != n_gpus:
        return (), "layout does not multiply to the GPU count"
    if any(value <= 0 or value % 1 for value in fixed.values() if not math.isnan(value)):
        return (), "layout has a count that is not a whole number above 0"
    missing = [name for name in ("tp", "pp", "micro_batch", "global_batch") if math.isnan(fixed[name])]
    if not missing:
        fixed["dp"] = n_gpus / fixed["tp"] / fixed["pp"] / fixed["cp"]
        if fixed["dp"] % 1:
            return (), "layout does not multiply to the GPU count"
        if fixed["global_batch"] % (fixed["dp"] * fixed["micro_batch"]):
            return (), "global batch is no multiple of micro-batch times data parallel ranks"
        return (fixed,), ""
    found = list(itertools.islice(_open_layouts(fixed, n_gpus, model), LAYOUTS))
    if not found:
        return (), f"no layout fits the GPU count and batch ({', '.join(missing)} not stated)"
    return found, " and ".join(
        dict.fromkeys("layout" if name in {"tp", "pp"} else name.replace("_", " ") for name in missing)
    )


def _open_layouts(
    fixed: Mapping[str, float], n_gpus: float, model: Mapping[str, float]
) -> Iterator[dict[str, float]]:
    """Usual layouts that agree with what is stated, whose weights and states leave room in 80 GB."""
    free = {
        "tp": (1.0, 2.0, 4.0, 8.0),
        "pp": (1.0, 2.0, 4.0, 8.0, 16.0),
        "micro_batch": (1.0, 2.0, 4.0, 8.0, 16.0),
        "global_batch": (512.0, 1536.0),
    }
    choices = [free[name] if math.isnan(fixed[name]) else (fixed[name],) for name in free]
    state = 18.0 * 12 * model["layers"] * model["hidden"] ** 2
    for tp, pp, micro_batch, batch in itertools.product(*choices):
        dp = n_gpus / tp / pp / fixed["cp"]
        told = fixed["dp"]
        if dp < 1 or dp % 1 or not (math.isnan(told) or told == dp):
            continue
        if model["layers"] % pp or model["heads"] % tp or batch % (dp * micro_batch):
            continue
        if math.isnan(fixed["tp"]) and state / tp / pp > 70e9:
            continue
        yield {
            **fixed, "tp": tp, "pp": pp, "dp": dp, "micro_batch": micro_batch, "global_batch": batch
        }  # fmt: skip


SCHEDULES = ("1f1b", "interleaved", "gpipe", "zb-h1", "dualpipe")
PLACEMENTS = ("tp-cp-dp-pp", "tp-cp-pp-dp", "tp-dp-cp-pp", "tp-pp-cp-dp")
EDGES = ("even", "embedding", "loss", "both")


def _plan(
    cells: Mapping[str, str], layout: Mapping[str, float], model: Mapping[str, float]
) -> tuple[Plan, dict[str, str]]:
    """The plan of one layout, and what of it was assumed."""
    tp, pp, cp, vpp = (layout[name] for name in ("tp", "pp", "cp", "vpp"))
    ranks = layout["dp"] * cp
    sharding, group, stated = sharding_of(cells, ranks)
    attention, seen = attention_of(cells)
    sequence = flag_of(cells, "seq_parallel")
    dp, along_tp = flag_of(cells, "overlap_dp"), flag_of(cells, "overlap_tp")
    edges = named(cells, "edges", EDGES) or _edges(model["layers"], pp * (vpp if pp > 1 else 1))
    schedule = named(cells, "schedule", SCHEDULES) or ("interleaved" if vpp > 1 else "1f1b")
    placement = named(cells, "placement", PLACEMENTS) or "tp-cp-dp-pp"
    if pp > 1 and (schedule == "interleaved") != (vpp > 1):
        raise Unknown(f"schedule {schedule!r} with vpp {vpp:g}: interleaved is what has more than 1")
    plan: Plan = {
        "framework": framework_of(cells),
        "tp": tp, "pp": pp, "cp": cp, "ep": layout["ep"], "dp": layout["dp"],
        "micro_batch": layout["micro_batch"],
        "sequence_parallel": bool(sequence) and tp > 1,
        "schedule": schedule if pp > 1 else "1f1b",
        "chunks": vpp if pp > 1 else 1.0,
        "cp_kind": "ring",
        "expert_tp": False,
        "dispatch": "capacity" if "tokendrop" in _words(cells) else "dropless",
        "sharding": sharding,
        "shard_group": group,
        "optimizer": "adam",
        "attention": attention,
        "runtime": runtime_of(cells),
        "placement": placement,
        "overlap_dp": overlaps_dp(sharding) if dp is None else dp,
        "overlap_tp": tp > 1 and (bool(sequence) if along_tp is None else along_tp),
        "edges": edges if pp > 1 else "even",
    }  # fmt: skip
    assumed = known_of_source(cells, sharding)
    if not stated and ranks > 1:
        assumed["sharding"] = sharding
    if dp is None and ranks > 1:
        assumed["overlap_dp"] = "on" if plan["overlap_dp"] else "off"
    if along_tp is None and tp > 1:
        assumed["overlap_tp"] = "on" if plan["overlap_tp"] else "off"
    if sequence is None and tp > 1:
        assumed["seq_parallel"] = "off"
    return plan, assumed if seen else assumed | {"attention": attention}


def _edges(layers: float, parts: float) -> str:
    """Which of embedding and loss counts as a layer, where the layers alone do not divide by the parts."""
    if not layers % parts:
        return "even"
    if not (layers + 2) % parts:
        return "both"
    return "loss" if not (layers + 1) % parts else "even"
