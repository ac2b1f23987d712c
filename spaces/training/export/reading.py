"""Launch lines of Megatron-LM read back as inputs and a design."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from dse.errors import InputError
from dse.problem import Problem
from dse.problem.files import read_file
from dse.study.exports import KnownPlan, row_of

from .architecture import Architecture, read_architecture
from .flags import Flags
from .launch import LIMIT, Launch, read_launch
from .megatron import recompute_modules
from .shapes import Shape, cell, given_number, predicted_format

__all__ = ["read_megatron", "row_of_launch"]

_FP8 = {"tensorwise": "fp8", "delayed": "fp8", "blockwise": "fp8", "mxfp8": "mxfp8"}
_NEAREST = 3
_BACKENDS = {"flash": None, "fused": "flash3", "unfused": "unfused", "local": "unfused", "auto": None}
"""The attention kernels by ``--attention-backend`` (``AttnBackend`` in ``megatron/core/transformer/enums.py``);
``flash`` is version 3 of FlashAttention where that is installed, else 2."""


def row_of_launch(path: Path) -> dict[str, float]:
    """The model that a launch line trains, as a row of the catalogue.

    Raises:
        InputError: the file is no launch line, or a size is missing.
    """
    return read_architecture(
        read_launch(read_file(path, LIMIT, "a launch line of Megatron-LM"), str(path)).flags
    ).row


def read_megatron(text: str, file: str, problem: Problem) -> KnownPlan:
    """The plan that a launch line runs.

    Raises:
        InputError: it cannot be read, contradicts itself or a rule of Megatron-LM, or has an argument that changes
            the cost and is not understood.
    """
    launch = read_launch(text, file)
    if (given := given_number(problem, "n_gpus")) is not None:
        if launch.gpus not in (None, given):
            launch.notes.append(f"n_gpus is {given} by --set, instead of {launch.gpus} ({launch.gpus_place})")
        launch.gpus, launch.gpus_place = given, f"n_gpus={given}"
    elif launch.gpus_fault:
        raise InputError(launch.gpus_fault)
    flags = launch.flags
    architecture = read_architecture(flags)
    inputs = {
        "framework": ("megatron", file),
        "seq_len": (f"{flags.need('seq-length')}", flags.place("seq-length")),
    }
    tp, pp, cp = (
        flags.positive(f"{kind}-parallel-size", 1) for kind in ("tensor-model", "pipeline-model", "context")
    )
    if launch.gpus is not None:
        inputs["n_gpus"] = (f"{launch.gpus}", launch.gpus_place)
    ranks = tp * pp * cp
    if launch.gpus is not None and launch.gpus % ranks:
        raise InputError(
            f"{launch.gpus_place}, which tp x pp x cp = {ranks} does not divide; --set n_gpus=N takes another number"
        )
    micro = flags.need("micro-batch-size")
    if "global-batch-size" in flags or launch.gpus is not None:
        batch = flags.positive("global-batch-size", micro * (launch.gpus or ranks) // ranks)
        inputs["global_batch"] = (f"{batch}", flags.place("global-batch-size"))
    capacity = flags.decimal("moe-expert-capacity-factor", -1)
    if capacity >= 0:
        inputs["capacity_factor"] = (f"{capacity:.12g}", flags.place("moe-expert-capacity-factor"))
    design = _design(launch, architecture)
    if (attention := _attention(launch, problem)) is not None:
        inputs["attention"] = (attention, flags.place("attention-backend"))
    predicted, notes = predicted_format(problem, design["format"][0])
    launch.notes += notes
    design["format"] = (predicted, design["format"][1])
    inputs["precision"] = design["format"]
    _check(flags, launch, architecture, design)
    known = {**inputs, **design}
    for name, (value, line) in launch.ours.items():
        if name in problem.inputs or name in problem.names:
            told = f"{file}:{line}: {name}={value}"
            if name in known and known[name][0] != value and not _undecided(name, tp):
                raise InputError(f"{told} contradicts {known[name][1]}")
            (inputs if name in problem.inputs else design)[name] = (value, told)
    _choose_model(problem, architecture, launch, inputs)
    design = {name: found for name, found in design.items() if name in problem.names}
    inputs = {name: found for name, found in inputs.items() if name in problem.inputs}
    return KnownPlan(
        {name: value for name, (value, _) in inputs.items()},
        {name: value for name, (value, _) in design.items()},
        {name: place for name, (_, place) in {**inputs, **design}.items()},
        tuple(dict.fromkeys(launch.ignored)),
        tuple(launch.notes),
        needs=tuple(
            name for name in ("n_gpus", "global_batch") if name in problem.inputs and name not in inputs
        ),
        assumed=tuple(name for name in ("hardware",) if name in problem.inputs and name not in inputs),
    )


def _attention(launch: Launch, problem: Problem) -> str | None:
    """The attention kernel that a launch line asks for; None where it leaves it open.

    Raises:
        InputError: Megatron-LM has no such backend.
    """
    backend = launch.flags.value("attention-backend", "auto")
    if backend not in _BACKENDS:
        raise launch.flags.fault("attention-backend", f"expected one of {', '.join(_BACKENDS)}")
    set_ = any(name.removeprefix("inputs.") == "attention" for name, _ in problem.overrides)
    if backend == "flash" and "attention" in problem.inputs and not set_ and "attention" not in launch.ours:
        launch.notes.append(
            f"--attention-backend flash is predicted as {problem.inputs['attention'].value}; "
            "--set attention=flash is FlashAttention-2"
        )
    return _BACKENDS[backend]


def _undecided(name: str, tp: int) -> bool:
    """Whether arguments cannot tell a choice: without tensor parallelism it makes no difference."""
    return tp == 1 and name in ("expert_tp", "overlap_tp", "sequence_parallel")


# -- the model ---------------------------------------------------------------------------------------


def _choose_model(
    problem: Problem, architecture: Architecture, launch: Launch, inputs: dict[str, tuple[str, str]]
) -> None:
    """Finds the row of the catalogue that has the launch line's architecture; else the file is read as a new row."""
    declared = problem.inputs.get("model")
    if declared is None or declared.table is None:
        return
    file = launch.flags.file
    if any(name.removeprefix("inputs.") == "model" for name, _ in problem.overrides):
        inputs["model"] = (str(declared.value), f"--set model={declared.value}")
    if "model" in inputs:
        row = row_of(problem, "model", inputs["model"][0])
        if row is not None and (wrong := architecture.differences(row)):
            raise InputError(f"{inputs['model'][1]} contradicts the arguments: {'; '.join(wrong)}")
        return
    rows = [str(name) for name in problem.graph.tables[declared.table].axes[0]]
    cells = {name: row_of(problem, "model", name) or {} for name in rows}
    differences = {name: architecture.differences(row) for name, row in cells.items()}
    same = sorted((n for n in rows if not differences[n]), key=lambda n: architecture.distance(cells[n]))
    if same:
        best = [n for n in same if architecture.distance(cells[n]) == architecture.distance(cells[same[0]])]
        if len(best) > 1 and len({_costly(cells[n]) for n in best}) > 1:
            raise InputError(
                f"{file}: its model may be {' or '.join(best)}; say which with --set model={best[0]}"
            )
        inputs["model"] = (best[0], f"{file}: the architecture of {best[0]}")
        if cell(cells[best[0]], "dropout") != architecture.hints["dropout"]:
            with_, without = ("with", "without") if architecture.hints["dropout"] else ("without", "with")
            launch.notes.append(f"the file trains {with_} dropout, but {best[0]} is predicted {without} it")
        if "vocab-size" not in launch.flags:
            launch.notes.append(f"the vocabulary is that of {best[0]}; the file has no --vocab-size")
        return
    read_by = problem.readers.get(declared.table)
    if read_by is not None and read_by.function.endswith(":model_row") and "vocab-size" in launch.flags:
        inputs["model"] = (
            file if "/" in file else f"./{file}",
            f"{file}: a model that the catalogue does not have",
        )
        return
    near = sorted(rows, key=lambda name: len(differences[name]))[:_NEAREST]
    told = "".join(f"\n  {name}: {'; '.join(differences[name])}" for name in near)
    missing = (
        "" if "vocab-size" in launch.flags else "; add --vocab-size for it to be read as a model of its own"
    )
    raise InputError(f"{file}: the catalogue has no model of this architecture{missing}. Nearest:{told}")


