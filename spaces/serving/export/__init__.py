"""Serving plans for the engines that run them."""

from __future__ import annotations

from collections.abc import Mapping

from dse.study.exports import Exporter

from .sglang import write_sglang
from .tensorrt import write_tensorrt
from .vllm import write_vllm

__all__ = ["TARGETS"]

TARGETS: Mapping[str, Exporter] = {
    "vllm": write_vllm,
    "tensorrt-llm": write_tensorrt,
    "sglang": write_sglang,
}
"""What ``dse export --to`` takes."""
