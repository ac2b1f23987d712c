"""What a framework is told of a model beside its sizes: rotations and norms, which have no influence on the cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dse.spaces.remarks import one_line

from .shapes import cell

__all__ = ["details"]

_EPSILONS = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon")


def details(row: Mapping[str, object]) -> tuple[list[tuple[str, str]], str]:
    """Megatron-LM's arguments for the rotary base and scaling and the norms, and a comment on what is not known.

    They are those of the ``config.json`` that the row was read from; a row of the catalogue has none.
    """
    config = _config(row)
    flags: list[tuple[str, str]] = []
    missing: list[str] = []
    if not cell(row, "positions"):
        rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
        rope = rope if isinstance(rope, dict) else {}
        base = config.get("rope_theta", rope.get("rope_theta"))
        if _number(base):
            flags.append(("rotary-base", f"{base:.0f}"))
        else:
            missing.append("rotary-base")
        kind = rope.get("rope_type", rope.get("type", "default"))
        if kind == "llama3" and _number(rope.get("factor")):
            flags += [("use-rope-scaling", ""), ("rope-scaling-factor", f"{rope['factor']:g}")]
        elif kind != "default" or not config:
            missing.append("rope scaling" if not config else f"rope scaling ({kind})")
    epsilon = next((config[name] for name in _EPSILONS if _number(config.get(name))), None)
    if epsilon is None:
        missing.append("norm-epsilon")
    else:
        flags.append(("norm-epsilon", f"{epsilon:g}"))
    return flags, one_line(f"Put your model's own {', '.join(missing)} here.") if missing else ""


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e12


def _config(row: Mapping[str, object]) -> dict[str, Any]:
    """The fields of the file that a row was read from; none where it was read from none, or the file is gone."""
    source = row.get("source")
    if not isinstance(source, str) or not source.endswith(".json") or "\n" in source:
        return {}
    try:
        found = json.loads(Path(source).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if isinstance(found, dict) and isinstance(found.get("text_config"), dict):
        found = {**found, **found["text_config"]}
    return found if isinstance(found, dict) else {}
