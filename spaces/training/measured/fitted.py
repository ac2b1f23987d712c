"""How a file of efficiencies was made: what it was fitted to, and the errors in and out of the sample.

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

from dse.spaces.measured.record import digests, finite, rounded

from .scores import Scores

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
    left_out_macro: float = math.nan
    scale_spearman: float = math.nan
    plan_spearman: float = math.nan
    plan_regret: float = math.nan


@cache
def fitted(efficiencies: Path = EFFICIENCIES) -> Fitted | None:
    """What stands beside a file of efficiencies, or None where nothing (readable) does."""
    try:
        told = json.loads(efficiencies.with_suffix(".json").read_text(encoding="utf-8"))
        own, held = told["in_sample"], told.get("left_out") or {}
        return Fitted(
            int(told["rows"]["fitted"]),
            dict(own["sources"]),
            dict(held.get("sources", {})),
            dict(held.get("apart", {})),
            float(own["macro"]),
            *(finite(held.get(name)) for name in ("macro", "scale_spearman", "plan_spearman", "plan_regret")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def fitted_text(
    files: Mapping[str, Path | None],
    out: Path,
    generations: Sequence[str],
    after: Scores,
    held: tuple[Scores, Scores, Scores] | None,
) -> str:
    """The JSON that is written beside fitted efficiencies; no paths, no dates.

    Args:
        files: the tables by option (``data``, ``gemm``, ``comm``).
        out: the file of efficiencies.
        generations: the GPU generation of each exact row.
        after: scores with the fitted efficiencies.
        held: scores of sources left out of the fit: of those whose generation another has, of the others, of all.
    """
    used = {name: path for name, path in files.items() if path is not None}
    options = "".join(f" --{name} {path.name}" for name, path in used.items())
    told: dict[str, Any] = {
        "command": f"dse calibrate training{options}{' --leave-out source' if held else ''} --out {out.name}",
        "data": digests(used),
        "rows": {
            "fitted": sum(len(run.members) for run in after.runs),
            "configurations": len(after.runs),
            "by_generation": {name: generations.count(name) for name in dict.fromkeys(generations)},
        },
        "errors": "mean absolute error of the published figure; macro: mean over sources of the mean over (model, system)",
        "noisy_sources": {name: rounded(spread) for name, spread in after.left_out.items()},
        "in_sample": _scored(after),
    }
    if held:
        shared, apart, whole = held
        told["left_out"] = {
            "macro": rounded(shared.macro),
            "macro_with_noisy": rounded(shared.macro_all),
            "sources": _sources(shared),
            "apart": _sources(apart),
            **_ranks(whole),
        }
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def _scored(scores: Scores) -> dict[str, Any]:
    return {
        "macro": rounded(scores.macro),
        "macro_with_noisy": rounded(scores.macro_all),
        "sources": _sources(scores),
        **_ranks(scores),
    }


def _sources(scores: Scores) -> dict[str, float | None]:
    return {name: rounded(error) for name, error in scores.sources.items()}


def _ranks(scores: Scores) -> dict[str, float | None]:
    return {
        "scale_spearman": rounded(scores.scale_rank),
        "plan_spearman": rounded(scores.plan_rank),
        "plan_regret": rounded(scores.plan_regret),
    }
