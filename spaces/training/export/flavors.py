"""The models that torchtitan ships, by architecture, and what is to be registered of one that it does not.

The flavors are those of ``torchtitan/models/{llama3,qwen3,deepseek_v3,gpt_oss}/__init__.py`` at commits 00f555e1114a
(llama3), 0310b491596b (qwen3), 0014ac2ca45a (deepseek_v3) and 004616c3c07d (gpt_oss).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from .shapes import cell

__all__ = ["Flavor", "find_flavor", "flavor_of", "unbuildable"]

_Row = Mapping[str, object]

_LLAMA = "layers hidden heads kv_heads head_dim ffn vocab tied"
_EXPERTS = "layers hidden heads kv_heads head_dim vocab experts top_k expert_ffn moe_layers"
_LATENT = (
    "layers hidden heads ffn vocab experts top_k expert_ffn shared_ffn moe_layers "
    "q_lora kv_lora nope_dim rope_dim value_dim"
)
_SINKS = f"{_EXPERTS} window window_layers"
_QK = {"qk_norm": 1}
_MLA = {"mla": 1}
_OSS = {"sinks": 1, "qkv_bias": 1, "out_bias": 1, "expert_bias": 1}

_SHIPPED: dict[tuple[str, str], tuple[str, Mapping[str, int], tuple[int, ...]]] = {
    ("llama3", "8B"): (_LLAMA, {}, (32, 4096, 32, 8, 128, 14336, 128256, 0)),
    ("llama3", "70B"): (_LLAMA, {}, (80, 8192, 64, 8, 128, 28672, 128256, 0)),
    ("llama3", "405B"): (_LLAMA, {}, (126, 16384, 128, 8, 128, 53248, 128256, 0)),
    ("qwen3", "0.6B"): (_LLAMA, _QK, (28, 1024, 16, 8, 128, 3072, 151936, 1)),
    ("qwen3", "1.7B"): (_LLAMA, _QK, (28, 2048, 16, 8, 128, 6144, 151936, 1)),
    ("qwen3", "4B"): (_LLAMA, _QK, (36, 2560, 32, 8, 128, 9728, 151936, 1)),
    ("qwen3", "8B"): (_LLAMA, _QK, (36, 4096, 32, 8, 128, 12288, 151936, 0)),
    ("qwen3", "14B"): (_LLAMA, _QK, (40, 5120, 40, 8, 128, 17408, 151936, 0)),
    ("qwen3", "32B"): (_LLAMA, _QK, (64, 5120, 64, 8, 128, 25600, 151936, 0)),
    ("qwen3", "30B-A3B"): (_EXPERTS, _QK, (48, 2048, 32, 4, 128, 151936, 128, 8, 768, 48)),
    ("qwen3", "235B-A22B"): (_EXPERTS, _QK, (94, 4096, 64, 4, 128, 151936, 128, 8, 1536, 94)),
    ("deepseek_v3", "16B"): (
        _LATENT,
        _MLA,
        (27, 2048, 16, 10944, 102400, 64, 6, 1408, 2816, 26, 0, 512, 128, 64, 128),
    ),
    ("deepseek_v3", "236B"): (
        _LATENT,
        _MLA,
        (60, 5120, 128, 12288, 102400, 160, 6, 1536, 3072, 59, 1536, 512, 128, 64, 128),
    ),
    ("deepseek_v3", "671B"): (
        _LATENT,
        _MLA,
        (61, 7168, 128, 18432, 129280, 256, 8, 2048, 2048, 58, 1536, 512, 128, 64, 128),
    ),
    ("gpt_oss", "20b"): (_SINKS, _OSS, (24, 2880, 64, 8, 64, 201088, 32, 4, 2880, 24, 128, 12)),
    ("gpt_oss", "120b"): (_SINKS, _OSS, (36, 2880, 64, 8, 64, 201088, 128, 4, 2880, 36, 128, 18)),
}

_PARTS = "tied qk_norm qkv_bias out_bias mlp_bias experts shared_ffn shared_gate sinks expert_bias mla window".split()
"""Columns of parts that a layer has or has not."""

_BUILDS = {
    "llama3": frozenset[str](),
    "qwen3": frozenset("tied qk_norm experts shared_ffn".split()),
    "deepseek_v3": frozenset("experts shared_ffn mla".split()),
    "gpt_oss": frozenset("qkv_bias out_bias mlp_bias experts sinks expert_bias window".split()),
}
"""The parts that the layers of each model have, or can have by its arguments."""

_NAMES = {
    "layers": "n_layers",
    "hidden": "dim",
    "heads": "n_heads",
    "kv_heads": "n_kv_heads",
    "head_dim": "head_dim",
    "ffn": "hidden_dim",
    "vocab": "vocab_size",
    "experts": "num_experts",
    "top_k": "top_k",
    "expert_ffn": "moe_hidden_dim",
    "q_lora": "q_lora_rank",
    "kv_lora": "kv_lora_rank",
    "nope_dim": "qk_nope_head_dim",
    "rope_dim": "qk_rope_head_dim",
    "value_dim": "v_head_dim",
    "window": "sliding_window_size",
}
"""torchtitan's names of the sizes that are registered."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """A model of torchtitan: its name and flavor; and comments on what is to be registered, if it ships no such one."""

    name: str
    flavor: str
    comments: tuple[str, ...] = ()


