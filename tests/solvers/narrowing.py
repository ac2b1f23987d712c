"""Pareto searches as a huge space would make them, on small ones: bounds by intervals, few boxes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from dse.evaluation.bounds import Boxes
from dse.evaluation.bounds.program import Program
from dse.solvers.branching import gap, misses, searching

__all__ = ["narrowed"]


@contextmanager
def narrowed(limit: int | None = None, children: int | None = None) -> Iterator[None]:
    """Tables of at most ``limit`` combinations, and ``children`` boxes looked at in a step; None: as usual."""
    with pytest.MonkeyPatch.context() as patch:
        if limit is not None:
            patch.setattr(searching, "Boxes", partial(Boxes, limit=limit))
            patch.setattr(misses, "Program", partial(Program, limit=limit))
        if children is not None:
            for module in (searching, misses, gap):
                patch.setattr(module, "CHILDREN", children)
        yield
