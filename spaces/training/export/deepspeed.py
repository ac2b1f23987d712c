"""Plans as DeepSpeed configurations, with the scripts that start them.

The configuration has the batch, ZeRO, precision, recomputation and offloading; tensor, pipeline and sequence
parallelism are arguments of the training program, here Megatron-DeepSpeed's. The keys are in :mod:`names`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from dse.study.exports import Plan, Written

from .remarks import remark
from .shapes import Shape, cannot, cell, flag, text, whole

__all__ = ["STAGES", "launch_arguments", "write_deepspeed"]

_TARGET = "deepspeed"
STAGES = {"zero0": 0, "zero1": 1, "zero2": 2, "zero3": 3}
"""The stage of ZeRO by sharding."""

_HOST = 8


def write_deepspeed(plan: Plan) -> Written:
    """The configuration of a plan, and the script that starts it with the arguments of the training program.

    Raises:
        InputError: DeepSpeed cannot express the plan; names the dimension and its value.
    """
    shape = Shape.of(plan)
    _check(plan, shape)
    zero: dict[str, Any] = {
        "stage": STAGES[text(plan, "sharding", "zero0")],
        "overlap_comm": flag(plan, "overlap_dp"),
        "contiguous_gradients": True,
        "reduce_scatter": True,
    }
    if text(plan, "optimizer", "adam") == "adam-offload":
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    data: dict[str, Any] = {
        "train_batch_size": shape.global_batch,
        "train_micro_batch_size_per_gpu": shape.micro_batch,
        "gradient_accumulation_steps": shape.micro_batches,
        "zero_optimization": zero,
        text(plan, "format", "bf16"): {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
        "gradient_clipping": 1.0,
    }
    if text(plan, "recompute", "none") == "full":
        data["activation_checkpointing"] = {
            "partition_activations": False,
            "cpu_checkpointing": False,
            "contiguous_memory_optimization": False,
        }
    return Written(json.dumps(data, indent=2) + "\n", starter=lambda name: _script(plan, shape, name))


def _script(plan: Plan, shape: Shape, name: str) -> str:
    """The script that starts Megatron-DeepSpeed with the configuration ``name`` in the same folder."""
    each = min(_HOST, shape.n_gpus)
    while shape.n_gpus % each:
        each -= 1
    told = ("capacity_factor",) if text(plan, "dispatch", "dropless") == "capacity" else ()
    model, lacks = _model(plan.rows["model"], shape.seq_len)
    groups = {
        "MODEL": [*model, *([("", lacks)] if lacks else [])],
        "PLAN": launch_arguments(plan, shape),
        "DATA": [
            ("", "Put your own data, tokenizer, learning rate and checkpoints here."),
            ("train-iters", "20"),
        ],
    }
    lines = ["#!/bin/bash", *remark(plan, told=told)]
    for group, arguments in groups.items():
        lines += [f"{group}_ARGS=("]
        lines += [
            f"  # {value}" if not flag_ else f"  --{flag_} {value}".rstrip() for flag_, value in arguments
        ]
        lines += [")"]
    lines += [
        f"deepspeed --num_nodes {shape.n_gpus // each} --num_gpus {each} pretrain_gpt.py \\",
        '  "${MODEL_ARGS[@]}" "${PLAN_ARGS[@]}" "${DATA_ARGS[@]}" \\',
        f'  --deepspeed --deepspeed_config "$(dirname "$0")"/{shlex.quote(name)}',
    ]
    return "\n".join(lines) + "\n"


def _model(row: Mapping[str, object], seq_len: int) -> tuple[list[tuple[str, str]], str]:
    """Megatron-DeepSpeed's arguments for a model, and a comment on what else the model needs."""
    found = [
        ("num-layers", f"{cell(row, 'layers')}"),
        ("hidden-size", f"{cell(row, 'hidden')}"),
        ("ffn-hidden-size", f"{cell(row, 'expert_ffn') or cell(row, 'ffn')}"),
        ("num-attention-heads", f"{cell(row, 'heads')}"),
    ]
    if cell(row, "kv_heads") != cell(row, "heads"):
        found.append(("num-key-value-heads", f"{cell(row, 'kv_heads')}"))
    if cell(row, "head_dim") * cell(row, "heads") != cell(row, "hidden"):
        found.append(("kv-channels", f"{cell(row, 'head_dim')}"))
    found.append(
        ("max-position-embeddings", f"{max(cell(row, 'positions') or cell(row, 'context'), seq_len)}")
    )
    if not cell(row, "positions"):
        found += [("use-rotary-position-embeddings", ""), ("no-position-embedding", "")]
    if cell(row, "gated"):
        found.append(("swiglu", ""))
    if not cell(row, "layernorm"):
        found.append(("normalization", "rmsnorm"))
    if not cell(row, "out_bias"):
        found.append(("disable-bias-linear", ""))
    if not cell(row, "tied"):
        found.append(("untie-embeddings-and-output-weights", ""))
    if not cell(row, "dropout"):
        found += [("attention-dropout", "0"), ("hidden-dropout", "0")]
    parts = ("qk_norm", "mla", "sinks", "window", "shared_ffn", "embedding_norm")
    lacking = [f"{name}={cell(row, name)}" for name in parts if cell(row, name)]
    if cell(row, "qkv_bias") and not cell(row, "out_bias"):
        lacking.append("qkv_bias=1")
    if 0 < cell(row, "moe_layers") < cell(row, "layers"):
        lacking.append(f"moe_layers={cell(row, 'moe_layers')}")
    return found, f"Your training program must build besides: {' '.join(lacking)}" if lacking else ""


