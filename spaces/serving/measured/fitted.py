"""How the files of fitted numbers were made: what they were fitted to, and the errors in and out of the sample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dse.spaces.measured.record import Fitted, counted, read_record, record_text, rounded, rounded_all

from .scores import Ceiling, Scores

__all__ = ["EFFICIENCIES", "Fitted", "fitted", "fitted_text"]

EFFICIENCIES = Path(__file__).parents[1] / "efficiency.csv"
"""The efficiencies that the space ships."""


def fitted(efficiencies: Path = EFFICIENCIES) -> Fitted | None:
    """What stands beside a file of efficiencies, or None where nothing (readable) does."""
    found: Fitted | None = read_record(efficiencies)
    return found


def fitted_text(
    files: Mapping[str, Path | None],
    out: Path,
    counts: Mapping[str, Sequence[str]],
    scored: tuple[Scores, Sequence[Ceiling]],
    held: tuple[Scores, Scores] | None,
) -> str:
    """The JSON that is written beside fitted efficiencies; no paths, no dates.

    Args:
        files: the tables by option (``data``, ``gemm``, ``comm``).
        out: the file of efficiencies.
        counts: what to count the fitted rows by: the value of each, by name.
        scored: scores and ceilings with the fitted numbers.
        held: scores of sources left out of the fit: of those whose GPU generation another has, and of the others.
    """
    after, reached = scored
    share = _mean([float(one.ratio >= 1.0) for one in reached])
    told: dict[str, Any] = {
        "rows": counted(after.runs, counts),
        "errors": "mean absolute error of the published figure; macro: mean over sources of the mean over (model, GPU, engine)",
        "in_sample": _scored(after) | {"ceilings_reached": rounded(share), "ceilings": len(reached)},
    }
    if held:
        shared, apart = held
        told["left_out"] = _scored(shared) | {"apart": rounded_all(apart.sources)}
    text: str = record_text("serving", files, out, told)
    return text


def _scored(scores: Scores) -> dict[str, Any]:
    return {
        "macro": rounded(scores.macro),
        "decode": rounded(scores.decode_macro),
        "sources": rounded_all(scores.sources),
        "decode_sources": rounded_all(scores.decode_sources),
        "throughput_spearman": rounded(_mean(scores.ranks("throughput"))),
        "latency_spearman": rounded(_mean(scores.ranks("latency"))),
    }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan
