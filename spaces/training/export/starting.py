"""DeepSpeed configurations, and scripts that start Megatron-DeepSpeed with one, read back as plans."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dse.errors import InputError, nearest
from dse.problem import Design, Problem
from dse.problem.files import read_file
from dse.spaces.plans import load_json
from dse.study.exports import KnownPlan

from .deepspeed import STAGES
from .launch import LIMIT, Launch, read_launch
from .names import DEEPSPEED
from .shapes import given_number, predicted_format
from .shell import UNKNOWN

__all__ = ["is_started", "read_deepspeed", "read_started"]

_READ = (
    "create-moe-param-group deepspeed deepspeed-activation-checkpointing deepspeed-config disable-moe-token-dropping "
    "ds-sequence-parallel-size enable-expert-tensor-parallelism moe-expert-parallel-size moe-train-capacity-factor "
    "no-pipeline-parallel zero-stage"
).split()
"""Options of Megatron-DeepSpeed that are understood."""


@dataclass(frozen=True, slots=True)
class _Configuration:
    """What a configuration says: texts of inputs and of dimensions, its accumulation steps, and whether it has tp."""

    inputs: dict[str, str]
    design: dict[str, str]
    ignored: list[str]
    notes: list[str]
    steps: int | None
    tp_told: bool


def read_deepspeed(content: str, file: str, problem: Problem) -> KnownPlan:
    """The plan in a configuration; what it does not say has to be given beside it.

    Raises:
        InputError: it is damaged, leaves the batch open, or contradicts itself.
    """
    script = Path(file).with_suffix(".sh")
    if script != Path(file) and (started := _starts(script, Path(file))) is not None:
        known = read_started(started, str(script), problem)
        return replace(known, notes=(f"{script} starts it and is read too", *known.notes))
    found = _read(content, file, problem)
    places = {name: f"{file}: {name}={value}" for name, value in {**found.inputs, **found.design}.items()}
    told = "" if found.tp_told else "tp, "
    note = (
        f"{file} has no place for {told}pp and cp, which are 1 unless they are given beside it (such as pp=2)"
    )
    known = _plan(found, places, [*found.notes, note], problem)
    return known if found.steps is None else replace(known, agrees=_agreement(found, file))


def _starts(script: Path, configuration: Path) -> str | None:
    """The text of a script, if there is one that starts a program with a configuration."""
    if not script.is_file() or not configuration.is_file():
        return None
    text = read_file(script, LIMIT, "a script that starts DeepSpeed")
    if not is_started(text):
        return None
    named = _configuration_of(read_launch(text, str(script)), str(script))
    return text if named.samefile(configuration) else None


def _agreement(found: _Configuration, file: str) -> Callable[[Problem, Design], None]:
    """The check that a configuration's batch is that of the data parallel ranks which a design leaves."""
    micro, steps, batch = int(found.design["micro_batch"]), found.steps or 1, found.inputs.get("global_batch")

    def agrees(problem: Problem, design: Design) -> None:
        gpus = problem.inputs["n_gpus"].value if "n_gpus" in problem.inputs else None
        if batch is None or not isinstance(gpus, float):
            return
        replicas = int(batch) // (micro * steps)
        sizes = {name: int(design.get(name, 1)) for name in ("tp", "pp", "cp")}
        if gpus == replicas * math.prod(sizes.values()):
            return
        product = " x ".join(f"{name}={size}" for name, size in sizes.items())
        raise InputError(
            f"{file}: train_batch_size {batch} is {micro} x {steps} (micro-batch x accumulation steps) on {replicas} "
            f"data parallel ranks, but {gpus:g} GPUs and {product} leave {gpus / math.prod(sizes.values()):.6g}; what the "
            "file cannot say is missing or wrong: add tp=, pp= or cp= with their numbers, or another --set n_gpus=N"
        )

    return agrees


def is_started(text: str) -> bool:
    """Whether a script starts a program with a configuration of DeepSpeed."""
    return re.search(r"--deepspeed[_-]config\b", text) is not None


def read_started(text: str, file: str, problem: Problem) -> KnownPlan:
    """The plan that a script starts with a configuration, which is read too.

    Raises:
        InputError: one of them cannot be read, or they contradict each other.
    """
    launch = read_launch(text, file)
    flags, others = launch.flags, launch.others
    path = _configuration_of(launch, file)
    found = _read(read_file(path, LIMIT, "a DeepSpeed configuration"), str(path), problem)
    places = {name: f"{path}: {name}={value}" for name, value in {**found.inputs, **found.design}.items()}
    sizes = {
        "tp": ("tensor-model-parallel-size", flags),
        "pp": ("pipeline-model-parallel-size", flags),
        "cp": ("ds-sequence-parallel-size", others),
        "ep": ("moe-expert-parallel-size", others),
    }
    for name, (argument, table) in sizes.items():
        if argument in table:
            found.design[name] = f"{table.positive(argument, 1)}"
            places[name] = table.place(argument)
    found.design.update(_switches(launch, found.design))
    if "seq-length" in flags:
        found.inputs["seq_len"] = f"{flags.positive('seq-length', 1)}"
        places["seq_len"] = flags.place("seq-length")
    if (given := given_number(problem, "n_gpus")) is not None:
        launch.gpus, launch.gpus_place, launch.gpus_given = given, f"n_gpus={given}", True
    elif launch.gpus_fault:
        raise InputError(launch.gpus_fault)
    if launch.gpus is not None:
        found.inputs["n_gpus"] = f"{launch.gpus}"
        places["n_gpus"] = launch.gpus_place
    if "moe-train-capacity-factor" in others and found.design["dispatch"] == "capacity":
        found.inputs["capacity_factor"] = f"{others.decimal('moe-train-capacity-factor', 1):.12g}"
        places["capacity_factor"] = others.place("moe-train-capacity-factor")
    _check_same(launch, found, path)
    for name, (value, line) in launch.ours.items():
        if name in problem.inputs and name not in found.inputs:
            found.inputs[name] = value
            places[name] = f"{file}:{line}: {name}={value}"
    names = {f"--{name}" for name in _READ}
    found.ignored.extend(
        text
        for text in dict.fromkeys(launch.ignored)
        if text.partition(" ")[0].replace("_", "-") not in names
    )
    known = _plan(found, places, [*found.notes, *launch.notes], problem)
    if found.steps is None or not launch.gpus_given:
        return known
    return replace(known, agrees=_agreement(found, str(path)))


