"""What was measured: a time of generating, of one decode step or of a prefill, from whichever figure a source prints.

The figure and the row's notes say which, never the source's name:

* ``generate``: prompt and output together; rates of output tokens, unless the notes exclude the prefill;
* ``decode``: one step, on average over the output; ``tpot_ms``, and rates whose notes exclude the prefill;
* ``prefill``: the prompts of a batch up to the first token; ``ttft_ms`` and rates of prompt tokens;
* ``ceiling``: one output token of all sequences together, where the engine chooses the batch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from dse.spaces.measured.target import Target

__all__ = ["METRICS", "phase_of", "says_phase", "target_of"]

METRICS = (
    "out_tokens_s_total", "out_tokens_s_gpu", "tokens_s_user", "latency_ms_total", "tpot_ms", "tpot_ms_p50", "ttft_ms",
    "prefill_tokens_s", "prefill_tokens_s_gpu",
)  # fmt: skip
"""The figures that are read."""

_PHASES = {
    "latency_ms_total": "generate", "tpot_ms": "decode", "tpot_ms_p50": "decode", "ttft_ms": "prefill",
    "prefill_tokens_s": "prefill", "prefill_tokens_s_gpu": "prefill",
}  # fmt: skip

_WHOLE = r"incl\. prefill|including (the )?prefill|end-to-end|wall time|prefill \+ decode"
_DECODE = (
    r"prefill excluded|exclud\w* (the )?prefill|without (the )?prefill|\bdecode\b|generation speed|speed generating"
    r"|forward pass for one token"
)


def says_phase(notes: str) -> bool:
    """Whether notes say if the prefill is in the figure."""
    return bool(re.search(f"{_WHOLE}|{_DECODE}", notes.casefold()))


def phase_of(metric: str, notes: str) -> str:
    """What a figure times: ``generate``, ``decode`` or ``prefill``; "" for one that times nothing here."""
    if metric not in METRICS:
        return ""
    folded = notes.casefold()
    decode = not re.search(_WHOLE, folded) and re.search(_DECODE, folded)
    return _PHASES.get(metric) or ("decode" if decode else "generate")


def target_of(metric: str, phase: str, value: float, job: Mapping[str, float]) -> Target:
    """The measured time of a figure, and how seconds turn into its unit.

    Args:
        metric: one of :data:`METRICS`.
        phase: what it times.
        value: the figure.
        job: ``batch``, ``prompt``, ``output`` and ``n_gpus``.
    """
    if metric.endswith(("_ms", "_ms_total", "_ms_p50")):
        return Target(value / 1e3, value, 1e3, is_rate=False)
    tokens = {"generate": job["output"], "decode": 1.0, "prefill": job["prompt"], "ceiling": 1.0}[phase]
    scale = tokens * (1.0 if metric == "tokens_s_user" else job["batch"])
    scale /= job["n_gpus"] if metric.endswith("_gpu") else 1.0
    return Target(scale / value if value else math.nan, value, scale, is_rate=True)