def _costly(row: Mapping[str, object]) -> tuple[object, ...]:
    """What of a row has an influence on the cost; where it comes from, and the longest context, have none."""
    return tuple(value for column, value in row.items() if column not in ("source", "context", "checked"))


# -- the design --------------------------------------------------------------------------------------


def _design(launch: Launch, model: Architecture) -> dict[str, tuple[str, str]]:
    flags = launch.flags
    place = flags.place
    tp = flags.positive("tensor-model-parallel-size", 1)
    pp = flags.positive("pipeline-model-parallel-size", 1)
    edges = _edges(flags, model.cells["layers"], pp)
    chunks = _chunks(flags, model.cells["layers"] + {"even": 0, "both": 2}.get(edges[0], 1), pp)
    found = {
        "tp": (f"{tp}", place("tensor-model-parallel-size")),
        "sequence_parallel": (_said(flags.on("sequence-parallel") and tp > 1), place("sequence-parallel")),
        "pp": (f"{pp}", place("pipeline-model-parallel-size")),
        "schedule": ("interleaved" if chunks[0] != "1" else "1f1b", chunks[1]),
        "chunks": chunks,
        "cp": (f"{flags.positive('context-parallel-size', 1)}", place("context-parallel-size")),
        "cp_kind": _cp_kind(flags),
        "micro_batch": (f"{flags.need('micro-batch-size')}", place("micro-batch-size")),
        "sharding": _sharding(flags),
        "shard_group": ("0", flags.file),
        "format": _format(flags),
        "optimizer": _optimizer(flags),
        "placement": (
            "tp-cp-pp-dp" if flags.on("use-tp-pp-dp-mapping") else "tp-cp-dp-pp",
            place("use-tp-pp-dp-mapping"),
        ),
        "overlap_dp": (_said(flags.on("overlap-grad-reduce")), place("overlap-grad-reduce")),
        "overlap_tp": (_said(flags.on("tp-comm-overlap") and tp > 1), place("tp-comm-overlap")),
        "edges": edges,
        **_recompute(launch, model, pp, int(chunks[0])),
    }
    if flags.on("sequence-parallel") and tp == 1:
        launch.notes.append("--sequence-parallel does nothing without tensor parallelism")
    found.update(_expert_design(flags, model, tp))
    return found


