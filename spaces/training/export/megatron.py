"""Plans as launch lines of Megatron-LM.

The rules are those of ``megatron/training/arguments.py`` (the version is in :mod:`names`) and of
``megatron/core/transformer/transformer_config.py``.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from dse.study.exports import Plan, Written

from .architecture import model_flags
from .remarks import remark
from .rotary import details
from .shapes import Shape, cannot, cell, flag, text, whole

__all__ = ["ATTENTIONS", "recompute_modules", "write_megatron"]

_TARGET = "megatron"
_SHARDINGS = ("ddp", "distributed-optimizer", "megatron-fsdp")
_PLACEMENTS = ("tp-cp-dp-pp", "tp-cp-pp-dp")
ATTENTIONS = {"flash3": "fused", "flash": "flash", "unfused": "unfused"}
"""The values of ``--attention-backend`` by attention kernel: cuDNN's is the one that is always as fast as
FlashAttention-3, since ``flash`` runs version 2 where 3 is not installed."""

_GPUS_PER_HOST = 8


def recompute_modules(recompute: str, *, experts: bool, dense: bool) -> tuple[str, ...] | None:
    """The values of ``--recompute-modules`` for a kind of selective recomputation; None where there are none."""
    match recompute:
        case "attention":
            return ("core_attn",)
        case "selective" if experts:
            return ("core_attn", "layernorm", "moe_act")
        case "mlp":
            return (*(("mlp",) if dense else ()), *(("moe",) if experts else ()))
    return None


def write_megatron(plan: Plan) -> Written:
    """The script that starts ``pretrain_gpt.py`` with a plan.

    Raises:
        InputError: Megatron-LM cannot express the plan; names the dimension and its value.
    """
    shape = Shape.of(plan)
    _check(plan, shape)
    groups = {
        "MODEL": list(model_flags(plan.rows["model"], shape.seq_len)),
        "PARALLEL": [*_parallel(plan, shape), *_experts(plan, shape)],
        "TRAINING": [*_training(plan, shape), *_recompute(plan, shape)],
    }
    nodes, each = _nodes(plan, shape.n_gpus)
    lines = ["#!/bin/bash", *_remark(plan, shape)]
    known, open_ = details(plan.rows["model"])
    groups["MODEL"] += known
    if (shape.tp > 1 or shape.cp > 1) and text(plan, "sharding", "") != "megatron-fsdp":
        lines += [
            "# Tensor and context parallelism ask for this before Blackwell.",
            "export CUDA_DEVICE_MAX_CONNECTIONS=1",
        ]
    for name, flags in groups.items():
        lines += [f"{name}_ARGS=(", *(f"  {_argument(*pair)}" for pair in flags)]
        lines += [f"  # {open_}", ")"] if open_ and name == "MODEL" else [")"]
    lines += [
        "# Put your own data, tokenizer, learning rate and checkpoints here.",
        "DATA_ARGS=(--mock-data --tokenizer-type NullTokenizer --train-iters 20 --lr 1e-4)",
        f"torchrun --nnodes {nodes} --nproc-per-node {each} \\",
        '  --node-rank "${NODE_RANK:-0}" --master-addr "${MASTER_ADDR:-localhost}" --master-port "${MASTER_PORT:-29500}" \\',
        "  pretrain_gpt.py \\",
        '  "${MODEL_ARGS[@]}" "${PARALLEL_ARGS[@]}" "${TRAINING_ARGS[@]}" "${DATA_ARGS[@]}"',
    ]
    return Written("\n".join(lines) + "\n")


def _argument(name: str, value: str) -> str:
    if not value:
        return f"--{name}"
    return f"--{name} {' '.join(map(shlex.quote, value.split()))}"


def _nodes(plan: Plan, n_gpus: int) -> tuple[int, int]:
    """Hosts, and GPUs on each: those of the hardware, at most 8; a rack-scale domain has hosts of 4."""
    domain = (
        cell(plan.rows.get("cluster", {}), "node")
        or cell(plan.rows.get("hardware", {}), "node")
        or _GPUS_PER_HOST
    )
    host = domain if domain <= _GPUS_PER_HOST else 4
    each = math.gcd(n_gpus, host)
    return n_gpus // each, each


def _remark(plan: Plan, shape: Shape) -> list[str]:
    """What no argument tells, in a comment that ``dse explain --plan`` reads."""
    told = []
    if text(plan, "attention", "flash") != "flash":
        told.append("attention")
    if text(plan, "dispatch", "dropless") == "capacity":
        told.append("capacity_factor")
    untold = []
    if shape.tp == 1:
        untold = [name for name in ("expert_tp", "overlap_tp", "sequence_parallel") if flag(plan, name)]
    return remark(plan, told=told, untold=untold)


def _check(plan: Plan, shape: Shape) -> None:
    """Makes sure that the framework can run the plan.

    Raises:
        InputError: it cannot.
    """
    for name, why in shape.faults():
        raise cannot(_TARGET, plan, name, why)
    learned = cell(plan.rows["model"], "positions")
    if 0 < learned < shape.seq_len:
        raise cannot(_TARGET, plan, "seq_len", f"the model has {learned} learned positions")
    schedule = text(plan, "schedule", "1f1b")
    if shape.pp > 1 and schedule not in ("1f1b", "interleaved"):
        raise cannot(_TARGET, plan, "schedule", "Megatron-LM runs 1f1b and interleaved")
    if schedule == "1f1b" and shape.chunks > 1:
        raise cannot(_TARGET, plan, "chunks", "only the interleaved schedule has several")
    for name, known, default in (
        ("sharding", _SHARDINGS, "ddp"),
        ("placement", _PLACEMENTS, "tp-cp-dp-pp"),
        ("format", ("bf16", "fp16", "fp8", "mxfp8", "nvfp4"), "bf16"),
        ("optimizer", ("adam", "adam-offload"), "adam"),
        ("cp_kind", ("ring", "ulysses"), "ring"),
    ):
        if text(plan, name, default) not in known:
            raise cannot(_TARGET, plan, name, f"it knows {', '.join(known)}")
    sharding = text(plan, "sharding", "ddp")
    if text(plan, "optimizer", "adam") == "adam-offload" and sharding != "distributed-optimizer":
        raise cannot(_TARGET, plan, "optimizer", "offloading needs sharding=distributed-optimizer")
    if flag(plan, "overlap_tp") and shape.tp > 1 and not shape.sequence_parallel:
        raise cannot(
            _TARGET, plan, "overlap_tp", "overlapping tensor parallel traffic needs sequence_parallel=true"
        )
    if shape.experts and shape.tp > 1 and not shape.sequence_parallel:
        raise cannot(_TARGET, plan, "sequence_parallel", "experts with tensor parallelism need it")
    if text(plan, "cp_kind", "ring") == "ulysses" and shape.cp > 1 and shape.heads // shape.tp % shape.cp:
        raise cannot(
            _TARGET,
            plan,
            "cp",
            f"{shape.heads // shape.tp} heads on a rank are not divisible by {shape.cp}, as Ulysses asks",
        )
    if text(plan, "format", "bf16") == "fp16" and shape.ep > 1:
        raise cannot(_TARGET, plan, "format", "expert parallelism does not run in fp16")


def _parallel(plan: Plan, shape: Shape) -> Iterator[tuple[str, str]]:
    yield "tensor-model-parallel-size", f"{shape.tp}"
    if shape.sequence_parallel and shape.tp > 1:
        yield "sequence-parallel", ""
    if flag(plan, "overlap_tp") and shape.tp > 1:
        yield "tp-comm-overlap", ""
    yield "pipeline-model-parallel-size", f"{shape.pp}"
    if shape.chunks > 1:
        yield "num-virtual-stages-per-pipeline-rank", f"{shape.chunks}"
        if shape.group != shape.pp:
            yield "microbatch-group-size-per-virtual-pipeline-stage", f"{shape.group}"
    if shape.embedding:
        yield "account-for-embedding-in-pipeline-split", ""
    if shape.loss:
        yield "account-for-loss-in-pipeline-split", ""
    yield "context-parallel-size", f"{shape.cp}"
    if shape.cp > 1:
        yield "cp-comm-type", "a2a" if text(plan, "cp_kind", "ring") == "ulysses" else "p2p"
    if text(plan, "placement", "tp-cp-dp-pp") == "tp-cp-pp-dp":
        yield "use-tp-pp-dp-mapping", ""
    sharding = text(plan, "sharding", "ddp")
    if sharding == "distributed-optimizer":
        yield "use-distributed-optimizer", ""
    elif sharding == "megatron-fsdp":
        yield "use-megatron-fsdp", ""
        yield "data-parallel-sharding-strategy", "optim_grads_params"
        yield "ckpt-format", "fsdp_dtensor"
    if flag(plan, "overlap_dp"):
        yield "overlap-grad-reduce", ""
        if sharding != "ddp":
            yield "overlap-param-gather", ""


def _experts(plan: Plan, shape: Shape) -> Iterator[tuple[str, str]]:
    if not shape.experts:
        return
    yield "expert-model-parallel-size", f"{shape.ep}"
    yield "expert-tensor-parallel-size", f"{shape.etp}"
    if text(plan, "dispatch", "dropless") == "capacity":
        factor = plan.inputs.get("capacity_factor", 1.0)
        yield "moe-expert-capacity-factor", f"{factor:.12g}"
        yield "moe-pad-expert-input-to-capacity", ""


def _training(plan: Plan, shape: Shape) -> Iterator[tuple[str, str]]:
    yield "seq-length", f"{shape.seq_len}"
    yield "micro-batch-size", f"{shape.micro_batch}"
    yield "global-batch-size", f"{shape.global_batch}"
    match text(plan, "format", "bf16"):
        case "fp16":
            yield "fp16", ""
        case "fp8":
            yield from (("bf16", ""), ("fp8-format", "hybrid"))
        case "mxfp8":
            yield from (("bf16", ""), ("fp8-format", "e4m3"), ("fp8-recipe", "mxfp8"))
        case "nvfp4":
            yield from (("bf16", ""), ("fp4-format", "e2m1"))
        case _:
            yield "bf16", ""
    if backend := ATTENTIONS.get(text(plan, "attention", "")):
        yield "attention-backend", backend
    yield "optimizer", "adam"
    if text(plan, "optimizer", "adam") == "adam-offload":
        yield "optimizer-cpu-offload", ""
        yield "use-precision-aware-optimizer", ""


def _recompute(plan: Plan, shape: Shape) -> Iterator[tuple[str, str]]:
    recompute = text(plan, "recompute", "none")
    if recompute == "none":
        return
    if recompute == "full":
        yield "recompute-granularity", "full"
        yield "recompute-method", "uniform"
        yield "recompute-num-layers", f"{whole(plan, 'recompute_block', 1)}"
        return
    dense = cell(plan.rows["model"], "moe_layers") < shape.layers
    modules = recompute_modules(recompute, experts=bool(shape.experts), dense=dense)
    if modules is None:
        why = (
            "the activation function is recomputed in layers of experts only"
            if recompute == "selective"
            else "unknown"
        )
        raise cannot(_TARGET, plan, "recompute", why)
    yield "recompute-granularity", "selective"
    yield "recompute-modules", " ".join(modules)
