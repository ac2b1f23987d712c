"""Small tables of measurements for tests."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from dse.spaces.training.rows import REQUIRED

ROW = {
    "source": "a paper", "system": "A100-80GB SXM", "n_gpus": "64", "model": "GPT-7.5B", "layers": "36",
    "hidden": "4096", "ffn": "16384", "heads": "32", "kv_heads": "32", "head_dim": "128", "vocab": "51200",
    "seq_len": "2048", "global_batch": "512", "micro_batch": "4", "tp": "4", "pp": "1", "vpp": "1", "cp": "1",
    "ep": "1", "dp": "16", "zero_stage": "0", "sharding": "DDP", "recompute": "full", "seq_parallel": "no",
    "precision": "bf16", "activation": "gelu", "metric": "iter_s", "value": "10", "notes": "", "moe": "", "flag": "",
}  # fmt: skip
"""A dense row that states everything; 512 sequences of 2048 tokens in 10 s."""

MOE = {
    "layers": "48", "hidden": "2048", "ffn": "6144", "heads": "32", "kv_heads": "4", "activation": "swiglu",
    "model": "Qwen3 MoE 30B", "moe": "E=128;topk=8;moe_ffn=768", "tp": "1", "dp": "64", "ep": "8",
}  # fmt: skip

MEMORY = {**ROW, "metric": "max_allocated_gib", "value": "20", "capacity_gb": "80"}


def write_table(
    path: Path, rows: Sequence[Mapping[str, str]], base: Mapping[str, str] = ROW, without: str = ""
) -> Path:
    """Writes rows, each told by how it differs from ``base``, without one of the columns."""
    columns = list(dict.fromkeys([*REQUIRED, *base, *(name for row in rows for name in row)]))
    columns = [name for name in columns if name != without]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([{**base, **row}.get(name, "") for name in columns] for row in rows)
    return path
