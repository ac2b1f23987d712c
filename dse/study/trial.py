"""A trial: one evaluated design of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from dse.problem import Design

__all__ = ["Trial", "TrialState"]


class TrialState(Enum):
    """RUNNING trials are leased to whoever runs them (see :class:`dse.study.storage.Lease`); the others are finished."""

    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    INFEASIBLE = "INFEASIBLE"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Trial:
    """One design of a study and what became of it.

    ``metrics`` are all metrics in base units (None where undefined); ``objectives`` and ``violations`` in base
    units, in the problem's order; ``index`` is None when a dimension is continuous; ``batch`` the batch it was
    proposed in.
    """

    number: int
    design: Design
    index: int | None
    state: TrialState
    batch: int = 0
    objectives: tuple[float, ...] = ()
    violations: tuple[float, ...] = ()
    metrics: Mapping[str, float | bool | str | None] = field(default_factory=dict)
    reason: str = ""
