"""A small space with the dimensions and inputs of ``training``, and a cost that is only plausible."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from dse.problem import Design, Problem
from dse.problem.library import load
from dse.spaces.catalog.columns import COLUMNS
from dse.study.exports import Plan

__all__ = ["DESIGN", "EDGES", "SPACE", "plan", "problem", "write"]


def _pow2(most: int) -> list[int]:
    return [1 << n for n in range(most.bit_length())]


def _named(*names: str) -> dict[str, Any]:
    return {"columns": {"title": "text"}, "rows": {name: [name] for name in names}}


EDGES = {"even": (0, 0), "embedding": (1, 0), "loss": (0, 1), "both": (1, 1)}

SPACE: dict[str, Any] = {
    "dse": 1,
    "name": "training",
    "inputs": {
        "model": {"default": "llama-3.1-8b", "table": "models"},
        "hardware": {"default": "h100-sxm", "table": "chips"},
        "n_gpus": 64,
        "global_batch": 128,
        "seq_len": 8192,
        "framework": {"default": "any", "choices": ["any", "megatron", "deepspeed", "torchtitan"]},
        "capacity_factor": 1.25,
        "attention_share": 1.0,
        "memory_fixed": "1 GB",
    },
    "tables": {
        "models": {
            "columns": dict(COLUMNS["models"]),
            "file": "catalog:models.csv",
            "import": "dse.spaces.training.export:model_row",
        },
        "chips": {"columns": dict(COLUMNS["hardware"]), "file": "catalog:hardware.csv"},
        "schedules": _named("gpipe", "1f1b", "interleaved", "zb-h1", "dualpipe"),
        "shardings": _named(
            *"ddp distributed-optimizer megatron-fsdp zero0 zero1 zero2 zero3 fsdp2 fsdp2-resident hsdp".split()
        ),
        "recomputes": {
            "columns": {"again": "1"},
            "rows": {"none": [0], "attention": [0.05], "selective": [0.1], "mlp": [0.2], "full": [0.33]},
        },
        "formats": {"columns": {"speed": "1"}, "rows": {"bf16": [1], "fp8": [1.6]}},
        "edge_kinds": {
            "columns": {"embedding": "1", "loss": "1"},
            "rows": {name: list(counts) for name, counts in EDGES.items()},
        },
    },
    "dimensions": {
        "tp": _pow2(64),
        "sequence_parallel": {"choices": [False, True], "when": "tp > 1", "otherwise": False},
        "pp": _pow2(64),
        "schedule": {"table": "schedules", "when": "pp > 1", "otherwise": "1f1b"},
        "chunks": {"choices": [1, 2, 3, 4, 7], "when": "schedule == 'interleaved'", "otherwise": 1},
        "cp": _pow2(64),
        "cp_kind": {"choices": ["ring", "ulysses"], "when": "cp > 1", "otherwise": "ring"},
        "ep": {"choices": _pow2(64), "when": "model.experts > 0", "otherwise": 1},
        "expert_tp": {"choices": [False, True], "when": "model.experts > 0", "otherwise": False},
        "dispatch": {
            "choices": ["dropless", "capacity"],
            "when": "model.experts > 0",
            "otherwise": "dropless",
        },
        "sharding": {"table": "shardings"},
        "shard_group": {"choices": [0, 8, 16], "when": "sharding == 'hsdp'", "otherwise": 0},
        "micro_batch": [1, 2, 3, 4, 6, 8, 12],
        "recompute": {"table": "recomputes"},
        "recompute_block": {"choices": [1, 2, 4], "when": "recompute == 'full'", "otherwise": 1},
        "format": {"table": "formats"},
        "optimizer": ["adam", "adam-offload"],
        "placement": ["tp-cp-dp-pp", "tp-cp-pp-dp", "tp-dp-cp-pp", "tp-pp-cp-dp"],
        "overlap_dp": [False, True],
        "overlap_tp": [False, True],
        "edges": {"table": "edge_kinds", "when": "pp > 1", "otherwise": "even"},
    },
    "lets": {
        "ranks": "tp * pp * cp",
        "dp": "n_gpus / ranks",
        "units": "model.layers + edges.embedding + edges.loss",
    },
    "rules": {
        "gpus": {"check": "n_gpus % ranks == 0", "because": "{n_gpus} GPUs are not divisible"},
        "batch": {"check": "global_batch % (dp * micro_batch) == 0", "because": "the batch is not divisible"},
        "stages": {"check": "units % (pp * chunks) == 0", "because": "layers are not divisible"},
    },
    "metrics": {
        "iteration_time": {
            "expr": "global_batch * seq_len * model.layers * model.hidden / n_gpus * 1 ns * (1 + recompute.again)"
            " / format.speed * (1 + pp * dp * micro_batch / global_batch) * (1 + 0.01 * tp + 0.02 * cp)",
            "unit": "s",
        }
    },
    "objectives": {"iteration_time": "minimize"},
    "error": {"iteration_time": "10 percent"},
}

DESIGN = {
    "tp": "4",
    "sequence_parallel": "true",
    "pp": "2",
    "schedule": "1f1b",
    "chunks": "1",
    "cp": "1",
    "cp_kind": "ring",
    "ep": "1",
    "expert_tp": "false",
    "dispatch": "dropless",
    "sharding": "distributed-optimizer",
    "shard_group": "0",
    "micro_batch": "1",
    "recompute": "none",
    "recompute_block": "1",
    "format": "bf16",
    "optimizer": "adam",
    "placement": "tp-cp-dp-pp",
    "overlap_dp": "true",
    "overlap_tp": "false",
    "edges": "even",
}


def problem(**inputs: str) -> Problem:
    """The space with some inputs."""
    return _loaded(tuple(sorted(inputs.items())))


@cache
def _loaded(inputs: tuple[tuple[str, str], ...]) -> Problem:
    return load(SPACE, inputs)


def plan(design: dict[str, str] | None = None, **inputs: str) -> Plan:
    """A plan of the space: the base design with some values, for some inputs."""
    known = problem(**inputs)
    texts = {**DESIGN, **(design or {})}
    chosen: Design = {
        name: known.dimension(name).values[known.digit(name, text)] for name, text in texts.items()
    }
    return Plan.of(known, chosen)


def write(folder: Path) -> Path:
    """The space as a file."""
    path = folder / "space.yaml"
    path.write_text(json.dumps(SPACE, indent=1), encoding="utf-8")
    return path
