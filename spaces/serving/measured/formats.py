"""Number formats of measured runs: which row of the catalogue's ``formats.csv`` a text means, and its bits."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from dse.errors import nearest

__all__ = ["Stored", "activations_of", "cache_of", "stored_of"]

_FORMATS = (
    (r"exl2", "exl2"),
    (r"\b(i?q\d_\w+)", "{}"),
    (r"mxfp4", "mxfp4"),
    (r"mxfp8", "mxfp8"),
    (r"nvfp4", "nvfp4"),
    (r"nf4.*(dq|double)", "nf4-dq"),
    (r"nf4", "nf4"),
    (r"fp8.*(block|128 ?x ?128)", "fp8-block"),
    (r"fp8|e4m3", "fp8"),
    (r"aqlm", "aqlm-2"),
    (r"quip", "quip-2"),
    (r"int(\d).*\bg(?:roup ?)?(\d+)", "int{}-g{}"),
    (r"awq", "int4-awq"),
    (r"(?:gptq|w4a16).*\bg(?:roup ?)?(\d+)", "int4-g{}"),
    (r"int8|w8a8|w8a16", "int8"),
    (r"int4|w4a16|gptq", "int4-g128"),
    (r"bf16|bfloat16", "bf16"),
    (r"\bf(?:p|loat)?16|half", "fp16"),
)
"""The words that say which format it is, and its row, with the words' groups; GPTQ shares scales by 128 weights."""

_HALF = ("fp16", "bf16")


@dataclass(frozen=True, slots=True)
class Stored:
    """How weights are stored: the ``format``; what the row says of their size, as ``bits`` of a weight or as ``size``
    (B) of all of them, NaN where it does not; and whether that holds for the output projection too (``whole``).
    """

    format: str
    bits: float = math.nan
    size: float = math.nan
    whole: bool = False

    def stated(self, parameters: float) -> float:
        """Bits of a weight that the row states for a model of so many parameters, or NaN."""
        return self.bits if math.isnan(self.size) or not math.isnan(self.bits) else 8 * self.size / parameters

    def bits_of(self, parameters: float) -> float:
        """Bits of a weight with its scales: as stated, else those of the format."""
        told = self.stated(parameters)
        return known_formats()[self.format] if math.isnan(told) else told


def stored_of(text: str, engine: str) -> tuple[Stored | None, str]:
    """How weights are stored, or None and why that is not known.

    Args:
        text: a ``weights_precision`` cell, such as ``Q4_K_M (4.8944 bpw, 4.58 GiB)``.
        engine: the row's engine.
    """
    folded = text.strip().casefold()
    if not folded:
        return None, "weights' format not stated"
    name = folded if folded in known_formats() else _named(folded)
    bits = float(found.group(1)) if (found := re.search(r"(\d+(?:\.\d+)?) ?bpw", folded)) else math.nan
    size = math.nan
    if found := re.search(r"(\d+(?:\.\d+)?) ?(gib|gb)\b", folded):
        size = float(found.group(1)) * (2**30 if found.group(2) == "gib" else 1e9)
    if name == "exl2" and not math.isnan(bits):
        widths = [float(one[5:]) for one in known_formats() if one.startswith("exl2-")]
        name = f"exl2-{min(widths, key=lambda width: abs(width - bits)):g}" if widths else ""
    if name not in known_formats():
        return None, f"weights' format {text!r} is not in the catalogue{nearest(folded, known_formats())}"
    # GGUF and EXL2 files, and gpt-fast, quantize every matrix; the others leave the output projection in 16 bits
    whole = name in _HALF or name.startswith(("exl2", "q", "iq")) or "gguf" in folded or engine == "gpt-fast"
    return Stored(name, bits, size, whole and name != "quip-2"), ""


def _named(folded: str) -> str:
    """The format that a text's words mean, or ""."""
    for words, name in _FORMATS:
        if found := re.search(words, folded):
            return name.format(*found.groups())
    return ""


def activations_of(stored: Stored, text: str) -> str:
    """The format in which matrices multiply: that of the weights where activations come in it and nothing says that
    only weights are stored so, else 16 bits.
    """
    if stored.format in {"fp8", "fp8-block", "mxfp8", "nvfp4"} or stored.format == "bf16":
        return stored.format.removesuffix("-block")
    folded = text.casefold()
    if stored.format == "int8" and not re.search(r"weight-only|gptq|awq|w8a16|gguf", folded):
        return "int8"
    return "fp16"


def cache_of(text: str) -> tuple[str, str]:
    """The format of cached keys and values (``bf16`` for any of 16 bits and where nothing is said), or "" and why."""
    folded = text.strip().casefold()
    for word in ("fp8", "int8", "int4"):
        if word in folded:
            return word, ""
    if not folded or "16" in folded or folded == "half":
        return "bf16", ""
    return "", f"cache format {text!r} is not known; known: bf16, fp8, int8, int4"


@cache
def known_formats() -> dict[str, float]:
    """The formats of the catalogue, and their bits of a weight with its scales."""
    text = files("dse.spaces.catalog").joinpath("formats.csv").read_text(encoding="utf-8")
    return {row["format"]: float(row["bits_per_weight"]) for row in csv.DictReader(text.splitlines())}
