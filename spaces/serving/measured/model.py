"""The architecture of a measured run, in the columns of the model catalogue."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from dse.spaces.catalog import architecture
from dse.spaces.catalog.columns import MODEL_COUNTS
from dse.spaces.measured.models import catalogue, catalogued, experts_of, is_count, mixture, unstated
from dse.spaces.measured.namespace import Namespace

__all__ = ["SIZES", "architecture_of", "bytes_of", "parameters_of"]

SIZES = ("layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab")
"""The columns of a table that say what a model is."""

NEEDED = ("layers", "hidden", "ffn", "heads", "vocab")

MIXED = ("experts", "top_k", "expert_ffn", "shared_ffn")

FAR = 0.15
"""Parameters that are further from the stated number than this are those of another architecture."""

Model = dict[str, float]


def architecture_of(cells: Mapping[str, str], numbers: Mapping[str, float]) -> tuple[Model, str]:
    """The model of a row, or why it cannot be had.

    A row without an architecture has the catalogue's model of its name. A row with one has the catalogue's model of
    that shape, which also says what no column does (gates, biases, tied embeddings, windows); where there is none,
    gates and tied embeddings are those that ``params_B`` fits.

    Returns:
        the columns of the catalogue that are numbers and "", or an empty mapping and the reason.
    """
    if re.search(
        r"mamba|hybrid", f"{cells['model']} {cells.get('moe', '')} {cells.get('notes', '')}".casefold()
    ):
        return {}, "hybrid architecture (state space layers)"
    experts, reason = experts_of(cells.get("moe", ""))
    if reason:
        return {}, reason
    given = {name: numbers.get(name, math.nan) for name in SIZES}
    known = catalogued(cells["model"])
    agrees = all(math.isnan(given[name]) or given[name] == known.get(name) for name in SIZES if name != "ffn")
    if known and agrees and (not experts or known["experts"] == experts["e"]):
        return dict(known), ""
    missing = [name for name in NEEDED if math.isnan(given[name])]
    if missing:
        return {}, unstated(cells["model"], missing, NEEDED)
    if wrong := [name for name, count in given.items() if not is_count(count)]:
        return {}, f"architecture has counts that cannot be ({', '.join(wrong)})"
    model = _plain_model(given)
    model |= mixture(experts, model, known)
    if math.isnan(model["head_dim"]):
        if not model["mla"]:
            return {}, "architecture not stated (head_dim)"
        model["head_dim"] = model["nope_dim"] + model["rope_dim"]
    return _same_shape(model) or _fitting(model, numbers.get("params_B", math.nan))


def _plain_model(given: Mapping[str, float]) -> Model:
    """A model of the sizes that a row states, and nothing else."""
    model = dict.fromkeys(MODEL_COUNTS, 0.0)
    model |= {name: given[name] for name in NEEDED}
    model["kv_heads"] = given["heads"] if math.isnan(given["kv_heads"]) else given["kv_heads"]
    return model | {"head_dim": given["head_dim"], "norms": 2.0}


def _same_shape(model: Model) -> tuple[Model, str] | None:
    """The catalogue's model of that shape; the dense width of a model that has only experts says nothing."""
    columns = [*SIZES, *MIXED]
    if model["moe_layers"] == model["layers"]:
        columns.remove("ffn")
    for known in catalogue().values():
        if all(known[name] == model[name] for name in columns):
            return dict(known), ""
    return None


def _fitting(model: Model, billions: float) -> tuple[Model, str]:
    """The model with gates and tied embeddings as the stated number of parameters has them; gated and untied without."""
    choices = [{"gated": gated, "tied": tied} for gated in (1.0, 0.0) for tied in (0.0, 1.0)]
    if math.isnan(billions):
        return model | choices[0], ""
    found = min(choices, key=lambda one: abs(math.log(parameters_of(model | one) / billions / 1e9)))
    away = parameters_of(model | found) / billions / 1e9
    if not 1 / (1 + FAR) < away < 1 + FAR:
        return {}, f"architecture has {away * billions:.3g} G parameters, params_B says {billions:g}"
    plain = {} if found["gated"] else {"layernorm": 1.0, "qkv_bias": 1.0, "out_bias": 1.0, "mlp_bias": 1.0}
    return model | found | plain, ""


def parameters_of(model: Mapping[str, float]) -> float:
    """All parameters."""
    return float(architecture.parameters(Namespace(model)))


def bytes_of(model: Mapping[str, float], tokens: float, value: float) -> float:
    """Bytes that the cache of one sequence of so many tokens takes, a cached value taking ``value`` bytes."""
    return float(architecture.kv_cache_bytes(Namespace(model), tokens, value))
