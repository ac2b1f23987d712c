"""The training plan of a measured run, in the names of the training space.

What a row leaves open (recomputation, micro-batch, layout) becomes several plans: the ends between which its
time must lie.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Plan", "Reading", "attention_of", "framework_of", "read_plan", "runtime_of"]

Plan: TypeAlias = dict[str, float | bool | str]
"""The dimensions of the space by name: numbers, flags and names of table rows, and ``dp``."""

FORMATS = {
    "bf16": "bf16", "amp_bf16": "bf16", "bf16-true": "bf16", "fp16": "fp16", "fp8": "fp8", "amp_fp8": "fp8",
    "fp8-cs": "fp8", "fp8+bf16": "fp8", "fp8+fp32": "fp8", "mxfp8": "mxfp8", "fp8-mx": "mxfp8", "nvfp4": "nvfp4",
}  # fmt: skip
"""What sources call a number format, and the space's name of it."""

RECOMPUTES = {
    "none": "none",
    "full": "full",
    "selective": "attention",
    "attention": "attention",
    "mlp": "mlp",
}
"""Megatron's default "selective" recomputes the core attention."""

LONGEST = 2.0**24
"""Tokens of a sequence that the space takes."""

LAYOUTS = 64
"""The most plans that are tried for a row whose layout is open."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The plans that a row allows: one when it states everything. ``open`` says what it leaves open."""

    plans: tuple[Plan, ...] = ()
    jobs: tuple[dict[str, float], ...] = ()
    open: str = ""
    reason: str = ""


def framework_of(cells: Mapping[str, str]) -> str:
    """``megatron``, ``deepspeed`` or ``torchtitan`` (PyTorch's own FSDP), whichever a row's run belongs to."""
    told = cells.get("sharding", "").casefold()
    source = cells.get("source", "").casefold()
    if "megatron-deepspeed" in told or "zero" in told or "deepspeed" in told or "internevo" in source:
        return "deepspeed"
    if "megatron" in told or "optimizer" in told or told == "ddp":
        return "megatron"
    if "fsdp" in told:
        return "megatron" if "megatron" in source else "torchtitan"
    return "megatron"


def read_plan(cells: Mapping[str, str], numbers: Mapping[str, float], model: Mapping[str, float]) -> Reading:
    """Every plan that a row allows, with its job, or why there is none."""
    if re.search(r"\blora\b|\badapter\b|bnb\.|inference", _words(cells)):
        return Reading(reason="LoRA, adapter, quantized or inference run")
    forms = _formats(cells["precision"])
    if not forms:
        return Reading(reason=f"precision {cells['precision']!r} is none of the space's")
    seq_len, n_gpus = numbers["seq_len"], numbers["n_gpus"]
    if not n_gpus > 0:
        return Reading(reason="GPU count not stated")
    if not seq_len > 0:
        return Reading(reason="sequence length not stated")
    if seq_len % 1 or seq_len > LONGEST:
        return Reading(reason=f"sequence length {seq_len:g} is no whole number up to 2^24")
    recomputes, unspecified = _recomputes(cells)
    if not recomputes:
        return Reading(reason=f"recomputation {cells['recompute']!r} is none of the space's")
    layouts, missing = _layouts(numbers, model)
    if not layouts:
        return Reading(reason=missing)
    opened = list(filter(None, (missing, unspecified, "precision" if len(forms) > 1 else "")))
    plans = []
    jobs = []
    for layout, recompute, form in itertools.product(layouts, recomputes, forms):
        plan = _plan(cells, layout, model)
        plan |= {"recompute": recompute, "recompute_block": 1.0, "format": form}
        plans.append(plan)
        jobs.append({"n_gpus": n_gpus, "global_batch": layout["global_batch"], "seq_len": seq_len})
    return Reading(tuple(plans), tuple(jobs), " and ".join(opened) and f"{' and '.join(opened)} unspecified")


def _words(cells: Mapping[str, str]) -> str:
    return f"{cells['model']} {cells['precision']} {cells.get('notes', '').partition(';')[0]}".casefold()


def _formats(precision: str) -> tuple[str, ...]:
    """The space's name of a number format; two where a cell says ``unspecified (bf16 or fp8)``."""
    folded = precision.strip().casefold()
    if either := re.fullmatch(r"unspecified \((\w+) or (\w+)\)", folded):
        found = tuple(FORMATS.get(word, "") for word in either.groups())
        return found if all(found) else ()
    known = FORMATS.get(folded) or FORMATS.get(folded.partition(" ")[0])
    return (known,) if known else ()


