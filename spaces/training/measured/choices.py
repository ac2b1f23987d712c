"""What the words of a measured run's row say of its plan: framework, sharding, formats, what overlaps.

Every rule looks at what a row states, never at what its source is called, but for :data:`SOURCES` and
:data:`TWO_BYTE_GRADIENTS`: published sources, by their whole name, of which no column says what they ran. An optional
column (``framework``, ``overlap_dp``, ``overlap_tp``, ``attention``, ``schedule``, ``placement``, ``edges``) always has the last
word. A word that is none of those known is no choice: the row is skipped, and the reason names the known ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

__all__ = [
    "FRAMEWORKS", "Unknown", "attention_of", "flag_of", "formats_of", "framework_of", "known_of_source", "named", "overlaps_dp",
    "recomputes_of", "runtime_of", "sharding_of",
]  # fmt: skip


class Unknown(Exception):
    """Why a row's words cannot be read."""


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

FRAMEWORKS = {
    "megatron": "megatron", "megatron-lm": "megatron", "megatron-core": "megatron", "megatron-bridge": "megatron",
    "nemo": "megatron", "megatron-unfused": "megatron-unfused", "deepspeed": "deepspeed",
    "megatron-deepspeed": "deepspeed", "torchtitan": "torchtitan", "pytorch": "torchtitan", "fsdp": "fsdp",
    "llm-foundry": "fsdp", "litgpt": "fsdp", "internevo": "internevo",
}  # fmt: skip
"""What the column ``framework`` may say, and the row of ``frameworks.csv`` that it is."""

PLANS = {"fsdp": "torchtitan", "internevo": "deepspeed", "megatron-unfused": "megatron"}
"""Whose plans a framework has, where not its own."""

SOURCES = {
    "internevo training performance": "internevo",
    "internevo gpu memory test": "internevo",
    "mosaicml llm-foundry benchmarks": "fsdp",
    "litgpt resource tables": "fsdp",
}
"""Published sources that name no framework, and what they ran."""

TWO_BYTE_GRADIENTS = "nvidia dgx cloud benchmarking recipes"
"""A source whose distributed optimizer reduces gradients in two bytes (its logs: 41.2 GiB between steps); elsewhere
``sharding`` says ``distributed-optimizer-bf16``."""

SHARDINGS = {
    "none": "ddp", "noshard": "ddp", "ddp": "ddp", "megatronlm": "ddp", "ddphalf": "ddp-half",
    "ddpmegatrondeepspeed": "zero0", "distributedoptimizer": "distributed-optimizer",
    "ddpdistributedoptimizer": "distributed-optimizer", "distributedoptimizerbf16": "distributed-optimizer-bf16",
    "megatronfsdp": "megatron-fsdp", "fsdp": "fsdp2", "fsdp1": "fsdp2", "fsdp2": "fsdp2", "fullshard": "fsdp2",
    "fsdpfullshard": "fsdp2", "fsdp2resident": "fsdp2-resident", "shardgradop": "fsdp2-resident",
    "fsdpshardgradop": "fsdp2-resident", "hsdp": "hsdp", "hybridshard": "hsdp", "fsdphybridshard": "hsdp",
    "fsdphalf": "fsdp-half", "fsdphalfresident": "fsdp-half-resident", "zero1broadcast": "zero1-broadcast",
    "deepspeed3dzero1": "zero1", **{f"{made}zero{stage}": f"zero{stage}" for stage in range(4) for made in ("", "deepspeed")},
}  # fmt: skip
"""Words of the column ``sharding``, letters and digits alone, and the row of ``shardings.csv`` that they are."""

KNOWN_SHARDINGS = (
    "ddp", "distributed-optimizer", "megatron-fsdp", "zero0", "zero1", "zero2", "zero3", "fsdp2", "fsdp2-resident", "hsdp",
)  # fmt: skip

STAGES = {
    "ddp": "0", "ddp-half": "0", "zero0": "0", "zero1": "1", "zero1-broadcast": "1", "distributed-optimizer": "1",
    "distributed-optimizer-bf16": "1", "zero2": "2", "fsdp2-resident": "2", "fsdp-half-resident": "2", "zero3": "3",
    "fsdp2": "3", "fsdp-half": "3", "hsdp": "3", "megatron-fsdp": "3",
}  # fmt: skip
"""The ZeRO stage of each sharding."""

