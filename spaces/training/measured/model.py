"""The architecture of a measured run, in the columns of the model catalogue."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from dse.spaces.catalog.columns import MODEL_COUNTS
from dse.spaces.measured.models import catalogued, experts_of, is_count, mixture, unstated

__all__ = ["architecture_of"]

_NEEDED = ("layers", "hidden", "ffn", "heads", "vocab")


def architecture_of(cells: Mapping[str, str], numbers: Mapping[str, float]) -> tuple[dict[str, float], str]:
    """The model of a row, or why it cannot be had.

    Returns:
        the columns of the catalogue that are numbers (0 where a model lacks the part) and "", or an empty mapping
        and the reason.
    """
    moe = cells.get("moe", "")
    if "mamba" in moe.casefold() or "mamba" in cells.get("notes", "").casefold():
        return {}, "hybrid Mamba architecture"
    experts, reason = experts_of(moe)
    given = {name: numbers.get(name, math.nan) for name in (*_NEEDED, "kv_heads", "head_dim")}
    missing = [name for name in _NEEDED if math.isnan(given[name])]
    known = catalogued(cells["model"])
    if known and not reason and all(math.isnan(number) for number in given.values()):
        return dict(known), ""
    if known and missing and all(math.isnan(given[name]) or given[name] == known[name] for name in given):
        given |= {name: known[name] for name in given}
        missing = []
    if reason:
        return {}, reason
    if missing:
        return {}, unstated(cells["model"], missing, _NEEDED)
    if wrong := [name for name, count in given.items() if not is_count(count)]:
        return {}, f"architecture has counts that cannot be ({', '.join(wrong)})"
    model = dict.fromkeys(MODEL_COUNTS, 0.0)
    model |= {name: given[name] for name in _NEEDED}
    model["kv_heads"] = given["heads"] if math.isnan(given["kv_heads"]) else given["kv_heads"]
    model["head_dim"] = given["head_dim"]
    model["norms"] = 2.0
    model |= mixture(experts, model, known)
    if math.isnan(model["head_dim"]):
        if not model["mla"]:
            return {}, "architecture not stated (head_dim)"
        model["head_dim"] = model["nope_dim"] + model["rope_dim"]
    model |= _family(cells, numbers)
    # a mixture's own biases are those of its family, not of its activation
    if model["experts"]:
        model |= {"router_bias": model["sinks"], "expert_bias": model["sinks"]}
    return model, ""


def _family(cells: Mapping[str, str], numbers: Mapping[str, float]) -> dict[str, float]:
    """What the activation and the model's name tell: gates, norms, biases, positions and tied embeddings."""
    name, notes = cells["model"].casefold(), cells.get("notes", "")
    activation = cells.get("activation", "").casefold()
    if not activation and re.search(r"llama|mistral|mixtral|qwen|internlm", name):
        activation = "swiglu"
    sequence = numbers.get("seq_len", math.nan)
    if re.search(r"gpt[-_ ]?oss", name):
        layers = numbers["layers"]
        return {
            "gated": 1, "qkv_bias": 1, "out_bias": 1, "sinks": 1, "window": 128, "window_layers": layers // 2,
        }  # fmt: skip
    if "deepseek" in name:  # 8 groups of experts, of which a token uses 4 (config.json of DeepSeek-V3)
        return {"gated": 1, "group_limit": 4 * float("E=256" in cells.get("moe", ""))}
    if activation in {"swiglu", "geglu"}:
        return {"gated": 1, "qk_norm": float("qwen3" in name), "qkv_bias": float("qwen2" in name)}
    if activation in {"relu2", "squared-relu"}:
        return {"layernorm": 1}
    if "mpt" in name:  # no biases; llm-foundry counts a learned position for each token of the sequence
        return {"layernorm": 0, "tied": 1, "positions": sequence}
    biases = {"layernorm": 1, "qkv_bias": 1, "out_bias": 1, "mlp_bias": 1}
    tied = float("untied" not in notes)
    dropout = float(cells.get("precision", "") == "fp16")
    return biases | {"tied": tied, "positions": 0.0 if math.isnan(sequence) else sequence, "dropout": dropout}
