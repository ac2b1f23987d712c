"""Models of tables of measurements: names of the catalogue as people write them, and mixtures of experts."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from dse.spaces.catalog.columns import MODEL_COUNTS

__all__ = [
    "LATENT",
    "catalogue",
    "catalogued",
    "experts_of",
    "is_count",
    "mixture",
    "names",
    "plain",
    "unstated",
]


def experts_of(text: str) -> tuple[dict[str, float], str]:
    """A ``moe`` cell, such as ``E=128;topk=8;moe_ffn=768;shared=1;dense_first=3;MLA``, and what is wrong with it."""
    found: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        name, equals, value = part.partition("=")
        if equals and not value.strip():  # not stated
            continue
        try:
            found[name.casefold()] = float(value) if equals else 1.0
        except ValueError:
            return {}, f"mixture of experts not understood ({part})"
    stated = {"e", "topk"} <= set(found) and all(is_count(number) for number in found.values())
    if found and not (stated and found["topk"] <= found["e"]):
        return {}, f"mixture of experts not understood ({text})"
    return found, ""


MOST = 1e8
"""Above any width, vocabulary or number of layers."""


def is_count(number: float) -> bool:
    """A whole number above 0, or not stated."""
    return math.isnan(number) or (0 < number <= MOST and number % 1 == 0)


def catalogued(name: str) -> Mapping[str, float]:
    """The catalogue's model of that name, written as may be (``Qwen3_30B_a3B``, ``DeepSeek V3 671B``,
    ``meta-llama/Llama-3.1-70B-Instruct``); else nothing.
    """
    whole, models = plain(name), catalogue()
    short = plain(
        re.sub(r"[-_](q\d\w*|iq\d\w*|mxfp4|f16|gguf)$", "", name.rpartition("/")[2], flags=re.IGNORECASE)
    )
    short = re.sub(r"(instruct|base|hf|chat|it|itqat)$", "", short)
    short = ALIASES.get(short, short)
    tried = (whole, short, re.sub(r"(?<=v\d)\d+b$", "", whole), re.sub(r"^llamav(?=\d)", "llama", short))
    return next((models[one] for one in tried if one in models), {})


ALIASES = {"llama33b": "llama30b"}
"""Models of two names: 32.5e9 parameters are 33B in the paper (2302.13971) and 30B in the file that was released."""


def plain(name: str) -> str:
    """A name's letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())


@cache
def _rows() -> tuple[dict[str, str], ...]:
    text = files("dse.spaces.catalog").joinpath("models.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def names() -> tuple[str, ...]:
    """The models of the catalogue."""
    return tuple(row["model"] for row in _rows())


@cache
def catalogue() -> dict[str, Mapping[str, float]]:
    """The numbers of every model of the catalogue, by its name's letters and digits."""
    return {plain(row["model"]): {name: float(row[name]) for name in MODEL_COUNTS} for row in _rows()}


LATENT = ("mla", "q_lora", "kv_lora", "rope_dim", "nope_dim", "value_dim")
"""The columns of latent attention, which tables of measurements only name."""


def mixture(
    experts: Mapping[str, float], model: Mapping[str, float], known: Mapping[str, float]
) -> dict[str, float]:
    """The columns of a mixture of experts, as :func:`experts_of` tells it; widths of MLA from ``known``."""
    if not experts:
        return {}
    width = experts.get("moe_ffn", model["ffn"])
    found = {
        "experts": experts["e"],
        "top_k": experts["topk"],
        "expert_ffn": width,
        "shared_ffn": experts.get("shared", 0.0) * width,
        "moe_layers": model["layers"] - experts.get("dense_first", 0.0),
    }
    if "mla" in experts:  # Kimi-K2 has the widths of DeepSeek-V3 (their config.json)
        widths = known or catalogued("deepseek-v3")
        found |= {name: widths[name] for name in LATENT}
    return found


def unstated(name: str, missing: Sequence[str], needed: Sequence[str]) -> str:
    """Why a model that is not of the catalogue cannot be had; a near miss of a name is told."""
    reason = f"architecture not stated ({', '.join(missing)})"
    near = get_close_matches(name.casefold(), names(), n=1, cutoff=0.8) if len(missing) == len(needed) else ()
    return f"model {name!r} is not in the catalogue; did you mean {near[0]!r}? {reason}" if near else reason
