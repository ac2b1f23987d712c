"""The JSON that says how a file of fitted numbers was made: what they were fitted to, and the errors in and out of the sample.

``dse calibrate`` writes it beside the numbers; ``dse validate`` tells it with its own figures.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from dse.study.scoring import Collapsed

__all__ = ["Fitted", "counted", "read_record", "record_text", "rounded", "rounded_all"]


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit says of itself. Errors are fractions; ``in_sample`` and ``left_out`` are by source, the latter
    of each source predicted by a fit to the others; ``apart`` those whose GPU generation no other source has.
    ``further`` are other figures of sources left out, by name.
    """

    rows: int = 0
    in_sample: Mapping[str, float] = field(default_factory=dict)
    left_out: Mapping[str, float] = field(default_factory=dict)
    apart: Mapping[str, float] = field(default_factory=dict)
    macro: float = math.nan
    left_out_macro: float = math.nan
    further: Mapping[str, float] = field(default_factory=dict)

    def figure(self, name: str) -> float:
        """One of ``further``; NaN where there is none."""
        return self.further.get(name, math.nan)


@cache
def read_record(numbers: Path) -> Fitted | None:
    """What stands beside a file of fitted numbers, or None where nothing (readable) does."""
    try:
        told = json.loads(numbers.with_suffix(".json").read_text(encoding="utf-8"))
        own, held = told["in_sample"], told.get("left_out") or {}
        return Fitted(
            int(told["rows"]["fitted"]),
            dict(own["sources"]),
            dict(held.get("sources", {})),
            dict(held.get("apart", {})),
            _finite(own["macro"]),
            _finite(held.get("macro")),
            {name: _finite(figure) for name, figure in held.items() if not isinstance(figure, dict)},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def record_text(space: str, files: Mapping[str, Path | None], out: Path, told: Mapping[str, Any]) -> str:
    """The JSON that is written beside fitted numbers; no paths, no dates.

    Args:
        space: whose numbers they are.
        files: the tables by option (``data``, ``gemm``, ``comm``).
        out: the file of numbers.
        told: what is told behind the command and the content of the tables; with ``left_out`` where sources were left out.
    """
    used = {name: path for name, path in files.items() if path is not None}
    options = "".join(f" --{name} {path.name}" for name, path in used.items())
    options += " --leave-out source" if "left_out" in told else ""
    first = {
        "command": f"dse calibrate {space}{options} --out {out.name}",
        "data": {path.name: {"sha256": _digest(path)} for path in used.values()},
    }
    return json.dumps({**first, **told}, indent=2, ensure_ascii=False) + "\n"


def counted(runs: Sequence[Collapsed], counts: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """How many rows were fitted, and how many there are of each value of what is counted, by name."""
    rows = {"fitted": sum(len(run.members) for run in runs), "configurations": len(runs)}
    return rows | {
        name: {one: list(own).count(one) for one in dict.fromkeys(own)} for name, own in counts.items()
    }


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def rounded(value: float) -> float | None:
    """A figure to four places; None where there is none."""
    return None if math.isnan(value) else round(value, 4)


def rounded_all(values: Mapping[str, float]) -> dict[str, float | None]:
    """Figures by name."""
    return {name: rounded(value) for name, value in values.items()}


def _finite(value: object) -> float:
    """A figure that was read back; NaN where there is none."""
    return float(value) if isinstance(value, (int, float)) else math.nan