BY_STAGE = {
    "megatron": {
        "": "distributed-optimizer",
        "0": "ddp",
        "1": "distributed-optimizer",
        "3": "megatron-fsdp",
    },
    "deepspeed": {"": "zero1", "0": "zero0", "1": "zero1", "2": "zero2", "3": "zero3"},
    "torchtitan": {"": "fsdp2", "0": "ddp", "2": "fsdp2-resident", "3": "fsdp2"},
}
"""What is meant where only ``zero_stage`` speaks, or neither (which is told)."""

YES, NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")


def flag_of(cells: Mapping[str, str], name: str) -> bool | None:
    """Yes, no, or None where a column says nothing.

    Raises:
        Unknown: it says something else.
    """
    told = cells.get(name, "").casefold()
    if not told:
        return None
    if told not in (*YES, *NO):
        raise Unknown(f"{name} {cells[name]!r} is neither yes nor no")
    return told in YES


def named(cells: Mapping[str, str], name: str, known: Iterable[str]) -> str:
    """The choice that an optional column names, or "" where it says nothing.

    Raises:
        Unknown: it is none of the known ones.
    """
    told = cells.get(name, "").casefold()
    if told and told not in (choices := tuple(known)):
        raise Unknown(_none_of(name, cells[name], choices))
    return told


def _none_of(what: str, told: str, known: Iterable[str]) -> str:
    *most, last = known
    return f"{what} {told!r} is none of {', '.join(most)} and {last}"


def formats_of(precision: str) -> tuple[str, ...]:
    """The space's name of a number format; two where a cell says ``unspecified (bf16 or fp8)``.

    Raises:
        Unknown: it is none of the space's.
    """
    folded = precision.strip().casefold()
    if either := re.fullmatch(r"unspecified \((\w+) or (\w+)\)", folded):
        words = list(either.groups())
    else:
        words = [folded if folded in FORMATS else folded.partition(" ")[0]]
    if any(word not in FORMATS for word in words):
        raise Unknown(_none_of("precision", precision, dict.fromkeys(FORMATS.values())))
    return tuple(FORMATS[word] for word in words)


