"""Formats that engines offer: what they call a pair of weight and activation formats, and of which checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse.errors import nearest
from dse.spaces.catalog import names
from dse.study.exports import Plan

from .deployment import Deployment, cannot

__all__ = ["GGUF", "Method", "Offer", "both", "pairs"]

GGUF = tuple(name for name in names("formats") if name.startswith(("q", "iq")) and name != "quip-2")
"""Formats of llama.cpp's files."""

SIXTEEN = ("bf16", "fp16")


@dataclass(frozen=True, slots=True)
class Method:
    """An engine's name of a quantization ("" for none), and what the checkpoint must be."""

    name: str
    checkpoint: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """The formats of an engine: methods by (weights, activations), and its names of cache formats."""

    engine: str
    methods: Mapping[tuple[str, str], Method]
    caches: Mapping[str, str]

    def method(self, plan: Plan, d: Deployment) -> Method:
        """The engine's method for the plan's weights and activations.

        Raises:
            InputError: it has none; says what it offers instead.
        """
        found = self.methods.get((d.weights, d.activations))
        if found is not None:
            return found
        others = [activations for weights, activations in self.methods if weights == d.weights]
        if others:
            raise cannot(
                self.engine,
                plan,
                "activations",
                f"with weights={d.weights} it computes in {', '.join(others)}",
            )
        offered = list(dict.fromkeys(weights for weights, _ in self.methods))
        raise cannot(
            self.engine, plan, "weights", f"it does not offer this format{nearest(d.weights, offered)}"
        )

    def cache(self, plan: Plan, d: Deployment) -> str:
        """The engine's name of the format of the cache.

        Raises:
            InputError: it has none; says what it offers instead.
        """
        if d.kv not in self.caches:
            raise cannot(self.engine, plan, "kv", f"it caches in {', '.join(self.caches)}")
        return self.caches[d.kv]


def both(weights: tuple[str, ...], method: Method) -> dict[tuple[str, str], Method]:
    """Weights that are widened to 16-bit activations of either kind."""
    return {(one, activations): method for one in weights for activations in SIXTEEN}


def pairs(same: Mapping[str, Method]) -> dict[tuple[str, str], Method]:
    """Weights whose activations have the same format."""
    return {(one, one): method for one, method in same.items()}
