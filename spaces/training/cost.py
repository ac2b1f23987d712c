"""The cost model of training: what the formulas beside this file say of one plan, as metrics."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dse.expressions.tracer import ceil, quantity, where
from dse.spaces.catalog import architecture

from . import flops, memory, step
from .layout import Given

__all__ = ["cost", "iteration_time", "namespace"]

TIMES = {
    "compute": "compute", "recompute": "recompute_time", "tp": "tp_exposed", "cp": "cp_exposed", "ep": "ep_exposed",
    "pp": "pp_exposed", "dp": "dp_exposed", "bubble": "bubble", "optimizer": "optimizer_step", "overhead": "overhead",
}  # fmt: skip
"""The parts of a step and the metrics that they are."""

LINES = {"optimizer_step": "optimizer_temporaries"}
"""Lines of memory whose metric has another name."""


class _Redesigned:
    """The model with its layers and KV heads changed, and its MLPs as wide as keeps the number of parameters."""

    def __init__(self, model: Any, extra_layers: Any, kv_share: Any) -> None:
        self._model = model
        self.layers = model.layers + extra_layers
        self.kv_heads = ceil(model.kv_heads / kv_share)
        saved = 2.0 * model.head_dim * model.hidden * (model.kv_heads - self.kv_heads)
        a_layer = architecture.attention_parameters(model) + architecture.mlp_parameters(model)
        matrices = (2.0 + model.gated) * model.hidden
        wanted = model.ffn + (a_layer * (model.layers / self.layers - 1.0) + saved) / matrices
        changed = (extra_layers != 0) | (kv_share > 1)
        self.ffn = where(changed, ceil(wanted / 256.0 - 0.5) * 256.0, model.ffn)

    @property
    def window_layers(self) -> Any:
        """Layers that have a window: as large a share of all as the model has."""
        return self._model.window_layers * self.layers / self._model.layers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def namespace(efficiency: Any, names: dict[str, Any]) -> Given:
    """What the formulas are given, from the inputs and dimensions of the space."""
    g = SimpleNamespace(**names)
    g.efficiency = efficiency[g.hardware.generation]
    g.runtime = g.framework
    g.model = _Redesigned(g.model, g.extra_layers, g.kv_share)
    g.global_batch, g.seq_len = g.global_batch * g.shorter, g.seq_len / g.shorter
    return g


def iteration_time(g: Given) -> Any:
    """Seconds of one step."""
    return step.step(g).total


def cost(efficiency: Any, **names: Any) -> dict[str, Any]:
    """Every metric of a plan (see space.yaml for their meaning)."""
    g = namespace(efficiency, names)
    time, lines = step.step(g), memory.memory(g)
    total = time.total
    tokens = g.global_batch * g.seq_len
    rate = quantity(tokens, "token") / total
    model, executed = flops.model_flops(g), flops.executed_flops(g)
    dense = flops.peak_rate(g)
    training = g.token_budget / rate
    busy = (time.compute + time.recompute) / total
    power = g.n_gpus * (g.hardware.idle + busy * (g.hardware.tdp - g.hardware.idle)) * g.pue
    price = where(g.gpu_price > quantity(0.0 * g.n_gpus, "USD/h"), g.gpu_price, g.hardware.price)
    return {
        "iteration_time": total,
        **{metric: getattr(time, part) for part, metric in TIMES.items()},
        "peak_memory": memory.peak(g),
        **{LINES.get(name, name): value for name, value in lines.items()},
        "mfu": quantity(model, "flop") / (total * g.n_gpus * dense),
        "hfu": quantity(executed, "flop") / (total * g.n_gpus * dense),
        "tokens_per_second": rate,
        "gpu_tokens_per_second": rate / g.n_gpus,
        "best_measured_mfu": g.efficiency.best_mfu * (model / flops.causal_flops(g)),
        "parameters": architecture.parameters(g.model),
        "days": training,
        "gpu_hour": price,
        "dollars": price * g.n_gpus * training,
        "energy": power * training,
    }