def _configuration_of(launch: Launch, file: str) -> Path:
    """The configuration that a script names: beside the script, where the script finds its folder out itself.

    Raises:
        InputError: there is no such file.
    """
    flag = launch.others.named["deepspeed-config"]
    named = flag.values[0] if flag.values else ""
    folder, _, name = named.rpartition("/")
    beside = Path(file).parent
    candidates = [beside / name, Path(named)] if UNKNOWN in folder else [beside / named, Path(named)]
    for path in candidates:
        if name and UNKNOWN not in str(path) and path.is_file():
            return path
    raise launch.others.fault("deepspeed-config", f"there is no such file beside {file}")


def _switches(launch: Launch, design: dict[str, str]) -> dict[str, str]:
    """What switches say: sequence parallelism, experts and recomputation."""
    flags, others = launch.flags, launch.others
    found = {"cp_kind": "ulysses" if design["cp"] != "1" else "ring"}
    if flags.on("sequence-parallel") and design["tp"] != "1":
        found["sequence_parallel"] = "true"
    if "num-experts" in flags:
        found["dispatch"] = "dropless" if others.on("disable-moe-token-dropping") else "capacity"
        found["expert_tp"] = "true" if others.on("enable-expert-tensor-parallelism") else "false"
    recompute = flags.value("recompute-granularity", "none")
    if recompute == "full":
        found["recompute_block"] = f"{flags.positive('recompute-num-layers', 1)}"
    kinds = {"full": "full", "selective": "attention", "none": "none"}
    if recompute not in kinds:
        raise flags.fault("recompute-granularity", "expected full or selective")
    return {**found, "recompute": kinds[recompute]}


def _check_same(launch: Launch, found: _Configuration, path: Path) -> None:
    """Makes sure that the script and the configuration say the same of stage, batch and number of GPUs; with a number
    of GPUs that the user gave, the batch is judged when the whole design is known.

    Raises:
        InputError: they do not.
    """
    flags, others = launch.flags, launch.others
    pairs = [
        (others, "zero-stage", found.design["sharding"].removeprefix("zero")),
        (flags, "micro-batch-size", found.design["micro_batch"]),
        (flags, "global-batch-size", found.inputs.get("global_batch")),
    ]
    for table, argument, there in pairs:
        if argument in table and there is not None and table.number(argument, 0) != int(there):
            raise table.fault(argument, f"{path} has {there}")
    if "global_batch" not in found.inputs and "global-batch-size" in flags:
        found.inputs["global_batch"] = f"{flags.positive('global-batch-size', 1)}"
    if launch.gpus_given:
        return
    ranks = math.prod(int(found.design[name]) for name in ("tp", "pp", "cp"))
    gpus, batch = int(found.inputs.get("n_gpus", 0)), int(found.inputs.get("global_batch", 0))
    if gpus % ranks:
        raise InputError(f"{launch.gpus_place}, which tp x pp x cp = {ranks} does not divide")
    each = int(found.design["micro_batch"]) * (found.steps or 1) * gpus // ranks
    if gpus and batch and found.steps is not None and each != batch:
        raise InputError(
            f"{path}: train_batch_size {batch} is not micro-batch x accumulation steps x data parallel size = {each}"
        )


def _plan(found: _Configuration, places: dict[str, str], notes: list[str], problem: Problem) -> KnownPlan:
    """The plan of what was read."""
    inputs = {name: value for name, value in found.inputs.items() if name in problem.inputs}
    design = {name: value for name, value in found.design.items() if name in problem.names}
    return KnownPlan(
        inputs,
        design,
        {name: places.get(name, "") for name in (*inputs, *design)},
        tuple(found.ignored),
        tuple(notes),
        needs=tuple(
            name
            for name in ("model", "seq_len", "n_gpus", "global_batch")
            if name in problem.inputs and name not in inputs
        ),
        assumed=tuple(name for name in ("hardware",) if name in problem.inputs and name not in inputs),
    )


def _read(content: str, file: str, problem: Problem) -> _Configuration:
    """What a configuration says.

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
    tp = _count(_section(data, "tensor_parallel", file), "autotp_size", file)
    inputs = {"framework": "deepspeed"}
    notes: list[str] = []
    if batch is not None:
        inputs["global_batch"] = f"{batch}"
        if steps is not None and batch % (micro * steps):
            raise InputError(
                f"{file}: train_batch_size {batch} contradicts {micro} x {steps} = micro-batch x accumulation steps"
            )
    zero = _section(data, "zero_optimization", file)
    stage = _count(zero, "stage", file) if "stage" in zero else 0
    if stage not in STAGES.values():
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
        "tp": f"{tp or 1}",
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
    return _Configuration(inputs, design, ignored, notes, steps, tp is not None)


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