def _said(flag: bool) -> str:
    return "true" if flag else "false"


def _edges(flags: Flags, layers: int, pp: int) -> tuple[str, str]:
    embedding = flags.on("account-for-embedding-in-pipeline-split")
    loss = flags.on("account-for-loss-in-pipeline-split")
    ends = ("decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers")
    given = [name for name in ends if name in flags]
    if given:
        if embedding or loss:
            raise flags.fault(given[0], "it cannot stand beside --account-for-...-in-pipeline-split")
        fewest = _spared(flags, layers, pp, given)
        embedding, loss = fewest
        where = flags.place(given[0])
    else:
        where = flags.place(f"account-for-{'embedding' if embedding else 'loss'}-in-pipeline-split")
    if pp == 1:
        return "even", where
    return {(False, False): "even", (True, False): "embedding", (False, True): "loss", (True, True): "both"}[
        embedding, loss
    ], where


def _spared(flags: Flags, layers: int, pp: int, given: list[str]) -> tuple[bool, bool]:
    """Whether the first and the last stage have one layer fewer than the others.

    Raises:
        InputError: they have another number.
    """
    first, last = "decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers"
    sizes = {name: flags.number(name, 0) for name in given}
    middle, rest = pp - len(given), layers - sum(sizes.values())
    each, left = divmod(rest, middle) if middle > 0 else (max(sizes.values()), rest)
    spared = [each - sizes.get(name, each) for name in (first, last)]
    if left or rest < 0 or any(count not in (0, 1) for count in spared):
        raise flags.fault(
            given[0],
            f"the first and last of {pp} stages may have as many layers as the others or one fewer, but of "
            f"{layers} layers {' and '.join(f'{size}' for size in sizes.values())} leave {rest} for {middle} stages",
        )
    return spared[0] == 1, spared[1] == 1


def _chunks(flags: Flags, units: int, pp: int) -> tuple[str, str]:
    stages, layers = "num-virtual-stages-per-pipeline-rank", "num-layers-per-virtual-pipeline-stage"
    if stages in flags and layers in flags:
        raise flags.fault(layers, f"it contradicts {flags.place(stages)}")
    if stages in flags:
        return f"{flags.positive(stages, 1)}", flags.place(stages)
    if layers not in flags:
        return "1", flags.file
    each = flags.positive(layers, 1)
    if units % (pp * each):
        raise flags.fault(layers, f"{units} layers are not divisible by {pp} stages of chunks of {each}")
    return f"{units // (pp * each)}", flags.place(layers)


