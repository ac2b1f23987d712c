"""Training plans for the frameworks that run them, and launch lines read back as plans."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dse.problem import Problem
from dse.spaces.plans import read_json, write_json
from dse.study.exports import Exporter, KnownPlan

from .deepspeed import write_deepspeed
from .megatron import write_megatron
from .models import model_row
from .reading import read_megatron
from .starting import is_started, read_deepspeed, read_started
from .torchtitan import read_torchtitan, write_torchtitan

__all__ = ["KEPT", "TARGETS", "model_row", "read_plan"]

TARGETS: Mapping[str, Exporter] = {
    "megatron": write_megatron,
    "deepspeed": write_deepspeed,
    "torchtitan": write_torchtitan,
    "json": write_json,
}
"""What ``dse export --to`` takes."""

_SECTION = re.compile(r"(?:\s*#.*\n|\s*\n)*\s*\[+[\w. \"'-]+\]+\s*(?:#.*)?$", re.MULTILINE)
"""The head of a section of TOML, after comments only."""

KEPT = ("format", "dispatch")
"""Dimensions that change what is learned, so that a better plan keeps them."""


def read_plan(text: str, file: str, problem: Problem) -> KnownPlan:
    """The plan in a file: a launch line of Megatron-LM, a configuration of DeepSpeed or torchtitan, a script
    that starts Megatron-DeepSpeed with one, or our own JSON.

    Raises:
        InputError: it is none of them, or cannot be read.
    """
    start = text.lstrip()
    if start.startswith("{") or file.endswith(".json"):
        found = read_json(text, file, problem)
        return found if found is not None else read_deepspeed(text, file, problem)
    if file.endswith(".toml") or _SECTION.match(text):
        return read_torchtitan(text, file, problem)
    return (read_started if is_started(text) else read_megatron)(text, file, problem)
