"""The system column of a table of measurements: which catalogued GPU it is, and what it says of the cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Cluster", "cluster_of", "hardware_of"]

_GPUS = (
    (r"gb300", "gb300-nvl72"),
    (r"gb200", "gb200-nvl72"),
    (r"b200", "b200-sxm"),
    (r"h200", "h200-sxm"),
    (r"h100[- ]pcie", "h100-pcie"),
    (r"h100|h800|gh200", "h100-sxm"),
    (r"h20\b", "h20"),
    (r"a100(?!.*pcie).*40 ?gb", "a100-sxm-40"),
    (r"(a100|a800)(?!.*pcie)", "a100-sxm-80"),
    (r"v100", "v100-sxm2-32"),
    (r"mi300x", "mi300x"),
    (r"mi250x", "mi250x"),
    (r"a10g", "a10g"),
    (r"l40s", "l40s"),
    (r"\bl4\b", "l4"),
    (r"\bt4\b", "t4"),
    (r"rtx[- ]?4090", "rtx-4090"),
    (r"tpu[- ]v4", "tpu-v4"),
    (r"tpu[- ]v5e", "tpu-v5e"),
    (r"tpu[- ]v5p", "tpu-v5p"),
    (r"tpu[- ]v6e|trillium", "tpu-v6e"),
    (r"trn2|trainium ?2", "trn2"),
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a source says of its cluster; 0 where it says nothing and the catalogue's datasheet holds.

    ``node`` counts GPUs that share the scale-up link; ``nic`` and ``link`` are B/s per GPU and direction.
    """

    node: float = 0.0
    nic: float = 0.0
    link: float = 0.0


def hardware_of(system: str) -> str:
    """The catalogue's name of the GPU in a ``system`` cell, or "" when it is none of them."""
    folded = system.strip().casefold()
    names = [name for _, name in _GPUS]
    if folded in names:
        return folded
    return next((name for pattern, name in _GPUS if re.search(pattern, folded)), "")


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
