"""What was measured: seconds of one iteration, from whichever figure a source prints.

Rates convert by the tokens of the global batch. A rate of FLOP/s converts by the FLOPs that its source counts:

* hardware FLOPs with full recomputation, 96 B s L h^2 (1 + s/6h + V/16Lh): Narayanan 2021 (2104.04473), eq. 3,
  of its own figures, of the Megatron-LM tables, and of DeepSpeed's Azure post; for grouped heads and gated MLPs
  its general form, four forward passes of the layers and three of the head;
* model FLOPs, three forward passes, full attention: llm-foundry, NeMo, DGX Cloud, torchtitan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dse.spaces.measured.target import Target

__all__ = ["METRICS", "Target", "metric_of", "iteration_flops", "target_of"]

ORDER = ("iter_s", "iter_s_median", "tokens_s_gpu", "tokens_s", "tflops_per_gpu", "mfu", "hfu")
"""The figures that give a time, the most direct first."""

TIMES = ("iter_s", "iter_s_median")

METRICS = (*ORDER[:1], *ORDER[2:])
"""The figures that are told as those accepted."""

SAME = {
    "iteration_time": "iter_s", "iteration_time_s": "iter_s", "iter_time": "iter_s", "iter_time_s": "iter_s",
    "step_time": "iter_s", "step_time_s": "iter_s", "tokens_per_s": "tokens_s", "tokens_per_second": "tokens_s",
    "tokens_per_s_gpu": "tokens_s_gpu", "tokens_per_second_per_gpu": "tokens_s_gpu", "tokens_s_per_gpu": "tokens_s_gpu",
    "tflops_gpu": "tflops_per_gpu", "tflops_s_gpu": "tflops_per_gpu",
}  # fmt: skip
"""Other names of the same figures."""


def metric_of(text: str) -> str:
    """The figure of that name, in the table's own spelling."""
    return SAME.get(text.casefold(), text)


def target_of(
    cells: Mapping[str, str],
    numbers: Mapping[str, float],
    model: Mapping[str, float],
    job: Mapping[str, float],
) -> tuple[Target | None, str]:
    """The measured iteration of a row, or None and why there is none.

    ``job`` gives ``n_gpus``, ``global_batch`` and ``seq_len``.
    """
    value, metric = numbers.get("value", math.nan), metric_of(cells["metric"])
    if math.isnan(value):
        return None, "no value"
    if value <= 0:
        return None, "value is not above 0"
    scale = _scale(metric, cells, numbers, model, job)
    if scale is None:
        return (
            None,
            f"metric {metric!r} is no time or rate of a training step; accepted: {', '.join(METRICS)}",
        )
    if math.isnan(scale):
        return None, f"metric {metric!r} needs peak_tflops_used, which is empty"
    best = value_of = None
    for name, amount in (("metric", "value"), ("metric2", "value2"), ("metric3", "value3")):
        figure = metric_of(cells.get(name, ""))
        if figure in ORDER and not math.isnan(numbers.get(amount, math.nan)) and numbers[amount] > 0:
            rank = ORDER.index(figure)
            if best is None or rank < best:
                best, value_of = rank, (figure, numbers[amount])
    assert value_of is not None  # the first metric is one of them
    figure, amount_of = value_of
    own = _scale(figure, cells, numbers, model, job)
    rate = figure not in TIMES
    seconds = amount_of if not rate else (own or math.nan) / amount_of
    if math.isnan(seconds):
        seconds = scale / value
    return Target(seconds, value, scale, is_rate=metric not in TIMES), ""


def _scale(
    metric: str,
    cells: Mapping[str, str],
    numbers: Mapping[str, float],
    model: Mapping[str, float],
    job: Mapping[str, float],
) -> float | None:
    """What ``value * seconds`` is for a rate (1 for a time); None for a metric that is no rate."""
    tokens = job["global_batch"] * job["seq_len"]
    if metric in TIMES:
        return 1.0
    if metric == "tokens_s":
        return tokens
    if metric == "tokens_s_gpu":
        return tokens / job["n_gpus"]
    hardware = metric == "hfu" or _counts_hardware(cells)
    flops = iteration_flops(model, job, hardware=hardware and cells.get("recompute") != "none")
    if metric == "tflops_per_gpu":
        return flops / job["n_gpus"] / 1e12
    if metric in {"mfu", "hfu"}:
        return flops / job["n_gpus"] / 1e12 / numbers.get("peak_tflops_used", math.nan)
    return None


def _counts_hardware(cells: Mapping[str, str]) -> bool:
    notes = cells.get("notes", "").casefold()
    return "hardware flops" in notes or "incl. recompute" in notes or "sc21" in notes


def iteration_flops(model: Mapping[str, float], job: Mapping[str, float], *, hardware: bool) -> float:
    """FLOPs of one iteration with full (not causal) attention; ``hardware`` adds a recomputed forward pass.

    For a GPT with f = 4h and no grouped heads the hardware count is 96 B s L h^2 (1 + s/6h + V/16Lh).
    """
    m = model
    attention = m["hidden"] * m["head_dim"] * (2 * m["heads"] + 2 * m["kv_heads"])
    dense = (2 + m["gated"]) * m["hidden"] * m["ffn"]
    routed = (2 + m["gated"]) * m["hidden"] * (m["top_k"] * m["expert_ffn"] + m["shared_ffn"])
    mixed = m["moe_layers"]
    scores = 2 * job["seq_len"] * m["heads"] * m["head_dim"]
    layers = 2 * (m["layers"] * (attention + scores) + (m["layers"] - mixed) * dense + mixed * routed)
    head = 2 * m["hidden"] * m["vocab"]
    return job["global_batch"] * job["seq_len"] * ((4 if hardware else 3) * layers + 3 * head)
