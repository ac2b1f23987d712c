"""Training plans for the frameworks that run them, and launch lines read back as plans."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dse.problem import Problem
from dse.spaces.catalog.huggingface import read_config
from dse.study.exports import Exporter, KnownPlan

from .deepspeed import read_deepspeed, write_deepspeed
from .megatron import write_megatron
from .plain import read_json, write_json
from .reading import read_megatron, row_of_launch
from .torchtitan import read_torchtitan, write_torchtitan

__all__ = ["KEPT", "TARGETS", "model_row", "read_plan"]

TARGETS: Mapping[str, Exporter] = {
    "megatron": write_megatron,
    "deepspeed": write_deepspeed,
    "torchtitan": write_torchtitan,
    "json": write_json,
}
"""What ``dse export --to`` takes."""

KEPT = ("format", "dispatch")
"""Dimensions that change what is learned, so that a better plan keeps them."""


def read_plan(text: str, file: str, problem: Problem) -> KnownPlan:
    """The plan in a file: a launch line of Megatron-LM, a DeepSpeed or torchtitan configuration, or our own JSON.

    Raises:
        InputError: it is none of them, or cannot be read.
    """
    start = text.lstrip()
    if start.startswith("{") or file.endswith(".json"):
        found = read_json(text, file, problem)
        return found if found is not None else read_deepspeed(text, file, problem)
    if file.endswith(".toml") or start.startswith("["):
        return read_torchtitan(text, file, problem)
    return read_megatron(text, file, problem)


def model_row(path: Path) -> Mapping[str, object]:
    """A model's row of the catalogue from a file: a launch line of Megatron-LM, or a Hugging Face ``config.json``.

    Raises:
        InputError: the file is neither, or has an architecture that is not known.
    """
    row: Mapping[str, object] = read_config(path) if path.suffix == ".json" else row_of_launch(path)
    return row
