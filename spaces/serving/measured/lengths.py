"""How many tokens a measured run had: prompt, output, and what the cache held before; and what is not stated of it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Lengths", "lengths_of", "number_of"]

SHORT = (1.0, 128.0)
"""Prompts that a source calls short."""

UNSTATED = (1.0, 2048.0)
"""Contexts of single sequences where a source says nothing."""

OUTPUT = 128.0
"""Tokens of an output that is not stated, beside a prompt that is not either."""

_PAST = r"(?:with|holding) (\d+) tokens|(\d+) tokens already in the kv cache"


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of each sequence: ``prompt``, ``output`` and ``past``. ``prompts`` are the ends of a prompt that is
    not stated (else both are the prompt), ``open`` says what is not.
    """

    prompt: float
    output: float
    past: float
    prompts: tuple[float, float]
    open: str = ""


def number_of(text: str) -> float:
    """A count in a cell that may hold words; NaN for words."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def lengths_of(cells: Mapping[str, str], phase: str, batch: float) -> tuple[Lengths | None, str]:
    """The lengths of a row, or None and why they are not known.

    Lengths that are not stated are taken for single sequences only: of a batch, most bytes may be its cache.
    """
    prompt, output = number_of(cells["input_len"]), number_of(cells["output_len"])
    if prompt < 0 or output < 0:
        return None, "lengths below 0"
    if phase == "prefill":
        output = 1.0 if math.isnan(output) or output == 0 else output
    noted = re.search(_PAST, cells.get("notes", "").casefold())
    past = float(noted.group(1) or noted.group(2)) if noted else 0.0
    if phase == "decode" and noted and prompt == past:  # the column repeats what the cache holds
        prompt = 0.0
    told = [(prompt, cells["input_len"]), (output, cells["output_len"])]
    words = [text or "empty" for value, text in told if math.isnan(value)]
    if words and (batch != 1 or phase == "prefill" or any("mix" in text.casefold() for text in words)):
        return None, f"lengths not stated ({' and '.join(dict.fromkeys(words))})"
    if not math.isnan(output) and output < 1:
        return None, "no output token"
    if cells["metric"].startswith("tpot") and output == 1:
        return None, "time per output token is not defined for one output token"
    if phase != "decode" and prompt == 0:
        return None, "no prompt token"
    if not words:
        return Lengths(prompt, output, past, (prompt, prompt)), ""
    ends = (prompt, prompt)
    if math.isnan(prompt):
        ends = SHORT if "short" in cells["input_len"].casefold() else UNSTATED
    output = OUTPUT if math.isnan(output) else output
    return Lengths(round(math.sqrt(ends[0] * ends[1])), output, past, ends, " and ".join(words)), ""
