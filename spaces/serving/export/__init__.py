"""Serving plans for the engines that run them, and as JSON, which is read back."""

from __future__ import annotations

from collections.abc import Mapping

from dse.errors import InputError
from dse.problem import Problem
from dse.spaces.plans import read_json, write_json
from dse.study.exports import Exporter, KnownPlan

from .sglang import write_sglang
from .tensorrt import write_tensorrt
from .vllm import write_vllm

__all__ = ["TARGETS", "read_plan"]

TARGETS: Mapping[str, Exporter] = {
    "vllm": write_vllm,
    "tensorrt-llm": write_tensorrt,
    "sglang": write_sglang,
    "json": write_json,
}
"""What ``dse export --to`` takes."""


def read_plan(text: str, file: str, problem: Problem) -> KnownPlan:
    """The plan in a file of JSON that an export wrote.

    Raises:
        InputError: it is something else, or cannot be read.
    """
    found: KnownPlan | None = read_json(text, file, problem)
    if found is None:
        raise InputError(f"{file}: this is no plan that dse export --to json wrote")
    return found
