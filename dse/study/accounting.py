"""How every design of the space was accounted for, and where legal designs were lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Accounting", "Funnel", "FunnelLine"]


@dataclass(frozen=True, slots=True)
class Accounting:
    """Exact counts of designs; each is counted once, for the first reason in this order.

    ``outside`` is excluded by the team, ``illegal`` breaks a rule, ``evaluated`` was judged, ``pruned`` was
    discarded by a bound (split by reason) and ``unvisited`` was not reached: by a sampling solver, or because
    the search was stopped. Their sum is ``total``. ``illegal_by`` splits ``illegal`` by the first broken rule,
    where that is known.
    """

    total: int
    outside: int = 0
    illegal: int = 0
    evaluated: int = 0
    pruned: int = 0
    unvisited: int = 0
    illegal_by: Mapping[str, int] = field(default_factory=dict)
    pruned_by: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parts = self.outside + self.illegal + self.evaluated + self.pruned + self.unvisited
        if parts != self.total:
            raise ValueError(f"the parts of the accounting must sum to {self.total:,}, but sum to {parts:,}")

    def to_dict(self) -> dict[str, Any]:
        """A JSON object; counts are integers of any size."""
        return {
            "total": self.total,
            "outside": self.outside,
            "illegal": self.illegal,
            "evaluated": self.evaluated,
            "pruned": self.pruned,
            "unvisited": self.unvisited,
            "illegal_by": dict(self.illegal_by),
            "pruned_by": dict(self.pruned_by),
        }


@dataclass(frozen=True, slots=True)
class FunnelLine:
    """Designs lost at one requirement: ``alone`` by itself, ``in_order`` after those above it.

    ``exact`` says whether the counts are of every legal design or only of those evaluated ("at least").
    """

    name: str
    alone: int
    in_order: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Funnel:
    """From legal designs to feasible ones. ``failed`` designs have no verdict: a missing cell or NaN."""

    legal: int
    failed: int
    lines: tuple[FunnelLine, ...]
    feasible: int
    exact: bool = True

    def to_dict(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "legal": self.legal,
            "failed": self.failed,
            "lines": [
                {"name": line.name, "alone": line.alone, "in_order": line.in_order, "exact": line.exact}
                for line in self.lines
            ],
            "feasible": self.feasible,
            "exact": self.exact,
        }