def recomputes_of(cells: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """What may be recomputed, and what that leaves open.

    Raises:
        Unknown: it is none of the known words.
    """
    told = cells.get("recompute", "").casefold()
    if told in {"", "unspecified"}:
        return ("none", "full"), "recomputation"
    if "recompute" in (note := cells.get("notes", "")) and "are assumptions" in note:
        return ("none", "full"), "recomputation"
    if told not in RECOMPUTES:
        raise Unknown(_none_of("recompute", cells["recompute"], RECOMPUTES))
    return (RECOMPUTES[told],), ""


def runtime_of(cells: Mapping[str, str]) -> str:
    """The row of ``frameworks.csv`` that a run belongs to: what its framework keeps and which kernels it has.

    The column ``framework``, else the source where it is one of :data:`SOURCES`, else what the sharding belongs to.

    Raises:
        Unknown: ``framework`` or ``sharding`` is none of the known words.
    """
    if told := named(cells, "framework", FRAMEWORKS):
        return FRAMEWORKS[told]
    if source := SOURCES.get(cells.get("source", "").strip().casefold()):
        return source
    word = _sharding_word(cells)
    if word.startswith("zero"):
        return "internevo" if word == "zero1-broadcast" else "deepspeed"
    return "torchtitan" if word.startswith(("fsdp", "hsdp")) else "megatron"


def framework_of(cells: Mapping[str, str]) -> str:
    """``megatron``, ``deepspeed`` or ``torchtitan`` (PyTorch's own FSDP): whose plans a run has.

    Raises:
        Unknown: as :func:`runtime_of`.
    """
    runtime = runtime_of(cells)
    return PLANS.get(runtime, runtime)


def known_of_source(cells: Mapping[str, str], sharding: str) -> dict[str, str]:
    """What of a run is known from the whole name of a published source alone; it is told as what is assumed."""
    source = cells.get("source", "").strip().casefold()
    found = {"framework": SOURCES[source]} if source in SOURCES and not cells.get("framework") else {}
    if source == TWO_BYTE_GRADIENTS and sharding == "distributed-optimizer-bf16":
        found["gradients"] = "2 bytes"
    return found


def _sharding_word(cells: Mapping[str, str]) -> str:
    """The sharding that the column names, before framework and format refine it; "" where it says nothing."""
    told = cells.get("sharding", "").casefold()
    if not told or told.startswith("see "):
        return ""
    plain = re.sub(r"group=\d+|over (\d+|all dp|all) ranks|\ball dp\b", "", told)
    word = re.sub(r"[^a-z0-9]+", "", plain)
    if word not in SHARDINGS:
        raise Unknown(_none_of("sharding", cells["sharding"], KNOWN_SHARDINGS))
    return SHARDINGS[word]


def sharding_of(cells: Mapping[str, str], ranks: float) -> tuple[str, float, bool]:
    """The sharding row of the space, the ranks that share one copy of the states (0: all), and whether it is stated.

    Raises:
        Unknown: it is none of the known words, or its stage is another than ``zero_stage``.
    """
    runtime, family, word = runtime_of(cells), framework_of(cells), _sharding_word(cells)
    stage = cells.get("zero_stage", "").partition(".")[0]
    found = re.search(r"group=(\d+)|over (\d+) ranks", cells.get("sharding", "").casefold())
    group = float(found.group(1) or found.group(2)) if found else 0.0
    group = group if 0 < group < ranks else 0.0
    name = word or BY_STAGE[family].get(stage, "")
    if not name:
        raise Unknown(f"zero_stage {stage} is none of {family}'s")
    if word == "ddp" and stage == "1" and family == "megatron":
        name = "distributed-optimizer"
    elif word == "fsdp2" and stage == "2":
        name = "fsdp2-resident"
    if stage and stage != STAGES[name]:
        raise Unknown(
            f"sharding {cells['sharding']!r} is ZeRO stage {STAGES[name]}, but zero_stage is {stage}"
        )
    return _refined(cells, runtime, name, group), group, bool(word or stage)


def _refined(cells: Mapping[str, str], runtime: str, name: str, group: float) -> str:
    """What framework, number format and group make of a sharding."""
    family, precision = PLANS.get(runtime, runtime), cells.get("precision", "").casefold()
    if name in {"fsdp2", "hsdp", "fsdp2-resident"}:
        if family == "megatron":
            return "megatron-fsdp"
        if "pure" in precision:  # gradients are reduced in two bytes
            return "fsdp-half-resident" if name == "fsdp2-resident" else "fsdp-half"
        return "hsdp" if name == "fsdp2" and group else name
    if name == "ddp":
        if family == "deepspeed":
            return "zero0"
        return "ddp-half" if precision == "fp16" else "ddp"  # gradients of fp16 were reduced as such
    if name == "zero1" and runtime == "internevo":
        return "zero1-broadcast"
    if name == "distributed-optimizer" and cells.get("source", "").strip().casefold() == TWO_BYTE_GRADIENTS:
        return "distributed-optimizer-bf16"
    return name


def overlaps_dp(sharding: str) -> bool:
    """Whether gradients and weights are sent while computing, where a row does not say.

    Megatron's distributed optimizer (as recipes use it), every FSDP, and InternEvo's ZeRO-1 overlap. Plain DDP of Megatron
    does not, nor does DeepSpeed's ZeRO: what the published runs agree with, though DeepSpeed can.
    """
    return sharding.startswith(("distributed-optimizer", "megatron-fsdp", "fsdp", "hsdp", "zero1-broadcast"))


def attention_of(cells: Mapping[str, str]) -> tuple[str, bool]:
    """The attention kernel, and whether it is stated.

    ``unfused`` keeps s x s scores, ``flash`` is FlashAttention-2, ``flash3`` later ones and cuDNN's. Without a column, the
    notes may tell; else runs in fp16 had none, InternEvo has FlashAttention-2, and others take the fastest.

    Raises:
        Unknown: the column ``attention`` names none of them.
    """
    if told := named(cells, "attention", ("flash3", "flash", "unfused")):
        return told, True
    notes = cells.get("notes", "").casefold()
    if "flash" in notes:
        return "flash", True
    if "attention-backend=unfused" in notes or "impl=local" in notes:
        return "unfused", True
    if cells.get("precision", "").casefold() == "fp16":
        return "unfused", False
    return ("flash" if runtime_of(cells) == "internevo" else "flash3"), False