def launch_arguments(plan: Plan, shape: Shape) -> list[tuple[str, str]]:
    """What Megatron-DeepSpeed is told of a plan beside the configuration."""
    found = [
        ("tensor-model-parallel-size", f"{shape.tp}"),
        ("pipeline-model-parallel-size", f"{shape.pp}"),
        ("micro-batch-size", f"{shape.micro_batch}"),
        ("global-batch-size", f"{shape.global_batch}"),
        ("seq-length", f"{shape.seq_len}"),
        ("zero-stage", f"{STAGES[text(plan, 'sharding', 'zero0')]}"),
        (text(plan, "format", "bf16"), ""),
    ]
    if shape.cp > 1:
        found.append(("ds-sequence-parallel-size", f"{shape.cp}"))
    if shape.pp == 1:
        found.append(("no-pipeline-parallel", ""))
    if shape.sequence_parallel and shape.tp > 1:
        found.append(("sequence-parallel", ""))
    if shape.experts:
        found += _experts(plan, shape)
    match text(plan, "recompute", "none"):
        case "full":
            found += [
                ("deepspeed-activation-checkpointing", ""),
                ("recompute-granularity", "full"),
                ("recompute-method", "uniform"),
                ("recompute-num-layers", f"{whole(plan, 'recompute_block', 1)}"),
            ]
        case "attention":
            found.append(("recompute-granularity", "selective"))
    return found


def _experts(plan: Plan, shape: Shape) -> list[tuple[str, str]]:
    found = [
        ("num-experts", f"{shape.experts}"),
        ("topk", f"{cell(plan.rows['model'], 'top_k')}"),
        ("moe-expert-parallel-size", f"{shape.ep}"),
        ("create-moe-param-group", ""),
    ]
    if text(plan, "dispatch", "dropless") == "capacity":
        found.append(("moe-train-capacity-factor", f"{plan.inputs.get('capacity_factor', 1.0):.12g}"))
    else:
        found.append(("disable-moe-token-dropping", ""))
    if shape.etp > 1:
        found.append(("enable-expert-tensor-parallelism", ""))
    return found


def _check(plan: Plan, shape: Shape) -> None:
    for name, why in shape.faults():
        raise cannot(_TARGET, plan, name, why)
    for name, known, default in (
        ("sharding", tuple(STAGES), "zero0"),
        ("format", ("bf16", "fp16"), "bf16"),
        ("optimizer", ("adam", "adam-offload"), "adam"),
        ("recompute", ("none", "attention", "full"), "none"),
        ("placement", ("tp-cp-dp-pp",), "tp-cp-dp-pp"),
        ("edges", ("even",), "even"),
    ):
        if text(plan, name, default) not in known:
            raise cannot(_TARGET, plan, name, f"it knows {', '.join(known)}")
    stage = STAGES[text(plan, "sharding", "zero0")]
    if shape.pp > 1 and text(plan, "schedule", "1f1b") != "1f1b":
        raise cannot(_TARGET, plan, "schedule", "its pipeline runs 1f1b")
    if shape.pp > 1 and stage > 1:
        raise cannot(_TARGET, plan, "sharding", "with pipeline parallelism it runs ZeRO 0 and 1 only")
    if text(plan, "optimizer", "adam") == "adam-offload" and not stage:
        raise cannot(_TARGET, plan, "optimizer", "offloading needs ZeRO 1, 2 or 3")
    if shape.cp > 1 and text(plan, "cp_kind", "ring") != "ulysses":
        raise cannot(_TARGET, plan, "cp_kind", "its sequence parallelism is Ulysses")
    if shape.cp > 1 and shape.heads // shape.tp % shape.cp:
        raise cannot(
            _TARGET, plan, "cp", f"{shape.heads // shape.tp} heads on a rank are not divisible by it"
        )
    if shape.cp > 1 and shape.sequence_parallel:
        raise cannot(_TARGET, plan, "sequence_parallel", "it does not go with --ds-sequence-parallel-size")
    if flag(plan, "overlap_tp") and shape.tp > 1:
        raise cannot(_TARGET, plan, "overlap_tp", "it does not overlap tensor parallel traffic in training")
    if shape.experts and shape.pp > 1:
        raise cannot(_TARGET, plan, "pp", "experts run without pipeline parallelism")
