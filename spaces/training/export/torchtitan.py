"""Plans as job configurations of torchtitan, and back. The keys are in :mod:`names`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dse.errors import InputError, nearest
from dse.problem import Problem
from dse.spaces.remarks import one_line, read_remark
from dse.study.exports import KnownPlan, Plan, Written, row_of

from .flavors import find_flavor, flavor_of, unbuildable
from .models import model_row
from .names import TORCHTITAN
from .remarks import remark
from .shapes import Shape, cannot, cell, flag, text, whole

__all__ = ["read_torchtitan", "write_torchtitan"]

_TARGET = "torchtitan"
_SCHEDULES = {"gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "Interleaved1F1B"}
_RECOMPUTES = {"none": "none", "selective": "selective", "full": "full"}
_SHARDINGS = ("ddp", "fsdp2", "fsdp2-resident", "hsdp")


def write_torchtitan(plan: Plan) -> Written:
    """The job configuration of a plan, in TOML.

    Raises:
        InputError: torchtitan cannot express the plan; names the dimension and its value.
    """
    shape = Shape.of(plan)
    _check(plan, shape)
    found = find_flavor(plan.rows["model"], plan.texts.get("model", ""))
    notes = (
        [f"register the flavor {found.flavor!r} of {found.name}; comments have its sizes"]
        if found.comments
        else []
    )
    if shape.pp > 1 and found.name in ("qwen3", "gpt_oss"):
        notes.append(f"older versions of torchtitan run {found.name} without pipeline parallelism")
    eight = text(plan, "format", "bf16") == "fp8"
    overlaps = flag(plan, "overlap_tp") and shape.tp > 1
    replicate, shard = _data_parallel(plan, shape)
    sharding = text(plan, "sharding", "fsdp2")
    config: dict[str, dict[str, Any]] = {
        "model": {
            "name": found.name,
            "flavor": found.flavor,
            **({"converters": ["float8"]} if eight else {}),
        },
        "optimizer": {"name": "AdamW"},
        "training": {
            "local_batch_size": shape.global_batch // shape.dp if shape.pp > 1 else shape.micro_batch,
            "global_batch_size": shape.global_batch,
            "seq_len": shape.seq_len,
            "mixed_precision_param": "bfloat16",
            "mixed_precision_reduce": "float32",
            "enable_cpu_offload": text(plan, "optimizer", "adam") == "adam-offload",
            "compile": overlaps or eight,
        },
        "parallelism": {
            "data_parallel_replicate_degree": replicate,
            "data_parallel_shard_degree": shard,
            "fsdp_reshard_after_forward": "never" if sharding == "fsdp2-resident" else "always",
            "tensor_parallel_degree": shape.tp,
            "enable_async_tensor_parallel": overlaps,
            "pipeline_parallel_degree": shape.pp,
            "context_parallel_degree": shape.cp,
            "expert_parallel_degree": shape.ep,
        },
        "activation_checkpoint": {"mode": _RECOMPUTES[text(plan, "recompute", "none")]},
    }
    if shape.cp > 1:
        config["parallelism"]["context_parallel_rotate_method"] = "alltoall"
    if shape.pp > 1:
        units = shape.layers + shape.embedding + shape.loss
        config["parallelism"] |= {
            "pipeline_parallel_schedule": _SCHEDULES[text(plan, "schedule", "1f1b")],
            "pipeline_parallel_microbatch_size": shape.micro_batch,
            "pipeline_parallel_layers_per_stage": units // (shape.pp * shape.chunks),
            "pipeline_parallel_first_stage_less_layers": shape.embedding,
            "pipeline_parallel_last_stage_less_layers": shape.loss,
        }
    if config["activation_checkpoint"]["mode"] == "selective":
        config["activation_checkpoint"]["selective_ac_option"] = "op"
        notes.append(
            "recomputation of single operators keeps the output of attention, so it recomputes a little less"
        )
    if eight:
        config["float8"] = {"recipe_name": "tensorwise", "enable_fsdp_float8_all_gather": sharding != "ddp"}
    comments = [
        one_line(
            f"# {plan.texts.get('model', found.name)} on {shape.n_gpus} GPUs: torchrun ... torchtitan/train.py --job.config_file THIS"
        ),
        *remark(plan),
        *(one_line(f"# {line}") for line in found.comments),
    ]
    return Written("\n".join(comments) + "\n" + _toml(config), tuple(notes))


def _toml(config: Mapping[str, Mapping[str, Any]]) -> str:
    """Sections of flags, whole numbers, texts and lists of texts as TOML, which writes these like JSON."""
    lines: list[str] = []
    for section, values in config.items():
        lines += ["", f"[{section}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def _data_parallel(plan: Plan, shape: Shape) -> tuple[int, int]:
    """Replicas, and ranks that a replica is divided over; context parallel ranks divide it further."""
    match text(plan, "sharding", "fsdp2"):
        case "ddp":
            return shape.dp, 1
        case "hsdp":
            group = whole(plan, "shard_group", 0)
            if group < 1 or group % shape.cp or shape.dp * shape.cp % group:
                raise cannot(
                    _TARGET,
                    plan,
                    "shard_group",
                    f"it must be a multiple of cp and divide the {shape.dp * shape.cp} ranks",
                )
            return shape.dp * shape.cp // group, group // shape.cp
    return 1, shape.dp


def _check(plan: Plan, shape: Shape) -> None:
    for name, why in shape.faults():
        raise cannot(_TARGET, plan, name, why)
    if why := unbuildable(plan.rows["model"]):
        raise cannot(_TARGET, plan, "model", why)
    for name, known, default in (
        ("sharding", _SHARDINGS, "fsdp2"),
        ("format", ("bf16", "fp8"), "bf16"),
        ("optimizer", ("adam", "adam-offload"), "adam"),
        ("recompute", tuple(_RECOMPUTES), "none"),
        ("placement", ("tp-cp-dp-pp",), "tp-cp-dp-pp"),
        ("dispatch", ("dropless",), "dropless"),
    ):
        if text(plan, name, default) not in known:
            raise cannot(_TARGET, plan, name, f"it knows {', '.join(known)}")
    sharding = text(plan, "sharding", "fsdp2")
    if shape.pp > 1 and text(plan, "schedule", "1f1b") not in _SCHEDULES:
        raise cannot(_TARGET, plan, "schedule", f"it knows {', '.join(_SCHEDULES)}")
    if shape.tp > 1 and not shape.sequence_parallel:
        raise cannot(
            _TARGET, plan, "sequence_parallel", "its tensor parallelism always divides the sequence too"
        )
    if shape.cp > 1 and text(plan, "cp_kind", "ring") != "ring":
        raise cannot(_TARGET, plan, "cp_kind", "it passes keys and values round, as ring does")
    if not flag(plan, "overlap_dp") and shape.dp * shape.cp > 1:
        raise cannot(_TARGET, plan, "overlap_dp", "it always overlaps data parallel traffic")
    if text(plan, "optimizer", "adam") == "adam-offload" and sharding == "ddp":
        raise cannot(_TARGET, plan, "optimizer", "offloading needs FSDP")
    if sharding == "ddp" and shape.tp * shape.pp * shape.cp > 1:
        raise cannot(_TARGET, plan, "sharding", "plain data parallelism does not go with other kinds")
    if text(plan, "recompute", "none") == "full" and whole(plan, "recompute_block", 1) != 1:
        raise cannot(_TARGET, plan, "recompute_block", "it recomputes each layer by itself")
    _check_sizes(plan, shape)


def _check_sizes(plan: Plan, shape: Shape) -> None:
    divisor = shape.tp * (2 * shape.cp if shape.cp > 1 else 1)
    if shape.seq_len % divisor:
        raise cannot(_TARGET, plan, "seq_len", f"it is not divisible by tp x 2 x cp = {divisor}")
    if shape.ep > 1:
        _, shard = _data_parallel(plan, shape)
        if shape.ep % shape.cp or shard * shape.cp % shape.ep:
            raise cannot(
                _TARGET,
                plan,
                "ep",
                f"it must be a multiple of cp and divide the {shard * shape.cp} sharded ranks",
            )
    if shape.experts and shape.tp > 1 and shape.etp == 1:
        raise cannot(_TARGET, plan, "expert_tp", "it divides experts over the tensor parallel group too")


# -- back --------------------------------------------------------------------------------------------


def read_torchtitan(content: str, file: str, problem: Problem) -> KnownPlan:
    """The plan in a job configuration.

    Raises:
        InputError: it is damaged, or has what the space does not.
    """
    try:
        data = tomllib.loads(content)
    except RecursionError:
        raise InputError(f"{file}: this TOML is nested too deep to be read") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: this is no TOML: {error}") from None
    read = _Config(data, file)
    if not any(section in data for section in ("parallelism", "training")):
        raise InputError(
            f"{file}: expected sections such as [parallelism] and [training], but found {', '.join(data)}"
        )
    tp, pp, cp = (read.count(f"{kind}_parallel_degree") for kind in ("tensor", "pipeline", "context"))
    replicate = read.count("data_parallel_replicate_degree")
    shard = read.get("parallelism", "data_parallel_shard_degree", -1)
    inputs: dict[str, str] = {
        "framework": "torchtitan",
        "seq_len": f"{read.count('seq_len', 'training', 2048)}",
    }
    notes: list[str] = []
    local = read.count("local_batch_size", "training", 8)
    batch = read.get("training", "global_batch_size", -1)
    if isinstance(shard, int) and shard > 0:
        inputs["n_gpus"] = f"{replicate * shard * tp * pp * cp}"
        if batch == -1:
            batch = local * replicate * shard
    if isinstance(batch, int) and batch > 0:
        inputs["global_batch"] = f"{batch}"
    ours, places = _remarks(content, file, problem)
    inputs.update({name: value for name, value in ours.items() if name not in inputs})
    row = _read_model(read, inputs, notes, problem)
    design = {**_read_design(read), **_read_sharding(read, replicate, shard)}
    inputs["precision"] = design["format"]
    if pp == 1:
        design["micro_batch"] = f"{local}"
    elif design["schedule"] == "interleaved":
        design["chunks"] = _chunks(read, cell(row, "layers"), pp)
    if cell(row, "experts"):
        design |= {
            "ep": f"{read.count('expert_parallel_degree')}",
            "expert_tp": "true" if tp > 1 else "false",
            "dispatch": "dropless",
        }
    known = {name: value for name, value in design.items() if name in problem.names}
    return KnownPlan(
        {name: value for name, value in inputs.items() if name in problem.inputs},
        known,
        {name: f"{file}: {name}={value}" for name, value in {**inputs, **known}.items()} | places,
        tuple(read.ignored()),
        tuple(notes),
        needs=tuple(
            name
            for name in ("model", "n_gpus", "global_batch")
            if name in problem.inputs and name not in inputs
        ),
        assumed=tuple(name for name in ("hardware",) if name in problem.inputs and name not in inputs),
    )


def _remarks(content: str, file: str, problem: Problem) -> tuple[dict[str, str], dict[str, str]]:
    """The inputs in our own comments, and where they stand."""
    found: dict[str, str] = {}
    places: dict[str, str] = {}
    for number, line in enumerate(content.splitlines(), start=1):
        for name, value in read_remark(line).items():
            if name in problem.inputs and name not in found:
                found[name] = value
                places[name] = f"{file}:{number}: {name}={value}"
    return found, places


def _read_model(
    read: _Config, inputs: dict[str, str], notes: list[str], problem: Problem
) -> Mapping[str, object]:
    """The row of the model: that of a comment, else the one of the catalogue with the flavor's architecture.

    Raises:
        InputError: a comment names a model that the flavor is not.
    """
    chosen = problem.inputs.get("model")
    if chosen is None or chosen.table is None:
        return {}
    pair = (str(read.get("model", "name", "llama3")), str(read.get("model", "flavor", "")))
    if any(name.removeprefix("inputs.") == "model" for name, _ in problem.overrides):
        return row_of(problem, "model", chosen.value) or {}
    if "model" in inputs:
        row = row_of(problem, "model", inputs["model"]) or model_row(Path(inputs["model"]))
        flavor = find_flavor(row, inputs["model"])
        if (flavor.name, flavor.flavor) != pair:
            raise read.fault(
                "model.flavor", f"{pair[1]!r} of {pair[0]!r} is not {inputs['model']}, as a comment says"
            )
        return row
    for name in problem.graph.tables[chosen.table].axes[0]:  # of one flavor, the later model
        row = row_of(problem, "model", name) or {}
        if flavor_of(row) == pair:
            inputs["model"] = str(name)
    if "model" not in inputs:
        notes.append(f"the flavor {pair[1]!r} of {pair[0]!r} is not in the catalogue")
    return row_of(problem, "model", inputs.get("model", chosen.value)) or {}


def _chunks(read: _Config, layers: int, pp: int) -> str:
    """Chunks of an interleaved schedule: 2 unless the layers of one are given."""
    each = read.get("parallelism", "pipeline_parallel_layers_per_stage", None)
    if each is None:
        return "2"
    ends = sum(read.count(f"pipeline_parallel_{end}_stage_less_layers", least=0) for end in ("first", "last"))
    stages = -(-(layers + ends) // read.count("pipeline_parallel_layers_per_stage"))
    if stages % pp:
        raise read.fault(
            "parallelism.pipeline_parallel_layers_per_stage", f"{stages} stages are not divisible by {pp}"
        )
    return f"{stages // pp}"


def _read_sharding(read: _Config, replicate: int, shard: object) -> dict[str, str]:
    pp, cp = read.count("pipeline_parallel_degree"), read.count("context_parallel_degree")
    reshard = read.get("parallelism", "fsdp_reshard_after_forward", "default")
    if replicate == 1:
        resident = reshard == "never" or (reshard == "default" and pp > 1)
        return {"sharding": "fsdp2-resident" if resident else "fsdp2", "shard_group": "0"}
    if shard == 1 and cp == 1:
        return {"sharding": "ddp", "shard_group": "0"}
    if not isinstance(shard, int) or shard < 1:
        raise read.fault(
            "parallelism.data_parallel_shard_degree", "write the number: it tells the size of a group"
        )
    return {"sharding": "hsdp", "shard_group": f"{shard * cp}"}


def _read_design(read: _Config) -> dict[str, str]:
    tp, pp, cp = (read.count(f"{kind}_parallel_degree") for kind in ("tensor", "pipeline", "context"))
    schedules = {value: name for name, value in _SCHEDULES.items()}
    schedule = read.get("parallelism", "pipeline_parallel_schedule", "1F1B")
    if pp > 1 and schedule not in schedules:
        raise read.fault(
            "parallelism.pipeline_parallel_schedule", f"{schedule!r} is none of {', '.join(schedules)}"
        )
    mode = read.get("activation_checkpoint", "mode", "selective")
    if mode == "selective" and read.get("activation_checkpoint", "selective_ac_option", "2") != "op":
        raise read.fault("activation_checkpoint.selective_ac_option", "the cost model knows 'op' only")
    if mode not in _RECOMPUTES.values():
        raise read.fault("activation_checkpoint.mode", f"{mode!r} is none of {', '.join(_RECOMPUTES)}")
    converters = read.get("model", "converters", [])
    first, last = (
        read.count(f"pipeline_parallel_{end}_stage_less_layers", least=0) for end in ("first", "last")
    )
    edges = {(0, 0): "even", (1, 0): "embedding", (0, 1): "loss", (1, 1): "both"}.get((first, last))
    if pp > 1 and edges is None:
        raise read.fault("parallelism.pipeline_parallel_first_stage_less_layers", "the space knows 0 and 1")
    return {
        "tp": f"{tp}",
        "sequence_parallel": "true" if tp > 1 else "false",
        "pp": f"{pp}",
        "schedule": schedules.get(str(schedule), "1f1b") if pp > 1 else "1f1b",
        "chunks": "1",
        "cp": f"{cp}",
        "cp_kind": "ring",
        "micro_batch": f"{read.count('pipeline_parallel_microbatch_size')}",
        "recompute": str(mode),
        "recompute_block": "1",
        "format": "fp8" if "float8" in (converters if isinstance(converters, list) else []) else "bf16",
        "optimizer": "adam-offload" if read.get("training", "enable_cpu_offload", False) is True else "adam",
        "placement": "tp-cp-dp-pp",
        "overlap_dp": "true",
        "overlap_tp": "true"
        if read.get("parallelism", "enable_async_tensor_parallel", False) is True
        else "false",
        "edges": edges if edges is not None and pp > 1 else "even",
    }


class _Config:
    """A job configuration whose keys are checked as they are read."""

    def __init__(self, data: dict[str, Any], file: str) -> None:
        self.data, self.file = data, file
        for section, keys in TORCHTITAN.items():
            found = data.get(section, {})
            if not isinstance(found, dict):
                raise InputError(f"{file}: {section!r} must be a section")
            for key in found:
                hint = "" if key in keys else nearest(key, keys)
                if hint.startswith("; did you mean"):
                    raise self.fault(f"{section}.{key}", f"torchtitan has no such key{hint}")

    def fault(self, key: str, why: str) -> InputError:
        return InputError(f"{self.file}: {key}: {why}")

    def get(self, section: str, key: str, default: object) -> object:
        return self.data.get(section, {}).get(key, default)

    def count(self, key: str, section: str = "parallelism", default: int = 1, *, least: int = 1) -> int:
        """A whole number of at least ``least``."""
        value = self.get(section, key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 10**12:
            raise self.fault(
                f"{section}.{key}", f"expected a whole number of at least {least}, but got {value!r}"
            )
        return value

    def ignored(self) -> list[str]:
        """Sections that have nothing to do with a plan, and unknown keys."""
        others = [section for section in self.data if section not in TORCHTITAN]
        unknown = [
            f"{s}.{key}" for s, keys in TORCHTITAN.items() for key in self.data.get(s, {}) if key not in keys
        ]
        return others + unknown
