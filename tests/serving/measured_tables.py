"""Small tables of inference runs for tests."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

ROW = {
    "source": "a paper", "gpu": "A100-80GB SXM", "n_gpus": "1", "engine": "TensorRT-LLM v0.9.0", "model": "LLaMA 7B",
    "weights_precision": "fp16", "kv_precision": "fp16", "tp": "1", "pp": "1", "batch": "16", "batching": "static",
    "input_len": "128", "output_len": "64", "metric": "out_tokens_s_total", "value": "512", "metric2": "", "value2": "",
    "metric3": "", "value3": "", "notes": "",
}  # fmt: skip
"""A row that states everything: 16 x 64 tokens in 2 s."""

SHAPE = {
    "layers": "28", "hidden": "4096", "ffn": "16384", "heads": "16", "kv_heads": "16", "head_dim": "256", "vocab": "50400",
}  # fmt: skip
"""The shape of GPT-J, whose MLP is not gated."""

SINGLE = {"batch": "1", "batching": "single", "metric": "tokens_s_user", "value": "100"}

CEILING = {"batch": "max (infinite request rate)", "batching": "in-flight"}


def write_table(
    path: Path, rows: Sequence[Mapping[str, str]], base: Mapping[str, str] = ROW, without: Sequence[str] = ()
) -> Path:
    """Writes rows, each told by how it differs from ``base``, without some of the columns."""
    columns = [
        name
        for name in dict.fromkeys([*base, *(name for row in rows for name in row)])
        if name not in without
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([{**base, **row}.get(name, "") for name in columns] for row in rows)
    return path