def _recomputes(cells: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    told = cells["recompute"].casefold()
    if told in {"", "unspecified"}:
        return ("none", "full"), "recomputation"
    if "recompute" in (note := cells.get("notes", "")) and "are assumptions" in note:
        return ("none", "full"), "recomputation"
    known = RECOMPUTES.get(told)
    return ((known,) if known else ()), ""


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


def _plan(cells: Mapping[str, str], layout: Mapping[str, float], model: Mapping[str, float]) -> Plan:
    framework = framework_of(cells)
    tp, pp, cp, vpp = (layout[name] for name in ("tp", "pp", "cp", "vpp"))
    sharding, group = _sharding(cells, framework, layout)
    modern = _is_modern(cells)
    return {
        "framework": framework,
        "tp": tp, "pp": pp, "cp": cp, "ep": layout["ep"], "dp": layout["dp"],
        "micro_batch": layout["micro_batch"],
        "sequence_parallel": cells.get("seq_parallel", "").casefold() == "yes" and tp > 1,
        "schedule": "interleaved" if pp > 1 and vpp > 1 else "1f1b",
        "chunks": vpp if pp > 1 else 1.0,
        "cp_kind": "ring",
        "expert_tp": False,
        "dispatch": "capacity" if "tokendrop" in _words(cells) else "dropless",
        "sharding": sharding,
        "shard_group": group,
        "optimizer": "adam",
        "attention": attention_of(cells),
        "runtime": runtime_of(cells),
        "placement": "tp-cp-dp-pp",
        "overlap_dp": modern or sharding.startswith(("fsdp", "hsdp")),
        "overlap_tp": modern and tp > 1,
        "edges": _edges(model["layers"], pp * (vpp if pp > 1 else 1)) if pp > 1 else "even",
    }  # fmt: skip


def runtime_of(cells: Mapping[str, str]) -> str:
    """The row of the memory constants that a run belongs to: what its framework keeps beside the plan."""
    source = cells.get("source", "").casefold()
    if "internevo" in source:
        return "internevo"
    if "llm-foundry" in source or "litgpt" in source:
        return "fsdp"
    return framework_of(cells)


def attention_of(cells: Mapping[str, str]) -> str:
    """The attention kernel: ``unfused`` keeps s x s scores, ``flash`` is FlashAttention-2, ``flash3`` later ones.

    What the notes say, else the era: fp16 runs had none, and recipes of NVIDIA's take cuDNN's.
    """
    notes, source = cells.get("notes", "").casefold(), cells.get("source", "").casefold()
    fused = "flash" in notes
    old = cells["precision"] == "fp16" or "attention-backend=unfused" in notes or "impl=local" in notes
    if old and not fused:
        return "unfused"
    return "flash" if fused or "internevo" in source else "flash3"


def _is_modern(cells: Mapping[str, str]) -> bool:
    """Whether communication is overlapped by default: NeMo and Megatron-Core recipes, and InternEvo's optimizer."""
    source = cells.get("source", "").casefold()
    return any(word in source for word in ("nemo", "bridge", "dgx cloud", "internevo", "torchtitan"))


def _edges(layers: float, parts: float) -> str:
    """Which of embedding and loss counts as a layer, where the layers alone do not divide by the parts."""
    if not layers % parts:
        return "even"
    if not (layers + 2) % parts:
        return "both"
    return "loss" if not (layers + 1) % parts else "even"


def _sharding(cells: Mapping[str, str], framework: str, layout: Mapping[str, float]) -> tuple[str, float]:
    """The sharding row of the space, and the ranks that share one copy of the states (0 for all of them)."""
    told, stage = cells.get("sharding", "").casefold(), cells.get("zero_stage", "").partition(".")[0]
    ranks = layout["dp"] * layout["cp"]
    stated = re.search(r"group=(\d+)|over (\d+) ranks", told)
    group = float(stated.group(1) or stated.group(2)) if stated else 0.0
    group = group if 0 < group < ranks else 0.0
    if "megatron-fsdp" in told or ("fsdp" in told and framework == "megatron"):
        return "megatron-fsdp", group
    if "fsdp" in told:
        half = "pure" in cells["precision"].casefold()  # gradients are reduced in two bytes
        if "grad_op" in told or stage == "2":
            return ("fsdp-half-resident" if half else "fsdp2-resident"), group
        return ("hsdp" if group else "fsdp-half" if half else "fsdp2"), group
    if "distributed optimizer" in told:
        # NeMo's recipes reduce gradients in two bytes (dgxc-benchmarking logs: 41.2 GiB between steps)
        half = "dgx cloud" in cells.get("source", "").casefold()
        return ("distributed-optimizer-bf16" if half else "distributed-optimizer"), group
    if framework == "deepspeed":
        name = f"zero{stage or '0'}"
        broadcasts = name == "zero1" and "internevo" in cells.get("source", "").casefold()
        return ("zero1-broadcast" if broadcasts else name), group
    if not told and not stage:
        return "distributed-optimizer", 0.0
    if stage in {"", "0"}:
        return (
            "ddp-half" if cells["precision"] == "fp16" else "ddp"
        ), group  # fp16 gradients were reduced as such
    return ("distributed-optimizer" if stage == "1" else "megatron-fsdp"), group
