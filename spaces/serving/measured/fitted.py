"""How the files of fitted numbers were made: what they were fitted to, and the errors in and out of the sample.

``dse calibrate`` writes it beside the efficiencies, as JSON; ``dse validate`` tells it with its own figures.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dse.spaces.measured.record import digests, finite, rounded

from .scores import Ceiling, Scores

__all__ = ["EFFICIENCIES", "Fitted", "fitted", "fitted_text"]

EFFICIENCIES = Path(__file__).parents[1] / "efficiency.csv"
"""The efficiencies that the space ships."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit says of itself. Errors are fractions; ``in_sample`` and ``left_out`` are by source, the latter
    of each source predicted by a fit to the others; ``apart`` those whose GPU generation no other source has.
    """

    rows: int = 0
    in_sample: Mapping[str, float] = field(default_factory=dict)
    left_out: Mapping[str, float] = field(default_factory=dict)
    apart: Mapping[str, float] = field(default_factory=dict)
    macro: float = math.nan
    decode: float = math.nan
    throughput: float = math.nan
    latency: float = math.nan
    left_out_macro: float = math.nan
    left_out_decode: float = math.nan


@cache
def fitted(efficiencies: Path = EFFICIENCIES) -> Fitted | None:
    """What stands beside a file of efficiencies, or None where nothing (readable) does."""
    try:
        told = json.loads(efficiencies.with_suffix(".json").read_text(encoding="utf-8"))
        own, held = told["in_sample"], told.get("left_out") or {}
        return Fitted(
            rows=int(told["rows"]["fitted"]),
            in_sample=dict(own["sources"]),
            left_out=dict(held.get("sources", {})),
            apart=dict(held.get("apart", {})),
            macro=finite(own.get("macro")),
            decode=finite(own.get("decode")),
            throughput=finite(own.get("throughput_spearman")),
            latency=finite(own.get("latency_spearman")),
            left_out_macro=finite(held.get("macro")),
            left_out_decode=finite(held.get("decode")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


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
    used = {name: path for name, path in files.items() if path is not None}
    options = "".join(f" --{name} {path.name}" for name, path in used.items())
    after, reached = scored
    told: dict[str, Any] = {
        "command": f"dse calibrate serving{options}{' --leave-out source' if held else ''} --out {out.name}",
        "data": digests(used),
        "rows": {
            "fitted": sum(len(run.members) for run in after.runs),
            "configurations": len(after.runs),
            **{
                name: {one: list(own).count(one) for one in dict.fromkeys(own)}
                for name, own in counts.items()
            },
        },
        "errors": "mean absolute error of the published figure; macro: mean over sources of the mean over (model, GPU, engine)",
        "in_sample": _scored(after)
        | {"ceilings_reached": rounded(_share(reached)), "ceilings": len(reached)},
    }
    if held:
        shared, apart = held
        told["left_out"] = _scored(shared) | {"apart": _sources(apart.sources)}
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def _scored(scores: Scores) -> dict[str, Any]:
    return {
        "macro": rounded(scores.macro),
        "decode": rounded(scores.decode_macro),
        "sources": _sources(scores.sources),
        "decode_sources": _sources(scores.decode_sources),
        "throughput_spearman": rounded(_mean(scores.ranks("throughput"))),
        "latency_spearman": rounded(_mean(scores.ranks("latency"))),
    }


def _sources(found: Mapping[str, float]) -> dict[str, float | None]:
    return {name: rounded(error) for name, error in found.items()}


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _share(reached: Sequence[Ceiling]) -> float:
    return _mean([float(one.ratio >= 1.0) for one in reached])
