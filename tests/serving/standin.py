"""A cost model that is only plausible, and the tables that it needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from dse.spaces.catalog import architecture, catalog
from dse.spaces.serving.measured.given import Fit, Given
from dse.spaces.serving.measured.predictions import Model

__all__ = ["GIVEN", "MODEL"]

CHIPS = ("a100-sxm-80", "h100-sxm", "l4")
FORMATS = {
    name: {"bits_per_weight": catalog.weight_format(name).bits_per_weight}
    for name in catalog.names("formats")
}

GIVEN = Given(
    dict.fromkeys(("weights", "activations", "kv"), FORMATS),
    {name: dict(catalog.hardware(name)) for name in CHIPS},
    Fit({name: {"share": 0.5} for name in ("ampere", "hopper", "ada")}, {"default": {"launch": 1e-3}}),
    {},
)
"""Three GPUs of two generations and one, and one engine."""


def _weights(g: Any) -> Any:
    return architecture.parameters(g.model) * g.weights.bits_per_weight / 8 / g.tp / g.pp


def _cache(g: Any, tokens: Any) -> Any:
    return g.batch * architecture.kv_cache_bytes(g.model, tokens, g.kv.bits_per_weight / 8) / g.tp / g.pp


def _step(g: Any, tokens: Any) -> Any:
    moved = _weights(g) + _cache(g, tokens)
    return moved / g.hardware.bandwidth / g.efficiency.share + g.engine.launch


def _prefill(g: Any) -> Any:
    flops = 2 * architecture.parameters(g.model) * g.batch * g.prompt / g.tp
    return flops / g.hardware.fp16 / g.efficiency.share + g.engine.launch


def _seconds(g: Any) -> Any:
    """A roofline of weights and cache alone."""
    step = _step(g, g.past + g.prompt + g.output / 2)
    whole = _prefill(g) + (g.output - 1) * step
    return np.where(g.kind_decode > 0, step, np.where(g.kind_prefill > 0, _prefill(g), whole))


def _steady(g: Any) -> Any:
    return g.batch * g.output / (_prefill(g) + g.output * _step(g, g.prompt + g.output / 2))


def _peak(g: Any) -> Any:
    return _weights(g) + _cache(g, g.past + g.prompt + g.output)


MODEL = Model(_seconds, _steady, _peak)
