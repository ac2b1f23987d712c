"""The parts that model types of a ``config.json`` share: sizes, heads, windows and experts, with their checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .configfile import MISSING, ConfigFile

__all__ = [
    "ACTIVATIONS",
    "Columns",
    "read_dropout",
    "read_experts",
    "read_group_limit",
    "read_kv_heads",
    "read_sizes",
    "read_window_everywhere",
    "read_windows",
]

ACTIVATIONS = ("silu", "swish", "gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "relu")
"""Activation functions; whether an MLP is gated is up to its model type."""

_LAYER_TYPES = ("full_attention", "sliding_attention")

Columns = dict[str, Any]
"""Some columns of ``models.csv`` with their values."""


def read_sizes(
    c: ConfigFile,
    *,
    layers: tuple[str, ...] = ("num_hidden_layers",),
    hidden: tuple[str, ...] = ("hidden_size",),
    heads: tuple[str, ...] = ("num_attention_heads",),
    context: tuple[str, ...] = ("max_position_embeddings",),
    tied: bool = False,
    rotary: float = 1,
    divided: bool = True,
) -> Columns:
    """What every model type has: sizes, tied embeddings and one key-value head for each head.

    ``rotary`` is the share of a head that is rotated where the file does not say it; 0 for model types that rotate
    nothing, or not the head as a whole. ``divided`` says that heads share the hidden size unless the file has a width.
    """
    count = c.count(heads_field := c.either(*heads), most=100_000)
    return {
        "layers": c.count(c.either(*layers), most=10_000),
        "hidden": c.count(c.either(*hidden)),
        "heads": count,
        "kv_heads": count,
        "head_dim": _head_dim(c, c.count(c.either(*hidden)), count, heads_field, rotary)
        if divided
        else c.optional("head_dim") or 0,
        "vocab": c.count("vocab_size", most=100_000_000),
        "context": c.count(c.either(*context), most=1_000_000_000),
        "tied": int(c.flag("tie_word_embeddings", tied)),
    }


def _head_dim(c: ConfigFile, hidden: int, heads: int, heads_field: str, rotary: float) -> int:
    """The width of a head: as given, else the hidden size over the heads."""
    given = c.optional("head_dim")
    if given is None and hidden % heads:
        c.fail(heads_field, f"found {heads}, expected a divisor of the hidden size {hidden}, or a head_dim")
    width = given or hidden // heads
    if rotary:
        rotary = c.share("rotary_pct", c.share("partial_rotary_factor", rotary))
    if (rotated := int(width * rotary)) % 2:
        field = heads_field if given is None else "head_dim"
        c.fail(
            field,
            f"{rotated} numbers of a head of {width} are rotated, expected pairs: an even head dimension",
        )
    return width


def read_kv_heads(c: ConfigFile, heads: int, *, required: bool) -> int:
    """Key-value heads; those of the heads for ``null``, or where the model type lets them be left out."""
    if c.get("num_key_value_heads", MISSING if required else None) is None:
        return heads
    kv_heads = c.count("num_key_value_heads")
    if heads % kv_heads:
        c.fail("num_key_value_heads", f"found {kv_heads}, expected a divisor of the {heads} heads")
    return kv_heads


def read_dropout(c: ConfigFile, default: float, *fields: str) -> int:
    """Whether the model was trained with dropout: by any of the named rates."""
    return int(max(c.share(field, default) for field in fields) > 0)


def read_windows(c: ConfigFile, layers: int, default: Callable[[int], bool] | None = None) -> Columns:
    """The window and how many layers have it, by ``layer_types`` or else by ``default`` of the layer's number."""
    types = c.words("layer_types", _LAYER_TYPES, layers)
    if types is not None:
        windowed = types.count("sliding_attention")
    else:
        windowed = sum(map(default, range(layers))) if default else 0
    if not windowed:
        c.get("sliding_window", None)
        return {}
    return {"window": c.count("sliding_window"), "window_layers": windowed}


def read_window_everywhere(c: ConfigFile, layers: int, default: int) -> Columns:
    """A window that all layers have, or none for ``null``."""
    window = c.count("sliding_window", default, least=0)
    return {"window": window, "window_layers": layers if window else 0}


def read_experts(c: ConfigFile, *names: str, routed: tuple[str, ...] = ("num_experts_per_tok",)) -> Columns:
    """The number of routed experts, and of those that a token uses."""
    experts = c.count(c.either(*names), most=100_000)
    top_k = c.count(field := c.either(*routed))
    if top_k > experts:
        c.fail(field, f"found {top_k}, expected at most the {experts} experts")
    return {"experts": experts, "top_k": top_k}


def read_group_limit(c: ConfigFile, experts: int, top_k: int) -> int:
    """How many groups of experts a token may use; 0 when all of them."""
    groups, used = c.optional("n_group"), c.optional("topk_group")
    if groups and used and used > groups:
        c.fail("topk_group", f"found {used}, expected at most n_group, {groups}")
    if groups and experts % groups:
        c.fail("n_group", f"found {groups}, expected a divisor of the {experts} experts")
    if groups and used and used * (experts // groups) < top_k:
        c.fail(
            "topk_group",
            f"found {used}, but {used} of {groups} groups have {used * (experts // groups)} experts, "
            f"fewer than the {top_k} that a token uses",
        )
    return used if groups and used and used < groups else 0
