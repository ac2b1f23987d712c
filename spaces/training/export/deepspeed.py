"""Plans as DeepSpeed configurations, and back.

The configuration has the batch, ZeRO, precision, recomputation and offloading; tensor, pipeline and sequence
parallelism are arguments of the training program, here Megatron-DeepSpeed's. The keys are in :mod:`names`.
"""

from __future__ import annotations

import json
from typing import Any

from dse.errors import InputError, nearest
from dse.problem import Problem
from dse.study.exports import KnownPlan, Plan, Written

from .names import DEEPSPEED
from .plain import load_json
from .shapes import Shape, cannot, cell, flag, predicted_format, text, whole

__all__ = ["launch_arguments", "read_deepspeed", "write_deepspeed"]

_TARGET = "deepspeed"
_STAGES = {"zero0": 0, "zero1": 1, "zero2": 2, "zero3": 3}
_HOST = 8


def write_deepspeed(plan: Plan) -> Written:
    """The configuration of a plan; the remark has the arguments of the training program.

    Raises:
        InputError: DeepSpeed cannot express the plan; names the dimension and its value.
    """
    shape = Shape.of(plan)
    _check(plan, shape)
    zero: dict[str, Any] = {
        "stage": _STAGES[text(plan, "sharding", "zero0")],
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
    each = min(_HOST, shape.n_gpus)
    while shape.n_gpus % each:
        each -= 1
    arguments = " ".join(f"--{name} {value}".rstrip() for name, value in launch_arguments(plan, shape))
    launch = (
        f"deepspeed --num_nodes {shape.n_gpus // each} --num_gpus {each} pretrain_gpt.py {arguments} "
        "--deepspeed --deepspeed_config ds_config.json"
    )
    return Written(
        json.dumps(data, indent=2) + "\n",
        (
            f"save it as ds_config.json and start Megatron-DeepSpeed with your model's arguments and: {launch}",
        ),
    )


def launch_arguments(plan: Plan, shape: Shape) -> list[tuple[str, str]]:
    """What Megatron-DeepSpeed is told of a plan beside the configuration."""
    found = [
        ("tensor-model-parallel-size", f"{shape.tp}"),
        ("pipeline-model-parallel-size", f"{shape.pp}"),
        ("micro-batch-size", f"{shape.micro_batch}"),
        ("global-batch-size", f"{shape.global_batch}"),
        ("seq-length", f"{shape.seq_len}"),
        ("zero-stage", f"{_STAGES[text(plan, 'sharding', 'zero0')]}"),
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
        ("sharding", tuple(_STAGES), "zero0"),
        ("format", ("bf16", "fp16"), "bf16"),
        ("optimizer", ("adam", "adam-offload"), "adam"),
        ("recompute", ("none", "attention", "full"), "none"),
        ("placement", ("tp-cp-dp-pp",), "tp-cp-dp-pp"),
        ("edges", ("even",), "even"),
    ):
        if text(plan, name, default) not in known:
            raise cannot(_TARGET, plan, name, f"it knows {', '.join(known)}")
    stage = _STAGES[text(plan, "sharding", "zero0")]
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


# -- back --------------------------------------------------------------------------------------------


def read_deepspeed(content: str, file: str, problem: Problem) -> KnownPlan:
    """The plan in a configuration; what it does not say has to be given beside it.

    Raises:
        InputError: it is damaged, leaves the batch open, or contradicts itself.
    """
    data = load_json(content, file)
    if not any(
        key in data for key in ("train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization")
    ):
        raise InputError(
            f"{file}: expected a plan in JSON or a DeepSpeed configuration, but found {_keys(data)}"
        )
    ignored = []
    for key in data:
        if key not in DEEPSPEED[""]:
            hint = nearest(key, DEEPSPEED[""])
            if hint.startswith("; did you mean"):
                raise InputError(f"{file}: DeepSpeed has no key {key!r}{hint}")
            ignored.append(key)
    micro, steps = (
        _count(data, key, file) for key in ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    )
    batch = _count(data, "train_batch_size", file)
    if micro is None:
        raise InputError(f"{file}: 'train_micro_batch_size_per_gpu' is missing")
    tp = _count(_section(data, "tensor_parallel", file), "autotp_size", file) or 1
    inputs = {"framework": "deepspeed"}
    notes: list[str] = []
    if batch is not None:
        inputs["global_batch"] = f"{batch}"
        if steps is not None:
            if batch % (micro * steps):
                raise InputError(
                    f"{file}: train_batch_size {batch} contradicts {micro} x {steps} = micro-batch x accumulation steps"
                )
            inputs["n_gpus"] = f"{batch // (micro * steps) * tp}"
            notes.append(
                "GPUs are counted without pipeline and sequence parallelism; else add --set n_gpus=N"
            )
    zero = _section(data, "zero_optimization", file)
    stage = _count(zero, "stage", file) if "stage" in zero else 0
    if stage not in _STAGES.values():
        raise InputError(f"{file}: zero_optimization.stage is {stage}, expected 0, 1, 2 or 3")
    if zero.get("offload_param"):
        raise InputError(
            f"{file}: zero_optimization.offload_param changes the cost, and the cost model does not know it"
        )
    half = [name for name in ("bf16", "fp16") if _section(data, name, file).get("enabled") is True]
    if len(half) != 1:
        raise InputError(
            f"{file}: expected one of bf16 and fp16 enabled, but found {' and '.join(half) or 'none'}"
        )
    precision, told = predicted_format(problem, half[0])
    notes += told
    inputs["precision"] = precision
    design = {
        "tp": f"{tp}",
        "sequence_parallel": "false",
        "pp": "1",
        "schedule": "1f1b",
        "chunks": "1",
        "cp": "1",
        "cp_kind": "ring",
        "ep": f"{_count(_section(data, 'expert_parallel', file), 'autoep_size', file) or 1}",
        "expert_tp": "false",
        "dispatch": "dropless",
        "micro_batch": f"{micro}",
        "sharding": f"zero{stage}",
        "shard_group": "0",
        "recompute": "full" if "activation_checkpointing" in data else "none",
        "recompute_block": "1",
        "format": precision,
        "optimizer": "adam-offload" if zero.get("offload_optimizer") else "adam",
        "placement": "tp-cp-dp-pp",
        "overlap_dp": "true" if zero.get("overlap_comm") is True else "false",
        "overlap_tp": "false",
        "edges": "even",
    }
    known = {name: value for name, value in design.items() if name in problem.names}
    return KnownPlan(
        {name: value for name, value in inputs.items() if name in problem.inputs},
        known,
        {name: f"{file}: {name}={value}" for name, value in {**inputs, **known}.items()},
        tuple(ignored),
        tuple(notes),
        needs=tuple(
            name
            for name in ("model", "seq_len", "n_gpus", "global_batch")
            if name in problem.inputs and name not in inputs
        ),
        assumed=tuple(name for name in ("hardware",) if name in problem.inputs),
    )


def _keys(data: dict[str, Any]) -> str:
    return f"the keys {', '.join(list(data)[:5])}" if data else "nothing"


def _section(data: dict[str, Any], name: str, file: str) -> dict[str, Any]:
    found = data.get(name, {})
    if not isinstance(found, dict):
        raise InputError(f"{file}: {name!r} must be an object, but is {found!r}")
    return found


def _count(data: dict[str, Any], key: str, file: str) -> int | None:
    value = data.get(key)
    if value is None:
        return None
    if value == "auto":
        raise InputError(f"{file}: {key!r} is 'auto', which the training program fills in; write the number")
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not 0 <= value < 10**12
        or (not value and key != "stage")
    ):
        raise InputError(f"{file}: {key!r} must be a whole number above 0, but is {value!r}")
    return value