def unbuildable(row: _Row) -> str:
    """The column and value of a part that none of torchtitan's models has; "" where there is none."""
    if cell(row, "layernorm"):
        return "layernorm=1, and all its models have RMS norms"
    if not cell(row, "gated"):
        return "gated=0, and all its models have gated MLPs"
    if learned := cell(row, "positions"):
        return f"positions={learned}, and all its models rotate positions instead of learning them"
    if cell(row, "embedding_norm"):
        return "embedding_norm=1, and none of its models has a norm behind the embedding"
    if (norms := cell(row, "norms")) not in (0, 2):
        return f"norms={norms}, and its layers have 2"
    return ""


def flavor_of(row: _Row) -> tuple[str, str] | None:
    """The shipped model and flavor that have the architecture of a row; None where none has."""
    if unbuildable(row):
        return None
    parts = {name for name in _PARTS if cell(row, name)}
    for pair, (columns, features, values) in _SHIPPED.items():
        names = columns.split()
        sizes = {**dict(zip(names, values, strict=True)), **features}
        known = {name for name in _PARTS if sizes.get(name)}
        extra = parts - known - ({"mlp_bias"} if "expert_bias" in known else set())
        if not extra and all(cell(row, name) == value for name, value in sizes.items()):
            return pair
    return None


def find_flavor(row: _Row, called: str) -> Flavor:
    """The model and flavor for a row; one that torchtitan does not ship is called after ``called``."""
    shipped = flavor_of(row)
    if shipped is not None:
        return Flavor(*shipped)
    name = _family(row)
    path = PurePath(called)
    stem = path.parent.name if path.stem == "config" else path.stem if path.suffix == ".json" else path.name
    flavor = re.sub(r"[^\w.-]+", "-", stem).strip("-.") or "custom"
    if (name, flavor) in _SHIPPED:
        flavor += "-custom"
    sizes = [f"{theirs}={cell(row, ours)}" for ours, theirs in _NAMES.items() if cell(row, ours)]
    if cell(row, "experts"):
        shared = cell(row, "shared_ffn") / max(cell(row, "expert_ffn"), 1)
        sizes.append(f"num_shared_experts={shared:g}")
        sizes.append(f"n_dense_layers={cell(row, 'layers') - cell(row, 'moe_layers')}")
    if cell(row, "tied") and "tied" in _BUILDS[name]:
        sizes.append("enable_weight_tying=True")
    if name == "qwen3":
        sizes.append(f"qk_norm={bool(cell(row, 'qk_norm'))}")
    lacking = [
        f"{part}={cell(row, part)}" for part in _PARTS if cell(row, part) and part not in _BUILDS[name]
    ]
    if name == "llama3" and cell(row, "head_dim") * cell(row, "heads") != cell(row, "hidden"):
        lacking.append(f"head_dim={cell(row, 'head_dim')}")
    dense = cell(row, "layers") - cell(row, "moe_layers") if cell(row, "experts") else 0
    if dense and name != "deepseek_v3":
        lacking.append(f"moe_layers={cell(row, 'moe_layers')}")
    return Flavor(
        name,
        flavor,
        (
            f"The flavor {flavor} is a placeholder: torchtitan ships none of this architecture. Register it in",
            f"torchtitan/models/{name}/__init__.py with",
            *(f"  {size}" for size in sizes),
            *([f"and add to its layers what they do not have: {', '.join(lacking)}"] if lacking else []),
        ),
    )


def _family(row: _Row) -> str:
    """The shipped model whose layers are nearest to those of a row."""
    if cell(row, "mla"):
        return "deepseek_v3"
    if cell(row, "sinks"):
        return "gpt_oss"
    return "qwen3" if cell(row, "qk_norm") or cell(row, "experts") else "llama3"
