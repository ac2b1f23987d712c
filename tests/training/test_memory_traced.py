"""The memory model traced into a graph says what it says of plain numbers."""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dse.evaluation.scalar import evaluate_nodes
from dse.problem.library import load
from dse.spaces import catalog
from dse.spaces.catalog.columns import COLUMNS, MODEL_COUNTS
from dse.spaces.training import memory
from dse.units import parse_quantity
from tests.training.memory_plans import RECOMPUTES, SCHEDULES, SHARDINGS, plan

CONSTANTS = Path(memory.__file__).with_name("frameworks.csv")


def _table(columns: str, rows: Mapping[str, tuple[float, ...]]) -> dict[str, Any]:
    return {
        "columns": dict.fromkeys(columns.split(), "1"),
        "rows": {name: list(cells) for name, cells in rows.items()},
    }


def _runtimes() -> dict[str, Any]:
    with CONSTANTS.open(encoding="utf-8", newline="") as file:
        rows = {row.pop("framework"): row for row in csv.DictReader(file)}
    units = {"workspace": "B", "context": "B", "plans": "text", "source": "text"}
    names = list(rows["megatron"])
    cells = {
        key: [text if units.get(name) else float(text) for name, text in row.items()]
        for key, row in rows.items()
    }
    return {"columns": {name: units.get(name, "1") for name in names}, "rows": cells}


SPACE: dict[str, Any] = {
    "dse": 1,
    "name": "memory",
    "inputs": {
        "model": {"default": "llama-3.1-8b", "table": "models"},
        "runtime": {"default": "megatron", "table": "runtimes"},
        "attention": {"default": "flash", "table": "attentions"},
        "n_gpus": 64, "global_batch": 512, "seq_len": 8192, "expert_imbalance": 1.0, "capacity_factor": 1.0,
    },
    "tables": {
        "models": {"columns": dict(COLUMNS["models"]), "file": "catalog:models.csv"},
        "runtimes": _runtimes(),
        "attentions": _table("flash", {"flash": (1,), "unfused": (0,)}),
        "schedules": _table("dual level keeps_all", SCHEDULES),
        "shardings": _table("resident sharded optimizer gradient stage live bucket", SHARDINGS),
        "recomputes": _table("attention elementwise mlp full", RECOMPUTES),
        "formats": _table("eight", {"bf16": (0,), "fp8": (1,)}),
        "optimizers": _table("offload", {"adam": (0,), "adam-offload": (1,)}),
        "dispatches": _table("dropless", {"dropless": (1,), "capacity": (0,)}),
        "edge_kinds": _table("embedding loss", {"even": (0, 0), "both": (1, 1)}),
    },
    "dimensions": {
        "tp": [1, 2, 4, 8],
        "sequence_parallel": {"choices": [False, True], "when": "tp > 1", "otherwise": False},
        "pp": [1, 2, 4],
        "schedule": {"table": "schedules", "when": "pp > 1", "otherwise": "1f1b"},
        "chunks": {"choices": [1, 2], "when": "schedule == '1f1b' and pp > 1", "otherwise": 1},
        "cp": [1, 2],
        "ep": [1, 2, 8],
        "expert_tp": [False, True],
        "sharding": {"table": "shardings"},
        "shard_group": [0, 2],
        "micro_batch": [1, 2, 4],
        "recompute": {"table": "recomputes"},
        "recompute_block": {"choices": [1, 4], "when": "recompute == 'full'", "otherwise": 1},
        "format": {"table": "formats"},
        "optimizer": {"table": "optimizers"},
        "dispatch": {"table": "dispatches"},
        "edges": {"table": "edge_kinds", "when": "pp > 1", "otherwise": "even"},
    },
    "metrics": {name: {"unit": "GiB"} for name in ("peak", "allocated", "reserved", *memory.LINES)},
    "objectives": {"peak": "minimize"},
}  # fmt: skip


def cost(**names: Any) -> dict[str, Any]:
    g = SimpleNamespace(**names)
    return {
        "peak": memory.peak(g),
        "allocated": memory.allocated(g, 0),
        "reserved": memory.reserved(g, -1),
        **memory.memory(g),
    }


def _catalogued(name: str) -> SimpleNamespace:
    path = Path(catalog.__file__).with_name("models.csv")
    with path.open(encoding="utf-8", newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["model"] == name)
    return SimpleNamespace(**{column: float(row[column]) for column in MODEL_COUNTS})


def _runtime() -> dict[str, float]:
    with CONSTANTS.open(encoding="utf-8", newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["framework"] == "megatron")
    return {
        name: parse_quantity(text).value
        for name, text in row.items()
        if name not in {"framework", "plans", "source"}
    }


def _given(name: str, design: dict[str, Any]) -> SimpleNamespace:
    """The namespace of numbers that a design stands for."""
    values = dict(design)
    tables = {key: values.pop(key) for key in ("sharding", "recompute", "schedule")}
    edges = 1 if values.pop("edges") == "both" else 0
    g = plan(
        _catalogued(name),
        runtime=_runtime(),
        n_gpus=64.0,
        global_batch=512.0,
        seq_len=8192.0,
        embedding=edges,
        loss=edges,
        eight=int(values.pop("format") == "fp8"),
        offload=int(values.pop("optimizer") == "adam-offload"),
        **tables,
        **{key: value for key, value in values.items() if key != "dispatch"},
    )
    g.dispatch.dropless = int(values["dispatch"] == "dropless")
    return g


@pytest.mark.parametrize("name", ["llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "gpt-3-175b"])
def test_traced_memory_equals_that_of_numbers(name: str) -> None:
    problem = load(SPACE, {"model": name}, cost=cost)
    nodes = {metric: problem.metrics[metric].node for metric in SPACE["metrics"]}
    drawn = random.Random(name)
    for _ in range(60):
        design = problem.design_at(problem.digits_of(drawn.randrange(problem.size)))
        found = evaluate_nodes(problem, design, nodes.values())
        for metric, size in cost(**vars(_given(name, dict(design)))).items():
            assert found[nodes[metric]] == pytest.approx(size, rel=1e-12, abs=1e-3), (metric, design)
