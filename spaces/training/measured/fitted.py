"""How the file of efficiencies was made: what it was fitted to, and the errors in and out of the sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dse.spaces.measured.record import Fitted, counted, read_record, record_text, rounded, rounded_all

from .scores import Scores

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
    told: dict[str, Any] = {
        "rows": counted(after.runs, {"by_generation": generations}),
        "errors": "mean absolute error of the published figure; macro: mean over sources of the mean over (model, system)",
        "noisy_sources": rounded_all(after.left_out),
        "in_sample": {**_errors(after), **_ranks(after)},
    }
    if held:
        shared, apart, whole = held
        told["left_out"] = {**_errors(shared), "apart": rounded_all(apart.sources), **_ranks(whole)}
    text: str = record_text("training", files, out, told)
    return text


def _errors(scores: Scores) -> dict[str, Any]:
    return {
        "macro": rounded(scores.macro),
        "macro_with_noisy": rounded(scores.macro_all),
        "sources": rounded_all(scores.sources),
    }


def _ranks(scores: Scores) -> dict[str, float | None]:
    return {
        "scale_spearman": rounded(scores.scale_rank),
        "plan_spearman": rounded(scores.plan_rank),
        "plan_regret": rounded(scores.plan_regret),
    }