def _cp_kind(flags: Flags) -> tuple[str, str]:
    if "cp-comm-type" not in flags:
        return "ring", flags.file
    kinds = {"p2p": "ring", "a2a": "ulysses"}
    values = set(flags.named["cp-comm-type"].values)
    if len(values) > 1 or not values <= set(kinds):
        raise flags.fault("cp-comm-type", f"the cost model knows one of {', '.join(kinds)} for all layers")
    return (kinds[values.pop()] if flags.number("context-parallel-size", 1) > 1 else "ring"), flags.place(
        "cp-comm-type"
    )


def _sharding(flags: Flags) -> tuple[str, str]:
    fsdp, optimizer = flags.on("use-megatron-fsdp"), flags.on("use-distributed-optimizer")
    if fsdp:
        strategy = flags.value("data-parallel-sharding-strategy", "no_shard")
        if strategy != "optim_grads_params":
            raise flags.fault(
                "data-parallel-sharding-strategy"
                if "data-parallel-sharding-strategy" in flags
                else "use-megatron-fsdp",
                f"the cost model knows Megatron's FSDP with optim_grads_params, not with {strategy}",
            )
        found = "megatron-fsdp", flags.place("use-megatron-fsdp")
    elif optimizer:
        found = "distributed-optimizer", flags.place("use-distributed-optimizer")
    else:
        found = "ddp", flags.file
    if flags.on("overlap-param-gather"):
        if not (fsdp or optimizer):
            raise flags.fault(
                "overlap-param-gather", "it needs --use-distributed-optimizer or --use-megatron-fsdp"
            )
        if not flags.on("overlap-grad-reduce"):
            raise flags.fault("overlap-param-gather", "it needs --overlap-grad-reduce")
    return found


def _format(flags: Flags) -> tuple[str, str]:
    if flags.on("fp16") and flags.on("bf16"):
        raise flags.fault("fp16", f"it contradicts {flags.place('bf16')}")
    if "fp8-format" in flags and "fp4-format" in flags:
        raise flags.fault("fp4-format", f"it contradicts {flags.place('fp8-format')}")
    if "fp4-format" in flags:
        return "nvfp4", flags.place("fp4-format")
    if "fp8-format" in flags:
        flags.value("fp8-format", "")
        recipe = flags.value("fp8-recipe", "delayed")
        if recipe not in _FP8:
            raise flags.fault("fp8-recipe", f"the cost model knows {', '.join(_FP8)}")
        return _FP8[recipe], flags.place("fp8-format")
    if not (flags.on("fp16") or flags.on("bf16")):
        raise InputError(
            f"{flags.file}: there is neither --bf16 nor --fp16: the cost model knows no training in fp32"
        )
    return ("fp16", flags.place("fp16")) if flags.on("fp16") else ("bf16", flags.place("bf16"))


def _optimizer(flags: Flags) -> tuple[str, str]:
    if flags.value("optimizer", "adam") != "adam":
        raise flags.fault("optimizer", "the cost model knows adam only")
    if not flags.on("optimizer-cpu-offload"):
        return "adam", flags.place("optimizer")
    if not flags.on("use-precision-aware-optimizer"):
        raise flags.fault("optimizer-cpu-offload", "it needs --use-precision-aware-optimizer")
    return "adam-offload", flags.place("optimizer-cpu-offload")


def _expert_design(flags: Flags, model: Architecture, tp: int) -> dict[str, tuple[str, str]]:
    ep = flags.positive("expert-model-parallel-size", 1)
    place = flags.place("expert-model-parallel-size")
    if not model.cells["experts"]:
        if ep > 1:
            raise flags.fault("expert-model-parallel-size", "the model has no experts; add --num-experts")
        return {}
    etp = flags.positive("expert-tensor-parallel-size", tp)
    if etp not in (1, tp):
        raise flags.fault("expert-tensor-parallel-size", f"the space knows 1 and tp = {tp}")
    capacity = flags.decimal("moe-expert-capacity-factor", -1) >= 0
    return {
        "ep": (f"{ep}", place),
        "expert_tp": (_said(etp == tp and tp > 1), flags.place("expert-tensor-parallel-size")),
        "dispatch": ("capacity" if capacity else "dropless", flags.place("moe-expert-capacity-factor")),
    }


