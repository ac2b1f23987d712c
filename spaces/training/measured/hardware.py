"""The system column of a table of measurements: which catalogued GPU it is, and what it says of the cluster."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from dse.errors import nearest

__all__ = ["Cluster", "catalogued", "cluster_of", "hardware_of", "taken_as", "unknown"]

_START, _END = r"(?<![a-z0-9])", r"(?![a-z0-9])"

_GPUS = (
    (r"gb300", "", "gb300-nvl72"),
    (r"gb200", "", "gb200-nvl72"),
    (r"b200", "", "b200-sxm"),
    (r"h200", "", "h200-sxm"),
    (r"h100", r"[- ]pcie", "h100-pcie"),
    (r"h[18]00", r"(?!.*(pcie|nvl))", "h100-sxm"),
    (r"h20", "", "h20"),
    (r"a100", r"(?!.*pcie).*40 ?gb", "a100-sxm-40"),
    (r"a[18]00", r"(?!.*pcie)", "a100-sxm-80"),
    (r"v100", r"(?!.*(pcie|16 ?gb))", "v100-sxm2-32"),
    (r"mi300x", "", "mi300x"),
    (r"mi250x", "", "mi250x"),
    (r"a10g", "", "a10g"),
    (r"l40s", "", "l40s"),
    (r"l4", "", "l4"),
    (r"t4", "", "t4"),
    (r"rtx[- ]?4090", "", "rtx-4090"),
    (r"tpu[- ]v4", "", "tpu-v4"),
    (r"tpu[- ]v5e", "", "tpu-v5e"),
    (r"tpu[- ]v5p", "", "tpu-v5p"),
    (r"tpu[- ]v6e|trillium", "", "tpu-v6e"),
    (r"trn2|trainium ?2", "", "trn2"),
)
"""The word that says which GPU it is, what must follow, and the catalogue's name of it."""

_VARIANTS = r"h100|a100|v100"
"""Chips of several products; a form, a memory or a node says which."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a source says of its cluster; 0 where it says nothing and the catalogue's datasheet holds.

    ``node`` counts GPUs that share the scale-up link; ``nic`` and ``link`` are B/s per GPU and direction.
    """

    node: float = 0.0
    nic: float = 0.0
    link: float = 0.0


def hardware_of(system: str) -> str:
    """The catalogue's name of the GPU in a ``system`` cell, or "" when it is none of them.

    A catalogue id (``h100-sxm``), or a text in which the GPU's name stands as a word (``A100-80GB SXM (8-GPU node)``).
    """
    folded = system.strip().casefold()
    if folded in catalogued():
        return folded
    return next(
        (name for word, rest, name in _GPUS if re.search(rf"{_START}(?:{word}){_END}{rest}", folded)), ""
    )


def taken_as(system: str) -> str:
    """The catalogue's name of a GPU whose ``system`` cell leaves open which product it is (``H100``), else ""."""
    folded = system.strip().casefold()
    told = folded in catalogued() or not re.search(_VARIANTS, folded)
    return "" if told or re.search(r"sxm|pcie|\d ?gb|dgx|hgx", folded) else hardware_of(system)


def unknown(system: str) -> str:
    """Why a ``system`` cell names no GPU of the catalogue."""
    if not system.strip():
        return "GPU not stated"
    return f"GPU {system!r} is not in the catalogue{nearest(system, catalogued())}"


@cache
def catalogued() -> tuple[str, ...]:
    """The ids of the hardware catalogue."""
    text = files("dse.spaces.catalog").joinpath("hardware.csv").read_text(encoding="utf-8")
    return tuple(row["hardware"] for row in csv.DictReader(text.splitlines()))


def cluster_of(system: str, notes: str) -> Cluster:
    """The GPUs per node and the network rates that a row's system and notes state."""
    gpu = hardware_of(system)
    node = _node(system, gpu)
    nic = _nic(notes, node or 8.0)
    if "DGX-2" in system:
        nic = 8 * 100e9 / 8 / 16  # eight 100 Gb/s adapters shared by sixteen GPUs
    elif "OmniPath" in system:
        nic = 4 * 100e9 / 8 / 4  # four 100 Gb/s adapters, four GPUs
    return Cluster(node, nic, _link(system, notes))


def _node(system: str, gpu: str) -> float:
    """GPUs per scale-up domain, where it is not the datasheet's."""
    if "DGX-2" in system:
        return 16.0
    if found := re.search(r"(\d+)/node", system):
        return float(found.group(1))
    # the published runs on 72-GPU racks place 64 ranks in each
    return 64.0 if gpu.endswith("nvl72") and "NVL72" in system else 0.0


def _nic(notes: str, node: float) -> float:
    """B/s per GPU, from the Gb/s that a row's notes state for each node; 0 when they state none."""
    if found := re.search(r"(\d+)\s*x\s*(\d+)\s*Gb(?:/s)? (?:RoCE|HDR|IB|EDR|NDR)", notes):
        return float(found.group(1)) * float(found.group(2)) * 1e9 / 8 / node
    if found := re.search(r"(\d+) HDR (\d+)Gb/s", notes):
        return float(found.group(1)) * float(found.group(2)) * 1e9 / 8 / node
    if found := re.search(r"inter-node (?:RoCE |InfiniBand )?(\d+) Gb/s", notes):
        return float(found.group(1)) * 1e9 / 8 / node
    return 0.0


def _link(system: str, notes: str) -> float:
    if "A800" in system or "H800" in system:
        return 200e9  # the export variants' NVLink
    if found := re.search(r"intra-node (\d+) GB/s", notes):
        return float(found.group(1)) * 1e9
    return 0.0
