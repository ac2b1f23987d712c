"""Pieces of the JSON that says how a file of fitted numbers was made."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["digests", "finite", "rounded"]


def digests(files: Mapping[str, Path]) -> dict[str, Any]:
    """The content of files by their names, without paths."""
    return {path.name: {"sha256": _digest(path)} for path in files.values()}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def rounded(value: float) -> float | None:
    """A figure to four places; None where there is none."""
    return None if math.isnan(value) else round(value, 4)


def finite(value: object) -> float:
    """A figure that was read back; NaN where there is none."""
    return float(value) if isinstance(value, (int, float)) else math.nan