def _recompute(launch: Launch, model: Architecture, pp: int, chunks: int) -> dict[str, tuple[str, str]]:
    flags = launch.flags
    experts = model.cells["experts"] > 0
    dense = model.cells["moe_layers"] < model.cells["layers"]
    place = flags.place("recompute-granularity")
    granularity = flags.value(
        "recompute-granularity", "selective" if flags.on("recompute-activations") else "none"
    )
    none = {"recompute": ("none", flags.file), "recompute_block": ("1", flags.file)}
    if granularity == "full":
        return {
            "recompute": ("full", place),
            "recompute_block": _block(flags, model.cells["layers"], pp, chunks),
        }
    if granularity == "selective":
        asked = flags.named["recompute-modules"].values if "recompute-modules" in flags else ("core_attn",)
        for kind in ("attention", "selective", "mlp"):
            modules = recompute_modules(kind, experts=experts, dense=dense)
            if modules is not None and set(modules) == set(asked):
                where = flags.place("recompute-modules") if "recompute-modules" in flags else place
                return {**none, "recompute": (kind, where)}
        raise flags.fault("recompute-modules", f"the space has no recomputation of just {', '.join(asked)}")
    if granularity != "none":
        raise flags.fault("recompute-granularity", "expected full or selective")
    if flags.on("moe-layer-recompute") and experts and not dense:
        return {**none, "recompute": ("mlp", flags.place("moe-layer-recompute"))}
    return none


def _block(flags: Flags, layers: int, pp: int, chunks: int) -> tuple[str, str]:
    """Layers of a unit that is recomputed together."""
    method = flags.value("recompute-method", "")
    count = flags.positive("recompute-num-layers", 1)
    if method == "uniform":
        return f"{count}", flags.place("recompute-num-layers")
    if method == "block":
        if count >= -(-layers // (pp * chunks)):
            return "1", flags.place("recompute-num-layers")  # all layers, each by itself
        raise flags.fault(
            "recompute-method", f"the space has no recomputation of {count} of a stage's layers"
        )
    why = "expected uniform or block" if method else "full recomputation needs --recompute-method"
    raise flags.fault("recompute-method" if method else "recompute-granularity", why)


# -- what Megatron-LM checks -------------------------------------------------------------------------


_BLAME = {
    "n_gpus": "tensor-model-parallel-size",
    "global_batch": "global-batch-size",
    "tp": "tensor-model-parallel-size",
    "sequence_parallel": "sequence-parallel",
    "pp": "pipeline-model-parallel-size",
    "chunks": "num-virtual-stages-per-pipeline-rank",
    "cp": "context-parallel-size",
    "ep": "expert-model-parallel-size",
}


def _check(flags: Flags, launch: Launch, model: Architecture, design: Mapping[str, tuple[str, str]]) -> None:
    """Makes sure that Megatron-LM would start.

    Raises:
        InputError: it would not.
    """
    for name, why in _faults(flags, launch, model, design):
        raise flags.fault(_BLAME.get(name, name), why)
    if flags.on("tp-comm-overlap") and not flags.on("sequence-parallel"):
        raise flags.fault("tp-comm-overlap", "it needs --sequence-parallel")
    if "max-position-embeddings" in flags and flags.number("max-position-embeddings", 0) < flags.number(
        "seq-length", 0
    ):
        raise flags.fault("max-position-embeddings", f"it is below {flags.place('seq-length')}")
    if "num-query-groups" in flags and not flags.on("group-query-attention"):
        launch.notes.append("--num-query-groups does nothing without --group-query-attention")


def _faults(
    flags: Flags, launch: Launch, model: Architecture, design: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    edges = design["edges"][0]
    tp, pp, cp = (int(design[name][0]) for name in ("tp", "pp", "cp"))
    gpus = launch.gpus or tp * pp * cp
    micro = int(design["micro_batch"][0])
    batch = flags.positive("global-batch-size", 1) if launch.gpus and "global-batch-size" in flags else 0
    shape = Shape(
        n_gpus=gpus,
        global_batch=batch or micro * gpus // (tp * pp * cp) * pp,
        seq_len=flags.need("seq-length"),
        tp=tp,
        pp=pp,
        chunks=int(design["chunks"][0]),
        cp=cp,
        ep=int(design["ep"][0]) if "ep" in design else 1,
        etp=flags.positive("expert-tensor-parallel-size", tp),
        micro_batch=micro,
        sequence_parallel=design["sequence_parallel"][0] == "true",
        embedding=int(edges in ("embedding", "both")),
        loss=int(edges in ("loss", "both")),
        layers=model.cells["layers"],
        heads=model.cells["heads"],
        kv_heads=model.cells.get("kv_heads", model.cells["heads"]),
        hidden=model.cells["hidden"],
        experts=model.cells["experts"],
        mla=bool(model.cells["mla"]),
    )
    for name, why in shape.faults():
        if name == "ep" and launch.gpus is None:
            continue
        yield name, why
