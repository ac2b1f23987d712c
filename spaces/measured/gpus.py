"""GPUs of tables of measurements: which one of the catalogue a text names."""

from __future__ import annotations

import csv
import re
from functools import cache
from importlib.resources import files

from dse.errors import nearest

__all__ = ["catalogued", "hardware_of", "taken_as", "unknown"]

_START, _END = r"(?<![a-z0-9])", r"(?![a-z0-9])"

_GPUS = (
    (r"gb300", "", "gb300-nvl72"),
    (r"gb200", "", "gb200-nvl72"),
    (r"b200", "", "b200-sxm"),
    (r"h200", "", "h200-sxm"),
    (r"h100", r"[- ]pcie", "h100-pcie"),
    (r"h[18]00", r"(?!.*(pcie|nvl))", "h100-sxm"),
    (r"h20", "", "h20"),
    (r"a100", r"(?=.*pcie)(?!.*40 ?gb)", "a100-pcie-80"),
    (r"a100", r"(?!.*pcie).*40 ?gb", "a100-sxm-40"),
    (r"a[18]00", r"(?!.*pcie)", "a100-sxm-80"),
    (r"v100", r"(?!.*(pcie|16 ?gb))", "v100-sxm2-32"),
    (r"mi300x", "", "mi300x"),
    (r"mi250x", r".*\bgcd\b", "mi250x-gcd"),
    (r"mi250x", "", "mi250x"),
    (r"a10g", "", "a10g"),
    (r"l40s", "", "l40s"),
    (r"l4", "", "l4"),
    (r"t4", "", "t4"),
    (r"a40", "", "a40"),
    (r"(?:rtx[- ]?)?a6000", "", "rtx-a6000"),
    (r"rtx[- ]?([456])000 ada", "", r"rtx-{}000-ada"),
    (r"(?:(?:rtx|geforce)[- ]?)*([345]0[5-9]0)[- ]?ti", "", r"rtx-{}-ti"),
    (r"(?:(?:rtx|geforce)[- ]?)*([345]0[5-9]0)", "", r"rtx-{}"),
    (r"(?:jetson )?(?:agx )?orin", r"(?!.*(nano|nx))", "orin-agx-64"),
    (r"(?:apple )?m([1-5])[- ](max|ultra)", "", "m{}-{}"),
    (r"(?:apple )?m([1-5])", "(?! ?pro)", "m{}"),
    (r"tpu[- ]v4", "", "tpu-v4"),
    (r"tpu[- ]v5e", "", "tpu-v5e"),
    (r"tpu[- ]v5p", "", "tpu-v5p"),
    (r"tpu[- ]v6e|trillium", "", "tpu-v6e"),
    (r"trn2|trainium ?2", "", "trn2"),
)
"""The word that says which GPU it is, what must follow, and the catalogue's name of it, with the word's groups."""

_VARIANTS = r"h100|a100|v100"
"""Chips of several products; a form, a memory or a node says which."""


def hardware_of(system: str) -> str:
    """The catalogue's name of the GPU in a ``system`` cell, or "" when it is none of them.

    A catalogue id (``h100-sxm``), or a text in which the GPU's name stands as a word (``A100-80GB SXM (8-GPU node)``).
    """
    folded = system.strip().casefold()
    if folded in catalogued():
        return folded
    for word, rest, name in _GPUS:
        found = re.search(rf"{_START}(?:{word}){_END}{rest}", folded)
        if found and (named := name.format(*found.groups())) in catalogued():
            return named
    return ""


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
