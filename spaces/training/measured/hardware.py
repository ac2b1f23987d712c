"""The system column of a table of measurements: which catalogued GPU it is, and what it says of the cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dse.spaces.measured.gpus import catalogued, hardware_of, taken_as, unknown

__all__ = ["Cluster", "catalogued", "cluster_of", "hardware_of", "taken_as", "unknown"]


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a source says of its cluster; 0 where it says nothing and the catalogue's datasheet holds.

    ``node`` counts GPUs that share the scale-up link; ``nic`` and ``link`` are B/s per GPU and direction.
    """

    node: float = 0.0
    nic: float = 0.0
    link: float = 0.0


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
